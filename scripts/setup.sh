#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
#
# Installs what is missing on a Debian 12 or Ubuntu 24.04 machine.
# usage: setup.sh [run|python|test|tidy]
#   run     what building and running GoFS takes; of CUDA the CCCL headers only, where there is no
#           GPU and GOFS_CUDA=1 does not ask for nvcc
#   python  the same and what `pip install .` takes
#   test    the same and what `make test` takes (the default)
#   tidy    the same and clang-tidy
# Uses no network and needs no root when everything is there. nvcc and CCCL come from PyPI wheels,
# into build/toolchain, when scripts/nvcc.sh finds no CUDA toolkit of 13.0 or newer. What builds and
# tests the Python package comes from there too, into build/wheels.
set -euo pipefail
cd "$(dirname "$0")/.."

purpose=${1:-test}
case $purpose in
  run | python) tests=no ;;
  test | tidy) tests=yes ;;
  *) echo "setup: unknown purpose '$purpose' (run, python, test or tidy)" >&2; exit 2 ;;
esac

say() { echo "setup: $*"; }
fail() { echo "setup: $*" >&2; exit 1; }

# Two makes at once must not install over each other.
mkdir -p build
exec 9> build/.setup.lock
flock -w 1800 9 || fail "another setup has held build/.setup.lock for 30 minutes"

# --- Debian packages ---------------------------------------------

missing=()

