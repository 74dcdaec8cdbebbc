// SPDX-License-Identifier: Apache-2.0
//
// Writing single blocks that a file has, one a lane, as many warps do at once with one file: none
// of them waits for another but for who writes the same block (block_queue.h). The blocks whose
// turn it is are written over where they lie, if that may be (f2fs/write_over.h), and else they are
// one operation: one look at the nodes, and commands that go out together.
#pragma once

#include "f2fs/write.h"
#include "f2fs/write_over.h"
#include "vfs/block_queue.h"
#include "vfs/prepare_write.h"

namespace gofs::vfs::detail {

/// drop_powers() of who is not user 0.
GOFS_NOINLINE GOFS_HD inline int drop_powers_of_user(simt::AnyWarp auto warp, Filesystem& fs,
                                                     uint32_t ino, const f2fs::TimeStamp& now) {
  f2fs::Inode inode{};
  const int error = load_uniform(warp, fs, ino, inode);
  if (error < 0) return error;
  const uint32_t powers = powers_of(fs.credentials, inode);
  if (powers == 0) return 0;
  f2fs::AttributeChange change{};
  change.mask = f2fs::kDropPermissions;  // of those that it has then, which chmod() may be changing
  change.permissions = static_cast<uint16_t>(powers);
  change.changed = now;
  return apply_change(warp, fs, ino, change);
}

/// Takes from a file what would let others run it as somebody else, since its contents are about to
/// change, unless user 0 changes them. Collective, uniform, inside the gate.
GOFS_HD inline int drop_powers(simt::AnyWarp auto warp, Filesystem& fs, uint32_t ino,
                               const f2fs::TimeStamp& now) {
  return fs.credentials.uid == 0 ? 0 : drop_powers_of_user(warp, fs, ino, now);
}

/// The first operation of a write of [offset, end), or what comes first in it. Collective, uniform,
/// inside the gate. 0 or a negative errno.
GOFS_NOINLINE GOFS_HD inline int begin_write(simt::AnyWarp auto warp, Filesystem& fs,
                                             f2fs::Inode& inode, uint64_t offset, uint64_t end,
                                             const f2fs::TimeStamp& now) {
  const int error = drop_powers(warp, fs, inode.ino, now);
  if (error < 0) return error;
  return f2fs::prepare_write(warp, fs.volume, *fs.writer, fs.pool, inode, offset, end, now);
}

/// Pages that begin_write() changes at most.
inline constexpr uint32_t kPagesToBeginWrite = f2fs::kPagesToPrepareWrite + 1;

/// Whether a write of `bytes` at `offset` is part of one block that the file, which keeps its
/// contents in blocks, has.
GOFS_HD inline bool is_within(const f2fs::Inode& inode, uint64_t offset, uint64_t bytes) {
  const uint64_t size = simt::load_relaxed(inode.size_bytes);
  const uint64_t room = kBlockBytes - (offset & (kBlockBytes - 1));
  return size > inode.inline_bytes && bytes != 0 && bytes <= room && offset < size &&
         bytes <= size - offset;
}

/// Where pieces of blocks lie in a file.
enum class Where { kWithin, kAnywhere };  // what the file has in blocks, or not said

/// Writes pieces of blocks, each of another block and one a lane, as one operation; the caller has
/// for himself what f2fs/write.h asks for. A file that grows has none of them between its end, or
/// the block of its end, and `grows_from`. Collective, uniform. 0 or a negative errno, of one of
/// them, and none is written.
GOFS_NOINLINE GOFS_HD inline int write_block_pieces(simt::AnyWarp auto warp, Filesystem& fs,
                                                    f2fs::Inode& inode, uint32_t lanes,
                                                    const f2fs::WritePiece& piece, Where where,
                                                    uint64_t grows_from) {
  const ByteRange range = range_of_lanes(warp, lanes, piece.offset, piece.bytes);
  const uint64_t first = range.offset & ~uint64_t{kBlockBytes - 1};
  const uint64_t end = range.offset + range.bytes;
  const bool near = end - first <= uint64_t{format::kNodeSlots} << kBlockShift;
  const uint32_t pages = kPagesToBeginWrite + (near ? f2fs::kPagesToWriteRun
                                                    : f2fs::pages_to_write(simt::popcount(lanes)));
  return operate(warp, fs, pages, [&] {
    const f2fs::TimeStamp now = time_now(fs);
    const int begun = where == Where::kWithin ? drop_powers(warp, fs, inode.ino, now)
                                              : begin_write(warp, fs, inode, grows_from, end, now);
    if (begun < 0) return begun;
    return f2fs::write_pieces(warp, fs.volume, *fs.writer, fs.pool, lanes, inode, piece, now);
  });
}

/// Drops a file's powers and sets its times. Collective, uniform, by a block writer. 0 or a
/// negative errno.
GOFS_NOINLINE GOFS_HD inline int note_overwriting(simt::AnyWarp auto warp, Filesystem& fs,
                                                  f2fs::Inode& inode) {
  return operate(warp, fs, kPagesToBeginWrite, [&] {
    const f2fs::TimeStamp now = time_now(fs);
    int error = f2fs::detail::check_change(*fs.writer, inode, 0);
    if (error == 0) error = drop_powers(warp, fs, inode.ino, now);
    if (error == 0) error = f2fs::keep_inode(warp, fs.volume, inode.ino);
    if (error < 0) return error;
    return f2fs::bring_up_to_date(warp, fs.volume, inode, f2fs::update_of_times(now));
  });
}

/// What comes before blocks of a file are written over: whether it can be changed, its powers and
/// its times, which most often are set already. Of many that write to one file, one sees to them in
/// each moment, and the others wait for him without a word but this file's. Collective, uniform, by
/// a block writer. 0 or a negative errno.
GOFS_HD inline int begin_overwrite(simt::AnyWarp auto warp, Filesystem& fs, f2fs::Inode& inode) {
  const simt::Deadline deadline = simt::Deadline::after_ns(fs.lock_timeout_ns);
  simt::Backoff backoff;
  for (;;) {
    const bool noted = warp.thread_rank() == 0 && f2fs::detail::is_noted(inode, time_now(fs));
    if (warp.any(noted)) return warp.shfl(f2fs::detail::check_change(*fs.writer, inode, 0), 0);
    if (simt::try_lock_for_warp(warp, inode.noting)) {
      const int error = note_overwriting(warp, fs, inode);
      simt::release_lock(warp, inode.noting);
      return error;
    }
    if (warp.any(deadline.passed())) return -ETIMEDOUT;
    backoff.pause();
  }
}

/// Writes pieces of blocks that the file has, each of another block and one a lane, by who has them
/// for himself: `over` what is there, and those where that is not so or fails to new blocks,
/// whatever becomes of the others. Collective,
/// uniform. 0 or a negative errno, of one of them.
GOFS_HD inline int write_over_or_anew(simt::AnyWarp auto warp, Filesystem& fs, f2fs::Inode& inode,
                                      uint32_t lanes, const f2fs::WritePiece& piece, bool over) {
  if (over && begin_overwrite(warp, fs, inode) == 0) {
    lanes &= ~f2fs::write_over(warp, fs.volume, *fs.writer, fs.pool, lanes, inode, piece);
    if (lanes == 0) return 0;
  }
  return write_block_pieces(warp, fs, inode, lanes, piece, Where::kWithin, 0);
}

/// Writes the piece of each of `lanes`, at least one, each of another block of the open file, those
/// first whose turn comes first. Collective. Uniform answer: 0, or a negative errno of some of
/// them, and `written` are those that surely were; -EAGAIN: none of them, since somebody reads the
/// file or writes more of it, or it has become another.
GOFS_NOINLINE GOFS_HD inline int write_queued(simt::AnyWarp auto warp, Filesystem& fs,
                                              OpenInode& open, uint32_t lanes,
                                              const f2fs::WritePiece& piece, uint32_t& written) {
  written = 0;
  if (!try_join_block_writers(warp, open.lock, fs.writer->cleaning.overwriters_awaited)) {
    return -EAGAIN;
  }
  const bool over = warp.all(f2fs::may_write_over(*fs.writer));
  // Nobody changes the size from here on.
  bool waiting = (lanes >> warp.thread_rank() & 1u) != 0;
  if (warp.any(waiting && !is_within(open.inode, piece.offset, piece.bytes))) {
    leave_block_writers(warp, open.lock);
    return -EAGAIN;
  }
  BlockQueue& queue = queue_of_block(fs, open, piece.offset >> kBlockShift);
  const uint32_t ticket = waiting ? queue_up(queue) : 0;
  int error = 0;
  simt::Backoff backoff;
  for (uint32_t left = lanes;;) {
    const bool served = waiting && is_served(queue, ticket);
    const uint32_t turn = warp.ballot(served);
    if (turn == 0) {
      backoff.pause();
      continue;
    }
    warp.sync();  // what each lane has seen, all may use
    const int failed = write_over_or_anew(warp, fs, open.inode, turn, piece, over);
    if (failed == 0) written |= turn;
    if (error == 0) error = failed;
    left &= ~turn;
    warp.sync();
    const simt::Release release;
    if (served) serve_next(release, queue, ticket);
    if (left == 0) {
      leave_block_writers(warp, open.lock, release);
      return error;
    }
    waiting = waiting && !served;
    backoff.reset();
  }
}

}  // namespace gofs::vfs::detail
