// SPDX-License-Identifier: Apache-2.0
#include "host/clock_keeper.h"

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <cmath>
#include <exception>
#include <optional>

#include "host/messages.h"
#include "host/volume_state.h"
#include "kernels/bodies.h"

namespace gofs::host {
namespace {

constexpr const char* kClockSubject = "the backend's clock";
constexpr uint32_t kQuestions = 32;

int64_t realtime_ns() {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(
             std::chrono::system_clock::now().time_since_epoch())
      .count();
}

/// Asks until the warp that answers has `ended`, or all is asked. The answer that took least. Where
/// the warp `shares_cores` with this thread, it gets its turn.
std::optional<ClockSample> ask(kernels::ClockParams& params, const std::atomic<bool>& ended,
                               bool shares_cores) {
  std::optional<ClockSample> best;
  for (uint32_t question = 1; question <= params.questions; ++question) {
    const int64_t before = realtime_ns();
    simt::store_system_release(params.asked, question);
    while (simt::load_system_acquire(params.answered) < question) {
      if (ended.load()) return best;
      if (shares_cores) std::this_thread::yield();
    }
    const int64_t took = realtime_ns() - before;
    if (took < 0) continue;  // the clock was set
    const auto error_ns = static_cast<uint64_t>(took + 1) / 2;
    if (!best || error_ns < best->error_ns) {
      best = ClockSample{params.now_ns, before + took / 2, error_ns};
    }
  }
  return best;
}

/// As sample_clocks(), with parameters that the caller has.
Expected<ClockSample> sample_with(kernels::ClockParams& params, VolumeState& volume) {
  kernels::Backend& backend = volume.backend();
  params = {};
  params.step = kernels::ClockStep::kAnswer;
  params.questions = kQuestions;
  std::atomic<bool> ended = false;
  bool ran = false;
  std::thread answering([&] {
    ran = volume.run(kernels::bodies::kClock, {1, backend.warp_width()}, &params);
    ended.store(true);
  });
  const auto best = ask(params, ended, backend.is_host());
  answering.join();
  if (!ran) return volume.explain(VolumeState::kNotRun, kClockSubject);
  if (!best) return make_error(ETIMEDOUT, kClockSubject, "no answer");
  return *best;
}

}  // namespace

Expected<ClockSample> sample_clocks(VolumeState& volume) {
  SharedArray<kernels::ClockParams> params(volume.backend().shared_memory(), 1);
  return sample_with(params[0], volume);
}

ClockKeeper::ClockKeeper(VolumeState& volume, uint64_t period_ns)
    : volume_(volume),
      period_ns_(period_ns),
      params_(volume.backend().shared_memory(), 1),
      beginning_(step()) {
  if (!volume.has_failed()) thread_ = std::thread([this] { work(); });
}

ClockKeeper::~ClockKeeper() {
  {
    const std::lock_guard lock(mutex_);
    ending_ = true;
  }
  ended_.notify_all();
  if (thread_.joinable()) thread_.join();
}

ClockReport ClockKeeper::report() const {
  const std::lock_guard lock(mutex_);
  return report_;
}

void ClockKeeper::work() {
  using namespace std::chrono_literals;
  const std::chrono::nanoseconds period(period_ns_);
  std::chrono::nanoseconds soon = 10s;
  std::unique_lock<std::mutex> lock(mutex_);
  while (!ended_.wait_for(lock, std::min(period, soon), [this] { return ending_; })) {
    lock.unlock();
    (void)step();
    lock.lock();
    if (volume_.has_failed()) return;
    soon = soon < period ? soon * 6 : period;
  }
}

Expected<void> ClockKeeper::step() {
  try {
    return step_or_throw();
  } catch (const std::exception& problem) {  // no memory, or no thread
    if (volume_.has_failed()) return volume_.explain(-EIO, kClockSubject);
    return make_error(ENOMEM, kClockSubject, problem.what());
  }
}

Expected<void> ClockKeeper::step_or_throw() {
  kernels::ClockParams& params = params_[0];
  const auto sample = sample_with(params, volume_);
  if (!sample) return sample.error();
  const int64_t late_ns = estimate_.add(*sample);
  params = {};
  params.fs = volume_.filesystem();
  params.step = kernels::ClockStep::kDraw;
  params.line = estimate_.line();
  const kernels::Grid one_warp{1, volume_.backend().warp_width()};
  if (!volume_.run(kernels::bodies::kClock, one_warp, &params)) {
    return volume_.explain(VolumeState::kNotRun, kClockSubject);
  }
  const std::lock_guard lock(mutex_);
  ++report_.looks;
  report_.error_ns = sample->error_ns;
  report_.late_ns = late_ns;
  report_.drift_ppm = std::ldexp(static_cast<double>(params.line.gain) * 1e6,
                                 -static_cast<int>(vfs::kClockGainShift));
  return {};
}

}  // namespace gofs::host
