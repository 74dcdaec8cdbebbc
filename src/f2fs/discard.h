// SPDX-License-Identifier: Apache-2.0
//
// Telling the SSD which segments are free, so that it need not keep what was there (Dataset
// Management). Only behind the checkpoint that made them free, and before anybody may take one.
#pragma once

#include "f2fs/writer.h"

namespace gofs::f2fs::detail {

/// Gathers segments that have become free, from word `word` of the map on, as ranges for one
/// command; `word` moves on. Their number. One lane.
GOFS_HD inline uint32_t gather_freed(const Volume& volume, const Writer& writer, uint32_t& word,
                                     format::nvme::DatasetRange* ranges) {
  constexpr uint32_t kRangesMax = kBlockBytes / sizeof(format::nvme::DatasetRange);
  const auto words = static_cast<uint32_t>(simt::divide_up(volume.geometry.main_segments, 32));
  const uint32_t shift = kBlockShift - volume.device->lba_shift;
  uint32_t count = 0;
  // A word has no more than 16 runs.
  for (; word < words && count + 16 <= kRangesMax; ++word) {
    uint32_t fresh = simt::load_relaxed(writer.free_map[word]) & ~writer.discarded[word];
    while (fresh != 0) {
      const uint32_t first = simt::lowest_bit(fresh);
      const uint32_t rest = ~(fresh >> first);
      const uint32_t run = simt::min(rest == 0 ? 32u : simt::lowest_bit(rest), 32 - first);
      const uint64_t block = volume.geometry.block_of(32 * word + first, 0);
      ranges[count++] = {0, run * format::kBlocksPerSegment << shift, block << shift};
      fresh = first + run >= 32 ? 0 : fresh & ~0u << (first + run);
    }
  }
  return count;
}

/// Gives the segments that have become free back to the SSD. Collective, behind the closed gate,
/// after find_free_segments(). It is advice: where it fails, nothing is lost but room on the SSD.
GOFS_NOINLINE GOFS_HD inline void discard_freed(simt::AnyWarp auto warp, Volume& volume,
                                                Writer& writer) {
  nvme::Device& device = *volume.device;
  if (writer.discard == 0 || device.dataset_management == 0) return;
  const auto words = static_cast<uint32_t>(simt::divide_up(volume.geometry.main_segments, 32));
  auto* const ranges = reinterpret_cast<format::nvme::DatasetRange*>(writer.pages);
  uint32_t word = 0;
  while (word < words) {
    uint32_t count = 0;
    if (warp.thread_rank() == 0) count = gather_freed(volume, writer, word, ranges);
    count = warp.shfl(count, 0);
    word = warp.shfl(word, 0);
    warp.sync();
    if (count == 0) continue;
    nvme::Command command{};
    command.opcode = format::nvme::IoOpcode::kDatasetManagement;
    command.lba_count = count;
    command.buffer = ranges;
    command.bytes = count * static_cast<uint32_t>(sizeof(format::nvme::DatasetRange));
    const nvme::CommandStatus status =
        nvme::execute(warp, device, nvme::pick_queue(device), 1u, command);
    if (warp.shfl(status, 0) != 0) return;
    warp.sync();
  }
  for (uint32_t i = warp.thread_rank(); i < words; i += warp.size()) {
    simt::store_relaxed(writer.discarded[i], simt::load_relaxed(writer.free_map[i]));
  }
  warp.sync();
}

}  // namespace gofs::f2fs::detail
