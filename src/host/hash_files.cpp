// SPDX-License-Identifier: Apache-2.0
#include "host/hash_files.h"

#include <algorithm>
#include <bit>
#include <chrono>
#include <condition_variable>
#include <cstring>
#include <new>
#include <numeric>
#include <thread>

#include "host/messages.h"
#include "kernels/bodies.h"
#include "simt/atomic.h"

namespace gofs::host {

namespace {

/// Memory for the chunks of all lanes together. A chunk is large enough that commands merge, and
/// small enough that the chunks of a full GPU fit.
constexpr uint64_t kBufferBytesMax = uint64_t{1} << 30;
constexpr uint64_t kChunkBytesMin = 16 << 10;
constexpr uint64_t kChunkBytesMax = 256 << 10;

constexpr auto kProgressInterval = std::chrono::milliseconds(100);

/// How the files are dealt out.
struct Deal {
  kernels::Grid grid;
  uint32_t warps;
  uint32_t lanes_per_warp;
  uint32_t chunk_bytes;
};

Deal deal_files(const kernels::Backend& backend, uint64_t file_count) {
  const uint32_t width = backend.warp_width();
  Deal deal{};
  deal.grid = backend.full_grid();
  const uint32_t warps_per_block = std::max(1u, deal.grid.threads_per_block / width);
  // Few files go to many warps with a few lanes each: each warp then reads for fewer.
  const uint64_t blocks =
      std::clamp<uint64_t>(simt::divide_up(file_count, warps_per_block), 1, deal.grid.blocks);
  deal.grid.blocks = static_cast<uint32_t>(blocks);
  deal.warps = deal.grid.blocks * warps_per_block;
  deal.lanes_per_warp = static_cast<uint32_t>(
      std::clamp<uint64_t>(simt::divide_up(file_count, deal.warps), 1, width));
  const uint64_t lanes = uint64_t{deal.warps} * width;
  deal.chunk_bytes = static_cast<uint32_t>(
      std::clamp(std::bit_floor(kBufferBytesMax / lanes), kChunkBytesMin, kChunkBytesMax));
  return deal;
}

/// Calls `progress` with the sum of the warps' counts until it goes.
class ProgressThread {
 public:
  ProgressThread(const SharedArray<uint64_t>& bytes_done,
                 const std::function<void(uint64_t)>& progress)
      : thread_([this, &bytes_done, &progress] {
          std::unique_lock lock(mutex_);
          while (!wake_.wait_for(lock, kProgressInterval, [this] { return ended_; })) {
            uint64_t sum = 0;
            for (size_t i = 0; i < bytes_done.size(); ++i) {
              sum += simt::load_system_relaxed(bytes_done[i]);
            }
            progress(sum);
          }
        }) {}
  ~ProgressThread() {
    {
      const std::lock_guard lock(mutex_);
      ended_ = true;
    }
    wake_.notify_one();
    thread_.join();
  }
  ProgressThread(const ProgressThread&) = delete;
  ProgressThread& operator=(const ProgressThread&) = delete;

 private:
  std::mutex mutex_;
  std::condition_variable wake_;
  bool ended_ = false;
  std::thread thread_;
};

}  // namespace

Expected<std::vector<kernels::HashFile>> hash_files(
    VolumeState& volume, const std::vector<FileToHash>& files,
    const std::function<void(uint64_t bytes)>& progress) {
  std::vector<kernels::HashFile> answers(files.size());
  if (files.empty()) return answers;
  std::vector<uint32_t> order(files.size());
  std::iota(order.begin(), order.end(), 0u);
  std::sort(order.begin(), order.end(), [&](uint32_t a, uint32_t b) {
    return files[a].size_bytes != files[b].size_bytes ? files[a].size_bytes > files[b].size_bytes
                                                      : a < b;
  });
  kernels::Backend& backend = volume.backend();
  const Deal deal = deal_files(backend, files.size());
  const size_t lanes = size_t{deal.warps} * backend.warp_width();
  try {
    simt::MemorySpace& shared = backend.shared_memory();
    const SharedArray<kernels::HashFile> table(shared, files.size());
    const SharedArray<uint64_t> bytes_done(shared, deal.warps);
    const SharedArray<kernels::HashParams> params(shared, 1);
    const SharedArray<uint32_t> cursor(backend.memory(), 1);
    const SharedArray<uint8_t> buffers(backend.memory(), lanes * deal.chunk_bytes);
    const SharedArray<kernels::HashLane> lane_states(backend.memory(), lanes);
    for (size_t i = 0; i < files.size(); ++i) {
      table[i].ino = static_cast<uint32_t>(files[order[i]].ino);
      table[i].error = -EIO;  // unless the caller says otherwise
    }
    kernels::HashParams& job = params[0];
    job.fs = volume.filesystem();
    job.files = table.data();
    job.count = static_cast<uint32_t>(files.size());
    job.lanes_per_warp = deal.lanes_per_warp;
    job.cursor = cursor.data();
    job.chunk_bytes = deal.chunk_bytes;
    job.buffers = buffers.data();
    job.lanes = lane_states.data();
    job.bytes_done = bytes_done.data();
    {
      const ProgressThread reporter(bytes_done, progress);
      if (!volume.run(kernels::bodies::kHashFiles, deal.grid, params.data())) {
        return volume.explain(VolumeState::kNotRun, volume.spec().text);
      }
    }
    for (size_t i = 0; i < files.size(); ++i) answers[order[i]] = table[i];
  } catch (const std::bad_alloc&) {
    return volume.explain(-ENOMEM, volume.spec().text);
  }
  return answers;
}

}  // namespace gofs::host
