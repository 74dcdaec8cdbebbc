// SPDX-License-Identifier: Apache-2.0
//
// Host threads as the device: a thread is a warp of one lane, a copy is one of memory.
#include <cstring>
#include <exception>

#include "device.hpp"
#include "simt/workers.h"

namespace gofs::bench {
namespace {

class HostCopies final : public Copies {
 public:
  void begin(void* target, const void* source, uint64_t bytes) override {
    std::memcpy(target, source, bytes);
  }
  int finish() override { return 0; }
};

class HostDevice final : public Device {
 public:
  explicit HostDevice(kernels::Backend& backend) : backend_(backend) {}

  bool run(const kernels::Body& body, const kernels::Grid& grid, void* params) override {
    const uint32_t count = grid.blocks * grid.threads_per_block;
    try {
      simt::run_workers(count, [&](const simt::Warp& warp, uint32_t index) {
        body.on_cpu(warp, index, count, params);
      });
    } catch (const std::exception& problem) {
      error_ = std::string("threads could not be started: ") + problem.what();
      return false;
    }
    return true;
  }
  std::unique_ptr<Copies> make_copies() override { return std::make_unique<HostCopies>(); }
  const std::string& error() const override { return error_; }
  kernels::Backend& backend() override { return backend_; }

 private:
  kernels::Backend& backend_;
  std::string error_;
};

}  // namespace

std::unique_ptr<Device> make_host_device(kernels::Backend& backend) {
  return std::make_unique<HostDevice>(backend);
}

}  // namespace gofs::bench
