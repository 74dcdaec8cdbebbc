// SPDX-License-Identifier: Apache-2.0
//
// How many commands have completed, by kind and outcome. Each queue pair has counts of its own, so
// that processors do not meet there; who looks adds them up. They are counted behind what a waiter
// waits for: a look may come before the last ones.
#pragma once

#include "format/nvme.h"
#include "gofs/types.h"
#include "simt/atomic.h"

namespace gofs::nvme {

/// Commands of no CommandKind: those of the admin queue.
inline constexpr uint32_t kOtherCommands = kCommandKinds;

/// Of one kind. Relaxed.
struct CommandCounts {
  uint64_t succeeded;
  uint64_t failed;  // with an error status, or given up
  uint64_t lbas;    // of those that succeeded: read or written
};

/// Those of a queue pair, by CommandKind.
using QueueCounts = CommandCounts[kCommandKinds + 1];

/// As what a command counts.
struct CountedCommand {
  uint32_t kind;  // a CommandKind, or kOtherCommands
  uint32_t lbas;

  GOFS_HD static constexpr CountedCommand of(const format::nvme::SubmissionEntry& entry) {
    using format::nvme::IoOpcode;
    const uint32_t lbas = (entry.cdw12 & 0xffff) + 1;
    switch (static_cast<IoOpcode>(entry.opcode)) {
      case IoOpcode::kRead:
        return counted(CommandKind::kRead, lbas);
      case IoOpcode::kWrite:
        return counted(CommandKind::kWrite, lbas);
      case IoOpcode::kFlush:
        return counted(CommandKind::kFlush, 0);
      case IoOpcode::kDatasetManagement:
        return counted(CommandKind::kDeallocate, 0);
      default:
        return {kOtherCommands, 0};
    }
  }
  /// In the word that a slot has for it.
  GOFS_HD constexpr uint32_t packed() const { return kind << kLbaBits | lbas; }
  GOFS_HD static constexpr CountedCommand unpacked(uint32_t word) {
    return {word >> kLbaBits, word & ((1u << kLbaBits) - 1)};
  }

 private:
  GOFS_HD static constexpr CountedCommand counted(CommandKind kind, uint32_t lbas) {
    return {static_cast<uint32_t>(kind), lbas};
  }

  static constexpr uint32_t kLbaBits = 24;  // 65,536 of them take 17
};

/// One that has completed. Not collective.
GOFS_HD inline void count_command(QueueCounts& counts, const CountedCommand& command,
                                  bool succeeded) {
  CommandCounts& kind = counts[command.kind];
  simt::count_relaxed(succeeded ? kind.succeeded : kind.failed, 1);
  if (succeeded && command.lbas != 0) simt::count_relaxed(kind.lbas, command.lbas);
}

}  // namespace gofs::nvme
