// SPDX-License-Identifier: Apache-2.0
//
// Looking into rings that are far away: across PCIe, where a look takes more than a microsecond,
// however many words it is for. So one warp looks, at as many slots at once as it can, and hands on
// what it finds (found_calls.h).
#pragma once

#include "serve/serve.h"

namespace gofs::serve {

/// What a look has come to.
struct FarLook {
  bool any;        // calls were found
  bool keeps;      // one of them is the caller's own
  FoundCall kept;  // if so
};

namespace detail {

/// Enters the channels of what each lane in `lanes` has found. Collective; those lanes whose
/// channel is open.
GOFS_HD inline uint32_t enter_found(simt::AnyWarp auto warp, const Server& server, uint32_t lanes,
                                    uint32_t channel) {
  uint32_t entered = 0;
  for (uint32_t left = lanes; left != 0;) {
    const uint32_t number = warp.shfl(channel, simt::lowest_bit(left));
    const uint32_t same = warp.ballot((left >> warp.thread_rank() & 1u) != 0 && channel == number);
    left &= ~same;
    uint32_t inside = 0;
    if (warp.thread_rank() == 0) {
      inside = enter_channel(server.channels[number], simt::popcount(same)) ? 1 : 0;
    }
    if (warp.shfl(inside, 0) != 0) entered |= same;
  }
  warp.sync();
  return entered;
}

/// Hands on the call that each lane in `lanes` has found. Collective.
GOFS_NOINLINE GOFS_HD inline void hand_on(simt::AnyWarp auto warp, const Server& server,
                                          uint32_t lanes, const FoundCall& call, bool may_keep,
                                          FarLook& look) {
  lanes = enter_found(warp, server, lanes, call.channel);
  if (lanes == 0) return;
  if ((lanes >> warp.thread_rank() & 1u) != 0) {
    simt::store_relaxed(server.channels[call.channel].taken[call.place.slot], call.place.lap + 1);
  }
  look.any = true;
  if (may_keep && !look.keeps) {
    const uint32_t lane = simt::lowest_bit(lanes);
    lanes &= lanes - 1;
    look.keeps = true;
    look.kept = {warp.shfl(call.channel, lane),
                 {warp.shfl(call.place.slot, lane), warp.shfl(call.place.lap, lane)}};
  }
  if (lanes != 0) push(warp, *server.found, lanes, call);
}

/// One slot of a lane's, as it was seen.
struct FarSlot {
  FoundCall call;  // if there is one
  uint32_t published;
  uint32_t answered;  // from the slot before, perhaps more by now

  GOFS_HD bool is_found() const { return published == call.place.lap + 1; }
};

/// Whether what was found may be taken: none that was taken from its slot before is under way.
/// After acquire_loaded().
GOFS_HD inline bool may_take(const Server& server, const FarSlot& seen) {
  if (!seen.is_found()) return false;
  const FoundCall& call = seen.call;
  return seen.answered == call.place.lap ||
         simt::load_relaxed(server.channels[call.channel].answered[call.place.slot]) ==
             call.place.lap;
}

/// Slot `index` of all slots of all runs. `lap` is how many were taken from it. (An old count is
/// of the channel's last client. The new one's first request is not mistaken for another by that,
/// and before its next is published the count is its own.)
GOFS_HD inline FarSlot see_far(const Server& server, uint32_t index, uint32_t end) {
  FarSlot seen{{0, {0, 0}}, 0, 0};
  if (index >= end) return seen;
  const SlotRun& run = server.runs[index / kRunSlots];
  const uint32_t* const published = simt::load_system_to_acquire(run.published);  // [H7]
  const uint32_t slot = index % kRunSlots;
  if (published == nullptr || slot >= run.count) return seen;
  seen.published = simt::load_system_to_acquire(published[slot]);
  seen.call = {run.channel, {run.first + slot, simt::load_relaxed(run.taken[slot])}};
  seen.answered = simt::load_relaxed(run.answered[slot]);
  return seen;
}

}  // namespace detail

/// Looks at all slots of all channels and pushes the calls that are published there and were not
/// found before; but for one, which the caller performs, if `may_keep`. Collective, uniform, by one
/// warp at a time. The host lets no ring go meanwhile.
GOFS_HD inline FarLook look_far(simt::AnyWarp auto warp, const Server& server, bool may_keep) {
  // Of a lane. What is loaded together takes as long as one of them.
  constexpr uint32_t kSlotsAtOnce = 8;
  FarLook look{false, false, {}};
  const uint32_t width = warp.size();
  const uint32_t end = warp.shfl(simt::load_acquire(server.run_count), 0) * kRunSlots;  // [H7]
  warp.sync();  // what one lane has acquired, for all
  for (uint32_t first = 0; first < end; first += kSlotsAtOnce * width) {
    detail::FarSlot seen[kSlotsAtOnce];
    bool finds = false;
    for (uint32_t i = 0; i < kSlotsAtOnce; ++i) {
      seen[i] = detail::see_far(server, first + i * width + warp.thread_rank(), end);
    }
    for (uint32_t i = 0; i < kSlotsAtOnce; ++i) finds = finds || seen[i].is_found();
    if (!warp.any(finds)) continue;
    simt::acquire_loaded();  // [H1]
    for (uint32_t i = 0; i < kSlotsAtOnce; ++i) {
      const uint32_t lanes = warp.ballot(detail::may_take(server, seen[i]));
      if (lanes != 0) detail::hand_on(warp, server, lanes, seen[i].call, may_keep, look);
    }
  }
  return look;
}

}  // namespace gofs::serve
