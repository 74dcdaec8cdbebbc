// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <stdexcept>

#include "host/image/mkfs.h"
#include "matrix.hpp"

namespace gofs::bench {

void make_image(const std::string& path, uint64_t bytes, uint64_t raw_bytes) {
  constexpr uint64_t kSegmentBytes = uint64_t{2} << 20;
  image::VolumeOptions options;
  options.label = "write bench";
  options.flush = false;
  (void)unlink(path.c_str());
  const uint64_t volume_bytes = (bytes - raw_bytes) / kSegmentBytes * kSegmentBytes;
  const image::Status made = image::make_volume(path, volume_bytes, options);
  if (!made.ok()) throw std::runtime_error(made.message);
  if (truncate(path.c_str(), static_cast<off_t>(bytes)) != 0) {
    throw std::runtime_error(path + ": " + std::strerror(errno));
  }
}

std::unique_ptr<host::VolumeState> mount_image(const Options& options, const std::string& path,
                                               const std::string& model, uint64_t cache_bytes,
                                               bool log_structured) {
  MountOptions mount;
  mount.backend = options.backend;
  mount.read_only = false;
  mount.queues = 64;
  mount.queue_depth = 1024;
  mount.log_structured = log_structured;
  mount.lock_timeout_ns = 10'000'000'000;  // so that what hangs does not take all the time
  const std::string spec = fmt::format("{}?model={}&cache={}", path, model, cache_bytes);
  auto volume = host::VolumeState::mount(spec, mount, host::MountKind::kVolume);
  if (!volume) throw std::runtime_error(volume.error().message);
  return std::move(*volume);
}

}  // namespace gofs::bench
