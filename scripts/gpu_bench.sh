#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
#
# What `make gpu-bench` measures, after it has built what it takes: on virtual SSDs of several
# models, in parts,
#   micro      reads and writes through the file API beside raw NVMe commands, along several axes
#              (`gofs bench micro`)
#   stream     large files by grids, blocks, warps and threads, new and over what is there, beside
#              raw commands (`gofs bench stream`)
#   records    small writes that append to one log (`gofs bench records`)
#   writes     appends, fsync, checkpoints, names, batches of new files, and cleaning, beside raw
#              commands where there are any (gofs_write_matrix)
#   baselines  GoFS beside stand-ins for other systems (bench/baselines/README.md)
#   ablations  with and without each mechanism (`gofs bench micro --sweeps ablations`)
#   storage    files behind host threads (media=hosted) beside fio and the host's baselines, on a
#              disk and in memory, in 100 s at most (bench/host_storage.py)
# and, where they are asked for,
#   scaling    whether operations cost more where there is more (gofs_scaling)
#   clock      how late time stamps are (gofs_clock_skew)
#   served     host calls through a server beside those of a volume that is mounted
#              (gofs_served_bench)
#   attached   calls of kernels through a server beside those of a volume that is mounted
#              (bench/attached_calls.sh)
#   ranges     ranges of files into memory of the GPU, by calls of the host (gofs_device_ranges)
# No network, no f2fs-tools. Prints machine, driver and date, the rows, what was wanted beside what
# was reached (bench/targets.py), then `N passed, N failed`: one for each model of each part, one
# for the host's baselines on a file that no model slows down, one for cufile, and one for
# storage. A row that misses its target does not fail; wrong bytes do.
# usage: gpu_bench.sh
#   OUT            folder for the results (default build/gpu-bench): gpu_bench.txt, targets.txt, a
#                  JSON object a line in micro.jsonl, stream.jsonl, records.jsonl,
#                  ablations.jsonl, writes.jsonl, baselines.jsonl and storage.jsonl, tables
#                  in storage.txt, scaling.txt, clock.txt, served.txt, attached.txt and ranges.txt,
#                  and where matplotlib is, pictures (bench/plot.py)
#   GOFS_PARTS     parts, in order (default: micro stream records baselines writes ablations
#                  storage)
#   GOFS_MODELS    models, in order (default: what each part is about)
#   GOFS_SWEEPS    axes of micro, separated by commas (default: what each model is about)
#   GOFS_RUNS      of each point of micro and baselines (default 3)
#   GOFS_SECONDS   of each run (default 0.04)
#   GOFS_CONTROLLER_WARPS  that play the SSDs' controllers beside those that read or write
#                  (default 0)
#   GOFS_STORAGE_FOLDER    on a disk, for part storage (default OUT)
#   GOFS_STORAGE_VARIANTS  options that are compared there, such as default,poll=always,mode=lfs
#                  (default: default)
#   GOFS_CUFILE_FOLDER     see bench/baselines/with_cufile_folder.sh
#   GOFS_BUILD     where it was built (default build/cuda)
#   GOFS_SMALL     if set: few points and bytes, on the CPU backend, to see that all of it works
set -uo pipefail
cd "$(dirname "$0")/.."
out=${OUT:-build/gpu-bench}
mkdir -p "$out"
log=$out/gpu_bench.txt
# Images lie in memory, where there is room, so that writing them back takes no time.
scratch=$(mktemp -d -p /dev/shm 2> /dev/null || mktemp -d)
[ "$(df --output=avail -BG "$scratch" | tr -dc 0-9)" -gt 24 ] ||
  { rm -rf "$scratch"; scratch=$(mktemp -d); }
