// SPDX-License-Identifier: Apache-2.0
//
// What is wrong with a volume, in a form that device code can write: which structure, where, and
// the value that cannot be. The host turns a record into a sentence (describe). Device code returns
// -EUCLEAN beside it. Any thread reports at any time, one reads: none waits for another.
//
// The log keeps the first findings in the order in which they came, each once, however many lanes
// and warps make it: every slot has a key that is made of the finding, and who reports takes the
// first free slot, unless the same key stands before it.
#pragma once

#include "simt/atomic.h"
#include "simt/warp.h"

namespace gofs::f2fs {

enum class Structure : uint32_t {
  kNone,
  kSuperblock,
  kCheckpoint,
  kSummary,
  kNatEntry,
  kNode,
  kNodeFooter,
  kInode,
  kInodeChecksum,
  kBlockAddress,
  kDentry,      // value of this and the next two: slot_value() of the inode number
  kDentryName,  // of its length
  kDentryType,  // of its file type
  kDirectory,
  kSymlink,        // value: its length
  kSymlinkTarget,  // value: where it has a NUL
  kXattr,
  kSitEntry,
  kOrphan,
};

struct Corruption {
  Structure structure;
  uint32_t block;  // block address, 0 if not known
  uint64_t id;     // nid, ino or segment number
  uint64_t value;  // what was found

  friend bool operator==(const Corruption&, const Corruption&) = default;
};

/// What was found in a slot of a directory's block, or of its inode.
GOFS_HD constexpr uint64_t slot_value(uint32_t slot, uint32_t value) {
  return uint64_t{slot} << 32 | value;
}

inline constexpr uint32_t kCorruptionsKept = 64;

struct CorruptionLog {
  static constexpr uint64_t kPublished = 1;  // in a key: the record is written

  uint64_t keys[kCorruptionsKept];  // 0: the slot is free
  Corruption records[kCorruptionsKept];
  uint32_t lost;  // reports for which no slot was free, the same finding counted each time; relaxed
};

namespace detail {

/// Never 0, and without kPublished. Should two findings share a key, the second of them gets no
/// record, and nothing else is lost.
GOFS_HD inline uint64_t finding_key(Structure structure, uint32_t block, uint64_t id,
                                    uint64_t value) {
  constexpr uint64_t kOdd = 0x9E3779B97F4A7C15ull;
  uint64_t hash = (uint64_t{static_cast<uint32_t>(structure)} << 32 | block) * kOdd;
  hash = ((hash ^ hash >> 29) + id) * kOdd;
  hash = ((hash ^ hash >> 32) + value) * kOdd;
  return ((hash ^ hash >> 29) | 2) & ~CorruptionLog::kPublished;
}

/// Values, not a Corruption: they stay in registers, and the callers without a stack frame.
GOFS_NOINLINE GOFS_HD inline void note(CorruptionLog& log, Structure structure, uint32_t block,
                                       uint64_t id, uint64_t value) {
  const uint64_t key = finding_key(structure, block, id, value);
  for (uint32_t i = 0; i < kCorruptionsKept; ++i) {
    uint64_t seen = simt::load_relaxed(log.keys[i]);
    if (seen == 0 && simt::AtomicRef<uint64_t>(log.keys[i])
                         .compare_exchange_strong(seen, key, simt::memory_order_acquire,
                                                  simt::memory_order_relaxed)) {  // [F2]
      log.records[i] = {structure, block, id, value};
      simt::store_release(log.keys[i], key | CorruptionLog::kPublished);  // [F1]
      return;
    }
    if ((seen & ~CorruptionLog::kPublished) == key) return;
  }
  simt::add_relaxed(log.lost, 1u);
}

}  // namespace detail

/// Notes one finding and returns -EUCLEAN. Any lane, also several with the same finding.
GOFS_HD inline int report(CorruptionLog& log, const Corruption& corruption) {
  detail::note(log, corruption.structure, corruption.block, corruption.id, corruption.value);
  return -117;  // EUCLEAN
}

/// The same for a finding that all lanes have made: the first lane reports for all. Collective,
/// uniform. -EUCLEAN.
GOFS_HD inline int report_once(simt::AnyWarp auto warp, CorruptionLog& log,
                               const Corruption& corruption) {
  return warp.shfl(warp.thread_rank() == 0 ? report(log, corruption) : 0, 0);
}

/// Whether slot `index` holds a finding; its record may be read then, until it is taken.
GOFS_HD inline bool holds_finding(const CorruptionLog& log, uint32_t index) {
  return (simt::load_acquire(log.keys[index]) & CorruptionLog::kPublished) != 0;  // [F1]
}

/// How many different findings the log holds.
GOFS_HD inline uint32_t count_findings(const CorruptionLog& log) {
  uint32_t count = 0;
  for (uint32_t i = 0; i < kCorruptionsKept; ++i) count += holds_finding(log, i) ? 1 : 0;
  return count;
}

/// Moves the findings to `taken`, which has room for kCorruptionsKept, and frees their slots.
/// Returns how many. One thread at a time. A finding that is reported again later is kept again,
/// and one that comes while others are taken may be kept twice.
GOFS_HD inline uint32_t take_findings(CorruptionLog& log, Corruption* taken) {
  uint32_t count = 0;
  for (uint32_t i = 0; i < kCorruptionsKept; ++i) {
    if (!holds_finding(log, i)) continue;
    taken[count++] = log.records[i];
    simt::store_release(log.keys[i], uint64_t{0});  // [F2]
  }
  return count;
}

}  // namespace gofs::f2fs
