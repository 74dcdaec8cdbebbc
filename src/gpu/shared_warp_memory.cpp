// SPDX-License-Identifier: Apache-2.0
#include "gpu/shared_warp_memory.h"

#include <cuda.h>
#include <cuda_runtime.h>

#include <cerrno>
#include <string>
#include <utility>

#include "gpu/driver_function.h"
#include "gpu/own_calls.h"
#include "simt/platform.h"
#include "ssd/system_failure.h"

namespace gofs::gpu {

namespace {

/// The driver's functions for it.
struct VirtualMemory {
  decltype(&cuDeviceGetAttribute) get_attribute;
  decltype(&cuMemGetAllocationGranularity) get_granularity;
  decltype(&cuMemCreate) create;
  decltype(&cuMemExportToShareableHandle) to_descriptor;
  decltype(&cuMemImportFromShareableHandle) from_descriptor;
  decltype(&cuMemGetAllocationPropertiesFromHandle) get_properties;
  decltype(&cuMemAddressReserve) reserve;
  decltype(&cuMemMap) map;
  decltype(&cuMemSetAccess) set_access;
  decltype(&cuMemUnmap) unmap;
  decltype(&cuMemRelease) release;
  decltype(&cuMemAddressFree) free;

  bool is_there() const {
    return get_attribute != nullptr && get_granularity != nullptr && create != nullptr &&
           to_descriptor != nullptr && from_descriptor != nullptr && get_properties != nullptr &&
           reserve != nullptr && map != nullptr && set_access != nullptr && unmap != nullptr &&
           release != nullptr && free != nullptr;
  }
};

template <typename Function>
void find(Function& function, const char* name, unsigned int since = 10020) {
  function = find_driver_function<Function>(name, since);
}

const VirtualMemory& driver() {
  static const VirtualMemory found = [] {
    VirtualMemory all{};
    find(all.get_attribute, "cuDeviceGetAttribute", 2000);
    find(all.get_granularity, "cuMemGetAllocationGranularity");
    find(all.create, "cuMemCreate");
    find(all.to_descriptor, "cuMemExportToShareableHandle");
    find(all.from_descriptor, "cuMemImportFromShareableHandle");
    find(all.get_properties, "cuMemGetAllocationPropertiesFromHandle");
    find(all.reserve, "cuMemAddressReserve");
    find(all.map, "cuMemMap");
    find(all.set_access, "cuMemSetAccess");
    find(all.unmap, "cuMemUnmap");
    find(all.release, "cuMemRelease");
    find(all.free, "cuMemAddressFree");
    return all;
  }();
  if (!found.is_there()) ssd::fail_with(ENOTSUP, "the driver has no virtual memory management");
  return found;
}

void check(CUresult result, const char* what) {
  if (result == CUDA_SUCCESS) return;
  const int error = result == CUDA_ERROR_OUT_OF_MEMORY ? ENOMEM : EIO;
  ssd::fail_with(error, std::string(what) + ": CUDA's error " + std::to_string(result));
}

CUmemAllocationProp shared_memory_of(int device) {
  CUmemAllocationProp memory{};
  memory.type = CU_MEM_ALLOCATION_TYPE_PINNED;
  memory.requestedHandleTypes = CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR;
  memory.location = {CU_MEM_LOCATION_TYPE_DEVICE, {device}};
  return memory;
}

uint64_t granularity_of(int device) {
  const CUmemAllocationProp memory = shared_memory_of(device);
  size_t granularity = 0;
  check(driver().get_granularity(&granularity, &memory, CU_MEM_ALLOC_GRANULARITY_MINIMUM),
        "cuMemGetAllocationGranularity");
  return granularity;
}

class SharedGpuMemory final : public kernels::SharedWarpMemory {
 public:
  SharedGpuMemory(ssd::Descriptor descriptor, uint64_t bytes)
      : descriptor_(std::move(descriptor)), bytes_(bytes) {}
  SharedGpuMemory(const SharedGpuMemory&) = delete;
  SharedGpuMemory& operator=(const SharedGpuMemory&) = delete;
  ~SharedGpuMemory() override {
    const OwnCalls own;
    if (is_mapped_) driver().unmap(address_, bytes_);
    if (address_ != 0) driver().free(address_, bytes_);
  }

