// SPDX-License-Identifier: Apache-2.0
//
// VirtualController: all state of one virtual NVMe controller, in the memory of its backend. The
// host lays it out (virtual_ssd.h) with the submission queues, then the completion queues right
// behind it, so that a queue's address takes no load. step() (virtual_controller.h) does everything
// else.
#pragma once

#include "format/nvme.h"
#include "simt/warp.h"
#include "ssd/fault.h"
#include "ssd/media.h"
#include "ssd/queue_state.h"
#include "ssd/timing.h"
#include "ssd/write_log.h"

namespace gofs::ssd {

enum class ControllerPhase : uint32_t { kDisabled, kReady, kFailed, kResetting };

inline constexpr uint32_t kErrorLogEntries = 64;

/// An entry of the error information log, as in the log page.
struct ErrorLogEntry {
  uint64_t number;  // 1 is the first error ever; 0: unused
  uint16_t submission_queue;
  uint16_t cid;
  uint16_t status;
  uint16_t parameter;
  uint64_t lba;
  uint32_t nsid;
  uint8_t unused[36];
};
static_assert(sizeof(ErrorLogEntry) == 64);

/// Registers and admin queue; guarded by `lock` unless said otherwise.
struct alignas(128) AdminState {
  uint32_t lock;
  ControllerPhase phase;
  uint64_t submission_entries;
  uint64_t completion_entries;
  uint32_t submission_depth;
  uint32_t completion_depth;
  uint32_t head;  // of the submission queue
  uint32_t tail;  // of the completion queue
  uint32_t completion_phase;
  uint32_t queues_granted;  // I/O queues of each kind
  bool queues_exist;        // a queue was created since reset: the number is fixed
  bool ready;               // CSTS.RDY
  bool shutdown_complete;
  uint64_t invalid_doorbells;
  uint32_t invalid_doorbell_seen;
  bool fault_checked;  // the entry at `head` was shown to the fault rules
  const FaultRule* fault;
};

struct alignas(128) VirtualController {
  // Set by the host, then constant.
  uint8_t* bar;
  uint32_t doorbell_shift;  // bytes between two doorbells, as an exponent
  uint32_t queue_limit;     // I/O queues of each kind
  uint32_t queue_entries_max;
  uint32_t lba_shift;
  uint64_t lba_count;
  uint32_t transfer_bytes_max;
  CompletionMode mode;  // that new queues get, if they qualify
  bool volatile_cache_present;
  bool virtual_clock;
  Media media;
  TimingModel model;
  TimingState* timing;  // null without a model
  FaultTable* faults;   // null without fault capacity
  WriteLog* write_log;  // null: what was written is not asked for; else the mode is kPending
  uint32_t log_disk;    // which disk it is there; 0: the one that has the log, or lends it
  format::nvme::IdentifyController* identify_controller;
  format::nvme::IdentifyNamespace* identify_namespace;
  uint8_t* scratch;  // one block, for admin data; guarded by the admin lock

  // Rarely changed; relaxed accesses.
  alignas(128) uint32_t stopped;  // no completion is posted any more: failed, or being reset
  uint32_t failed;
  uint32_t volatile_cache_enabled;
  uint64_t flush_requests;  // commands that asked for durability
  uint64_t virtual_now_ns;
  uint64_t error_count;
  ErrorLogEntry errors[kErrorLogEntries];

  AdminState admin;

  GOFS_HD SubmissionQueue& submission_queue(uint32_t qid) {
    return reinterpret_cast<SubmissionQueue*>(this + 1)[qid];
  }
  GOFS_HD CompletionQueue& completion_queue(uint32_t qid) {
    return reinterpret_cast<CompletionQueue*>(&submission_queue(queue_limit + 1))[qid];
  }
  GOFS_HD format::nvme::Registers& registers() const {
    return *reinterpret_cast<format::nvme::Registers*>(bar);
  }
  GOFS_HD uint32_t& submission_doorbell(uint32_t qid) const { return doorbell(2 * qid); }
  GOFS_HD uint32_t& completion_doorbell(uint32_t qid) const { return doorbell(2 * qid + 1); }

  GOFS_HD uint64_t now_ns() const {
    return virtual_clock ? simt::load_relaxed(virtual_now_ns) : simt::now_ns();
  }

 private:
  GOFS_HD uint32_t& doorbell(uint32_t index) const {
    return *reinterpret_cast<uint32_t*>(bar + format::nvme::kDoorbellOffset +
                                        (uint64_t{index} << doorbell_shift));
  }
};

/// One lane: puts a failed command into the error log. Entries of errors that happen at once may
/// overwrite each other when more than the log holds come together.
GOFS_HD inline void log_error(VirtualController& controller, uint32_t qid, uint16_t cid,
                              uint32_t nsid, format::nvme::Status status, uint64_t lba) {
  const uint64_t number = simt::add_relaxed(controller.error_count, uint64_t{1}) + 1;
  ErrorLogEntry& entry = controller.errors[(number - 1) % kErrorLogEntries];
  simt::store_relaxed(entry.submission_queue, static_cast<uint16_t>(qid));
  simt::store_relaxed(entry.cid, cid);
  simt::store_relaxed(entry.status, static_cast<uint16_t>(status << 1));
  simt::store_relaxed(entry.lba, lba);
  simt::store_relaxed(entry.nsid, nsid);
  simt::store_release(entry.number, number);
}

}  // namespace gofs::ssd
