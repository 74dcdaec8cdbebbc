#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
#
# Copies the QEMU of this machine into a folder that works on another one, where it cannot be
# installed: the program, its libraries but for libc's, and the module and the ROM that a machine
# without a guest takes. About 50 MB. The tests of QEMU's controller run it when GOFS_QEMU_BUNDLE
# names the folder (tests/qemu/qemu_options.h); that machine's libc must not be the older one.
# usage: qemu_bundle.sh FOLDER
set -euo pipefail

fail() { echo "qemu_bundle: $*" >&2; exit 1; }
[ $# = 1 ] || fail "usage: qemu_bundle.sh FOLDER"
folder=$1
program=$(command -v qemu-system-x86_64) || fail "no qemu-system-x86_64: run scripts/setup.sh test"
mkdir -p "$folder/lib" "$folder/modules" "$folder/firmware"

# The loader of a program and libc belong together, so both stay those of the other machine.
ldd "$program" | awk '$2 == "=>" && $3 ~ /^\// { print $3 }' |
  grep -Ev '/(libc|libm|libdl|librt|libpthread|libresolv|libutil)\.so\.' |
  xargs -r cp -L -t "$folder/lib"
cp -L "$program" "$folder/"
# Where QEMU is built in one piece, there are none.
for module in /usr/lib/*/qemu/accel-tcg-x86_64.so; do
  if [ -e "$module" ]; then cp "$module" "$folder/modules/"; fi
done
for rom in /usr/share/qemu/kvmvapic.bin /usr/share/seabios/kvmvapic.bin; do
  if [ -e "$rom" ]; then cp "$rom" "$folder/firmware/"; fi
done
du -sh "$folder"
