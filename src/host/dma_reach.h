// SPDX-License-Identifier: Apache-2.0
//
// Memory that a controller reaches, for the driver: a source of it for queues and staging areas,
// and the map (ssd/dma_map.h) that says what else it reaches, and by which addresses.
#pragma once

#include <memory>
#include <mutex>
#include <string>

#include "kernels/backend.h"
#include "ssd/dma_map.h"
#include "ssd/dma_memory.h"
#include "ssd/memory_source.h"

namespace gofs::host {

class DmaReach {
 public:
  /// The backend's warps reach `source` from now on. `name` begins errors. Throws
  /// std::system_error, std::bad_alloc.
  DmaReach(kernels::Backend& backend, std::unique_ptr<ssd::MemorySource> source,
           const std::string& name);
  /// After let_go().
  ~DmaReach();
  DmaReach(const DmaReach&) = delete;
  DmaReach& operator=(const DmaReach&) = delete;

  ssd::MemorySource& source() { return *source_; }
  ssd::DmaMemory& memory() { return memory_; }
  /// For the driver. The source is its first range, at the address that place_source() has named.
  const ssd::DmaMap* map() const { return placed_; }

  /// The controller knows the source by addresses from `address` on. Before anything is added.
  void place_source(uint64_t address);
  /// Whether there is room for another range.
  bool has_room() const { return map_.count < ssd::DmaMap::kRangesMax; }
  /// What users see at [begin, end) the controller has at `address`. One thread at a time.
  void add(const ssd::DmaRange& range);
  /// Takes back what was added; the range that it was, or an empty one. It is not used any more.
  ssd::DmaRange remove(const void* begin);
  /// Warps use the source no more; the controller has lost it.
  void let_go();

 private:
  template <typename T>
  void publish(T& placed, T value);

  kernels::Backend& backend_;
  const std::unique_ptr<ssd::MemorySource> source_;
  bool reached_ = false;
  ssd::DmaMemory memory_;
  ssd::DmaMap map_{};              // what the warps' copy says
  ssd::DmaMap* placed_ = nullptr;  // in the backend's memory
};

/// Whether warps see it elsewhere than the host does: it is a GPU's.
inline bool is_of_gpu(const ssd::MemorySource& memory) {
  return memory.warp_base() != memory.base();
}

}  // namespace gofs::host
