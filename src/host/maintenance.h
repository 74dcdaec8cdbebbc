// SPDX-License-Identifier: Apache-2.0
//
// What a mounted volume does by itself: a checkpoint from time to time, and cleaning while nothing
// else happens.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <mutex>
#include <thread>

namespace gofs::host {

class VolumeState;

/// Begins with the object and ends with it, after the step that is under way. A step that fails is
/// made again a period later; sync() and unmount() say why it does. Where the backend has failed
/// for good it stops by itself.
class Maintenance {
 public:
  /// Each period (ns, not 0) a checkpoint, if anything has changed since the last one. Where no
  /// command went to the SSD for a whole period, and fewer than `idle_free_segments` are free, some
  /// segments are emptied, old ones first.
  Maintenance(VolumeState& volume, uint64_t period_ns, uint32_t idle_free_segments);
  ~Maintenance();
  Maintenance(const Maintenance&) = delete;
  Maintenance& operator=(const Maintenance&) = delete;

 private:
  void work();
  void step();

  VolumeState& volume_;
  const uint64_t period_ns_;
  const uint32_t idle_free_segments_;
  uint64_t commands_ = 0;  // that the SSD had been given at the end of the last step
  std::mutex mutex_;
  std::condition_variable ended_;
  bool ending_ = false;
  std::thread thread_;  // the last: it uses all of the above
};

}  // namespace gofs::host
