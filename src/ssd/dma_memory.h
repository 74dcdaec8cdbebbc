// SPDX-License-Identifier: Apache-2.0
//
// A MemorySource dealt out: what a physical controller reaches, for queues, admin data and staging
// areas. Host only.
#pragma once

#include <atomic>
#include <map>

#include "simt/memory.h"
#include "ssd/memory_source.h"

namespace gofs::ssd {

/// First fit, in blocks of 4 KiB. Pointers are those of warps.
class DmaMemory final : public simt::MemorySpace {
 public:
  /// `source` outlives it.
  explicit DmaMemory(MemorySource& source);
  uint64_t bytes_taken() const override { return bytes_taken_.load(std::memory_order_relaxed); }
  void write(void* target, const void* host_source, size_t bytes) override;
  void read(void* host_target, const void* source, size_t bytes) override;

 protected:
  Taken take(size_t bytes) override;
  void release_taken(void* memory) override;

 private:
  /// Where the host sees it.
  uint8_t* host_address(const void* memory) const {
    return host_base_ + (static_cast<const uint8_t*>(memory) - base_);
  }

  uint8_t* const base_;
  uint8_t* const host_base_;
  std::map<uint64_t, uint64_t> free_;   // bytes of each free range, by its offset
  std::map<uint64_t, uint64_t> taken_;  // and of each that is not
  std::atomic<uint64_t> bytes_taken_{0};
};

}  // namespace gofs::ssd