  /// Takes over `handle`, whose memory is there as long as it is mapped anywhere.
  void map(int device, CUmemGenericAllocationHandle handle) {
    CUresult result = driver().reserve(&address_, bytes_, 0, 0, 0);
    if (result == CUDA_SUCCESS) result = driver().map(address_, bytes_, 0, handle, 0);
    is_mapped_ = result == CUDA_SUCCESS;
    driver().release(handle);
    check(result, "cuMemMap");
    CUmemAccessDesc access{};
    access.location = {CU_MEM_LOCATION_TYPE_DEVICE, {device}};
    access.flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE;
    check(driver().set_access(address_, bytes_, &access, 1), "cuMemSetAccess");
  }

  uint8_t* data() const override { return reinterpret_cast<uint8_t*>(address_); }
  uint64_t bytes() const override { return bytes_; }
  const ssd::Descriptor& descriptor() const override { return descriptor_; }

 private:
  const ssd::Descriptor descriptor_;
  const uint64_t bytes_;
  CUdeviceptr address_ = 0;
  bool is_mapped_ = false;
};

/// Kernels of two processes wait for each other, so both are to run at the same time.
void require_mps(int device) {
  int enabled = 0;
  check(driver().get_attribute(&enabled, CU_DEVICE_ATTRIBUTE_MPS_ENABLED, device),
        "cuDeviceGetAttribute");
  if (enabled == 0) {
    ssd::fail_with(
        ENOTSUP,
        "processes take turns on this GPU, and kernels of one cannot wait for those of "
        "another: start gofsd with --mps, or run nvidia-cuda-mps-control -d before both");
  }
}

}  // namespace

std::unique_ptr<kernels::SharedWarpMemory> share_gpu_memory(int device, uint64_t bytes) {
  const OwnCalls own;
  require_mps(device);
  const uint64_t whole = simt::align_up(bytes, granularity_of(device));
  const CUmemAllocationProp memory = shared_memory_of(device);
  CUmemGenericAllocationHandle handle = 0;
  check(driver().create(&handle, whole, &memory, 0), "cuMemCreate");
  int file = -1;
  const CUresult exported =
      driver().to_descriptor(&file, handle, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, 0);
  if (exported != CUDA_SUCCESS) {
    driver().release(handle);
    check(exported, "cuMemExportToShareableHandle");
  }
  auto shared = std::make_unique<SharedGpuMemory>(ssd::Descriptor(file), whole);
  shared->map(device, handle);
  return shared;
}

std::unique_ptr<kernels::SharedWarpMemory> map_gpu_memory(int device, ssd::Descriptor descriptor,
                                                          uint64_t bytes) {
  {
    const OwnCalls own;
    require_mps(device);
  }
  return import_gpu_memory(device, std::move(descriptor), bytes);
}

std::unique_ptr<kernels::SharedWarpMemory> import_gpu_memory(int device, ssd::Descriptor descriptor,
                                                             uint64_t bytes) {
  const OwnCalls own;
  const uint64_t whole = simt::align_up(bytes, granularity_of(device));
  CUmemGenericAllocationHandle handle = 0;
  void* const file = reinterpret_cast<void*>(static_cast<intptr_t>(descriptor.get()));
  check(driver().from_descriptor(&handle, file, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR),
        "cuMemImportFromShareableHandle");
  CUmemAllocationProp memory{};
  const CUresult known = driver().get_properties(&memory, handle);
  if (known != CUDA_SUCCESS || memory.location.type != CU_MEM_LOCATION_TYPE_DEVICE ||
      memory.location.id != device) {
    driver().release(handle);
    check(known, "cuMemGetAllocationPropertiesFromHandle");
    ssd::fail_with(EXDEV, "it is memory of another GPU");
  }
  auto shared = std::make_unique<SharedGpuMemory>(std::move(descriptor), whole);
  shared->map(device, handle);
  return shared;
}

}  // namespace gofs::gpu
