// SPDX-License-Identifier: Apache-2.0
#include "testing/fake_cuda.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cstdlib>
#include <cstring>
#include <functional>
#include <map>
#include <mutex>
#include <utility>
#include <vector>

struct CUctx_st {};

namespace {

// CUresult, CUpointer_attribute, CUmemorytype.
constexpr int kSuccess = 0;
constexpr int kInvalidValue = 1;
constexpr int kInvalidContext = 201;
constexpr int kContext = 1;
constexpr int kMemoryType = 2;
constexpr int kManaged = 8;
constexpr int kOrdinal = 9;

struct Allocation {
  uint64_t bytes;
  uint8_t* view;
  int descriptor;  // of the same memory, or -1
};

struct Gpu {
  std::mutex mutex;
  std::map<uintptr_t, Allocation> memory;  // by addresses
  std::map<CUstream_st*, std::vector<std::function<void()>>> under_way;
  uint64_t copies = 0;
};
Gpu& gpu() {
  static auto* const one = new Gpu;
  return *one;
}
CUctx_st the_context;
thread_local int contexts = 0;  // that this thread has pushed

/// Where the host finds what an address means; null: it is no memory of the GPU's.
uint8_t* view_of(uintptr_t address) {
  const auto after = gpu().memory.upper_bound(address);
  if (after == gpu().memory.begin()) return nullptr;
  const auto& [begin, allocation] = *std::prev(after);
  return address - begin < allocation.bytes ? allocation.view + (address - begin) : nullptr;
}
/// Addresses that nobody can touch, for memory that is found at `view`.
void* add(uint64_t bytes, void* view, int descriptor) {
  void* const address =
      ::mmap(nullptr, bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (address == MAP_FAILED || view == MAP_FAILED || view == nullptr) std::abort();
  const std::lock_guard lock(gpu().mutex);
  gpu().memory[reinterpret_cast<uintptr_t>(address)] = {bytes, static_cast<uint8_t*>(view),
                                                        descriptor};
  return address;
}
uint8_t* reached(uintptr_t address) {
  uint8_t* const view = view_of(address);
  return view != nullptr ? view : reinterpret_cast<uint8_t*>(address);
}

}  // namespace

extern "C" {

void* fake_gpu_allocate(uint64_t bytes) { return add(bytes, std::calloc(bytes, 1), -1); }

void* fake_gpu_map(uint64_t bytes) {
  const int file = ::memfd_create("memory of a GPU", MFD_CLOEXEC | MFD_ALLOW_SEALING);
  if (file < 0 || ::ftruncate(file, static_cast<off_t>(bytes)) != 0) std::abort();
  if (::fcntl(file, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL) != 0) std::abort();
  return add(bytes, ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0), file);
}

uint64_t fake_gpu_copies() {
  const std::lock_guard lock(gpu().mutex);
  return gpu().copies;
}

uint8_t* fake_gpu_look(void* memory) {
  const std::lock_guard lock(gpu().mutex);
  return view_of(reinterpret_cast<uintptr_t>(memory));
}

void fake_gpu_fill(CUstream_st* stream, void* memory, int byte, uint64_t bytes) {
  const std::lock_guard lock(gpu().mutex);
  uint8_t* const view = view_of(reinterpret_cast<uintptr_t>(memory));
  gpu().under_way[stream].emplace_back([=] { std::memset(view, byte, bytes); });
}

CUstream_st* fake_gpu_captured_stream() {
  return reinterpret_cast<CUstream_st*>(uintptr_t{0x1000});
}

int cuPointerGetAttribute(void* value, int attribute, uintptr_t address) {
  const std::lock_guard lock(gpu().mutex);
  if (view_of(address) == nullptr) return kInvalidValue;
  const auto answer = [&](auto one) { std::memcpy(value, &one, sizeof(one)); };
  switch (attribute) {
    case kContext:
      return kInvalidValue;  // as of memory that was mapped piece by piece
    case kMemoryType:
      answer(2u);
      return kSuccess;
    case kManaged:
      answer(0u);
      return kSuccess;
    case kOrdinal:
      answer(0);
      return kSuccess;
    default:
      return kInvalidValue;
  }
}

int cuDevicePrimaryCtxRetain(CUctx_st** context, int) {
  *context = &the_context;
  return kSuccess;
}
int cuDevicePrimaryCtxRelease_v2(int) { return kSuccess; }

int cuCtxPushCurrent_v2(CUctx_st* context) {
  if (context != &the_context) return kInvalidContext;
  ++contexts;
  return kSuccess;
}
int cuCtxPopCurrent_v2(CUctx_st**) {
  --contexts;
  return kSuccess;
}

int cuMemcpyAsync(uintptr_t to, uintptr_t from, size_t bytes, CUstream_st* stream) {
  if (contexts == 0) return kInvalidContext;
  const std::lock_guard lock(gpu().mutex);
  ++gpu().copies;
  gpu().under_way[stream].emplace_back(
      [=, target = reached(to), source = reached(from)] { std::memcpy(target, source, bytes); });
  return kSuccess;
}

int cuStreamSynchronize(CUstream_st* stream) {
  if (contexts == 0) return kInvalidContext;
  const std::lock_guard lock(gpu().mutex);
  for (const auto& one : std::exchange(gpu().under_way[stream], {})) one();
  return kSuccess;
}

int cuMemGetAddressRange_v2(uintptr_t* begin, size_t* bytes, uintptr_t address) {
  if (contexts == 0) return kInvalidContext;
  const std::lock_guard lock(gpu().mutex);
  if (view_of(address) == nullptr) return kInvalidValue;
  const auto& found = *std::prev(gpu().memory.upper_bound(address));
  *begin = found.first;
  *bytes = found.second.bytes;
  return kSuccess;
}

/// Nothing opens it.
int cuIpcGetMemHandle(void* handle, uintptr_t) {
  std::memset(handle, 'h', 64);
  return kSuccess;
}

int cuMemRetainAllocationHandle(unsigned long long* allocation, void* address) {
  const std::lock_guard lock(gpu().mutex);
  const auto found = gpu().memory.find(reinterpret_cast<uintptr_t>(address));
  if (found == gpu().memory.end() || found->second.descriptor < 0) return kInvalidValue;
  *allocation = static_cast<unsigned long long>(found->second.descriptor);
  return kSuccess;
}
int cuMemExportToShareableHandle(void* descriptor, unsigned long long allocation, int,
                                 unsigned long long) {
  const int copy = ::fcntl(static_cast<int>(allocation), F_DUPFD_CLOEXEC, 0);
  std::memcpy(descriptor, &copy, sizeof(copy));
  return copy >= 0 ? kSuccess : kInvalidValue;
}
int cuMemRelease(unsigned long long) { return kSuccess; }

int cuEventCreate(void** event, unsigned int) {
  *event = &the_context;
  return kSuccess;
}
int cuEventRecord(void*, CUstream_st*) { return contexts == 0 ? kInvalidContext : kSuccess; }
int cuEventDestroy_v2(void*) { return kSuccess; }

int cuStreamIsCapturing(CUstream_st* stream, int* status) {
  if (contexts == 0) return kInvalidContext;
  *status = stream == fake_gpu_captured_stream() ? 1 : 0;
  return kSuccess;
}
}
