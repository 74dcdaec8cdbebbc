// SPDX-License-Identifier: Apache-2.0
//
// What an inode says, read once and kept by those who work with the file.
#pragma once

#include "f2fs/node.h"

namespace gofs::f2fs {

using gofs::TimeStamp;

struct FileMaps;

struct Inode {
  uint32_t ino;
  uint32_t uid;
  uint32_t gid;
  uint32_t links;
  uint64_t size_bytes;
  uint64_t block_count;  // of 4 KiB, nodes included, as i_blocks
  TimeStamp accessed;
  TimeStamp changed;
  TimeStamp modified;
  TimeStamp created;  // 0 where the volume does not keep it
  uint32_t generation;
  uint32_t flags;  // i_flags
  uint32_t parent_ino;
  uint32_t xattr_nid;
  uint32_t project_id;
  uint32_t dir_depth;
  format::DeviceNumber device;
  uint32_t inline_flags;  // i_inline; a word of its own, since others look at it while it changes
  uint16_t mode;
  uint8_t advise;
  uint8_t dir_level;
  // The parts of InodeLayout that reading a file needs.
  uint16_t slot_count;
  uint16_t extra_words;
  uint16_t inline_offset;
  uint16_t inline_bytes;
  uint16_t inline_xattr_offset;
  uint16_t inline_xattr_bytes;  // 0 also where there is room that was never used
  /// Of an open file: what is kept of where its blocks lie, and of the nodes with their addresses
  /// (file_maps.h). Null: nothing is.
  FileMaps* maps;
  uint64_t last_dnode;  // the last such node that was met and that `maps` have no place for
  /// Of an open file: the lock of who sets its times (update_inode.h), that of who is about to do
  /// so for all who write over its blocks, and what both times were when they were last set to the
  /// same, in nanoseconds since 1970; 0: to be looked up. It is only set for files without set-ID
  /// bits.
  uint32_t times_lock;
  uint32_t times_pending;
  uint32_t moving_out;  // of an open file: the lock of who moves its contents out of the inode
  int64_t times_set_ns;
  uint32_t capability_looks;  // of an open file (capability_looks.h) [V18]
  uint32_t clean_tail;  // of an open file: 1, its last block is known to have zeros behind the end
  /// Of an open file: its size without what writes under way have made of it, which may be taken
  /// back (update_inode.h).
  uint64_t settled_bytes;

  GOFS_HD bool is_directory() const {
    return (mode & format::kModeTypeMask) == format::kModeDirectory;
  }
  GOFS_HD bool is_regular() const { return (mode & format::kModeTypeMask) == format::kModeRegular; }
  GOFS_HD bool is_symlink() const { return (mode & format::kModeTypeMask) == format::kModeSymlink; }
  GOFS_HD bool has_inline_data() const {
    return (simt::load_relaxed(inline_flags) & format::kInlineData) != 0;
  }
  GOFS_HD bool has_inline_dentries() const { return (inline_flags & format::kInlineDentry) != 0; }
  GOFS_HD uint64_t size_blocks() const { return simt::divide_up(size_bytes, kBlockBytes); }
};

/// Largest file that Linux makes, and farthest position to which it lets programs seek: it does not
/// count on the addresses in the inode, whose number varies.
inline constexpr uint64_t kFileBytesMax = format::file_blocks_max(0) * kBlockBytes;

/// Why the contents of a file cannot be read although its inode is sound: 0 or -EOPNOTSUPP.
GOFS_HD inline int check_supported(const Inode& inode) {
  if ((inode.advise & format::kAdviseEncrypted) != 0) return -EOPNOTSUPP;
  if (inode.is_regular() && (inode.flags & format::kFlagCompressed) != 0) return -EOPNOTSUPP;
  if (inode.is_directory() && (inode.flags & format::kFlagCasefold) != 0) return -EOPNOTSUPP;
  return 0;
}

}  // namespace gofs::f2fs
