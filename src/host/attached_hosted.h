// SPDX-License-Identifier: Apache-2.0
//
// A hosted SSD attached to a volume: a file or block device of any size, behind a controller of
// host threads. Warps of a GPU give it what lies in their own memory through staging areas, as they
// do a physical SSD; for those of this process it reaches all memory.
#pragma once

#include <memory>
#include <mutex>
#include <string>

#include "host/attached_ssd.h"
#include "host/dma_reach.h"
#include "ssd/hosted/hosted_controller.h"

namespace gofs::host {

class HostedSsd final : public AttachedSsd {
 public:
  /// Throws std::system_error, std::bad_alloc.
  HostedSsd(kernels::Backend& backend, const VolumeSpec& spec, bool writable,
            const nvme::DeviceOptions& options);
  ~HostedSsd() override;
  HostedSsd(const HostedSsd&) = delete;
  HostedSsd& operator=(const HostedSsd&) = delete;

  const ssd::ControllerRef& controller() const override { return reference_; }
  nvme::DeviceMemory device_memory() override;
  std::string kind() const override { return "hosted NVMe SSD"; }
  std::string details() const override { return details_; }
  bool tries_doorbells() const override { return false; }
  uint64_t bytes() const override { return bytes_; }
  std::string sync() override { return {}; }  // a flush is one of the file below
  std::string host_problem() const override {
    return detached_ ? std::string() : controller_->store().problem();
  }
  void detach() override;
  ssd::VirtualSsdCounters counters() override { return controller_->counters(); }
  std::optional<ssd::MeasuredCommands> measured() const override { return controller_->measured(); }
  void wake() override { controller_->wake(); }
  bool map_buffer(void* memory, uint64_t bytes) override;
  void unmap_buffer(void* memory) override;

 private:
  kernels::Backend& backend_;
  std::unique_ptr<DmaReach> reach_;  // null: it reaches all memory
  std::mutex map_mutex_;
  std::unique_ptr<ssd::HostedController> controller_;
  bool detached_ = false;
  ssd::ControllerRef reference_{};
  std::string details_;
  uint64_t bytes_ = 0;
};

}  // namespace gofs::host
