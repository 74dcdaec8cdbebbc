// SPDX-License-Identifier: Apache-2.0
#include "gpu/device_source.h"

#include <cuda_runtime.h>

#include <cerrno>
#include <string>
#include <utility>

#include "gpu/cuda_error.h"
#include "gpu/device_view.h"
#include "gpu/own_calls.h"
#include "simt/platform.h"
#include "ssd/system_failure.h"

namespace gofs::gpu {

namespace {

/// What an SSD has written must be visible to the GPU's threads once they have seen the completion:
/// nothing can flush in between.
void require_ordered_writes() {
  const OwnCalls own;
  int device = 0;
  int ordering = 0;
  const cudaError_t error = cudaGetDevice(&device);
  if (error != cudaSuccess ||
      cudaDeviceGetAttribute(&ordering, cudaDevAttrGPUDirectRDMAWritesOrdering, device) !=
          cudaSuccess ||
      ordering < cudaGPUDirectRDMAWritesOrderingOwner) {
    ssd::fail_with(EOPNOTSUPP,
                   "this GPU's threads do not see an SSD's writes to its memory in order");
  }
}

class DeviceSource final : public ssd::MemorySource {
 public:
  /// `owned`: it is freed with this.
  DeviceSource(void* device, uint64_t bytes, void* owned)
      : device_(device), bytes_(bytes), owned_(owned) {}
  DeviceSource(const DeviceSource&) = delete;
  DeviceSource& operator=(const DeviceSource&) = delete;
  ~DeviceSource() override {
    view_.reset();
    const OwnCalls own;
    if (owned_ != nullptr) cudaFree(owned_);
  }
  void open() {
    require_ordered_writes();
    view_ = DeviceView::make(device_, bytes_);
  }

  uint8_t* base() const override { return view_->base(); }
  uint8_t* warp_base() const override { return static_cast<uint8_t*>(device_); }
  uint64_t bytes() const override { return bytes_; }
  std::string description() const override {
    return std::to_string(bytes_ >> 10) + " KiB of the GPU's memory " + view_->way();
  }

 private:
  void* const device_;
  const uint64_t bytes_;
  void* const owned_;
  std::unique_ptr<DeviceView> view_;
};

}  // namespace

std::unique_ptr<ssd::MemorySource> make_device_source(uint64_t bytes) {
  constexpr uint64_t kPage = DeviceView::kPageBytes;
  const uint64_t whole = simt::align_up(bytes, kPage);
  // cudaMalloc promises 256 bytes only.
  void* owned = nullptr;
  const OwnCalls own;
  if (cudaMalloc(&owned, whole + kPage) != cudaSuccess) {
    ssd::fail_with(ENOMEM, std::to_string(whole >> 10) + " KiB of the GPU's memory for an SSD");
  }
  void* const begin =
      reinterpret_cast<void*>(simt::align_up(reinterpret_cast<uint64_t>(owned), kPage));
  auto source = std::make_unique<DeviceSource>(begin, whole, owned);
  const std::string error = cuda_error_text(cudaMemset(begin, 0, whole), "cudaMemset");
  if (!error.empty()) ssd::fail_with(EIO, error);
  source->open();
  return source;
}

std::unique_ptr<ssd::MemorySource> view_device_memory(void* device, uint64_t bytes) {
  constexpr uint64_t kPage = DeviceView::kPageBytes;
  if (reinterpret_cast<uint64_t>(device) % kPage != 0 || bytes % kPage != 0 || bytes == 0) {
    ssd::fail_with(EINVAL, "a GPU's memory is mapped by multiples of 64 KiB");
  }
  auto source = std::make_unique<DeviceSource>(device, bytes, nullptr);
  source->open();
  return source;
}

}  // namespace gofs::gpu
