#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
#
# Copies into a folder what tests want of this machine and a machine that is there for its GPU may
# lack, with no network to install it: f2fs-tools, cpio, setfattr and fio with their libraries,
# liburing, Boost.Context's headers, and the wheels that scripts/gpu_python_tests.sh builds with.
# About 80 MB, most of them fio's libraries, which only fio itself is to find: they have a libstdc++
# that may be older than that machine's. There, `. FOLDER/env.sh` before `make gpu-check`.
# That machine's libc must not be the older one.
# usage: gpu_bundle.sh FOLDER
set -euo pipefail

fail() { echo "gpu_bundle: $*" >&2; exit 1; }
[ $# = 1 ] || fail "usage: gpu_bundle.sh FOLDER"
folder=$1
export PATH="$PATH:/usr/sbin:/sbin"
lib=$folder/lib/$(uname -m)-linux-gnu  # where what comes with CMake files wants to lie
mkdir -p "$folder/bin" "$lib/cmake"

# copy_program PROGRAM FILE FOLDER: the program to the file, its libraries to the folder.
copy_program() {
  local path
  path=$(command -v "$1") || fail "no $1: run scripts/setup.sh test"
  cp -L "$path" "$2"
  # The loader of a program and libc belong together, so both stay those of the other machine.
  ldd "$path" | awk '$2 == "=>" && $3 ~ /^\// { print $3 }' |
    { grep -Ev '/(libc|libm|libdl|librt|libpthread|libresolv|libutil)\.so\.' || true; } |
    xargs -r cp -L -t "$3"
}
for program in mkfs.f2fs fsck.f2fs sload.f2fs dump.f2fs cpio setfattr getfattr; do
  copy_program "$program" "$folder/bin/$program" "$lib"
done
if command -v fio > /dev/null; then
  mkdir -p "$folder/fio/lib"
  copy_program fio "$folder/fio/fio" "$folder/fio/lib"
  cat > "$folder/bin/fio" << 'END'
#!/bin/sh
there=$(dirname "$(readlink -f "$0")")/../fio
LD_LIBRARY_PATH=$there/lib exec "$there/fio" "$@"
END
  chmod 755 "$folder/bin/fio"
fi

# Boost: what one header takes, and what CMake asks for the library's place.
headers=$(g++ -std=c++20 -M -x c++ - <<< '#include <boost/context/detail/fcontext.hpp>' |
  tr -s ' \\\n' '\n' | grep '^/usr/include/boost' | sort -u)
for header in $headers /usr/include/boost/version.hpp; do
  install -D -m 644 "$header" "$folder/include/${header#/usr/include/}"
done
libraries=$(dirname "$(readlink -f "$(g++ -print-file-name=libboost_context.so)")")
cp -a "$libraries"/libboost_context* "$lib/"
cp -a "$libraries"/cmake/{Boost-,BoostDetectToolset-,boost_context-,boost_headers-}* "$lib/cmake/"

cp -a /usr/include/liburing.h /usr/include/liburing "$folder/include/"
cp -a "$(dirname "$(readlink -f "$(g++ -print-file-name=liburing.so)")")"/liburing.so* "$lib/"

mkdir -p "$folder/wheels"
wheels=$(dirname "$0")/../build/wheels
for wheel in scikit_build_core nanobind pathspec packaging pytest pluggy iniconfig pygments; do
  cp "$wheels/$wheel"-*.whl "$folder/wheels/" || fail "no wheels: run scripts/setup.sh test"
done

cat > "$folder/env.sh" << 'END'
# To be sourced by bash.
gofs_bundle=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
export PATH="$PATH:$gofs_bundle/bin"
export LD_LIBRARY_PATH="$gofs_bundle/lib/$(uname -m)-linux-gnu${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}"
export LIBRARY_PATH="$gofs_bundle/lib/$(uname -m)-linux-gnu${LIBRARY_PATH:+:$LIBRARY_PATH}"
export GOFS_WHEELS="$gofs_bundle/wheels"
export CMAKE_PREFIX_PATH="$gofs_bundle${CMAKE_PREFIX_PATH:+:$CMAKE_PREFIX_PATH}"
END
du -sh "$folder"
