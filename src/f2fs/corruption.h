// SPDX-License-Identifier: Apache-2.0
//
// What is wrong with a volume, in a form that device code can write: which structure, where, and
// the value that cannot be. The host turns a record into a sentence (describe). Device code returns
// -EUCLEAN beside it. The log keeps the first records; the count goes on.
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
  kDentry,
  kDirectory,
  kSymlink,
  kXattr,
  kSitEntry,
};

struct Corruption {
  Structure structure;
  uint32_t block;  // block address, 0 if not known
  uint64_t id;     // nid, ino or segment number
  uint64_t value;  // what was found
};

inline constexpr uint32_t kCorruptionsKept = 64;

struct CorruptionLog {
  uint32_t count;
  uint32_t unused;
  Corruption records[kCorruptionsKept];
};

/// Notes one finding and returns -EUCLEAN. Called by one lane for one finding.
GOFS_HD inline int report(CorruptionLog& log, const Corruption& corruption) {
  const uint32_t index = simt::add_relaxed(log.count, 1u);
  if (index < kCorruptionsKept) log.records[index] = corruption;
  return -117;  // EUCLEAN
}

/// The same for a finding that all lanes have made: the first lane reports for all. Collective,
/// uniform. -EUCLEAN.
GOFS_HD inline int report_once(const simt::Warp& warp, CorruptionLog& log,
                               const Corruption& corruption) {
  return warp.shfl(warp.thread_rank() == 0 ? report(log, corruption) : 0, 0);
}

}  // namespace gofs::f2fs
