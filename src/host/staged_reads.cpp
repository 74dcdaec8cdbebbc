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

/// Ranges on their way through a room: a portion has several short ones, or a part of a long one.
class StagedReads::Passage {
 public:
  Passage(Room& room, VolumeState& volume, std::span<const IoRange> ranges,
          std::span<int64_t> results)
      : room_(room), volume_(volume), ranges_(ranges), results_(results) {}

  /// All of them; those that are not reached have kNotRun. Throws std::bad_alloc.
  void make() {
    std::fill(results_.begin(), results_.end(), int64_t{VolumeState::kNotRun});
    const auto run = [this](const kernels::Body& body, const kernels::Grid& grid, void* params) {
      return volume_.run(body, grid, params);
    };
    while (next_ < ranges_.size()) {
      fill_portion();
      const auto* const found =
          room_.work.run(volume_.filesystem(), false, portion_, kWarpBytes, run);
      if (found == nullptr) return;
      for (size_t i = 0; i < portion_.size(); ++i) take(portion_[i], found[i]);
    }
  }

 private:
  void fill_portion() {
    portion_.clear();
    uint64_t used = 0;
    uint64_t done = done_;
    for (size_t i = next_; i < ranges_.size() && used < kPortionBytes; ++i, done = 0) {
      const IoRange& range = ranges_[i];
      const uint64_t bytes = std::min(range.bytes - done, kPortionBytes - used);
      portion_.push_back({range.fd, room_.staging.data() + used, bytes, range.offset + done});
      used = simt::align_up(used + bytes, uint64_t{kBlockBytes});
    }
  }

  /// Of the range that is next.
  void take(const IoRange& part, int64_t result) {
    const IoRange& range = ranges_[next_];
    const bool has_ended = result < static_cast<int64_t>(part.bytes);
    if (result > 0) {
      std::memcpy(static_cast<uint8_t*>(range.memory) + done_, part.memory,
                  static_cast<uint64_t>(result));
      done_ += static_cast<uint64_t>(result);
    }
    if (!has_ended && done_ < range.bytes) return;  // the rest is in the next portion
    results_[next_] = result < 0 ? result : static_cast<int64_t>(done_);
    ++next_;
    done_ = 0;
  }

  Room& room_;
  VolumeState& volume_;
  const std::span<const IoRange> ranges_;
  const std::span<int64_t> results_;
  size_t next_ = 0;    // the first range that has not ended, and
  uint64_t done_ = 0;  // what is there of it
  std::vector<IoRange> portion_;
};

bool StagedReads::read(VolumeState& volume, std::span<const IoRange> ranges,
                       std::span<int64_t> results) {
  std::unique_ptr<Room> room = take(volume);
  if (room == nullptr) return false;
  try {
    Passage(*room, volume, ranges, results).make();
  } catch (const std::bad_alloc&) {  // for the pieces of a portion
    std::replace(results.begin(), results.end(), int64_t{VolumeState::kNotRun}, int64_t{-ENOMEM});
  }
  give_back(std::move(room));
  return true;
}

void StagedReads::settle() {
  std::unique_lock lock(mutex_);
  settled_ = true;
  given_back_.wait(lock, [this] { return taken_ == 0; });
  free_.clear();
}

}  // namespace gofs::host
