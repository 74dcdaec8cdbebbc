// SPDX-License-Identifier: Apache-2.0
#include "gpu/image_copy.h"

#include <cstring>
#include <new>
#include <optional>
#include <utility>

#include "simt/available_memory.h"

namespace gofs::gpu {

namespace {

constexpr uint64_t kUnitBytes = uint64_t{1} << ssd::kMarkShift;

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

/// A unit is marked when a write to it has been made, with the epoch of that moment; but who sets
/// the mark may have read the epoch just before this call changes it, and set it just after this
/// call has read the marks. So marks of the last epoch count as well.
std::string ImageCopy::look() {
  const uint32_t next = epoch_ + 1;
  std::string error = copier_->push(&source_.media.marks->epoch, &next, sizeof(next));
  if (error.empty()) {
    error = copier_->pull(marks_.data(), source_.marks, marks_.size() * sizeof(uint32_t));
  }
  if (error.empty() && !chunks_.empty()) {
    error = copier_->pull(chunks_.data(), source_.media.chunks, chunks_.size() * sizeof(uint64_t));
  }
  if (!error.empty()) return error;
  for (uint64_t unit = 0; unit < marks_.size(); ++unit) {
    if (marks_[unit] != 0 && marks_[unit] + 1 >= epoch_) changed_[unit] = true;
    if (changed_[unit] && is_there(unit)) taken_.push_back(unit);
  }
  epoch_ = next;
  return {};
}

std::string ImageCopy::copy_taken(uint64_t bytes_max) {
  const uint64_t bytes = taken_.size() * kUnitBytes;
  if (bytes == 0 || bytes > bytes_max) return {};
  copied_.reset(new (std::nothrow) uint8_t[bytes]);
  if (copied_ == nullptr) return {};
  std::string error;
  uint8_t* to = copied_.get();
  for (const uint64_t unit : taken_) {
    if (source_.is_host_memory) {
      std::memcpy(to, memory_of(unit), bytes_of(unit));
    } else if (error = copier_->pull(to, memory_of(unit), bytes_of(unit)); !error.empty()) {
      break;
    }
    to += kUnitBytes;
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
  int error = 0;
  for (size_t i = 0; i < taken_.size() && error == 0; ++i) {
    error = file_.reserve(offset_of(taken_[i]), bytes_of(taken_[i]));
  }
  return error;
}

std::string ImageCopy::write_taken() {
  std::string error;
  for (size_t i = 0; i < taken_.size() && error.empty(); ++i) {
    if (copied_ != nullptr) {
      error = write_unit(taken_[i], copied_.get() + i * kUnitBytes);
    } else if (source_.is_host_memory) {
      error = write_unit(taken_[i], memory_of(taken_[i]));
    } else {
      error = write_from_device(taken_[i]);
    }
  }
  return error;
}

std::string ImageCopy::write_from_device(uint64_t unit) {
  std::vector<uint8_t> bytes(bytes_of(unit));
  std::string error = copier_->pull(bytes.data(), memory_of(unit), bytes.size());
  return error.empty() ? write_unit(unit, bytes.data()) : error;
}

std::string ImageCopy::write_unit(uint64_t unit, const uint8_t* from) {
  const iovec part{const_cast<uint8_t*>(from), bytes_of(unit)};
  const int error = file_.write(offset_of(unit), {&part, 1});
  return error == 0 ? std::string() : "writing: " + ssd::file_error_words(error);
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
