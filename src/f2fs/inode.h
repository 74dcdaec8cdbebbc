// SPDX-License-Identifier: Apache-2.0
//
// What an inode says, read once and kept by those who work with the file.
#pragma once

#include "f2fs/node.h"
#include "format/xattr.h"

namespace gofs::f2fs {

using gofs::TimeStamp;

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
  uint16_t mode;
  uint8_t inline_flags;  // i_inline
  uint8_t advise;
  uint8_t dir_level;
  // The parts of InodeLayout that reading a file needs.
  uint16_t slot_count;
  uint16_t extra_words;
  uint16_t inline_offset;
  uint16_t inline_bytes;
  uint16_t inline_xattr_offset;
  uint16_t inline_xattr_bytes;  // 0 also where there is room that was never used
  /// Of an open file: where its blocks lie, by file block, as far as somebody has asked (map.h).
  /// Null: nothing is kept.
  uint32_t* block_map;
  uint64_t block_map_blocks;
  uint64_t* leaf_map;  // and the nodes with their addresses (leaf_map.h),
  uint64_t last_leaf;  // and also the last one that was met
  /// Of an open file: the lock of who sets its times (update_inode.h), that of who is about to do
  /// so for all who write over its blocks, and what both times were when they were last set to the
  /// same, in nanoseconds since 1970; 0: to be looked up. It is noted of files without powers
  /// alone.
  uint32_t updating;
  uint32_t noting;
  int64_t noted_ns;
  uint32_t no_capability;  // of an open file: 1, it is known to have none [V18]

  GOFS_HD bool is_directory() const {
    return (mode & format::kModeTypeMask) == format::kModeDirectory;
  }
  GOFS_HD bool is_regular() const { return (mode & format::kModeTypeMask) == format::kModeRegular; }
  GOFS_HD bool is_symlink() const { return (mode & format::kModeTypeMask) == format::kModeSymlink; }
  GOFS_HD bool has_inline_data() const { return (inline_flags & format::kInlineData) != 0; }
  GOFS_HD bool has_inline_dentries() const { return (inline_flags & format::kInlineDentry) != 0; }
  GOFS_HD uint64_t size_blocks() const { return simt::divide_up(size_bytes, kBlockBytes); }
};

/// Largest file that Linux makes, and farthest position it lets anybody seek to: it does not count
/// on the addresses in the inode, whose number varies.
inline constexpr uint64_t kFileBytesMax = format::file_blocks_max(0) * kBlockBytes;

/// Why the contents of a file cannot be read although its inode is sound: 0 or -EOPNOTSUPP.
GOFS_HD inline int check_supported(const Inode& inode) {
  if ((inode.advise & format::kAdviseEncrypted) != 0) return -EOPNOTSUPP;
  if (inode.is_regular() && (inode.flags & format::kFlagCompressed) != 0) return -EOPNOTSUPP;
  if (inode.is_directory() && (inode.flags & format::kFlagCasefold) != 0) return -EOPNOTSUPP;
  return 0;
}

