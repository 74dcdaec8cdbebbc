// SPDX-License-Identifier: Apache-2.0
#include "gpu/cuda_backend.h"

#include <cuda_runtime.h>

#include <chrono>
#include <mutex>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "gpu/buffer_reach.h"
#include "gpu/context_health.h"
#include "gpu/cuda_error.h"
#include "gpu/cuda_media.h"
#include "gpu/cuda_memory.h"
#include "gpu/device_source.h"
#include "gpu/foreign_memory.h"
#include "gpu/kernels.h"
#include "gpu/own_calls.h"
#include "gpu/shared_warp_memory.h"
#include "ssd/system_failure.h"

namespace gofs::gpu {

namespace {

constexpr const char* kLaunch = "kernel launch";
constexpr const char* kKernel = "kernel";
constexpr const char* kOnlyNewProcess =
    "; a kernel of this process has failed before, and only a new process can use the GPU again";

/// A launch at a time; others run beside it. Used and freed by a thread that has OwnCalls.
struct Lane {
  cudaStream_t stream = nullptr;
  cudaEvent_t done = nullptr;

  Lane() = default;
  Lane(Lane&& other) noexcept
      : stream(std::exchange(other.stream, nullptr)), done(std::exchange(other.done, nullptr)) {}
  Lane& operator=(Lane&& other) noexcept {
    std::swap(stream, other.stream);
    std::swap(done, other.done);
    return *this;
  }
  ~Lane() {
    if (done != nullptr) cudaEventDestroy(done);
    if (stream != nullptr) cudaStreamDestroy(stream);
  }

  cudaError_t open() {
    // What the host asks for is short, or serves others: it is not to wait for the end of a kernel
    // that has more blocks than the GPU has room for, and may wait for it.
    int least = 0;
    int greatest = 0;
    cudaError_t error = cudaDeviceGetStreamPriorityRange(&least, &greatest);
    if (error != cudaSuccess) return error;
    error = cudaStreamCreateWithPriority(&stream, cudaStreamNonBlocking, greatest);
    if (error != cudaSuccess) return error;
    return cudaEventCreateWithFlags(&done, cudaEventBlockingSync | cudaEventDisableTiming);
  }
};

class CudaBackend final : public kernels::Backend {
 public:
  CudaBackend(int device, const cudaDeviceProp& properties)
      : device_(device), properties_(properties) {}
  ~CudaBackend() override {
    const OwnCalls own;
    free_lanes_.clear();
  }

  /// Empty, or why it runs nothing.
  std::string open() {
    const OwnCalls own;
    Lane lane;
    const std::string error = cuda_error_text(lane.open(), "cudaStreamCreate");
    if (error.empty()) give_back(std::move(lane));
    return error;
  }

  const char* name() const override { return "cuda"; }
  std::string description() const override {
    int driver = 0;
    cudaDriverGetVersion(&driver);
    return std::string(properties_.name) + ", " + std::to_string(properties_.multiProcessorCount) +
           " SMs, " + std::to_string(properties_.totalGlobalMem >> 20) + " MiB, CUDA driver " +
           std::to_string(driver / 1000) + "." + std::to_string(driver % 1000 / 10);
  }
  uint32_t warp_width() const override { return 32; }
  kernels::Grid full_grid() const override {
    return {static_cast<uint32_t>(properties_.multiProcessorCount) * 2, 256};
  }
  simt::MemorySpace& memory() override { return memory_; }
  simt::MemorySpace& shared_memory() override { return shared_memory_; }

  std::string reach(void* begin, uint64_t bytes, kernels::HostRange what) override {
    const bool registers = what == kernels::HostRange::kRegisters;
    const unsigned int flags = cudaHostRegisterMapped | cudaHostRegisterPortable |
                               (registers ? cudaHostRegisterIoMemory : cudaHostRegisterDefault);
    const OwnCalls own;
    std::string error = cuda_error_text(cudaHostRegister(begin, bytes, flags), "cudaHostRegister");
    if (!error.empty()) return error;
    void* device = nullptr;
    error =
        cuda_error_text(cudaHostGetDevicePointer(&device, begin, 0), "cudaHostGetDevicePointer");
    if (error.empty() && device != begin) error = "the GPU has another address for it";
    if (!error.empty()) forget(begin);
    return error;
  }
  void forget(void* begin) override {
    const OwnCalls own;
    (void)cudaHostUnregister(begin);
  }
  std::string what_else_than_host_memory(const void* buffer) const override {
    const OwnCalls own;
    cudaPointerAttributes attributes{};
    // What CUDA does not know is the host's.
    if (cudaPointerGetAttributes(&attributes, buffer) != cudaSuccess) return {};
    if (attributes.type != cudaMemoryTypeDevice) return {};
    return "memory of GPU " + std::to_string(attributes.device);
  }
  std::unique_ptr<ssd::MemorySource> make_device_source(uint64_t bytes) override {
    return gpu::make_device_source(bytes);
  }
  std::unique_ptr<ssd::MemorySource> view_device_memory(void* memory, uint64_t bytes) override {
    return gpu::view_device_memory(memory, bytes);
  }
  std::unique_ptr<kernels::SharedWarpMemory> share_memory(uint64_t bytes) override {
    std::unique_ptr<kernels::SharedWarpMemory> shared = share_gpu_memory(device_, bytes);
    // It may hold what another program has left there.
    if (!memory_.zero(shared->data(), shared->bytes())) ssd::fail_with(EIO, error());
    return shared;
  }
  std::unique_ptr<kernels::SharedWarpMemory> map_shared_memory(ssd::Descriptor descriptor,
                                                               uint64_t bytes) override {
    return map_gpu_memory(device_, std::move(descriptor), bytes);
  }
  std::unique_ptr<kernels::WarpMemory> reach_foreign(kernels::ForeignMemory memory) override {
    return reach_foreign_memory(device_, std::move(memory), foreign_closes_);
  }

