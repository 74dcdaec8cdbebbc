// SPDX-License-Identifier: Apache-2.0
//
// Memory of the host for a controller: shared memory, which CUDA and VFIO both take (they refuse
// what cudaHostAlloc gave). Huge pages save entries in the IOMMU's tables and its TLB: 1 instead of
// 512 for 2 MiB. It is the controller's transport that pins the pages; locking them here as well
// would count them twice against RLIMIT_MEMLOCK.
#include <linux/mman.h>
#include <sys/mman.h>

#include <cerrno>
#include <memory>
#include <string>

#include "simt/platform.h"
#include "ssd/mapped_memory.h"
#include "ssd/system_failure.h"

namespace gofs::ssd {

namespace {

constexpr uint64_t kHugePageBytes = uint64_t{2} << 20;
constexpr int kPopulateWrite = 23;  // MADV_POPULATE_WRITE, which older C libraries lack

/// Has every page in its place now. False with errno where there is no memory for one: with huge
/// pages the first access would end the process with SIGBUS.
bool fill(void* base, uint64_t bytes) {
  if (::madvise(base, bytes, kPopulateWrite) == 0) return true;
  if (errno != EINVAL) return false;
  // Linux before 5.14.
  auto* const memory = static_cast<volatile uint8_t*>(base);
  for (uint64_t offset = 0; offset < bytes; offset += kDmaPageBytes) memory[offset] = 0;
  return true;
}

/// Null with errno where that kind of memory cannot be had. It is no file of ours, whose size the
/// limit of files' sizes (ulimit -f) would be asked for.
std::unique_ptr<MemorySource> try_memory(uint64_t bytes, int kind, const std::string& what) {
  void* const base =
      ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS | kind, -1, 0);
  if (base == MAP_FAILED) return nullptr;
  const std::string size = std::to_string(bytes >> 20) + " MiB of host memory in ";
  auto memory = std::make_unique<MappedMemory>(base, bytes, size + what, Descriptor());
  // A child of this process has no business with what a controller works on.
  ::madvise(base, bytes, MADV_DONTFORK);
  const bool filled = fill(base, bytes);
  const int error = errno;
  if (filled) return memory;
  memory.reset();
  errno = error;
  return nullptr;
}

}  // namespace

std::unique_ptr<MemorySource> make_host_memory(uint64_t bytes) {
  const uint64_t whole = simt::align_up(bytes, kHugePageBytes);
  if (whole == 0 || whole < bytes) {
    fail_with(EINVAL, "memory for an SSD: " + std::to_string(bytes) + " bytes");
  }
  auto memory = try_memory(whole, MAP_HUGETLB | MAP_HUGE_2MB, "huge pages");
  if (memory == nullptr) memory = try_memory(whole, 0, "ordinary pages");
  if (memory == nullptr) {
    const int error = errno;
    fail_with(error, std::to_string(whole >> 20) + " MiB of host memory for an SSD");
  }
  return memory;
}

}  // namespace gofs::ssd
