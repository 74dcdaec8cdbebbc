#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
#
# Copies into a folder what tests want of this machine and a machine that is there for its GPU may
# lack, with no network to install it: f2fs-tools, cpio, setfattr and fio with their libraries, and
# Boost.Context's headers. About 80 MB, most of them fio's libraries. There, `. FOLDER/env.sh`
# before `make gpu-check`.
# That machine's libc must not be the older one.
# usage: gpu_bundle.sh FOLDER
set -euo pipefail

fail() { echo "gpu_bundle: $*" >&2; exit 1; }
[ $# = 1 ] || fail "usage: gpu_bundle.sh FOLDER"
folder=$1
export PATH="$PATH:/usr/sbin:/sbin"
lib=$folder/lib/$(uname -m)-linux-gnu  # where what comes with CMake files wants to lie
mkdir -p "$folder/bin" "$lib/cmake"

programs=(mkfs.f2fs fsck.f2fs sload.f2fs dump.f2fs cpio setfattr getfattr)
command -v fio > /dev/null && programs+=(fio)
for program in "${programs[@]}"; do
  path=$(command -v "$program") || fail "no $program: run scripts/setup.sh test"
  cp -L "$path" "$folder/bin/$program"
  # The loader of a program and libc belong together, so both stay those of the other machine.
  ldd "$path" | awk '$2 == "=>" && $3 ~ /^\// { print $3 }' |
    { grep -Ev '/(libc|libm|libdl|librt|libpthread|libresolv|libutil)\.so\.' || true; } |
    xargs -r cp -L -t "$lib"
done

# Boost: what one header takes, and what CMake asks for the library's place.
headers=$(g++ -std=c++20 -M -x c++ - <<< '#include <boost/context/detail/fcontext.hpp>' |
  tr -s ' \\\n' '\n' | grep '^/usr/include/boost' | sort -u)
for header in $headers /usr/include/boost/version.hpp; do
  install -D -m 644 "$header" "$folder/include/${header#/usr/include/}"
done
libraries=$(dirname "$(readlink -f "$(g++ -print-file-name=libboost_context.so)")")
cp -a "$libraries"/libboost_context* "$lib/"
cp -a "$libraries"/cmake/{Boost-,BoostDetectToolset-,boost_context-,boost_headers-}* "$lib/cmake/"

cat > "$folder/env.sh" << 'END'
# To be sourced by bash.
gofs_bundle=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
export PATH="$PATH:$gofs_bundle/bin"
export LD_LIBRARY_PATH="$gofs_bundle/lib/$(uname -m)-linux-gnu${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}"
export CMAKE_PREFIX_PATH="$gofs_bundle${CMAKE_PREFIX_PATH:+:$CMAKE_PREFIX_PATH}"
END
du -sh "$folder"
