// SPDX-License-Identifier: Apache-2.0
//
// The timing model of the virtual SSD for host threads that read a real file: each waits until the
// model says that its request would be done. Where the file itself is slower, that shows instead.
#pragma once

#include <algorithm>
#include <chrono>
#include <memory>
#include <thread>

#include "simt/clock.h"
#include "ssd/timing.h"

namespace gofs::bench {

class Pacer {
 public:
  /// All zero paces nobody.
  explicit Pacer(const ssd::TimingModel& model)
      : model_(model), state_(std::make_unique<ssd::TimingState>()) {}

  /// To be called when a request begins: when it may end. From several threads.
  uint64_t begin(bool writes, uint64_t offset, uint64_t bytes) {
    const uint64_t now = simt::now_ns();
    if (model_.is_none()) return now;
    const auto operation = writes ? ssd::TimedOperation::kWrite : ssd::TimedOperation::kRead;
    return ssd::finish_time(model_, *state_, now, {operation, false, offset, bytes});
  }

  /// Sleeps as long as that is precise enough, then polls. A model ends, so this does.
  static void wait_until(uint64_t end_ns) {
    constexpr uint64_t kPolledNs = 100'000;
    for (uint64_t now = simt::now_ns(); now < end_ns; now = simt::now_ns()) {
      if (end_ns - now > kPolledNs) {
        std::this_thread::sleep_for(std::chrono::nanoseconds(end_ns - now - kPolledNs));
      } else {
        std::this_thread::yield();
      }
    }
  }

 private:
  const ssd::TimingModel model_;
  const std::unique_ptr<ssd::TimingState> state_;
};

}  // namespace gofs::bench
