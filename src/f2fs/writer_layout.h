// SPDX-License-Identifier: Apache-2.0
//
// Host side: places what a writer needs in a backend's memory, for a volume of known geometry.
#pragma once

#include <vector>

#include "f2fs/writer.h"
#include "simt/memory.h"

namespace gofs::f2fs {

/// The memory of one writer: about 150 bytes for each main segment. Frees it when it goes; nobody
/// writes to the volume any more.
class WriterMemory {
 public:
  /// Throws std::bad_alloc.
  WriterMemory(simt::MemorySpace& memory, const format::Geometry& geometry) : memory_(memory) {
    Writer writer{};
    writer.segments.segments = take<SegmentInfo>(geometry.main_segments);
    writer.segments.dirty = take<uint32_t>(simt::divide_up(geometry.sit_blocks_used(), 32));
    writer.summaries = take<format::SummaryBlock>(format::kLogCount);
    writer.checkpoint = take<uint8_t>((1 + uint64_t{geometry.cp_payload}) * kBlockBytes);
    writer.pages = take<uint8_t>(uint64_t{kWriterPages} * kBlockBytes);
    writer_ = take<Writer>(1);
    memory.write_object(writer_, writer);
  }
  ~WriterMemory() {
    for (void* allocation : allocations_) memory_.release(allocation);
  }
  WriterMemory(const WriterMemory&) = delete;
  WriterMemory& operator=(const WriterMemory&) = delete;

  Writer* writer() const { return writer_; }

 private:
  template <typename T>
  T* take(uint64_t count) {
    T* const array = memory_.allocate_array<T>(count);
    allocations_.push_back(array);
    return array;
  }

  simt::MemorySpace& memory_;
  std::vector<void*> allocations_;
  Writer* writer_ = nullptr;
};

}  // namespace gofs::f2fs
