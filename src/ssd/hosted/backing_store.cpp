// SPDX-License-Identifier: Apache-2.0
#include "ssd/hosted/backing_store.h"

#include <fcntl.h>
#include <linux/fs.h>
#include <linux/magic.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/vfs.h>
#include <unistd.h>

#include <bit>
#include <cerrno>
#include <cstdlib>
#include <fstream>
#include <memory>
#include <system_error>

#include "ssd/file_back_end.h"
#include "ssd/system_failure.h"

namespace gofs::ssd {

namespace {

/// What Linux says about a block device in /sys/block/NAME/queue; of a partition, about its disk.
std::string queue_attribute(dev_t device, const char* name) {
  const std::string folder =
      "/sys/dev/block/" + std::to_string(major(device)) + ":" + std::to_string(minor(device));
  for (const char* const queue : {"/queue/", "/../queue/"}) {
    std::ifstream file(folder + queue + name);
    std::string line;
    if (std::getline(file, line)) return line;
  }
  return {};
}

bool is_lba_size(uint32_t bytes) {
  return bytes >= 512 && bytes <= kBlockBytes && std::has_single_bit(bytes);
}

/// Whether `bytes` can be read at offset `bytes` (or at 0, of a file that ends before) by O_DIRECT.
bool can_read(int descriptor, uint64_t file_bytes, uint32_t bytes) {
  struct Free {
    void operator()(void* memory) const { std::free(memory); }
  };
  const std::unique_ptr<void, Free> page(std::aligned_alloc(kBlockBytes, kBlockBytes));
  if (page == nullptr) throw std::bad_alloc();
  const off_t offset = file_bytes >= 2 * uint64_t{bytes} ? static_cast<off_t>(bytes) : 0;
  ssize_t got = 0;
  do {
    got = ::pread(descriptor, page.get(), bytes, offset);
  } while (got < 0 && errno == EINTR);
  return got == static_cast<ssize_t>(bytes) || (got < 0 && errno != EINVAL);
}

}  // namespace

BackingStore::BackingStore(const std::string& path, FileAccess access)
    : path_(path), file_(path, access) {
  traits_.bytes = file_.bytes();
  traits_.is_device = file_.is_device();
  traits_.read_only = access == FileAccess::kReadOnly;
  if (!traits_.is_device) limit_ = file_size_limit();
  if (traits_.bytes < kBlockBytes) fail_with(EINVAL, path + ": the image is empty");
  struct stat status {};
  if (::fstat(file_.get(), &status) != 0) fail_with(errno, path);
  if (traits_.is_device) {
    int sector = 0;
    if (::ioctl(file_.get(), BLKSSZGET, &sector) != 0) fail_with(errno, path);
    if (!is_lba_size(static_cast<uint32_t>(sector))) {
      fail_with(EOPNOTSUPP, path + ": it has sectors of " + std::to_string(sector) + " bytes");
    }
    traits_.lba_bytes = static_cast<uint32_t>(sector);
    traits_.volatile_cache = queue_attribute(status.st_rdev, "write_cache") != "write through";
    traits_.discards = queue_attribute(status.st_rdev, "discard_max_bytes") != "0";
  }
  struct statfs system {};
  if (::fstatfs(file_.get(), &system) != 0) fail_with(errno, path);
  traits_.in_memory = !traits_.is_device && system.f_type == TMPFS_MAGIC;
  open_direct();
  if (!traits_.direct) traits_.volatile_cache = true;  // Linux's page cache
}

/// A file that was opened with O_NONBLOCK would answer EAGAIN where it has to wait.
void BackingStore::open_direct() {
  const int flags = ::fcntl(file_.get(), F_GETFL);
  if (flags < 0) fail_with(errno, path_);
  const int waiting = flags & ~O_NONBLOCK;
  if (::fcntl(file_.get(), F_SETFL, waiting | O_DIRECT) == 0) {
    uint32_t bytes = traits_.is_device ? traits_.lba_bytes : 512;
    while (bytes <= kBlockBytes && !can_read(file_.get(), traits_.bytes, bytes)) bytes *= 2;
    if (bytes <= kBlockBytes) {
      traits_.direct = true;
      traits_.lba_bytes = bytes;
      traits_.memory_alignment = bytes;
      return;
    }
    why_buffered_ = "reads with O_DIRECT are refused";
  } else {
    why_buffered_ = "O_DIRECT: " + std::generic_category().message(errno);
  }
  if (::fcntl(file_.get(), F_SETFL, waiting) != 0) fail_with(errno, path_);
}

std::string BackingStore::access_words() const {
  return traits_.direct ? "O_DIRECT" : "buffered (" + why_buffered_ + ")";
}

int BackingStore::sync() {
  look_for_cut();
  if (const int error = write_refusal(); error != 0) return error;
  int result = 0;
  do {
    result = ::fdatasync(file_.get());
  } while (result != 0 && errno == EINTR);
  if (result == 0) return 0;
  const int error = -errno;
  (void)note_failure(Asked::kSync, error);
  return error;
}

format::nvme::Status BackingStore::note_failure(Asked asked, int error) {
  using namespace format::nvme;
  if (has_gone(error)) {
    error = file_.was_cut() ? kImageWasCut : -ENODEV;
    gone_ = true;
  }
  last_error_ = error;
  const bool full = error == -ENOSPC || error == -EDQUOT;
  // Linux reports a failed sync once, and marks the pages clean: to ask again is no help. What a
  // full disk or a limit has refused was not written at all.
  const bool refused = full || error == -EFBIG || error == -EINVAL;
  const bool loses = asked == Asked::kSync || (asked == Asked::kDurableWrite && !refused);
  if (error == kImageWasCut || is_gone() || loses) lost_ = error;
  if (asked == Asked::kRead) return kUnrecoveredReadError;
  return full ? Status{kCapacityExceeded | kDoNotRetry} : Status{kWriteFault};
}

/// One that was pulled out is as good as empty: reads find its end, writes no room. So is one whose
/// own storage, a file, was cut.
bool BackingStore::has_gone(int error) const {
  if (error == -ENODEV || error == -ENXIO || error == -ESHUTDOWN) return true;
  if (!traits_.is_device) return false;
  if (error != kImageWasCut && error != -ENOSPC && error != -EIO) return false;
  if (file_.was_cut()) return true;
  uint64_t bytes = 0;
  return ::ioctl(file_.get(), BLKGETSIZE64, &bytes) != 0 || bytes < traits_.bytes;
}

void BackingStore::look_for_cut() {
  if (file_.was_cut()) lost_ = last_error_ = kImageWasCut;
}

std::string BackingStore::problem() const { return file_error_words(last_error_.load()); }

}  // namespace gofs::ssd
