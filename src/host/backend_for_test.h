// SPDX-License-Identifier: Apache-2.0
//
// For tests only: threads of the host that are used as a GPU is, of which tests change what they
// want to, and volumes that are mounted with them.
#pragma once

#include <atomic>
#include <cerrno>
#include <memory>
#include <string>
#include <thread>
#include <utility>

#include "gofs/volume.hpp"
#include "host/cpu_backend.h"
#include "host/serve/shared_memory.h"
#include "host/volume_access.h"
#include "simt/host_memory.h"
#include "ssd/system_failure.h"

namespace gofs::host {

/// Unlike the CPU backend it is no host(): the file system's memory is read by copies, and data
/// goes through staging buffers.
class BackendForTest : public kernels::Backend {
 public:
  /// `threads` play the warps of a launch.
  explicit BackendForTest(uint32_t threads = 2) : cpu_(make_cpu_backend(threads)) {}
  const char* name() const override { return "test"; }
  std::string description() const override { return "a CPU that is used as a GPU is"; }
  uint32_t warp_width() const override { return 1; }
  kernels::Grid full_grid() const override { return {2, 1}; }
  simt::MemorySpace& memory() override { return memory_; }
  simt::MemorySpace& shared_memory() override { return memory_; }
  std::string reach(void*, uint64_t, kernels::HostRange) override {
    ++reached_;
    return {};
  }
  void forget(void*) override { --reached_; }
  /// Ranges of the host's memory that it reaches.
  int reached() const { return reached_; }
  std::unique_ptr<ssd::MemorySource> make_device_source(uint64_t bytes) override {
    return cpu_->make_device_source(bytes);
  }
  std::unique_ptr<ssd::MemorySource> view_device_memory(void* memory, uint64_t bytes) override {
    return cpu_->view_device_memory(memory, bytes);
  }
  std::unique_ptr<kernels::SharedWarpMemory> share_memory(uint64_t bytes) override {
    return std::make_unique<Shared>(SharedMemory::make("memory of a GPU", bytes));
  }
  std::unique_ptr<kernels::SharedWarpMemory> map_shared_memory(ssd::Descriptor descriptor,
                                                               uint64_t) override {
    return std::make_unique<Shared>(SharedMemory::map(std::move(descriptor)));
  }
  std::unique_ptr<kernels::WarpMemory> reach_foreign(kernels::ForeignMemory memory) override {
    if (!memory.descriptor.is_open()) ssd::fail_with(ENOTSUP, "no CUDA opens a handle here");
    struct Foreign final : Shared {
      Foreign(SharedMemory its, std::atomic<int>& how_many)
          : Shared(std::move(its)), count(how_many) {
        ++count;
      }
      ~Foreign() override { --count; }
      std::atomic<int>& count;
    };
    return std::make_unique<Foreign>(SharedMemory::map(std::move(memory.descriptor)), foreign_);
  }
  /// Memory of other processes that it reaches.
  int foreign() const { return foreign_; }
  std::unique_ptr<kernels::LoadedMedia> load_media(const kernels::MediaRequest& request,
                                                   std::string& error) override {
    return cpu_->load_media(request, error);
  }
  bool run(const kernels::Body& body, const kernels::Grid& grid, void* params) override {
    return cpu_->run(body, grid, params);
  }
  std::unique_ptr<kernels::Begun> begin_apart(const kernels::Body& body, const kernels::Grid& grid,
                                              void* params) override {
    return std::make_unique<Launch>(
        [this, &body, grid, params] { return run(body, grid, params); });
  }
  std::string error() const override { return cpu_->error(); }

 private:
  class Launch final : public kernels::Begun {
   public:
    template <typename Work>
    explicit Launch(Work work)
        : thread_([this, work] {
            ran_ = work();
            over_ = true;
          }) {}
    ~Launch() override { (void)wait(); }
    bool is_over() override { return over_; }
    bool wait() override {
      if (thread_.joinable()) thread_.join();
      return ran_;
    }

   private:
    bool ran_ = false;
    std::atomic<bool> over_{false};
    std::thread thread_;  // the last: it uses the above
  };
  class Shared : public kernels::SharedWarpMemory {
   public:
    explicit Shared(SharedMemory memory) : memory_(std::move(memory)) {}
    uint8_t* data() const override { return memory_.data(); }
    uint64_t bytes() const override { return memory_.bytes(); }
    const ssd::Descriptor& descriptor() const override { return memory_.descriptor(); }

   private:
    SharedMemory memory_;
  };

  simt::HostMemorySpace memory_;
  const std::unique_ptr<kernels::Backend> cpu_;
  std::atomic<int> reached_{0};
  std::atomic<int> foreign_{0};
};

struct VolumeForTest {
  static Expected<Volume> mount(const std::string& spec, const MountOptions& options,
                                const BackendMaker& make) {
    auto state = VolumeState::mount(spec, options, MountKind::kVolume, make);
    if (!state) return state.error();
    return VolumeAccess::volume(std::move(*state));
  }
};

}  // namespace gofs::host