namespace detail {

GOFS_HD inline TimeStamp time_stamp(int64_t seconds, uint32_t nanoseconds) {
  return TimeStamp{seconds, nanoseconds};
}

/// Words of an inode in memory that are changed beside who looks, see change_words(): its size,
/// counts of its blocks and of its links, and the nanoseconds of its times.
GOFS_HD inline uint64_t& size_word(format::Inode& raw) {
  static_assert(offsetof(format::Inode, i_size) % sizeof(uint64_t) == 0);
  return *reinterpret_cast<uint64_t*>(&raw.i_size);
}
GOFS_HD inline const uint64_t& size_word(const format::Inode& raw) {
  return *reinterpret_cast<const uint64_t*>(&raw.i_size);
}
GOFS_HD inline uint64_t& blocks_word(format::Inode& raw) {
  static_assert(offsetof(format::Inode, i_blocks) % sizeof(uint64_t) == 0);
  return *reinterpret_cast<uint64_t*>(&raw.i_blocks);
}
GOFS_HD inline const uint64_t& blocks_word(const format::Inode& raw) {
  return *reinterpret_cast<const uint64_t*>(&raw.i_blocks);
}
GOFS_HD inline uint32_t& links_word(format::Inode& raw) {
  static_assert(offsetof(format::Inode, i_links) % sizeof(uint32_t) == 0);
  return *reinterpret_cast<uint32_t*>(&raw.i_links);
}
GOFS_HD inline const uint32_t& links_word(const format::Inode& raw) {
  return *reinterpret_cast<const uint32_t*>(&raw.i_links);
}

GOFS_HD inline uint32_t& mtime_nsec_word(format::Inode& raw) {
  static_assert(offsetof(format::Inode, i_mtime_nsec) % sizeof(uint32_t) == 0);
  return *reinterpret_cast<uint32_t*>(&raw.i_mtime_nsec);
}
GOFS_HD inline uint32_t& ctime_nsec_word(format::Inode& raw) {
  static_assert(offsetof(format::Inode, i_ctime_nsec) % sizeof(uint32_t) == 0);
  return *reinterpret_cast<uint32_t*>(&raw.i_ctime_nsec);
}
/// The times of the contents, and of the inode.
GOFS_HD inline TimeStamp modified_of(const format::Inode& raw) {
  return {static_cast<int64_t>(format::load_u64(&raw.i_mtime)),
          simt::load_relaxed(*reinterpret_cast<const uint32_t*>(&raw.i_mtime_nsec))};
}
GOFS_HD inline TimeStamp changed_of(const format::Inode& raw) {
  return {static_cast<int64_t>(format::load_u64(&raw.i_ctime)),
          simt::load_relaxed(*reinterpret_cast<const uint32_t*>(&raw.i_ctime_nsec))};
}

/// Whether the room for attributes in an inode was never used: not even the header is there, and
/// nothing that could be an entry. Linux keeps such room in nearly every inode.
GOFS_HD inline bool inline_xattrs_unused(const format::NodeBlock& block,
                                         const format::InodeLayout& layout) {
  const auto* const area = reinterpret_cast<const uint8_t*>(&block) + layout.xattr_offset;
  const uint32_t end = simt::min<uint32_t>(
      layout.xattr_bytes, sizeof(format::XattrHeader) + sizeof(format::XattrEntry));
  uint32_t seen = 0;
  for (uint32_t at = 0; at < end; at += 4) seen |= format::load_u32(area + at);
  return seen == 0;
}

/// Unpacks `block` into `inode`; 0 or -EUCLEAN (reported).
GOFS_NOINLINE GOFS_HD inline int unpack_inode(Volume& volume, const format::NodeBlock& block,
                                              uint32_t ino, Inode& inode) {
  const format::Inode& raw = block.inode;
  const format::InodeLayout layout = format::inode_layout(raw, volume.geometry.feature);
  inode.ino = ino;
  inode.block_map = nullptr;
  inode.block_map_blocks = 0;
  inode.leaf_map = nullptr;
  inode.last_leaf = 0;
  inode.noting = 0;
  inode.noted_ns = 0;
  inode.no_capability = 0;
  inode.mode = format::load_u16(&raw.i_mode);
  inode.advise = raw.i_advise;
  inode.inline_flags = raw.i_inline;
  inode.uid = format::load_u32(&raw.i_uid);
  inode.gid = format::load_u32(&raw.i_gid);
  inode.links = simt::load_relaxed(links_word(raw));
  inode.size_bytes = simt::load_relaxed(size_word(raw));
  inode.block_count = simt::load_relaxed(blocks_word(raw));
  inode.accessed = time_stamp(static_cast<int64_t>(format::load_u64(&raw.i_atime)),
                              format::load_u32(&raw.i_atime_nsec));
  inode.changed = changed_of(raw);
  inode.modified = modified_of(raw);
  inode.created = TimeStamp{};
  inode.project_id = 0;
  if (volume.has_feature(format::kFeatureInodeCrtime) &&
      format::has_extra_field(raw, format::kExtraCrtimeEnd)) {
    const format::ExtraAttr& extra = format::extra_attr(raw);
    inode.created = time_stamp(static_cast<int64_t>(static_cast<uint64_t>(extra.i_crtime)),
                               extra.i_crtime_nsec);
  }
  if (format::has_extra_field(raw, format::kExtraProjidEnd)) {
    inode.project_id = format::extra_attr(raw).i_projid;
  }
  inode.generation = format::load_u32(&raw.i_generation);
  inode.flags = format::load_u32(&raw.i_flags);
  inode.parent_ino = format::load_u32(&raw.i_pino);
  inode.xattr_nid = format::load_u32(&raw.i_xattr_nid);
  inode.dir_depth = format::load_u32(&raw.i_current_depth);
  inode.dir_level = raw.i_dir_level;
  inode.slot_count = static_cast<uint16_t>(layout.slot_count);
  inode.extra_words = static_cast<uint16_t>(layout.extra_words);
  inode.inline_offset = static_cast<uint16_t>(layout.inline_offset);
  inode.inline_bytes = static_cast<uint16_t>(layout.inline_bytes);
  inode.inline_xattr_offset = static_cast<uint16_t>(layout.xattr_offset);
  const bool inline_xattrs = (raw.i_inline & format::kInlineXattr) != 0 &&
                             (inode.xattr_nid != 0 || !inline_xattrs_unused(block, layout));
  inode.inline_xattr_bytes = inline_xattrs ? static_cast<uint16_t>(layout.xattr_bytes) : 0;
  const uint32_t slot = layout.word_of_slot(0);
  inode.device = format::decode_device(
      load_address(&raw.i_addr[slot]),
      slot + 1 < format::kInodeSlots ? load_address(&raw.i_addr[slot + 1]) : 0);

  const bool typed = format::file_type_of_mode(inode.mode) != format::kTypeUnknown;
  const bool inline_fits =
      (!inode.has_inline_data() ||
       ((inode.is_regular() || inode.is_symlink()) && inode.size_bytes <= inode.inline_bytes)) &&
      (!inode.has_inline_dentries() || inode.is_directory());
  const uint64_t size_max = format::file_blocks_max(inode.slot_count) * kBlockBytes;
  if (!layout.sane || !typed || !inline_fits || inode.size_bytes > size_max) {
    return report(*volume.corruptions, {Structure::kInode, 0, ino, inode.mode});
  }
  return 0;
}

}  // namespace detail

/// Reads one inode a lane. Collective. Per lane 0 or a negative errno; -EUCLEAN also for a nid that
/// is free or no inode, since nobody should have named it.
GOFS_NOINLINE GOFS_HD inline int load_inodes(simt::AnyWarp auto warp, Volume& volume,
                                             uint32_t lanes, uint32_t ino, Inode& inode) {
  int unpacked = 0;
  const int result = with_nodes(warp, volume, lanes, ino, ino, [&](const format::NodeBlock& block) {
    unpacked = detail::unpack_inode(volume, block, ino, inode);
  });
  return result < 0 ? result : unpacked;
}

}  // namespace gofs::f2fs
