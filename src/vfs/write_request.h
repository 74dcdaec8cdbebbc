// SPDX-License-Identifier: Apache-2.0
//
// One write of a file, by a warp or by the warps of a block or a grid together (simt/warp_group.h):
// one of them plans it and locks what it needs (write_hold.h), all of them write their rounds
// (write_rounds.h), one unlocks. It is one hold, so two such writes that overlap never mix.
//
// A file that grows has its new size as soon as a round behind the old end is there, whose warp may
// be ahead of others: only stat(), and a mount after a crash, may find holes there that are yet to
// be written. No reader finds them, since the range is locked.
#pragma once

#include "f2fs/punch_hole.h"
#include "vfs/append.h"
#include "vfs/fsync.h"
#include "vfs/read_together.h"
#include "vfs/write_hold.h"
#include "vfs/write_rounds.h"

namespace gofs::vfs::detail {

/// Where the bytes of a write come from: parts, one behind the other in the file.
struct WriteSource {
  const IoVector* parts;
  int count;
  uint64_t bytes;  // of all of them, not 0
};

GOFS_HD inline IoVector one_part(const void* buffer, uint64_t bytes) {
  return {const_cast<void*>(buffer), bytes};  // which is only read
}

/// Plans a write of `bytes`, not 0, at `offset` and locks what it needs. Collective, uniform, by
/// one warp that holds no locks. `begun.result` is 0, or a negative errno, and nothing is locked.
GOFS_NOINLINE GOFS_HD inline void begin_request(simt::AnyWarp auto warp, Filesystem& fs,
                                                OpenInode& open, uint64_t bytes, bool append,
                                                uint64_t offset, SharedWrite& begun) {
  begun = SharedWrite{};
  begun.bytes = bytes;
  begun.offset = offset;
  begun.failure = kNoFailure;
  const bool fits = append || offset < f2fs::kFileBytesMax;
  begun.result = fits ? prepare_to_write(warp, fs, open, bytes) : -EFBIG;
  if (begun.result < 0) return;
  WritePlan plan{};
  begun.result = acquire(warp, fs, open, bytes, append, begun.offset, plan, begun.hold);
  if (begun.result < 0) return;
  if (begun.offset >= f2fs::kFileBytesMax) {
    release(warp, fs, begun.hold);
    begun.result = -EFBIG;
    return;
  }
  begun.bytes = simt::min(bytes, f2fs::kFileBytesMax - begun.offset);
  begun.settled_before = warp.shfl(simt::load_relaxed(open.inode.settled_bytes), 0);
  begun.in_place = plan.in_place && begun.hold.kind() == Hold::kBlocks;
  if (needs_begin(warp, fs, open.inode, plan)) begun.begins_to = begun.offset + begun.bytes;
  if (plan.clears) begun.begins_from = begun.offset;
}

/// Makes the file what it was behind the `good` bytes of a write that failed there, as far as the
/// write's blocks go: what lies before them, up to where the file ended, others may have written
/// meanwhile. Collective, uniform.
GOFS_NOINLINE GOFS_HD inline void take_back(simt::AnyWarp auto warp, Filesystem& fs,
                                            const SharedWrite& shared, uint64_t good) {
  const f2fs::FileHold file = held_file(shared.hold);
  f2fs::Inode& inode = file.inode;
  const uint64_t end = shared.offset + shared.bytes;
  const uint64_t good_end = good == 0 ? 0 : shared.offset + good;
  const uint64_t kept =
      simt::max(simt::max(shared.settled_before, shared.hold.range().offset), good_end);
  if (kept >= end || inode.has_inline_data()) return;
  // The caller gets the error of the write, not of this.
  int error = 0;
  for (uint64_t from = simt::align_up(kept, uint64_t{kBlockBytes}); error == 0 && from < end;) {
    error = operate(warp, fs, f2fs::kPagesToPunch, [&](f2fs::Operation& op) {
      return f2fs::punch_hole(warp, op, file, from, simt::align_up(end, uint64_t{kBlockBytes}));
    });
  }
  (void)operate(warp, fs, 1, [&](f2fs::Operation& op) {
    return f2fs::take_back_growth(warp, op, inode, good_end, end);
  });
}

/// Has the file stay as long as a write has made it that ends at `end`. Collective, uniform. 0, or
/// a negative errno, of a file that is shorter.
GOFS_HD inline int keep_growth(simt::AnyWarp auto warp, Filesystem& fs, f2fs::Inode& inode,
                               uint64_t end) {
  if (!warp.any(warp.thread_rank() == 0 && simt::load_relaxed(inode.settled_bytes) < end)) return 0;
  if (f2fs::settle_growth(warp, fs.volume, inode, end)) return 0;
  return operate(warp, fs, kPagesToBeginWrite, [&](f2fs::Operation& op) {
    f2fs::InodeUpdate update = f2fs::update_of_times(op.now);
    update.size_least = end;
    const int error = f2fs::keep_inode(warp, op, inode.ino);
    return error < 0 ? error : f2fs::bring_up_to_date(warp, op, inode, update);
  });
}

/// After the rounds: unlocks what begin_request() has locked. Collective, uniform, by one warp. The
/// result of the write.
GOFS_NOINLINE GOFS_HD inline int64_t end_request(simt::AnyWarp auto warp, Filesystem& fs,
                                                 const SharedWrite& shared) {
  int64_t result = io_outcome(shared.bytes, unpack_failure(simt::load_relaxed(shared.failure)));
  const uint64_t good = result < 0 ? 0 : static_cast<uint64_t>(result);
  if (good < shared.bytes) take_back(warp, fs, shared, good);
  if (good != 0) {
    const int kept = keep_growth(warp, fs, shared.hold.open().inode, shared.offset + good);
    if (kept < 0) result = kept;
  }
  release(warp, fs, shared.hold);
  return result;
}

/// One warp's rounds of a part of the write that lies `done` bytes behind its beginning.
/// Collective, uniform.
GOFS_NOINLINE GOFS_HD inline IoFailure write_part(simt::AnyWarp auto warp, Filesystem& fs,
                                                  const SharedWrite& shared, const uint8_t* from,
                                                  uint64_t bytes, uint64_t done, uint32_t index,
                                                  uint32_t sharers) {
  const f2fs::FileHold file = held_file(shared.hold);
  const uint64_t offset = shared.offset + done;
  if (shared.in_place) {
    const f2fs::WritePiece piece{offset, static_cast<uint32_t>(bytes), from};
    if (write_in_place(warp, fs, file, 1u, piece) != 0) return {kOffsetMax, 0};
  }
  // One operation is written as a whole or not at all.
  const bool whole = sharers == 1 && bytes == shared.bytes &&
                     (offset & (kBlockBytes - 1)) + bytes <= uint64_t{warp.size()} * kBlockBytes;
  return write_striped(
      warp, fs, file, from,
      {bytes, offset, index, sharers, round_blocks_of(warp, offset, bytes, sharers),
       shared.begins_from, done == 0 ? shared.begins_to : 0,
       whole ? f2fs::Growth::kStays : f2fs::Growth::kTentative});
}

/// This warp's share of all parts, one after the other: a block in which two of them meet is not
/// written by two warps at once. By all warps of `group`.
template <typename WarpGroup>
GOFS_HD void write_parts(const WarpGroup& group, Filesystem& fs, SharedWrite& shared,
                         const WriteSource& source) {
  const auto warp = group.warp();
  // Bytes in an inode are too few to be shared, and its page is changed as one.
  const uint32_t sharers = shared.in_inode ? 1 : group.count();
  uint64_t done = 0;
  for (int i = 0; i < source.count && done < shared.bytes; ++i) {
    const uint64_t part = simt::min(source.parts[i].bytes, shared.bytes - done);
    if (part == 0) continue;
    if (group.index() < sharers) {
      IoFailure failed =
          write_part(warp, fs, shared, static_cast<const uint8_t*>(source.parts[i].base), part,
                     done, group.index(), sharers);
      failed.at += done;
      if (failed.error != 0 && warp.thread_rank() == 0) {
        simt::AtomicRef<uint64_t>(shared.failure)
            .fetch_min(pack_failure(failed), simt::memory_order_relaxed);
      }
    }
    done += part;
    group.sync();
    // One of a later part may be there already, by a warp that is ahead.
    if (unpack_failure(simt::load_relaxed(shared.failure)).at < done) break;
  }
}

/// Writes `source` at `offset`, or where `append` at the end, by one warp. Collective, uniform.
/// Bytes written, or a negative errno; `offset` becomes where they went.
GOFS_NOINLINE GOFS_HD inline int64_t write_by_warp(simt::AnyWarp auto warp, Filesystem& fs,
                                                   OpenInode& open, const WriteSource& source,
                                                   bool append, uint64_t& offset) {
  SharedWrite write{};
  begin_request(warp, fs, open, source.bytes, append, offset, write);
  if (write.result < 0) return write.result;
  offset = write.offset;
  uint64_t done = 0;
  for (int i = 0; i < source.count && done < write.bytes; ++i) {
    const uint64_t part = simt::min(source.parts[i].bytes, write.bytes - done);
    if (part == 0) continue;
    IoFailure failed = write_part(
        warp, fs, write, static_cast<const uint8_t*>(source.parts[i].base), part, done, 0, 1);
    if (failed.error != 0) {
      failed.at += done;
      write.failure = pack_failure(failed);
      break;
    }
    done += part;
  }
  return end_request(warp, fs, write);
}

/// Makes durable what was written through a descriptor that was opened so.
GOFS_HD inline int sync_if_asked(simt::AnyWarp auto warp, Filesystem& fs,
                                 const Descriptor& descriptor) {
  if ((descriptor.flags & kOpenDataSync) == 0) return 0;
  return sync_inode(warp, fs, fs.open_inodes[descriptor.open_inode].inode.ino,
                    scope_of_flags(descriptor.flags));
}

}  // namespace gofs::vfs::detail
