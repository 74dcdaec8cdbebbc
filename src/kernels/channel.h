// SPDX-License-Identifier: Apache-2.0
//
// What the host does to a server's channels, which lie in memory of the warps': each step is a
// launch of one warp, while others serve.
#pragma once

#include "serve/serve.h"
#include "vfs/change.h"
#include "vfs/clients.h"

namespace gofs::kernels {

enum class ChannelStep : uint32_t {
  kOpen,         // a channel that is free: `ring` and `caller` are its own from now on
  kBeginClose,   // no call of it is begun any more; `done`: it was open
  kFinishClose,  // nothing of its client stays open; `done`, unless a call of it is under way
  kOpenWindow,   // number `window`, which none has: `memory`, of `bytes`
  kCloseWindow,  // calls find no such window any more; `done`, unless one is about it
  kCountCalls,   // of each channel: `calls`
};

struct ChannelParams {
  serve::Server* server;
  ChannelStep step;
  uint32_t number;
  uint32_t keeps_client;  // of kFinishClose: not 0: the client has another channel still
  serve::Ring ring;
  uint32_t first_run;  // those from here on are the channel's, now and later; or are new
  vfs::Caller caller;
  uint32_t window;
  uint8_t* memory;
  uint64_t bytes;
  uint64_t* calls;  // a word for each channel
  // Answers.
  uint32_t done;
  uint32_t closed;  // descriptors that the client had open
};

namespace detail {

/// The runs of a ring. By one lane.
GOFS_HD inline void add_runs(serve::Server& server, const serve::Channel& channel,
                             const ChannelParams& params) {
  const uint32_t depth = params.ring.depth;
  serve::SlotRun* run = server.runs + params.first_run;
  for (uint32_t first = 0; first < depth; first += serve::kRunSlots) {
    *run++ = {nullptr,
              channel.taken + first,
              channel.answered + first,
              params.number,
              first,
              simt::min(depth - first, serve::kRunSlots)};
  }
  simt::store_release(server.run_count, params.first_run + serve::runs_of(depth));  // [H7]
}

/// By one lane; none but the host's next steps looks at the channel before.
GOFS_HD inline void open_channel(serve::Channel& channel, const ChannelParams& params) {
  channel.ring = params.ring;
  channel.caller = params.caller;
  for (uint32_t slot = 0; slot < params.ring.depth; ++slot) {
    simt::store_relaxed(channel.taken[slot], 0u);
    simt::store_relaxed(channel.answered[slot], 0u);
  }
  for (serve::Window& window : channel.windows) window = {};
  channel.windows[0] = {params.ring.buffer, params.ring.buffer_bytes, {0}};
  channel.next_slot = 0;
  serve::Server& server = *params.server;
  if (params.first_run == server.run_count) add_runs(server, channel, params);
  channel.runs = server.runs + params.first_run;
  serve::open_gate(channel.gate);
  for (uint32_t i = 0; i < serve::runs_of(params.ring.depth); ++i) {
    simt::store_release(
        channel.runs[i].published,
        static_cast<const uint32_t*>(params.ring.published) + i * serve::kRunSlots);  // [H7]
  }
  simt::store_relaxed(server.count, simt::max(server.count, params.number + 1));
}

/// How many requests were taken from each channel. Collective.
GOFS_HD inline void count_calls(simt::AnyWarp auto warp, const serve::Server& server,
                                uint64_t* calls) {
  const uint32_t count = warp.shfl(simt::load_relaxed(server.count), 0);
  for (uint32_t i = 0; i < count; ++i) {
    const serve::Channel& channel = server.channels[i];
    uint64_t taken = 0;
    for (uint32_t slot = warp.thread_rank(); slot < channel.ring.depth; slot += warp.size()) {
      taken += simt::load_relaxed(channel.taken[slot]);
    }
    taken = simt::reduce_add(warp, taken);
    if (warp.thread_rank() == 0) calls[i] = taken;
  }
}

}  // namespace detail

/// By one warp, and by one at a time for each channel.
GOFS_HD inline void channel_body(simt::AnyWarp auto warp, uint32_t warp_index, uint32_t,
                                 ChannelParams& params) {
  if (warp_index != 0) return;
  const bool leader = warp.thread_rank() == 0;
  serve::Server& server = *params.server;
  serve::Channel& channel = server.channels[params.number];
  uint32_t done = 1;
  uint32_t closed = 0;
  switch (params.step) {
    case ChannelStep::kOpen:
      if (leader) detail::open_channel(channel, params);
      break;
    case ChannelStep::kBeginClose:
      done = warp.shfl(leader && serve::begin_close(channel) ? 1u : 0u, 0);
      break;
    case ChannelStep::kFinishClose:
      if (leader) {
        (void)serve::begin_close(channel);  // whose launch may have failed
        done = serve::is_left(channel.gate) ? 1 : 0;
        if (done != 0) simt::store_system_release(channel.ring.head->gone, 1u);  // [H9]
      }
      done = warp.shfl(done, 0);
      if (done == 0) break;
      warp.sync();
      if (channel.caller.client != vfs::kMountClient && params.keeps_client == 0) {
        closed = vfs::close_all(vfs::CallerWarp(warp, channel.caller), *server.fs);
      }
      warp.sync();
      break;
    case ChannelStep::kOpenWindow:
      if (leader) {
        serve::Window& window = channel.windows[params.window];
        window.memory = params.memory;
        window.bytes = params.bytes;
        serve::open_gate(window.gate);
      }
      break;
    case ChannelStep::kCloseWindow:
      if (leader) {
        serve::Gate& gate = channel.windows[params.window].gate;
        (void)serve::close_gate(gate);
        done = serve::is_left(gate) ? 1 : 0;
      }
      done = warp.shfl(done, 0);
      break;
    case ChannelStep::kCountCalls:
      detail::count_calls(warp, server, params.calls);
      break;
  }
  if (!leader) return;
  params.done = done;
  params.closed = closed;
}

}  // namespace gofs::kernels
