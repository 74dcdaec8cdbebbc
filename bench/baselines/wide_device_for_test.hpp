// SPDX-License-Identifier: Apache-2.0
//
// A device whose warps have several lanes, as a GPU's have, on host threads.
#pragma once

#include "device.hpp"
#include "testing/teams.hpp"

namespace gofs::bench {

/// What the baselines ask a backend for, of one that has wide warps; the rest is the CPU's.
class WideBackend final : public kernels::Backend {
 public:
  static constexpr uint32_t kWidth = 8;

  explicit WideBackend(kernels::Backend& cpu) : cpu_(cpu) {}
  const char* name() const override { return "wide"; }
  std::string description() const override { return "wide warps on host threads"; }
  uint32_t warp_width() const override { return kWidth; }
  kernels::Grid full_grid() const override { return {2, kWidth}; }
  simt::MemorySpace& memory() override { return cpu_.memory(); }
  simt::MemorySpace& shared_memory() override { return cpu_.shared_memory(); }
  std::string reach(void* begin, uint64_t bytes, kernels::HostRange what) override {
    return cpu_.reach(begin, bytes, what);
  }
  void forget(void* begin) override { cpu_.forget(begin); }
  std::unique_ptr<ssd::MemorySource> make_device_source(uint64_t bytes) override {
    return cpu_.make_device_source(bytes);
  }
  std::unique_ptr<ssd::MemorySource> view_device_memory(void* memory, uint64_t bytes) override {
    return cpu_.view_device_memory(memory, bytes);
  }
  std::unique_ptr<kernels::LoadedMedia> load_media(const kernels::MediaRequest& request,
                                                   std::string& error) override {
    return cpu_.load_media(request, error);
  }
  bool run(const kernels::Body& body, const kernels::Grid& grid, void* params) override {
    return cpu_.run(body, grid, params);
  }
  std::string error() const override { return cpu_.error(); }

 private:
  kernels::Backend& cpu_;
};

class WideDevice final : public Device {
 public:
  explicit WideDevice(kernels::Backend& cpu) : backend_(cpu), copies_(make_host_device(cpu)) {}

  bool run(const kernels::Body& body, const kernels::Grid& grid, void* params) override {
    const uint32_t warps = grid.blocks * grid.threads_per_block / WideBackend::kWidth;
    testing::run_teams(warps, WideBackend::kWidth, [&](const simt::Warp& warp, uint32_t index) {
      body.on_cpu(warp, index, warps, params);
    });
    return true;
  }
  std::unique_ptr<Copies> make_copies() override { return copies_->make_copies(); }
  const std::string& error() const override { return copies_->error(); }
  kernels::Backend& backend() override { return backend_; }

 private:
  WideBackend backend_;
  const std::unique_ptr<Device> copies_;
};

}  // namespace gofs::bench
