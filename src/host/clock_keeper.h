// SPDX-License-Identifier: Apache-2.0
//
// Keeps the clock of a mounted volume, by which its warps set time stamps, with the host's.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <mutex>
#include <thread>

#include "gofs/volume.hpp"
#include "host/clock_estimate.h"
#include "host/shared_array.h"
#include "kernels/clock.h"

namespace gofs::host {

class VolumeState;

/// Looks at both clocks a few times in a row, and keeps the look that took least. From any thread;
/// some 0.1 ms on a GPU that has room for a kernel. EIO: the backend has failed; ETIMEDOUT: it has
/// not answered. Throws what SharedArray does, or by std::thread.
Expected<ClockSample> sample_clocks(VolumeState& volume);

/// Begins with the object and ends with it. It stops by itself where the backend fails for good; a
/// look that fails is made again a period later.
class ClockKeeper {
 public:
  /// Draws the first line, and from then on a new one each period (ns, not 0), and sooner in the
  /// beginning, since a gain is known only from two looks. Throws what SharedArray does.
  ClockKeeper(VolumeState& volume, uint64_t period_ns);
  ~ClockKeeper();
  ClockKeeper(const ClockKeeper&) = delete;
  ClockKeeper& operator=(const ClockKeeper&) = delete;

  /// Why the first line could not be drawn.
  const Expected<void>& beginning() const { return beginning_; }
  ClockReport report() const;

 private:
  void work();
  Expected<void> step();
  Expected<void> step_or_throw();

  VolumeState& volume_;
  const uint64_t period_ns_;
  // Had once: on a GPU what is let go of waits for all that runs there, a server's warps too.
  SharedArray<kernels::ClockParams> params_;
  ClockEstimate estimate_;
  mutable std::mutex mutex_;  // of what follows
  ClockReport report_;
  std::condition_variable ended_;
  bool ending_ = false;
  Expected<void> beginning_;
  std::thread thread_;  // the last: it uses all of the above
};

}  // namespace gofs::host
