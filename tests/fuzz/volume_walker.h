// SPDX-License-Identifier: Apache-2.0
//
// Asks a mounted volume for everything it can be asked, as programs would: every directory listed
// and searched, every inode asked, every link read and followed, extended attributes listed and
// read, the beginning, the end and the
// edges of every file read, by path, by number, in batches, lane by lane, asynchronously, and
// hashed. Each loop here has a bound that does not come from the volume, so what takes long is the
// reader's doing.
//
// Like all code on a warp: called by each of its lanes, with the same arguments.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "kernels/batch.h"
#include "kernels/hash.h"
#include "kernels/inodes.h"
#include "simt/memory.h"
#include "vfs/async.h"
#include "vfs/batch.h"
#include "vfs/metadata.h"
#include "vfs/xattr.h"

namespace gofs::fuzz {

struct WalkLimits {
  uint32_t names = 6000;                    // that listings give, all together
  uint32_t directories = 200;               // listed
  uint32_t names_looked_up = 12;            // in each directory, spread over its listing
  uint32_t seeks = 6;                       // to data and holes, in each file
  uint32_t hashed_bytes = 3 * kBlockBytes;  // larger files are not hashed
};

/// Memory that the lanes share: what calls write to. Each array is an allocation of its own, so
/// that AddressSanitizer sees the end of it.
class WalkMemory {
 public:
  static constexpr uint32_t kEntries = 96;
  static constexpr uint32_t kReadBytes = 8 * kBlockBytes;
  static constexpr uint32_t kBatchFiles = 64;
  static constexpr uint32_t kQueries = 128;
  static constexpr uint32_t kHashChunkBytes = 2 * kBlockBytes;

  WalkMemory(simt::MemorySpace& memory, uint32_t warp_width);
  ~WalkMemory();
  WalkMemory(const WalkMemory&) = delete;
  WalkMemory& operator=(const WalkMemory&) = delete;

  f2fs::NamedEntry* entries;
  uint8_t* read;      // kReadBytes
  char* link;         // vfs::kPathBytesMax
  uint64_t* offsets;  // kBatchFiles
  kernels::BatchParams* batch;
  kernels::InodeQuery* queries;
  char* targets;    // of 4 queries, a path's length each
  uint8_t* xattrs;  // of 4 queries, vfs::kXattrListBytesMax each
  kernels::InodesParams* inodes;
  kernels::HashFile* hash_files;  // kQueries
  kernels::HashParams* hash;
  uint32_t* hash_cursor;
  uint8_t* hash_buffers;
  kernels::HashLane* hash_lanes;
  uint64_t* hash_done;

 private:
  template <typename T>
  T* take(size_t count);

  simt::MemorySpace& memory_;
  std::vector<void*> blocks_;
};

struct WalkReport {
  static constexpr uint32_t kErrnos = 134;

  uint64_t digest = 0;  // of all answers: equal for equal volumes
  uint32_t operations = 0;
  uint32_t names = 0;
  uint32_t directories = 0;
  uint32_t files = 0;
  uint32_t links = 0;
  uint32_t specials = 0;
  uint64_t bytes_read = 0;
  uint32_t files_hashed = 0;
  uint32_t corruptions = 0;                // that were reported, but for senseless questions
  bool cut = false;                        // a limit of names or directories was reached
  std::array<uint32_t, kErrnos> errors{};  // answers by errno
  std::string wrong;                       // an answer that no volume may lead to; else empty

  bool operator==(const WalkReport&) const = default;
};

/// Called before each operation with its number, from 1 on, by every lane.
using OperationHook = std::function<void(uint32_t)>;

WalkReport walk_volume(const simt::Warp& warp, vfs::Filesystem& fs, const WalkMemory& memory,
                       const WalkLimits& limits, const OperationHook& hook);

}  // namespace gofs::fuzz
