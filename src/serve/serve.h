// SPDX-License-Identifier: Apache-2.0
//
// What a server's warps do: take requests from channels, perform them for whose they are, answer.
#pragma once

#include "request/perform.h"
#include "serve/resolve.h"
#include "vfs/clients.h"

namespace gofs::serve {

/// What all warps of a server use.
struct Server {
  vfs::Filesystem* fs;
  const request::VerbRow* rows;  // request::kVerbRows, in memory that the warps reach
  Channel* channels;
  uint32_t count;   // channels behind these were never open
  uint32_t ending;  // not 0: nothing is taken any more
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
    uint32_t ready = warp.ballot(looks && is_published(ring, mine, lap));
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
    to[i] = simt::load_relaxed(from[i]);
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

/// Takes one request of the channel, if there is one, performs it and answers. Collective, uniform.
/// Whether there was one. `room` is the warp's own.
GOFS_HD inline bool serve_one(simt::AnyWarp auto warp, const Server& server, Channel& channel,
                              CallRoom& room) {
  const bool entered =
      warp.shfl(warp.thread_rank() == 0 && enter_channel(channel) ? 1u : 0u, 0) != 0;
  if (!entered) return false;
  warp.sync();
  RingPlace place{};
  const bool took = detail::take(warp, channel, place);
  if (took) {
    detail::copy_request(warp, channel.ring.requests[place.slot], room.request);
    const int64_t result = detail::perform(warp, server, channel, place.slot, room);
    warp.sync();
    if (warp.thread_rank() == 0) answer(channel.ring, place, result);
  }
  warp.sync();
  if (warp.thread_rank() == 0) leave_channel(channel);
  return took;
}

/// Takes one request of each channel that has one. Collective, uniform. Whether any had.
GOFS_HD inline bool serve_round(simt::AnyWarp auto warp, const Server& server, CallRoom& room) {
  bool any = false;
  const uint32_t count = warp.shfl(simt::load_relaxed(server.count), 0);
  for (uint32_t i = 0; i < count; ++i) {
    any = serve_one(warp, server, server.channels[i], room) || any;
  }
  return any;
}

}  // namespace gofs::serve
