// SPDX-License-Identifier: Apache-2.0
#include "ssd/hosted/flight.h"

#include <limits.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <new>

#include "ssd/file_back_end.h"
#include "ssd/prp_parts.h"

namespace gofs::ssd {

namespace {

using format::nvme::IoOpcode;

constexpr size_t kZeroBytes = 64 << 10;
constexpr size_t kZeroParts = 16;
constexpr uint32_t kRetriesMax = 1000;
alignas(kBlockBytes) constinit const std::array<char, kZeroBytes> zeros{};

bool is_aligned(const iovec& part, uint32_t alignment) {
  return ((reinterpret_cast<uint64_t>(part.iov_base) | part.iov_len) & (alignment - 1)) == 0;
}

/// Copies `bytes` of what `parts` name to or from memory that lies together.
void copy(std::span<const iovec> parts, uint8_t* memory, bool to_parts) {
  for (const iovec& part : parts) {
    if (to_parts) {
      std::memcpy(part.iov_base, memory, part.iov_len);
    } else {
      std::memcpy(memory, part.iov_base, part.iov_len);
    }
    memory += part.iov_len;
  }
}

}  // namespace

void Flight::begin(const VirtualController& controller, const StorageTraits& storage,
                   BouncePool& bounces) {
  bounces_ = &bounces;
  lba_shift_ = controller.lba_shift;
  memory_alignment_ = storage.memory_alignment;
  reads_ = command.is(IoOpcode::kRead);
  ranges_ = retries_ = 0;
  first_part_ = 0;
  parts_.clear();
  wanted_.clear();
  offset_ = command.lba << lba_shift_;
  if (command.is(IoOpcode::kFlush)) {
    stage_ = Stage::kSync;
  } else if (reads_ || command.is(IoOpcode::kWrite)) {
    stage_ = Stage::kMove;
    left_ = command.transfer_bytes;
    gather();
  } else if (command.is(IoOpcode::kWriteZeroes)) {
    stage_ = Stage::kZero;
    left_ = uint64_t{command.lba_count} << lba_shift_;
  } else {
    stage_ = Stage::kZero;
    left_ = 0;
    for (uint32_t i = 0; i < command.range_count; ++i) {
      const format::nvme::DatasetRange range =
          load_range(command.prp1, command.prp2, command.range_count, i);
      const format::nvme::Status status =
          detail::check_lbas(controller, range.lba, range.lba_count);
      if (status != format::nvme::kSuccess) command.fail(status);
    }
    if (!next_range()) end_of_stage();
  }
}

/// The memory of a transfer.
void Flight::gather() {
  PrpParts memory(command.prp1, command.prp2, command.page_count, left_);
  bool aligned = true;
  try {
    wanted_.reserve(1);  // for bounce()
    for (iovec part; memory.next(part); parts_.push_back(part)) {
      aligned = aligned && is_aligned(part, memory_alignment_);
    }
  } catch (const std::bad_alloc&) {
    return command.fail(format::nvme::kInternalError);
  }
  if (memory.status() != format::nvme::kSuccess) return command.fail(memory.status());
  if (!aligned) bounce();
}

/// Has the data go by memory that O_DIRECT takes in any case.
void Flight::bounce() {
  bounce_ = bounces_->take(left_);
  if (bounce_.memory == nullptr) {
    command.fail(format::nvme::kInternalError);
    return;
  }
  wanted_.swap(parts_);
  parts_.assign(1, {bounce_.memory.get(), left_});
  if (!reads_) copy(wanted_, bounce_.memory.get(), false);
}

bool Flight::next(IoRequest& request) {
  request.offset = offset_;
  request.bytes = left_;
  request.durable = false;
  switch (stage_) {
    case Stage::kMove:
      request.kind = reads_ ? IoRequest::Kind::kRead : IoRequest::Kind::kWrite;
      request.durable = command.durable;
      request.parts = std::span(parts_).subspan(first_part_);
      request.parts = request.parts.first(std::min<size_t>(request.parts.size(), IOV_MAX));
      return true;
    case Stage::kZero:
      request.kind = command.range_count != 0 ? IoRequest::Kind::kDiscard : IoRequest::Kind::kZero;
      return true;
    case Stage::kWriteZeros:
      request.kind = IoRequest::Kind::kWrite;
      first_part_ = 0;
      parts_.clear();
      for (uint64_t left = left_; left != 0 && parts_.size() < kZeroParts;) {
        const uint64_t bytes = std::min<uint64_t>(left, kZeroBytes);
        parts_.push_back({const_cast<char*>(zeros.data()), bytes});  // which are only read
        left -= bytes;
      }
      request.parts = parts_;
      return true;
    case Stage::kSync:
      request.kind = IoRequest::Kind::kSync;
      return true;
    case Stage::kDone:
      break;
  }
  return false;
}

BackingStore::Asked Flight::asked() const {
  using Asked = BackingStore::Asked;
  if (reads_) return Asked::kRead;
  if (stage_ == Stage::kSync) return Asked::kSync;
  return command.durable ? Asked::kDurableWrite : Asked::kWrite;
}

int Flight::note(int64_t result) {
  if ((result == -EAGAIN || result == -EINTR) && ++retries_ <= kRetriesMax) return 0;
  const bool zeroes = stage_ == Stage::kZero;
  const bool unable = result == -EOPNOTSUPP || result == -EINVAL;
  if (unable && zeroes && command.range_count != 0) {
    // To give blocks back is advice.
    if (!next_range()) end_of_stage();
    return 0;
  }
  if (unable && zeroes) {
    stage_ = Stage::kWriteZeros;
    return 0;
  }
  if (result == -EINVAL && stage_ == Stage::kMove && wanted_.empty() && first_part_ == 0) {
    // The device wants memory that is aligned better than its sectors.
    bounce();
    return command.fails() ? -ENOMEM : 0;
  }
  if (result < 0) return static_cast<int>(result);
  switch (stage_) {
    case Stage::kMove:
    case Stage::kWriteZeros:
      // Linux reads nothing behind the end of a file.
      if (result == 0) return reads_ ? kImageWasCut : -EIO;
      take_parts(static_cast<uint64_t>(result));
      if (left_ == 0 && stage_ == Stage::kMove && reads_ && !wanted_.empty()) {
        copy(wanted_, bounce_.memory.get(), true);
      }
      if (left_ != 0) return 0;
      if (stage_ == Stage::kMove) {
        stage_ = Stage::kDone;
      } else {
        end_of_stage();
      }
      return 0;
    case Stage::kZero:
      if (!next_range()) end_of_stage();
      return 0;
    case Stage::kSync:
    case Stage::kDone:
      stage_ = Stage::kDone;
      return 0;
  }
  return 0;
}

void Flight::take_parts(uint64_t bytes) {
  retries_ = 0;
  offset_ += bytes;
  left_ -= bytes;
  while (bytes != 0 && bytes >= parts_[first_part_].iov_len) {
    bytes -= parts_[first_part_++].iov_len;
  }
  if (bytes == 0) return;
  iovec& part = parts_[first_part_];
  part.iov_base = static_cast<char*>(part.iov_base) + bytes;
  part.iov_len -= bytes;
}

/// Goes on with the next range of Dataset Management that is not empty. False: there is none.
bool Flight::next_range() {
  while (ranges_ < command.range_count) {
    const format::nvme::DatasetRange range =
        load_range(command.prp1, command.prp2, command.range_count, ranges_++);
    offset_ = range.lba << lba_shift_;
    left_ = uint64_t{range.lba_count} << lba_shift_;
    if (left_ != 0) return true;
  }
  return false;
}

/// After what was to read zeros does.
void Flight::end_of_stage() { stage_ = command.durable ? Stage::kSync : Stage::kDone; }

}  // namespace gofs::ssd
