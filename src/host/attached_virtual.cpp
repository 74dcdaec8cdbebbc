// SPDX-License-Identifier: Apache-2.0
#include "host/attached_virtual.h"

#include <algorithm>
#include <bit>
#include <utility>

namespace gofs::host {

namespace {

ssd::VirtualSsdConfig config_of(const VolumeSpec& spec, const nvme::DeviceOptions& options) {
  ssd::VirtualSsdConfig config;
  config.lba_shift = static_cast<uint32_t>(std::countr_zero(spec.lba_bytes.value_or(512)));
  config.queue_pairs_max = options.io_queues;
  config.queue_entries_max = std::max(options.queue_depth, options.admin_depth);
  if (spec.transfer_bytes_max) {
    const uint64_t pages = *spec.transfer_bytes_max / kBlockBytes;
    config.mdts = static_cast<uint32_t>(std::countr_zero(pages));
  }
  config.model = spec.model;
  return config;
}

}  // namespace

VirtualSsd::VirtualSsd(kernels::Backend& backend, const VolumeSpec& spec,
                       std::unique_ptr<kernels::LoadedMedia> media,
                       const nvme::DeviceOptions& options)
    : memory_(backend.memory()),
      model_name_(spec.model_name),
      media_(std::move(media)),
      bytes_(media_->media().bytes),
      controller_(
          ssd::create_virtual_controller(memory_, config_of(spec, options), media_->media())) {}

VirtualSsd::~VirtualSsd() { ssd::destroy_virtual_controller(memory_, controller_); }

}  // namespace gofs::host
