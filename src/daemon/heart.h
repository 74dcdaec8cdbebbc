// SPDX-License-Identifier: Apache-2.0
//
// Tells the keeper each second that its worker is alive: that the process runs, and while it
// serves also that calls, or the looks for them, go on.
#pragma once

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <mutex>
#include <optional>
#include <thread>

#include "ssd/descriptor.h"

namespace gofs::daemon {

class Heart {
 public:
  /// What changes while the work goes on.
  struct Sign {
    std::function<uint64_t()> progress;  // from a thread of the heart's; waits for nobody
    std::chrono::milliseconds patience;  // so long it may stay as it is
  };

  /// Beats until it is destroyed, over a connection that outlives it. Throws std::system_error.
  explicit Heart(const ssd::Descriptor& keeper,
                 std::chrono::milliseconds period = std::chrono::milliseconds(1'000));
  ~Heart();
  Heart(const Heart&) = delete;
  Heart& operator=(const Heart&) = delete;

  /// While this is there the heart beats only where the sign has changed.
  class Judged {
   public:
    Judged(Heart& heart, Sign sign) : heart_(heart) { heart_.judge_by(std::move(sign)); }
    ~Judged() { heart_.judge_by(std::nullopt); }
    Judged(const Judged&) = delete;
    Judged& operator=(const Judged&) = delete;

   private:
    Heart& heart_;
  };

 private:
  using Clock = std::chrono::steady_clock;

  void judge_by(std::optional<Sign> sign);
  void run(std::chrono::milliseconds period);
  bool is_alive();

  const ssd::Descriptor& keeper_;
  std::mutex mutex_;  // of these
  std::condition_variable ended_;
  bool ending_ = false;
  std::optional<Sign> sign_;
  uint64_t progress_ = 0;
  Clock::time_point changed_{};
  std::thread thread_;  // the last: it uses all of the above
};

}  // namespace gofs::daemon
