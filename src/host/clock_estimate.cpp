// SPDX-License-Identifier: Apache-2.0
#include "host/clock_estimate.h"

#include <cmath>

namespace gofs::host {
namespace {

/// A gain is known better than this, in parts of a nanosecond a nanosecond, or not at all.
constexpr double kGainErrorMax = 2e-6;

}  // namespace

int64_t ClockEstimate::add(const ClockSample& sample) {
  vfs::ClockLine next{sample.now_ns, sample.realtime_ns, line_.gain};
  int64_t late_ns = 0;
  if (any_) {
    late_ns = sample.realtime_ns - vfs::realtime_at(line_, sample.now_ns);
    const auto elapsed = static_cast<double>(sample.now_ns - line_.now_ns);
    const double gained = static_cast<double>(sample.realtime_ns - line_.realtime_ns) - elapsed;
    const double gain = std::ldexp(gained / elapsed, vfs::kClockGainShift);
    const auto error = static_cast<double>(sample.error_ns + error_ns_);
    const bool known = elapsed > 0 && error < kGainErrorMax * elapsed;
    // Beyond that the host's clock was set, which says nothing about how fast it goes.
    if (known && std::abs(gain) <= static_cast<double>(vfs::kClockGainMax)) {
      next.gain = std::llround(gain);
    }
  }
  line_ = next;
  error_ns_ = sample.error_ns;
  any_ = true;
  return late_ns;
}

}  // namespace gofs::host
