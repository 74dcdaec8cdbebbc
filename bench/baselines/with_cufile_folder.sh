#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
#
# Runs a command of gofs_baselines with --cufile-folder FOLDER behind it, if there is a folder in
# which libcufile takes files: on ext4 or xfs. Without one the command runs as it is, and says that
# cufile is missing. libcufile also asks udev's database which file system is on the disk; where no
# udevd runs, root can write the answer.
# usage: with_cufile_folder.sh SCRATCH COMMAND...
#   SCRATCH             a folder, best in memory: root mounts an ext4 on a loop device in it where
#                       GOFS_CUFILE_FOLDER is not set
#   GOFS_CUFILE_FOLDER  on ext4 or xfs
set -uo pipefail
scratch=$1
shift
mounted=
udev_entry=
clean_up() {
  if [ -n "$mounted" ]; then umount "$mounted"; fi
  if [ -n "$udev_entry" ]; then rm -f "$udev_entry"; fi
  rm -f "$scratch/disk.img"
}
trap clean_up EXIT
export PATH="$PATH:/usr/sbin:/sbin"

# Sets `folder`, or leaves it empty.
find_folder() {
  folder=${GOFS_CUFILE_FOLDER:-}
  if [ -n "$folder" ] || [ "$(id -u)" != 0 ]; then return; fi
  truncate -s 3G "$scratch/disk.img" && mkfs.ext4 -q -F "$scratch/disk.img" &&
    mkdir -p "$scratch/disk" && mount -o loop "$scratch/disk.img" "$scratch/disk" || return
  mounted=$scratch/disk
  folder=$mounted
}

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

find_folder
if [ -z "$folder" ]; then
  echo "no file system for cufile: set GOFS_CUFILE_FOLDER" >&2
  "$@"
  exit
fi
prepare_udev "$folder"
findmnt -n -o SOURCE,FSTYPE,OPTIONS -T "$folder" | sed 's/^/cufile on /' >&2
"$@" --cufile-folder "$folder"
