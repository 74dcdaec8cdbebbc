// SPDX-License-Identifier: Apache-2.0
//
// A virtual SSD in memory, filled with a pattern that depends on the place alone, and the driver's
// device on it. Timeouts are long enough for a machine that has other things to do; tests in which
// commands are lost set them shorter.
#pragma once

#include <gtest/gtest.h>

#include <cstring>
#include <memory>
#include <vector>

#include "host/image/pattern.h"
#include "nvme/layout.h"
#include "simt/host_memory.h"
#include "ssd/virtual_ssd.h"
#include "testing/bring_up.hpp"
#include "testing/mapped_apart.hpp"

namespace gofs::testing {

/// Blocks of memory that go with the test.
class TestArena {
 public:
  TestArena() = default;
  TestArena(const TestArena&) = delete;
  TestArena& operator=(const TestArena&) = delete;
  ~TestArena() {
    for (void* block : blocks_) space_.release(block);
  }
  /// Zeroed, block-aligned; AddressSanitizer watches its end.
  uint8_t* bytes(size_t count) {
    blocks_.push_back(space_.allocate(count));
    return static_cast<uint8_t*>(blocks_.back());
  }
  simt::HostMemorySpace& space() { return space_; }

 private:
  simt::HostMemorySpace space_;
  std::vector<void*> blocks_;
};

struct SsdRigOptions {
  SsdRigOptions() {
    ssd.queue_entries_max = 1024;
    ssd.queue_pairs_max = 8;
    device.io_queues = 2;
    device.queue_depth = 64;
    device.admin_depth = 16;
    device.command_timeout_ns = device.admin_timeout_ns = 60'000'000'000;
  }

  /// The controller reaches `dma_bytes` of memory alone, where the queues are.
  void go_through_staging(uint32_t area_bytes) {
    device.staging_bytes = area_bytes;
    const uint64_t entries = uint64_t{device.io_queues} * device.queue_depth;
    dma_bytes = (uint64_t{2} << 20) + entries * (area_bytes + 2 * kBlockBytes);
  }

  uint64_t dma_bytes = 0;  // 0: it reaches all of it
  uint64_t media_bytes = uint64_t{4} << 20;
  uint64_t pattern_seed = 1;
  ssd::VirtualSsdConfig ssd;
  nvme::DeviceOptions device;
};

/// Commands of `queue` that have ended with an error.
inline uint64_t failed_commands(const nvme::QueuePair& queue) {
  uint64_t failed = 0;
  for (const nvme::CommandCounts& counts : queue.counts) failed += counts.failed;
  return failed;
}

class SsdRig {
 public:
  explicit SsdRig(const SsdRigOptions& options) : options_(options) {
    ssd::Media media;
    media.base = arena_.bytes(options.media_bytes);
    media.bytes = options.media_bytes;
    image::fill_pattern(options.pattern_seed, 0, media.base, options.media_bytes);
    media_ = media.base;
    controller_ = ssd::create_virtual_controller(arena_.space(), options.ssd, media);
    if (options.dma_bytes != 0) {
      reached_ = std::make_unique<MappedApart>(options.dma_bytes);
      dma_memory_ = std::make_unique<ssd::DmaMemory>(*reached_);
      dma_map_.ranges[0] = reached_->range();
      dma_map_.count = 1;
      controller_.dma = &dma_map_;
    }
    device_ = nvme::create_device(device_memory(), controller_, options.device);
  }
  SsdRig(const SsdRig&) = delete;
  SsdRig& operator=(const SsdRig&) = delete;
  ~SsdRig() {
    nvme::destroy_device(device_memory(), device_);
    ssd::destroy_virtual_controller(arena_.space(), controller_);
  }

  nvme::BringUpResult bring_up(uint32_t width = 1) { return bring_up_alone(width, *device_); }
  void bring_up_ready(uint32_t width = 1) { expect_up(bring_up(width)); }

  void add_fault(const ssd::FaultRule& rule) { ssd::add_fault(arena_.space(), controller_, rule); }
  void clear_faults() { ssd::clear_faults(arena_.space(), controller_); }

  nvme::Device& device() { return *device_; }
  nvme::QueuePair& queue(uint32_t index = 0) { return device_->io[index]; }
  ssd::ControllerRef controller() const { return controller_; }
  uint8_t* media() { return media_; }
  TestArena& arena() { return arena_; }
  uint32_t lba_bytes() const { return 1u << options_.ssd.lba_shift; }
  ssd::VirtualSsdCounters counters() { return ssd::read_counters(arena_.space(), controller_); }

  /// A command that moves whole LBAs.
  nvme::Command command(format::nvme::IoOpcode opcode, uint64_t lba, uint32_t lba_count,
                        void* buffer) const {
    return {opcode, false, lba_count, lba, buffer, lba_count * lba_bytes()};
  }
  nvme::Command read(uint64_t lba, uint32_t lba_count, void* buffer) const {
    return command(format::nvme::IoOpcode::kRead, lba, lba_count, buffer);
  }
  /// Whether `buffer` holds what lies there from the start.
  bool holds(const void* buffer, uint64_t lba, uint32_t lba_count) const {
    std::vector<uint8_t> wanted(lba_count * size_t{lba_bytes()});
    image::fill_pattern(options_.pattern_seed, lba * lba_bytes(), wanted.data(), wanted.size());
    return std::memcmp(buffer, wanted.data(), wanted.size()) == 0;
  }

  /// What is mapped for the controller; where it is not all memory.
  ssd::DmaMap& dma_map() { return dma_map_; }

 private:
  nvme::DeviceMemory device_memory() {
    if (dma_memory_ == nullptr) return {arena_.space()};
    return {arena_.space(), *dma_memory_};
  }

  const SsdRigOptions options_;
  TestArena arena_;
  std::unique_ptr<MappedApart> reached_;
  std::unique_ptr<ssd::DmaMemory> dma_memory_;
  ssd::DmaMap dma_map_{};
  uint8_t* media_;
  ssd::ControllerRef controller_{};
  nvme::Device* device_ = nullptr;
};

}  // namespace gofs::testing
