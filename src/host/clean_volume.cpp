// SPDX-License-Identifier: Apache-2.0
//
// Cleaning a mounted volume: rounds by many warps, each followed by a checkpoint.
#include "host/volume_state.h"
#include "kernels/bodies.h"
#include "kernels/clean.h"

namespace gofs::host {

CleaningReport VolumeState::cleaning_totals() const {
  CleaningReport report;
  if (options_.read_only || !is_ours() || has_failed()) return report;
  const f2fs::CleaningCounts& counts = writer_->writer()->cleaning.counts;
  const auto read = [this](const uint64_t& word) { return backend_->memory().read_object(&word); };
  report.segments = read(counts.segments);
  report.data_blocks = read(counts.data_blocks);
  report.directory_blocks = read(counts.directory_blocks);
  report.node_blocks = read(counts.node_blocks);
  report.left_blocks = read(counts.left_blocks);
  report.free_segments = free_segments();
  return report;
}

Expected<CleaningReport> VolumeState::collect_garbage(const CleaningOptions& options) {
  const CallsUnderWay::One under_way(calls_under_way_);
  if (!is_ours()) return not_ours();
  if (has_failed()) return explain(-EIO, spec_.text);
  if (!is_up()) return explain(-ENODEV, spec_.text);
  if (options_.read_only) return explain(-EROFS, spec_.text);
  try {
    return collect_or_throw(options);
  } catch (const std::bad_alloc&) {
    return explain(-ENOMEM, spec_.text);
  }
}

Expected<CleaningReport> VolumeState::collect_or_throw(const CleaningOptions& options) {
  constexpr uint32_t kSegmentsARound = 64;  // emptied between two checkpoints
  SharedArray<kernels::CleanParams> params(backend_->shared_memory(), 1);
  kernels::CleanParams& clean = params[0];
  const auto begin = [&] {
    clean = {};
    clean.fs = filesystem();
    return run(kernels::bodies::kClean, {1, backend_->warp_width()}, params.data());
  };
  if (!begin()) return explain(kNotRun, spec_.text);
  const uint64_t segments =
      backend_->memory().read_object(&filesystem()->volume.geometry).main_segments;
  const f2fs::CleaningCounts before = clean.counts;
  CleaningReport report;
  report.free_segments_before = clean.free_segments;

  uint64_t left = options.segments_max != 0 ? options.segments_max : segments;
  int error = 0;
  // Each round empties segments, and none is emptied twice but for what others write.
  for (uint64_t round = 0; left != 0 && round <= segments; ++round) {
    clean = {};
    clean.fs = filesystem();
    clean.step = kernels::CleanStep::kRound;
    clean.victims = {
        options.emptiest_first ? f2fs::VictimPolicy::kGreedy : f2fs::VictimPolicy::kCostBenefit,
        vfs::kWorthCleaning};
    clean.segments_max = static_cast<uint32_t>(std::min<uint64_t>(left, kSegmentsARound));
    if (!run(kernels::bodies::kClean, {f2fs::kCleaners, backend_->warp_width()}, params.data())) {
      return explain(kNotRun, spec_.text);
    }
    if (clean.error < 0) error = clean.error;
    left -= std::min<uint64_t>(left, clean.segments);
    const uint32_t free_before = free_segments();
    if (auto synced = sync(); !synced) return synced.error();
    // Where there is no room to empty one wholly, another round fares no better.
    const bool stuck = clean.blocks == 0 && free_segments() <= free_before;
    if (clean.segments == 0 || stuck) break;
  }
  if (!begin()) return explain(kNotRun, spec_.text);
  report.free_segments = clean.free_segments;
  report.segments = clean.counts.segments - before.segments;
  report.data_blocks = clean.counts.data_blocks - before.data_blocks;
  report.directory_blocks = clean.counts.directory_blocks - before.directory_blocks;
  report.node_blocks = clean.counts.node_blocks - before.node_blocks;
  report.left_blocks = clean.counts.left_blocks - before.left_blocks;
  if (error < 0) return explain(error, spec_.text);
  return report;
}

}  // namespace gofs::host
