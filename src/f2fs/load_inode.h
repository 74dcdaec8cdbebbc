// SPDX-License-Identifier: Apache-2.0
//
// Reading inodes: from their pages to f2fs::Inode, with what contradicts itself found.
#pragma once

#include "f2fs/inode.h"
#include "f2fs/inode_words.h"
#include "format/xattr.h"

namespace gofs::f2fs {

namespace detail {

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
  inode.maps = nullptr;
  inode.last_dnode = 0;
  inode.times_pending = 0;
  inode.moving_out = 0;
  inode.times_set_ns = 0;
  inode.capability_looks = 0;
  inode.clean_tail = 0;
  inode.mode = format::load_u16(&raw.i_mode);
  inode.advise = raw.i_advise;
  inode.inline_flags = raw.i_inline;
  inode.uid = format::load_u32(&raw.i_uid);
  inode.gid = format::load_u32(&raw.i_gid);
  inode.links = simt::load_relaxed(links_word(raw));
  inode.size_bytes = simt::load_relaxed(size_word(raw));
  inode.settled_bytes = inode.size_bytes;
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
/// is free or no inode, since nothing should have named it.
GOFS_NOINLINE GOFS_HD inline int load_inodes(simt::AnyWarp auto warp, Volume& volume,
                                             uint32_t lanes, uint32_t ino, Inode& inode) {
  int unpacked = 0;
  const int result = with_nodes(warp, volume, lanes, ino, ino, [&](const format::NodeBlock& block) {
    unpacked = detail::unpack_inode(volume, block, ino, inode);
  });
  return result < 0 ? result : unpacked;
}

/// As load_inodes(), where the number may be out of date, or made up: -ENOENT, and nothing is
/// reported, if it is no inode's. `use(const NodeBlock&)` is called with each that makes sense.
template <typename Use>
GOFS_HD int find_inodes(simt::AnyWarp auto warp, Volume& volume, uint32_t lanes, uint32_t ino,
                        Inode& inode, Use use) {
  const bool asked = (lanes >> warp.thread_rank() & 1u) != 0;
  const bool possible = asked && ino < volume.geometry.nid_count();
  int unpacked = 0;
  const int result = find_nodes(warp, volume, warp.ballot(possible), ino, ino,
                                [&](const format::NodeBlock& block) {
                                  unpacked = detail::unpack_inode(volume, block, ino, inode);
                                  if (unpacked == 0) use(block);
                                });
  if (asked && !possible) return -ENOENT;
  return result < 0 ? result : unpacked;
}
GOFS_NOINLINE GOFS_HD inline int find_inodes(simt::AnyWarp auto warp, Volume& volume,
                                             uint32_t lanes, uint32_t ino, Inode& inode) {
  return find_inodes(warp, volume, lanes, ino, inode, [](const format::NodeBlock&) {});
}

}  // namespace gofs::f2fs
