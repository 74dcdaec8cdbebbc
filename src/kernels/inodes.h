// SPDX-License-Identifier: Apache-2.0
//
// What many inodes say, asked by number, an inode a lane: for those who list or copy whole trees,
// whose paths may be longer than any call takes. Permissions of directories are not asked.
#pragma once

#include "vfs/metadata.h"
#include "vfs/xattr.h"

namespace gofs::kernels {

struct InodeQuery {
  uint32_t ino;
  int32_t error;  // 0 or a negative errno
  vfs::Stat stat;
  bool wants_parent;  // of a directory
  uint32_t parent;    // the number that its `..` has; 0: it has none, or is no directory
  char* link_target;  // where a symbolic link's target goes; null: not wanted
  uint32_t link_capacity;
  int32_t link_length;  // bytes of it, or a negative errno
  uint8_t* xattrs;      // where vfs::dump_xattrs_of() writes; null: not wanted
  uint32_t xattr_capacity;
  int32_t xattr_bytes;  // written there, or a negative errno
};

struct InodesParams {
  vfs::Filesystem* fs;
  InodeQuery* queries;
  uint32_t count;
};

/// Calls `use(const f2fs::Inode&)`, collectively, with the inode `ino`, and passes on what it
/// returns; or a negative errno. Collective, uniform.
template <typename Use>
GOFS_HD int64_t use_inode(simt::AnyWarp auto warp, vfs::Filesystem& fs, uint32_t ino, Use use) {
  return vfs::reading_paths(warp, fs, [&]() -> int64_t {
    f2fs::Inode inode{};
    const int loaded = vfs::load_numbered(warp, fs, warp.ballot(true), ino, inode);
    const int error = simt::first_error(warp, loaded);
    return error < 0 ? error : use(inode);
  });
}

GOFS_HD inline void inodes_body(simt::AnyWarp auto warp, uint32_t warp_index, uint32_t warp_count,
                                InodesParams& params) {
  vfs::Filesystem& fs = *params.fs;
  const uint32_t rank = warp.thread_rank();
  const uint64_t step = uint64_t{warp_count} * warp.size();
  for (uint64_t first = uint64_t{warp_index} * warp.size(); first < params.count; first += step) {
    const uint64_t index = first + rank;
    const uint32_t lanes = warp.ballot(index < params.count);
    const bool mine = (lanes >> rank & 1u) != 0;
    f2fs::Inode inode{};
    const uint32_t ino = mine ? params.queries[index].ino : 0;
    const int error = vfs::reading_paths(
        warp, fs, [&] { return vfs::load_numbered(warp, fs, lanes, ino, inode); });
    bool wants_target = false;
    bool wants_xattrs = false;
    bool wants_parent = false;
    if (mine) {
      InodeQuery& query = params.queries[index];
      query.error = error;
      query.parent = 0;
      query.link_length = 0;
      query.xattr_bytes = 0;
      if (error == 0) query.stat = vfs::stat_of(inode);
      wants_target = error == 0 && inode.is_symlink() && query.link_target != nullptr;
      wants_parent = error == 0 && inode.is_directory() && query.wants_parent;
      wants_xattrs = error == 0 && f2fs::may_have_xattrs(inode) && query.xattrs != nullptr;
    }
    // Links are few: one after the other, with the whole warp.
    for (uint32_t left = warp.ballot(wants_target); left != 0; left &= left - 1) {
      const uint32_t owner = simt::lowest_bit(left);
      InodeQuery& query = params.queries[first + owner];
      const int64_t length =
          use_inode(warp, fs, warp.shfl(ino, owner), [&](const f2fs::Inode& link) {
            return vfs::read_link(warp, fs, link, query.link_target, query.link_capacity);
          });
      if (rank == owner) query.link_length = static_cast<int32_t>(length);
    }
    for (uint32_t left = warp.ballot(wants_parent); left != 0; left &= left - 1) {
      const uint32_t owner = simt::lowest_bit(left);
      f2fs::DirectoryEntry dotdot{};
      const int64_t found =
          use_inode(warp, fs, warp.shfl(ino, owner), [&](const f2fs::Inode& directory) {
            return f2fs::find_entry(warp, fs.volume, directory, "..", 2, dotdot);
          });
      if (rank == owner && found == 0) params.queries[index].parent = dotdot.ino;
    }
    for (uint32_t left = warp.ballot(wants_xattrs); left != 0; left &= left - 1) {
      const uint32_t owner = simt::lowest_bit(left);
      InodeQuery& query = params.queries[first + owner];
      const int64_t bytes =
          use_inode(warp, fs, warp.shfl(ino, owner), [&](const f2fs::Inode& file) {
            return vfs::dump_xattrs_of(warp, fs, file, query.xattrs, query.xattr_capacity);
          });
      if (rank == owner) query.xattr_bytes = static_cast<int32_t>(bytes);
    }
  }
}

}  // namespace gofs::kernels
