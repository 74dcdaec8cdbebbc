// SPDX-License-Identifier: Apache-2.0
#include "daemon/heart.h"

#include <utility>

#include "daemon/keeper_line.h"
#include "ssd/hosted/quiet_thread.h"

namespace gofs::daemon {

Heart::Heart(const ssd::Descriptor& keeper, std::chrono::milliseconds period)
    : keeper_(keeper), thread_(ssd::start_quiet_thread([this, period] { run(period); })) {}

Heart::~Heart() {
  {
    const std::lock_guard lock(mutex_);
    ending_ = true;
  }
  ended_.notify_one();
  thread_.join();
}

void Heart::judge_by(std::optional<Sign> sign) {
  const std::lock_guard lock(mutex_);
  sign_ = std::move(sign);
  if (sign_) progress_ = sign_->progress();
  changed_ = Clock::now();
}

void Heart::run(std::chrono::milliseconds period) {
  std::unique_lock lock(mutex_);
  while (!ended_.wait_for(lock, period, [this] { return ending_; })) {
    if (is_alive()) (void)tell_keeper(keeper_, Word::kAlive);
  }
}

/// By the holder of the mutex.
bool Heart::is_alive() {
  if (!sign_) return true;
  const uint64_t before = std::exchange(progress_, sign_->progress());
  if (progress_ != before) {
    changed_ = Clock::now();
    return true;
  }
  return Clock::now() - changed_ < sign_->patience;
}

}  // namespace gofs::daemon
