// SPDX-License-Identifier: Apache-2.0
#include "ssd/dma_memory.h"

#include <algorithm>
#include <cstring>
#include <iterator>
#include <new>

namespace gofs::ssd {

DmaMemory::DmaMemory(MemorySource& source) : base_(source.warp_base()), host_base_(source.base()) {
  const uint64_t bytes = source.bytes() / kBlockBytes * kBlockBytes;
  if (bytes != 0) free_.emplace(0, bytes);
}

void DmaMemory::write(void* target, const void* host_source, size_t bytes) {
  std::memcpy(host_address(target), host_source, bytes);
  __sync_synchronize();  // another device's BAR combines writes
}

void DmaMemory::read(void* host_target, const void* source, size_t bytes) {
  std::memcpy(host_target, host_address(source), bytes);
}

simt::MemorySpace::Taken DmaMemory::take(size_t bytes) {
  if (bytes > SIZE_MAX - kBlockBytes) throw std::bad_alloc();
  const uint64_t wanted = std::max<uint64_t>(simt::align_up(bytes, kBlockBytes), kBlockBytes);
  const auto found = std::find_if(free_.begin(), free_.end(),
                                  [&](const auto& range) { return range.second >= wanted; });
  if (found == free_.end()) throw std::bad_alloc();
  const auto [offset, size] = *found;
  taken_.emplace(offset, wanted);
  free_.erase(found);
  if (size != wanted) free_.emplace(offset + wanted, size - wanted);
  bytes_taken_.fetch_add(wanted, std::memory_order_relaxed);
  std::memset(host_base_ + offset, 0, wanted);
  __sync_synchronize();
  return {base_ + offset, wanted};
}

void DmaMemory::release_taken(void* memory) {
  const auto taken = taken_.find(static_cast<uint64_t>(static_cast<uint8_t*>(memory) - base_));
  if (taken == taken_.end()) return;
  bytes_taken_.fetch_sub(taken->second, std::memory_order_relaxed);
  const auto range = free_.insert(*taken).first;
  taken_.erase(taken);
  // Neighbours that are free become one with it.
  const auto next = std::next(range);
  if (next != free_.end() && range->first + range->second == next->first) {
    range->second += next->second;
    free_.erase(next);
  }
  if (range == free_.begin()) return;
  const auto before = std::prev(range);
  if (before->first + before->second == range->first) {
    before->second += range->second;
    free_.erase(range);
  }
}

}  // namespace gofs::ssd
