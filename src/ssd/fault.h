// SPDX-License-Identifier: Apache-2.0
//
// Faults that a test plans. A rule names the commands it is about, how many of them it lets pass
// first and how many it then hits, and what happens to those. The first rule that hits a command is
// the only one. Rules change only while the controller is not stepped.
#pragma once

#include "format/nvme.h"
#include "simt/atomic.h"

namespace gofs::ssd {

enum class FaultAction : uint32_t {
  kStatus,     // not carried out; completes with `status`
  kLose,       // carried out; no completion ever comes
  kDelay,      // completes `delay_ns` later than it would
  kDuplicate,  // its completion is posted twice
  kHold,       // completes after `hold_commands` later completions of its submission queue
  kFatal,      // CSTS.CFS is set and the controller does nothing more until it is reset
};

struct FaultRule {
  uint32_t opcode_mask = ~0u;  // bit n: opcode n
  bool admin = false;          // about admin commands: kStatus, kLose, kDuplicate, kFatal only
  uint64_t lba_first = 0;      // commands with LBAs match if they touch one of these; Flush and
  uint64_t lba_last = ~uint64_t{0};  // Dataset Management match whatever these are
  uint64_t skip = 0;
  uint64_t count = ~uint64_t{0};
  FaultAction action = FaultAction::kStatus;
  format::nvme::Status status = format::nvme::kInternalError;
  uint64_t delay_ns = 0;
  uint64_t hold_commands = 0;
};

/// In the controller's memory.
struct FaultTable {
  struct Entry {
    FaultRule rule;
    uint64_t matches;  // commands that the rule is about, so far
  };
  uint32_t capacity;
  uint32_t count;
  Entry* entries;
};

struct FaultSubject {
  bool admin;
  uint8_t opcode;
  bool has_lbas;
  uint64_t lba;
  uint64_t lba_count;
};

/// The rule that hits this command, or null. Counts the command with every rule that is about it,
/// up to the one that hits. One lane, once per command.
GOFS_HD inline const FaultRule* find_fault(FaultTable& table, const FaultSubject& subject) {
  if (subject.opcode >= 32) return nullptr;
  for (uint32_t i = 0; i < table.count; ++i) {
    FaultTable::Entry& entry = table.entries[i];
    const FaultRule& rule = entry.rule;
    if (rule.admin != subject.admin || (rule.opcode_mask >> subject.opcode & 1) == 0) continue;
    if (subject.has_lbas && (subject.lba > rule.lba_last || subject.lba_count == 0 ||
                             subject.lba + (subject.lba_count - 1) < rule.lba_first)) {
      continue;
    }
    const uint64_t match = simt::add_relaxed(entry.matches, uint64_t{1});
    if (match >= rule.skip && match - rule.skip < rule.count) return &rule;
  }
  return nullptr;
}

}  // namespace gofs::ssd
