// SPDX-License-Identifier: Apache-2.0
//
// Long reads of a volume on a GPU into memory of the host that warps do not reach: by a launch of
// many warps for each portion, into memory that both reach, and from there by the caller.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <vector>

#include "gofs/volume.hpp"

namespace gofs::host {

class VolumeState;

class StagedReads {
 public:
  StagedReads();
  ~StagedReads();
  StagedReads(const StagedReads&) = delete;
  StagedReads& operator=(const StagedReads&) = delete;

  /// As AnyVolume::read_range(). None: as many as there may be are under way, or there is no memory
  /// for another one. From any thread.
  std::optional<int64_t> read(VolumeState& volume, const IoRange& range);

  /// Waits for all of them, and lets go what belongs to the backend; none is begun afterwards.
  void settle();

 private:
  struct Room;

  std::unique_ptr<Room> take(VolumeState& volume);
  void give_back(std::unique_ptr<Room> room);
  static int64_t read_through(Room& room, VolumeState& volume, const IoRange& range);

  std::mutex mutex_;
  std::condition_variable given_back_;
  std::vector<std::unique_ptr<Room>> free_;
  uint32_t taken_ = 0;
  bool settled_ = false;
};

}  // namespace gofs::host
