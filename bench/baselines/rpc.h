// SPDX-License-Identifier: Apache-2.0
//
// File requests of GPU threads that the host serves, as GPUfs does it. Each lane has a request and
// a reply in memory that both sides share; a request is written by the lane alone, a reply by the
// host alone, and their last words, a number that counts the lane's requests, hand them over:
//
//   lane  fills the request, then stores its number   release [B1]
//   host  finds a new number                          acquire [B1], serves, fills the slot
//   host  stores the reply: the number and an errno   release [B2]
//   lane  finds its number                            acquire [B2], looks at the data
#pragma once

#include "bench/read_body.h"
#include "slots.h"

namespace gofs::bench {

struct alignas(32) RpcRequest {
  uint64_t offset;  // in the file
  uint8_t* buffer;  // in the device's memory, for the host's copies
  uint32_t bytes;
  uint32_t writes;  // not 0: to the file
  uint32_t number;  // 0: there was none yet [B1]
  uint32_t unused;
};
static_assert(sizeof(RpcRequest) == 32);

/// The lanes of a warp look at one or two lines together. The number is the low half [B2], an errno
/// (positive) the high one.
using RpcReply = uint64_t;

struct RpcQueue {
  RpcRequest* requests;  // of each lane
  RpcReply* replies;
  uint32_t count;
  uint64_t timeout_ns;  // until a lane gives its request up
};

struct RpcParams {
  BenchParams bench;  // block_bytes is 4096; operations: of each lane, at most
  RpcQueue queue;
  uint64_t time_ns;  // for which each lane begins new ones; the first it does in any case
  uint32_t writes;   // not 0: blocks are written, with their stamps (slots.h)
  uint64_t run;      // of the stamps
  uint64_t* last;    // of each lane the block that it read or wrote last
};

struct RpcJob {
  RpcParams params;
  BenchResults results;
};

namespace detail {

/// Waits for the reply to each lane's request `number`. Collective. 0 or a negative errno of this
/// lane's.
GOFS_HD inline int wait_for_reply(simt::AnyWarp auto warp, const RpcQueue& queue, bool waiting,
                                  uint32_t lane, uint32_t number) {
  int error = 0;
  const simt::Deadline deadline = simt::Deadline::after_ns(queue.timeout_ns);
  for (simt::Backoff backoff;; backoff.pause()) {
    if (waiting) {
      const RpcReply reply = simt::load_system_acquire(queue.replies[lane]);  // [B2]
      if (static_cast<uint32_t>(reply) == number) {
        error = -static_cast<int>(reply >> 32);
        waiting = false;
      }
    }
    if (!warp.any(waiting)) return error;
    if (warp.any(deadline.passed())) return waiting ? -ETIMEDOUT : error;
  }
}

}  // namespace detail

/// One block a lane at a time, for a given time.
GOFS_HD inline void rpc_body(simt::AnyWarp auto warp, uint32_t warp_index, uint32_t, RpcJob& job) {
  const RpcParams rpc = job.params;
  const BenchParams& params = rpc.bench;
  if (warp_index >= params.warps) return;
  const bool active = warp.thread_rank() < params.lanes_per_warp;
  const uint32_t lane = warp_index * params.lanes_per_warp + (active ? warp.thread_rank() : 0);
  const uint64_t lanes = uint64_t{params.warps} * params.lanes_per_warp;
  uint8_t* const buffer = params.buffers + uint64_t{lane} * kBlockBytes;
  detail::Tally tally;
  detail::begin_bench(warp, job.results);
  const uint64_t end_ns = simt::now_ns() + rpc.time_ns;
  uint64_t position = 0;
  for (uint32_t operation = 0; operation < params.operations; ++operation) {
    if (operation != 0 && warp.shfl(simt::now_ns() >= end_ns ? 1u : 0u, 0) != 0) break;
    position = detail::read_position(params, lane, lanes, operation);
    if (active) {
      if (rpc.writes != 0) put_block_stamp(buffer, position / kBlockBytes, rpc.run);
      RpcRequest& request = rpc.queue.requests[lane];
      request.offset = position;
      request.buffer = buffer;
      request.bytes = kBlockBytes;
      request.writes = rpc.writes;
      simt::store_system_release(request.number, operation + 1);  // [B1]
    }
    const int error = detail::wait_for_reply(warp, rpc.queue, active, lane, operation + 1);
    if (active && error != 0) tally.error = error;
    if (active && error == 0) tally.count(params, position, buffer, kBlockBytes);
    if (warp.any(tally.error != 0)) break;
  }
  if (active) rpc.last[lane] = position / kBlockBytes;
  detail::end_bench(warp, job.results, tally);
}

}  // namespace gofs::bench