trap 'rm -rf "$scratch"' EXIT
export CUDA_MODULE_LOADING=EAGER
export CUFILE_LOGFILE_PATH=$scratch/cufile.log
runs=${GOFS_RUNS:-3}
seconds=${GOFS_SECONDS:-0.04}
controller_warps=${GOFS_CONTROLLER_WARPS:-0}
built=${GOFS_BUILD:-build/cuda}
backend=cuda
outstanding=1,4,16,32,256,1024,32768
small_micro=() small_writes=() small_baselines=() small_stream=() small_records=()
if [ -n "${GOFS_SMALL:-}" ]; then
  backend=cpu
  outstanding=1,32
  small_micro=(--small)
  small_writes=(--image 512M --span 16M --files 4 --batch 64 --cache 4M --clean-image 128M
    --clean-cache 1M)
  small_stream=(--shapes grid:1M,block:64K,warp:16K,thread:16K)
  small_records=(--small)
  small_baselines=(--large-mib 16 --files 64)
fi

passed=0
failed=0
# measure ROWS COMMAND...: its rows go to the file ROWS, and everything to the log.
measure() {
  local rows=$out/$1 began=$SECONDS
  shift
  echo "-- $*" >> "$log"
  if "$@" 2> >(tee -a "$log" >&2) | tee -a "$rows" "$log"; then
    passed=$((passed + 1))
  else
    echo "failed: $*" | tee -a "$log"
    failed=$((failed + 1))
  fi
  echo "-- $((SECONDS - began)) s" | tee -a "$log"
}

# What a model is measured along: with a model the rates are those of an SSD, and say less.
sweeps_of() {
  case ${GOFS_SWEEPS:-}:$1 in
    :hbm) echo lbas ;;
    :none) echo outstanding,size,blocks,lanes,ssds,files ;;
    :990pro) echo outstanding,files ;;
    :*) echo outstanding,lanes,ssds,files ;;
    *) echo "$GOFS_SWEEPS" ;;
  esac
}

# suite ROWS MODEL SWEEPS [OPTION...]
suite() {
  measure "$1" "$built/src/cli/gofs" bench micro --backend "$backend" --folder "$scratch" \
    --models "$2" --sweeps "$3" --runs "$runs" --seconds "$seconds" \
    --controller-warps "$controller_warps" "${small_micro[@]}" "${@:4}" --json
}

measure_micro() {
  : > "$out/micro.jsonl"
  for model in ${GOFS_MODELS:-p5800x none hbm 990pro}; do
    # Without a model, one and two SSDs fill the link; that eight still do is what there is to see.
    suite micro.jsonl "$model" "$(sweeps_of "$model")" \
      --ssds "$([ "$model" = none ] && echo 1,8 || echo 1,2,4,8)"
  done
}

measure_stream() {
  : > "$out/stream.jsonl"
  for model in ${GOFS_MODELS:-none p5800x 990pro}; do
    # What is slowed down by a model says as much with fewer bytes.
    local bytes=4G
    [ "$model" = none ] || bytes=1G
    [ -z "${GOFS_SMALL:-}" ] || bytes=4M
    measure stream.jsonl "$built/src/cli/gofs" bench stream --backend "$backend" \
      --folder "$scratch" --models "$model" --file-bytes "$bytes" --runs "$runs" \
      "${small_stream[@]}" --json
  done
}

measure_records() {
  : > "$out/records.jsonl"
  measure records.jsonl "$built/src/cli/gofs" bench records --backend "$backend" \
    --folder "$scratch" --models "none" --runs "$runs" "${small_records[@]}" --json
}

measure_ablations() {
  : > "$out/ablations.jsonl"
  for model in ${GOFS_MODELS:-none}; do
    suite ablations.jsonl "$model" ablations
  done
}

measure_scaling() {
  : > "$out/scaling.txt"
  measure scaling.txt "$built/bench/gofs_scaling" "$scratch" "$backend"
}

measure_clock() {
  : > "$out/clock.txt"
  measure clock.txt "$built/bench/gofs_clock_skew" "$backend"
}

measure_served() {
  : > "$out/served.txt"
  local image=$scratch/served.img
  "$built/src/cli/gofs" mkfs --size 1G "$image" || return 1
  # Where each flush lasts: a file that host threads serve.
  measure served.txt "$built/bench/gofs_served_bench" "$image?media=hosted" \
    "$scratch/served.socket" "${GOFS_SERVED_SECONDS:-1}" "$backend"
  rm -f "$image"
}

