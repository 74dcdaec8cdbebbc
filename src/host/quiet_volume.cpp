// SPDX-License-Identifier: Apache-2.0
#include "host/quiet_volume.h"

#include <cerrno>

#include "host/messages.h"

namespace gofs::host {

QuietVolume::QuietVolume(VolumeState& volume)
    : volume_(volume), params_(volume.backend().shared_memory(), 1) {
  params_[0].fs = volume.filesystem();
  holding_ = std::thread([this] {
    const work::Grid one_warp{1, volume_.backend().warp_width()};
    ran_ = volume_.run(work::Body::kHold, one_warp, params_.data());
    ended_.store(true);
  });
  while (simt::load_system_acquire(params_[0].decided) == 0 && !ended_.load()) {
    std::this_thread::yield();
  }
  if (ended_.load()) {
    holding_.join();
    if (!ran_) {
      beginning_ = volume.explain(VolumeState::kNotRun, volume.spec().text);
      return;
    }
  }
  const int error = params_[0].error;
  if (error < 0) beginning_ = volume.explain(error, volume.spec().text);
}

QuietVolume::~QuietVolume() { (void)let_go(); }

Expected<void> QuietVolume::let_go() {
  if (!holding_.joinable()) return beginning_;
  simt::store_system_release(params_[0].let_go, 1u);
  holding_.join();
  const std::string& volume = volume_.spec().text;
  if (!ran_) return beginning_ = volume_.explain(VolumeState::kNotRun, volume);
  if (params_[0].expired) {
    beginning_ = make_error(ETIMEDOUT, volume, "the image was not written in time");
  }
  return beginning_;
}

}  // namespace gofs::host
