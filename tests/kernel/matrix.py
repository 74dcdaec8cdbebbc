# SPDX-License-Identifier: Apache-2.0
"""Which images the kernel is asked to make: how each is formatted, mounted and filled.

A step is one of
  "SCENE [SCALE]"   what guest/scenes.h describes
  "remount [OPTS]"  unmount and mount again, with other options if given
  "set NAME VALUE"  a file in /sys/fs/f2fs/DEVICE
  "sync"            write a checkpoint
After the last step the volume is unmounted, and what the kernel shows at the next (read-only) mount
is the manifest. An image with `end` is not unmounted, see there.
"""

import dataclasses

MIB = 1 << 20
GIB = 1 << 30
TIB = 1 << 40


@dataclasses.dataclass(frozen=True)
class Image:
    name: str
    size: int
    steps: tuple
    mkfs: tuple = ()
    mount: str = ""
    # "": unmounted. "crash": the manifest is taken at a checkpoint, then work goes on (with fsync,
    # without a checkpoint) until the power fails. "torn": the same, then one more checkpoint whose
    # last block is destroyed afterwards, so that the one before it counts again. (ipu_policy 0: no
    # data written in place, which would change what the checkpoint shows.)
    end: str = ""
    # Copies of the image with damage that a reader must get over: see images.py.
    damaged: tuple = ()
    # Paths below these may be refused (by name): encrypted, compressed, case-folded.
    refused: tuple = ()
    # As mkfs before version 1.8 left it: without nat_bits.
    old_mkfs: bool = False
    # Files up to this size are hashed whole.
    whole_max: int = 4 * MIB


ALL_FEATURES = ("extra_attr,inode_checksum,flexible_inline_xattr,inode_crtime,project_quota,quota,"
                "sb_checksum,verity,lost_found")

# The order is the order of work: what takes longest first, so that the guest's two workers end
# together. Those that are not unmounted come last.
IMAGES = (
    Image("default-1g", GIB,
          ("names", "directories 20000", "types", "times", "xattrs", "edges 1", "sparse 100",
           "media 1024", "churn 3000", "remount", "churn 3000", "flags", "remount", "nudge")),
    Image("features-512m", 512 * MIB,
          ("names", "directories 1500", "types", "times", "xattrs", "edges 1", "sparse 30",
           "media 512", "verity", "project", "churn 1500", "remount", "churn 500", "flags"),
          mkfs=("-O", ALL_FEATURES)),
    Image("default-64m", 64 * MIB,
          ("names", "types", "full 2", "remount", "full 1", "remount", "nudge"),
          damaged=("superblock_0", "superblock_1", "other_pack")),
    Image("default-200m", 200 * MIB,
          ("names", "types", "times", "xattrs", "edges", "media 256", "churn 2500", "remount",
           "churn 1500", "nudge"), old_mkfs=True),
    Image("full-128m", 128 * MIB, ("types", "full 3", "remount", "full 1")),
    Image("fragments-256m", 256 * MIB,
          ("names", "media 512", "churn 1000", "remount mode=fragment:segment", "churn 500"),
          mount="mode=fragment:block"),
    Image("sparse-1t", TIB, ("sparse 40", "names", "churn 300", "remount", "churn 200")),
    Image("flexible-256m", 256 * MIB,
          ("xattrs", "edges", "directories 400", "remount inline_xattr_size=200", "types", "names",
           "churn 1000", "remount inline_xattr_size=6", "media 128", "churn 500", "times"),
          mkfs=("-O", "extra_attr,flexible_inline_xattr"), mount="inline_xattr_size=20"),
    Image("noinline-256m", 256 * MIB,
          ("types", "xattrs", "edges", "directories 400", "sparse 10", "churn 1000", "remount",
           "media 128", "nudge"),
          mount="noinline_data,noinline_dentry,noinline_xattr", old_mkfs=True),
    Image("dirlevel-256m", 256 * MIB,
          ("set dir_level 3", "directories 2500", "types", "churn 500"),
          mkfs=("-l", "dir-level", "-e", "mp4,mkv", "-E", "db,wal")),
    Image("extra-256m", 256 * MIB,
          ("types", "times", "xattrs", "edges", "sparse 10", "churn 1000", "remount", "churn 500"),
          mkfs=("-O", "extra_attr,inode_crtime")),
    Image("checksum-256m", 256 * MIB,
          ("types", "xattrs", "edges", "directories 300", "media 128", "churn 1000"),
          mkfs=("-O", "extra_attr,inode_checksum,sb_checksum")),
    Image("lfs-256m", 256 * MIB,
          ("types", "edges", "churn 1000", "media 128", "remount", "churn 1000", "flags", "nudge"),
          mount="mode=lfs"),
    Image("logs2-200m", 200 * MIB,
          ("types", "edges", "directories 300", "churn 1000", "media 128", "remount", "churn 500"),
          mount="active_logs=2"),
    Image("logs4-200m", 200 * MIB,
          ("types", "edges", "directories 300", "churn 1000", "media 128", "remount", "churn 500"),
          mount="active_logs=4"),
    Image("segments4-512m", 512 * MIB, ("types", "edges", "media 256", "churn 1500", "flags"),
          mkfs=("-s", "4")),
    Image("zones-1g", GIB, ("names", "media 256", "churn 1000", "remount", "churn 500"),
          mkfs=("-s", "2", "-z", "2", "-a", "1", "-o", "15")),
    Image("largenat-512m", 512 * MIB,
          ("types", "edges", "directories 1000", "churn 1000", "remount", "nudge"), mkfs=("-i",)),
    Image("sparse-100g", 100 * GIB,
          ("sparse 40", "types", "churn 300", "remount", "nudge"),
          mkfs=("-O", "lost_found,sb_checksum")),
    Image("sparse-16g", 16 * GIB, ("sparse 40", "names", "churn 300", "remount", "nudge")),
    # As mkfs left it: its root directory is in the NAT journal.
    Image("empty-64m", 64 * MIB, (), mount="ro"),
    Image("refused-256m", 256 * MIB, ("refused 7", "types", "churn 200"),
          mkfs=("-O", "extra_attr,compression,casefold,encrypt", "-C", "utf8"),
          mount="compress_algorithm=lz4", refused=("/refused",)),
    Image("crash-256m", 256 * MIB,
          ("set ipu_policy 0", "types", "churn 1500", "orphans 80", "sync", "nudge", "crash 80"),
          mount="noatime,nodiscard", end="crash"),
    Image("torn-256m", 256 * MIB,
          ("set ipu_policy 0", "names", "churn 1500", "orphans 40", "sync", "nudge", "crash 40"),
          mount="noatime,nodiscard", end="torn"),
)

# Only on request (kernel_judge.sh --long): a million entries in one directory, and volumes beyond
# 1 TiB, whose checkpoints have payload blocks.
LONG_IMAGES = (
    Image("million-16g", 16 * GIB, ("directories 1000000",)),
    Image("sparse-4t", 4 * TIB, ("sparse 40", "churn 500")),
    Image("sparse-15t", 15 * TIB, ("sparse 20", "churn 300")),
)

# One of each kind that a reader treats differently: for --small.
SMALL = ("default-64m", "default-200m", "features-512m", "full-128m", "flexible-256m",
         "noinline-256m", "segments4-512m", "largenat-512m", "sparse-1t", "empty-64m",
         "refused-256m", "crash-256m", "torn-256m")
