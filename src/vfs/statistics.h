// SPDX-License-Identifier: Apache-2.0
//
// What a mounted volume has done, and how it is: what its parts have counted, added up by a warp
// that is asked to. Others go on meanwhile.
#pragma once

#include "vfs/call_counts.h"

namespace gofs::vfs {

namespace detail {

GOFS_HD inline OutcomeCounts sum_outcomes(simt::AnyWarp auto warp, const CallCounts* places,
                                          uint32_t kind) {
  return {simt::sum_counts(
              warp, places,
              [kind](const CallCounts& counts) -> auto& { return counts.calls[kind].succeeded; }),
          simt::sum_counts(warp, places, [kind](const CallCounts& counts) -> auto& {
            return counts.calls[kind].failed;
          })};
}

GOFS_HD inline void tell_calls(simt::AnyWarp auto warp, const Filesystem& fs, Statistics& found) {
  for (uint32_t kind = 0; kind < kCallKinds; ++kind) {
    found.calls[kind] = sum_outcomes(warp, fs.call_counts, kind);
  }
  found.bytes_read = simt::sum_counts(
      warp, fs.call_counts, [](const CallCounts& counts) -> auto& { return counts.bytes_read; });
  found.bytes_written = simt::sum_counts(
      warp, fs.call_counts, [](const CallCounts& counts) -> auto& { return counts.bytes_written; });
}

/// Adds what the queues of one SSD have counted: this lane's part.
GOFS_HD inline void add_queues(simt::AnyWarp auto warp, const nvme::Device& device,
                               Statistics& mine) {
  for (uint32_t i = warp.thread_rank(); i < device.io_queue_count; i += warp.size()) {
    const nvme::QueuePair& queue = device.io[i];
    uint64_t ended = 0;
    for (uint32_t kind = 0; kind < kCommandKinds; ++kind) {
      const uint64_t succeeded = simt::load_relaxed(queue.counts[kind].succeeded);
      const uint64_t failed = simt::load_relaxed(queue.counts[kind].failed);
      mine.commands[kind].succeeded += succeeded;
      mine.commands[kind].failed += failed;
      ended += succeeded + failed;
    }
    const auto bytes_of = [&](CommandKind kind) {
      return simt::load_relaxed(queue.counts[static_cast<uint32_t>(kind)].lbas) << device.lba_shift;
    };
    mine.ssd_bytes_read += bytes_of(CommandKind::kRead);
    mine.ssd_bytes_written += bytes_of(CommandKind::kWrite);
    // Afterwards: a ticket comes before its command's end.
    const uint64_t begun = simt::load_relaxed(queue.next_ticket);
    mine.commands_under_way += begun > ended ? begun - ended : 0;
  }
}

GOFS_HD inline void tell_commands(simt::AnyWarp auto warp, const nvme::Array& array,
                                  Statistics& found) {
  Statistics mine{};
  for (uint32_t disk = 0; disk < array.count; ++disk) {
    const nvme::Device& device = *array.devices[disk];
    add_queues(warp, device, mine);
    if (warp.thread_rank() == 0) mine.command_timeouts += simt::load_relaxed(device.timeouts);
  }
  for (uint32_t kind = 0; kind < kCommandKinds; ++kind) {
    found.commands[kind] = {simt::reduce_add(warp, mine.commands[kind].succeeded),
                            simt::reduce_add(warp, mine.commands[kind].failed)};
  }
  found.ssd_bytes_read = simt::reduce_add(warp, mine.ssd_bytes_read);
  found.ssd_bytes_written = simt::reduce_add(warp, mine.ssd_bytes_written);
  found.command_timeouts = simt::reduce_add(warp, mine.command_timeouts);
  found.commands_under_way = simt::reduce_add(warp, mine.commands_under_way);
}

GOFS_HD inline void tell_caches(simt::AnyWarp auto warp, const f2fs::Volume& volume,
                                Statistics& found) {
  using f2fs::CacheCounts;
  for (uint32_t kind = 0; kind < kCacheKinds; ++kind) {
    found.lookups[kind] = {
        simt::sum_counts(
            warp, volume.cache_counts,
            [kind](const CacheCounts& counts) -> auto& { return counts.lookups[kind].hits; }),
        simt::sum_counts(warp, volume.cache_counts, [kind](const CacheCounts& counts) -> auto& {
          return counts.lookups[kind].misses;
        })};
  }
  const f2fs::PageCache& cache = volume.cache;
  found.cache_pages = cache.frame_count();
  found.dirty_pages = warp.shfl(simt::load_relaxed(cache.dirty), 0);
  uint64_t nodes = 0;
  for (uint32_t word = warp.thread_rank(); word < cache.map_words(); word += warp.size()) {
    nodes += simt::popcount(simt::load_relaxed(cache.dirty_word(f2fs::PageKind::kNode, word)));
  }
  found.dirty_node_pages = simt::reduce_add(warp, nodes);
}

/// How many segments are in which state. Segments change meanwhile, and one may be counted as what
/// it was.
GOFS_HD inline void tell_segments(simt::AnyWarp auto warp, const f2fs::Volume& volume,
                                  const f2fs::Writer& writer, Statistics& found) {
  uint32_t counts[kSegmentStates]{};
  for (uint32_t i = warp.thread_rank(); i < volume.geometry.main_segments; i += warp.size()) {
    const uint32_t valid = simt::load_relaxed(writer.segments.segments[i].valid_count);
    const bool free = (simt::load_relaxed(writer.free_map[i / 32]) >> i % 32 & 1u) != 0;
    const SegmentState state = free                                ? SegmentState::kFree
                               : valid == 0                        ? SegmentState::kPrefree
                               : valid < format::kBlocksPerSegment ? SegmentState::kDirty
                                                                   : SegmentState::kValid;
    ++counts[static_cast<uint32_t>(state)];
  }
  for (uint32_t state = 0; state < kSegmentStates; ++state) {
    found.segments[state] = simt::reduce_add(warp, uint64_t{counts[state]});
  }
}

GOFS_HD inline void tell_writer(simt::AnyWarp auto warp, const f2fs::Volume& volume,
                                const f2fs::Writer& writer, Statistics& found) {
  tell_segments(warp, volume, writer, found);
  const f2fs::CleaningCounts& cleaning = writer.cleaning.counts;
  found.checkpoints = warp.shfl(simt::load_relaxed(writer.checkpoints), 0);
  found.cleaned_segments = warp.shfl(simt::load_relaxed(cleaning.segments), 0);
  found.moved_blocks = warp.shfl(simt::load_relaxed(cleaning.data_blocks) +
                                     simt::load_relaxed(cleaning.node_blocks) +
                                     simt::load_relaxed(cleaning.directory_blocks),
                                 0);
}

}  // namespace detail

/// Collective, uniform; `found` is the same on all lanes.
GOFS_NOINLINE GOFS_HD inline void gather_statistics(simt::AnyWarp auto warp, Filesystem& fs,
                                                    Statistics& found) {
  found = Statistics{};
  detail::tell_calls(warp, fs, found);
  detail::tell_commands(warp, fs.volume.array, found);
  detail::tell_caches(warp, fs.volume, found);
  if (fs.writer != nullptr) detail::tell_writer(warp, fs.volume, *fs.writer, found);
}

}  // namespace gofs::vfs
