// SPDX-License-Identifier: Apache-2.0
//
// A virtual SSD attached to a volume: an image's contents where the backend's warps reach them, and
// a controller there that they step.
#pragma once

#include <memory>
#include <string>

#include "host/attached_ssd.h"

namespace gofs::host {

class VirtualSsd final : public AttachedSsd {
 public:
  /// Throws std::bad_alloc, std::invalid_argument.
  VirtualSsd(kernels::Backend& backend, const VolumeSpec& spec,
             std::unique_ptr<kernels::LoadedMedia> media, const nvme::DeviceOptions& options);
  ~VirtualSsd() override;
  VirtualSsd(const VirtualSsd&) = delete;
  VirtualSsd& operator=(const VirtualSsd&) = delete;

  const ssd::ControllerRef& controller() const override { return controller_; }
  nvme::DeviceMemory device_memory() override { return {memory_}; }
  std::string kind() const override { return "virtual NVMe SSD"; }
  std::string details() const override { return "model " + model_name_; }
  bool tries_doorbells() const override { return false; }
  uint64_t bytes() const override { return bytes_; }
  std::string sync() override { return media_ == nullptr ? std::string() : media_->sync(); }
  kernels::LoadedMedia* copied_media() override {
    return media_ != nullptr && media_->is_copy() ? media_.get() : nullptr;
  }
  std::string host_problem() const override {
    return media_ == nullptr ? std::string() : media_->problem();
  }
  const kernels::MediaRoom* room() const override {
    return media_ == nullptr ? nullptr : media_->room();
  }
  void detach() override { media_.reset(); }
  ssd::VirtualSsdCounters counters() override { return ssd::read_counters(memory_, controller_); }
  bool map_buffer(void*, uint64_t) override { return true; }  // it reaches all memory
  void unmap_buffer(void*) override {}

 private:
  simt::MemorySpace& memory_;
  const std::string model_name_;
  std::unique_ptr<kernels::LoadedMedia> media_;
  const uint64_t bytes_;
  const ssd::ControllerRef controller_;
};

}  // namespace gofs::host
