// SPDX-License-Identifier: Apache-2.0
//
// A physical SSD attached to a volume: its controller's registers, direct or by a relay, and memory
// that it reaches, with a map of it for the driver.
#pragma once

#include <map>
#include <memory>
#include <mutex>
#include <string>

#include "host/attached_ssd.h"
#include "host/dma_reach.h"
#include "host/providers.h"
#include "ssd/register_relay.h"

namespace gofs::host {

class PhysicalSsd final : public AttachedSsd {
 public:
  /// Throws std::system_error, std::bad_alloc.
  PhysicalSsd(kernels::Backend& backend, const VolumeSpec& spec,
              const nvme::DeviceOptions& options);
  ~PhysicalSsd() override;
  PhysicalSsd(const PhysicalSsd&) = delete;
  PhysicalSsd& operator=(const PhysicalSsd&) = delete;

  const ssd::ControllerRef& controller() const override { return controller_; }
  nvme::DeviceMemory device_memory() override { return {backend_.memory(), reach_->memory()}; }
  std::string kind() const override { return "NVMe SSD"; }
  std::string details() const override;
  bool tries_doorbells() const override { return tries_doorbells_; }
  uint64_t bytes() const override { return 0; }
  std::string sync() override { return {}; }
  void detach() override;
  ssd::VirtualSsdCounters counters() override { return {}; }
  bool map_buffer(void* memory, uint64_t bytes) override;
  void unmap_buffer(void* memory) override;

 private:
  void reach_registers(Doorbells doorbells, uint32_t io_queues);

  kernels::Backend& backend_;
  const std::string name_;
  std::string memory_description_;
  std::unique_ptr<DmaReach> reach_;  // after the controller
  std::unique_ptr<ssd::Transport> transport_;
  bool tries_doorbells_ = false;
  std::map<uint64_t, std::unique_ptr<ssd::MemorySource>> views_;  // of buffers, by their address
  std::mutex map_mutex_;
  uint8_t* copy_ = nullptr;       // of the registers, where there is a relay
  uint8_t* registers_ = nullptr;  // that the backend was given, where there is none
  std::unique_ptr<ssd::RegisterRelay> relay_;
  ssd::ControllerRef controller_{};
};

}  // namespace gofs::host
