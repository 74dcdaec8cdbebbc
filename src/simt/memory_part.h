// SPDX-License-Identifier: Apache-2.0
//
// What memory is for: a word that whoever allocates some says of it, so that a report can tell what
// a mounted volume takes, and where it goes.
#pragma once

#include <cstdint>

namespace gofs::simt {

enum class MemoryPart : uint32_t {
  kPageCache,    // metadata blocks: nodes, blocks of directories, the NAT, others
  kCheckpoint,   // the checkpoint, with the bitmaps that say which copy of the NAT and SIT counts
  kSegments,     // the SIT, and the segments that are written to
  kNames,        // name and path tables
  kBlockMaps,    // of open files
  kOpenInodes,   // without their range locks
  kRangeLocks,   // of open inodes
  kDescriptors,  // of open files
  kBatches,
  kOperations,   // asynchronous reads and writes
  kSpareBlocks,  // that a call needs for a moment
  kBounces,      // of requests whose buffers are not in global memory
  kRecords,      // that are appended together
  kLocks,        // of inodes, names and blocks
  kWriter,       // orphans, and what checkpoints, fsync and cleaning keep
  kQueues,       // NVMe queue pairs
  kStaging,      // on the way between a physical SSD and memory that it does not reach
  kVolume,       // the volume itself, and the log of damage
  kCalls,        // arguments and buffers of host programs' calls and of measurements
  kController,   // the virtual SSD's controller
  kMedia,        // what is stored on it
};
inline constexpr uint32_t kMemoryParts = 21;

/// A virtual SSD's own: a physical one would not take it.
constexpr bool is_of_ssd(MemoryPart part) {
  return part == MemoryPart::kController || part == MemoryPart::kMedia;
}

}  // namespace gofs::simt
