// SPDX-License-Identifier: Apache-2.0
//
// Calls that all warps of a grid make together. They meet in words that all of them reach, of which
// the volume has some sets: kernels in several streams may make such calls on one volume at the
// same time, each in a set of its own. The first warp claims one for the launch, the others find it
// by that after the barrier with which each call begins, and it is free again when the last block
// has left.
//
// A GPU runs at most 128 grids at once. The first warp of one may be a call ahead of those who
// still leave the last one, so 256 sets are enough for all.
#pragma once

#include "vfs/filesystem.h"

namespace gofs::vfs {

namespace detail {

inline constexpr uint32_t kGridBlockBits = 15;  // more blocks do not run at once
inline constexpr uint64_t kGridBlocksMax = (uint64_t{1} << kGridBlockBits) - 1;

/// How a launch is known in GridCalls::users, without its blocks: by 49 bits of its id.
GOFS_HD constexpr uint64_t grid_key(uint64_t launch) { return launch << kGridBlockBits; }

/// Which of the sets is looked at first.
GOFS_HD constexpr uint32_t first_meeting(uint64_t launch) {
  return static_cast<uint32_t>(launch * 0x9E3779B97F4A7C15ull >> 32) % kGridCalls;
}

/// Claims a set for a call of all `blocks` of `launch`. One lane. False: all were in use until
/// `deadline`.
GOFS_HD inline bool claim_meeting(GridCalls& calls, uint64_t launch, uint32_t blocks,
                                  const simt::Deadline& deadline) {
  GOFS_ASSERT(blocks != 0 && blocks <= kGridBlocksMax);
  simt::Backoff backoff;
  for (;;) {
    for (uint32_t i = 0; i < kGridCalls; ++i) {
      const uint32_t index = (first_meeting(launch) + i) % kGridCalls;
      uint64_t users = simt::load_relaxed(calls.users[index]);
      if ((users & kGridBlocksMax) != 0) continue;
      if (simt::AtomicRef<uint64_t>(calls.users[index])
              .compare_exchange_strong(users, grid_key(launch) | blocks, simt::memory_order_acquire,
                                       simt::memory_order_relaxed)) {  // [V21]
        simt::store_relaxed(calls.meetings[index].answer, int64_t{0});
        return true;
      }
    }
    if (deadline.passed()) return false;
    backoff.pause();
  }
}

/// The set that was claimed for the call of `launch` under way, or null. Collective, uniform; the
/// caller's block has not left.
GOFS_HD inline GridMeeting* find_meeting(simt::AnyWarp auto warp, GridCalls& calls,
                                         uint64_t launch) {
  for (uint32_t base = 0; base < kGridCalls; base += warp.size()) {
    const uint32_t index = (first_meeting(launch) + base + warp.thread_rank()) % kGridCalls;
    const uint64_t users = simt::load_relaxed(calls.users[index]);
    // One that the launch has left says so still, until another claims it.
    const bool found =
        (users & kGridBlocksMax) != 0 && (users & ~kGridBlocksMax) == grid_key(launch);
    const uint32_t lanes = warp.ballot(found);
    if (lanes != 0) return &calls.meetings[warp.shfl(index, simt::lowest_bit(lanes))];
  }
  return nullptr;
}

}  // namespace detail

/// Begins a call of all warps of `group`, which sees then what all of it has done before. Where
/// they meet, the same for all and with an `answer` of 0, or null: other grids had all sets until
/// the time for locks was over. `Volume`: a Filesystem, or what is a kernel's instead of it.
template <typename Volume>
GOFS_HD GridMeeting* begin_grid_call(const simt::GridGroup& group, Volume& volume) {
  const auto warp = group.warp();
  if (group.index() == 0 && warp.thread_rank() == 0) {
    (void)detail::claim_meeting(volume.grids, group.launch(), group.blocks(),
                                simt::Deadline::after_ns(volume.lock_timeout_ns));
  }
  group.sync();
  return detail::find_meeting(warp, volume.grids, group.launch());
}

/// Ends it, when the caller has read what it wants from `meeting`. By all warps of `group`.
template <typename Volume>
GOFS_HD void end_grid_call(const simt::GridGroup& group, Volume& volume,
                           const GridMeeting& meeting) {
  if (!group.block_is_here()) return;
  uint64_t& users = volume.grids.users[&meeting - volume.grids.meetings];
  simt::count_release(users, ~uint64_t{0});  // [V21]
}

}  // namespace gofs::vfs
