// SPDX-License-Identifier: Apache-2.0
//
// Host side: places a device's queues in a backend's memory. bring_up.h does the rest, over there.
#pragma once

#include "nvme/device.h"
#include "simt/memory.h"

namespace gofs::nvme {

struct DeviceOptions {
  uint32_t io_queues = 16;      // 1 to kIoQueuesMax; fewer if the controller grants fewer
  uint32_t queue_depth = 1024;  // 2 to 65,536; less if CAP.MQES is
  uint32_t admin_depth = 64;    // 2 to 4,096
  uint32_t nsid = 1;
  uint64_t command_timeout_ns = 5'000'000'000;
  uint64_t admin_timeout_ns = 2'000'000'000;
  bool single_doorbells = false;  // one for each I/O command, instead of for all in a row
};

namespace detail {

inline constexpr auto kQueueMemory = simt::MemoryPart::kQueues;

inline QueuePair make_queue(simt::MemorySpace& memory, uint32_t qid, uint32_t depth) {
  QueuePair queue{};
  queue.submission = memory.allocate_array<format::nvme::SubmissionEntry>(depth, kQueueMemory);
  queue.completion = memory.allocate_array<format::nvme::CompletionEntry>(depth, kQueueMemory);
  queue.slots = memory.allocate_array<Slot>(depth, kQueueMemory);
  queue.prp_lists = memory.allocate_array<PrpList>(depth, kQueueMemory);
  queue.shape = RingShape::of(depth);
  queue.qid = qid;
  return queue;
}

inline void release_queue(simt::MemorySpace& memory, const QueuePair& queue) {
  memory.release(queue.submission);
  memory.release(queue.completion);
  memory.release(queue.slots);
  memory.release(queue.prp_lists);
}

}  // namespace detail

/// Allocates a device for `controller`. Throws std::bad_alloc; the options are in range.
inline Device* create_device(simt::MemorySpace& memory, const ssd::ControllerRef& controller,
                             const DeviceOptions& options) {
  GOFS_ASSERT(options.io_queues >= 1 && options.io_queues <= kIoQueuesMax);
  GOFS_ASSERT(options.queue_depth >= 2 && options.queue_depth <= 65536);
  GOFS_ASSERT(options.admin_depth >= 2 && options.admin_depth <= 4096);
  auto* placed = memory.allocate_array<Device>(1, detail::kQueueMemory);
  Device device{};
  device.controller = controller;
  device.limits = Limits{options.command_timeout_ns, options.admin_timeout_ns};
  device.nsid = options.nsid;
  device.io_queue_count = options.io_queues;
  device.admin = memory.allocate_array<QueuePair>(1, detail::kQueueMemory);
  memory.write_object(device.admin, detail::make_queue(memory, 0, options.admin_depth));
  device.io = memory.allocate_array<QueuePair>(options.io_queues, detail::kQueueMemory);
  for (uint32_t i = 0; i < options.io_queues; ++i) {
    QueuePair queue = detail::make_queue(memory, i + 1, options.queue_depth);
    queue.last_failure = &placed->last_failure;
    queue.single_doorbells = options.single_doorbells ? 1 : 0;
    memory.write_object(device.io + i, queue);
  }
  memory.write_object(placed, device);
  return placed;
}

/// Frees what create_device took; `io_queues` is its option. The controller no longer uses it.
inline void destroy_device(simt::MemorySpace& memory, Device* placed, uint32_t io_queues) {
  const Device device = memory.read_object(placed);
  detail::release_queue(memory, memory.read_object(device.admin));
  for (uint32_t i = 0; i < io_queues; ++i) {
    detail::release_queue(memory, memory.read_object(device.io + i));
  }
  memory.release(device.admin);
  memory.release(device.io);
  memory.release(placed);
}

}  // namespace gofs::nvme
