// SPDX-License-Identifier: Apache-2.0
//
// Telling the SSD which segments are free, so that it need not keep what was there (Dataset
// Management). Only behind the checkpoint that made them free, and before any may be allocated: a
// few at a time, since operations wait meanwhile; the others' turn comes with later checkpoints.
#pragma once

#include "f2fs/segment_maps.h"

namespace gofs::f2fs::detail {

/// Segments that one checkpoint discards: 32 MiB.
inline constexpr uint32_t kDiscardedAtOnce = 16;

/// Lists free segments that the SSD does not know of, as ranges for one command. Their number, on
/// all lanes. Collective.
GOFS_HD inline uint32_t gather_freed(simt::AnyWarp auto warp, const Volume& volume,
                                     const Writer& writer, format::nvme::DatasetRange* ranges) {
  const auto words = static_cast<uint32_t>(simt::divide_up(volume.geometry.main_segments, 32));
  const uint32_t shift = kBlockShift - volume.array.lba_shift;
  uint32_t count = 0;
  for (uint32_t first = 0; first < words && count < kDiscardedAtOnce; first += warp.size()) {
    const uint32_t word = first + warp.thread_rank();
    uint32_t fresh = 0;
    if (word < words) {
      fresh =
          simt::load_relaxed(writer.free_map[word]) & ~simt::load_relaxed(writer.discarded[word]);
    }
    uint32_t found = 0;
    uint32_t place = count + simt::sum_before(warp, simt::popcount(fresh), found);
    for (; fresh != 0 && place < kDiscardedAtOnce; fresh &= fresh - 1, ++place) {
      const uint64_t block = volume.geometry.block_of(32 * word + simt::lowest_bit(fresh), 0);
      ranges[place] = {0, format::kBlocksPerSegment << shift, block << shift};
    }
    count = simt::min(count + found, kDiscardedAtOnce);
  }
  warp.sync();
  return count;
}

/// Tells the SSD which segments have become free. Collective, under the exclusive checkpoint lock,
/// after find_free_segments(). It is advice: where it fails, nothing is lost but room on the SSD.
GOFS_NOINLINE GOFS_HD inline void discard_freed(simt::AnyWarp auto warp, Volume& volume,
                                                Writer& writer) {
  nvme::Array& array = volume.array;
  if (writer.discard == 0 || array.dataset_management == 0) return;
  auto* const ranges = reinterpret_cast<format::nvme::DatasetRange*>(writer.pages);
  const bool leader = warp.thread_rank() == 0;
  const uint32_t count = gather_freed(warp, volume, writer, ranges);
  if (count == 0) return;
  const int error = nvme::deallocate(warp, array, ranges, count, ranges + kDiscardedAtOnce);
  if (leader && error == 0) {
    const uint32_t shift = kBlockShift - array.lba_shift;
    for (uint32_t i = 0; i < count; ++i) {
      const auto block = static_cast<uint32_t>(ranges[i].lba >> shift);
      set_segment_bit(writer.discarded, volume.geometry.segno_of(block));
    }
  }
  warp.sync();
}

}  // namespace gofs::f2fs::detail
