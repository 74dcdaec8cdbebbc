// SPDX-License-Identifier: Apache-2.0
//
// Locking blocks of an open file, and the tokens of it: a WriteHold (write_plan.h), which release()
// takes, and of that a f2fs::FileHold, which what changes the file takes. Here are the holds of a
// range or of the whole file; those of blocks, and what a write needs: write_hold.h.
#pragma once

#include "f2fs/file_hold.h"
#include "vfs/block_span.h"

namespace gofs::vfs::detail {

/// What makes the tokens, for what locks here and in write_hold.h, write_lanes.h and async_write.h.
struct HoldMaker {
  GOFS_HD static void fill(WriteHold& hold, OpenInode& open, Hold kind, const ByteRange& range,
                           bool shares_end) {
    hold.open_ = &open;
    hold.ring_ = {};
    hold.range_ = range;
    hold.kind_ = kind;
    hold.shares_end_ = shares_end;
  }
  GOFS_HD static void empty(WriteHold& hold) { hold.open_ = nullptr; }
  GOFS_HD static RangeHold& ring(WriteHold& hold) { return hold.ring_; }
  GOFS_HD static const RangeHold& ring(const WriteHold& hold) { return hold.ring_; }
  GOFS_HD static bool shares_end(const WriteHold& hold) { return hold.shares_end_; }
  GOFS_HD static f2fs::FileHold file(OpenInode& open, const ByteRange& range) {
    const uint64_t end = range.offset + range.bytes;
    return {open.inode,
            {range.offset >> kBlockShift,
             end >= kOffsetMax ? f2fs::all_file_blocks().end : simt::divide_up(end, kBlockBytes)}};
  }
};

/// What f2fs/ asks for, of the file and the blocks that `hold` has; until it is released.
GOFS_HD inline f2fs::FileHold held_file(const WriteHold& hold) {
  return HoldMaker::file(hold.open(), hold.range());
}

/// Holds a range in the ring, or as `kWholeFile` all of it. Collective, uniform. 0, or -ETIMEDOUT,
/// and nothing is held.
GOFS_HD inline int hold_in_ring(simt::AnyWarp auto warp, OpenInode& open, Hold kind,
                                const ByteRange& range, const simt::Deadline& deadline,
                                WriteHold& hold) {
  HoldMaker::fill(hold, open, kind, kind == Hold::kWholeFile ? whole_file() : range, false);
  const int error = lock_exclusive(warp, open.lock, hold.range(), deadline, HoldMaker::ring(hold));
  if (error < 0) HoldMaker::empty(hold);
  return error;
}

/// Unlocks it. Collective.
GOFS_NOINLINE GOFS_HD inline void release(simt::AnyWarp auto warp, Filesystem& fs,
                                          const WriteHold& hold) {
  OpenInode& open = hold.open();
  if (hold.kind() != Hold::kBlocks) {
    return unlock_exclusive(warp, open.lock, HoldMaker::ring(hold));
  }
  warp.sync();
  const simt::Release released;
  release_run(warp, released, fs, open, hold.range().offset >> kBlockShift,
              static_cast<uint32_t>(hold.range().bytes >> kBlockShift));
  if (HoldMaker::shares_end(hold)) unshare_end(warp, open.lock, released);
  leave_block_writers(warp, open.lock, released);
}

}  // namespace gofs::vfs::detail
