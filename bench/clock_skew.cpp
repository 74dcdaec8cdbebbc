// SPDX-License-Identifier: Apache-2.0
//
// How far the clock of time stamps comes off the host's between two looks at both: by an offset
// alone, as in GoFS (SOSP '25: 326 us on average within ten minutes, 1,368 us at worst), and by a
// line that goes on as fast as the clocks did between the last two looks.
//
// usage: gofs_clock_skew [BACKEND [SECONDS [LEARNED]]]
//   BACKEND auto, cpu or cuda; SECONDS that are watched (default 60), after LEARNED seconds
//   (default 10) between the two looks from which the line is drawn
// Prints a table, a row each few seconds: how late time stamps are, in microseconds (below 0:
// early), each as exact as the last column says.
#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <thread>

#include "host/clock_keeper.h"
#include "host/volume_state.h"
#include "take.hpp"

namespace {

using gofs::host::ClockEstimate;
using gofs::host::ClockSample;
using gofs::host::VolumeState;
using gofs::measuring::take;

constexpr uint32_t kRows = 20;

ClockSample look(VolumeState& volume) { return take(gofs::host::sample_clocks(volume)); }

void wait(double seconds) { std::this_thread::sleep_for(std::chrono::duration<double>(seconds)); }

/// How late the clocks are that are seen all the time.
class Skew {
 public:
  void add(double late_us) {
    most_ = std::max(most_, std::abs(late_us));
    sum_ += std::abs(late_us);
    ++count_;
  }
  double most_us() const { return most_; }
  double mean_us() const { return count_ == 0 ? 0 : sum_ / count_; }

 private:
  double most_ = 0;
  double sum_ = 0;
  uint32_t count_ = 0;
};

}  // namespace

int main(int argc, char** argv) {
  const std::string backend = argc > 1 ? argv[1] : "auto";
  const double seconds = argc > 2 ? std::atof(argv[2]) : 60;
  const double learned = argc > 3 ? std::atof(argv[3]) : 10;
  if (seconds <= 0 || learned <= 0) {
    std::fprintf(stderr, "usage: gofs_clock_skew [BACKEND [SECONDS [LEARNED]]]\n");
    return 2;
  }
  gofs::MountOptions options;
  options.backend = backend;
  const auto volume =
      take(VolumeState::mount("ram:16M", options, gofs::host::MountKind::kDeviceOnly));
  std::printf("backend %s: %s\n", volume->info().backend.c_str(),
              volume->info().backend_detail.c_str());
  ClockEstimate by_line;
  by_line.add(look(*volume));
  wait(learned);
  const ClockSample start = look(*volume);
  by_line.add(start);
  ClockEstimate by_offset;
  by_offset.add(start);
  std::printf("looks %.0f s apart, each known to %.2f us; drift %.4f ppm\n", learned,
              static_cast<double>(start.error_ns) * 1e-3,
              std::ldexp(static_cast<double>(by_line.line().gain) * 1e6,
                         -static_cast<int>(gofs::vfs::kClockGainShift)));
  std::printf("%10s %12s %12s %8s\n", "seconds", "offset us", "line us", "+- us");
  Skew offset;
  Skew line;
  for (uint32_t row = 1; row <= kRows; ++row) {
    wait(seconds / kRows);
    const ClockSample now = look(*volume);
    const auto late_us = [&](const ClockEstimate& estimate) {
      const int64_t late = now.realtime_ns - gofs::vfs::realtime_at(estimate.line(), now.now_ns);
      return static_cast<double>(late) * 1e-3;
    };
    offset.add(late_us(by_offset));
    line.add(late_us(by_line));
    std::printf("%10.1f %12.2f %12.2f %8.2f\n",
                static_cast<double>(now.now_ns - start.now_ns) * 1e-9, late_us(by_offset),
                late_us(by_line), static_cast<double>(now.error_ns) * 1e-3);
  }
  std::printf("offset alone: mean %.1f us, worst %.1f us; line: mean %.1f us, worst %.1f us\n",
              offset.mean_us(), offset.most_us(), line.mean_us(), line.most_us());
  return 0;
}
