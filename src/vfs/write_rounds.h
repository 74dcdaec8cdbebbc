// SPDX-License-Identifier: Apache-2.0
//
// Operations that write pieces of an open file, one a lane (write_pieces.h), by a warp that holds
// these blocks (write_plan.h): one of them, rounds of them, or one that goes over what is there.
#pragma once

#include "f2fs/write.h"
#include "f2fs/write_over.h"
#include "vfs/prepare_write.h"
#include "vfs/read.h"
#include "vfs/write_pieces.h"

namespace gofs::vfs::detail {

/// clear_setid() of who is not user 0.
GOFS_NOINLINE GOFS_HD inline int clear_setid_of_user(simt::AnyWarp auto warp, f2fs::Operation& op,
                                                     Filesystem& fs, uint32_t ino) {
  f2fs::Inode inode{};
  const int error = load_uniform(warp, fs, ino, inode);
  if (error < 0) return error;
  const uint32_t setid = setid_of(op.caller(), inode);
  if (setid == 0) return 0;
  f2fs::AttributeChange change{};
  change.mask = f2fs::kDropPermissions;  // of those that it has then, which chmod() may be changing
  change.permissions = static_cast<uint16_t>(setid);
  change.changed = op.now;
  return apply_change(warp, op, ino, change);
}

/// Takes the set-user-ID and set-group-ID bits from a file whose contents are about to change,
/// unless user 0 changes them. Collective, uniform.
GOFS_HD inline int clear_setid(simt::AnyWarp auto warp, f2fs::Operation& op, Filesystem& fs,
                               uint32_t ino) {
  return op.caller().uid == 0 ? 0 : clear_setid_of_user(warp, op, fs, ino);
}

/// 1 if a file has set-ID bits, 0 if not, or a negative errno. Collective, uniform.
GOFS_NOINLINE GOFS_HD inline int has_setid_bits(simt::AnyWarp auto warp, Filesystem& fs,
                                                uint32_t ino) {
  constexpr uint32_t kBits = format::kModeSetUserId | format::kModeSetGroupId;
  f2fs::Inode inode{};
  const int error = load_uniform(warp, fs, ino, inode);
  return error < 0 ? error : (inode.mode & kBits) != 0 ? 1 : 0;
}

/// What comes first in the first operation of a write up to `end`, which begins at `offset`; 0
/// where nothing is to be cleared before it (WritePlan::clears). Collective, uniform. 0 or a
/// negative errno.
GOFS_NOINLINE GOFS_HD inline int begin_write(simt::AnyWarp auto warp, f2fs::Operation& op,
                                             Filesystem& fs, const f2fs::FileHold& file,
                                             uint64_t offset, uint64_t end) {
  const int error = clear_setid(warp, op, fs, file.inode.ino);
  if (error < 0) return error;
  return f2fs::prepare_write(warp, op, file, offset, end);
}

/// Pages that begin_write() changes at most.
inline constexpr uint32_t kPagesToBeginWrite = f2fs::kPagesToPrepareWrite + 1;

/// Whether begin_write() has anything to do for a write that holds what `plan` says. Collective,
/// uniform.
GOFS_HD inline bool needs_begin(simt::AnyWarp auto warp, const Filesystem& fs,
                                const f2fs::Inode& inode, const WritePlan& plan) {
  if (plan.clears || plan.hold == Hold::kWholeFile) return true;
  if (credentials_of(warp, fs).uid == 0) return false;
  // The first write of this moment has seen to the set-ID bits as well.
  return warp.any(warp.thread_rank() == 0 && !f2fs::detail::are_times_set(inode, time_now(fs)));
}

/// Writes pieces of blocks, each of another block and one a lane, as one operation. Collective,
/// uniform. 0 or a negative errno, of one of them, and none is written.
GOFS_NOINLINE GOFS_HD inline int write_block_pieces(simt::AnyWarp auto warp, Filesystem& fs,
                                                    const f2fs::FileHold& file, uint32_t lanes,
                                                    const f2fs::WritePiece& piece) {
  const f2fs::Inode& inode = file.inode;
  const ByteRange range = range_of_lanes(warp, lanes, piece.offset, piece.bytes);
  const uint64_t first = range.offset & ~uint64_t{kBlockBytes - 1};
  const uint64_t end = range.offset + range.bytes;
  const bool near = end - first <= uint64_t{format::kNodeSlots} << kBlockShift;
  const uint32_t pages = kPagesToBeginWrite + (near ? f2fs::kPagesToWriteRun
                                                    : f2fs::pages_to_write(simt::popcount(lanes)));
  return operate(warp, fs, pages, [&](f2fs::Operation& op) {
    const int begun = clear_setid(warp, op, fs, inode.ino);
    if (begun < 0) return begun;
    return f2fs::write_pieces(warp, op, lanes, file, piece);
  });
}

/// Clears a file's set-ID bits and sets its times. Collective, uniform, by a block writer. 0 or a
/// negative errno.
GOFS_NOINLINE GOFS_HD inline int note_overwriting(simt::AnyWarp auto warp, Filesystem& fs,
                                                  f2fs::Inode& inode) {
  return operate(warp, fs, kPagesToBeginWrite, [&](f2fs::Operation& op) {
    int error = f2fs::detail::check_change(op.writer, inode, 0);
    if (error == 0) error = clear_setid(warp, op, fs, inode.ino);
    if (error == 0) error = f2fs::keep_inode(warp, op, inode.ino);
    if (error < 0) return error;
    return f2fs::bring_up_to_date(warp, op, inode, f2fs::update_of_times(op.now));
  });
}

/// What comes before blocks of a file are written over: whether it can be changed, its set-ID bits
/// and its times, which most often are set already. Of many that write to one file, one sees to
/// them in each moment, and the others wait for it without a word but this file's. Collective,
/// uniform. 0 or a negative errno.
GOFS_HD inline int begin_overwrite(simt::AnyWarp auto warp, Filesystem& fs, f2fs::Inode& inode) {
  const simt::Deadline deadline = simt::Deadline::after_ns(fs.lock_timeout_ns);
  simt::Backoff backoff;
  for (;;) {
    const bool noted = warp.thread_rank() == 0 && f2fs::detail::are_times_set(inode, time_now(fs));
    if (warp.any(noted)) return warp.shfl(f2fs::detail::check_change(*fs.writer, inode, 0), 0);
    if (simt::try_lock_for_warp(warp, inode.times_pending)) {
      const int error = note_overwriting(warp, fs, inode);
      simt::release_lock(warp, inode.times_pending);
      return error;
    }
    if (warp.any(deadline.passed())) return -ETIMEDOUT;
    backoff.pause();
  }
}

/// Writes pieces over the blocks that the file has there, one a lane, by a block writer.
/// Collective, uniform: the lanes whose pieces are written.
GOFS_NOINLINE GOFS_HD inline uint32_t write_in_place(simt::AnyWarp auto warp, Filesystem& fs,
                                                     const f2fs::FileHold& file, uint32_t lanes,
                                                     const f2fs::WritePiece& piece) {
  f2fs::Inode& inode = file.inode;
  if (!warp.all(f2fs::may_write_over(*fs.writer)) || begin_overwrite(warp, fs, inode) < 0) return 0;
  return f2fs::write_over(warp, fs.volume, *fs.writer, fs.pool, lanes, file, piece);
}

/// A write of `bytes` (not 0) at `offset`, or the share in it of one of several warps: rounds of
/// `round_blocks` blocks, every `warp_count`-th, from `warp_index` on.
struct WriteShare {
  uint64_t bytes;
  uint64_t offset;
  uint32_t warp_index;
  uint32_t warp_count;
  uint32_t round_blocks;  // at most round_blocks_max()
  uint64_t begins_from;   // begin_write() of the first operation
  uint64_t begins_to;     // 0: it has none
  f2fs::Growth growth;
};

/// The most blocks of a round for each lane, if there are several: rows may have more, so that one
/// operation is enough where parts of blocks and the ends of nodes take lanes of their own.
inline constexpr uint32_t kRoundBlocksOfLane = f2fs::kLaneRowBlocksMax / 2;

GOFS_HD inline uint32_t round_blocks_max(simt::AnyWarp auto warp) {
  return warp.size() == 1 ? f2fs::kRowBlocksMax : warp.size() * kRoundBlocksOfLane;
}

/// How many blocks a round has where `warps` share a write: as many as it may have, or fewer, so
/// that all of them have some, but not so few that commands become small.
GOFS_HD inline uint32_t round_blocks_of(simt::AnyWarp auto warp, uint64_t offset, uint64_t bytes,
                                        uint32_t warps) {
  constexpr uint64_t kLeast = 4;
  const uint64_t blocks = simt::divide_up((offset & (kBlockBytes - 1)) + bytes, kBlockBytes);
  const uint64_t each = simt::max(simt::divide_up(blocks, warps), kLeast);
  return static_cast<uint32_t>(simt::min<uint64_t>(each, round_blocks_max(warp)));
}

/// The pieces of [offset, end) of a file, which is `source`, for operations of one warp.
GOFS_HD inline PieceCut cut_round(simt::AnyWarp auto warp, const f2fs::Inode& inode,
                                  uint64_t offset, uint64_t end, const uint8_t* source,
                                  bool singly) {
  if (singly) return PieceCut(inode, offset, end, source, 1);
  const uint64_t blocks = simt::divide_up(end, kBlockBytes) - (offset >> kBlockShift);
  const uint32_t most = pick_row(warp, blocks, [&](uint32_t blocks_of_row) {
    return PieceCut(inode, offset, end, source, blocks_of_row).count();
  });
  return PieceCut(inode, offset, end, source, most);
}

/// Writes a share of what `source` has from its beginning on. Collective, uniform. Where, in bytes
/// from `offset` on, it could not go on.
GOFS_NOINLINE GOFS_HD inline IoFailure write_striped(simt::AnyWarp auto warp, Filesystem& fs,
                                                     const f2fs::FileHold& file,
                                                     const uint8_t* source,
                                                     const WriteShare& share) {
  constexpr uint32_t kPages = kPagesToBeginWrite + f2fs::kPagesToWriteRun;
  const uint64_t end = share.offset + share.bytes;
  const uint64_t stride = uint64_t{share.warp_count} * share.round_blocks;
  uint64_t begins_to = share.begins_to;
  bool singly = false;
  uint64_t round = (share.offset >> kBlockShift) + uint64_t{share.warp_index} * share.round_blocks;
  for (; round << kBlockShift < end; round += stride) {
    const uint64_t round_end = simt::min(end, (round + share.round_blocks) << kBlockShift);
    for (uint64_t at = simt::max(share.offset, round << kBlockShift); at < round_end;) {
      const PieceCut cut =
          cut_round(warp, file.inode, at, round_end, source + (at - share.offset), singly);
      const uint32_t lanes = warp.ballot(warp.thread_rank() < cut.count());
      const f2fs::WritePiece piece = cut.piece(simt::min(warp.thread_rank(), cut.count() - 1));
      const int error = operate(warp, fs, kPages, [&](f2fs::Operation& op) {
        const int begun =
            begins_to != 0 ? begin_write(warp, op, fs, file, share.begins_from, begins_to) : 0;
        if (begun < 0) return begun;
        return f2fs::write_pieces(warp, op, lanes, file, piece, share.growth);
      });
      if ((error == -ENOSPC || error == -EIO) && !singly &&
          warp.any(piece.bytes > uint32_t{kBlockBytes})) {
        singly = true;  // which finds out how far it goes
        continue;
      }
      if (error < 0) return {at - share.offset, error};
      begins_to = 0;
      at = warp.shfl(piece.offset + piece.bytes, warp.size() - 1);
    }
  }
  return {kOffsetMax, 0};
}

}  // namespace gofs::vfs::detail
