// SPDX-License-Identifier: Apache-2.0
//
// An NVMe device: its limits and its queue pairs. Callers name the queue pair (pick_queue gives the
// one for this SM). To run commands see execute.h; what happens to one that does not complete is in
// recovery.h; how a device is brought up, in bring_up.h.
#pragma once

#include "nvme/queue_pair.h"

namespace gofs::nvme {

inline constexpr uint32_t kIoQueuesMax = 128;

/// A device fails once and for all: no new commands from kFailing on; from kFailed on the
/// controller is disabled and touches no memory, so that waiters may return.
enum Failure : uint32_t { kWorking = 0, kFailing = 1, kFailed = 2 };

struct Limits {
  uint64_t command_timeout_ns;  // from submission to completion
  uint64_t admin_timeout_ns;
  // As the controller says; bring_up() finds out. At least admin_timeout_ns is waited for.
  uint64_t stop_timeout_ns = 0;  // until CSTS.RDY is 0
  uint64_t shutdown_timeout_ns = 0;
};

struct Device {
  ssd::ControllerRef controller;
  Limits limits;
  uint32_t doorbell_stride;  // CAP.DSTRD
  uint32_t transfer_bytes_max;
  uint32_t atomic_blocks;  // whether a write within a block is done wholly or not at all when the
                           // power fails (AWUPF), or that is assumed
  uint32_t assumes_atomic_blocks;
  uint32_t nsid;
  uint32_t lba_shift;
  uint64_t lba_count;
  uint32_t io_queue_count;
  uint32_t volatile_write_cache;
  uint32_t dataset_management;  // whether the controller takes such commands
  uint8_t* page;                // a block that it reaches, for the data of admin commands
  QueuePair* admin;
  QueuePair* io;                  // io_queue_count of them
  alignas(128) uint32_t failure;  // a Failure
  uint64_t timeouts;
  uint64_t last_failure;  // a FailedCommand, of the last I/O command that failed

  GOFS_HD uint32_t lba_bytes() const { return 1u << lba_shift; }
};

/// The I/O queue pair of the calling processor.
GOFS_HD inline QueuePair& pick_queue(const Device& device) {
  return device.io[simt::processor_id() % device.io_queue_count];
}

/// Lets the device and the queue get on: called by everyone who waits. Collective.
GOFS_NOINLINE GOFS_HD inline void progress(simt::AnyWarp auto warp, Device& device,
                                           QueuePair& queue) {
  const bool unknown = simt::load_relaxed(queue.tail) != simt::load_relaxed(queue.next_ticket);
  if (warp.any(unknown)) ring(warp, queue);
  device.controller.step(warp, queue.qid);
  reap(warp, queue);
}

/// Once this is true the controller writes to no buffer any more, and what it wrote is visible.
/// [N5]
GOFS_HD inline bool device_failed(const Device& device) {
  // Asked at every poll: acquire only where the answer is yes.
  return simt::load_relaxed(device.failure) == kFailed &&
         simt::load_acquire(device.failure) == kFailed;
}

GOFS_HD inline format::nvme::SubmissionEntry make_entry(const Device& device, QueuePair& queue,
                                                        const Token& token,
                                                        const Command& command) {
  format::nvme::SubmissionEntry entry{};
  entry.opcode = static_cast<uint8_t>(command.opcode);
  entry.cid = queue.cid_of(token.position);
  entry.nsid = device.nsid;
  if (command.opcode == format::nvme::IoOpcode::kDatasetManagement) {
    entry.cdw10 = command.lba_count - 1;
    entry.cdw11 = format::nvme::kDeallocate;
  } else if (command.opcode != format::nvme::IoOpcode::kFlush) {
    entry.cdw10 = static_cast<uint32_t>(command.lba);
    entry.cdw11 = static_cast<uint32_t>(command.lba >> 32);
    entry.cdw12 =
        (command.lba_count - 1) | (command.force_unit_access ? format::nvme::kForceUnitAccess : 0);
  }
  if (command.bytes != 0) {
    PrpList& list = queue.prp_lists[token.position.index];
    void* const data = queue.staging.place_of(token.position.index, command.buffer);
    describe_buffer(entry, device.controller.dma_address(data), command.bytes, list,
                    device.controller.dma_address(&list));
  }
  return entry;
}

}  // namespace gofs::nvme
