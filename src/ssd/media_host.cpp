// SPDX-License-Identifier: Apache-2.0
#include "ssd/media_host.h"

#include <fcntl.h>
#include <linux/fs.h>
#include <sys/file.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <stdexcept>

#include "ssd/descriptor.h"
#include "ssd/system_failure.h"

namespace gofs::ssd {

namespace {

constexpr auto kMedia = simt::MemoryPart::kMedia;

struct FileKind {
  bool regular;
  uint64_t bytes;
};

FileKind kind_of(int descriptor, const std::string& path) {
  struct stat status;
  if (::fstat(descriptor, &status) != 0) fail_with(errno, path);
  if (S_ISREG(status.st_mode)) return {true, static_cast<uint64_t>(status.st_size)};
  if (S_ISDIR(status.st_mode)) fail_with(EISDIR, path);
  if (!S_ISBLK(status.st_mode))
    fail_with(ENODEV, path + ": neither a regular file nor a block device");
  uint64_t bytes = 0;
  if (::ioctl(descriptor, BLKGETSIZE64, &bytes) != 0) fail_with(errno, path);
  return {false, bytes};
}

}  // namespace

MemoryMedia::MemoryMedia(simt::MemorySpace& memory, uint64_t bytes)
    : memory_(memory), base_(memory.allocate_array<uint8_t>(bytes, kMedia)), bytes_(bytes) {}

MemoryMedia::~MemoryMedia() { memory_.release(base_); }

Media MemoryMedia::media() const {
  Media media;
  media.base = base_;
  media.bytes = bytes_;
  return media;
}

void claim_image(int descriptor, const std::string& path, FileAccess access) {
  const int kind = access == FileAccess::kReadWrite ? LOCK_EX : LOCK_SH;
  if (::flock(descriptor, kind | LOCK_NB) == 0) return;
  if (errno != EWOULDBLOCK) fail_with(errno, path);
  fail_with(EBUSY, path + (kind == LOCK_EX ? ": in use" : ": mounted for writing"));
}

FileMedia::FileMedia(const std::string& path, FileAccess access) : access_(access) {
  const bool writes = access == FileAccess::kReadWrite;
  Descriptor file = Descriptor::open(path, writes ? O_RDWR : O_RDONLY);
  if (!file.is_open()) fail_with(errno, path);
  bytes_ = kind_of(file.get(), path).bytes;
  claim_image(file.get(), path, access);
  if (bytes_ == 0) fail_with(EINVAL, path + ": the image is empty");
  base_ = ::mmap(nullptr, bytes_, writes ? PROT_READ | PROT_WRITE : PROT_READ, MAP_SHARED,
                 file.get(), 0);
  if (base_ == MAP_FAILED) fail_with(errno, path + ": cannot map the image");
  descriptor_ = file.release();
}

FileMedia::~FileMedia() {
  ::munmap(base_, bytes_);
  ::close(descriptor_);
}

Media FileMedia::media() {
  Media media;
  media.base = static_cast<uint8_t*>(base_);
  media.bytes = bytes_;
  media.read_only = access_ == FileAccess::kReadOnly;
  if (!media.read_only) {
    media.sync = sync_function;
    media.sync_context = this;
  }
  return media;
}

int FileMedia::sync() {
  // Linux writes back pages dirtied through a shared mapping as well. It reports a failure once,
  // and marks the pages clean: whoever asks again would be told that all is well.
  if (sync_error_.load() == 0 && ::fdatasync(descriptor_) != 0) sync_error_.store(-errno);
  return sync_error_.load();
}

int FileMedia::sync_function(void* self) { return static_cast<FileMedia*>(self)->sync(); }

SparseMedia::SparseMedia(simt::MemorySpace& memory, uint64_t bytes)
    : memory_(memory), bytes_(bytes), chunks_(simt::divide_up(bytes, kChunkBytes)) {}

SparseMedia::~SparseMedia() {
  if (table_at_ != nullptr) memory_.release(table_at_);
  if (pool_at_ != nullptr) memory_.release(pool_at_);
  if (entries_at_ != nullptr) memory_.release(entries_at_);
}

void SparseMedia::set_chunk(uint64_t index, void* chunk) {
  if (table_at_ != nullptr) throw std::logic_error("the chunk table is in use");
  chunks_.at(index) = reinterpret_cast<uint64_t>(chunk);
}

void SparseMedia::add_spare(void* chunk) {
  if (table_at_ != nullptr) throw std::logic_error("the chunk table is in use");
  // Each points to the one added before it; the last added is taken first.
  spares_.push_back({reinterpret_cast<uint64_t>(chunk), static_cast<uint32_t>(spares_.size()), 0});
}

Media SparseMedia::media(bool read_only) {
  if (table_at_ == nullptr) {
    pool_at_ = memory_.allocate_array<ChunkPool>(1, kMedia);
    entries_at_ = memory_.allocate_array<ChunkPool::Entry>(spares_.size(), kMedia);
    if (!spares_.empty()) {
      memory_.write(entries_at_, spares_.data(), spares_.size() * sizeof(ChunkPool::Entry));
    }
    memory_.write_object(pool_at_, ChunkPool{spares_.size(), entries_at_});
    table_at_ = memory_.allocate_array<uint64_t>(chunks_.size(), kMedia);
    memory_.write(table_at_, chunks_.data(), chunks_.size() * sizeof(uint64_t));
  }
  Media media;
  media.chunks = table_at_;
  media.pool = pool_at_;
  media.bytes = bytes_;
  media.read_only = read_only;
  return media;
}

void* SparseMedia::chunk(uint64_t index) {
  const uint64_t address =
      table_at_ == nullptr ? chunks_.at(index) : memory_.read_object(&table_at_[index]);
  return reinterpret_cast<void*>(address);
}

uint64_t for_each_data_extent(const std::string& path,
                              const std::function<void(uint64_t offset, uint64_t bytes)>& visit) {
  const Descriptor file = Descriptor::open(path, O_RDONLY);
  if (!file.is_open()) fail_with(errno, path);
  const FileKind kind = kind_of(file.get(), path);
  uint64_t at = 0;
  while (at < kind.bytes) {
    const off_t data = kind.regular ? ::lseek(file.get(), static_cast<off_t>(at), SEEK_DATA) : -1;
    if (data < 0) {
      // Nothing but a hole up to the end, or no way to tell.
      if (kind.regular && errno == ENXIO) break;
      if (kind.regular && errno != EINVAL && errno != ENOTSUP) fail_with(errno, path);
      visit(at, kind.bytes - at);
      break;
    }
    const off_t hole = ::lseek(file.get(), data, SEEK_HOLE);
    if (hole < 0) fail_with(errno, path);
    // The file may have grown meanwhile.
    at = std::min(static_cast<uint64_t>(hole), kind.bytes);
    if (static_cast<uint64_t>(data) < at) {
      visit(static_cast<uint64_t>(data), at - static_cast<uint64_t>(data));
    }
  }
  return kind.bytes;
}

}  // namespace gofs::ssd
