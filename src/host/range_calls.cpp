// SPDX-License-Identifier: Apache-2.0
//
// Ranges of files and of memory that threads of the host read and write, or the driver of a GPU: by
// calls that take some of it each, as many at once as are worth it.
#include <algorithm>
#include <array>
#include <cerrno>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "host/any_volume.h"
#include "host/gpu_memory.h"

namespace gofs::host {

namespace {

constexpr size_t kCallsAtOnce = 32;
/// Behind the end of a file calls are made for nothing, so a range begins with so many.
constexpr size_t kCallsOfRange = 8;
/// Through which bytes go between files and memory of a GPU.
constexpr uint64_t kStagingBytes = uint64_t{4} << 20;

/// A range on its way.
struct Moving {
  const IoRange* range;
  std::optional<GpuMemory> gpu{};  // whose memory it is
  bool is_direct = false;          // if so: calls reach it by themselves
  uint64_t moved = 0;
  std::optional<int64_t> result{};  // once it has ended

  bool is_staged() const { return gpu && !is_direct; }
};

CallRequest call_of(bool writes, const IoRange& range, uint64_t at, uint64_t bytes, void* memory) {
  CallRequest request{.verb = writes ? request::Verb::kPwrite : request::Verb::kPread,
                      .descriptor = range.fd,
                      .bytes = bytes,
                      .offset = static_cast<int64_t>(range.offset + at)};
  if (writes) {
    request.input = memory;
  } else {
    request.buffer = memory;
  }
  return request;
}

class RangeCalls {
 public:
  RangeCalls(AnyVolume& volume, bool writes, CUstream_st* stream)
      : volume_(volume), writes_(writes), stream_(stream), part_bytes_(volume.part_bytes()) {}

  /// Moves all of them.
  void move(std::span<Moving> ranges) {
    for (;;) {
      while (!ranges.empty() && ranges.front().result) ranges = ranges.subspan(1);
      if (ranges.empty()) return;
      make_round(ranges);
    }
  }

 private:
  /// What one call moves.
  struct Part {
    Moving* of;
    uint8_t* memory;  // the program's
  };

  void make_round(std::span<Moving> ranges) {
    count_ = 0;
    staged_bytes_ = 0;
    for (Moving& moving : ranges) {
      if (count_ == kCallsAtOnce) break;
      if (!moving.result) add_parts(moving);
    }
    if (writes_ && !settle_copies()) return;
    volume_.call_all(std::span(requests_).first(count_), std::span(answers_).first(count_));
    for (size_t i = 0; i < count_;) i = take_answers(i);
    if (!writes_) (void)settle_copies();
  }

  void add_parts(Moving& moving) {
    // Where a write fails, nothing is written behind it.
    const size_t reads = moving.moved == 0 ? kCallsOfRange : kCallsAtOnce;
    const size_t most = std::min(count_ + (writes_ ? 1 : reads), kCallsAtOnce);
    const uint64_t whole = moving.range->bytes;
    uint64_t at = moving.moved;
    do {
      uint64_t bytes = std::min(part_bytes_, whole - at);
      if (moving.is_staged()) bytes = std::min(bytes, kStagingBytes - staged_bytes_);
      if (bytes == 0 && whole != 0) return;
      add_part(moving, at, bytes);
      at += bytes;
    } while (at < whole && count_ < most);
  }

  void add_part(Moving& moving, uint64_t at, uint64_t bytes) {
    auto* const memory = static_cast<uint8_t*>(moving.range->memory) + at;
    uint8_t* reached = memory;
    if (moving.is_staged()) {
      if (staging_ == nullptr) staging_ = std::make_unique_for_overwrite<uint8_t[]>(kStagingBytes);
      reached = staging_.get() + staged_bytes_;
      staged_bytes_ += bytes;
      if (writes_) copy(moving, reached, memory, bytes);
    }
    parts_[count_] = {&moving, memory};
    requests_[count_] = call_of(writes_, *moving.range, at, bytes, reached);
    requests_[count_].is_direct = moving.is_direct;
    ++count_;
  }

  /// Of all calls that are about one range, of which the first is number `i`. Whose are next.
  size_t take_answers(size_t i) {
    Moving* const moving = parts_[i].of;
    bool goes_on = true;
    for (; i < count_ && parts_[i].of == moving; ++i) goes_on = goes_on && take_answer(i);
    return i;
  }

