// SPDX-License-Identifier: Apache-2.0
#include "host_files.hpp"

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <exception>
#include <memory>
#include <vector>

#include "host/messages.h"
#include "options.hpp"
#include "simt/workers.h"
#include "slots.hpp"

namespace gofs::bench {
namespace {

constexpr const char* kFilesSubject = "host threads";
constexpr uint32_t kBlocksEach = kSmallFileBytes / kBlockBytes;

/// What one thread has.
struct Lane {
  explicit Lane(Device& device)
      : copies(device.make_copies()), staging(device.backend().shared_memory(), kSmallFileBytes) {}

  std::unique_ptr<Copies> copies;
  BackendArray staging;
  int error = 0;
};

class FilesRun {
 public:
  FilesRun(Device& device, Storage& storage, uint32_t threads, uint32_t files)
      : storage_(storage), files_(files), slots_(device, uint64_t{files} * kBlocksEach) {
    for (uint64_t slot = 0; slot < slots_.count(); ++slot) slots_.block(slot) = slot % kBlocksEach;
    for (uint32_t i = 0; i < threads; ++i) lanes_.push_back(std::make_unique<Lane>(device));
  }

  Expected<Sample> run() {
    for (const auto& lane : lanes_) {
      if (lane->copies == nullptr) {
        return host::make_error(EIO, kFilesSubject, "a thread's copies cannot be made");
      }
    }
    const auto threads = static_cast<uint32_t>(lanes_.size());
    const CpuMeter meter;
    const uint64_t start_ns = simt::now_ns();
    try {
      simt::run_workers(threads,
                        [this](const simt::Warp&, uint32_t thread) { work(*lanes_[thread]); });
    } catch (const std::exception& problem) {
      return host::make_error(EAGAIN, kFilesSubject, problem.what());
    }
    const double seconds = static_cast<double>(simt::now_ns() - start_ns) * 1e-9;
    const double cores = meter.cores();
    for (const auto& lane : lanes_) {
      if (lane->error == -EBADMSG) return wrong_blocks(1, "that a host thread got");
      if (lane->error != 0) return host::make_error(lane->error, kFilesSubject);
    }
    if (auto checked = slots_.check(0); !checked) return checked.error();
    return Sample{threads, threads, files_, seconds, cores};
  }

 private:
  void work(Lane& lane) {
    while (lane.error == 0) {
      const uint32_t file = next_.fetch_add(1, std::memory_order_relaxed);
      if (file >= files_) return;
      lane.error = read(lane, file);
    }
  }

  int read(Lane& lane, uint32_t file) {
    if (const int error = storage_.read_file(file, lane.staging.data()); error != 0) return error;
    for (uint32_t i = 0; i < kBlocksEach; ++i) {
      if (!has_block_stamp(lane.staging.data() + i * kBlockBytes, i, 0)) return -EBADMSG;
    }
    lane.copies->begin(slots_.at(uint64_t{file} * kBlocksEach), lane.staging.data(),
                       kSmallFileBytes);
    return lane.copies->finish();
  }

  Storage& storage_;
  const uint32_t files_;
  Slots slots_;
  std::vector<std::unique_ptr<Lane>> lanes_;
  std::atomic<uint32_t> next_{0};
};

}  // namespace

Expected<Sample> run_host_files(Device& device, Storage& storage, uint32_t threads,
                                uint32_t files) {
  try {
    return FilesRun(device, storage, threads, files).run();
  } catch (const std::bad_alloc&) {
    return host::make_error(ENOMEM, kFilesSubject);
  }
}

}  // namespace gofs::bench
