// SPDX-License-Identifier: Apache-2.0
//
// A volume that kernels use, kept as it is while the host copies what lies on its SSDs
// (work/hold.h): whoever wants to change it waits meanwhile.
#pragma once

#include <atomic>
#include <thread>

#include "gofs/expected.hpp"
#include "host/volume_state.h"
#include "work/hold.h"

namespace gofs::host {

class QuietVolume {
 public:
  /// Waits until operations and checkpoints that are under way have ended. Throws std::bad_alloc,
  /// std::system_error (no thread). The volume is mounted for writing.
  explicit QuietVolume(VolumeState& volume);
  /// As let_go().
  ~QuietVolume();
  QuietVolume(const QuietVolume&) = delete;
  QuietVolume& operator=(const QuietVolume&) = delete;

  /// Whether it is quiet; else why not.
  const Expected<void>& beginning() const { return beginning_; }
  /// Nothing is kept any more. Whether all was, from the beginning to this call.
  Expected<void> let_go();

 private:
  VolumeState& volume_;
  SharedArray<work::HoldParams> params_;
  std::atomic<bool> ended_{false};
  bool ran_ = false;  // of the thread, until it has ended
  Expected<void> beginning_;
  std::thread holding_;  // waits for the warp that holds it
};

}  // namespace gofs::host
