#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
#
# The main job: GoFS puts real files of this machine into an empty F2FS volume (mkfs.f2fs), reads
# every one of them back and sums it (SHA-256, on the backend), and writes the sums into the volume.
# They must be those that sha256sum finds in the originals, and fsck.f2fs must find nothing wrong.
# Then a table of what it cost.
# usage: main_job.sh [--small]
#   --small       a few hundred files instead of thousands, for the tests
#   GOFS_BACKEND  auto (default), cpu or cuda
# Everything is kept under build/main-job, for a look with build/gofs. The last line is
# `N passed, N failed`: one per file, one for the tree as a whole, one for fsck.f2fs and one for the
# measurement.
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

echo "volume  $image, $size_mib MiB: $files files, $bytes bytes"

# For each file its type and mode, and of which names several lead to one.
shape() { (cd "$1" && find . -mindepth 1 ! -path ./gofs-sums -printf '%P %y %m %n %l\n' | sort); }

milliseconds() { echo $(($(date +%s%N) / 1000000)); }
rate() { echo "$((bytes / 1000 / $1)) MB/s, $((files * 1000 / $1)) files/s"; }

began=$(milliseconds)
$gofs put "$image" $tree/* / -r --backend "$backend" || fail "gofs put ended with status $?"
elapsed_ms=$(($(milliseconds) - began))
echo "put     $files files in $elapsed_ms ms: $(rate $elapsed_ms)"

# The originals' sums, under the names they have in the volume.
(cd $tree && find . -type f -print0 | xargs -0 sha256sum) |
  sed -E 's#^(\\?[0-9a-f]{64}  )\./#\1/#' | sort > $work/expected

# The backend's own go into the volume, in the mount that made them.
began=$(milliseconds)
$gofs sum "$image" -r --into /gofs-sums --backend "$backend" ||
  fail "gofs sum ended with status $?"
elapsed_ms=$(($(milliseconds) - began))
$gofs cat "$image" /gofs-sums --backend "$backend" > $work/sums || fail "the sums cannot be read"
sort $work/sums > $work/got
wrong=$(comm -23 $work/expected $work/got | wc -l)
extra=$(comm -13 $work/expected $work/got | wc -l)
passed=$((files - wrong))
failed=$((wrong > extra ? wrong : extra))
echo "sums    $passed of $files files agree with sha256sum, in $elapsed_ms ms: $(rate $elapsed_ms)"
[ "$failed" = 0 ] || diff $work/expected $work/got | head -n 20 || true

# All names, types and modes, as another program finds them in what GoFS gives back.
$gofs get "$image" / $work/back -r --backend "$backend" || fail "gofs get ended with status $?"
if diff <(shape $tree) <(shape $work/back) > $work/shape.diff; then
  passed=$((passed + 1))
else
  failed=$((failed + 1))
  echo "the tree that comes back is another: $work/shape.diff"
fi
rm -rf $work/back

# It ends with 0 after some complaints.
if fsck.f2fs --dry-run $image > $work/fsck.log 2>&1 &&
  ! grep -qE '\[ASSERT\]|\[FIX\]|\[Fail\]' $work/fsck.log; then
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
