// SPDX-License-Identifier: Apache-2.0
#include "host/maintenance.h"

#include <chrono>

#include "host/volume_state.h"

namespace gofs::host {
namespace {

constexpr uint32_t kSegmentsAStep = 8;  // short, should a call come meanwhile

}  // namespace

Maintenance::Maintenance(VolumeState& volume, uint64_t period_ns, uint32_t idle_free_segments)
    : volume_(volume),
      period_ns_(period_ns),
      idle_free_segments_(idle_free_segments),
      commands_(volume.commands_issued()),
      thread_([this] { work(); }) {}

Maintenance::~Maintenance() {
  {
    const std::lock_guard lock(mutex_);
    ending_ = true;
  }
  ended_.notify_all();
  thread_.join();
}

void Maintenance::work() {
  const auto period = std::chrono::nanoseconds(period_ns_);
  std::unique_lock<std::mutex> lock(mutex_);
  while (!ended_.wait_for(lock, period, [this] { return ending_; })) {
    lock.unlock();
    step();
    lock.lock();
    if (volume_.has_failed()) return;
  }
}

void Maintenance::step() {
  const bool idle = volume_.commands_issued() == commands_;
  const bool synced = !volume_.has_changed() || volume_.sync();
  if (synced && idle && volume_.free_segments() < idle_free_segments_) {
    (void)volume_.collect_garbage({.segments_max = kSegmentsAStep});
  }
  commands_ = volume_.commands_issued();
}

}  // namespace gofs::host
