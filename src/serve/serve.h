// SPDX-License-Identifier: Apache-2.0
//
// What a server's warps do: take requests from channels, perform them for whose they are, answer.
#pragma once

#include "request/perform.h"
#include "serve/resolve.h"
#include "vfs/clients.h"

namespace gofs::serve {

/// What all warps of a server use, in their memory.
struct Server {
  vfs::Filesystem* fs;
  const request::VerbRow* rows;  // request::kVerbRows
  Channel* channels;
  const uint32_t* ending;  // not 0: nothing is taken any more; the host's to write
  uint32_t count;          // channels behind these were never open
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
    uint32_t ready = warp.ballot(looks && is_published(channel.seen[mine], lap));
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

/// Copies a request out of memory that its client may be writing: each word once, so that all lanes
/// see the same one. Collective.
GOFS_HD inline void copy_request(simt::AnyWarp auto warp, const request::Request& there,
                                 request::Request& copy) {
  static_assert(sizeof(there) % 8 == 0 && alignof(request::Request) == 8);
  const auto* const from = reinterpret_cast<const uint64_t*>(&there);
  auto* const to = reinterpret_cast<uint64_t*>(&copy);
  for (uint32_t i = warp.thread_rank(); i < sizeof(there) / 8; i += warp.size()) {
    to[i] = simt::load_system_relaxed(from[i]);
  }
  warp.sync();
}

/// The answer to the request in `room`.
GOFS_NOINLINE GOFS_HD inline int64_t perform(simt::AnyWarp auto warp, const Server& server,
                                             const Channel& channel, uint32_t slot,
                                             CallRoom& room) {
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

/// Takes one request of the channel, if there is one, performs it and answers. Collective, uniform.
/// Whether there was one. `room` is the warp's own; `performing`, if there is one, counts warps.
GOFS_HD inline bool serve_one(simt::AnyWarp auto warp, const Server& server, Channel& channel,
                              CallRoom& room, uint32_t* performing) {
  const bool leader = warp.thread_rank() == 0;
  const bool entered = warp.shfl(leader && enter_channel(channel) ? 1u : 0u, 0) != 0;
  if (!entered) return false;
  warp.sync();
  RingPlace place{};
  const bool took = detail::take(warp, channel, place);
  if (took) {
    if (leader && performing != nullptr) simt::add_relaxed(*performing, 1u);
    detail::copy_request(warp, channel.ring.requests[place.slot], room.request);
    const int64_t result = detail::perform(warp, server, channel, place.slot, room);
    warp.sync();
    if (leader) answer(channel.ring, place, result);
    if (leader && performing != nullptr) simt::add_relaxed(*performing, ~0u);
  }
  warp.sync();
  if (leader) leave_channel(channel);
  return took;
}

/// Takes one request of each channel that has one. Collective, uniform. Whether any had.
GOFS_HD inline bool serve_round(simt::AnyWarp auto warp, const Server& server, CallRoom& room,
                                uint32_t* performing = nullptr) {
  bool any = false;
  const uint32_t count = warp.shfl(simt::load_relaxed(server.count), 0);
  for (uint32_t i = 0; i < count; ++i) {
    any = serve_one(warp, server, server.channels[i], room, performing) || any;
  }
  return any;
}

/// Brings what clients have published to where the server's other warps look (Channel::seen). By
/// the one warp that does this, which enters no channel: the host lets none go meanwhile.
/// Collective, uniform. Whether a request waits to be taken.
GOFS_HD inline bool look_far(simt::AnyWarp auto warp, const Server& server) {
  bool waits = false;
  const uint32_t count = warp.shfl(simt::load_relaxed(server.count), 0);
  for (uint32_t first = 0; first < count; first += warp.size()) {
    const uint32_t mine = first + warp.thread_rank();
    const bool open =
        mine < count && simt::load_acquire(server.channels[mine].state) == kChannelOpen;  // [H3]
    uint32_t lanes = warp.ballot(open);
    warp.sync();  // what a lane has acquired, for all
    for (; lanes != 0; lanes &= lanes - 1) {
      const Channel& channel = server.channels[first + simt::lowest_bit(lanes)];
      for (uint32_t slot = warp.thread_rank(); slot < channel.ring.depth; slot += warp.size()) {
        const uint32_t published = simt::load_system_to_acquire(channel.ring.published[slot]);
        waits = waits || published == simt::load_relaxed(channel.taken[slot]) + 1;
        if (published == simt::load_relaxed(channel.seen[slot])) continue;
        simt::acquire_loaded();
        simt::store_release(channel.seen[slot], published);  // [H1]
      }
    }
  }
  return warp.any(waits);
}

}  // namespace gofs::serve
