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
#include "host/providers.h"
#include "ssd/dma_memory.h"
#include "ssd/register_relay.h"

namespace gofs::host {

class PhysicalSsd final : public AttachedSsd {
 public:
  /// Throws std::system_error, std::bad_alloc.
  PhysicalSsd(work::Backend& backend, const VolumeSpec& spec, const nvme::DeviceOptions& options);
  ~PhysicalSsd() override;
  PhysicalSsd(const PhysicalSsd&) = delete;
  PhysicalSsd& operator=(const PhysicalSsd&) = delete;

  const ssd::ControllerRef& controller() const override { return controller_; }
  nvme::DeviceMemory device_memory() override { return {backend_.memory(), *dma_memory_}; }
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
  template <typename T>
  void publish(T& placed, T value);
  void reach_memory();
  void reach_registers(Doorbells doorbells, uint32_t io_queues);

  work::Backend& backend_;
  const std::string name_;
  OpenedSsd opened_;
  std::string memory_description_;
  bool tries_doorbells_ = false;
  bool memory_reached_ = false;
  std::map<uint64_t, std::unique_ptr<ssd::MemorySource>> views_;  // of buffers, by their address
  std::unique_ptr<ssd::DmaMemory> dma_memory_;
  std::mutex map_mutex_;
  ssd::DmaMap map_{};              // what the warps' copy says
  ssd::DmaMap* placed_ = nullptr;  // in the backend's memory
  uint8_t* copy_ = nullptr;        // of the registers, where there is a relay
  uint8_t* registers_ = nullptr;   // that the backend was given, where there is none
  std::unique_ptr<ssd::RegisterRelay> relay_;
  ssd::ControllerRef controller_{};
};

}  // namespace gofs::host