  /// Whether what follows in the range's memory was moved by the next call.
  bool take_answer(size_t i) {
    Moving& moving = *parts_[i].of;
    if (answers_[i].result == -EFAULT && requests_[i].is_direct) {
      moving.is_direct = false;  // it is reached no longer: another server has come
      return false;
    }
    if (answers_[i].result < 0) {
      moving.result = answers_[i].result;
      return false;
    }
    const auto bytes = static_cast<uint64_t>(answers_[i].result);
    if (moving.is_staged() && !writes_) copy(moving, parts_[i].memory, requests_[i].buffer, bytes);
    moving.moved += bytes;
    if (bytes == 0 || moving.moved == moving.range->bytes) {
      moving.result = static_cast<int64_t>(moving.moved);
    }
    return bytes == requests_[i].bytes;
  }

  void copy(const Moving& moving, void* to, const void* from, uint64_t bytes) {
    copies_made_ = moving.gpu->copy(to, from, bytes, stream_) && copies_made_;
  }

  /// Waits for the copies of a round. False: not all were made, and its ranges of GPU memory have
  /// ended.
  bool settle_copies() {
    const GpuMemory* last = nullptr;
    for (const Part& part : std::span(parts_).first(count_)) {
      if (!part.of->is_staged() || (last != nullptr && *last == *part.of->gpu)) continue;
      last = &*part.of->gpu;
      copies_made_ = last->settle(stream_) && copies_made_;
    }
    if (std::exchange(copies_made_, true)) return true;
    for (const Part& part : std::span(parts_).first(count_)) {
      if (part.of->is_staged()) part.of->result = -EFAULT;
    }
    return false;
  }

  AnyVolume& volume_;
  const bool writes_;
  CUstream_st* const stream_;
  const uint64_t part_bytes_;
  std::unique_ptr<uint8_t[]> staging_;
  // Of the round:
  size_t count_ = 0;  // of calls
  uint64_t staged_bytes_ = 0;
  bool copies_made_ = true;
  std::array<Part, kCallsAtOnce> parts_;
  std::array<CallRequest, kCallsAtOnce> requests_;
  std::array<CallAnswer, kCallsAtOnce> answers_;
};

/// Reads those into memory of the host, where the volume has a way of its own for them.
void read_staged_ones(AnyVolume& volume, std::span<Moving> all) {
  std::vector<IoRange> ranges;
  std::vector<Moving*> whose;
  for (Moving& one : all) {
    if (one.gpu || one.result) continue;
    ranges.push_back(*one.range);
    whose.push_back(&one);
  }
  std::vector<int64_t> results(ranges.size());
  if (!volume.read_staged(ranges, results)) return;
  for (size_t i = 0; i < results.size(); ++i) whose[i]->result = results[i];
}

}  // namespace

int64_t AnyVolume::read_range(const IoRange& range) {
  int64_t result = 0;
  if (read_staged({&range, 1}, {&result, 1})) return result;
  Moving moving{&range};
  if (range.bytes <= part_bytes()) {  // nearly all of it, by one call
    result = call(call_of(false, range, 0, range.bytes, range.memory)).result;
    if (result <= 0 || static_cast<uint64_t>(result) == range.bytes) return result;
    moving.moved = static_cast<uint64_t>(result);
  }
  RangeCalls(*this, false, nullptr).move({&moving, 1});
  return *moving.result;
}

std::vector<int64_t> AnyVolume::move_ranges(bool writes, std::span<const IoRange> ranges,
                                            CUstream_st* stream) {
  std::vector<Moving> moving;
  moving.reserve(ranges.size());
  for (const IoRange& range : ranges) {
    Moving& one = moving.emplace_back(&range);
    if (range.bytes != 0) one.gpu = GpuMemory::at(range.memory);
    if (one.gpu && one.gpu->is_captured(stream)) one.result = -EOPNOTSUPP;
    // What is in the stream comes first.
    if (one.gpu && !one.result && reaches(range.memory, range.bytes)) {
      one.is_direct = one.gpu->settle(stream);
    }
  }
  if (!writes) read_staged_ones(*this, moving);
  RangeCalls(*this, writes, stream).move(moving);
  std::vector<int64_t> results;
  results.reserve(moving.size());
  for (const Moving& one : moving) results.push_back(*one.result == kNotRun ? -EIO : *one.result);
  return results;
}

}  // namespace gofs::host
