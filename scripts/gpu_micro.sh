#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
#
# What `make gpu-micro` measures, after it has built preset cuda: `gofs bench micro`. Rows go to
# $OUT/micro.jsonl, and where matplotlib is, pictures beside it. Prints the table, then
# `N passed, N failed`: one for each model.
# usage: gpu_micro.sh
#   OUT           folder for the results (default build/gpu-micro)
#   GOFS_MODELS   models, in order (default: none p5800x)
#   GOFS_SWEEPS   axes, separated by commas (default: all), or ablations
#   GOFS_RUNS     of each point (default 5)
#   GOFS_SECONDS  of each run (default 0.1)
#   GOFS_CONTROLLER_WARPS  that play the SSDs' controllers beside those that read or write
#                 (default 0)
set -uo pipefail
cd "$(dirname "$0")/.."
out=${OUT:-build/gpu-micro}
mkdir -p "$out"
scratch=$(mktemp -d -p /dev/shm 2> /dev/null || mktemp -d)
trap 'rm -rf "$scratch"' EXIT
export CUDA_MODULE_LOADING=EAGER

passed=0
failed=0
: > "$out/micro.jsonl"
for model in ${GOFS_MODELS:-none p5800x}; do
  if build/cuda/src/cli/gofs bench micro --backend cuda --folder "$scratch" --models "$model" \
    --runs "${GOFS_RUNS:-5}" --seconds "${GOFS_SECONDS:-0.1}" \
    --controller-warps "${GOFS_CONTROLLER_WARPS:-0}" \
    ${GOFS_SWEEPS:+--sweeps "$GOFS_SWEEPS"} --json | tee -a "$out/micro.jsonl"; then
    passed=$((passed + 1))
  else
    failed=$((failed + 1))
  fi
done
if /usr/bin/env python3 -c 'import matplotlib' 2> /dev/null; then
  bench/plot_micro.py "$out/micro.jsonl" "$out"
fi
echo "$passed passed, $failed failed"
[ "$failed" = 0 ]
