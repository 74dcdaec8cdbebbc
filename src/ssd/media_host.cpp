// SPDX-License-Identifier: Apache-2.0
#include "ssd/media_host.h"

#include <fcntl.h>
#include <linux/fs.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <stdexcept>
#include <system_error>
#include <utility>

#include "ssd/descriptor.h"
#include "ssd/prp_parts.h"
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

FileMedia::FileMedia(const std::string& path, FileAccess access)
    : FileMedia(make_positional_file(ClaimedImage(path, access)), access) {
  if (file_->size() == 0) fail_with(EINVAL, path + ": the image is empty");
}

FileMedia::FileMedia(std::unique_ptr<FileBackEnd> file, FileAccess access)
    : file_(std::move(file)), access_(access) {}

Media FileMedia::media() {
  Media media;
  media.transfer = transfer_function;
  media.transfer_context = this;
  media.bytes = file_->size();
  media.read_only = access_ == FileAccess::kReadOnly;
  if (!media.read_only) {
    media.sync = sync_function;
    media.sync_context = this;
  }
  return media;
}

int FileMedia::sync() {
  // Of several at once the host tells only one that something was lost.
  const std::lock_guard lock(syncing_);
  if (lost_.load() == 0) {
    const int error = file_->sync();
    if (error != 0) last_error_.store(error);
    if (error != 0) lost_.store(error);
  }
  return lost_.load();
}

std::string FileMedia::problem() const { return file_error_words(last_error_.load()); }

int FileMedia::sync_function(void* self) { return static_cast<FileMedia*>(self)->sync(); }

int FileMedia::transfer_function(void* transfer) {
  auto& wanted = *static_cast<MediaTransfer*>(transfer);
  wanted.status = static_cast<FileMedia*>(wanted.media)->carry_out(wanted);
  return 0;
}

format::nvme::Status FileMedia::carry_out(const MediaTransfer& transfer) {
  using Kind = MediaTransfer::Kind;
  const int lost = lost_.load(std::memory_order_relaxed);
  // What is left of an image that was cut may be read still, but it is no volume.
  if (lost == kImageWasCut || (lost != 0 && transfer.kind != Kind::kRead)) {
    return outcome(transfer.kind, lost);
  }
  if (transfer.kind != Kind::kZero) return move_data(transfer);
  return outcome(transfer.kind, file_->zero(transfer.offset, transfer.bytes));
}

format::nvme::Status FileMedia::move_data(const MediaTransfer& transfer) {
  const bool writes = transfer.kind == MediaTransfer::Kind::kWrite;
  PrpParts memory(transfer.prp1, transfer.prp2, transfer.page_count, transfer.bytes);
  std::array<iovec, 64> parts;
  for (uint64_t offset = transfer.offset;;) {
    size_t count = 0;
    uint64_t bytes = 0;
    for (; count < parts.size() && memory.next(parts[count]); ++count) {
      bytes += parts[count].iov_len;
    }
    if (memory.status() != format::nvme::kSuccess) return memory.status();
    if (count == 0) return format::nvme::kSuccess;
    const std::span<const iovec> some(parts.data(), count);
    const int error = writes ? file_->write(offset, some) : file_->read(offset, some);
    if (error != 0) return outcome(transfer.kind, error);
    offset += bytes;
  }
}

/// The status of a command of which the back end says `error`.
format::nvme::Status FileMedia::outcome(MediaTransfer::Kind kind, int error) {
  if (error == 0) return format::nvme::kSuccess;
  last_error_.store(error);
  if (error == kImageWasCut) lost_.store(error);
  return kind == MediaTransfer::Kind::kRead ? format::nvme::kUnrecoveredReadError
                                            : format::nvme::kWriteFault;
}

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
  return has_memory(address) ? reinterpret_cast<void*>(address) : nullptr;
}

uint64_t for_each_data_extent(const std::string& path, const ExtentVisitor& visit) {
  const Descriptor file = Descriptor::open(path, O_RDONLY);
  if (!file.is_open()) fail_with(errno, path);
  const FileKind kind = kind_of(file.get(), path);
  const int error = for_each_data_extent(file.get(), kind.bytes, visit);
  if (error != 0) fail_with(-error, path);
  return kind.bytes;
}

int for_each_data_extent(int descriptor, uint64_t bytes, const ExtentVisitor& visit) {
  for (uint64_t at = 0; at < bytes;) {
    const off_t data = ::lseek(descriptor, static_cast<off_t>(at), SEEK_DATA);
    if (data < 0 && errno == ENXIO) return 0;  // a hole up to the end
    if (data < 0) {
      if (errno != EINVAL && errno != ENOTSUP) return -errno;
      visit(at, bytes - at);  // there is no way to tell
      return 0;
    }
    const off_t hole = ::lseek(descriptor, data, SEEK_HOLE);
    if (hole < 0) return -errno;
    // The file may have grown meanwhile.
    at = std::min(static_cast<uint64_t>(hole), bytes);
    if (static_cast<uint64_t>(data) < at) {
      visit(static_cast<uint64_t>(data), at - static_cast<uint64_t>(data));
    }
  }
  return 0;
}

}  // namespace gofs::ssd
