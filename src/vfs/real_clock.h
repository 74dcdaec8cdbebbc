// SPDX-License-Identifier: Apache-2.0
//
// The time as the host has it (CLOCK_REALTIME), for time stamps: a line over simt::now_ns(), which
// the host draws anew from time to time (host/clock_keeper.h).
#pragma once

#include "simt/atomic.h"
#include "simt/clock.h"

namespace gofs::vfs {

/// Parts of a nanosecond that ClockLine::gain counts: 2^-32.
inline constexpr uint32_t kClockGainShift = 32;
/// Clocks that differ by more than 200 ppm are not drifting apart: one of them was set.
inline constexpr int64_t kClockGainMax = (int64_t{1} << kClockGainShift) / 5'000;

struct ClockLine {
  uint64_t now_ns;      // when simt::now_ns() said this,
  int64_t realtime_ns;  // it was so late: nanoseconds since 1970
  int64_t gain;  // what the host's clock gains in each nanosecond, at most kClockGainMax of them
};

/// The host's time, in nanoseconds since 1970, when simt::now_ns() says `now_ns`: years after the
/// line was drawn, or before.
GOFS_HD constexpr int64_t realtime_at(const ClockLine& line, uint64_t now_ns) {
  constexpr uint32_t kCoarse = 14;  // so that years times the gain fit
  const auto elapsed = static_cast<int64_t>(now_ns - line.now_ns);
  const int64_t gained = (elapsed >> kCoarse) * line.gain >> (kClockGainShift - kCoarse);
  return line.realtime_ns + elapsed + gained;
}

struct RealClock {
  ClockLine lines[2];
  uint32_t current;  // the line that counts
};

/// Nanoseconds since 1970, when simt::now_ns() says `now_ns`. Any lane.
GOFS_HD inline int64_t realtime_when(const RealClock& clock, uint64_t now_ns) {
  const ClockLine& line = clock.lines[simt::load_acquire(clock.current)];  // [V14]
  return realtime_at({simt::load_relaxed(line.now_ns), simt::load_relaxed(line.realtime_ns),
                      simt::load_relaxed(line.gain)},
                     now_ns);
}
/// The same of now.
GOFS_HD inline int64_t realtime_now(const RealClock& clock) {
  return realtime_when(clock, simt::now_ns());
}

/// As realtime_now(), but no load waits for another, which is for who only compares what it says: a
/// line that is drawn in this moment may be taken for the one that stood there before, minutes ago.
GOFS_HD inline int64_t realtime_about(const RealClock& clock) {
  const uint32_t current = simt::load_relaxed(clock.current);
  const auto line = [&](uint32_t index) {
    return ClockLine{simt::load_relaxed(clock.lines[index].now_ns),
                     simt::load_relaxed(clock.lines[index].realtime_ns),
                     simt::load_relaxed(clock.lines[index].gain)};
  };
  const ClockLine first = line(0);
  const ClockLine second = line(1);
  return realtime_at(current == 0 ? first : second, simt::now_ns());
}

/// Has `line` count from now on. One lane; never two at a time, and seconds apart, so that no
/// thread is still reading the line before the last.
GOFS_HD inline void draw_line(RealClock& clock, const ClockLine& line) {
  const uint32_t next = 1 - simt::load_relaxed(clock.current);
  simt::store_relaxed(clock.lines[next].now_ns, line.now_ns);
  simt::store_relaxed(clock.lines[next].realtime_ns, line.realtime_ns);
  simt::store_relaxed(clock.lines[next].gain, line.gain);
  simt::store_release(clock.current, next);  // [V14]
}

}  // namespace gofs::vfs
