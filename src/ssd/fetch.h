// SPDX-License-Identifier: Apache-2.0
//
// Taking commands out of a submission queue. No lock: many warps that wait for completions share
// the backlog, each taking a few commands at a time.
#pragma once

#include "ssd/controller_state.h"

namespace gofs::ssd {

/// Commands that one warp takes at a time. More would leave other waiters idle.
inline constexpr uint32_t kClaimMax = 8;

/// What a warp took: `count` commands from `first` on, and the queue as it was then.
struct Claim {
  RingPlace first{0};
  uint32_t count = 0;
  uint32_t depth = 0;
  uint64_t entries = 0;
  uint64_t completion_entries = 0;
  CompletionMode mode = CompletionMode::kPending;  // also when nothing was taken
};

namespace detail {

/// One lane.
GOFS_HD inline void record_invalid_doorbell(SubmissionQueue& queue, uint32_t value) {
  if (simt::load_relaxed(queue.invalid_doorbell_seen) == value + 1) return;
  simt::store_relaxed(queue.invalid_doorbell_seen, value + 1);
  simt::add_relaxed(queue.invalid_doorbells, uint64_t{1});
}

/// Commands, up to `wanted`, that may be taken from `claim.first` on. Collective, uniform.
GOFS_HD inline uint32_t available_commands(simt::AnyWarp auto warp, VirtualController& controller,
                                           SubmissionQueue& queue, uint32_t qid, const Claim& claim,
                                           uint32_t wanted) {
  const uint32_t rank = warp.thread_rank();
  const bool direct = claim.mode == CompletionMode::kDirect;
  // Both doorbells in one round trip, by two lanes. They are read after `claimed`: if `claimed` has
  // not moved when it is swapped, they are newer than it, and the distances below are true. A tail
  // that is older than `claimed` could lie behind it, and the distance would count a whole ring of
  // entries that are not there.
  uint32_t doorbell = 0;
  if (rank == 0) {
    doorbell = simt::load_system_acquire(controller.submission_doorbell(qid));  // [N4]
  } else if (rank == 1 && direct) {
    doorbell = simt::load_system_acquire(controller.completion_doorbell(qid));
  }
  const uint32_t tail = warp.shfl(doorbell, 0);
  uint32_t head = 0;
  if (direct) {
    head = warp.size() > 1 ? warp.shfl(doorbell, 1)
                           : simt::load_system_acquire(controller.completion_doorbell(qid));
  }
  warp.sync();
  if (tail >= claim.depth) {
    if (rank == 0) record_invalid_doorbell(queue, tail);
    return 0;
  }
  const uint32_t index = claim.first.index();
  const uint32_t backlog = tail >= index ? tail - index : tail + claim.depth - index;
  uint32_t count = simt::min(backlog, wanted);
  if (count == 0) return 0;
  if (direct) {
    // Completions that the driver has not consumed, posted or still to come, are the distance from
    // its head to `claimed`.
    if (head >= claim.depth) return 0;
    const uint32_t unconsumed = index >= head ? index - head : index + claim.depth - head;
    return simt::min(count, claim.depth - 1 - unconsumed);
  }
  bool occupied = false;
  if (rank < count) {
    const RingPlace place = claim.first.plus(rank, claim.depth);
    // [S7] Who had the record for the lap before is done with it. The driver's word is not enough:
    // it may use the entry again from when the entry is read, long before the command completes.
    occupied = simt::load_acquire(queue.records[place.index()].turn) !=
               PendingRecord::turn_none(place.lap());
  }
  const uint32_t occupied_ranks = warp.ballot(occupied);
  return occupied_ranks == 0 ? count : simt::lowest_bit(occupied_ranks);
}

}  // namespace detail

/// Takes up to a command per lane. Collective, uniform. The entries may be read when this returns.
GOFS_HD inline Claim claim_commands(simt::AnyWarp auto warp, VirtualController& controller,
                                    SubmissionQueue& queue, uint32_t qid) {
  constexpr uint32_t kAttempts = 4;
  const uint32_t rank = warp.thread_rank();
  const uint32_t wanted = simt::min(warp.size(), kClaimMax);
  for (uint32_t attempt = 0; attempt < kAttempts; ++attempt) {
    uint64_t word = 0;
    if (rank == 0) word = simt::load_acquire(queue.claimed);  // [S1]
    Claim claim;
    claim.first = RingPlace{warp.shfl(word, 0)};
    if (claim.first.closed()) return {};
    warp.sync();
    // The queue may be deleted and made again under our eyes; then the swap fails.
    claim.depth = simt::load_relaxed(queue.depth);
    claim.entries = simt::load_relaxed(queue.entries);
    claim.completion_entries = simt::load_relaxed(queue.completion_entries);
    claim.mode = simt::load_relaxed(queue.mode);
    claim.count = detail::available_commands(warp, controller, queue, qid, claim, wanted);
    if (claim.count == 0) return claim;
    uint32_t taken = 0;
    if (rank == 0) {
      uint64_t expected = claim.first.word;
      taken =
          simt::AtomicRef<uint64_t>(queue.claimed)
              .compare_exchange_strong(expected, claim.first.plus(claim.count, claim.depth).word,
                                       simt::memory_order_relaxed, simt::memory_order_relaxed);
    }
    if (warp.shfl(taken, 0) != 0) return claim;
  }
  return {};
}

}  // namespace gofs::ssd
