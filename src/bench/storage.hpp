// SPDX-License-Identifier: Apache-2.0
//
// What files of a volume that is there cost, whatever it lies on: random and sequential reads and
// writes of one file and batches of small ones, at several numbers outstanding, with the time of
// the host's processors that they take. For comparing with other programs on the same storage.
//
// Each that is outstanding is a warp's, which begins the next one when it is done, as a job of fio
// does. Those of a warp's threads would begin together, when the slowest of them is done.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "gofs/expected.hpp"
#include "host/volume_state.h"

namespace gofs::bench {

enum class StorageWork : uint32_t {
  kRandomRead,
  kRandomWrite,
  kSequentialRead,
  kSequentialWrite,
  kBatchCreate,  // of small files,
  kBatchRead,    // which are read then
};
inline constexpr uint32_t kStorageWorks = 6;
/// "random-read", "random-write", "sequential-read", "sequential-write", "batch-create",
/// "batch-read".
const char* name_of(StorageWork work);

inline constexpr uint32_t kStorageRandomBytes = 4096;
inline constexpr uint32_t kStorageSequentialBytes = 128 << 10;
inline constexpr uint32_t kStorageFileBytes = 16 << 10;

struct StorageOptions {
  std::string volume;  // with options; it gets a directory of its own, which goes at the end
  std::string backend = "auto";
  std::vector<StorageWork> works = {StorageWork::kRandomRead, StorageWork::kRandomWrite,
                                    StorageWork::kSequentialRead, StorageWork::kSequentialWrite};
  std::vector<uint32_t> outstanding = {1, 4, 16, 32, 64, 128, 256};
  uint64_t file_bytes = uint64_t{1} << 30;  // whole MiB
  uint32_t files = 10'000;                  // of a batch
  double seconds = 0.5;                     // of each point
};

struct StorageRow {
  StorageWork work;
  uint32_t wanted;       // outstanding,
  uint32_t outstanding;  // and what the backend could give. Of batches 0
  uint32_t bytes;        // of an operation, or of a file
  uint64_t operations;
  double seconds;      // on the backend's clock
  double cpu_seconds;  // of the host

  double operations_per_second() const {
    return seconds > 0 ? static_cast<double>(operations) / seconds : 0;
  }
};

struct StorageSinks {
  std::function<void(host::VolumeState&)> volume;  // about to be measured
  std::function<void(const StorageRow&)> row;
  std::function<void(host::VolumeState&)> end;  // all was measured, it is mounted still
};

/// Runs it. The first error ends it; EIO also for wrong bytes.
Expected<void> run_storage(const StorageOptions& options, const StorageSinks& sinks);

}  // namespace gofs::bench
