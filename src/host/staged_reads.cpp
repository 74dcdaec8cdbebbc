// SPDX-License-Identifier: Apache-2.0
#include "host/staged_reads.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <new>
#include <utility>

#include "host/range_work.h"
#include "host/volume_state.h"

namespace gofs::host {

namespace {

/// Of pinned memory each has so much: a launch is to be short beside what it reads.
constexpr uint64_t kPortionBytes = uint64_t{8} << 20;
/// Of an SSD that threads of the host are, more warps than some 50 read less.
constexpr uint64_t kWarpBytes = 256 * 1024;
constexpr uint32_t kAtOnce = 2;

}  // namespace

struct StagedReads::Room {
  explicit Room(kernels::Backend& backend)
      : work(backend, {}), staging(backend.shared_memory(), kPortionBytes) {}
  LaunchedRanges work;
  SharedArray<uint8_t> staging;
};

StagedReads::StagedReads() = default;
StagedReads::~StagedReads() = default;

std::unique_ptr<StagedReads::Room> StagedReads::take(VolumeState& volume) {
  {
    const std::lock_guard lock(mutex_);
    if (settled_ || taken_ == kAtOnce) return nullptr;
    ++taken_;
    if (!free_.empty()) {
      std::unique_ptr<Room> room = std::move(free_.back());
      free_.pop_back();
      return room;
    }
  }
  try {
    return std::make_unique<Room>(volume.backend());
  } catch (const std::bad_alloc&) {
    give_back(nullptr);
    return nullptr;
  }
}

void StagedReads::give_back(std::unique_ptr<Room> room) {
  const std::lock_guard lock(mutex_);
  try {
    if (room != nullptr) free_.push_back(std::move(room));
  } catch (const std::bad_alloc&) {
    room.reset();
  }
  --taken_;
  given_back_.notify_all();
}

std::optional<int64_t> StagedReads::read(VolumeState& volume, const IoRange& range) {
  std::unique_ptr<Room> room = take(volume);
  if (room == nullptr) return std::nullopt;
  int64_t result = -ENOMEM;
  try {
    result = read_through(*room, volume, range);
  } catch (const std::bad_alloc&) {
    // For the pieces of a portion.
  }
  give_back(std::move(room));
  return result;
}

int64_t StagedReads::read_through(Room& room, VolumeState& volume, const IoRange& range) {
  const auto run = [&volume](const kernels::Body& body, const kernels::Grid& grid, void* params) {
    return volume.run(body, grid, params);
  };
  uint64_t done = 0;
  while (done < range.bytes) {
    const uint64_t bytes = std::min(range.bytes - done, kPortionBytes);
    const IoRange portion{range.fd, room.staging.data(), bytes, range.offset + done};
    const auto result = room.work.run(volume.filesystem(), false, portion, kWarpBytes, run);
    if (!result) return VolumeState::kNotRun;
    if (*result < 0) return *result;
    const auto moved = static_cast<uint64_t>(*result);
    std::memcpy(static_cast<uint8_t*>(range.memory) + done, portion.memory, moved);
    done += moved;
    if (moved < bytes) break;  // the file's end
  }
  return static_cast<int64_t>(done);
}

void StagedReads::settle() {
  std::unique_lock lock(mutex_);
  settled_ = true;
  given_back_.wait(lock, [this] { return taken_ == 0; });
  free_.clear();
}

}  // namespace gofs::host
