// SPDX-License-Identifier: Apache-2.0
//
// Memory that is a file: the BAR of another PCI device, by sysfs, or a file in memory (tmpfs,
// hugetlbfs) that another process maps too. Its contents are lost, so a file on a disk is refused.
#include <linux/magic.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/vfs.h>

#include <cerrno>
#include <filesystem>
#include <memory>
#include <string>

#include "ssd/mapped_memory.h"
#include "ssd/system_failure.h"

namespace gofs::ssd {

namespace {

bool is_memory(const struct statfs& system) {
  return system.f_type == SYSFS_MAGIC || system.f_type == TMPFS_MAGIC ||
         system.f_type == HUGETLBFS_MAGIC;
}

/// The size of what can be mapped of the file.
uint64_t checked_bytes(int file, const std::string& path) {
  struct stat status;
  struct statfs system;
  if (::fstat(file, &status) != 0 || ::fstatfs(file, &system) != 0) fail_with(errno, path);
  if (!S_ISREG(status.st_mode) || !is_memory(system)) {
    fail_with(EINVAL, path +
                          " cannot be memory for an SSD: it is neither the resource file of a PCI "
                          "device nor a file in tmpfs or hugetlbfs");
  }
  const auto bytes = static_cast<uint64_t>(status.st_size);
  if (bytes == 0 || bytes % kDmaPageBytes != 0) {
    fail_with(EINVAL, path + " cannot be memory for an SSD: it has " + std::to_string(bytes) +
                          " bytes, which is no multiple of 4096");
  }
  return bytes;
}

/// A device that a driver has uses its memory itself: what lies in a GPU's BAR is the GPU's.
void refuse_driven(const std::string& path) {
  std::error_code error;
  const auto driver = std::filesystem::path(path).parent_path() / "driver";
  const auto name = std::filesystem::read_symlink(driver, error).filename().string();
  if (!name.empty())
    fail_with(EBUSY, path + " belongs to a device that the driver " + name + " has");
}

/// A file of sysfs that maps a BAR so that a processor combines its stores: one may still hold an
/// entry back when another, which has seen that it is written, rings the doorbell.
void refuse_combining(const std::string& path) {
  if (path.ends_with("_wc"))
    fail_with(EINVAL, path + " combines stores: use " + path.substr(0, path.size() - 3));
}

/// By words, since a BAR need not take wider accesses. False if they do not stay zero.
bool clear(uint8_t* base, uint64_t bytes) {
  auto* const words = reinterpret_cast<volatile uint64_t*>(base);
  const uint64_t count = bytes / sizeof(uint64_t);
  for (uint64_t i = 0; i < count; ++i) words[i] = 0;
  return words[0] == 0 && words[count - 1] == 0;
}

}  // namespace

std::unique_ptr<MemorySource> make_file_memory(const std::string& path) {
  Descriptor file = Descriptor::open(path, O_RDWR);
  if (!file.is_open()) fail_with(errno, path);
  const uint64_t bytes = checked_bytes(file.get(), path);
  refuse_driven(path);
  refuse_combining(path);
  if (::flock(file.get(), LOCK_EX | LOCK_NB) != 0) fail_with(errno, path + ": in use");
  void* const base = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, file.get(), 0);
  if (base == MAP_FAILED) fail_with(errno, path + ": cannot be mapped");
  ::madvise(base, bytes, MADV_DONTFORK);
  auto memory = std::make_unique<MappedMemory>(
      base, bytes, std::to_string(bytes >> 10) + " KiB of " + path, std::move(file));
  if (!clear(memory->base(), bytes)) {
    const std::string folder = path.substr(0, path.rfind('/') + 1);
    fail_with(EIO, path +
                       " does not keep what is stored there; a PCI device may have to be enabled "
                       "first: echo 1 > " +
                       folder + "enable");
  }
  return memory;
}

}  // namespace gofs::ssd
