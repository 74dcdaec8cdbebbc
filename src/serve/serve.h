// SPDX-License-Identifier: Apache-2.0
//
// What a server's warps do: take requests from channels, perform them for whose they are, answer.
#pragma once

#include "request/perform.h"
#include "serve/found_calls.h"
#include "serve/resolve.h"
#include "vfs/clients.h"

namespace gofs::serve {

/// What all warps of a server use, in their memory.
struct Server {
  vfs::Filesystem* fs;
  const request::VerbRow* rows;  // request::kVerbRows
  Channel* channels;
  FoundCalls* found;       // where warps are far from the rings
  const uint32_t* ending;  // not 0: nothing is taken any more; the host's to write
  SlotRun* runs;
  uint32_t count;      // channels behind these were never open
  uint32_t run_count;  // the same of runs [H7]
};

namespace detail {

/// Takes a request that is published, if there is one: the lanes look at as many slots at a time.
/// `place.lap` is how many were taken from the slot before. Collective, uniform.
GOFS_HD inline bool take(simt::AnyWarp auto warp, Channel& channel, RingPlace& place) {
  const Ring& ring = channel.ring;
  const uint32_t first = warp.shfl(simt::load_relaxed(channel.next_slot), 0);
  const uint32_t width = warp.size();
  for (uint32_t seen = 0; seen < ring.depth; seen += width) {
    const uint32_t mine = (first + seen + warp.thread_rank()) & (ring.depth - 1);
    const bool looks = seen + warp.thread_rank() < ring.depth;
    const uint32_t lap = looks ? simt::load_relaxed(channel.taken[mine]) : 0;
    uint32_t ready = warp.ballot(looks && is_published(ring, {mine, lap}) &&
                                 simt::load_relaxed(channel.answered[mine]) == lap);
    for (; ready != 0; ready &= ready - 1) {
      const uint32_t lane = simt::lowest_bit(ready);
      uint32_t won = 0;
      if (warp.thread_rank() == lane) {
        uint32_t expected = lap;
        // Nothing is handed over: the request is, by [H1].
        won = simt::AtomicRef<uint32_t>(channel.taken[mine])
                      .compare_exchange_strong(expected, lap + 1, simt::memory_order_relaxed)
                  ? 1
                  : 0;
      }
      if (warp.shfl(won, lane) == 0) continue;
      place.slot = warp.shfl(mine, lane);
      place.lap = warp.shfl(lap, lane);
      if (warp.thread_rank() == 0) {
        simt::store_relaxed(channel.next_slot, (place.slot + 1) & (ring.depth - 1));
      }
      warp.sync();  // one lane has acquired the request, for all
      return true;
    }
  }
  return false;
}

/// Copies a request, and the first of its texts, out of memory that its client may be writing: each
/// word once, so that all lanes see the same one, and all together, since that memory may be far.
/// Collective.
GOFS_HD inline void copy_request(simt::AnyWarp auto warp, const Ring& ring, uint32_t slot,
                                 CallRoom& room) {
  static_assert(sizeof(request::Request) % 8 == 0 && alignof(request::Request) == 8);
  constexpr uint32_t kWords = sizeof(request::Request) / 8;
  const auto* const request = reinterpret_cast<const uint64_t*>(&ring.requests[slot]);
  const auto* const texts =
      reinterpret_cast<const uint64_t*>(ring.texts + uint64_t{slot} * kTextBytes);
  auto* const copy = reinterpret_cast<uint64_t*>(&room.request);
  for (uint32_t i = warp.thread_rank(); i < kWords + kTextsAlong / 8; i += warp.size()) {
    const bool is_text = i >= kWords;
    const uint64_t word = simt::load_system_relaxed(is_text ? texts[i - kWords] : request[i]);
    (is_text ? room.texts[i - kWords] : copy[i]) = word;
  }
  warp.sync();
}

/// The answer to the request in `room`.
GOFS_NOINLINE GOFS_HD inline int64_t perform(simt::AnyWarp auto warp, const Server& server,
                                             Channel& channel, uint32_t slot, CallRoom& room) {
  vfs::Filesystem& fs = *server.fs;
  request::Arguments call{};
  call.request = room.request;
  const int error = resolve(warp, channel, server.rows, slot, room, call);
  if (error != 0) return error;
  const vfs::CallerWarp client(warp, channel.caller);
  const request::VerbRow& row = server.rows[static_cast<uint32_t>(call.request.verb)];
  if ((row.takes & request::kDescriptor) == 0 || call.request.verb == request::Verb::kClose) {
    return request::perform(client, fs, call);
  }
  // Another call of the client may close them meanwhile.
  return vfs::with_descriptor(client, fs, call.request.descriptor, [&] {
    if ((row.takes & request::kOtherDescriptor) == 0) return request::perform(client, fs, call);
    return vfs::with_descriptor(client, fs, call.request.other_descriptor,
                                [&] { return request::perform(client, fs, call); });
  });
}

}  // namespace detail

/// Whether the server takes no request any more. Not collective.
GOFS_HD inline bool is_ending(const Server& server) {
  return simt::load_system_acquire(*server.ending) != 0;
}

/// Performs the request at `place` of a channel that was entered for it, answers, and leaves the
/// channel. Collective. `room` is the warp's own.
GOFS_HD inline void serve_call(simt::AnyWarp auto warp, const Server& server, Channel& channel,
                               const RingPlace& place, CallRoom& room) {
  const bool leader = warp.thread_rank() == 0;
  if (leader) room.window = nullptr;
  detail::copy_request(warp, channel.ring, place.slot, room);
  const int64_t result = detail::perform(warp, server, channel, place.slot, room);
  warp.sync();
  if (leader) {
    if (room.window != nullptr) leave_gate(room.window->gate);
    // Its client publishes there again when it sees the answer, or before, if it is hostile.
    simt::store_relaxed(channel.answered[place.slot], place.lap + 1);
    answer(channel.ring, place, result);
    leave_gate(channel.gate);
  }
}

/// Takes one request of each channel that has one, and performs it. Collective, uniform. Whether
/// any had.
GOFS_HD inline bool serve_round(simt::AnyWarp auto warp, const Server& server, CallRoom& room) {
  bool any = false;
  const bool leader = warp.thread_rank() == 0;
  const uint32_t count = warp.shfl(simt::load_relaxed(server.count), 0);
  for (uint32_t i = 0; i < count; ++i) {
    Channel& channel = server.channels[i];
    const bool enters = leader && is_open(channel.gate) && enter_gate(channel.gate);
    if (warp.shfl(enters ? 1u : 0u, 0) == 0) continue;
    warp.sync();
    RingPlace place{};
    if (detail::take(warp, channel, place)) {
      serve_call(warp, server, channel, place, room);
      any = true;
    } else if (leader) {
      leave_gate(channel.gate);
    }
  }
  return any;
}

}  // namespace gofs::serve
