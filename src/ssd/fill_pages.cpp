// SPDX-License-Identifier: Apache-2.0
#include "ssd/fill_pages.h"

#include <sys/mman.h>

#include <cerrno>

namespace gofs::ssd {

namespace {

constexpr int kPopulateWrite = 23;  // MADV_POPULATE_WRITE, which older C libraries lack
constexpr uint64_t kPageBytes = 4096;

}  // namespace

bool fill_pages(void* base, uint64_t bytes) {
  if (::madvise(base, bytes, kPopulateWrite) == 0) return true;
  if (errno != EINVAL) return false;
  // Linux before 5.14.
  auto* const memory = static_cast<volatile uint8_t*>(base);
  for (uint64_t offset = 0; offset < bytes; offset += kPageBytes) memory[offset] = 0;
  return true;
}

}  // namespace gofs::ssd
