// SPDX-License-Identifier: Apache-2.0
//
// Making a mounted volume durable, on its images as well, and unmounting it.
#include <algorithm>
#include <cerrno>
#include <exception>
#include <memory>
#include <mutex>
#include <utility>

#include "host/attached_ssd.h"
#include "host/clock_keeper.h"
#include "host/maintenance.h"
#include "host/messages.h"
#include "host/quiet_volume.h"
#include "host/volume_state.h"
#include "kernels/bodies.h"

namespace gofs::host {

Expected<void> VolumeState::sync() {
  const CallsUnderWay::One under_way(calls_under_way_);
  const CallAnswer answer = call({.verb = request::Verb::kSync});
  if (answer.result < 0) return explain(answer.result, spec_.text);
  return sync_media();
}

Expected<void> VolumeState::fsync(request::Verb verb, int descriptor) {
  const CallsUnderWay::One under_way(calls_under_way_);
  const CallAnswer answer = call({.verb = verb, .descriptor = descriptor});
  if (answer.result < 0) return explain(answer.result, descriptor_name(descriptor));
  return sync_media();
}

/// Brings to where it lasts what was flushed.
Expected<void> VolumeState::sync_media() {
  const bool any_copied = std::any_of(
      ssds_.begin(), ssds_.end(), [](const auto& one) { return one->copied_media() != nullptr; });
  if (!any_copied || quiet_memory_ == nullptr) return sync_ssds();
  try {
    auto result = sync_copies();
    if (!result && has_failed()) return explain(-EIO, spec_.text);
    return result;
  } catch (const std::exception& problem) {  // no memory, or no thread
    if (has_failed()) return explain(-EIO, spec_.text);
    return make_error(ENOMEM, spec_.text, problem.what());
  }
}

/// The same of SSDs that lie in memory which kernels may be writing: all of them are copied as they
/// are at one moment at which a power cut would do no harm. What else is copied while kernels make
/// checkpoints is no state of the volume: blocks that the checkpoint refers to which the image gets
/// may have been freed by the next one, and written anew. The images are written later, while
/// kernels go on, unless there is no memory for the copies.
Expected<void> VolumeState::sync_copies() {
  const std::lock_guard lock(sync_mutex_);
  QuietVolume quiet(*this, *quiet_memory_);
  if (!quiet.beginning()) return quiet.beginning();
  if (auto collected = collect_copies(&quiet); !collected) return collected;
  const bool in_place = std::any_of(ssds_.begin(), ssds_.end(), [](const auto& one) {
    return one->copied_media() != nullptr && one->copied_media()->is_in_place();
  });
  if (in_place) {
    auto written = sync_ssds();
    auto kept = quiet.release();
    return written ? kept : written;
  }
  if (auto kept = quiet.release(); !kept) return kept;
  return sync_ssds();
}

Expected<void> VolumeState::collect_copies(kernels::MemoryCopier* warp) {
  for (size_t i = 0; i < ssds_.size(); ++i) {
    kernels::LoadedMedia* const media = ssds_[i]->copied_media();
    if (media == nullptr) continue;
    const std::string problem = media->collect(warp);
    if (!problem.empty()) return make_error(EIO, members_[i].text, problem);
  }
  return {};
}

Expected<void> VolumeState::sync_ssds() {
  Expected<void> result;
  for (size_t i = 0; i < ssds_.size(); ++i) {
    const std::string problem = ssds_[i]->sync();
    if (!problem.empty() && result) result = make_error(EIO, members_[i].text, problem);
  }
  return result;
}

Expected<void> VolumeState::unmount() { return end(false); }

/// `whatever_happens`: it is never used again.
Expected<void> VolumeState::end(bool whatever_happens) {
  if (!is_ours()) return not_ours();
  const std::lock_guard lock(end_mutex_);
  const bool has_threads = end_threads();
  const bool was_up = up_.exchange(false);
  calls_under_way_.wait();
  range_works_.settle();
  calls_at_once_.settle();
  staged_reads_.settle();
  if (!was_up) return is_behind_ ? sync_for_good() : Expected<void>();
  auto result = shut_down(whatever_happens);
  if (!up_) return result;
  if (has_threads) {
    (void)begin_clock();
    begin_maintenance();
  }
  result.error().message += "; it is mounted still";
  return result;
}

/// Whether there were any. They end outside of the lock, since they wait for what they have begun.
bool VolumeState::end_threads() {
  maintenance_.reset();
  std::unique_lock lock(clock_mutex_);
  const std::unique_ptr<ClockKeeper> clock = std::move(clock_);
  lock.unlock();
  return clock != nullptr;
}

/// Leaves `up_` set where the controller could not be shut down and what memory holds may be saved.
Expected<void> VolumeState::shut_down(bool whatever_happens) {
  kernels::UnmountParams& params = (*unmounting_)[0];
  params = {};
  params.fs = filesystem();
  params.written = -EIO;
  // A controller that does not finish its shutdown takes nothing with it: what counts was flushed.
  const bool ran = run(kernels::bodies::kUnmount, checkpoint_grid(), unmounting_->data());
  if (ran && !options_.read_only && params.written == 0 && !has_failed()) return sync_for_good();
  Expected<void> result;
  if (has_failed()) {
    result = explain(-EIO, spec_.text);
  } else if (!options_.read_only) {
    result = explain(ran ? params.written : kNotRun, spec_.text);
    up_ = !ran && !whatever_happens;
  }
  if (!up_) detach();
  return result;
}

/// Writes the images for the last time.
Expected<void> VolumeState::sync_for_good() {
  const std::lock_guard lock(sync_mutex_);
  Expected<void> result;
  try {
    result = collect_copies(nullptr);
    if (result) result = sync_ssds();
  } catch (const std::bad_alloc& problem) {
    result = make_error(ENOMEM, spec_.text, problem.what());
  }
  bool may_try_again = false;
  bool is_final = false;
  for (const auto& one : ssds_) {
    if (one->copied_media() == nullptr) continue;
    may_try_again = true;
    is_final = is_final || !one->copied_media()->may_try_again();
  }
  is_behind_ = !result && may_try_again && !is_final;
  if (!is_behind_) detach();
  return result;
}

void VolumeState::detach() {
  for (const auto& one : ssds_) one->detach();
}

}  // namespace gofs::host
