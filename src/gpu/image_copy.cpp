// SPDX-License-Identifier: Apache-2.0
#include "gpu/image_copy.h"

#include <atomic>
#include <cstring>
#include <new>
#include <optional>
#include <system_error>
#include <thread>
#include <utility>

#include "simt/available_memory.h"

namespace gofs::gpu {

namespace {

constexpr uint64_t kUnitBytes = uint64_t{1} << ssd::kMarkShift;
constexpr uint64_t kPageBytes = 4096;

/// Calls `act(i)`, which answers 0 or a negative errno, for each i below `count`, from several
/// threads where that is worth it, until one fails. The answer of one that has failed, or 0.
template <typename Act>
int for_each(uint64_t count, Act act) {
  constexpr uint32_t kThreadsMax = 8;
  constexpr uint64_t kEach = 16;  // units: 4 MiB
  std::atomic<uint64_t> next{0};
  std::atomic<int> error{0};
  const auto work = [&] {
    for (uint64_t i = next++; i < count && error == 0; i = next++) {
      if (const int failed = act(i); failed != 0) error = failed;
    }
  };
  std::vector<std::jthread> others;
  const uint64_t wanted = simt::min<uint64_t>(
      count / kEach, simt::min(kThreadsMax, std::thread::hardware_concurrency()));
  try {
    while (others.size() + 1 < wanted) others.emplace_back(work);
  } catch (const std::system_error&) {  // those that there are do
  }
  work();
  others.clear();  // waits for them
  return error;
}

std::string write_error_words(int error) {
  return error == 0 ? std::string() : "writing: " + ssd::file_error_words(error);
}

}  // namespace

uint64_t copied_bytes_max() {
  constexpr uint64_t kMost = uint64_t{16} << 30;
  const std::optional<uint64_t> available = simt::available_memory_bytes();
  return available ? simt::min(kMost, *available / 2) : kMost;
}

ImageCopy::ImageCopy(Source source, ssd::FileBackEnd& file)
    : source_(std::move(source)),
      file_(file),
      marks_(simt::divide_up(source_.media.bytes, kUnitBytes)),
      newer_marks_(marks_.size()),
      chunks_(source_.media.is_chunked() ? simt::divide_up(source_.media.bytes, ssd::kChunkBytes)
                                         : 0),
      changed_(marks_.size()) {}

std::string ImageCopy::collect(uint64_t bytes_max, kernels::MemoryCopier& copier) {
  release();
  copier_ = &copier;
  if (!error_.empty()) return error_;
  std::string error = look();
  if (error.empty()) error = copy_taken(bytes_max);
  if (!error.empty()) release();
  return error;
}

void ImageCopy::release() {
  taken_.clear();
  copied_.reset();
}

/// The data is copied later than its mark, which was set later than the data: what a mark that is
/// seen stands for is copied, and what another one stands for has a newer mark at the next look.
std::string ImageCopy::look() {
  const uint64_t bytes = marks_.size() * sizeof(uint32_t);
  std::string error = copier_->pull(newer_marks_.data(), source_.media.marks, bytes);  // [S9]
  if (error.empty() && !chunks_.empty()) {
    error = copier_->pull(chunks_.data(), source_.media.chunks, chunks_.size() * sizeof(uint64_t));
  }
  if (!error.empty()) return error;
  for (uint64_t unit = 0; unit < marks_.size(); ++unit) {
    if (newer_marks_[unit] != marks_[unit]) changed_[unit] = true;
    if (changed_[unit] && is_there(unit)) taken_.push_back(unit);
  }
  marks_.swap(newer_marks_);
  return {};
}

std::string ImageCopy::copy_taken(uint64_t bytes_max) {
  const uint64_t bytes = taken_.size() * kUnitBytes;
  if (bytes == 0 || bytes > bytes_max) return {};
  copied_.reset(new (std::nothrow) uint8_t[bytes]);
  if (copied_ == nullptr) return {};
  const auto copy_of = [this](uint64_t i) { return copied_.get() + i * kUnitBytes; };
  if (source_.is_host_memory) {
    for_each(taken_.size(), [&](uint64_t i) {
      std::memcpy(copy_of(i), memory_of(taken_[i]), bytes_of(taken_[i]));
      return 0;
    });
    return {};
  }
  // One thread asks the copier. It would wait for Linux at each page that is not there yet.
  for_each(taken_.size(), [&](uint64_t i) {
    for (uint64_t at = 0; at < kUnitBytes; at += kPageBytes) copy_of(i)[at] = 0;
    return 0;
  });
  std::string error;
  for (uint64_t i = 0; i < taken_.size() && error.empty(); ++i) {
    error = copier_->pull(copy_of(i), memory_of(taken_[i]), bytes_of(taken_[i]));
  }
  return error;
}

std::string ImageCopy::write() {
  if (!error_.empty()) return error_;
  if (const int full = reserve_taken(); full != 0) {
    release();
    return ssd::file_error_words(full);
  }
  error_ = write_taken();
  if (error_.empty()) error_ = ssd::file_error_words(file_.sync());
  if (error_.empty()) {
    for (const uint64_t unit : taken_) changed_[unit] = false;
  }
  release();
  return error_;
}

int ImageCopy::reserve_taken() {
  return for_each(taken_.size(), [this](uint64_t i) {
    return file_.reserve(offset_of(taken_[i]), bytes_of(taken_[i]));
  });
}

std::string ImageCopy::write_taken() {
  if (copied_ == nullptr && !source_.is_host_memory) return write_from_device();
  return write_error_words(for_each(taken_.size(), [this](uint64_t i) {
    const uint64_t unit = taken_[i];
    return write_unit(unit, copied_ ? copied_.get() + i * kUnitBytes : memory_of(unit));
  }));
}

std::string ImageCopy::write_from_device() {
  constexpr uint64_t kUnitsAtOnce = 128;
  std::vector<uint8_t> bytes(simt::min<uint64_t>(taken_.size(), kUnitsAtOnce) * kUnitBytes);
  std::string error;
  for (uint64_t first = 0; first < taken_.size() && error.empty(); first += kUnitsAtOnce) {
    const uint64_t* const units = taken_.data() + first;
    const uint64_t count = simt::min<uint64_t>(taken_.size() - first, kUnitsAtOnce);
    for (uint64_t i = 0; i < count && error.empty(); ++i) {
      error = copier_->pull(bytes.data() + i * kUnitBytes, memory_of(units[i]), bytes_of(units[i]));
    }
    if (!error.empty()) break;
    error = write_error_words(for_each(
        count, [&](uint64_t i) { return write_unit(units[i], bytes.data() + i * kUnitBytes); }));
  }
  return error;
}

int ImageCopy::write_unit(uint64_t unit, const uint8_t* from) {
  const iovec part{const_cast<uint8_t*>(from), bytes_of(unit)};
  return file_.write(offset_of(unit), {&part, 1});
}

uint64_t ImageCopy::bytes_of(uint64_t unit) const {
  return simt::min(kUnitBytes, source_.media.bytes - offset_of(unit));
}

/// Whether a unit has memory; else it is zeros, as in the file.
bool ImageCopy::is_there(uint64_t unit) const {
  return chunks_.empty() || ssd::has_memory(chunks_[offset_of(unit) >> ssd::kChunkShift]);
}

/// Where the bytes of a unit that is there lie.
const uint8_t* ImageCopy::memory_of(uint64_t unit) const {
  const uint64_t offset = offset_of(unit);
  if (chunks_.empty()) return source_.media.base + offset;
  return reinterpret_cast<const uint8_t*>(chunks_[offset >> ssd::kChunkShift]) +
         (offset & (ssd::kChunkBytes - 1));
}

}  // namespace gofs::gpu
