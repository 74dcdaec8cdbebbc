// SPDX-License-Identifier: Apache-2.0
//
// Queue 0: the registers and the admin commands, one at a time under one lock.
#pragma once

#include "simt/copy.h"
#include "ssd/admin_queues.h"
#include "ssd/prp.h"

namespace gofs::ssd {

namespace detail {

/// Writes up to a block of admin data to the memory that the command names. Collective.
GOFS_HD inline AdminOutcome return_data(simt::AnyWarp auto warp,
                                        const format::nvme::SubmissionEntry& entry,
                                        const void* data, uint32_t bytes) {
  using namespace format::nvme;
  const uint32_t page_count = prp_page_count(entry.prp1, bytes);
  const Status status = check_prps(entry.prp1, entry.prp2, page_count);
  if (status != kSuccess) return AdminOutcome::failure(status);
  const auto in_first =
      simt::min(bytes, static_cast<uint32_t>(kBlockBytes - (entry.prp1 & kPageMask)));
  const auto* const source = static_cast<const uint8_t*>(data);
  simt::copy_bytes(warp, reinterpret_cast<void*>(entry.prp1), source, in_first);
  if (page_count == 2) {
    simt::copy_bytes(warp, reinterpret_cast<void*>(entry.prp2), source + in_first,
                     bytes - in_first);
  }
  warp.sync();
  return {};
}

GOFS_HD inline AdminOutcome identify(simt::AnyWarp auto warp, VirtualController& controller,
                                     const format::nvme::SubmissionEntry& entry) {
  using namespace format::nvme;
  constexpr uint32_t kActiveNamespaceList = 0x02;
  constexpr uint32_t kNamespaceDescriptors = 0x03;
  constexpr uint32_t kAllNamespaces = 0xffffffffu;
  switch (entry.cdw10 & 0xff) {
    case kIdentifyNamespace:
      if (entry.nsid != 1 && entry.nsid != kAllNamespaces) {
        return AdminOutcome::failure(kInvalidNamespace);
      }
      return return_data(warp, entry, controller.identify_namespace, kBlockBytes);
    case kIdentifyController:
      return return_data(warp, entry, controller.identify_controller, kBlockBytes);
    case kActiveNamespaceList:
    case kNamespaceDescriptors:
      break;
    default:
      return AdminOutcome::failure(kInvalidField);
  }
  const bool lists = (entry.cdw10 & 0xff) == kActiveNamespaceList;
  if (lists ? entry.nsid >= kAllNamespaces - 1 : entry.nsid != 1) {
    return AdminOutcome::failure(kInvalidNamespace);
  }
  uint8_t* const page = controller.scratch;
  simt::zero_bytes(warp, page, kBlockBytes);
  warp.sync();
  if (warp.thread_rank() == 0) {
    if (lists) {
      // Namespaces above the given one.
      if (entry.nsid == 0) *reinterpret_cast<uint32_t*>(page) = 1;
    } else {
      // One descriptor: an EUI-64 made of what Identify Controller says of the vendor.
      constexpr uint8_t kEui64Type = 1;
      page[0] = kEui64Type;
      page[1] = 8;
      for (uint32_t i = 0; i < 3; ++i) page[4 + i] = controller.identify_controller->ieee[2 - i];
      page[11] = 1;
    }
  }
  warp.sync();
  return return_data(warp, entry, page, kBlockBytes);
}

/// The error log, newest first, in `page`. Collective.
GOFS_HD inline void build_error_log(simt::AnyWarp auto warp, const VirtualController& controller,
                                    uint8_t* page) {
  auto* const entries = reinterpret_cast<ErrorLogEntry*>(page);
  uint64_t count = 0;
  if (warp.thread_rank() == 0) count = simt::load_acquire(controller.error_count);
  count = warp.shfl(count, 0);
  const auto kept = static_cast<uint32_t>(simt::min<uint64_t>(count, kErrorLogEntries));
  for (uint32_t i = warp.thread_rank(); i < kept; i += warp.size()) {
    const ErrorLogEntry& source = controller.errors[(count - 1 - i) % kErrorLogEntries];
    const uint64_t number = simt::load_acquire(source.number);
    entries[i].number = number;
    entries[i].submission_queue = simt::load_relaxed(source.submission_queue);
    entries[i].cid = simt::load_relaxed(source.cid);
    entries[i].status = simt::load_relaxed(source.status);
    entries[i].lba = simt::load_relaxed(source.lba);
    entries[i].nsid = simt::load_relaxed(source.nsid);
  }
}

/// SMART / health information in `page`. One lane.
GOFS_HD inline void build_health_log(VirtualController& controller, uint8_t* page) {
  constexpr uint16_t kTemperatureKelvin = 310;
  constexpr uint64_t kUnitBytes = 512 * 1000;
  uint64_t read_bytes = 0;
  uint64_t written_bytes = 0;
  uint64_t reads = 0;
  uint64_t writes = 0;
  for (uint32_t qid = 1; qid <= controller.queue_limit; ++qid) {
    const SubmissionQueue& queue = controller.submission_queue(qid);
    read_bytes += simt::load_relaxed(queue.blocks_read) << controller.lba_shift;
    written_bytes += simt::load_relaxed(queue.blocks_written) << controller.lba_shift;
    reads += simt::load_relaxed(queue.read_commands);
    writes += simt::load_relaxed(queue.write_commands);
  }
  page[0] = controller.media.read_only ? 1u << 3 : 0;  // critical warning: media is read only
  page[1] = kTemperatureKelvin & 0xff;
  page[2] = kTemperatureKelvin >> 8;
  page[3] = 100;  // available spare, percent
  page[4] = 10;   // its threshold
  const auto put = [page](uint32_t offset, uint64_t value) {
    *reinterpret_cast<uint64_t*>(page + offset) = value;
  };
  put(32, simt::divide_up(read_bytes, kUnitBytes));
  put(48, simt::divide_up(written_bytes, kUnitBytes));
  put(64, reads);
  put(80, writes);
  put(176, simt::load_relaxed(controller.error_count));
}

GOFS_HD inline AdminOutcome get_log_page(simt::AnyWarp auto warp, VirtualController& controller,
                                         const format::nvme::SubmissionEntry& entry) {
  using namespace format::nvme;
  const uint32_t page_id = entry.cdw10 & 0xff;
  if (page_id != kLogErrorInformation && page_id != kLogHealth) {
    return AdminOutcome::failure(kInvalidLogPage);
  }
  const bool health = page_id == kLogHealth;
  // The log is the controller's, not a namespace's.
  if (health && entry.nsid != 0 && entry.nsid != 0xffffffffu) {
    return AdminOutcome::failure(kInvalidField);
  }
  const uint64_t log_bytes = health ? 512 : sizeof(ErrorLogEntry) * kErrorLogEntries;
  static_assert(sizeof(ErrorLogEntry) * kErrorLogEntries <= kBlockBytes);
  const uint64_t dwords = (uint64_t{entry.cdw11 & 0xffff} << 16 | entry.cdw10 >> 16) + 1;
  const uint64_t offset = uint64_t{entry.cdw13} << 32 | entry.cdw12;
  if (offset >= log_bytes || (offset & 3) != 0) return AdminOutcome::failure(kInvalidField);
  uint8_t* const page = controller.scratch;
  simt::zero_bytes(warp, page, kBlockBytes);
  warp.sync();
  if (health) {
    if (warp.thread_rank() == 0) build_health_log(controller, page);
  } else {
    build_error_log(warp, controller, page);
  }
  warp.sync();
  const auto bytes = static_cast<uint32_t>(simt::min(dwords * 4, log_bytes - offset));
  return return_data(warp, entry, page + offset, bytes);
}

GOFS_HD inline uint32_t queue_numbers(uint32_t count) { return (count - 1) << 16 | (count - 1); }

GOFS_HD inline AdminOutcome set_features(simt::AnyWarp auto warp, VirtualController& controller,
                                         const format::nvme::SubmissionEntry& entry) {
  using namespace format::nvme;
  AdminState& admin = controller.admin;
  if ((entry.cdw10 >> 31) != 0) return AdminOutcome::failure(kFeatureNotSaveable);
  AdminOutcome outcome;
  switch (entry.cdw10 & 0xff) {
    case kFeatureVolatileWriteCache: {
      if (!controller.volatile_cache_present) return AdminOutcome::failure(kInvalidField);
      const uint32_t wanted = entry.cdw11 & 1;
      if (warp.thread_rank() == 0) {
        simt::store_relaxed(controller.volatile_cache_enabled, wanted);
      }
      if (wanted == 0 && sync_all(warp, controller) < 0) outcome.status = kWriteFault;
      return outcome;
    }
    case kFeatureNumberOfQueues: {
      const uint32_t submissions = (entry.cdw11 & 0xffff) + 1;
      const uint32_t completions = (entry.cdw11 >> 16) + 1;
      if (submissions > 0xffff || completions > 0xffff) {
        return AdminOutcome::failure(kInvalidField);
      }
      if (admin.queues_exist) return AdminOutcome::failure(kCommandSequenceError);
      const uint32_t granted =
          simt::min(controller.queue_limit, simt::max(submissions, completions));
      warp.sync();
      if (warp.thread_rank() == 0) admin.queues_granted = granted;
      outcome.dw0 = queue_numbers(granted);
      return outcome;
    }
    default:
      return AdminOutcome::failure(kInvalidField);
  }
}

GOFS_HD inline AdminOutcome get_features(const VirtualController& controller,
                                         const format::nvme::SubmissionEntry& entry) {
  using namespace format::nvme;
  enum : uint32_t { kCurrent, kDefault, kSaved, kCapabilities };
  constexpr uint32_t kChangeable = 1u << 2;
  const uint32_t select = entry.cdw10 >> 8 & 7;
  const uint32_t feature = entry.cdw10 & 0xff;
  const bool cache = feature == kFeatureVolatileWriteCache;
  if ((!cache && feature != kFeatureNumberOfQueues) || select > kCapabilities ||
      (cache && !controller.volatile_cache_present)) {
    return AdminOutcome::failure(kInvalidField);
  }
  AdminOutcome outcome;
  if (select == kCapabilities) {
    outcome.dw0 = kChangeable;
  } else if (cache) {
    outcome.dw0 = select == kCurrent ? simt::load_relaxed(controller.volatile_cache_enabled) : 1;
  } else {
    outcome.dw0 = queue_numbers(select == kCurrent ? controller.admin.queues_granted
                                                   : controller.queue_limit);
  }
  return outcome;
}

GOFS_HD inline AdminOutcome execute_admin(simt::AnyWarp auto warp, VirtualController& controller,
                                          const format::nvme::SubmissionEntry& entry) {
  using namespace format::nvme;
  if (entry.flags != 0) return AdminOutcome::failure(kInvalidField);
  switch (static_cast<AdminOpcode>(entry.opcode)) {
    case AdminOpcode::kDeleteSubmissionQueue:
      return delete_submission_queue(warp, controller, entry);
    case AdminOpcode::kCreateSubmissionQueue:
      return create_submission_queue(warp, controller, entry);
    case AdminOpcode::kGetLogPage:
      return get_log_page(warp, controller, entry);
    case AdminOpcode::kDeleteCompletionQueue:
      return delete_completion_queue(warp, controller, entry);
    case AdminOpcode::kCreateCompletionQueue:
      return create_completion_queue(warp, controller, entry);
    case AdminOpcode::kIdentify:
      return identify(warp, controller, entry);
    case AdminOpcode::kAbort:
      return abort_command(warp, controller, entry);
    case AdminOpcode::kSetFeatures:
      return set_features(warp, controller, entry);
    case AdminOpcode::kGetFeatures:
      return get_features(controller, entry);
  }
  return AdminOutcome::failure(kInvalidOpcode);
}

/// One lane: posts to the admin completion queue, `copies` times.
GOFS_HD inline void post_admin(VirtualController& controller, uint16_t cid,
                               const AdminOutcome& outcome, uint32_t copies) {
  AdminState& admin = controller.admin;
  for (uint32_t copy = 0; copy < copies; ++copy) {
    post_entry(admin.completion_entries, admin.tail, admin.completion_phase,
               {outcome.dw0, static_cast<uint16_t>(admin.head), 0, cid, outcome.status});
    if (++admin.tail == admin.completion_depth) {
      admin.tail = 0;
      admin.completion_phase ^= 1;
    }
  }
}

/// Entries of the admin completion queue that are free, if a command waits; else 0. Uniform.
GOFS_HD inline uint32_t admin_room(simt::AnyWarp auto warp, VirtualController& controller) {
  AdminState& admin = controller.admin;
  uint32_t room = 0;
  if (warp.thread_rank() == 0) {
    const uint32_t tail = simt::load_system_acquire(controller.submission_doorbell(0));
    const uint32_t head = simt::load_system_acquire(controller.completion_doorbell(0));
    if (tail >= admin.submission_depth) {
      if (admin.invalid_doorbell_seen != tail + 1) ++admin.invalid_doorbells;
      admin.invalid_doorbell_seen = tail + 1;
    } else if (tail != admin.head) {
      room = completion_room(admin.tail, head, admin.completion_depth);
    }
  }
  room = warp.shfl(room, 0);
  warp.sync();
  return room;
}

/// Carries out the next admin command. False: there is none, or it has to wait. Collective.
GOFS_HD inline bool run_admin_command(simt::AnyWarp auto warp, VirtualController& controller) {
  using namespace format::nvme;
  AdminState& admin = controller.admin;
  const uint32_t room = admin_room(warp, controller);
  if (room == 0) return false;
  const SubmissionEntry entry =
      reinterpret_cast<const SubmissionEntry*>(admin.submission_entries)[admin.head];
  if (controller.faults != nullptr && !admin.fault_checked) {
    warp.sync();
    if (warp.thread_rank() == 0) {
      admin.fault = find_fault(*controller.faults, {true, entry.opcode, false, 0, 0});
      admin.fault_checked = true;
    }
    warp.sync();
  }
  const FaultRule* const fault = controller.faults != nullptr ? admin.fault : nullptr;
  uint32_t copies = 1;
  AdminOutcome outcome;
  if (fault != nullptr && fault->action == FaultAction::kFatal) {
    fail_controller(warp, controller);
    return false;
  }
  if (fault != nullptr && fault->action == FaultAction::kDuplicate) copies = 2;
  if (fault != nullptr && fault->action == FaultAction::kLose) copies = 0;
  if (room < copies) return false;
  if (fault != nullptr && fault->action == FaultAction::kStatus) {
    outcome.status = fault->status;
  } else {
    outcome = execute_admin(warp, controller, entry);
  }
  if (outcome.deferred) return false;
  warp.sync();
  if (warp.thread_rank() == 0) {
    if (outcome.status != kSuccess) {
      log_error(controller, 0, entry.cid, entry.nsid, outcome.status, 0);
    }
    admin.head = admin.head + 1 == admin.submission_depth ? 0 : admin.head + 1;
    admin.fault_checked = false;
    admin.fault = nullptr;
    post_admin(controller, entry.cid, outcome, copies);
  }
  warp.sync();
  return true;
}

}  // namespace detail

/// step() for queue 0. Collective; returns at once if another warp is at it.
GOFS_NOINLINE GOFS_HD inline void step_admin(simt::AnyWarp auto warp,
                                             VirtualController& controller) {
  constexpr uint32_t kCommandsPerStep = 4;
  AdminState& admin = controller.admin;
  if (!detail::lock_together(warp, admin.lock)) return;
  detail::follow_registers(warp, controller);
  for (uint32_t i = 0; i < kCommandsPerStep && admin.phase == ControllerPhase::kReady; ++i) {
    if (!detail::run_admin_command(warp, controller)) break;
  }
  detail::unlock_together(warp, admin.lock);
}

}  // namespace gofs::ssd
