// SPDX-License-Identifier: Apache-2.0
#include "host/upkeep.h"

#include <chrono>

#include "host/volume_state.h"

namespace gofs::host {
namespace {

constexpr uint32_t kSegmentsAStep = 8;  // soon done, if somebody comes

}  // namespace

Upkeep::Upkeep(VolumeState& volume, uint64_t period_ns, uint32_t idle_free_segments)
    : volume_(volume),
      period_ns_(period_ns),
      idle_free_segments_(idle_free_segments),
      commands_(volume.commands_issued()),
      thread_([this] { work(); }) {}

Upkeep::~Upkeep() {
  {
    const std::lock_guard lock(mutex_);
    ending_ = true;
  }
  ended_.notify_all();
  thread_.join();
}

void Upkeep::work() {
  const auto period = std::chrono::nanoseconds(period_ns_);
  std::unique_lock<std::mutex> lock(mutex_);
  while (!ended_.wait_for(lock, period, [this] { return ending_; })) {
    lock.unlock();
    const bool going_on = step();
    lock.lock();
    if (!going_on) return;
  }
}

/// False: it has failed.
bool Upkeep::step() {
  if (volume_.has_failed()) return false;
  const bool idle = volume_.commands_issued() == commands_;
  if (volume_.has_changed() && !volume_.sync()) return false;
  if (idle && volume_.free_segments() < idle_free_segments_) {
    if (!volume_.collect_garbage({.segments_max = kSegmentsAStep})) return false;
  }
  commands_ = volume_.commands_issued();
  return true;
}

}  // namespace gofs::host
