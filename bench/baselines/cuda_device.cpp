// SPDX-License-Identifier: Apache-2.0
//
// A GPU as the device. Its kernels have a stream of their own, and so have each host thread's
// copies: those of rpc go on while a kernel waits for them.
#include <cerrno>

#include "device.hpp"
#include "gpu/cuda_error.h"
#include "simt/clock.h"

namespace gofs::bench {
namespace {

constexpr uint64_t kCopiesTimeoutNs = 10'000'000'000;

class CudaCopies final : public Copies {
 public:
  CudaCopies() : error_(cudaStreamCreateWithFlags(&stream_, cudaStreamNonBlocking)) {}
  ~CudaCopies() override {
    if (stream_ != nullptr) cudaStreamDestroy(stream_);
  }
  CudaCopies(const CudaCopies&) = delete;
  CudaCopies& operator=(const CudaCopies&) = delete;
  bool is_open() const { return stream_ != nullptr; }

  void begin(void* target, const void* source, uint64_t bytes) override {
    if (error_ != cudaSuccess) return;
    error_ = cudaMemcpyAsync(target, source, bytes, cudaMemcpyDefault, stream_);
  }
  int finish() override {
    const simt::Deadline deadline = simt::Deadline::after_ns(kCopiesTimeoutNs);
    for (simt::Backoff backoff; error_ == cudaSuccess; backoff.pause()) {
      const cudaError_t state = cudaStreamQuery(stream_);
      if (state == cudaSuccess) return 0;
      if (state != cudaErrorNotReady) error_ = state;
      if (deadline.passed()) return -ETIMEDOUT;
    }
    return -EIO;
  }

 private:
  cudaStream_t stream_ = nullptr;
  cudaError_t error_;
};

class CudaDevice final : public Device {
 public:
  explicit CudaDevice(kernels::Backend& backend) : backend_(backend) {}
  ~CudaDevice() override {
    if (done_ != nullptr) cudaEventDestroy(done_);
    if (stream_ != nullptr) cudaStreamDestroy(stream_);
  }
  CudaDevice(const CudaDevice&) = delete;
  CudaDevice& operator=(const CudaDevice&) = delete;

  std::string open() {
    const std::string stream = gpu::cuda_error_text(
        cudaStreamCreateWithFlags(&stream_, cudaStreamNonBlocking), "cudaStreamCreate");
    if (!stream.empty()) return stream;
    // Who waits for this event sleeps: the host's time is what is measured too.
    return gpu::cuda_error_text(
        cudaEventCreateWithFlags(&done_, cudaEventBlockingSync | cudaEventDisableTiming),
        "cudaEventCreate");
  }

  bool run(const kernels::Body& body, const kernels::Grid& grid, void* params) override {
    const auto launched = static_cast<cudaError_t>(body.on_gpu->launch(grid, params, stream_));
    error_ = gpu::cuda_error_text(launched, "kernel launch");
    if (error_.empty()) error_ = gpu::cuda_error_text(cudaEventRecord(done_, stream_), "event");
    if (error_.empty()) error_ = gpu::cuda_error_text(cudaEventSynchronize(done_), "kernel");
    return error_.empty();
  }
  std::unique_ptr<Copies> make_copies() override {
    auto copies = std::make_unique<CudaCopies>();
    if (!copies->is_open()) return nullptr;
    return copies;
  }
  const std::string& error() const override { return error_; }
  kernels::Backend& backend() override { return backend_; }

 private:
  kernels::Backend& backend_;
  cudaStream_t stream_ = nullptr;
  cudaEvent_t done_ = nullptr;
  std::string error_;
};

}  // namespace

std::unique_ptr<Device> make_cuda_device(kernels::Backend& backend, std::string& error) {
  auto device = std::make_unique<CudaDevice>(backend);
  error = device->open();
  if (!error.empty()) return nullptr;
  return device;
}

}  // namespace gofs::bench
