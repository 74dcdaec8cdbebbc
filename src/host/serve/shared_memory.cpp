// SPDX-License-Identifier: Apache-2.0
#include "host/serve/shared_memory.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include <cerrno>
#include <utility>

#include "ssd/system_failure.h"

namespace gofs::host {

namespace {

constexpr int kSeals = F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL;

}  // namespace

SharedMemory::SharedMemory(ssd::Descriptor descriptor, uint64_t bytes)
    : descriptor_(std::move(descriptor)), bytes_(bytes) {
  void* const data =
      ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, descriptor_.get(), 0);
  if (data == MAP_FAILED) ssd::fail_with(errno, "shared memory");
  data_ = static_cast<uint8_t*>(data);
}

SharedMemory SharedMemory::make(const char* name, uint64_t bytes) {
  ssd::Descriptor descriptor(::memfd_create(name, MFD_CLOEXEC | MFD_ALLOW_SEALING));
  if (!descriptor.is_open()) ssd::fail_with(errno, "memfd_create");
  if (::ftruncate(descriptor.get(), static_cast<off_t>(bytes)) != 0 ||
      ::fcntl(descriptor.get(), F_ADD_SEALS, kSeals) != 0) {
    ssd::fail_with(errno, "shared memory");
  }
  return SharedMemory(std::move(descriptor), bytes);
}

SharedMemory SharedMemory::map(ssd::Descriptor descriptor) {
  const int seals = ::fcntl(descriptor.get(), F_GET_SEALS);
  if (seals < 0 || (seals & F_SEAL_SHRINK) == 0) {
    ssd::fail_with(EINVAL, "shared memory whose size could change");
  }
  struct stat status {};
  if (::fstat(descriptor.get(), &status) != 0) ssd::fail_with(errno, "shared memory");
  if (status.st_size <= 0) ssd::fail_with(EINVAL, "shared memory without any bytes");
  return SharedMemory(std::move(descriptor), static_cast<uint64_t>(status.st_size));
}

SharedMemory::SharedMemory(SharedMemory&& other) noexcept
    : descriptor_(std::move(other.descriptor_)),
      data_(std::exchange(other.data_, nullptr)),
      bytes_(other.bytes_) {}

SharedMemory& SharedMemory::operator=(SharedMemory&& other) noexcept {
  std::swap(descriptor_, other.descriptor_);
  std::swap(data_, other.data_);
  std::swap(bytes_, other.bytes_);
  return *this;
}

SharedMemory::~SharedMemory() {
  if (data_ != nullptr) ::munmap(data_, bytes_);
}

}  // namespace gofs::host
