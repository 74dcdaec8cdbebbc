// SPDX-License-Identifier: Apache-2.0
//
// Time of the host's processors that a measurement takes: of all threads of the process, whatever
// the kernel does for them included.
#pragma once

#include <sys/resource.h>
#include <sys/time.h>

#include <chrono>

namespace gofs::bench {

class CpuMeter {
 public:
  CpuMeter() : cpu_seconds_(cpu_now()), start_(std::chrono::steady_clock::now()) {}

  /// User and system time since then.
  double seconds() const { return cpu_now() - cpu_seconds_; }
  /// Cores that were busy since then, on average.
  double cores() const {
    const std::chrono::duration<double> wall = std::chrono::steady_clock::now() - start_;
    return wall.count() > 0 ? seconds() / wall.count() : 0;
  }

 private:
  static double seconds_of(const timeval& time) {
    return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_usec) * 1e-6;
  }
  static double cpu_now() {
    rusage usage{};
    (void)::getrusage(RUSAGE_SELF, &usage);
    return seconds_of(usage.ru_utime) + seconds_of(usage.ru_stime);
  }

  const double cpu_seconds_;
  const std::chrono::steady_clock::time_point start_;
};

}  // namespace gofs::bench
