// SPDX-License-Identifier: Apache-2.0
//
// Calls that one warp has found in the rings of clients, on their way to the warps that perform
// them. Where warps are far from the rings, one of them looks there, and the others at the two
// words of this queue, which are near and change only when there is something to do.
//
//   who looks: push          [H4]
//   all: take
//
// One warp at a time pushes. A call is in its channel from then on (gate.h).
#pragma once

#include "serve/ring.h"
#include "simt/warp.h"

namespace gofs::serve {

/// A request that was found, and not taken before.
struct FoundCall {
  uint32_t channel;
  RingPlace place;
};

struct FoundCalls {
  // A power of two of them, and no less than there are slots. It is never full: of a slot no other
  // call is found before the last one is answered.
  uint64_t* words;
  uint32_t mask;
  alignas(128) uint32_t pushed;
  alignas(128) uint32_t taken;
};

inline constexpr uint32_t kSlotBits = 12;
inline constexpr uint32_t kChannelsMax = 1u << (32 - kSlotBits);
static_assert(kRingDepthMax <= 1u << kSlotBits);

namespace detail {

GOFS_HD constexpr uint64_t pack_call(const FoundCall& call) {
  return uint64_t{call.place.lap} << 32 | call.channel << kSlotBits | call.place.slot;
}
GOFS_HD constexpr FoundCall unpack_call(uint64_t word) {
  const auto low = static_cast<uint32_t>(word);
  return {low >> kSlotBits, {low & ((1u << kSlotBits) - 1), static_cast<uint32_t>(word >> 32)}};
}

/// Whether a call was pushed that is not among the first `taken`. The two counts are read in any
/// order, so `pushed` may be seen as it was before the calls that are taken were pushed.
GOFS_HD constexpr bool is_behind(uint32_t taken, uint32_t pushed) {
  return static_cast<int32_t>(pushed - taken) > 0;
}

}  // namespace detail

/// Pushes the call of each lane in `lanes`. Collective.
GOFS_HD inline void push(simt::AnyWarp auto warp, FoundCalls& queue, uint32_t lanes,
                         const FoundCall& call) {
  const uint32_t rank = warp.thread_rank();
  const uint32_t before = warp.shfl(simt::load_relaxed(queue.pushed), 0);
  if ((lanes >> rank & 1u) != 0) {
    const uint32_t place = before + simt::popcount(lanes & simt::ranks_below(rank));
    simt::store_relaxed(queue.words[place & queue.mask], detail::pack_call(call));
  }
  warp.sync();
  if (rank == 0) simt::store_release(queue.pushed, before + simt::popcount(lanes));  // [H4]
}

/// Takes a call that was pushed, if there is one. Collective, uniform.
GOFS_HD inline bool take(simt::AnyWarp auto warp, FoundCalls& queue, FoundCall& call) {
  uint32_t took = 0;
  uint64_t word = 0;
  if (warp.thread_rank() == 0) {
    uint32_t taken = simt::load_relaxed(queue.taken);
    while (detail::is_behind(taken, simt::load_relaxed(queue.pushed))) {
      (void)simt::load_acquire(queue.pushed);  // [H4]
      // Before it is taken: then another one may lie there.
      word = simt::load_relaxed(queue.words[taken & queue.mask]);
      took = simt::AtomicRef<uint32_t>(queue.taken)
                     .compare_exchange_strong(taken, taken + 1, simt::memory_order_relaxed,
                                              simt::memory_order_relaxed)
                 ? 1
                 : 0;
      if (took != 0) break;
    }
  }
  took = warp.shfl(took, 0);
  if (took == 0) return false;
  call = detail::unpack_call(warp.shfl(word, 0));
  warp.sync();  // what one lane has acquired, for all
  return true;
}

}  // namespace gofs::serve
