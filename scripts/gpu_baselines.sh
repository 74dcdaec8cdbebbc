#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
#
# What `make gpu-baselines` measures, after it has built preset cuda: gofs_baselines, that is GoFS
# beside raw commands and stand-ins for other systems (bench/baselines/README.md). Rows go to
# $OUT/baselines.jsonl. Prints them, then `N passed, N failed`: one for each model, one for the
# host's baselines on a file that no model slows down, and one for cufile.
# usage: gpu_baselines.sh
#   OUT                 folder for the results (default build/gpu-baselines)
#   GOFS_MODELS         models, in order (default: none p5800x 990pro)
#   GOFS_RUNS           of each point (default 3)
#   GOFS_SECONDS        of each run (default 0.05)
#   GOFS_CONTROLLER_WARPS  that play the SSD's controller beside raw, gofs and the companions
#                       (default 0)
#   GOFS_CUFILE_FOLDER  on ext4 or xfs, takes cufile's file (default: $OUT, else an ext4 on a loop
#                       device in memory, where root can make one)
set -uo pipefail
cd "$(dirname "$0")/.."
out=${OUT:-build/gpu-baselines}
mkdir -p "$out"
scratch=$(mktemp -d -p /dev/shm 2> /dev/null || mktemp -d)
mounted=
udev_entry=
clean_up() {
  if [ -n "$mounted" ]; then umount "$mounted"; fi
  if [ -n "$udev_entry" ]; then rm -f "$udev_entry"; fi
  rm -rf "$scratch"
}
trap clean_up EXIT
export CUDA_MODULE_LOADING=EAGER
export CUFILE_LOGFILE_PATH=$PWD/$out/cufile.log
case $out in /*) CUFILE_LOGFILE_PATH=$out/cufile.log ;; esac
export PATH="$PATH:/usr/sbin:/sbin"

is_disk() {
  case $(stat -f -c %T "$1") in ext2/ext3 | xfs) true ;; *) false ;; esac
}

# Sets `folder`, or leaves it empty.
find_folder() {
  folder=${GOFS_CUFILE_FOLDER:-$out}
  if [ -n "${GOFS_CUFILE_FOLDER:-}" ] || is_disk "$out"; then return; fi
  folder=
  [ "$(id -u)" = 0 ] || return
  truncate -s 3G "$scratch/disk.img" && mkfs.ext4 -q -F "$scratch/disk.img" &&
    mkdir "$scratch/disk" && mount -o loop "$scratch/disk.img" "$scratch/disk" || return
  mounted=$scratch/disk
  folder=$mounted
}

# libcufile asks udev's database which file system is on the disk; where no udevd runs, root can
# write the answer.
prepare_udev() {
  [ "$(id -u)" = 0 ] && [ ! -e /run/udev/control ] || return
  local number type
  number=$(findmnt -n -o MAJ:MIN -T "$1" | tr -d ' ')
  type=$(findmnt -n -o FSTYPE -T "$1")
  [ -n "$number" ] && [ ! -e "/run/udev/data/b$number" ] || return
  mkdir -p /run/udev/data &&
    printf 'I:1\nE:ID_FS_USAGE=filesystem\nE:ID_FS_TYPE=%s\n' "$type" \
      > "/run/udev/data/b$number" && udev_entry=/run/udev/data/b$number
}

passed=0
failed=0
: > "$out/baselines.jsonl"
# measure LIMIT_S OPTION...
measure() {
  local limit_s=$1
  shift
  if timeout "$limit_s" build/cuda/bench/baselines/gofs_baselines --backend cuda \
    --folder "$scratch" --runs "${GOFS_RUNS:-3}" --seconds "${GOFS_SECONDS:-0.05}" \
    --controller-warps "${GOFS_CONTROLLER_WARPS:-0}" --json "$@" |
    tee -a "$out/baselines.jsonl"; then
    passed=$((passed + 1))
  else
    failed=$((failed + 1))
  fi
}

models=${GOFS_MODELS:-none p5800x 990pro}
for model in $models file; do
  measure 600 --models "$model" --only raw,gofs,companion,companion-lanes,rpc,basic
done

find_folder
if [ -n "$folder" ]; then
  prepare_udev "$folder"
  findmnt -n -o SOURCE,FSTYPE,OPTIONS -T "$folder" | sed 's/^/cufile on /'
  measure 300 --models "${models// /,},file" --only cufile --cufile-folder "$folder"
else
  echo "no file system for cufile: set GOFS_CUFILE_FOLDER"
fi
echo "$passed passed, $failed failed"
[ "$failed" = 0 ]
