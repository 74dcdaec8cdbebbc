#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
#
# Configures and builds one preset, then points build/gofs at the command.
# usage: build.sh [PRESET|auto] [TARGET...]
# auto (the default): cuda where there is a GPU, or GOFS_CUDA=1 in the environment asks for it, and
# scripts/nvcc.sh finds a compiler; else cpu.
# With GOFS_FAST_BUILD=ON in the environment, files are compiled together, and device code is
# compiled fast and runs slowly.
set -euo pipefail
cd "$(dirname "$0")/.."

preset=${1:-auto}
shift || true
if [ "$preset" = auto ]; then
  preset=cpu
  if ! scripts/wants_cuda.sh; then
    echo "build: for the CPU only: no GPU here (GOFS_CUDA=1 compiles device code all the same)"
  elif ! scripts/nvcc.sh > /dev/null; then
    echo "build: for the CPU only: no nvcc of 13.0 or newer (run scripts/setup.sh)"
  else
    echo "build: for the GPU and the CPU; device code takes minutes"
    preset=cuda
  fi
fi

# ninja is in every preset, but a machine may have only make.
# Both go on after an error, so that one build tells all of what is broken.
generator=()
keep_going=(-k 0)
if ! command -v ninja > /dev/null; then
  generator=(-G "Unix Makefiles")
  keep_going=(-k)
fi

# Where there is a ccache, what one checkout has compiled another need not.
export CCACHE_BASEDIR=${CCACHE_BASEDIR:-$PWD}
export CCACHE_NOHASHDIR=1
export CCACHE_SLOPPINESS=${CCACHE_SLOPPINESS:-pch_defines,time_macros}

mkdir -p build
cmake --preset "$preset" "${generator[@]}" -Wno-dev \
  -DGOFS_FAST_BUILD="${GOFS_FAST_BUILD:-OFF}" > "build/configure-$preset.log" 2>&1 ||
  { cat "build/configure-$preset.log" >&2; exit 1; }
cmake --build "build/$preset" -j "$(nproc)" ${1:+--target "$@"} -- "${keep_going[@]}"

case $preset in
  cpu | cuda)
    if [ -x "build/$preset/src/cli/gofs" ]; then
      ln -sfn "$preset/src/cli/gofs" build/gofs
    fi
    ;;
esac
