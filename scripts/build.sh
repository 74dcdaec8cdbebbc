#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
#
# Configures and builds one preset, then points build/gofs at the command.
# usage: build.sh [PRESET|auto] [TARGET...]
# auto (the default): cuda when scripts/nvcc.sh finds a compiler for it, else cpu.
# With GOFS_FAST_DEVICE_CODE=ON in the environment, device code is compiled fast and runs slowly.
set -euo pipefail
cd "$(dirname "$0")/.."

preset=${1:-auto}
shift || true
if [ "$preset" = auto ]; then
  if scripts/nvcc.sh > /dev/null; then preset=cuda; else preset=cpu; fi
fi

# ninja is in every preset, but a machine may have only make.
# Both go on after an error, so that one build tells all of what is broken.
generator=()
keep_going=(-k 0)
if ! command -v ninja > /dev/null; then
  generator=(-G "Unix Makefiles")
  keep_going=(-k)
fi

mkdir -p build
cmake --preset "$preset" "${generator[@]}" -Wno-dev \
  -DGOFS_FAST_DEVICE_CODE="${GOFS_FAST_DEVICE_CODE:-OFF}" > "build/configure-$preset.log" 2>&1 ||
  { cat "build/configure-$preset.log" >&2; exit 1; }
cmake --build "build/$preset" -j "$(nproc)" ${1:+--target "$@"} -- "${keep_going[@]}"

# The cuda build runs on machines without a GPU as well, so it wins over the cpu build.
for candidate in cuda cpu; do
  if [ -x "build/$candidate/src/cli/gofs" ]; then
    ln -sfn "$candidate/src/cli/gofs" build/gofs
    break
  fi
done
