// SPDX-License-Identifier: Apache-2.0
#include "host/range_work.h"

#include <algorithm>
#include <bit>
#include <cerrno>
#include <limits>
#include <new>

#include "host/messages.h"
#include "kernels/bodies.h"

namespace gofs::host {

namespace {

/// Pieces of less cost more than they gain, and larger ones leave the last warps alone.
constexpr uint64_t kPieceBytesMin = 64 * 1024;
constexpr uint64_t kPieceBytesMax = 1024 * 1024;
constexpr uint64_t kPiecesOfWarp = 4;
constexpr uint64_t kPiecesMax = std::numeric_limits<uint32_t>::max() / 2;

uint64_t total_bytes(const std::vector<IoRange>& ranges) {
  constexpr uint64_t kTotalMax = uint64_t{1} << 62;  // as good as more
  uint64_t total = 0;
  for (const IoRange& range : ranges) total = std::min(total + range.bytes, kTotalMax);
  return total;
}

/// A power of two.
uint64_t pick_piece_bytes(uint64_t total, uint64_t warps) {
  const uint64_t wanted = std::bit_ceil(total / (warps * kPiecesOfWarp) + 1);
  return std::clamp(wanted, kPieceBytesMin, kPieceBytesMax);
}

/// Of `pieces` that so many warps are to move, those that one takes at once.
uint32_t pick_pieces_at_once(uint64_t total, uint64_t pieces, uint64_t warps, uint32_t lanes) {
  if (total > pieces * kPieceBytesMin) return 1;
  const uint64_t share = std::bit_floor(pieces / (warps * kPiecesOfWarp) | 1);
  return static_cast<uint32_t>(std::min<uint64_t>(share, lanes));
}

}  // namespace

LaunchedRanges::LaunchedRanges(kernels::Backend& backend, Explain explain)
    : backend_(&backend),
      explain_(std::move(explain)),
      params_(std::make_unique<SharedArray<kernels::RangesParams>>(backend.shared_memory(), 1)),
      progress_(std::make_unique<SharedArray<kernels::RangesProgress>>(backend.memory(), 1)) {}

template <typename T>
void LaunchedRanges::grow(std::unique_ptr<SharedArray<T>>& array, simt::MemorySpace& memory,
                          size_t count) {
  if (array != nullptr && array->size() >= count) return;
  array = nullptr;
  array = std::make_unique<SharedArray<T>>(memory, std::bit_ceil(count));
}

/// Fills in the number of each range's first piece; those that have a result already have none. How
/// many there are. Throws std::bad_alloc for more than a launch can have.
uint32_t LaunchedRanges::number_pieces(const kernels::RangeCut& cut,
                                       const std::vector<IoRange>& ranges,
                                       const std::vector<std::optional<int64_t>>& already) {
  grow(first_pieces_, backend_->shared_memory(), ranges.size());
  uint64_t count = 0;
  for (size_t i = 0; i < ranges.size(); ++i) {
    (*first_pieces_)[i] = static_cast<uint32_t>(count);
    if (already.empty() || !already[i]) count += cut.pieces_of(ranges[i]);
    if (count > kPiecesMax) throw std::bad_alloc();
  }
  return static_cast<uint32_t>(count);
}

/// Fills in what the launch is told; which warps are to carry it out. By a holder of the mutex.
kernels::Grid LaunchedRanges::prepare(vfs::Filesystem* fs, bool writes,
                                      const std::vector<IoRange>& ranges,
                                      const std::vector<std::optional<int64_t>>& already,
                                      uint64_t piece_bytes) {
  const kernels::Grid full = backend_->full_grid();
  const uint32_t lanes = backend_->warp_width();
  const uint32_t warps_of_block = std::max(full.threads_per_block / lanes, 1u);
  const uint64_t warps = uint64_t{full.blocks} * warps_of_block;
  const uint64_t total = total_bytes(ranges);
  if (piece_bytes == 0) piece_bytes = pick_piece_bytes(total, warps);
  kernels::RangesParams& params = (*params_)[0];
  params = {};
  params.fs = fs;
  params.writes = writes ? 1 : 0;
  params.cut.shift = static_cast<uint32_t>(std::countr_zero(piece_bytes));
  grow(ranges_, backend_->shared_memory(), ranges.size());
  grow(results_, backend_->shared_memory(), ranges.size());
  grow(states_, backend_->memory(), ranges.size());
  std::copy(ranges.begin(), ranges.end(), ranges_->data());
  params.range_count = static_cast<uint32_t>(ranges.size());
  params.ranges = ranges_->data();
  params.states = states_->data();
  params.progress = progress_->data();
  params.results = results_->data();
  params.piece_count = params.range_count;
  const auto is_whole = [&](const IoRange& range) { return params.cut.leaves_whole(range); };
  if (!already.empty() || !std::all_of(ranges.begin(), ranges.end(), is_whole)) {
    params.piece_count = number_pieces(params.cut, ranges, already);
    params.first_pieces = first_pieces_->data();
  }
  params.pieces_at_once = pick_pieces_at_once(total, params.piece_count, warps, lanes);
  const uint64_t of_block = uint64_t{warps_of_block} * params.pieces_at_once;
  const auto blocks =
      std::min<uint64_t>(full.blocks, (params.piece_count + of_block - 1) / of_block);
  return {static_cast<uint32_t>(blocks), full.threads_per_block};
}

std::string LaunchedRanges::begin(vfs::Filesystem* fs, bool writes,
                                  const std::vector<IoRange>& ranges,
                                  const std::vector<std::optional<int64_t>>& already,
                                  CUstream_st* stream) {
  const std::lock_guard lock(mutex_);
  if (params_ == nullptr) return "the volume is being unmounted";
  const kernels::Grid grid = prepare(fs, writes, ranges, already, 0);
  count_ = ranges.size();
  already_ = already;
  collected_.resize(count_);  // here, where it may fail
  problem_.reset();
  begun_ = backend_->begin(kernels::bodies::kRanges, grid, params_->data(), stream);
  return begun_ == nullptr ? backend_->error() : std::string();
}

const int64_t* LaunchedRanges::run(vfs::Filesystem* fs, bool writes,
                                   const std::vector<IoRange>& ranges, uint64_t piece_bytes,
                                   const Run& run) {
  const std::lock_guard lock(mutex_);
  if (params_ == nullptr) return nullptr;
  const kernels::Grid grid = prepare(fs, writes, ranges, {}, piece_bytes);
  return run(kernels::bodies::kRanges, grid, params_->data()) ? results_->data() : nullptr;
}

bool LaunchedRanges::is_done() {
  if (!process_.is_ours()) return true;
  const std::unique_lock lock(mutex_, std::try_to_lock);
  if (!lock) return false;  // another thread waits for it
  return begun_ == nullptr || begun_->is_over();
}

/// Takes the results, where they have not been taken. By a holder of the mutex.
void LaunchedRanges::collect() {
  if (begun_ == nullptr) return;
  if (!begun_->wait()) problem_ = explain_(backend_->error());
  begun_ = nullptr;
  std::copy_n(results_->data(), count_, collected_.begin());
  for (size_t i = 0; i < already_.size(); ++i) {
    if (already_[i]) collected_[i] = *already_[i];
  }
}

Expected<std::vector<int64_t>> LaunchedRanges::wait() {
  if (!process_.is_ours()) {
    return make_error(ENODEV, "ranges",
                      "begun by the process that this one was forked from, which alone can wait");
  }
  const std::lock_guard lock(mutex_);
  collect();
  if (problem_) return *problem_;
  return collected_;
}

void LaunchedRanges::settle() {
  const std::lock_guard lock(mutex_);
  collect();
  params_ = nullptr;
  ranges_ = nullptr;
  first_pieces_ = nullptr;
  results_ = nullptr;
  states_ = nullptr;
  progress_ = nullptr;
}

std::shared_ptr<LaunchedRanges> RangeWorks::take(kernels::Backend& backend,
                                                 const LaunchedRanges::Explain& explain) {
  const std::lock_guard lock(mutex_);
  for (const auto& work : all_) {
    if (work.use_count() == 1 && work->is_done()) return work;
  }
  all_.push_back(std::make_shared<LaunchedRanges>(backend, explain));
  return all_.back();
}

void RangeWorks::settle() {
  const std::lock_guard lock(mutex_);
  for (const auto& work : all_) work->settle();
  all_.clear();
}

}  // namespace gofs::host
