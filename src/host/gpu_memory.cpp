// SPDX-License-Identifier: Apache-2.0
#include "host/gpu_memory.h"

#include <dlfcn.h>

#include <atomic>
#include <optional>
#include <utility>

#include "gofs/gpu_memory.hpp"
#include "simt/clock.h"

namespace gofs {

bool is_gpu_memory(const void* memory) { return host::GpuMemory::at(memory).has_value(); }

namespace host {

namespace {

/// Functions of libcuda, with the numbers that its interface has for types (CUresult,
/// CUpointer_attribute, CUmemorytype, CUstreamCaptureStatus). They do not change.
struct Driver {
  int (*pointer_attribute)(void* value, int attribute, uintptr_t pointer) = nullptr;
  int (*retain_context)(CUctx_st**, int device) = nullptr;
  int (*release_context)(int device) = nullptr;
  int (*push_context)(CUctx_st*) = nullptr;
  int (*pop_context)(CUctx_st**) = nullptr;
  int (*copy)(uintptr_t to, uintptr_t from, size_t bytes, CUstream_st*) = nullptr;
  int (*synchronize)(CUstream_st*) = nullptr;
  int (*is_capturing)(CUstream_st*, int* status) = nullptr;
  bool makes_events = false;  // by the following
  int (*create_event)(void** event, unsigned int flags) = nullptr;
  int (*record_event)(void* event, CUstream_st*) = nullptr;
  int (*destroy_event)(void* event) = nullptr;
  bool makes_names = false;  // by the following
  int (*address_range)(uintptr_t* begin, size_t* bytes, uintptr_t address) = nullptr;
  int (*ipc_handle)(void* handle, uintptr_t begin) = nullptr;
  int (*retain_allocation)(unsigned long long* allocation, void* address) = nullptr;
  int (*to_descriptor)(void* descriptor, unsigned long long allocation, int type,
                       unsigned long long flags) = nullptr;
  int (*release_allocation)(unsigned long long allocation) = nullptr;
};
constexpr int kContextOfPointer = 1;
constexpr int kTypeOfMemory = 2;
constexpr int kIsManaged = 8;
constexpr int kDeviceOfPointer = 9;
constexpr unsigned int kDeviceMemory = 2;
constexpr int kNoCapture = 0;
constexpr int kPosixDescriptor = 1;
constexpr size_t kIpcHandleBytes = 64;

template <typename Function>
bool find(void* library, const char* name, Function& function) {
  function = reinterpret_cast<Function>(::dlsym(library, name));
  return function != nullptr;
}

std::optional<Driver> functions_of(void* library) {
  Driver driver{};
  const bool is_whole = find(library, "cuPointerGetAttribute", driver.pointer_attribute) &&
                        find(library, "cuDevicePrimaryCtxRetain", driver.retain_context) &&
                        find(library, "cuDevicePrimaryCtxRelease_v2", driver.release_context) &&
                        find(library, "cuCtxPushCurrent_v2", driver.push_context) &&
                        find(library, "cuCtxPopCurrent_v2", driver.pop_context) &&
                        find(library, "cuMemcpyAsync", driver.copy) &&
                        find(library, "cuStreamSynchronize", driver.synchronize) &&
                        find(library, "cuStreamIsCapturing", driver.is_capturing);
  driver.makes_events = find(library, "cuEventCreate", driver.create_event) &&
                        find(library, "cuEventRecord", driver.record_event) &&
                        find(library, "cuEventDestroy_v2", driver.destroy_event);
  driver.makes_names = find(library, "cuMemGetAddressRange_v2", driver.address_range) &&
                       find(library, "cuIpcGetMemHandle", driver.ipc_handle) &&
                       find(library, "cuMemRetainAllocationHandle", driver.retain_allocation) &&
                       find(library, "cuMemExportToShareableHandle", driver.to_descriptor) &&
                       find(library, "cuMemRelease", driver.release_allocation);
  if (!is_whole) return std::nullopt;
  return driver;
}

/// The driver, if the program has loaded it.
const Driver* load_driver() {
  void* const library = ::dlopen("libcuda.so.1", RTLD_NOW | RTLD_NOLOAD);
  if (library == nullptr) return nullptr;
  static const std::optional<Driver> driver = functions_of(library);
  return driver ? &*driver : nullptr;
}

const Driver* driver() {
  constexpr uint64_t kBetweenLooksNs = 10'000'000;
  static std::atomic<const Driver*> found{nullptr};
  static std::atomic<uint64_t> next_look_ns{0};
  const Driver* const known = found.load(std::memory_order_acquire);
  if (known != nullptr) return known;
  const uint64_t now = simt::now_ns();
  if (now < next_look_ns.load(std::memory_order_relaxed)) return nullptr;
  next_look_ns.store(now + kBetweenLooksNs, std::memory_order_relaxed);
  found.store(load_driver(), std::memory_order_release);
  return found.load(std::memory_order_relaxed);
}

/// The context that memory of a GPU belongs to. Of memory that was mapped piece by piece the driver
/// names none: then it is the one that the program's CUDA runtime has of that GPU, which lasts.
CUctx_st* context_of(const Driver& driver, uintptr_t address) {
  CUctx_st* context = nullptr;
  if (driver.pointer_attribute(static_cast<void*>(&context), kContextOfPointer, address) == 0 &&
      context != nullptr) {
    return context;
  }
  int device = 0;
  context = nullptr;
  if (driver.pointer_attribute(&device, kDeviceOfPointer, address) == 0 &&
      driver.retain_context(&context, device) == 0) {
    (void)driver.release_context(device);
  }
  return context;
}

/// Makes a call of the driver in a GPU's context. Whether it was made.
template <typename Call>
bool in_context(CUctx_st* context, Call call) {
  const Driver& driver = *host::driver();
  if (driver.push_context(context) != 0) return false;
  const bool is_made = call(driver) == 0;
  (void)driver.pop_context(&context);
  return is_made;
}

/// Puts something into the default stream, which then comes after what is in other streams.
void enter_default_stream(const Driver& driver) {
  constexpr unsigned int kDisableTiming = 2;
  void* event = nullptr;
  if (!driver.makes_events || driver.create_event(&event, kDisableTiming) != 0) return;
  (void)driver.record_event(event, nullptr);
  (void)driver.destroy_event(event);
}

/// Of memory that was mapped, where it was made to be shared; else none is open.
ssd::Descriptor descriptor_of(const Driver& driver, uintptr_t begin) {
  unsigned long long allocation = 0;
  if (driver.retain_allocation(&allocation, reinterpret_cast<void*>(begin)) != 0) return {};
  int descriptor = -1;
  const int error = driver.to_descriptor(&descriptor, allocation, kPosixDescriptor, 0);
  (void)driver.release_allocation(allocation);
  return error == 0 ? ssd::Descriptor(descriptor) : ssd::Descriptor();
}

}  // namespace

std::optional<GpuMemory> GpuMemory::at(const void* memory) {
  const Driver* const driver = host::driver();
  if (driver == nullptr) return std::nullopt;
  const auto address = reinterpret_cast<uintptr_t>(memory);
  unsigned int type = 0;
  unsigned int is_managed = 0;
  // It says no of all that it has not made, and before cuInit().
  if (driver->pointer_attribute(&type, kTypeOfMemory, address) != 0 || type != kDeviceMemory) {
    return std::nullopt;
  }
  if (driver->pointer_attribute(&is_managed, kIsManaged, address) == 0 && is_managed != 0) {
    return std::nullopt;
  }
  return GpuMemory(context_of(*driver, address));
}

bool GpuMemory::copy(void* to, const void* from, uint64_t bytes, CUstream_st* stream) const {
  return in_context(context_, [&](const Driver& driver) {
    return driver.copy(reinterpret_cast<uintptr_t>(to), reinterpret_cast<uintptr_t>(from), bytes,
                       stream);
  });
}

bool GpuMemory::settle(CUstream_st* stream) const {
  return in_context(context_, [&](const Driver& driver) {
    if (stream == nullptr) enter_default_stream(driver);
    return driver.synchronize(stream);
  });
}

bool GpuMemory::is_captured(CUstream_st* stream) const {
  int status = kNoCapture;
  const bool is_known = in_context(
      context_, [&](const Driver& driver) { return driver.is_capturing(stream, &status); });
  return is_known && status != kNoCapture;
}

std::optional<NamedGpuMemory> GpuMemory::name(const void* memory, uint64_t bytes) const {
  if (!driver()->makes_names) return std::nullopt;
  NamedGpuMemory named;
  std::string handle(kIpcHandleBytes, '\0');
  const auto address = reinterpret_cast<uintptr_t>(memory);
  const bool is_named = in_context(context_, [&](const Driver& driver) {
    uintptr_t begin = 0;
    size_t whole = 0;
    const int error = driver.address_range(&begin, &whole, address);
    if (error != 0) return error;
    named.whole_bytes = whole;
    named.offset = address - begin;
    named.descriptor = descriptor_of(driver, begin);
    if (named.descriptor.is_open()) return 0;
    return driver.ipc_handle(handle.data(), begin);
  });
  if (!named.descriptor.is_open()) named.handle = std::move(handle);
  if (!is_named || bytes > named.whole_bytes - named.offset) return std::nullopt;
  return named;
}

}  // namespace host

}  // namespace gofs
