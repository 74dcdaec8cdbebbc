// SPDX-License-Identifier: Apache-2.0
//
// From a reset controller to a device with I/O queues, by one warp and through the registers and
// the admin queue alone (NVMe 1.4, section 7.6.1). The memory of the queues was laid out by
// layout.h.
#pragma once

#include "nvme/recovery.h"

namespace gofs::nvme {

/// Where bring_up stopped; step_name() has words for it.
enum class BringUpStep : uint32_t {
  kDone,
  kGone,          // its registers read as all ones
  kCapabilities,  // no NVM command set, 4 KiB pages not supported, or no queue of two entries
  kDisable,       // CSTS.RDY stayed 1
  kEnable,        // CSTS.RDY stayed 0, or CSTS.CFS
  kIdentifyController,
  kIdentifyNamespace,
  kNoNamespace,      // it is not active
  kNamespaceFormat,  // LBA size other than 512 to 4096 bytes, or metadata in the LBA
  kNamespaceSize,    // of 8 EiB or more
  kNumberOfQueues,
  kCreateCompletionQueue,
  kCreateSubmissionQueue,
  kCapacity,  // of several: too small for its part of the volume
};

struct BringUpResult {
  BringUpStep step;
  CommandStatus status;
};

/// Which LBA format is in use. The index goes beyond 15 only where there are as many.
GOFS_HD inline uint32_t lba_format_in_use(const format::nvme::IdentifyNamespace& space) {
  const uint32_t low = space.flbas & 0xfu;
  const uint32_t high = space.nlbaf > 15 ? space.flbas >> 5 & 3u : 0;
  return low | high << 4;
}

/// LBAs of 512 to 4,096 bytes without metadata.
GOFS_HD inline bool is_usable(const format::nvme::LbaFormat& lba) {
  return lba.lba_shift >= 9 && lba.lba_shift <= kBlockShift && lba.metadata_bytes == 0;
}

/// Whether a write command within a block of 4 KiB is done wholly or not at all when the power
/// fails; `awupf` as the controller says, which a namespace may know better (NVMe base
/// specification, "Atomic Operation").
GOFS_HD inline bool writes_blocks_atomically(uint32_t awupf,
                                             const format::nvme::IdentifyNamespace& space,
                                             uint32_t lba_shift) {
  constexpr uint8_t kOwnAtomicity = 1u << 1;
  const bool own = (space.nsfeat & kOwnAtomicity) != 0;
  const uint32_t lbas = (own ? space.nawupf : awupf) + 1;
  if (lbas << lba_shift < kBlockBytes) return false;
  if (!own || space.nabspf == 0) return true;
  // Boundaries must not lie within a block.
  const uint64_t between = (uint64_t{space.nabspf} + 1) << lba_shift;
  const uint64_t first = uint64_t{space.nabo} << lba_shift;
  return between % kBlockBytes == 0 && first % kBlockBytes == 0;
}

namespace detail {

/// Waits until CSTS.RDY is `ready`. Collective.
GOFS_HD inline bool wait_ready(simt::AnyWarp auto warp, Device& device, bool ready,
                               uint64_t timeout_ns) {
  const auto& registers = device.controller.registers();
  const simt::Deadline deadline = simt::Deadline::after_ns(timeout_ns);
  simt::Backoff backoff;
  for (;;) {
    device.controller.step(warp, 0);
    const uint32_t status = warp.shfl(simt::load_system_acquire(registers.csts), 0);
    if (status == format::nvme::kRegisterGone) return false;
    if ((status & format::nvme::kCstsFatal) != 0 && ready) return false;
    if (((status & format::nvme::kCstsReady) != 0) == ready) return true;
    if (warp.any(deadline.passed())) return false;
    backoff.pause();
  }
}

GOFS_HD inline CommandStatus identify(simt::AnyWarp auto warp, Device& device, uint32_t nsid,
                                      uint32_t what, void* page) {
  format::nvme::SubmissionEntry entry{};
  entry.opcode = static_cast<uint8_t>(format::nvme::AdminOpcode::kIdentify);
  entry.nsid = nsid;
  entry.prp1 = device.controller.dma_address(page);
  entry.cdw10 = what;
  uint32_t unused = 0;
  return execute_admin(warp, device, entry, unused);
}

GOFS_HD inline CommandStatus create_queue(simt::AnyWarp auto warp, Device& device,
                                          format::nvme::AdminOpcode opcode,
                                          const QueuePair& queue) {
  const bool submission = opcode == format::nvme::AdminOpcode::kCreateSubmissionQueue;
  format::nvme::SubmissionEntry entry{};
  entry.opcode = static_cast<uint8_t>(opcode);
  entry.prp1 = device.controller.dma_address(submission ? static_cast<const void*>(queue.submission)
                                                        : queue.completion);
  entry.cdw10 = queue.qid | (queue.depth() - 1) << 16;
  entry.cdw11 = 1u | (submission ? queue.qid << 16 : 0u);  // physically contiguous; no interrupts
  uint32_t unused = 0;
  return execute_admin(warp, device, entry, unused);
}

/// A shutdown gets as long as the controller says that it usually takes, but no longer than this.
inline constexpr uint64_t kShutdownMaxNs = 60'000'000'000;

}  // namespace detail

/// Gives a queue its shape, doorbells and empty rings. Called by one lane.
GOFS_HD inline void reset_queue(const Device& device, QueuePair& queue, uint32_t depth) {
  queue.shape = RingShape::of(depth);
  queue.slot_bits = queue.shape.shift;
  if (queue.slot_bits == RingShape::kNoShift) {
    queue.slot_bits = 0;
    while ((1u << queue.slot_bits) < depth) ++queue.slot_bits;
  }
  queue.submission_doorbell = device.controller.doorbell(queue.qid, false, device.doorbell_stride);
  queue.completion_doorbell = device.controller.doorbell(queue.qid, true, device.doorbell_stride);
}

namespace detail {

GOFS_NOINLINE GOFS_HD inline BringUpResult try_bring_up(simt::AnyWarp auto warp, Device& device) {
  uint8_t* const page = device.page;
  using format::nvme::IdentifyController;
  using format::nvme::IdentifyNamespace;
  const bool leader = warp.thread_rank() == 0;
  auto& registers = device.controller.registers();
  const uint64_t cap = warp.shfl(simt::load_system_relaxed(registers.cap), 0);
  if (static_cast<uint32_t>(cap) == format::nvme::kRegisterGone) return {BringUpStep::kGone, 0};
  const uint64_t ready_timeout_ns =
      ((cap >> format::nvme::kCapTimeoutShift & 0xff) + 1) * 500000000;
  if ((cap >> format::nvme::kCapNvmCommandSetShift & 1) == 0 || (cap >> 48 & 0xf) != 0 ||
      (cap & 0xffff) == 0) {
    return {BringUpStep::kCapabilities, 0};
  }
  if (leader) device.limits.stop_timeout_ns = ready_timeout_ns;
  // CC.EN may not go back to 0 before a controller that is being enabled has come up, or failed.
  const bool enabled =
      (warp.shfl(simt::load_system_relaxed(registers.cc), 0) & format::nvme::kCcEnable) != 0;
  if (enabled) (void)detail::wait_ready(warp, device, true, ready_timeout_ns);
  if (leader) {
    device.doorbell_stride = static_cast<uint32_t>(cap >> format::nvme::kCapStrideShift & 0xf);
    simt::store_system_relaxed(registers.cc, 0u);
  }
  warp.sync();
  if (!detail::wait_ready(warp, device, false, ready_timeout_ns)) return {BringUpStep::kDisable, 0};

  const uint32_t entries_max = static_cast<uint32_t>(cap & 0xffff) + 1;
  if (leader) {
    reset_queue(device, *device.admin, simt::min(device.admin->shape.depth, entries_max));
    for (uint32_t i = 0; i < device.io_queue_count; ++i) {
      reset_queue(device, device.io[i], simt::min(device.io[i].shape.depth, entries_max));
    }
    const uint32_t admin_last = device.admin->shape.depth - 1;
    simt::store_system_relaxed(registers.aqa, admin_last | admin_last << 16);
    simt::store_system_relaxed(registers.asq,
                               device.controller.dma_address(device.admin->submission));
    simt::store_system_relaxed(registers.acq,
                               device.controller.dma_address(device.admin->completion));
    simt::store_system_release(registers.cc, format::nvme::kCcEnable | format::nvme::kCcEntrySizes);
  }
  warp.sync();
  if (!detail::wait_ready(warp, device, true, ready_timeout_ns)) return {BringUpStep::kEnable, 0};

  CommandStatus status = detail::identify(warp, device, 0, format::nvme::kIdentifyController, page);
  if (status != 0) return {BringUpStep::kIdentifyController, status};
  warp.sync();
  const auto& controller = *reinterpret_cast<const IdentifyController*>(page);
  if (leader) {
    const uint32_t mdts = controller.mdts;
    const uint64_t limit = mdts == 0 || mdts > 16 ? kPrpBytesMax : uint64_t{kBlockBytes} << mdts;
    device.transfer_bytes_max = static_cast<uint32_t>(simt::min<uint64_t>(limit, kPrpBytesMax));
    const ssd::Staging& staging = device.io[0].staging;
    if (staging.areas != nullptr) {
      device.transfer_bytes_max = simt::min(device.transfer_bytes_max, staging.area_bytes);
    }
    device.limits.shutdown_timeout_ns =
        simt::min(uint64_t{controller.rtd3e} * 1000, detail::kShutdownMaxNs);
    device.volatile_write_cache = controller.vwc & 1;
    device.dataset_management = controller.oncs >> 2 & 1;
  }
  const uint32_t awupf = controller.awupf;
  warp.sync();

  status = detail::identify(warp, device, device.nsid, format::nvme::kIdentifyNamespace, page);
  if (status != 0) return {BringUpStep::kIdentifyNamespace, status};
  warp.sync();
  const auto& space = *reinterpret_cast<const IdentifyNamespace*>(page);
  // One that is not active is answered with zeros.
  if (space.nsze == 0) return {BringUpStep::kNoNamespace, 0};
  const format::nvme::LbaFormat lba = space.lbaf[lba_format_in_use(space)];
  if (!is_usable(lba)) return {BringUpStep::kNamespaceFormat, 0};
  // Sizes in bytes are to fit into a signed word.
  if (space.nsze > uint64_t{INT64_MAX} >> lba.lba_shift) return {BringUpStep::kNamespaceSize, 0};
  if (leader) {
    device.lba_shift = lba.lba_shift;
    device.lba_count = space.nsze;
    const bool atomic =
        device.assumes_atomic_blocks != 0 || writes_blocks_atomically(awupf, space, lba.lba_shift);
    device.atomic_blocks = atomic ? 1 : 0;
  }
  warp.sync();

  format::nvme::SubmissionEntry features{};
  features.opcode = static_cast<uint8_t>(format::nvme::AdminOpcode::kSetFeatures);
  features.cdw10 = format::nvme::kFeatureNumberOfQueues;
  features.cdw11 = (device.io_queue_count - 1) | (device.io_queue_count - 1) << 16;
  uint32_t granted = 0;
  status = execute_admin(warp, device, features, granted);
  if (status != 0) return {BringUpStep::kNumberOfQueues, status};
  const uint32_t count =
      simt::min(simt::min(granted & 0xffff, granted >> 16) + 1, device.io_queue_count);
  warp.sync();
  if (leader) device.io_queue_count = count;
  warp.sync();
  for (uint32_t i = 0; i < count; ++i) {
    status = detail::create_queue(warp, device, format::nvme::AdminOpcode::kCreateCompletionQueue,
                                  device.io[i]);
    if (status != 0) return {BringUpStep::kCreateCompletionQueue, status};
    status = detail::create_queue(warp, device, format::nvme::AdminOpcode::kCreateSubmissionQueue,
                                  device.io[i]);
    if (status != 0) return {BringUpStep::kCreateSubmissionQueue, status};
  }
  return {BringUpStep::kDone, 0};
}

}  // namespace detail

/// Brings the device up. Collective, by one warp, before any other use; the memory of the queues is
/// zero. On failure the device is left disabled, and as failed.
GOFS_HD inline BringUpResult bring_up(simt::AnyWarp auto warp, Device& device) {
  const BringUpResult result = detail::try_bring_up(warp, device);
  if (result.step != BringUpStep::kDone) fail_device(warp, device);
  return result;
}

/// What went wrong with the SSD there, as a clause.
inline const char* step_name(BringUpStep step) {
  switch (step) {
    case BringUpStep::kDone:
      return "it is ready";
    case BringUpStep::kGone:
      return "nothing answers: its registers read as all ones";
    case BringUpStep::kCapabilities:
      return "it lacks the NVM command set, pages of 4 KiB, or queues of two entries";
    case BringUpStep::kDisable:
      return "it did not stop when disabled (CSTS.RDY stayed 1)";
    case BringUpStep::kEnable:
      return "it did not start when enabled (CSTS.RDY stayed 0)";
    case BringUpStep::kIdentifyController:
      return "Identify Controller failed";
    case BringUpStep::kIdentifyNamespace:
      return "Identify Namespace failed";
    case BringUpStep::kNoNamespace:
      return "it has no active namespace of this number";
    case BringUpStep::kNamespaceFormat:
      return "its namespace has LBAs that are not of 512 to 4096 bytes, not those of the other "
             "SSDs, "
             "or have metadata";
    case BringUpStep::kNamespaceSize:
      return "its namespace is larger than an SSD can be";
    case BringUpStep::kNumberOfQueues:
      return "Set Features (Number of Queues) failed";
    case BringUpStep::kCreateCompletionQueue:
      return "Create I/O Completion Queue failed";
    case BringUpStep::kCreateSubmissionQueue:
      return "Create I/O Submission Queue failed";
    case BringUpStep::kCapacity:
      return "it is too small for its part of the volume";
  }
  return "an unknown step failed";
}

}  // namespace gofs::nvme
