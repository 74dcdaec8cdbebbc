// SPDX-License-Identifier: Apache-2.0
#include "gpu/foreign_memory.h"

#include <cuda_runtime.h>

#include <cerrno>
#include <cstring>
#include <utility>

#include "gpu/allocation.h"
#include "gpu/cuda_error.h"
#include "gpu/own_calls.h"
#include "gpu/shared_warp_memory.h"
#include "ssd/system_failure.h"

namespace gofs::gpu {

namespace {

void check(cudaError_t error, const char* what) {
  if (error != cudaSuccess) ssd::fail_with(EIO, cuda_error_text(error, what));
}

/// What cudaMalloc gave in another process.
class OpenedMemory final : public kernels::WarpMemory {
 public:
  OpenedMemory(const cudaIpcMemHandle_t& handle, LateFrees& closes) : closes_(closes) {
    check(cudaIpcOpenMemHandle(&memory_, handle, cudaIpcMemLazyEnablePeerAccess),
          "cudaIpcOpenMemHandle");
  }
  OpenedMemory(const OpenedMemory&) = delete;
  OpenedMemory& operator=(const OpenedMemory&) = delete;
  ~OpenedMemory() override { closes_.free(memory_, bytes_); }

  /// Throws std::system_error where warps of GPU `device` are not to use it.
  void look(int device) {
    cudaPointerAttributes attributes{};
    check(cudaPointerGetAttributes(&attributes, memory_), "cudaPointerGetAttributes");
    if (attributes.type != cudaMemoryTypeDevice || attributes.device != device) {
      ssd::fail_with(EXDEV, "it is memory of another GPU");
    }
    const uint8_t* begin = nullptr;
    if (!allocation_of(memory_, begin, bytes_) || begin != memory_) {
      ssd::fail_with(EIO, "the driver does not say how much memory it is");
    }
  }

  uint8_t* data() const override { return static_cast<uint8_t*>(memory_); }
  uint64_t bytes() const override { return bytes_; }

 private:
  LateFrees& closes_;
  void* memory_ = nullptr;
  size_t bytes_ = 0;
};

}  // namespace

void close_foreign_memory(void* memory) {
  const OwnCalls own;
  (void)cudaIpcCloseMemHandle(memory);
}

std::unique_ptr<kernels::WarpMemory> reach_foreign_memory(int device, kernels::ForeignMemory memory,
                                                          LateFrees& closes) {
  if (memory.descriptor.is_open()) {
    return import_gpu_memory(device, std::move(memory.descriptor), memory.whole_bytes);
  }
  cudaIpcMemHandle_t handle{};
  if (memory.handle.size() != sizeof(handle)) ssd::fail_with(EINVAL, "no handle of CUDA's");
  std::memcpy(&handle, memory.handle.data(), sizeof(handle));
  const OwnCalls own;
  auto opened = std::make_unique<OpenedMemory>(handle, closes);
  opened->look(device);
  return opened;
}

}  // namespace gofs::gpu
