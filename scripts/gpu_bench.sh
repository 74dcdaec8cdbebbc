#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
#
# What `make gpu-bench` measures, after it has built preset cuda: reads through the file API beside
# raw NVMe commands, and 100,000 files in a batch, on virtual SSDs of several models; then the same
# for writing, and how fast files are made, synced and removed. No network, no f2fs-tools. Prints
# machine, driver and date, the tables, then `N passed, N failed`: one for each model that was read
# without a wrong block, one for reads of single LBAs from hbm, and one for each model that was
# written.
# usage: gpu_bench.sh
#   OUT            folder for the log (default build/gpu-bench), and write_matrix.jsonl beside it
#   GOFS_MODELS    models, in order (default: none hbm 990pro p5800x; hbm is only read)
#   GOFS_SSDS      over how many SSDs a volume is striped, several numbers (default: 8)
#   GOFS_SECONDS   of each single measurement (default 0.2)
set -uo pipefail
cd "$(dirname "$0")/.."
out=${OUT:-build/gpu-bench}
mkdir -p "$out"
log=$out/gpu_bench.txt
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
export CUDA_MODULE_LOADING=EAGER

passed=0
failed=0
{
  echo "date     $(date -u +%Y-%m-%d)"
  gpu=$(nvidia-smi --query-gpu=name,driver_version --format=csv,noheader)
  echo "machine  $(nproc) cores, $gpu"
  echo "commit   $(git rev-parse --short HEAD 2> /dev/null || echo unknown)"
  nvcc_version=$("$(scripts/nvcc.sh)" --version 2> /dev/null | sed -n 's/^Cuda.*release //p')
  echo "nvcc     $nvcc_version"
  echo "volume   4 GiB file in one piece, 4 GiB file in scattered blocks, 100,000 files of 16 KiB"
  echo
} | tee "$log"
# measure SECONDS COMMAND...: runs it for so long at most, into the log, and counts it.
measure() {
  if timeout "$@" 2>&1 | tee -a "$log"; then
    passed=$((passed + 1))
  else
    failed=$((failed + 1))
  fi
}
# measure_reads IMAGES MODEL...: makes the volume and reads it; several images are joined by +.
measure_reads() {
  local images=$1 model
  shift
  timeout 120 build/cuda/bench/gofs_bench_image "$images" 4096 100000 16384 || exit 1
  for model in "$@"; do
    measure 200 build/cuda/bench/gofs_read_matrix "$images" cuda "${GOFS_SECONDS:-0.2}" "$model"
    # The software's own ceiling: LBAs in the GPU's memory, which the model does not slow down.
    [ "$model" = hbm ] || continue
    echo | tee -a "$log"
    measure 100 build/cuda/src/cli/gofs bench "$images?media=hbm&queues=64&depth=1024" raw file \
      --backend cuda --file /large --pattern rand --block-size 512 --threads 131072 \
      --seconds "${GOFS_SECONDS:-0.2}"
  done
  rm -f "$scratch"/bench*.img
}
measure_reads "$scratch/bench.img" ${GOFS_MODELS:-none hbm 990pro p5800x}
# The same volume, striped over several SSDs.
for ssds in ${GOFS_SSDS:-8}; do
  measure_reads "$(seq -f "$scratch/bench%g.img" -s + 1 "$ssds")" ${GOFS_MODELS:-none p5800x}
done
# What is written goes back to the image: to memory, where there is room, so that it takes no time.
fast=$(mktemp -d -p /dev/shm 2> /dev/null || mktemp -d)
trap 'rm -rf "$scratch" "$fast"' EXIT
[ "$(df --output=avail -BG "$fast" | tr -dc 0-9)" -gt 10 ] || { rm -rf "$fast"; fast=$scratch; }
: > "$out/write_matrix.jsonl"
for model in ${GOFS_MODELS:-none 990pro p5800x}; do
  [ "$model" = hbm ] && continue
  # The rows for machines go to a file of their own; those for people to the log.
  if { timeout 300 build/cuda/bench/write_matrix/gofs_write_matrix "$fast" --json \
    --models "$model" --seconds "${GOFS_SECONDS:-0.2}" \
    3>&1 >> "$out/write_matrix.jsonl" 2>&3; } | tee -a "$log"; then
    passed=$((passed + 1))
  else
    failed=$((failed + 1))
  fi
done
echo "$passed passed, $failed failed" | tee -a "$log"
[ "$failed" = 0 ]
