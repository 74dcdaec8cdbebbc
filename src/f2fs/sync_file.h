// SPDX-License-Identifier: Apache-2.0
//
// Making one file durable without a checkpoint: its nodes that have changed go to the fsync log
// (fsync_log.h), the inode last and marked, between a flush for its data and the end of all that
// was appended before. Where recovery could not put the file back from that, there is a checkpoint
// instead; which files these are is what Linux's f2fs goes by.
//
// Whoever asks for the contents alone leaves an inode of which only times have changed: then each
// of the nodes below it is marked and comes after the flush. Who owns a file and who may read it
// counts as contents, as it does for Linux.
#pragma once

#include "f2fs/begin_operation.h"
#include "f2fs/fsync_log.h"
#include "format/name_hash.h"

namespace gofs::f2fs {

/// Pages that sync_file() changes: of the NAT, where a page of a node gets clean for each of them.
inline constexpr uint32_t kPagesToSyncFile = 2;

/// What sync_file() makes durable.
enum class SyncScope : uint32_t {
  kAll,
  kContents,  // all but times of the last change
};

namespace detail {

/// What an inode says of how it can be made durable.
struct SyncState {
  uint64_t cp_ver;
  uint32_t flag;  // of the footer
  uint32_t parent_ino;
  uint32_t name_hash;
  uint32_t nids[2];  // the nodes with addresses right under the inode
  uint32_t xattr_nid;
  bool checkpoint;  // only a checkpoint does
  bool indirect;    // it has nodes below others
};

/// One lane.
GOFS_HD inline void note_sync_state(const format::NodeBlock& node, SyncState& state) {
  const format::Inode& inode = node.inode;
  state.cp_ver = node.footer.cp_ver;
  state.flag = node.footer.flag;
  state.parent_ino = inode.i_pino;
  const uint32_t length = simt::min<uint32_t>(inode.i_namelen, format::kNameBytesMax);
  state.name_hash = format::name_hash(reinterpret_cast<const char*>(inode.i_name), length);
  state.nids[0] = inode.i_nid[0];
  state.nids[1] = inode.i_nid[1];
  state.indirect = inode.i_nid[2] != 0 || inode.i_nid[3] != 0 || inode.i_nid[4] != 0;
  state.xattr_nid = inode.i_xattr_nid;
  state.checkpoint = (inode.i_mode & format::kModeTypeMask) != format::kModeRegular ||
                     inode.i_links == 0 || (inode.i_flags & format::kFlagCompressed) != 0;
}

/// Whether the last checkpoint does not have this inode: nothing but the fsync log has written it.
GOFS_HD inline bool is_unknown_to_checkpoint(const Volume& volume, const SyncState& state,
                                             const NatRecord& record) {
  if (record.block == format::kNewAddr) return true;
  return (state.flag & format::kNodeDentry) != 0 && state.cp_ver == node_version(volume);
}

/// Finds out how `ino` can be made durable. Collective, uniform. 0 or a negative errno; -EAGAIN:
/// only by a checkpoint. `marks`: those of its inode.
GOFS_NOINLINE GOFS_HD inline int plan_sync(simt::AnyWarp auto warp, Operation& op, uint32_t ino,
                                           SyncState& state, uint32_t& marks) {
  const uint32_t lanes = warp.ballot(true);
  int error = simt::first_error(
      warp, with_nodes(warp, op.volume, lanes, ino, ino,
                       [&](const format::NodeBlock& node) { note_sync_state(node, state); }));
  if (error < 0) return error;
  const auto& checkpoint =
      *reinterpret_cast<const format::Checkpoint*>(op.volume.checkpoint_blocks);
  // Recovery counts what was made before it finds what went.
  const uint64_t counted =
      checkpoint.valid_block_count + simt::load_relaxed(op.volume.newly_counted);
  const bool broken = simt::load_relaxed(op.writer.fsync_log.broken) != 0;
  if (warp.any(state.checkpoint || broken ||
               counted > simt::load_relaxed(op.volume.user_block_count) ||
               may_be_freed(op.writer, freed_xattrs(ino)) ||
               may_be_freed(op.writer, renamed_inode(ino)))) {
    return -EAGAIN;
  }
  NatRecord record{};
  error = simt::first_error(warp, look_up_nat(warp, op.volume, lanes, ino, record));
  if (error < 0) return error;
  marks = format::kNodeFsync;
  if (!is_unknown_to_checkpoint(op.volume, state, record)) return 0;
  marks |= format::kNodeDentry;
  // Recovery enters its name: in a directory that it knows, where it knows no such name, under a
  // number that it knows to be free.
  NatRecord parent{};
  error = simt::first_error(warp, look_up_nat(warp, op.volume, lanes, state.parent_ino, parent));
  if (error < 0) return error;
  const bool met = parent.block == format::kNewAddr || parent.block == format::kNullAddr ||
                   may_be_freed(op.writer, freed_nid(ino)) ||
                   may_be_freed(op.writer, freed_name(state.parent_ino, state.name_hash));
  return warp.any(met) ? -EAGAIN : 0;
}

/// Takes the dirty page `key` of each lane that wants one for that lane alone. Collective, by a
/// caller that holds the file's pages but for readers and writers, who release them soon. False:
/// one did not.
GOFS_NOINLINE GOFS_HD inline bool take_dirty_pages(simt::AnyWarp auto warp, PageCache& cache,
                                                   bool wanted, uint64_t key, uint32_t& frame,
                                                   bool& taken) {
  const simt::Deadline deadline = simt::Deadline::after_ns(kFrameTimeoutNs);
  simt::Backoff backoff;
  taken = false;
  for (;;) {
    if (wanted && !taken) {
      frame = find_frame(cache, key);
      uint64_t held = 0;
      wanted = frame != kNoFrame && is_dirty_page(cache, frame, kind_of(key), held) && held == key;
      if (wanted) taken = take_frame(cache, frame, key);
    }
    if (warp.all(taken == wanted)) return true;
    if (warp.any(deadline.passed())) {
      if (taken) release_frame(cache, frame, true);
      warp.sync();
      return false;
    }
    backoff.pause();
  }
}

/// Appends those of the nodes `nid`, one a lane, that are dirty, with `marks`: if there are any,
/// they count without an inode after them. Collective, uniform; `some` becomes true where there
/// were any.
GOFS_NOINLINE GOFS_HD inline int sync_nodes(simt::AnyWarp auto warp, Operation& op, uint32_t lanes,
                                            uint32_t nid, uint32_t marks, bool& some) {
  const bool wanted = (lanes >> warp.thread_rank() & 1u) != 0;
  const uint64_t key = page_key(PageKind::kNode, nid);
  uint32_t frame = kNoFrame;
  bool taken = false;
  if (!take_dirty_pages(warp, op.volume.cache, wanted, key, frame, taken)) return -EBUSY;
  const uint32_t writing = warp.ballot(taken);
  if (writing == 0) return 0;
  // The addresses in nodes are those of blocks that were written before: they must not be found
  // without them.
  const int error = (marks & format::kNodeFsync) == 0 ? 0 : flush_device(warp, op.volume);
  if (error < 0) {
    if (taken) release_frame(op.volume.cache, frame, true);
    return error;
  }
  return append_to_fsync_log(warp, op, writing, frame, key, marks, some);
}

/// The nids of the pages in the frames of the lanes where those are changed nodes of `ino` with
/// addresses; else 0. Collective, uniform answer: false where another thread kept one.
GOFS_NOINLINE GOFS_HD inline bool find_sync_nodes(simt::AnyWarp auto warp, Volume& volume,
                                                  uint32_t frame, uint32_t ino, uint32_t& nid) {
  const PageCache& cache = volume.cache;
  const simt::Deadline deadline = simt::Deadline::after_ns(kFrameTimeoutNs);
  simt::Backoff backoff;
  nid = 0;
  bool waiting = true;
  for (;;) {
    uint64_t key = 0;
    if (waiting) waiting = is_dirty_page(cache, frame, PageKind::kNode, key);
    // Who changes the page now releases it; what others have changed before is not to be missed.
    if (waiting && pin_frame(cache, frame, key)) {
      const auto& node = *reinterpret_cast<const format::NodeBlock*>(cache.page(frame));
      const uint32_t offset = node.footer.node_offset();
      const bool direct = !format::is_indirect_node(offset) && offset != format::kXattrNodeOffset;
      if (node.footer.ino == ino && id_of(key) != ino && direct) nid = id_of(key);
      unpin(cache, frame);
      waiting = false;
    }
    if (!warp.any(waiting)) return true;
    if (warp.any(deadline.passed())) return false;
    backoff.pause();
  }
}

/// Appends the changed nodes of `ino` that hold addresses, but its inode. Collective, uniform; 0 or
/// a negative errno.
GOFS_NOINLINE GOFS_HD inline int sync_all_nodes(simt::AnyWarp auto warp, Operation& op,
                                                uint32_t ino, const SyncState& state,
                                                uint32_t marks, bool& some) {
  if (!state.indirect) {
    // Few, and known.
    for (const uint32_t nid : state.nids) {
      const int error = nid == 0 ? 0 : sync_nodes(warp, op, 1u, nid, marks, some);
      if (error < 0) return error;
    }
    return 0;
  }
  const PageCache& cache = op.volume.cache;
  return for_dirty_pages(warp, cache, PageKind::kNode, whole_map(cache),
                         [&](uint32_t lanes, uint32_t frame, uint64_t) {
                           const bool mine = (lanes >> warp.thread_rank() & 1u) != 0;
                           uint32_t nid = 0;
                           if (!find_sync_nodes(warp, op.volume, mine ? frame : kNoFrame, ino, nid))
                             return -EBUSY;
                           const uint32_t writing = warp.ballot(nid != 0);
                           return writing == 0 ? 0
                                               : sync_nodes(warp, op, writing, nid, marks, some);
                         });
}

/// Waits for what others have appended. Collective, uniform, as wait_for_fsync_log().
GOFS_HD inline int wait_for_others(simt::AnyWarp auto warp, Operation& op) {
  return wait_for_fsync_log(warp, op, warp.shfl(simt::load_relaxed(op.writer.fsync_log.issued), 0));
}

/// Sees to it that the inode `ino` is written by whoever makes the file durable next, whatever he
/// asks for. Collective, uniform. 0 or a negative errno.
GOFS_HD inline int make_inode_urgent(simt::AnyWarp auto warp, Operation& op, uint32_t ino) {
  const int error = change_nodes(warp, op, 1u, ino, ino, [](format::NodeBlock&) {});
  return simt::first_error(warp, warp.thread_rank() == 0 ? error : 0);
}

/// Appends the nodes below the inode, which comes after them with `marks`. Collective, uniform; 0
/// or a negative errno, and the inode is to be written in any case.
GOFS_NOINLINE GOFS_HD inline int sync_below_inode(simt::AnyWarp auto warp, Operation& op,
                                                  uint32_t ino, const SyncState& state,
                                                  uint32_t marks) {
  bool some = false;
  int error = 0;
  const bool below = state.indirect || state.nids[0] != 0 || state.nids[1] != 0;
  if (below && warp.any(may_be_freed(op.writer, freed_inline_data(ino)))) {
    // Recovery refuses other nodes of a file as long as it knows it with its data in the inode.
    // That it is new stays noted, where this is as far as it comes now.
    error = sync_nodes(warp, op, 1u, ino, marks & format::kNodeDentry, some);
  }
  if (error == 0 && state.xattr_nid != 0) {
    error = sync_nodes(warp, op, 1u, state.xattr_nid, 0, some);
  }
  if (error == 0) error = sync_all_nodes(warp, op, ino, state, 0, some);
  if (!some) return error;
  // They count only if a marked inode comes after them, now or another time.
  const int urgent = make_inode_urgent(warp, op, ino);
  if (urgent < 0 && warp.thread_rank() == 0) break_fsync_log(op);
  return error < 0 ? error : urgent;
}

/// Whether the last checkpoint may have nodes with addresses that the file has lost, where recovery
/// would find them again: it takes none away but those behind the file's end. One lane, with the
/// inode's page held exclusively.
GOFS_HD inline bool may_meet_lost_dnode(const Volume& volume, const Writer& writer,
                                        const format::NodeBlock& node) {
  const format::Inode& inode = node.inode;
  const uint32_t slots = format::inode_layout(inode, volume.geometry.feature).slot_count;
  const bool beyond = inode.i_size > uint64_t{slots} << kBlockShift ||
                      (inode.i_advise & format::kAdviseKeepSize) != 0;
  return beyond && may_be_freed(writer, freed_dnode(node.footer.ino));
}

/// As sync_file(). -EAGAIN: only a checkpoint does.
GOFS_NOINLINE GOFS_HD inline int sync_through_fsync_log(simt::AnyWarp auto warp, Operation& op,
                                                        uint32_t ino, SyncScope scope) {
  SyncState state{};
  uint32_t marks = 0;
  int error = plan_sync(warp, op, ino, state, marks);
  if (error < 0) return error;
  const uint64_t key = page_key(PageKind::kNode, ino);
  // What one lane sees: writers go on.
  const bool urgent = warp.thread_rank() == 0 && is_urgent(op.volume.cache, key);
  if (scope == SyncScope::kContents && !warp.any(urgent)) {
    bool some = false;
    error = sync_all_nodes(warp, op, ino, state, format::kNodeFsync, some);
    if (error == 0 && !some) error = flush_overwrites(warp, op.volume, op.writer);
    return error < 0 ? error : wait_for_others(warp, op);
  }
  error = sync_below_inode(warp, op, ino, state, marks);
  if (error < 0) return error;
  const bool leader = warp.thread_rank() == 0;
  uint32_t frame = kNoFrame;
  bool taken = false;
  if (!take_dirty_pages(warp, op.volume.cache, leader, key, frame, taken)) return -EBUSY;
  // Others may have appended it, and not be done.
  if (!warp.any(taken)) {
    error = flush_overwrites(warp, op.volume, op.writer);
    return error < 0 ? error : wait_for_others(warp, op);
  }
  const bool lost =
      taken &&
      may_meet_lost_dnode(op.volume, op.writer,
                          *reinterpret_cast<const format::NodeBlock*>(op.volume.cache.page(frame)));
  // As sync_nodes() does.
  error = warp.any(lost) ? -EAGAIN : flush_device(warp, op.volume);
  if (error < 0) {
    if (taken) release_frame(op.volume.cache, frame, true);
    return error;
  }
  bool some = false;
  return append_to_fsync_log(warp, op, 1u, frame, key, marks, some);
}

}  // namespace detail

/// Makes the file `ino` durable with all that was done to it before: contents, size and attributes,
/// and its name, if it is new; times as `scope` says. Collective, uniform, by one warp with no
/// operation under way; the caller keeps others away that do this with the same file, and writers
/// may go on. 0 or a negative errno: -EROFS (no checkpoint can be made any more), -EBUSY, -EUCLEAN,
/// what the device says; what was done is then in memory still.
GOFS_NOINLINE GOFS_HD inline int sync_file(simt::AnyWarp auto warp, Volume& volume, Writer& writer,
                                           uint32_t ino, SyncScope scope = SyncScope::kAll) {
  // The common state, as where nothing has changed.
  if (warp.shfl(simt::load_relaxed(writer.changed), 0) == 0) {
    return flush_overwrites(warp, volume, writer);
  }
  OperationSlot slot;
  int error = begin_operation(warp, {volume, writer}, kPagesToSyncFile, slot);
  if (error < 0) return error;
  error = detail::sync_through_fsync_log(warp, *slot, ino, scope);
  end_operation(warp, slot);
  return error == -EAGAIN ? sync_volume(warp, volume, writer, false) : error;
}

}  // namespace gofs::f2fs
