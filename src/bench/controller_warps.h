// SPDX-License-Identifier: Apache-2.0
//
// Warps of a measurement that do nothing but play the virtual SSDs' controllers, beside those that
// are measured, the workers. A real SSD works by itself; a virtual one only gets on when a warp
// steps it, which otherwise those do that wait for it. Nothing else changes: workers step as well,
// and may be left without any controller warp, by a deadline too. A physical SSD takes no notice.
#pragma once

#include "nvme/array.h"

namespace gofs::bench {

/// Those of a launch: its warps from `first` on, as far as there are any. Workers come before them,
/// so that a launch that is given fewer warps than it asked for has no controller warps rather than
/// some that wait for workers.
struct ControllerWarps {
  uint32_t first;
  uint32_t count;  // at most
  uint32_t* left;  // workers that have ended; 0 before; null: there are no controller warps
};

/// A worker has done its last operation, with or without success. Collective.
GOFS_HD inline void leave_controllers(simt::AnyWarp auto warp, const ControllerWarps& controllers) {
  warp.sync();
  // Relaxed: who reads it touches nothing of the worker's.
  if (controllers.left != nullptr && warp.thread_rank() == 0) {
    simt::add_relaxed(*controllers.left, 1u);
  }
}

namespace detail {

/// Steps one queue that has work, if any has, of up to a warp's width of them: those that follow
/// `begin` among the `pairs` of an array, around its end. Where several have, controller warps
/// choose different ones. Collective, uniform. Whether that got anything on.
GOFS_HD inline bool step_one_of(simt::AnyWarp auto warp, const nvme::Array& array, uint32_t begin,
                                uint32_t pairs, uint32_t choice) {
  const uint32_t queues = array.devices[0]->io_queue_count;  // of each device
  const uint32_t pair = (begin + warp.thread_rank()) % pairs;
  const nvme::Device& device = *array.devices[pair / queues];
  const uint32_t qid = device.io[pair % queues].qid;
  uint32_t busy = warp.ballot(device.controller.has_work(qid));
  if (busy == 0) return false;
  for (uint32_t skip = choice % simt::popcount(busy); skip != 0; --skip) busy &= busy - 1;
  const uint32_t lane = simt::lowest_bit(busy);
  const nvme::Device& chosen = *array.devices[warp.shfl(pair / queues, lane)];
  return chosen.controller.step(warp, warp.shfl(qid, lane));
}

}  // namespace detail

/// What a warp that is no worker does: steps I/O queues that have work, of all SSDs, until all
/// `workers` have ended, or until it has found nothing to do for as long as a command may take.
/// Returns at once where it is no controller warp. Collective, uniform.
GOFS_NOINLINE GOFS_HD inline void play_controller(simt::AnyWarp auto warp, uint32_t warp_index,
                                                  uint32_t workers,
                                                  const ControllerWarps& controllers,
                                                  const nvme::Array& array) {
  if (controllers.left == nullptr || warp_index < controllers.first) return;
  const uint32_t number = warp_index - controllers.first;
  if (number >= controllers.count) return;
  const uint32_t pairs = array.devices[0]->io_queue_count * array.count;
  // They begin far apart, so that among them they look at all queues often.
  const auto begin = static_cast<uint32_t>(uint64_t{number} * pairs / controllers.count);
  const uint64_t patience_ns = nvme::longest_timeout_ns(array);
  simt::Deadline deadline = simt::Deadline::after_ns(patience_ns);
  for (simt::Backoff backoff;;) {
    bool got_on = false;
    for (uint32_t looked_at = 0; looked_at < pairs; looked_at += warp.size()) {
      if (detail::step_one_of(warp, array, begin + looked_at, pairs, number)) got_on = true;
    }
    uint32_t over = 0;
    if (warp.thread_rank() == 0) {
      over = simt::load_relaxed(*controllers.left) >= workers ? 1 : 0;
      if (!got_on && deadline.passed()) over = 1;
    }
    if (warp.shfl(over, 0) != 0) return;
    if (got_on) {
      deadline = simt::Deadline::after_ns(patience_ns);
      backoff.reset();
    } else {
      backoff.pause();
    }
  }
}

}  // namespace gofs::bench
