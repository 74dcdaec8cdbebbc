// SPDX-License-Identifier: Apache-2.0
#include "host/quiet_volume.h"

#include <cerrno>
#include <cstring>

#include "host/messages.h"
#include "kernels/bodies.h"

namespace gofs::host {

namespace {

constexpr const char* kNotQuiet = "the backend has stopped copying";

}  // namespace

QuietVolume::QuietVolume(VolumeState& volume, QuietMemory& memory)
    : volume_(volume), memory_(memory), params_(memory.params[0]) {
  params_ = {};
  params_.fs = volume.filesystem();
  holding_ = std::thread([this] {
    const kernels::Grid one_warp{1, volume_.backend().warp_width()};
    ran_ = volume_.run(kernels::bodies::kHold, one_warp, memory_.params.data());
    ended_.store(true);
  });
  while (simt::load_system_acquire(params_.decided) == 0 && !ended_.load()) {
    std::this_thread::yield();
  }
  if (ended_.load()) {
    holding_.join();
    if (!ran_) {
      beginning_ = volume.explain(VolumeState::kNotRun, volume.spec().text);
      return;
    }
  }
  const int error = params_.error;
  if (error < 0) beginning_ = volume.explain(error, volume.spec().text);
}

QuietVolume::~QuietVolume() { (void)release(); }

Expected<void> QuietVolume::release() {
  if (!holding_.joinable()) return beginning_;
  simt::store_system_release(params_.asked, kernels::kLetGo);  // [W1]
  holding_.join();
  const std::string& volume = volume_.spec().text;
  if (!ran_) return beginning_ = volume_.explain(VolumeState::kNotRun, volume);
  if (params_.expired) {
    beginning_ = make_error(ETIMEDOUT, volume, "the image was not written in time");
  }
  return beginning_;
}

std::string QuietVolume::pull(void* to_host, const void* from, uint64_t bytes) {
  for (uint64_t done = 0; done < bytes;) {
    const uint64_t part = simt::min<uint64_t>(bytes - done, QuietMemory::kBytes);
    if (!have_copied(memory_.bytes.data(), static_cast<const uint8_t*>(from) + done, part)) {
      return kNotQuiet;
    }
    std::memcpy(static_cast<uint8_t*>(to_host) + done, memory_.bytes.data(), part);
    done += part;
  }
  return {};
}

/// False: the warp is gone.
bool QuietVolume::have_copied(void* to, const void* from, uint64_t bytes) {
  if (!holding_.joinable()) return false;
  params_.to = static_cast<uint8_t*>(to);
  params_.from = static_cast<const uint8_t*>(from);
  params_.bytes = static_cast<uint32_t>(bytes);
  simt::store_system_release(params_.asked, ++copies_);            // [W1]
  while (simt::load_system_acquire(params_.answered) < copies_) {  // [W2]
    if (ended_.load()) return false;
    std::this_thread::yield();
  }
  return true;
}

}  // namespace gofs::host
