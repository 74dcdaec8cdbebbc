// SPDX-License-Identifier: Apache-2.0
#include "host/range_work.h"

#include <algorithm>
#include <bit>
#include <limits>
#include <new>

#include "kernels/bodies.h"

namespace gofs::host {

namespace {

/// A warp has a piece under way. Pieces of less cost more than they gain, and larger ones leave the
/// last warps alone.
constexpr uint64_t kPieceBytesMin = 64 * 1024;
constexpr uint64_t kPieceBytesMax = 1024 * 1024;
constexpr uint64_t kPiecesOfWarp = 4;

/// Whether a range is to be moved by the launch.
bool is_left(const std::vector<std::optional<int64_t>>& already, size_t index) {
  return already.empty() || !already[index];
}

/// How ranges are cut: at multiples of so many bytes in the file, so that no two pieces write to
/// one block of it unless ranges do.
struct Cut {
  uint64_t piece_bytes;
  uint64_t pieces;  // of all ranges

  /// Of one range. One of no bytes is a piece too: its file may be missing.
  uint64_t pieces_of(const IoRange& range) const {
    const uint64_t before = range.offset % piece_bytes;
    return std::max<uint64_t>((before + range.bytes + piece_bytes - 1) / piece_bytes, 1);
  }
};

/// Throws std::bad_alloc for more pieces than a launch can have: their memory could not be had
/// either.
Cut plan_cut(const std::vector<IoRange>& ranges, const std::vector<std::optional<int64_t>>& already,
             uint64_t warps, uint64_t piece_bytes) {
  constexpr uint64_t kTotalMax = uint64_t{1} << 62;  // as good as more
  uint64_t total = 0;
  for (size_t i = 0; i < ranges.size(); ++i) {
    if (is_left(already, i)) total = std::min(total + ranges[i].bytes, kTotalMax);
  }
  const uint64_t wanted = std::bit_ceil(total / (warps * kPiecesOfWarp) + 1);
  Cut cut{piece_bytes != 0 ? piece_bytes : std::clamp(wanted, kPieceBytesMin, kPieceBytesMax), 0};
  for (size_t i = 0; i < ranges.size(); ++i) {
    if (is_left(already, i)) cut.pieces += cut.pieces_of(ranges[i]);
    if (cut.pieces > std::numeric_limits<uint32_t>::max()) throw std::bad_alloc();
  }
  return cut;
}

/// Fills in the pieces of range `index`. Behind the last of them.
kernels::RangePiece* cut_range(const Cut& cut, const IoRange& range, size_t index,
                               kernels::RangePiece* piece) {
  const uint64_t count = cut.pieces_of(range);
  uint64_t at = 0;
  for (uint64_t k = 0; k < count; ++k) {
    const uint64_t offset = range.offset + at;
    const uint64_t bytes = std::min(range.bytes - at, cut.piece_bytes - offset % cut.piece_bytes);
    *piece++ = {range.fd,
                static_cast<uint32_t>(index),
                static_cast<uint8_t*>(range.memory) + at,
                bytes,
                offset,
                count};
    at += bytes;
  }
  return piece;
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

/// Fills in what the launch is told; which warps are to carry it out. By a holder of the mutex.
kernels::Grid LaunchedRanges::prepare(vfs::Filesystem* fs, bool writes,
                                      const std::vector<IoRange>& ranges,
                                      const std::vector<std::optional<int64_t>>& already,
                                      uint64_t piece_bytes) {
  const kernels::Grid full = backend_->full_grid();
  const uint32_t warps_of_block = std::max(full.threads_per_block / backend_->warp_width(), 1u);
  const Cut cut = plan_cut(ranges, already, uint64_t{full.blocks} * warps_of_block, piece_bytes);
  grow(pieces_, backend_->shared_memory(), cut.pieces);
  grow(results_, backend_->shared_memory(), ranges.size());
  grow(states_, backend_->memory(), ranges.size());
  kernels::RangePiece* piece = pieces_->data();
  for (size_t i = 0; i < ranges.size(); ++i) {
    if (is_left(already, i)) piece = cut_range(cut, ranges[i], i, piece);
  }
  (*params_)[0] = {fs,
                   writes ? 1u : 0u,
                   static_cast<uint32_t>(cut.pieces),
                   pieces_->data(),
                   states_->data(),
                   progress_->data(),
                   results_->data()};
  const auto blocks =
      std::min<uint64_t>(full.blocks, (cut.pieces + warps_of_block - 1) / warps_of_block);
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
  collected_.clear();
  problem_.reset();
  begun_ = backend_->begin(kernels::bodies::kRanges, grid, params_->data(), stream);
  return begun_ == nullptr ? backend_->error() : std::string();
}

std::optional<int64_t> LaunchedRanges::run(vfs::Filesystem* fs, bool writes, const IoRange& range,
                                           uint64_t piece_bytes, const Run& run) {
  const std::lock_guard lock(mutex_);
  if (params_ == nullptr) return std::nullopt;
  const kernels::Grid grid = prepare(fs, writes, {range}, {}, piece_bytes);
  if (!run(kernels::bodies::kRanges, grid, params_->data())) return std::nullopt;
  return (*results_)[0];
}

bool LaunchedRanges::is_done() {
  const std::unique_lock lock(mutex_, std::try_to_lock);
  if (!lock) return false;  // another thread waits for it
  return begun_ == nullptr || begun_->is_over();
}

/// Takes the results, where they have not been taken. By a holder of the mutex.
void LaunchedRanges::collect() {
  if (begun_ == nullptr) return;
  if (!begun_->wait()) problem_ = explain_(backend_->error());
  begun_ = nullptr;
  collected_.assign(results_->data(), results_->data() + count_);
  for (size_t i = 0; i < already_.size(); ++i) {
    if (already_[i]) collected_[i] = *already_[i];
  }
}

Expected<std::vector<int64_t>> LaunchedRanges::wait() {
  const std::lock_guard lock(mutex_);
  collect();
  if (problem_) return *problem_;
  return collected_;
}

void LaunchedRanges::settle() {
  const std::lock_guard lock(mutex_);
  collect();
  params_ = nullptr;
  pieces_ = nullptr;
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
