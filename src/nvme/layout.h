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
  // Whether blocks are written over where they lie also on a controller that does not promise to
  // write 4 KiB wholly or not at all when the power fails.
  bool assumes_atomic_blocks = false;
  // Of the staging area of each I/O queue entry, a multiple of 4 KiB; 0: there are none, since the
  // controller reaches all memory.
  uint32_t staging_bytes = 0;
};

/// Where a device lies.
struct DeviceMemory {
  simt::MemorySpace& state;  // what warps alone use
  simt::MemorySpace& dma;    // what the controller uses as well

  /// One that reaches all memory.
  DeviceMemory(simt::MemorySpace& both) : state(both), dma(both) {}
  DeviceMemory(simt::MemorySpace& own, simt::MemorySpace& reached) : state(own), dma(reached) {}
};

namespace detail {

inline constexpr auto kQueueMemory = simt::MemoryPart::kQueues;

inline QueuePair make_queue(const DeviceMemory& memory, const Device* owner, uint32_t qid,
                            uint32_t depth) {
  using format::nvme::CompletionEntry;
  using format::nvme::SubmissionEntry;
  QueuePair queue{};
  queue.submission = memory.dma.allocate_for<SubmissionEntry>(owner, depth, kQueueMemory);
  queue.completion = memory.dma.allocate_for<CompletionEntry>(owner, depth, kQueueMemory);
  queue.slots = memory.state.allocate_for<Slot>(owner, depth, kQueueMemory);
  queue.prp_lists = memory.dma.allocate_for<PrpList>(owner, depth, kQueueMemory);
  queue.shape = RingShape::of(depth);
  queue.qid = qid;
  return queue;
}

inline ssd::Staging make_staging(const DeviceMemory& memory, const Device* owner, uint32_t depth,
                                 uint32_t area_bytes) {
  if (area_bytes == 0) return {};
  GOFS_ASSERT(area_bytes % kBlockBytes == 0);
  constexpr auto kStaging = simt::MemoryPart::kStaging;
  ssd::Staging staging{};
  staging.areas = memory.dma.allocate_for<uint8_t>(owner, uint64_t{depth} * area_bytes, kStaging);
  staging.buffers = memory.state.allocate_for<ssd::StagedBuffer>(owner, depth, kStaging);
  staging.area_bytes = area_bytes;
  staging.failure = &owner->failure;
  return staging;
}

inline void fill_device(const DeviceMemory& memory, Device* placed,
                        const ssd::ControllerRef& controller, const DeviceOptions& options) {
  simt::MemorySpace& state = memory.state;
  Device device{};
  device.controller = controller;
  device.limits = Limits{options.command_timeout_ns, options.admin_timeout_ns, 0, 0};
  device.nsid = options.nsid;
  device.assumes_atomic_blocks = options.assumes_atomic_blocks ? 1 : 0;
  device.io_queue_count = options.io_queues;
  device.page = memory.dma.allocate_for<uint8_t>(placed, kBlockBytes, kQueueMemory);
  device.admin = state.allocate_for<QueuePair>(placed, 1, kQueueMemory);
  state.write_object(device.admin, make_queue(memory, placed, 0, options.admin_depth));
  device.io = state.allocate_for<QueuePair>(placed, options.io_queues, kQueueMemory);
  for (uint32_t i = 0; i < options.io_queues; ++i) {
    QueuePair queue = make_queue(memory, placed, i + 1, options.queue_depth);
    queue.last_failure = &placed->last_failure;
    queue.staging = make_staging(memory, placed, options.queue_depth, options.staging_bytes);
    queue.single_doorbells = options.single_doorbells ? 1 : 0;
    state.write_object(device.io + i, queue);
  }
  state.write_object(placed, device);
}

}  // namespace detail

/// What a device with these options takes of memory that the controller reaches.
inline uint64_t dma_bytes(const DeviceOptions& options) {
  const auto blocks = [](uint64_t bytes) { return simt::align_up(bytes, kBlockBytes); };
  const auto of_queue = [&](uint64_t depth, uint64_t area_bytes) {
    return blocks(depth * sizeof(format::nvme::SubmissionEntry)) +
           blocks(depth * sizeof(format::nvme::CompletionEntry)) + blocks(depth * sizeof(PrpList)) +
           depth * area_bytes;
  };
  return of_queue(options.admin_depth, 0) + kBlockBytes +
         options.io_queues * of_queue(options.queue_depth, options.staging_bytes);
}

/// Frees what create_device took. The controller no longer uses it.
inline void destroy_device(const DeviceMemory& memory, Device* placed) {
  memory.dma.release_belongings(placed);
  memory.state.release_belongings(placed);
  memory.state.release(placed);
}

/// Allocates a device for `controller`. Throws std::bad_alloc; the options are in range.
inline Device* create_device(const DeviceMemory& memory, const ssd::ControllerRef& controller,
                             const DeviceOptions& options) {
  GOFS_ASSERT(options.io_queues >= 1 && options.io_queues <= kIoQueuesMax);
  GOFS_ASSERT(options.queue_depth >= 2 && options.queue_depth <= 65536);
  GOFS_ASSERT(options.admin_depth >= 2 && options.admin_depth <= 4096);
  auto* const placed = memory.state.allocate_array<Device>(1, detail::kQueueMemory);
  try {
    detail::fill_device(memory, placed, controller, options);
  } catch (...) {
    destroy_device(memory, placed);
    throw;
  }
  return placed;
}

}  // namespace gofs::nvme
