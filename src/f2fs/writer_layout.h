// SPDX-License-Identifier: Apache-2.0
//
// Host side: places what a writer needs in a backend's memory, for a volume of known geometry.
#pragma once

#include <algorithm>
#include <vector>

#include "f2fs/freed_since_checkpoint.h"
#include "f2fs/xattr_lock.h"
#include "simt/memory.h"

namespace gofs::f2fs {

/// As many open segments as suit the volume's size.
inline constexpr uint32_t kOpenByVolume = ~0u;

/// One for each kSegmentsPerOpen of the volume: always one, and not more than there are processors.
inline uint32_t open_segments_for(const format::Geometry& geometry) {
  constexpr uint32_t kOpenSegmentsMax = 256;
  constexpr uint32_t kSegmentsPerOpen = 32;
  return std::clamp(geometry.main_segments / kSegmentsPerOpen, 1u, kOpenSegmentsMax);
}

struct WriterOptions {
  uint32_t free_segments = 0;              // who writes cleans where fewer are free; 0: none does
  bool discard = false;                    // segments that become free are discarded
  bool log_structured = false;             // nothing is written over, as by Linux's mode=lfs
  uint32_t open_segments = kOpenByVolume;  // how many
  uint32_t held_writes = 2048;             // asynchronous writes under way, 1 KiB each
  std::vector<uint32_t> withheld{};        // a bit for each main segment that is not to be taken,
                                           // since the SSD has no room for it; empty: none
};

/// The memory of one writer: about 150 bytes for each main segment, two blocks for each open one, a
/// bit for each nid, a kilobyte for each write under way. Frees it when it goes; nothing writes to
/// the volume any more.
class WriterMemory {
 public:
  /// Throws std::bad_alloc.
  WriterMemory(simt::MemorySpace& memory, const format::Geometry& geometry,
               const WriterOptions& options = {})
      : own_(memory) {
    using simt::MemoryPart;
    Writer writer{};
    writer.segments.segments =
        own_.take<SegmentInfo>(geometry.main_segments, MemoryPart::kSegments);
    writer.segments.dirty =
        own_.take<uint32_t>(simt::divide_up(geometry.sit_blocks_used(), 32), MemoryPart::kSegments);
    const uint64_t segment_words = simt::divide_up(geometry.main_segments, 32);
    writer.empty_map = own_.take<uint32_t>(segment_words, MemoryPart::kSegments);
    writer.free_map = own_.take<uint32_t>(segment_words, MemoryPart::kSegments);
    if (!options.withheld.empty()) {
      GOFS_ASSERT(options.withheld.size() == segment_words);
      auto* const placed = own_.take<uint32_t>(segment_words, MemoryPart::kSegments);
      memory.write(placed, options.withheld.data(), segment_words * sizeof(uint32_t));
      writer.withheld = placed;
    }
    writer.discarded = own_.take<uint32_t>(segment_words, MemoryPart::kSegments);
    writer.cleaning.victims = own_.take<uint32_t>(segment_words, MemoryPart::kSegments);
    writer.cleaning.held = own_.take<uint32_t>(segment_words, MemoryPart::kSegments);
    writer.cleaning.stuck = own_.take<uint32_t>(segment_words, MemoryPart::kSegments);
    writer.cleaning.pages =
        own_.take<uint8_t>(uint64_t{kCleaners} * kBlockBytes, MemoryPart::kWriter);
    writer.cleaning.page_locks = own_.take<uint32_t>(kCleaners, MemoryPart::kWriter);
    writer.cleaning.free_wanted = options.free_segments;
    writer.discard = options.discard ? 1 : 0;
    writer.writes_over = options.log_structured ? 0 : 1;
    writer.held_count = std::max(options.held_writes, 1u);
    writer.held = own_.take<HeldBlocks>(writer.held_count, MemoryPart::kWriter);
    writer.summaries = own_.take<format::SummaryBlock>(format::kLogCount, MemoryPart::kSegments);
    writer.incoming = own_.take<format::SummaryBlock>(format::kLogCount, MemoryPart::kSegments);
    writer.open_count = options.open_segments == kOpenByVolume ? open_segments_for(geometry)
                                                               : options.open_segments;
    writer.open = own_.take<OpenSegment>(writer.open_count, MemoryPart::kSegments);
    writer.open_map = own_.take<uint32_t>(segment_words, MemoryPart::kSegments);
    writer.open_summaries =
        own_.take<format::SummaryBlock>(2 * uint64_t{writer.open_count}, MemoryPart::kSegments);
    writer.checkpoint = own_.take<uint8_t>((1 + uint64_t{geometry.cp_payload}) * kBlockBytes,
                                           MemoryPart::kCheckpoint);
    writer.pages = own_.take<uint8_t>(uint64_t{kWriterPages} * kBlockBytes, MemoryPart::kWriter);
    writer.xattr_locks = own_.take<simt::SharedLock>(kXattrLocks, MemoryPart::kWriter);
    writer.recovered = own_.take<RecoveredFile>(kRecoveredFiles, MemoryPart::kWriter);
    writer.freed_since_checkpoint = own_.take<uint32_t>(kFreedWords, MemoryPart::kWriter);
    const uint32_t lines = orphan_lines(geometry.nid_count());
    writer.orphans.words =
        own_.take<uint32_t>(uint64_t{lines} * kWordsPerOrphanLine, MemoryPart::kWriter);
    writer.orphans.lines = own_.take<uint32_t>(simt::divide_up(lines, 32), MemoryPart::kWriter);
    writer.orphans.ino_count = geometry.nid_count();
    writer.orphans.most = orphans_max(geometry.cp_payload);
    writer_ = own_.take<Writer>(1, MemoryPart::kWriter);
    memory.write_object(writer_, writer);
  }

  Writer* writer() const { return writer_; }

 private:
  simt::Allocations own_;
  Writer* writer_ = nullptr;
};

}  // namespace gofs::f2fs