measure_attached() {
  : > "$out/attached.txt"
  [ "$backend" = cuda ] || return 0  # they run on a GPU
  measure attached.txt bench/attached_calls.sh "$scratch" "$built"
}

measure_ranges() {
  : > "$out/ranges.txt"
  [ "$backend" = cuda ] || return 0  # that memory is a GPU's
  local image=$scratch/ranges.img
  "$built/src/cli/gofs" mkfs --size 4G "$image" || return 1
  measure ranges.txt "$built/bench/gofs_device_ranges" "$image?media=memory" "$runs"
  rm -f "$image"
}

measure_writes() {
  : > "$out/writes.jsonl"
  for model in ${GOFS_MODELS:-none p5800x}; do
    [ "$model" = hbm ] || measure writes.jsonl "$built/bench/write_matrix/gofs_write_matrix" \
      "$scratch" --backend "$backend" --models "$model" --seconds "$seconds" \
      "${small_writes[@]}" --json
  done
}

# Rows go to a file of its own; what it prints is a table.
measure_storage() {
  : > "$out/storage.jsonl"
  : > "$out/storage.txt"
  local options=(--outstanding 1,16,32,256 --passes 3 --seconds 0.3 --volume-bytes 2G
    --file-bytes 512M --fio-bytes 512M --variants "${GOFS_STORAGE_VARIANTS:-default}")
  [ -z "${GOFS_SMALL:-}" ] || options=(--outstanding 1,2 --passes 1 --seconds "$seconds"
    --volume-bytes 64M --file-bytes 4M --fio-bytes 4M --files 20 --threads 1)
  measure storage.txt bench/host_storage.py --build "$built" --backend "$backend" --limit 100 \
    --json "$out/storage.jsonl" "${options[@]}" \
    "${GOFS_STORAGE_FOLDER:-$out}/gofs-storage.img" "$scratch/gofs-storage.img"
}

measure_baselines() {
  local models=${GOFS_MODELS:-p5800x none}
  : > "$out/baselines.jsonl"
  set -- "$built/bench/baselines/gofs_baselines" --backend "$backend" --folder "$scratch" \
    --runs "$runs" --seconds "$seconds" --controller-warps "$controller_warps" \
    --pattern random,files --outstanding "$outstanding" "${small_baselines[@]}" --json
  for model in $models file; do
    measure baselines.jsonl "$@" --models "$model" \
      --only raw,gofs,companion,companion-lanes,rpc,basic
  done
  measure baselines.jsonl bench/baselines/with_cufile_folder.sh "$scratch" \
    "$@" --models "${models// /,},file" --only cufile
}

{
  echo "date     $(date -u +%Y-%m-%d)"
  gpu=$(nvidia-smi --query-gpu=name,driver_version --format=csv,noheader 2> /dev/null)
  echo "machine  $(nproc) cores, ${gpu:-no GPU}"
  echo "commit   $(git rev-parse --short HEAD 2> /dev/null || echo unknown)"
  nvcc_version=$("$(scripts/nvcc.sh)" --version 2> /dev/null | sed -n 's/^Cuda.*release //p')
  echo "nvcc     $nvcc_version"
  echo "knobs    $runs runs of $seconds s, $controller_warps controller warps, ${scratch%/*}"
} | tee "$log"
for part in ${GOFS_PARTS:-micro stream records baselines writes ablations storage}; do
  "measure_$part" || failed=$((failed + 1))
  # After each part, so that a run that is cut short has said what it knows.
  rows=("$out"/*.jsonl)
  [ ! -e "${rows[0]}" ] && continue  # this part has tables alone
  bench/targets.py "${rows[@]}" > "$out/targets.txt" || failed=$((failed + 1))
done
for python in python3 /usr/bin/python3; do
  [ -e "${rows[0]}" ] || break
  "$python" -c 'import matplotlib' 2> /dev/null || continue
  "$python" bench/plot.py "${rows[@]}" "$out" | tee -a "$log" || failed=$((failed + 1))
  break
done
[ ! -e "$out/targets.txt" ] || tee -a "$log" < "$out/targets.txt"
echo "$passed passed, $failed failed" | tee -a "$log"
[ "$failed" = 0 ]
