// SPDX-License-Identifier: Apache-2.0
//
// What an inode knows of the names that lead to it: how many there are, and the last one, by which
// recovery after a crash may enter it again. Callers have the entries locked that they change.
#pragma once

#include "f2fs/dentry_space.h"
#include "f2fs/directory_blocks.h"
#include "f2fs/freed_since_checkpoint.h"
#include "f2fs/node_space.h"

namespace gofs::f2fs {

/// Adds `change` to the link count of the inode of each lane in `lanes`, and gives what it is then.
/// For a new name of what had one before, the caller notes renamed_inode(). Collective. Per lane 0
/// or a negative errno; -EUCLEAN (reported) where there are not so many. Pages: one a lane.
GOFS_NOINLINE GOFS_HD inline int change_links(simt::AnyWarp auto warp, Operation& op,
                                              uint32_t lanes, uint32_t ino, int32_t change,
                                              uint32_t& links) {
  bool possible = true;
  const int error = change_nodes(warp, op, lanes, ino, ino, [&](format::NodeBlock& node) {
    format::Inode& inode = node.inode;
    links = inode.i_links;
    const int64_t next = int64_t{links} + change;
    possible = next >= 0 && next <= INT64_C(0xffffffff);
    if (!possible) return;
    links = static_cast<uint32_t>(next);
    inode.i_links = links;
    const bool directory = (inode.i_mode & format::kModeTypeMask) == format::kModeDirectory;
    // Which of several names stays is not known here: the one noted is not to be used.
    if (!directory && change > 0) {
      inode.i_advise = static_cast<uint8_t>(inode.i_advise | format::kAdviseLostPino);
    }
    inode.i_ctime = op.now.seconds;
    inode.i_ctime_nsec = op.now.nanoseconds;
  });
  if (error == 0 && !possible) {
    return report(*op.volume.corruptions, {Structure::kInode, 0, ino, links});
  }
  return error;
}

/// Adds `change` to the links of a directory in which another one is made, or from which one goes;
/// its times are set with the entry. Others may do so meanwhile. Collective, uniform. As
/// change_links().
GOFS_NOINLINE GOFS_HD inline int count_subdirectory(simt::AnyWarp auto warp, Operation& op,
                                                    uint32_t ino, int32_t change) {
  uint32_t links = 0;
  bool possible = true;
  int error = change_words(warp, op, 1u, ino, ino, [&](format::NodeBlock& node) {
    simt::AtomicRef<uint32_t> word(detail::links_word(node.inode));
    links = word.load(simt::memory_order_relaxed);
    int64_t next = 0;
    do {
      next = int64_t{links} + change;
      possible = next >= 0 && next <= INT64_C(0xffffffff);
    } while (possible &&
             !word.compare_exchange_strong(links, static_cast<uint32_t>(next),
                                           simt::memory_order_relaxed, simt::memory_order_relaxed));
  });
  if (error == 0 && !possible) {
    error = report(*op.volume.corruptions, {Structure::kInode, 0, ino, links});
  }
  return simt::first_error(warp, warp.thread_rank() == 0 ? error : 0);
}

/// Notes in the inode of each lane in `lanes` that `name` in the directory `parent_ino` leads to
/// it. The `..` of a directory is changed by set_entry(). Collective. Per lane 0 or a negative
/// errno. Pages: one a lane.
GOFS_NOINLINE GOFS_HD inline int set_parent(simt::AnyWarp auto warp, Operation& op, uint32_t lanes,
                                            uint32_t ino, uint32_t parent_ino,
                                            const EntryName& name) {
  // Until the next checkpoint the old name stands on disk: recovery must not add the new one.
  if ((lanes >> warp.thread_rank() & 1u) != 0) note_freed(op, renamed_inode(ino));
  return change_nodes(warp, op, lanes, ino, ino, [&](format::NodeBlock& node) {
    format::Inode& inode = node.inode;
    inode.i_pino = parent_ino;
    inode.i_namelen = name.length;
    for (uint32_t i = 0; i < format::kNameBytesMax; ++i) {
      inode.i_name[i] = i < name.length ? static_cast<uint8_t>(name.bytes[i]) : uint8_t{0};
    }
    // An only name is known again. Nothing on disk says so before it has the name as well.
    if ((inode.i_mode & format::kModeTypeMask) != format::kModeDirectory) {
      const uint32_t others = inode.i_advise & ~uint32_t{format::kAdviseLostPino};
      const uint32_t lost = inode.i_links == 1 ? 0 : uint32_t{format::kAdviseLostPino};
      inode.i_advise = static_cast<uint8_t>(others | lost);
    }
    inode.i_ctime = op.now.seconds;
    inode.i_ctime_nsec = op.now.nanoseconds;
  });
}

}  // namespace gofs::f2fs
