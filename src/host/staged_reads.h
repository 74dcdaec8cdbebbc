// SPDX-License-Identifier: Apache-2.0
//
// Reads of a volume on a GPU into memory of the host that warps do not reach, long ones or many
// together: by a launch of many warps for each portion, into memory that both reach, and from there
// by the caller.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <memory>
#include <mutex>
#include <span>
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

  /// As AnyVolume::read_staged(). False: as many as there may be are under way, or there is no
  /// memory for others. From any thread.
  bool read(VolumeState& volume, std::span<const IoRange> ranges, std::span<int64_t> results);

  /// Waits for all of them, and lets go what belongs to the backend; none is begun afterwards.
  void settle();

 private:
  struct Room;
  class Passage;

  std::unique_ptr<Room> take(VolumeState& volume);
  void give_back(std::unique_ptr<Room> room);

  std::mutex mutex_;
  std::condition_variable given_back_;
  std::vector<std::unique_ptr<Room>> free_;
  uint32_t taken_ = 0;
  bool settled_ = false;
};

}  // namespace gofs::host
