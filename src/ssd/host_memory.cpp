// SPDX-License-Identifier: Apache-2.0
//
// Memory of the host for a controller: of the process's own, which CUDA and VFIO both take (they
// refuse what cudaHostAlloc gave). Huge pages save entries in the IOMMU's tables and its TLB, 1
// instead of 512 for 2 MiB, and most of the time that it takes to fill and to pin 66 MiB. It is the
// controller's transport that pins the pages; locking them here as well would count them twice
// against RLIMIT_MEMLOCK.
#include <linux/mman.h>
#include <sys/mman.h>

#include <cerrno>
#include <memory>
#include <string>

#include "simt/platform.h"
#include "ssd/fill_pages.h"
#include "ssd/mapped_memory.h"
#include "ssd/system_failure.h"

namespace gofs::ssd {

namespace {

constexpr uint64_t kHugePageBytes = uint64_t{2} << 20;

/// Or MAP_FAILED. It is no file of ours, whose size the limit of files' sizes (ulimit -f) would be
/// asked for.
void* map(uint64_t bytes, int kind) {
  return ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | kind, -1, 0);
}

/// Ordinary pages at a multiple of a huge one's size, or MAP_FAILED.
void* map_aligned(uint64_t bytes) {
  void* const whole = map(bytes + kHugePageBytes, 0);
  if (whole == MAP_FAILED) return whole;
  auto* const begin = static_cast<uint8_t*>(whole);
  const auto address = reinterpret_cast<uint64_t>(whole);
  const uint64_t before = simt::align_up(address, kHugePageBytes) - address;
  if (before != 0) ::munmap(begin, before);
  ::munmap(begin + before + bytes, kHugePageBytes - before);
  return begin + before;
}

/// Takes a mapping over. Null with errno where there is none, or no memory for it.
std::unique_ptr<MemorySource> take(void* base, uint64_t bytes, const std::string& what) {
  if (base == MAP_FAILED) return nullptr;
  const std::string size = std::to_string(bytes >> 20) + " MiB of host memory in ";
  auto memory = std::make_unique<MappedMemory>(base, bytes, size + what, Descriptor());
  // Ordinary pages are huge ones all the same where Linux has some, and is to use them.
  ::madvise(base, bytes, MADV_HUGEPAGE);
  // A child of this process has no business with what a controller works on: of a page that both
  // had, whoever writes first gets a copy, and the controller would go on with the other's.
  if (::madvise(base, bytes, MADV_DONTFORK) == 0 && fill_pages(base, bytes)) return memory;
  const int error = errno;
  memory.reset();
  errno = error;
  return nullptr;
}

}  // namespace

std::unique_ptr<MemorySource> make_host_memory(uint64_t bytes) {
  const uint64_t whole = simt::align_up(bytes, kHugePageBytes);
  if (whole == 0 || whole < bytes || whole + kHugePageBytes < whole) {
    fail_with(EINVAL, "memory for an SSD: " + std::to_string(bytes) + " bytes");
  }
  auto memory = take(map(whole, MAP_HUGETLB | MAP_HUGE_2MB), whole, "huge pages");
  if (memory == nullptr) memory = take(map_aligned(whole), whole, "ordinary pages");
  if (memory == nullptr) {
    const int error = errno;
    fail_with(error, std::to_string(whole >> 20) + " MiB of host memory for an SSD");
  }
  return memory;
}

}  // namespace gofs::ssd
