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
      inside = enter_gate(server.channels[number].gate, simt::popcount(same)) ? 1 : 0;
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

/// Run `index`, as a lane sees it; where there is none, one of a channel that is not open.
GOFS_HD inline SlotRun see_run(const Server& server, uint32_t index, uint32_t end) {
  if (index >= end) return {nullptr, nullptr, nullptr, 0, 0, 0};
  const SlotRun& run = server.runs[index];
  return {simt::load_system_to_acquire(run.published),  // [H7]
          run.taken,
          run.answered,
          run.channel,
          run.first,
          run.count};
}

/// The pointer that lane `lane` has. Collective.
template <typename T>
GOFS_HD inline const T* pointer_of(simt::AnyWarp auto warp, const T* mine, uint32_t lane) {
  return reinterpret_cast<const T*>(warp.shfl(reinterpret_cast<uint64_t>(mine), lane));
}

/// A slot, as it was seen. (`taken` may be the count of the channel's last client. The new one's
/// first request is not mistaken for another by that, and before its next is published the count is
/// its own.)
struct SeenSlot {
  uint32_t number;  // in its run
  uint32_t published;
  uint32_t taken;     // from the slot
  uint32_t answered;  // perhaps more by now

  GOFS_HD bool is_found() const { return published == taken + 1; }
};

/// Slot `number` of the run that lane `lane` has seen. Collective.
GOFS_HD inline SeenSlot see_slot(simt::AnyWarp auto warp, const SlotRun& mine, uint32_t lane,
                                 uint32_t number) {
  const uint32_t* const published = pointer_of(warp, mine.published, lane);
  const uint32_t* const taken = pointer_of(warp, mine.taken, lane);
  const uint32_t* const answered = pointer_of(warp, mine.answered, lane);
  SeenSlot seen{number, 0, 0, 0};
  if (number >= warp.shfl(mine.count, lane)) return seen;
  seen.published = simt::load_system_to_acquire(published[number]);
  seen.taken = simt::load_relaxed(taken[number]);
  seen.answered = simt::load_relaxed(answered[number]);
  return seen;
}

/// Whether what was found may be taken: none that was taken from its slot before is under way.
/// After acquire_loaded().
GOFS_HD inline bool may_take(const Server& server, const SeenSlot& seen, const FoundCall& call) {
  if (!seen.is_found()) return false;
  return seen.answered == call.place.lap ||
         simt::load_relaxed(server.channels[call.channel].answered[call.place.slot]) ==
             call.place.lap;
}

/// Slots that a lane loads together, which takes as long as one.
inline constexpr uint32_t kSlotsAtOnce = 16;

/// Looks at the first of the runs in `lanes`, as many as kSlotsAtOnce slots of each lane hold;
/// where they hold less than a run, at its slots from `first` on. Collective.
GOFS_HD inline void look_at_runs(simt::AnyWarp auto warp, const Server& server, const SlotRun& mine,
                                 uint32_t lanes, uint32_t first, bool may_keep, FarLook& look) {
  const uint32_t width = warp.size();
  SeenSlot seen[kSlotsAtOnce];
  uint32_t lane_of[kSlotsAtOnce];
  bool finds = false;
  for (uint32_t i = 0; i < kSlotsAtOnce; ++i) {
    seen[i] = {0, 0, 0, 0};
    lane_of[i] = 0;
    if (lanes == 0) continue;
    lane_of[i] = simt::lowest_bit(lanes);
    const uint32_t at = i * width;
    seen[i] = see_slot(warp, mine, lane_of[i], first + at % kRunSlots + warp.thread_rank());
    if ((at + width) % kRunSlots == 0) lanes &= lanes - 1;
  }
  for (uint32_t i = 0; i < kSlotsAtOnce; ++i) finds = finds || seen[i].is_found();
  if (!warp.any(finds)) return;
  simt::acquire_loaded();  // [H1]
  for (uint32_t i = 0; i < kSlotsAtOnce; ++i) {
    if (!warp.any(seen[i].is_found())) continue;
    const uint32_t slot = warp.shfl(mine.first, lane_of[i]) + seen[i].number;
    const FoundCall call{warp.shfl(mine.channel, lane_of[i]), {slot, seen[i].taken}};
    const uint32_t found = warp.ballot(may_take(server, seen[i], call));
    if (found != 0) hand_on(warp, server, found, call, may_keep, look);
  }
}

}  // namespace detail

/// Looks at all slots of all open channels and pushes the calls that are published there and were
/// not found before; but for one, which the caller performs, if `may_keep`. Collective, uniform, by
/// one warp at a time. The host lets no ring go meanwhile.
GOFS_HD inline FarLook look_far(simt::AnyWarp auto warp, const Server& server, bool may_keep) {
  FarLook look{false, false, {}};
  const uint32_t width = warp.size();
  const uint32_t slots = detail::kSlotsAtOnce * width;
  const uint32_t runs = simt::max(slots / kRunSlots, 1u);  // that are looked at together
  const uint32_t end = warp.shfl(simt::load_acquire(server.run_count), 0);  // [H7]
  warp.sync();  // what one lane has acquired, for all
  for (uint32_t base = 0; base < end; base += width) {
    const SlotRun mine = detail::see_run(server, base + warp.thread_rank(), end);
    for (uint32_t open = warp.ballot(mine.published != nullptr); open != 0;) {
      for (uint32_t first = 0; first < kRunSlots; first += slots) {
        detail::look_at_runs(warp, server, mine, open, first, may_keep, look);
      }
      for (uint32_t i = 0; i < runs; ++i) open &= open - 1;
    }
  }
  return look;
}

}  // namespace gofs::serve
