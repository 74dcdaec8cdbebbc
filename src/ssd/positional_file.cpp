// SPDX-License-Identifier: Apache-2.0
#include <fcntl.h>
#include <linux/falloc.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdint>
#include <system_error>
#include <utility>

#include "ssd/file_back_end.h"

namespace gofs::ssd {

namespace {

constexpr size_t kPartsAtOnce = 64;

/// A copy of the next parts, of which the front can be taken off.
class Parts {
 public:
  explicit Parts(std::span<const iovec> all) : left_(all) { refill(); }
  bool empty() const { return count_ == first_; }
  const iovec* data() const { return some_.data() + first_; }
  int count() const { return static_cast<int>(count_ - first_); }

  void take(size_t bytes) {
    while (bytes != 0 && bytes >= some_[first_].iov_len) bytes -= some_[first_++].iov_len;
    if (bytes != 0) {
      iovec& part = some_[first_];
      part.iov_base = static_cast<char*>(part.iov_base) + bytes;
      part.iov_len -= bytes;
    }
    if (first_ == count_) refill();
  }

 private:
  void refill() {
    first_ = 0;
    count_ = std::min(left_.size(), some_.size());
    std::copy_n(left_.begin(), count_, some_.begin());
    left_ = left_.subspan(count_);
  }

  std::span<const iovec> left_;
  std::array<iovec, kPartsAtOnce> some_;
  size_t first_ = 0;
  size_t count_ = 0;
};

class PositionalFile final : public FileBackEnd {
 public:
  explicit PositionalFile(ClaimedImage file)
      : file_(std::move(file)), limit_(file_.is_device() ? UINT64_MAX : file_size_limit()) {}

  uint64_t size() const override { return file_.bytes(); }

  int read(uint64_t offset, std::span<const iovec> parts) override {
    return move(::preadv, offset, parts);
  }

  /// Reads find out by themselves that the file was cut; a write would make it longer, with zeros
  /// in between.
  int write(uint64_t offset, std::span<const iovec> parts) override {
    if (file_.was_cut()) return kImageWasCut;
    if (limit_ != UINT64_MAX && end_of(offset, parts) > limit_) return -EFBIG;
    return move(::pwritev, offset, parts);
  }

  int zero(uint64_t offset, uint64_t bytes) override {
    if (file_.was_cut()) return kImageWasCut;
    constexpr int kHole = FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE;
    int result = 0;
    do {
      result =
          ::fallocate(file_.get(), kHole, static_cast<off_t>(offset), static_cast<off_t>(bytes));
    } while (result != 0 && errno == EINTR);
    // What cannot be a hole, or not there: a device wants whole sectors.
    return result == 0 ? 0 : write_zeros(offset, bytes);
  }

  int reserve(uint64_t offset, uint64_t bytes) override {
    if (file_.was_cut()) return kImageWasCut;
    if (file_.is_device()) return 0;
    int result = 0;
    do {
      result = ::fallocate(file_.get(), FALLOC_FL_KEEP_SIZE, static_cast<off_t>(offset),
                           static_cast<off_t>(bytes));
    } while (result != 0 && errno == EINTR);
    const bool told = errno == ENOSPC || errno == EDQUOT || errno == EIO;
    return result != 0 && told ? -errno : 0;
  }

  int sync() override {
    if (file_.was_cut()) return kImageWasCut;
    // Linux reports a failure once, and marks the pages clean: to ask again is no help.
    return ::fdatasync(file_.get()) == 0 ? 0 : -errno;
  }

 private:
  static uint64_t end_of(uint64_t offset, std::span<const iovec> parts) {
    for (const iovec& part : parts) offset += part.iov_len;
    return offset;
  }

  template <typename Call>
  int move(Call call, uint64_t offset, std::span<const iovec> all) {
    for (Parts parts(all); !parts.empty();) {
      const ssize_t moved =
          call(file_.get(), parts.data(), parts.count(), static_cast<off_t>(offset));
      if (moved < 0 && errno == EINTR) continue;
      if (moved < 0) return -errno;
      if (moved == 0) return file_.was_cut() ? kImageWasCut : -EIO;
      parts.take(static_cast<size_t>(moved));
      offset += static_cast<uint64_t>(moved);
    }
    return 0;
  }

  /// Where there are zeros already, nothing is written: a hole stays one.
  int write_zeros(uint64_t offset, uint64_t bytes) {
    std::array<char, 65536> block;
    while (bytes != 0) {
      const size_t part = std::min<uint64_t>(bytes, block.size());
      const iovec here{block.data(), part};
      if (const int error = read(offset, {&here, 1}); error != 0) return error;
      if (std::any_of(block.begin(), block.begin() + part, [](char byte) { return byte != 0; })) {
        std::fill_n(block.begin(), part, char{0});
        if (const int error = write(offset, {&here, 1}); error != 0) return error;
      }
      offset += part;
      bytes -= part;
    }
    return 0;
  }

  const ClaimedImage file_;
  const uint64_t limit_;  // as it was when the file was claimed
};

}  // namespace

uint64_t file_size_limit() {
  rlimit limit{};
  if (::getrlimit(RLIMIT_FSIZE, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY) return UINT64_MAX;
  return limit.rlim_cur;
}

std::string file_error_words(int error) {
  if (error == 0) return {};
  if (error == kImageWasCut) return "the image has become shorter than it was when it was mounted";
  return std::generic_category().message(-error);
}

std::unique_ptr<FileBackEnd> make_positional_file(ClaimedImage file) {
  return std::make_unique<PositionalFile>(std::move(file));
}

}  // namespace gofs::ssd
