#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
#
# The main job: real files of this machine go into an F2FS volume (mkfs.f2fs, sload.f2fs); GoFS
# reads every one of them and sums it (SHA-256, on the backend); the sums must be those that
# sha256sum finds in the originals. Then a table of what it cost.
# usage: main_job.sh [--small]
#   --small       a few hundred files instead of thousands, for the tests
#   GOFS_BACKEND  auto (default), cpu or cuda
# Everything is kept under build/main-job, for a look with build/gofs. The last line is
# `N passed, N failed`: one per file, one for fsck.f2fs and one for the measurement.
set -euo pipefail
cd "$(dirname "$0")/.."
export PATH="$PATH:/usr/sbin:/sbin" LC_ALL=C

scale=full
[ "${1:-}" = --small ] && scale=small
gofs=build/gofs
backend=${GOFS_BACKEND:-auto}
work=build/main-job
tree=$work/tree
image=$work/volume.img

fail() { echo "main job: $*" >&2; exit 1; }
[ -x $gofs ] || fail "no $gofs: run make build"

# take COUNT FIND-ARGUMENTS...: copies files with their paths into the tree; always the same ones.
take() {
  local count=$1
  shift
  { find "$@" -type f -readable -print0 2> /dev/null || true; } | sort -z | head -z -n "$count" |
    cpio --quiet -0 -pdm "$tree" 2> /dev/null || true
}

rm -rf "$work"
mkdir -p "$tree"
if [ $scale = small ]; then
  take 300 /usr/include
  take 100 /usr/share/doc
  take 3 /usr/bin /usr/lib -size +2M -size -16M
else
  take 4000 /usr/include
  take 2000 /usr/share/doc
  take 3000 "$(python3 -c 'import sysconfig; print(sysconfig.get_path("stdlib"))')"
  take 20 /usr/bin /usr/lib -size +2M -size -128M
fi
files=$(find $tree -type f | wc -l)
bytes=$(find $tree -type f -printf '%s\n' | awk '{ sum += $1 } END { printf "%.0f", sum }')
[ "$files" -ge 100 ] || fail "only $files files found on this machine"

# Twice the bytes and a block per file, and never less than F2FS is happy with.
size_mib=$(((bytes * 2 + files * 8192) / 1048576 + 256))
truncate -s "${size_mib}M" $image
mkfs.f2fs -q $image > $work/mkfs.log 2>&1 || { cat $work/mkfs.log >&2; fail "mkfs.f2fs failed"; }
sload.f2fs -f $tree $image > $work/sload.log 2>&1 ||
  { tail -n 20 $work/sload.log >&2; fail "sload.f2fs failed"; }

echo "volume  $image, $size_mib MiB: $files files, $bytes bytes"

# The originals' sums, under the names they have in the volume.
(cd $tree && find . -type f -print0 | xargs -0 sha256sum) |
  sed -E 's#^(\\?[0-9a-f]{64}  )\./#\1/#' | sort > $work/expected

began=$(date +%s%N)
$gofs sum "$image" -r --backend "$backend" > $work/sums || fail "gofs sum ended with status $?"
elapsed_ms=$((($(date +%s%N) - began) / 1000000))
sort $work/sums > $work/got
wrong=$(comm -23 $work/expected $work/got | wc -l)
extra=$(comm -13 $work/expected $work/got | wc -l)
passed=$((files - wrong))
failed=$((wrong > extra ? wrong : extra))
echo "sums    $passed of $files files agree with sha256sum, in $elapsed_ms ms"
[ "$failed" = 0 ] || diff $work/expected $work/got | head -n 20 || true

if fsck.f2fs --dry-run $image > $work/fsck.log 2>&1; then
  passed=$((passed + 1))
else
  failed=$((failed + 1))
  echo "fsck.f2fs complains about the volume: $work/fsck.log"
fi

if $gofs bench "$image" --backend "$backend"; then
  passed=$((passed + 1))
else
  failed=$((failed + 1))
fi

echo "$passed passed, $failed failed"
[ "$failed" = 0 ]
