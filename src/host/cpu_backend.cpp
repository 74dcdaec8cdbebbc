// SPDX-License-Identifier: Apache-2.0
#include "host/cpu_backend.h"

#include <sys/utsname.h>

#include <algorithm>
#include <cerrno>
#include <exception>
#include <fstream>
#include <mutex>
#include <system_error>
#include <thread>

#include "host/gpu_memory.h"
#include "simt/host_memory.h"
#include "simt/workers.h"
#include "ssd/media_host.h"
#include "ssd/system_failure.h"

namespace gofs::host {

namespace {

/// An image, read and written where it lies.
class LoadedFile final : public kernels::LoadedMedia {
 public:
  LoadedFile(const std::string& path, ssd::FileAccess access)
      : file_(path, access), media_(file_.media()) {}
  const ssd::Media& media() const override { return media_; }
  std::string sync() override { return file_.sync() == 0 ? std::string() : file_.problem(); }
  std::string problem() const override { return file_.problem(); }

 private:
  ssd::FileMedia file_;
  ssd::Media media_;
};

class LoadedMemory final : public kernels::LoadedMedia {
 public:
  LoadedMemory(simt::MemorySpace& memory, uint64_t bytes)
      : memory_(memory, bytes), media_(memory_.media()) {}
  const ssd::Media& media() const override { return media_; }
  std::string sync() override { return {}; }

 private:
  ssd::MemoryMedia memory_;
  ssd::Media media_;
};

/// The processor's name, as the kernel tells it.
std::string processor_name() {
  std::ifstream info("/proc/cpuinfo");
  std::string line;
  while (std::getline(info, line)) {
    const size_t colon = line.find(": ");
    if (line.starts_with("model name") && colon != std::string::npos) return line.substr(colon + 2);
  }
  utsname system{};
  return ::uname(&system) == 0 ? system.machine : "CPU";
}

class CpuBackend final : public kernels::Backend {
 public:
  explicit CpuBackend(uint32_t workers_max) : workers_max_(workers_max) {}

  const char* name() const override { return "cpu"; }
  std::string description() const override {
    return processor_name() + ", " + std::to_string(workers_max_) +
           (workers_max_ == 1 ? " thread" : " threads");
  }
  bool is_host() const override { return true; }
  uint32_t warp_width() const override { return 1; }
  kernels::Grid full_grid() const override { return {workers_max_, 1}; }
  simt::MemorySpace& memory() override { return memory_; }
  simt::MemorySpace& shared_memory() override { return memory_; }

  std::string reach(void*, uint64_t, kernels::HostRange) override { return {}; }
  void forget(void*) override {}
  std::unique_ptr<ssd::MemorySource> make_device_source(uint64_t) override { has_no_gpu(); }
  std::unique_ptr<ssd::MemorySource> view_device_memory(void*, uint64_t) override { has_no_gpu(); }

  std::unique_ptr<kernels::LoadedMedia> load_media(const kernels::MediaRequest& request,
                                                   std::string& error) override {
    if (request.device_memory) {
      error = "media=hbm is a GPU's memory, which the CPU backend does not have";
      return nullptr;
    }
    try {
      if (request.path.empty()) return std::make_unique<LoadedMemory>(memory_, request.bytes);
      return std::make_unique<LoadedFile>(request.path, request.writable
                                                            ? ssd::FileAccess::kReadWrite
                                                            : ssd::FileAccess::kReadOnly);
    } catch (const std::exception& problem) {
      error = problem.what();
      return nullptr;
    }
  }

  bool run(const kernels::Body& body, const kernels::Grid& grid, void* params) override {
    const uint64_t wanted = uint64_t{grid.blocks} * grid.threads_per_block;
    const auto count = static_cast<uint32_t>(std::clamp<uint64_t>(wanted, 1, workers_max_));
    if (count == 1) {
      // A single call is worth no thread of its own.
      body.on_cpu(simt::Warp(), 0, 1, params);
      return true;
    }
    try {
      simt::run_workers(count, [&](const simt::Warp& warp, uint32_t index) {
        body.on_cpu(warp, index, count, params);
      });
    } catch (const std::exception& problem) {
      const std::lock_guard lock(error_mutex_);
      error_ = std::string("threads could not be started: ") + problem.what();
      return false;
    }
    return true;
  }
  kernels::BufferReach reach_of(const void* memory, uint64_t bytes) const override {
    kernels::BufferReach reach = Backend::reach_of(memory, bytes);
    reach.reached = !GpuMemory::at(memory);
    return reach;
  }
  std::string what_else_than_host_memory(const void* buffer) const override {
    return GpuMemory::at(buffer) ? "memory of a GPU" : "";
  }
  std::string error() const override {
    const std::lock_guard lock(error_mutex_);
    return error_;
  }

 private:
  [[noreturn]] static void has_no_gpu() {
    ssd::fail_with(EOPNOTSUPP, "the CPU backend has no GPU's memory");
  }

  const uint32_t workers_max_;
  simt::HostMemorySpace memory_;
  mutable std::mutex error_mutex_;
  std::string error_;
};

}  // namespace

std::unique_ptr<kernels::Backend> make_cpu_backend(uint32_t workers_max) {
  if (workers_max == 0) workers_max = std::max(1u, std::thread::hardware_concurrency());
  return std::make_unique<CpuBackend>(workers_max);
}

}  // namespace gofs::host
