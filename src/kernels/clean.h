// SPDX-License-Identifier: Apache-2.0
//
// Cleaning on behalf of a host program, a launch a step (see vfs/clean.h); the host syncs behind
// each round, which frees what was emptied.
#pragma once

#include "vfs/clean.h"

namespace gofs::kernels {

enum class CleanStep : uint32_t {
  kBegin,  // one warp: segments that could not be emptied may be tried again
  kRound,  // any number of warps
};

struct CleanParams {
  vfs::Filesystem* fs;
  CleanStep step;
  f2fs::VictimWish victims;
  uint32_t segments_max;  // of the round; each warp takes its share
  // Of all warps together; zero before:
  uint32_t segments;  // victims
  uint32_t blocks;    // room that they had
  uint32_t pending;   // segments that wait for the sync
  int error;
  // Afterwards:
  uint32_t free_segments;
  f2fs::CleaningCounts counts;
};

GOFS_HD inline void clean_body(simt::AnyWarp auto warp, uint32_t warp_index, uint32_t warp_count,
                               CleanParams& params) {
  f2fs::Writer& writer = *params.fs->writer;
  const bool leader = warp.thread_rank() == 0;
  if (params.step == CleanStep::kBegin) {
    if (warp_index != 0) return;
    vfs::reset_stuck(warp, *params.fs);
    if (leader) {
      params.free_segments = simt::load_relaxed(writer.free_count);
      params.counts = writer.cleaning.counts;
    }
    return;
  }
  const uint32_t before = warp_index * params.segments_max / warp_count;
  const uint32_t share = (warp_index + 1) * params.segments_max / warp_count - before;
  const vfs::CleanRound round = vfs::clean_round(warp, *params.fs, params.victims, share, share);
  if (!leader) return;
  simt::add_relaxed(params.segments, round.segments);
  simt::add_relaxed(params.blocks, round.blocks);
  simt::AtomicRef<uint32_t>(params.pending).fetch_max(round.pending, simt::memory_order_relaxed);
  if (round.error < 0) simt::store_relaxed(params.error, round.error);
}

}  // namespace gofs::kernels
