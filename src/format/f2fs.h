// SPDX-License-Identifier: Apache-2.0
//
// The on-disk format of F2FS: structures, constants and arithmetic, no I/O and no state. All
// numbers on disk are little-endian and unaligned; a block is 4096 bytes, a segment 512 blocks; a
// block address is a u32 counted in blocks from the start of the device. Structures and fields keep
// F2FS's names.
//
// Read in this order:
//   superblock.h    what the volume is              geometry.h     where its areas and blocks lie
//   checkpoint.h    the state a mount starts from   summary.h      who owns a block; the journals
//   nat.h           nid -> block                    sit.h          which blocks of a segment are
//   used node.h          inodes and nodes                inode_layout.h what lies in an inode's
//   i_addr area node_path.h     file block -> nodes and slot    dentry.h       directories and
//   their hash levels name_hash.h     the directory hash              xattr.h        extended
//   attributes crc32.h, bitmap.h, little_endian.h              the bytes
#pragma once

#include "format/bitmap.h"
#include "format/checkpoint.h"
#include "format/crc32.h"
#include "format/dentry.h"
#include "format/geometry.h"
#include "format/inode_layout.h"
#include "format/little_endian.h"
#include "format/name_hash.h"
#include "format/nat.h"
#include "format/node.h"
#include "format/node_path.h"
#include "format/sit.h"
#include "format/summary.h"
#include "format/superblock.h"
#include "format/xattr.h"
