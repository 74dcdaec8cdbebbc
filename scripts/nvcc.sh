#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# Prints the path of the nvcc that GoFS uses, or nothing and exit status 1.
# Order: $CUDACXX, PATH, /usr/local/cuda, the wheels under build/toolchain; older than 13.0 does not
# count.
root=$(cd "$(dirname "$0")/.." && pwd)

is_new_enough() {
  [ -x "$1" ] || return 1
  major=$("$1" --version 2>/dev/null | sed -n 's/.*release \([0-9]*\)\..*/\1/p')
  [ "${major:-0}" -ge 13 ]
}

for candidate in "${CUDACXX:-}" "$(command -v nvcc 2>/dev/null)" /usr/local/cuda/bin/nvcc \
  "$root/build/toolchain/nvidia/cu13/bin/nvcc"; do
  if [ -n "$candidate" ] && is_new_enough "$candidate"; then
    echo "$candidate"
    exit 0
  fi
done
exit 1