  std::unique_ptr<kernels::LoadedMedia> load_media(const kernels::MediaRequest& request,
                                                   std::string& error) override {
    return load_cuda_media({memory_, shared_memory_, health_}, request, error);
  }

  bool run(const kernels::Body& body, const kernels::Grid& grid, void* params) override {
    const std::unique_ptr<kernels::Begun> begun = begin_apart(body, grid, params);
    return begun != nullptr && begun->wait();
  }
  std::unique_ptr<kernels::Begun> begin_apart(const kernels::Body& body, const kernels::Grid& grid,
                                              void* params) override {
    if (!can_run(body)) return nullptr;
    const OwnCalls own;
    Lane lane;
    cudaError_t error = take(lane);
    if (error != cudaSuccess) return fails(error, kLaunch), nullptr;
    auto begun = std::make_unique<BegunOnLane>(*this, std::move(lane));
    error = begun->launch(body, grid, params);
    if (error != cudaSuccess) return fails(error, kLaunch), nullptr;
    return begun;
  }
  std::unique_ptr<kernels::Begun> begin(const kernels::Body& body, const kernels::Grid& grid,
                                        void* params, CUstream_st* stream) override {
    if (!can_run(body)) return nullptr;
    const OwnCalls own;
    auto begun = std::make_unique<BegunOnStream>(*this);
    cudaError_t error = begun->open();
    if (error == cudaSuccess) {
      error = static_cast<cudaError_t>(body.on_gpu->launch(grid, params, stream));
    }
    if (error != cudaSuccess) return fails(error, kLaunch), nullptr;
    begun->record(stream);
    return begun;
  }
  bool is_capturing(CUstream_st* stream) const override {
    const OwnCalls own;
    cudaStreamCaptureStatus status = cudaStreamCaptureStatusNone;
    // It cannot be asked of the default stream while another one is captured, nor can that be used.
    return cudaStreamIsCapturing(stream, &status) != cudaSuccess ||
           status != cudaStreamCaptureStatusNone;
  }
  kernels::BufferReach reach_of(const void* memory, uint64_t bytes) const override {
    const OwnCalls own;
    return gpu::reach_of(device_, memory, bytes);
  }
  bool prepare(const kernels::Body& body) override {
    if (!can_run(body)) return false;
    const OwnCalls own;
    const auto loaded = static_cast<cudaError_t>(body.on_gpu->load());
    return loaded == cudaSuccess || fails(loaded, "kernel's code");
  }
  std::string error() const override {
    const std::lock_guard lock(mutex_);
    return error_;
  }
  std::string failure() const override { return health_.words(); }
  bool has_failed() const override { return health_.lost(); }

 private:
  /// A launch on a lane, which goes back when it has ended: so that is waited for in any case.
  class BegunOnLane final : public kernels::Begun {
   public:
    BegunOnLane(CudaBackend& backend, Lane lane) : backend_(backend), lane_(std::move(lane)) {
      backend_.launches_.add();
    }
    ~BegunOnLane() override { (void)wait(); }
    cudaError_t launch(const kernels::Body& body, const kernels::Grid& grid, void* params) {
      return static_cast<cudaError_t>(body.on_gpu->launch(grid, params, lane_.stream));
    }
    bool is_over() override {
      const OwnCalls own;
      return has_ended_ || cudaStreamQuery(lane_.stream) != cudaErrorNotReady;
    }
    bool wait() override {
      if (has_ended_) return ended_ == cudaSuccess;
      const OwnCalls own;
      ended_ = CudaBackend::wait(lane_);
      has_ended_ = true;
      backend_.give_back(std::move(lane_));
      if (backend_.launches_.remove()) {
        backend_.memory_.free_late();
        backend_.shared_memory_.free_late();
        backend_.foreign_closes_.free_all();
      }
      return ended_ == cudaSuccess || backend_.fails(ended_, kKernel);
    }

   private:
    CudaBackend& backend_;
    Lane lane_;
    bool has_ended_ = false;
    cudaError_t ended_ = cudaSuccess;
  };

