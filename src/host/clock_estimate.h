// SPDX-License-Identifier: Apache-2.0
//
// What follows from looks at the host's clock and the backend's at the same moment: how far they
// are apart, and how fast that changes. GoFS (SOSP '25) takes an offset each ten minutes, and its
// clocks have drifted apart by a millisecond until the next one; here the line goes on as the
// clocks did between the last two looks.
#pragma once

#include "vfs/real_clock.h"

namespace gofs::host {

/// One look at both clocks.
struct ClockSample {
  uint64_t now_ns = 0;      // the backend's, simt::now_ns()
  int64_t realtime_ns = 0;  // the host's at that moment, since 1970,
  uint64_t error_ns = 0;    // or as much earlier or later
};

class ClockEstimate {
 public:
  /// Takes in a look that is later than those before. How far off the line was by then, in
  /// nanoseconds: positive where it was late. 0 for the first.
  int64_t add(const ClockSample& sample);

  /// The line from the last look on.
  const vfs::ClockLine& line() const { return line_; }

 private:
  vfs::ClockLine line_{};
  uint64_t error_ns_ = 0;
  bool any_ = false;
};

}  // namespace gofs::host
