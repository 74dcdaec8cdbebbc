// SPDX-License-Identifier: Apache-2.0
//
// Recovery of what fsync has made durable after the last checkpoint: "roll-forward". The fsync log
// (fsync_log.h, read_fsync_log.h) is gone through several times: to see where it leads, to make the
// inodes that are new, to learn which files it makes durable and up to which node, and then to take
// these nodes over, in order. They end up in memory as if the files had just been changed; a
// checkpoint makes them part of the volume. Until then nothing is written over that the last
// checkpoint or the fsync log needs, so a crash on the way does no harm.
//
// The files are kept in a small table. Where there are more, the fsync log is taken over stretch by
// stretch, each with no more files than the table has room for: in order, since a name or a block
// may pass from one file to another, and each node once.
#pragma once

#include "f2fs/begin_operation.h"
#include "f2fs/make_inode.h"
#include "f2fs/recover_inode.h"
#include "f2fs/write_checkpoint.h"

namespace gofs::f2fs {

namespace detail {

/// Pages that one node of the fsync log changes at most: the file's inode, its nodes and blocks of
/// the NAT down to the addresses; its attributes; a name, another inode's links and its parent's.
inline constexpr uint32_t kPagesToRecoverNode = 2 + pages_to_grow(1) + 3 + pages_to_grow(1) + 3;

/// A node of the fsync log.
struct FsyncLogCursor {
  uint32_t block;
  uint32_t number;  // in the fsync log, from 0
};

/// Files in the table at most: places that stay free end the search for one that is not there.
inline constexpr uint32_t kRecoveredFilesAtOnce = kRecoveredFiles / 4 * 3;

/// Whether a node of the fsync log is an inode with a name that the last checkpoint may not have.
GOFS_HD inline bool brings_name(const format::NodeBlock& node) {
  const uint32_t marks = format::kNodeFsync | format::kNodeDentry;
  return node.footer.nid == node.footer.ino && (node.footer.flag & marks) == marks;
}

/// The place of `ino` in the table, or the free one where it would be; kRecoveredFiles if there is
/// none. One lane.
GOFS_HD inline uint32_t find_recovered(const RecoveredFile* table, uint32_t ino) {
  const uint32_t home = ino * 0x9E3779B1u;
  for (uint32_t step = 0; step < kRecoveredFiles; ++step) {
    const uint32_t index = (home + step) % kRecoveredFiles;
    if (table[index].ino == ino || table[index].ino == 0) return index;
  }
  return kRecoveredFiles;
}

/// Calls `visit(place, node)`, collectively, with the nodes of the fsync log from `place` to before
/// number `end`, in order, until it answers a negative errno; `place` becomes the next one.
/// Collective, uniform.
template <typename Visit>
GOFS_HD int for_each_in_fsync_log(simt::AnyWarp auto warp, Volume& volume, Writer& writer,
                                  FsyncLogCursor& place, uint32_t end, Visit visit) {
  FsyncLogReader reader{};
  while (place.number < end) {
    const format::NodeBlock* node = nullptr;
    int error = read_fsync_node(warp, volume, writer, reader, place.block, node);
    if (error == 0 && node == nullptr) error = -EUCLEAN;  // it was there
    if (error < 0) return error;
    const uint32_t next = node->footer.next_blkaddr;
    error = visit(place, *node);
    if (error < 0) return error;
    place = {next, place.number + 1};
  }
  return 0;
}

/// Notes a marked node of `file`, which the table has, if there is such a file. Collective,
/// uniform. 0 or a negative errno.
GOFS_NOINLINE GOFS_HD inline int note_marked(simt::AnyWarp auto warp, Volume& volume,
                                             RecoveredFile& file, uint32_t block,
                                             const format::NodeBlock& node) {
  const uint32_t ino = node.footer.ino;
  NatRecord record{};
  const int error =
      simt::first_error(warp, look_up_nat(warp, volume, warp.ballot(true), ino, record));
  if (error < 0) return error;
  if (record.block == format::kNullAddr || record.ino != ino) return 0;
  if (warp.thread_rank() == 0) {
    file.last_block = block;
    if (brings_name(node)) file.named_block = block;
  }
  warp.sync();
  return 0;
}

/// The place of `ino` in the table, where it is entered if there is room. Collective, uniform;
/// kRecoveredFiles: there is none, and it is not there.
GOFS_HD inline uint32_t enter_recovered(simt::AnyWarp auto warp, Writer& writer, uint32_t ino,
                                        uint32_t& count) {
  uint32_t index = kRecoveredFiles;
  if (warp.thread_rank() == 0) {
    index = find_recovered(writer.recovered, ino);
    if (index != kRecoveredFiles && writer.recovered[index].ino == 0) {
      if (count < kRecoveredFilesAtOnce) {
        writer.recovered[index].ino = ino;
        ++count;
      } else {
        index = kRecoveredFiles;
      }
    }
  }
  count = warp.shfl(count, 0);
  return warp.shfl(index, 0);
}

/// Fills the table with the files of a stretch of the fsync log from `begin` on, as many as there
/// is room for, and what the whole rest of the fsync log marks of them. Collective, uniform. 0 or a
/// negative errno; `end` is the number of the first node behind the stretch.
GOFS_NOINLINE GOFS_HD inline int collect_files(simt::AnyWarp auto warp, Volume& volume,
                                               Writer& writer, FsyncLogCursor begin,
                                               uint32_t length, uint32_t& end) {
  for (uint32_t i = warp.thread_rank(); i < kRecoveredFiles; i += warp.size()) {
    writer.recovered[i] = RecoveredFile{};
  }
  warp.sync();
  end = length;
  uint32_t count = 0;
  return for_each_in_fsync_log(
      warp, volume, writer, begin, length,
      [&](const FsyncLogCursor& place, const format::NodeBlock& node) {
        const uint32_t index = enter_recovered(warp, writer, node.footer.ino, count);
        if (index == kRecoveredFiles) {
          end = simt::min(end, place.number);
          return 0;
        }
        const bool marked = (node.footer.flag & format::kNodeFsync) != 0;
        return marked ? note_marked(warp, volume, writer.recovered[index], place.block, node) : 0;
      });
}

/// What recovery works with.
struct Recovery {
  SummaryDraft draft;
  uint8_t* page;
};

/// Sees to it that a step may change `pages` pages, without a checkpoint: writes what has changed
/// to where nothing leads before the next one, the summary first, since a log may go on in its
/// segment. Collective, uniform. 0 or a negative errno; -ENOBUFS: the cache is too small.
GOFS_NOINLINE GOFS_HD inline int make_room_to_recover(simt::AnyWarp auto warp, Operation& op,
                                                      Recovery& recovery, uint32_t pages) {
  const auto fits = [&] {
    return warp.any(warp.thread_rank() == 0 &&
                    look_for_room(op.volume, op.writer).is_enough(pages));
  };
  if (fits()) return 0;
  int error = store_summary(warp, op.volume, recovery.draft);
  if (error == 0) error = write_dirty_pages(warp, op);
  recovery.draft.segno = format::kNullSegno;  // a log may have it now, and its own summary
  if (error < 0) return error;
  return fits() ? 0 : -ENOBUFS;
}

/// Makes the inodes that the last checkpoint does not have, before any nid is taken for something
/// else. Collective, uniform. 0 or a negative errno.
GOFS_NOINLINE GOFS_HD inline int make_missing_inodes(simt::AnyWarp auto warp, Operation& op,
                                                     Recovery& recovery, uint32_t length,
                                                     uint32_t& where) {
  FsyncLogCursor place{first_of_fsync_log(op.volume), 0};
  return for_each_in_fsync_log(
      warp, op.volume, op.writer, place, length,
      [&](const FsyncLogCursor&, const format::NodeBlock& node) {
        if (!brings_name(node)) return 0;
        where = place.block;
        const uint32_t ino = node.footer.ino;
        NatRecord record{};
        int error =
            simt::first_error(warp, look_up_nat(warp, op.volume, warp.ballot(true), ino, record));
        if (error < 0) return error;
        if (record.block != format::kNullAddr) return record.ino == ino ? 0 : -EUCLEAN;
        // Of others, no single one is made durable.
        const uint32_t type = node.inode.i_mode & format::kModeTypeMask;
        if (type != format::kModeRegular) return -EUCLEAN;
        error = make_room_to_recover(warp, op, recovery, kPagesToMakeInode);
        return error < 0 ? error : make_recovered_inode(warp, op, ino, node);
      });
}

/// Takes over one node of the fsync log for its file. Collective, uniform. 0 or a negative errno.
GOFS_NOINLINE GOFS_HD inline int recover_node(simt::AnyWarp auto warp, Operation& op,
                                              const format::NodeBlock& node, Recovery& recovery) {
  const uint32_t ino = node.footer.ino;
  if (node.footer.nid == ino) {
    bool taken = true;
    const int changed = change_nodes(warp, op, 1u, ino, ino, [&](format::NodeBlock& to) {
      taken = take_inode(op.volume, node, to);
    });
    const int error = simt::first_error(warp, warp.thread_rank() == 0 ? changed : 0);
    if (error < 0) return error;
    if (!warp.all(taken)) return -EUCLEAN;
  }
  Inode inode{};
  int error = simt::first_error(warp, load_inodes(warp, op.volume, warp.ballot(true), ino, inode));
  if (error < 0) return error;
  if (node.footer.node_offset() == format::kXattrNodeOffset) {
    return recover_xattr_node(warp, op, inode, node);
  }
  if (!inode.is_regular()) return node.footer.nid == ino ? 0 : -EUCLEAN;
  if (inode.has_inline_data()) {
    if (addresses_of(op.volume, node).count == 0) return 0;
    // Its data has moved out; the inode that says so comes later.
    error = drop_inline_data(warp, op, inode);
    if (error < 0) return error;
  }
  error = recover_addresses(warp, op, inode, node, recovery.draft);
  if (error < 0 || node.footer.nid == ino) return error;
  // The inode may not be in the fsync log, and Linux would read through its hint.
  return change_inode(warp, op, ino, [](format::Inode& raw) { raw.i_ext.len = 0; });
}

/// Takes over the node at `block`, if it belongs to a file of the table. Collective, uniform.
GOFS_NOINLINE GOFS_HD inline int recover_step(simt::AnyWarp auto warp, Operation& op,
                                              uint32_t block, const format::NodeBlock& node,
                                              Recovery& recovery) {
  const uint32_t ino = node.footer.ino;
  const uint32_t index = find_recovered(op.writer.recovered, ino);
  if (index == kRecoveredFiles || op.writer.recovered[index].ino == 0) return 0;
  RecoveredFile& entry = op.writer.recovered[index];
  const RecoveredFile file = entry;
  warp.sync();                         // all lanes have read it
  if (file.last_block == 0) return 0;  // that is done
  int error = make_room_to_recover(warp, op, recovery, kPagesToRecoverNode);
  if (error < 0) return error;
  error = recover_node(warp, op, node, recovery);
  if (error == 0 && block == file.named_block) error = recover_name(warp, op, node);
  if (error == 0 && block == file.last_block) {
    error = cut_recovered(warp, op, ino, recovery.page, [&] {
      return make_room_to_recover(warp, op, recovery, kPagesToTruncate);
    });
  }
  if (warp.thread_rank() == 0 && block == file.last_block) entry.last_block = 0;
  warp.sync();
  return error;
}

/// Takes over all files of the fsync log. Collective, uniform; `where` is a block where that
/// failed.
GOFS_NOINLINE GOFS_HD inline int recover_fsync_log(simt::AnyWarp auto warp, Operation& op,
                                                   uint32_t length, uint32_t& where) {
  auto* const summary = reinterpret_cast<format::SummaryBlock*>(op.volume.scratch);
  Recovery recovery{{summary, format::kNullSegno, false}, op.volume.scratch + kBlockBytes};
  const int made = make_missing_inodes(warp, op, recovery, length, where);
  if (made < 0) return made;
  FsyncLogCursor place{first_of_fsync_log(op.volume), 0};
  while (place.number < length) {
    where = place.block;
    uint32_t end = 0;
    int error = collect_files(warp, op.volume, op.writer, place, length, end);
    if (error == 0) {
      error = for_each_in_fsync_log(warp, op.volume, op.writer, place, end,
                                    [&](const FsyncLogCursor& at, const format::NodeBlock& node) {
                                      where = at.block;
                                      return recover_step(warp, op, at.block, node, recovery);
                                    });
    }
    if (error < 0) return error;
  }
  return store_summary(warp, op.volume, recovery.draft);
}

}  // namespace detail

/// Makes what fsync has made durable since the last checkpoint part of the volume, after
/// begin_writing() and before any other uses the volume, with a checkpoint if there is anything.
/// Collective, by one warp with no operation under way. Returns, identical in all lanes: how many
/// nodes there were, or a negative errno: -EUCLEAN (reported), -ENOBUFS (the cache is much smaller
/// than that of the mount that wrote them), -ENOSPC, -EOPNOTSUPP, what the device says; the volume
/// is then not to be written to, and on the disk as it was.
GOFS_NOINLINE GOFS_HD inline int64_t recover_files(simt::AnyWarp auto warp, Volume& volume,
                                                   Writer& writer) {
  Operation op = Operation::before_others(volume, writer);
  uint32_t length = 0;
  int error = detail::survey_fsync_log(warp, op, length);
  if (error < 0 || length == 0) return error;
  uint32_t where = 0;
  error = detail::recover_fsync_log(warp, op, length, where);
  if (error == 0 && warp.any(volume.valid_block_count > volume.user_block_count)) error = -ENOSPC;
  if (error == -EUCLEAN) {
    return report_once(warp, *volume.corruptions, {Structure::kNode, where, length, 0});
  }
  if (error == 0) error = write_checkpoint(warp, volume, writer, false);
  return error < 0 ? error : int64_t{length};
}

}  // namespace gofs::f2fs
