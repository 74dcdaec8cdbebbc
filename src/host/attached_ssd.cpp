// SPDX-License-Identifier: Apache-2.0
#include "host/attached_ssd.h"

#include <cerrno>
#include <system_error>

#include "host/attached_hosted.h"
#include "host/attached_physical.h"
#include "host/attached_virtual.h"
#include "host/messages.h"

namespace gofs::host {

namespace {

using Attached = Expected<std::unique_ptr<AttachedSsd>>;

Attached attach_virtual(kernels::Backend& backend, const VolumeSpec& spec, bool writable,
                        const nvme::DeviceOptions& options) {
  kernels::MediaRequest request;
  request.path = spec.path;
  request.bytes = spec.memory_bytes;
  request.device_memory = spec.media == MediaKind::kDeviceMemory;
  request.writable = writable;
  request.spare_bytes = spec.spare_bytes.value_or(request.spare_bytes);
  std::string error;
  std::unique_ptr<kernels::LoadedMedia> media = backend.load_media(request, error);
  if (media == nullptr) {
    const bool named = !spec.path.empty() && error.starts_with(spec.path + ": ");
    const bool busy = error.ends_with(errno_words(EBUSY));
    return Error{busy ? EBUSY : EIO, named ? error : spec.text + ": " + error};
  }
  std::unique_ptr<AttachedSsd> ssd =
      std::make_unique<VirtualSsd>(backend, spec, std::move(media), options);
  return ssd;
}

/// Admin commands of an SSD that may be busy with itself: after a reset, or writing out a cache.
constexpr uint64_t kAdminTimeoutNs = 10'000'000'000;
/// Of a file whose cache Linux writes out, or a disk that tries again and again.
constexpr uint64_t kHostedAdminTimeoutNs = 60'000'000'000;
constexpr uint32_t kStagingBytes = 32 << 10;

Attached attach_hosted(kernels::Backend& backend, const VolumeSpec& spec, bool writable,
                       nvme::DeviceOptions& options) {
  options.admin_timeout_ns = kHostedAdminTimeoutNs;
  options.assumes_atomic_blocks = true;
  if (!backend.is_host()) options.staging_bytes = spec.staging_bytes.value_or(kStagingBytes);
  try {
    std::unique_ptr<AttachedSsd> ssd =
        std::make_unique<HostedSsd>(backend, spec, writable, options);
    return ssd;
  } catch (const std::system_error& problem) {
    return Error{problem.code().value(), problem.what()};
  }
}

Attached attach_physical(kernels::Backend& backend, const VolumeSpec& spec,
                         nvme::DeviceOptions& options) {
  options.nsid = spec.nsid;
  options.admin_timeout_ns = kAdminTimeoutNs;
  options.staging_bytes = spec.staging_bytes.value_or(kStagingBytes);
  try {
    std::unique_ptr<AttachedSsd> ssd = std::make_unique<PhysicalSsd>(backend, spec, options);
    return ssd;
  } catch (const std::system_error& problem) {
    return Error{problem.code().value(), spec.text + ": " + problem.what()};
  }
}

}  // namespace

Attached attach_ssd(kernels::Backend& backend, const VolumeSpec& spec, bool writable,
                    nvme::DeviceOptions& options) {
  if (spec.is_physical()) return attach_physical(backend, spec, options);
  return spec.is_hosted() ? attach_hosted(backend, spec, writable, options)
                          : attach_virtual(backend, spec, writable, options);
}

}  // namespace gofs::host
