// SPDX-License-Identifier: Apache-2.0
#include "guest_ram.h"

#include <fcntl.h>
#include <sys/mman.h>

#include <cerrno>
#include <cstring>

#include "simt/platform.h"
#include "ssd/descriptor.h"
#include "ssd/system_failure.h"

namespace gofs::ssd {

namespace {

constexpr uint64_t kMebibyte = uint64_t{1} << 20;

}  // namespace

GuestRam::GuestRam(const std::string& path, uint64_t bytes) : bytes_(bytes) {
  if (bytes <= kReservedBytes || bytes > kBytesMax || bytes % kMebibyte != 0) {
    fail_with(EINVAL, "a machine's memory has 2 MiB to 2 GiB, in whole MiB, and not " +
                          std::to_string(bytes) + " bytes");
  }
  const Descriptor file(::open(path.c_str(), O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600));
  if (!file.is_open()) fail_with(errno, path);
  // Memory that turns out to be missing when it is used is SIGBUS, here or in QEMU.
  const int error = ::posix_fallocate(file.get(), 0, static_cast<off_t>(bytes));
  if (error != 0) {
    fail_with(error, path + ": no room for the machine's memory of " +
                         std::to_string(bytes / kMebibyte) + " MiB");
  }
  void* const mapped = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, file.get(), 0);
  if (mapped == MAP_FAILED) fail_with(errno, path + ": cannot map the machine's memory");
  base_ = static_cast<uint8_t*>(mapped);
}

GuestRam::~GuestRam() { ::munmap(base_, bytes_); }

std::optional<uint64_t> GuestRam::guest_address(const void* memory, uint64_t bytes) const {
  const auto first = reinterpret_cast<uintptr_t>(memory);
  const auto base = reinterpret_cast<uintptr_t>(base_);
  if (first < base + kReservedBytes || first - base > bytes_) return std::nullopt;
  const uint64_t offset = first - base;
  if (bytes > bytes_ - offset) return std::nullopt;
  return offset;
}

uint8_t* GuestRam::take(uint64_t bytes) {
  if (bytes == 0 || bytes > bytes_) {
    fail_with(EINVAL, "a range of " + std::to_string(bytes) + " bytes of a machine's memory");
  }
  bytes = simt::align_up(bytes, kPageBytes);
  uint64_t offset = kReservedBytes;
  {
    const std::lock_guard lock(mutex_);
    for (const auto& [begin, end] : taken_) {
      if (begin - offset >= bytes) break;
      offset = end;
    }
    if (bytes > bytes_ - offset) {
      fail_with(ENOMEM, "the machine's memory of " + std::to_string(bytes_ / kMebibyte) +
                            " MiB has no range of " + std::to_string(bytes) + " bytes left");
    }
    taken_.emplace(offset, offset + bytes);
  }
  std::memset(base_ + offset, 0, bytes);
  return base_ + offset;
}

void GuestRam::release(uint8_t* range) {
  const std::lock_guard lock(mutex_);
  const size_t erased = taken_.erase(static_cast<uint64_t>(range - base_));
  GOFS_ASSERT(erased == 1);
}

}  // namespace gofs::ssd