# need PACKAGE PROBE...: PACKAGE is missing unless each PROBE is there: a file, when it holds a '/',
# else a command. Probing keeps us content with what was installed by other means.
need() {
  local package=$1 probe
  shift
  for probe in "$@"; do
    case $probe in
      */*) [ -e "$probe" ] || { missing+=("$package"); return 0; } ;;
      *) PATH="$PATH:/usr/sbin:/sbin" command -v "$probe" > /dev/null ||
        { missing+=("$package"); return 0; } ;;
    esac
  done
}

need g++ g++
need make make
need cmake cmake
need ninja-build ninja
need python3 python3
need libcli11-dev /usr/include/CLI/CLI.hpp
need nlohmann-json3-dev /usr/include/nlohmann/json.hpp
need libfmt-dev /usr/include/fmt/format.h
need libblkid-dev /usr/include/blkid/blkid.h
need liburing-dev /usr/include/liburing.h
need libgtest-dev /usr/include/gtest/gtest.h
need libbenchmark-dev /usr/include/benchmark/benchmark.h
need f2fs-tools mkfs.f2fs sload.f2fs fsck.f2fs dump.f2fs
need attr setfattr getfattr
need cpio cpio
if [ $tests = yes ]; then
  need ccache ccache
  need libboost-context-dev /usr/include/boost/context/detail/fcontext.hpp
  need libssl-dev /usr/include/openssl/sha.h
  need fio fio
  need clang-16 clang++-16
  need llvm-16 llvm-symbolizer-16  # names and lines in what sanitizers report
  need libclang-rt-16-dev /usr/lib/llvm-16/lib/clang/16/lib/linux/libclang_rt.fuzzer-x86_64.a
  need clang-format-16 clang-format-16
  # The kernel judge and the tests of physical SSDs: a Debian kernel in a QEMU guest, and QEMU's
  # NVMe controller without one.
  need qemu-system-x86 qemu-system-x86_64
  need mdadm mdadm
  # Two programs on partitions of one disk.
  need fio fio
  need mount losetup
  need busybox-static /bin/busybox
  need kmod modinfo depmod
  need xz-utils xz
  need zstd zstd
  # Debian's own python3 draws, whichever is first in PATH.
  need python3-matplotlib /usr/lib/python3/dist-packages/matplotlib
  need libc-bin ldd
  # Programs that use GoFS as it is installed, and the Debian package.
  need pkg-config pkg-config
  need dpkg-dev dpkg-shlibdeps
fi
[ "$purpose" = tidy ] && need clang-tidy-16 clang-tidy-16

# Where the headers of a Python are that extensions are compiled with.
python_header() {
  "$1" -c 'import sysconfig; print(sysconfig.get_path("include") + "/Python.h")'
}

# The wheels that are wanted, as their pins; none where a toolkit is installed.
pins=$(grep -v '^#' scripts/toolchain.txt)
if [ $tests = no ] && ! scripts/wants_cuda.sh; then pins=$(grep cccl <<< "$pins"); fi
wants_wheels=no
nvcc=$(scripts/nvcc.sh) || nvcc=none
if [[ $nvcc == none || $nvcc == */build/toolchain/* ]] &&
  grep -vqxFf <(cat build/toolchain/.installed 2> /dev/null) <<< "$pins"; then
  wants_wheels=yes
  scripts/python.sh > /dev/null || missing+=(python3-pip)
fi

if [ "$purpose" != run ]; then
  if python=$(scripts/python.sh); then
    [ -e "$(python_header "$python")" ] || missing+=(python3-dev)
    "$python" -c 'import ensurepip, venv' 2> /dev/null || missing+=(python3-venv)
  else
    missing+=(python3-pip python3-dev python3-venv)
  fi
fi

# The wheels that test the Python package, and for which Python they were fetched.
python_pins=
[ $tests = yes ] && python_pins=$(grep -v '^#' scripts/python.txt)

if [ ${#missing[@]} -gt 0 ]; then
  command -v apt-get > /dev/null ||
    fail "no apt-get on this machine; install the equivalents of: ${missing[*]}"
  if [ "$(id -u)" = 0 ]; then
    as_root=()
  elif command -v sudo > /dev/null && { sudo -n true 2> /dev/null || [ -t 0 ]; }; then
    as_root=(sudo)
  else
    fail "neither root nor sudo to install the missing packages: ${missing[*]}"
  fi
  apt() {
    "${as_root[@]}" env DEBIAN_FRONTEND=noninteractive apt-get -qq -o Dpkg::Use-Pty=0 \
      -o DPkg::Lock::Timeout=600 "$@" < /dev/null
  }
  say "installing ${missing[*]}"
  log=$(mktemp)
  trap 'rm -f "$log"' EXIT
  # The lists on the machine are tried first: most of the time they do, and an update is a download.
  if ! apt install --yes --no-install-recommends "${missing[@]}" > "$log" 2>&1; then
    if ! { apt update && apt install --yes --no-install-recommends "${missing[@]}"; } \
      > "$log" 2>&1; then
      tail -n 20 "$log" >&2
      fail "apt-get could not install: ${missing[*]}"
    fi
  fi
fi

# --- nvcc and CCCL from wheels -----------------------------------

if [ $wants_wheels = yes ]; then
  [ "$(uname -m)" = x86_64 ] ||
    fail "no CUDA toolkit found, and the wheels are for x86_64 only: install CUDA 13.0"
  python=$(scripts/python.sh) || fail "no python3 with pip"
  say "fetching $(tr '\n' ' ' <<< "$pins")(PyPI wheels) into build/toolchain"
  fresh=$(mktemp -d build/toolchain.XXXXXX)
  # --target installs outside the interpreter's own packages, which also satisfies distributions
  # that keep pip away from those (PEP 668).
  "$python" -m pip install --quiet --disable-pip-version-check --no-input --no-deps --no-compile \
    --no-warn-script-location --root-user-action=ignore \
    --target "$fresh" --requirement <(echo "$pins") ||
    { rm -rf "$fresh"; fail "pip could not fetch the wheels in scripts/toolchain.txt"; }
  # nvcc links with -L.../lib64, the wheels have lib.
  ln -s lib "$fresh/nvidia/cu13/lib64"
  echo "$pins" > "$fresh/.installed"
  chmod 755 "$fresh"
  rm -rf build/toolchain
  mv "$fresh" build/toolchain
  if grep -q nvcc <<< "$pins"; then
    nvcc=$(scripts/nvcc.sh) || fail "the nvcc of the wheels does not run"
  fi
fi

# --- Wheels for the Python package -------------------------------

if [ -n "$python_pins" ]; then
  python=$(scripts/python.sh) || fail "no python3 with pip"
  wanted=$("$python" --version; echo "$python_pins")
  if [ "$(cat build/wheels/.fetched 2> /dev/null)" != "$wanted" ]; then
    say "fetching the wheels in scripts/python.txt (PyPI) into build/wheels"
    rm -rf build/wheels
    "$python" -m pip download --quiet --disable-pip-version-check --no-input --no-deps \
      --only-binary :all: --dest build/wheels.part --requirement <(echo "$python_pins") ||
      { rm -rf build/wheels.part; fail "pip could not fetch the wheels in scripts/python.txt"; }
    echo "$wanted" > build/wheels.part/.fetched
    mv build/wheels.part build/wheels
  fi
fi

case $nvcc in
  none) compiler="no nvcc" ;;
  *) compiler=$("$nvcc" --version | sed -n 's/.*release /nvcc /p') ;;
esac
say "ready: $(g++ --version | head -n 1), $compiler"
