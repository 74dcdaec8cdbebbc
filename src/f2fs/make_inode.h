// SPDX-License-Identifier: Apache-2.0
//
// New inodes, as Linux makes them with its default options: room for attributes in the inode, extra
// attributes where the volume has them, the entries of a directory and the target of a symbolic
// link in the inode, and so what will be in a regular file, as long as it fits. The name that leads
// to one is entered by add_entry().
#pragma once

#include "f2fs/dentry_space.h"
#include "f2fs/node_space.h"

namespace gofs::f2fs {

struct NewInode {
  uint16_t mode;  // type and permissions
  uint32_t uid;
  uint32_t gid;
  uint32_t generation;  // not that of an inode which had the same number before
  EntryName name;       // in the parent
  const char* target;   // of a symbolic link, else null
  uint32_t target_bytes;
  format::DeviceNumber device;
  TimeStamp now;
};

/// Pages that make_inodes() changes for each lane: the inode, and blocks of the NAT.
inline constexpr uint32_t kPagesToMakeInode = 2;

namespace detail {

/// i_flags that a new inode has from its parent, but for compression and case folding.
GOFS_HD inline uint32_t inherited_flags(uint32_t parent_flags, uint32_t mode) {
  const uint32_t type = mode & format::kModeTypeMask;
  uint32_t kept = format::kFlagNoDump | format::kFlagNoAtime;
  if (type == format::kModeRegular) kept |= format::kFlagSync;
  if (type == format::kModeDirectory) {
    kept |= format::kFlagSync | format::kFlagDirSync | format::kFlagProjectInherit;
  }
  const uint32_t own = type == format::kModeDirectory ? uint32_t{format::kFlagIndexedDir} : 0u;
  return (parent_flags & kept) | own;
}

/// What a new inode's i_addr area is laid out as.
GOFS_HD inline format::InodeLayout new_inode_layout(const Volume& volume) {
  const bool extra = volume.has_feature(format::kFeatureExtraAttr);
  return format::make_inode_layout(extra ? format::kExtraAttrBytesMax / 4 : 0,
                                   format::kDefaultInlineXattrWords);
}

GOFS_HD inline void fill_extra_attr(const Volume& volume, const Inode& parent,
                                    const NewInode& wanted, format::Inode& inode) {
  if (!volume.has_feature(format::kFeatureExtraAttr)) return;
  inode.i_inline = static_cast<uint8_t>(inode.i_inline | format::kInlineExtraAttr);
  format::ExtraAttr& extra = format::extra_attr(inode);
  extra.i_extra_isize = static_cast<uint16_t>(format::kExtraAttrBytesMax);
  if (volume.has_feature(format::kFeatureFlexibleInlineXattr)) {
    extra.i_inline_xattr_size = static_cast<uint16_t>(format::kDefaultInlineXattrWords);
  }
  if (volume.has_feature(format::kFeatureProjectQuota) &&
      (parent.flags & format::kFlagProjectInherit) != 0) {
    extra.i_projid = parent.project_id;
  }
  if (volume.has_feature(format::kFeatureInodeCrtime)) {
    extra.i_crtime = static_cast<uint64_t>(wanted.now.seconds);
    extra.i_crtime_nsec = wanted.now.nanoseconds;
  }
}

/// `.` and `..`.
GOFS_HD inline void fill_directory(const format::InodeLayout& layout, const Inode& parent,
                                   uint32_t ino, format::NodeBlock& node) {
  format::Inode& inode = node.inode;
  inode.i_inline = static_cast<uint8_t>(inode.i_inline | format::kInlineDentry);
  inode.i_links = 2;
  inode.i_size = layout.inline_bytes;
  inode.i_current_depth = 1;
  const DentrySpace space{reinterpret_cast<uint8_t*>(&node) + layout.inline_offset,
                          format::inline_dentry_area(layout.inline_bytes)};
  put_entry(space, 0, {".", 1}, {ino, format::kTypeDirectory});
  put_entry(space, 1, {"..", 2}, {parent.ino, format::kTypeDirectory});
}

/// One lane.
GOFS_HD inline void fill_inode(const Volume& volume, const Inode& parent, const NewInode& wanted,
                               uint32_t ino, format::NodeBlock& node) {
  format::Inode& inode = node.inode;
  const format::InodeLayout layout = new_inode_layout(volume);
  inode.i_mode = wanted.mode;
  inode.i_inline = format::kInlineXattr;
  inode.i_uid = wanted.uid;
  inode.i_gid = wanted.gid;
  inode.i_links = 1;
  inode.i_blocks = 1;
  inode.i_atime = inode.i_mtime = inode.i_ctime = wanted.now.seconds;
  inode.i_atime_nsec = inode.i_mtime_nsec = inode.i_ctime_nsec = wanted.now.nanoseconds;
  inode.i_generation = wanted.generation;
  inode.i_flags = inherited_flags(parent.flags, wanted.mode);
  inode.i_pino = parent.ino;
  inode.i_namelen = wanted.name.length;
  for (uint32_t i = 0; i < wanted.name.length; ++i) {
    inode.i_name[i] = static_cast<uint8_t>(wanted.name.bytes[i]);
  }
  fill_extra_attr(volume, parent, wanted, inode);

  const format::DeviceSlots device = format::encode_device(wanted.device);
  uint8_t* const area = reinterpret_cast<uint8_t*>(&node) + layout.inline_offset;
  switch (wanted.mode & format::kModeTypeMask) {
    case format::kModeDirectory:
      fill_directory(layout, parent, ino, node);
      break;
    case format::kModeRegular:
      inode.i_inline = static_cast<uint8_t>(inode.i_inline | format::kInlineData);
      break;
    case format::kModeSymlink:
      inode.i_inline =
          static_cast<uint8_t>(inode.i_inline | format::kInlineData | format::kInlineDataExist);
      inode.i_size = wanted.target_bytes;
      for (uint32_t i = 0; i < wanted.target_bytes; ++i) {
        area[i] = static_cast<uint8_t>(wanted.target[i]);
      }
      break;
    case format::kModeCharDevice:
    case format::kModeBlockDevice:
      inode.i_addr[layout.word_of_slot(0)] = device.slot0;
      inode.i_addr[layout.word_of_slot(1)] = device.slot1;
      break;
    default:
      break;
  }
}

}  // namespace detail

/// Makes an inode for each lane in `lanes`, with one link (a directory: two), to be entered in
/// `parent`; `also(format::NodeBlock&)` adds to it. Collective, `also` is not; lanes may have
/// different parents. Per lane 0 and `ino`, or a negative errno: -EINVAL (no such type),
/// -EOPNOTSUPP (a target that does not fit in an inode), -ENOSPC (then on all lanes), -EBUSY, what
/// the device says.
template <typename Also>
GOFS_HD int make_inodes(simt::AnyWarp auto warp, Operation& op, uint32_t lanes, const Inode& parent,
                        const NewInode& wanted, uint32_t& ino, Also also) {
  const bool mine = (lanes >> warp.thread_rank() & 1u) != 0;
  const format::FileType type = format::file_type_of_mode(wanted.mode);
  const bool fits = type != format::kTypeSymlink ||
                    wanted.target_bytes <= detail::new_inode_layout(op.volume).inline_bytes;
  int error = 0;
  if (mine && type == format::kTypeUnknown) error = -EINVAL;
  if (mine && !fits) error = -EOPNOTSUPP;
  const uint32_t making = warp.ballot(mine && error == 0);
  if (making == 0) return error;
  const int taken = take_nids(warp, op, making, 0, ino);
  if (taken < 0) return error < 0 ? error : taken;
  const uint32_t flag = type == format::kTypeDirectory ? 0u : uint32_t{format::kNodeCold};
  const int made = make_nodes(warp, op, making, ino, ino, flag, [&](format::NodeBlock& node) {
    detail::fill_inode(op.volume, parent, wanted, ino, node);
    also(node);
  });
  const uint32_t failed = warp.ballot((making >> warp.thread_rank() & 1u) != 0 && made < 0);
  if (failed != 0) (void)remove_nodes(warp, op, failed, ino);
  return error < 0 ? error : made;
}
GOFS_NOINLINE GOFS_HD inline int make_inodes(simt::AnyWarp auto warp, Operation& op, uint32_t lanes,
                                             const Inode& parent, const NewInode& wanted,
                                             uint32_t& ino) {
  return make_inodes(warp, op, lanes, parent, wanted, ino, [](format::NodeBlock&) {});
}

}  // namespace gofs::f2fs
