// SPDX-License-Identifier: Apache-2.0
//
// The driver's device on QEMU's NVMe controller: queues in the machine's memory, registers by a
// relay, and a part of that memory that commands reach straight, whatever they do with the rest.
#pragma once

#include <fcntl.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <memory>
#include <string>
#include <vector>

#include "../qemu/qemu_machine.h"
#include "../qemu/qemu_memory.h"
#include "../qemu/qtest_transport.h"
#include "nvme/array.h"
#include "nvme/layout.h"
#include "simt/host_memory.h"
#include "ssd/dma_memory.h"
#include "ssd/register_relay.h"
#include "testing/bring_up.hpp"

namespace gofs::tests {

struct QemuRigOptions {
  ssd::QemuOptions machine;  // with one disk
  nvme::DeviceOptions device;
  uint64_t queue_bytes = uint64_t{24} << 20;  // for queues and staging areas
  uint64_t data_bytes = uint64_t{16} << 20;   // that commands reach straight
};

class QemuRig {
 public:
  explicit QemuRig(const QemuRigOptions& options)
      : options_(options),
        machine_(options.machine),
        queue_memory_(machine_, options.queue_bytes),
        data_memory_(machine_, options.data_bytes),
        dma_memory_(queue_memory_),
        transport_(std::make_unique<ssd::QtestTransport>(machine_)) {
    for (const ssd::QemuMemory* memory : {&queue_memory_, &data_memory_}) {
      const auto begin = reinterpret_cast<uint64_t>(memory->base());
      const uint64_t address = transport_->map(memory->base(), memory->bytes());
      dma_map_.ranges[dma_map_.count++] = {begin, begin + memory->bytes(), address};
    }
    create();
  }
  QemuRig(const QemuRig&) = delete;
  QemuRig& operator=(const QemuRig&) = delete;
  ~QemuRig() {
    relay_.reset();
    transport_.reset();  // which stops the controller
    destroy();
  }

  /// Another driver on the same controller, as after a crash of the one before.
  void start_anew() {
    relay_.reset();
    destroy();
    create();
  }

  nvme::BringUpResult bring_up(uint32_t width = 1) {
    return testing::bring_up_alone(width, *device_);
  }
  void bring_up_ready(uint32_t width = 1) { testing::expect_up(bring_up(width)); }

  ssd::QemuMachine& machine() { return machine_; }
  ssd::Transport& transport() { return *transport_; }
  nvme::Device& device() { return *device_; }
  nvme::QueuePair& queue(uint32_t index = 0) { return device_->io[index]; }
  uint32_t lba_bytes() const { return options_.machine.disks.front().lba_bytes; }
  /// Memory that commands reach straight, zeroed.
  uint8_t* data() { return data_memory_.base(); }

  nvme::Command command(format::nvme::IoOpcode opcode, uint64_t lba, uint32_t lba_count,
                        void* buffer) const {
    return {opcode, false, lba_count, lba, buffer, lba_count * lba_bytes()};
  }
  nvme::Command read(uint64_t lba, uint32_t lba_count, void* buffer) const {
    return command(format::nvme::IoOpcode::kRead, lba, lba_count, buffer);
  }
  nvme::Command write(uint64_t lba, uint32_t lba_count, void* buffer) const {
    return command(format::nvme::IoOpcode::kWrite, lba, lba_count, buffer);
  }

  /// One command by one warp of one lane, on the first queue.
  nvme::CommandStatus run(const nvme::Command& command) {
    nvme::CommandStatus status = 0;
    testing::run_alone(1, [&](const simt::Warp& warp) {
      status = nvme::execute(warp, *device_, queue(), 1u, command);
    });
    return status;
  }
  int flush() {
    nvme::Array array = nvme::array_of(*device_);
    int error = 0;
    testing::run_alone(1, [&](const simt::Warp& warp) { error = nvme::flush(warp, array); });
    return error;
  }
  int shut_down() {
    int error = 0;
    testing::run_alone(1, [&](const simt::Warp& warp) { error = nvme::shut_down(warp, *device_); });
    return error;
  }

  /// What the image file has.
  std::vector<uint8_t> image(uint64_t offset, uint64_t bytes) const {
    std::vector<uint8_t> contents(bytes);
    const int file = ::open(options_.machine.disks.front().image.c_str(), O_RDONLY | O_CLOEXEC);
    EXPECT_EQ(::pread(file, contents.data(), bytes, static_cast<off_t>(offset)),
              static_cast<ssize_t>(bytes));
    ::close(file);
    return contents;
  }

 private:
  void create() {
    const uint32_t io_queues = options_.device.io_queues;
    registers_ = static_cast<uint8_t*>(space_.allocate(ssd::RegisterRelay::copy_bytes(io_queues)));
    relay_ = std::make_unique<ssd::RegisterRelay>(*transport_, registers_, io_queues);
    device_ = nvme::create_device({space_, dma_memory_}, {registers_, nullptr, &dma_map_},
                                  options_.device);
  }
  void destroy() {
    nvme::destroy_device({space_, dma_memory_}, device_);
    space_.release(registers_);
  }

  const QemuRigOptions options_;
  ssd::QemuMachine machine_;
  ssd::QemuMemory queue_memory_;
  ssd::QemuMemory data_memory_;
  ssd::DmaMemory dma_memory_;
  ssd::DmaMap dma_map_{};
  simt::HostMemorySpace space_;
  uint8_t* registers_ = nullptr;
  std::unique_ptr<ssd::QtestTransport> transport_;
  std::unique_ptr<ssd::RegisterRelay> relay_;
  nvme::Device* device_ = nullptr;
};

}  // namespace gofs::tests