  /// A launch on a stream of the program, which may be gone before it has ended.
  class BegunOnStream final : public kernels::Begun {
   public:
    explicit BegunOnStream(CudaBackend& backend) : backend_(backend) {}
    ~BegunOnStream() override {
      const OwnCalls own;
      if (done_ != nullptr) cudaEventDestroy(done_);
    }
    cudaError_t open() {
      return cudaEventCreateWithFlags(&done_, cudaEventBlockingSync | cudaEventDisableTiming);
    }
    /// Where the end could not be waited for later, it is waited for now.
    void record(cudaStream_t stream) {
      recorded_ = cudaEventRecord(done_, stream) == cudaSuccess;
      if (!recorded_) ended_ = cudaStreamSynchronize(stream);
    }
    bool is_over() override {
      const OwnCalls own;
      return !recorded_ || cudaEventQuery(done_) != cudaErrorNotReady;
    }
    bool wait() override {
      const OwnCalls own;
      if (recorded_) ended_ = cudaEventSynchronize(done_);
      return ended_ == cudaSuccess || backend_.fails(ended_, kKernel);
    }

   private:
    CudaBackend& backend_;
    cudaEvent_t done_ = nullptr;
    bool recorded_ = false;
    cudaError_t ended_ = cudaSuccess;
  };

  /// False: error() says why.
  bool can_run(const kernels::Body& body) {
    std::string why = health_.words();
    if (why.empty() && body.on_gpu == nullptr) {
      why = std::string("there is no kernel for '") + body.name + "'";
    }
    if (why.empty()) return true;
    const std::lock_guard lock(mutex_);
    error_ = std::move(why);
    return false;
  }
  /// False, and error() says so.
  bool fails(cudaError_t error, const char* what) {
    std::string words = cuda_error_text(health_.note(error, what), what);
    const std::lock_guard lock(mutex_);
    error_ = std::move(words);
    return false;
  }

  cudaError_t take(Lane& lane) {
    {
      const std::lock_guard lock(mutex_);
      if (!free_lanes_.empty()) {
        lane = std::move(free_lanes_.back());
        free_lanes_.pop_back();
        return cudaSuccess;
      }
    }
    return lane.open();
  }
  void give_back(Lane lane) {
    const std::lock_guard lock(mutex_);
    free_lanes_.push_back(std::move(lane));
  }

  /// Waits for what was launched: a short kernel's end is looked for, for a long one's the thread
  /// sleeps, so that file I/O takes none of the host's time. The kernel has ended when this
  /// returns, or the context has: it uses what its caller frees or gives to the next.
  static cudaError_t wait(const Lane& lane) {
    constexpr std::chrono::microseconds kLookFor{100};
    const auto patience = std::chrono::steady_clock::now() + kLookFor;
    cudaError_t state = cudaErrorNotReady;
    while (state == cudaErrorNotReady && std::chrono::steady_clock::now() < patience) {
      state = cudaStreamQuery(lane.stream);
    }
    while (!is_end(state)) {
      state = cudaEventRecord(lane.done, lane.stream);
      if (state == cudaSuccess) state = cudaEventSynchronize(lane.done);
      if (is_end(state)) break;
      // It could not be waited for, and nothing is known of the kernel.
      std::this_thread::sleep_for(kLookFor);
      state = cudaStreamQuery(lane.stream);
    }
    return state;
  }
  static bool is_end(cudaError_t state) { return state == cudaSuccess || ends_context(state); }

  const int device_;
  const cudaDeviceProp properties_;
  ContextHealth health_;
  LaunchCount launches_;
  DeviceMemorySpace memory_{health_, launches_};
  PinnedMemorySpace shared_memory_{health_, launches_};
  LateFrees foreign_closes_{launches_, close_foreign_memory};

  mutable std::mutex mutex_;
  std::vector<Lane> free_lanes_;
  std::string error_;  // of the last launch that failed
};

}  // namespace

std::string lost_context() {
  const OwnCalls own;
  const cudaError_t error = cudaFree(nullptr);  // which needs a context, and nothing else
  return is_fault(error) ? cuda_error_text(error, "the GPU") : std::string();
}

std::unique_ptr<kernels::Backend> make_cuda_backend(std::string& error) {
  const OwnCalls own;
  int device = 0;
  error = lost_context();
  if (!error.empty()) {
    error += kOnlyNewProcess;
    return nullptr;
  }
  error = cuda_error_text(cudaGetDevice(&device), "no usable GPU");
  if (!error.empty()) return nullptr;
  cudaDeviceProp properties{};
  error = cuda_error_text(cudaGetDeviceProperties(&properties, device), "no usable GPU");
  if (!error.empty()) return nullptr;
  if (properties.canMapHostMemory == 0 || properties.unifiedAddressing == 0) {
    error = "the GPU cannot map host memory";
    return nullptr;
  }
  if (gpu_kernels::kClock.load() == cudaErrorNoKernelImageForDevice) {
    const std::string architecture =
        std::to_string(properties.major) + std::to_string(properties.minor);
    error = "this libgofs has no code for the GPU: compile it with CMAKE_CUDA_ARCHITECTURES=" +
            architecture;
    return nullptr;
  }
  auto backend = std::make_unique<CudaBackend>(device, properties);
  error = backend->open();
  if (!error.empty()) return nullptr;
  return backend;
}

}  // namespace gofs::gpu
