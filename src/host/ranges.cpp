// SPDX-License-Identifier: Apache-2.0
//
// Volume::read_ranges() and write_ranges().
#include <cerrno>
#include <limits>
#include <optional>

#include "host/attached_ssd.h"
#include "host/messages.h"
#include "host/range_work.h"
#include "host/volume_state.h"

namespace gofs {

RangeCall::RangeCall(std::shared_ptr<host::RangeWork> work) : work_(std::move(work)) {}
bool RangeCall::is_done() const { return work_->is_done(); }
Expected<std::vector<int64_t>> RangeCall::wait() const { return work_->wait(); }

Expected<RangeCall> Volume::read_ranges(const std::vector<IoRange>& ranges, CUstream_st* stream) {
  const host::Profiled profiled("read ranges", ranges.size());
  auto work = state_->begin_ranges(false, ranges, stream);
  if (!work) return work.error();
  return RangeCall(*std::move(work));
}
Expected<RangeCall> Volume::write_ranges(const std::vector<IoRange>& ranges, CUstream_st* stream) {
  const host::Profiled profiled("write ranges", ranges.size());
  auto work = state_->begin_ranges(true, ranges, stream);
  if (!work) return work.error();
  return RangeCall(*std::move(work));
}

namespace host {

namespace {

constexpr size_t kRangesMax = std::numeric_limits<uint32_t>::max() / 2;
constexpr uint64_t kRangeEndMax = std::numeric_limits<int64_t>::max();

const char* name_of(bool writes) { return writes ? "write_ranges" : "read_ranges"; }

/// What is wrong with the memory of a range. Null: nothing.
const char* wrong_with(const IoRange& range) {
  if (range.memory == nullptr && range.bytes != 0) return "the buffer is null";
  return range.bytes <= kRangeEndMax ? nullptr : "the buffer is larger than all that there is";
}

/// Whether there can be files that have it.
bool can_be_in_file(const IoRange& range) { return range.offset <= kRangeEndMax - range.bytes; }

std::shared_ptr<RangeWork> done(std::vector<int64_t> results) {
  return std::make_shared<DoneRanges>(std::move(results));
}

}  // namespace

Expected<std::shared_ptr<RangeWork>> AnyVolume::begin_ranges(bool writes,
                                                             const std::vector<IoRange>& ranges,
                                                             CUstream_st* stream) {
  for (const IoRange& range : ranges) {
    const char* const wrong = wrong_with(range);
    if (wrong != nullptr) return make_error(EFAULT, name_of(writes), wrong);
  }
  return done(move_ranges(writes, ranges, stream));
}

Expected<std::shared_ptr<RangeWork>> VolumeState::begin_ranges(bool writes,
                                                               const std::vector<IoRange>& ranges,
                                                               CUstream_st* stream) {
  const CallsUnderWay::One under_way(calls_under_way_);
  const std::string subject = name_of(writes);
  if (!is_ours()) return not_ours();
  if (has_failed()) return explain(-EIO, subject);
  if (!is_up()) return make_error(ENODEV, subject);
  if (ranges.size() > kRangesMax) return make_error(EINVAL, subject, "too many ranges");
  if (backend_->is_capturing(stream)) {
    return make_error(EOPNOTSUPP, subject, "the stream is captured for a graph");
  }
  std::vector<std::optional<int64_t>> already;  // results that need no launch
  size_t already_count = 0;
  const auto answer_already = [&](size_t i, int64_t result) {
    already.resize(ranges.size());
    already[i] = result;
    ++already_count;
  };
  // Memory that only threads of the host reach is none of the stream's.
  std::vector<size_t> elsewhere;
  kernels::BufferReach reach{false, {}, nullptr, nullptr};
  for (size_t i = 0; i < ranges.size(); ++i) {
    const IoRange& range = ranges[i];
    const char* const wrong = wrong_with(range);
    if (wrong != nullptr) return make_error(EFAULT, subject, wrong);
    if (!can_be_in_file(range)) {
      answer_already(i, -EINVAL);
      continue;
    }
    if (range.bytes == 0) continue;
    if (!reach.holds(range.memory, range.bytes)) {
      reach = backend_->reach_of(range.memory, range.bytes);
      if (!reach.problem.empty()) return make_error(EFAULT, subject, reach.problem);
    }
    if (!reach.reached) elsewhere.push_back(i);
  }
  if (!elsewhere.empty()) {
    std::vector<IoRange> others;
    for (const size_t i : elsewhere) others.push_back(ranges[i]);
    const std::vector<int64_t> results = move_ranges(writes, others, stream);
    for (size_t i = 0; i < others.size(); ++i) answer_already(elsewhere[i], results[i]);
  }
  if (already_count == ranges.size()) {
    std::vector<int64_t> results;
    for (const auto& one : already) results.push_back(*one);
    return done(std::move(results));
  }
  try {
    const auto explain_failure = [this, subject](const std::string& why) {
      return has_failed() ? explain(-EIO, subject) : make_error(EIO, subject, why);
    };
    auto work = range_works_.take(*backend_, explain_failure);
    if (!backend_->is_host()) {
      for (const auto& ssd : ssds_) ssd->wake();
    }
    const std::string refusal = work->begin(filesystem(), writes, ranges, already, stream);
    if (!refusal.empty()) return explain_failure(refusal);
    return std::shared_ptr<RangeWork>(std::move(work));
  } catch (const std::bad_alloc&) {
    return make_error(ENOMEM, subject);
  }
}

}  // namespace host

}  // namespace gofs
