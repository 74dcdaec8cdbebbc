#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
#
# Calls of kernels (gofs_kernel_calls): of a volume that their program has mounted, of one that
# gofsd serves, and of four programs at once that it serves. Needs MPS, which it starts and ends.
# usage: attached_calls.sh FOLDER BUILD [SECONDS [WARPS,...]]   FOLDER gets two images of 1 GiB
set -euo pipefail
folder=$1 built=$2 seconds=${3:-0.4} warps=${4:-1,32,128,256,1024}
export CUDA_MPS_PIPE_DIRECTORY=$folder/mps CUDA_MPS_LOG_DIRECTORY=$folder/mps
socket=$folder/attached.socket
served=
gofs=$built/src/cli/gofs
calls=(timeout 120 "$built/bench/gofs_kernel_calls")

end() {
  if [ -n "$served" ]; then
    timeout 20 "$gofs" ctl "$socket" stop > "$folder/stop.log" 2>&1 || kill -9 "$served" || true
    wait "$served" || true
  fi
  echo quit -t 5 | timeout 20 nvidia-cuda-mps-control > "$folder/quit.log" 2>&1 || true
  rm -f "$folder"/{direct,served}.img
}

mkdir -p "$CUDA_MPS_PIPE_DIRECTORY"
nvidia-cuda-mps-control -d
trap end EXIT
"$gofs" mkfs --size 1G "$folder/direct.img"
"$gofs" mkfs --size 1G "$folder/served.img"

echo "mounted by the program"
"${calls[@]}" "$folder/direct.img?media=hosted" "$seconds" "$warps"

"$built/src/daemon/gofsd" "$folder/served.img?media=hosted" --socket "$socket" --backend cuda \
  > "$folder/gofsd.log" 2>&1 &
served=$!
for ((tries = 0; tries < 300; ++tries)); do
  grep -q 'is served at' "$folder/gofsd.log" && break
  sleep 0.1
done
echo "attached"
"${calls[@]}" "$socket" "$seconds" "$warps"

echo "four programs that are attached, 64 warps each, and one with as many"
for call in access "pread 4 KiB" "pwrite 4 KiB" "pread 128 KiB" "pwrite 128 KiB"; do
  pids=()
  time=$(($(date +%s) + 5))
  for ((i = 0; i < 4; ++i)); do
    "${calls[@]}" "$socket" 1 64 "$call" $time > "$folder/client.$i" &
    pids+=($!)
  done
  for pid in "${pids[@]}"; do wait "$pid"; done
  "${calls[@]}" "$socket" 1 256 "$call" > "$folder/client"
  cat "$folder"/client.? "$folder/client"
  awk 'FILENAME ~ /client$/ {one += $NF} FILENAME ~ /client\../ {four += $NF}
       END {printf "%-18s four programs have %.3f of one\n", "", four / one}' \
    "$folder"/client.? "$folder/client"
done
