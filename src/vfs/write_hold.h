// SPDX-License-Identifier: Apache-2.0
//
// Locking what a write needs (write_plan.h), for all writes of one request by a warp or a group of
// warps. Those of several lanes, each with a request of its own: write_lanes.h.
#pragma once

#include "vfs/file_lock.h"
#include "vfs/write_rounds.h"

namespace gofs::vfs::detail {

/// How long a writer of few blocks waits for those in the line to be done before it goes there
/// itself. Requests that come to the line meanwhile let it go first (range_lock.h).
inline constexpr uint64_t kQueuePatienceNs = 50'000'000;

/// Joins the block writers, and where `plan()`, called collectively then, which says whether the
/// caller makes the file longer (1) or not (0), or that it has become another (-1), those who make
/// it longer. Collective, uniform. Its last answer, or -1: the file is read, or written otherwise,
/// or has become another.
template <typename Plan>
GOFS_HD int join_block_writers(simt::AnyWarp auto warp, Filesystem& fs, OpenInode& open,
                               Plan plan) {
  const bool leader = warp.thread_rank() == 0;
  const simt::Deadline patience =
      simt::Deadline::after_ns(simt::min(kQueuePatienceNs, fs.lock_timeout_ns));
  simt::Backoff backoff;
  bool waits = false;
  int answer = -1;
  for (;;) {
    if (try_join_block_writers(warp, open.lock, fs.writer->cleaning.overwriters_awaited)) {
      // From here on the file gets no shorter.
      answer = plan();
      if (answer == 0 || (answer > 0 && try_share_end(warp, open.lock))) break;
      leave_block_writers(warp, open.lock);
      if (answer < 0) break;
      answer = -1;
    }
    if (!warp.any(leader && only_writers_there(open.lock)) || warp.any(patience.passed())) break;
    if (!waits) wait_for_line(warp, open.lock);
    waits = true;
    do {
      backoff.pause();
    } while (warp.any(leader && has_range_writers(open.lock)) && !warp.any(patience.passed()));
  }
  if (waits) stop_waiting_for_line(warp, open.lock);
  return answer;
}

/// Holds the blocks of a write of `bytes` at `offset` by their queues, as `plan` then says.
/// Collective, uniform. 0; -EAGAIN, and nothing is held: the file is read, written otherwise, or
/// has become another.
GOFS_NOINLINE GOFS_HD inline int acquire_blocks(simt::AnyWarp auto warp, Filesystem& fs,
                                                OpenInode& open, uint64_t offset, uint64_t bytes,
                                                WritePlan& plan, WriteHold& hold) {
  const int grows = join_block_writers(warp, fs, open, [&] {
    plan = plan_write(view_of(warp, open.inode), offset, bytes);
    return plan.hold != Hold::kBlocks ? -1 : plan.grows ? 1 : 0;
  });
  if (grows < 0) return -EAGAIN;
  HoldMaker::fill(hold, open, Hold::kBlocks, plan.range, plan.grows);
  acquire_run(warp, fs, open, plan.range.offset >> kBlockShift,
              static_cast<uint32_t>(plan.range.bytes >> kBlockShift));
  return 0;
}

/// Holds in the ring what `make_plan(view)`, called collectively, says that a file needs which
/// looks like that; `plan` is its last answer. Collective, uniform. 0, or -ETIMEDOUT, and nothing
/// is held.
template <typename MakePlan>
GOFS_HD int acquire_in_ring(simt::AnyWarp auto warp, OpenInode& open,
                            const simt::Deadline& deadline, WritePlan& plan, WriteHold& hold,
                            MakePlan make_plan) {
  plan = make_plan(view_of(warp, open.inode));
  const Hold kind = plan.hold == Hold::kWholeFile ? Hold::kWholeFile : Hold::kRange;
  int error = hold_in_ring(warp, open, kind, plan.range, deadline, hold);
  if (error < 0) return error;
  const WritePlan needed = make_plan(view_of(warp, open.inode));
  if (is_enough(plan, needed)) {
    plan = needed;
    return 0;
  }
  // The file has become another meanwhile. Of all of it, nothing else changes the size.
  unlock_exclusive(warp, open.lock, HoldMaker::ring(hold));
  error = hold_in_ring(warp, open, Hold::kWholeFile, {}, deadline, hold);
  if (error == 0) plan = make_plan(view_of(warp, open.inode));
  return error;
}

/// Holds a range for a write of `bytes`, not 0, at `offset`, or where `append`, at the end, which
/// `offset` becomes. As acquire_in_ring().
GOFS_NOINLINE GOFS_HD inline int acquire_range(simt::AnyWarp auto warp, OpenInode& open,
                                               uint64_t bytes, bool append,
                                               const simt::Deadline& deadline, uint64_t& offset,
                                               WritePlan& plan, WriteHold& hold) {
  return acquire_in_ring(warp, open, deadline, plan, hold, [&](const FileView& view) {
    if (append) offset = view.size_bytes;
    return append ? plan_append(view) : plan_write(view, offset, bytes);
  });
}

/// Moves the contents of a file out of its inode, since they do not fit there with a write of
/// [offset, end). Of many that find this out, one does it. Collective, uniform, by a warp that
/// holds nothing of the file. 0, also where another has done it; -ETIMEDOUT, or what begin_write()
/// says.
GOFS_NOINLINE GOFS_HD inline int move_out_of_inode(simt::AnyWarp auto warp, Filesystem& fs,
                                                   OpenInode& open, uint64_t offset, uint64_t end,
                                                   const simt::Deadline& deadline) {
  f2fs::Inode& inode = open.inode;
  simt::Backoff backoff;
  while (!simt::try_lock_for_warp(warp, inode.moving_out)) {
    if (!warp.any(warp.thread_rank() == 0 && inode.has_inline_data())) return 0;
    if (warp.any(deadline.passed())) return -ETIMEDOUT;
    backoff.pause();
  }
  WriteHold hold{};
  int error = 0;
  if (warp.any(warp.thread_rank() == 0 && inode.has_inline_data())) {
    error = hold_in_ring(warp, open, Hold::kWholeFile, {}, deadline, hold);
    if (error == 0) {
      const f2fs::FileHold file = held_file(hold);
      error = operate(warp, fs, kPagesToBeginWrite, [&](f2fs::Operation& op) {
        return begin_write(warp, op, fs, file, offset, simt::min(end, f2fs::kFileBytesMax));
      });
      release(warp, fs, hold);
    }
  }
  simt::release_lock(warp, inode.moving_out);
  return error;
}

/// Holds what a write of `bytes`, not 0, at `offset` needs, as `plan` then says; where `append`,
/// `offset` becomes the file's end. Contents that do not fit into the inode with it are moved out.
/// Collective, uniform. 0; -ETIMEDOUT after the file system's patience, or what begin_write() says,
/// and nothing is held.
GOFS_NOINLINE GOFS_HD inline int acquire(simt::AnyWarp auto warp, Filesystem& fs, OpenInode& open,
                                         uint64_t bytes, bool append, uint64_t& offset,
                                         WritePlan& plan, WriteHold& hold) {
  const simt::Deadline deadline = simt::Deadline::after_ns(fs.lock_timeout_ns);
  for (;;) {
    const FileView view = view_of(warp, open.inode);
    const uint64_t end = (append ? view.size_bytes : offset) + bytes;
    if (view.in_inode && end > open.inode.inline_bytes) {
      const int error = move_out_of_inode(warp, fs, open, end - bytes, end, deadline);
      if (error < 0) return error;
      continue;
    }
    if (!append && plan_write(view, offset, bytes).hold == Hold::kBlocks &&
        acquire_blocks(warp, fs, open, offset, bytes, plan, hold) == 0) {
      return 0;
    }
    const int error = acquire_range(warp, open, bytes, append, deadline, offset, plan, hold);
    if (error < 0 || plan.hold != Hold::kWholeFile || offset + bytes <= open.inode.inline_bytes) {
      return error;
    }
    release(warp, fs, hold);  // others have written more to the inode meanwhile
  }
}

}  // namespace gofs::vfs::detail
