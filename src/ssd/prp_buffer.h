// SPDX-License-Identifier: Apache-2.0
//
// A driver's buffer of scattered pages with its PRPs in any shape, and guards around the part that
// is used. For tests of ssd/ only.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <vector>

#include "ssd/test_driver.h"

namespace gofs::ssd {

class PrpBuffer {
 public:
  static constexpr uint32_t kEntriesPerPage = 512;

  /// `offset` is where the data starts in its first page; the list, if there is one, starts at
  /// entry `list_offset` of its page.
  PrpBuffer(TestMemory& memory, uint32_t offset, uint32_t bytes, uint32_t list_offset = 0)
      : offset_(offset), bytes_(bytes) {
    const uint32_t page_count = (offset + bytes + kBlockBytes - 1) / kBlockBytes;
    uint8_t* const block = memory.bytes(size_t{page_count} * kBlockBytes);
    // Backwards, so that no two neighbours of the transfer are neighbours in memory.
    for (uint32_t i = 0; i < page_count; ++i) {
      pages_.push_back(block + size_t{page_count - 1 - i} * kBlockBytes);
    }
    std::memset(block, kGuard, size_t{page_count} * kBlockBytes);
    prp1_ = address_of(pages_[0]) + offset;
    if (page_count == 2) prp2_ = address_of(pages_[1]);
    if (page_count > 2) build_list(memory, list_offset);
  }

  uint64_t prp1() const { return prp1_; }
  uint64_t prp2() const { return prp2_; }
  std::vector<uint64_t*>& list_pages() { return list_pages_; }

  void fill(const std::vector<uint8_t>& data) {
    for_each_part([&](uint8_t* part, uint32_t at, uint32_t count) {
      std::memcpy(part, data.data() + at, count);
    });
  }
  std::vector<uint8_t> collect() {
    std::vector<uint8_t> data(bytes_);
    for_each_part([&](const uint8_t* part, uint32_t at, uint32_t count) {
      std::memcpy(data.data() + at, part, count);
    });
    return data;
  }
  bool guards_intact() const {
    const uint8_t* const first = pages_.front();
    const uint8_t* const last = pages_.back();
    const uint32_t end = (offset_ + bytes_ - 1) % kBlockBytes + 1;
    const auto is_guard = [](uint8_t byte) { return byte == kGuard; };
    return std::all_of(first, first + offset_, is_guard) &&
           std::all_of(last + end, last + kBlockBytes, is_guard);
  }
  void set_prps(format::nvme::SubmissionEntry& entry) const {
    entry.prp1 = prp1_;
    entry.prp2 = prp2_;
  }

 private:
  static constexpr uint8_t kGuard = 0xee;

  template <typename Visit>
  void for_each_part(Visit visit) {
    uint32_t at = 0;
    for (size_t i = 0; i < pages_.size(); ++i) {
      const uint32_t begin = i == 0 ? offset_ : 0;
      const uint32_t count = std::min(bytes_ - at, kBlockBytes - begin);
      visit(pages_[i] + begin, at, count);
      at += count;
    }
  }

  void build_list(TestMemory& memory, uint32_t list_offset) {
    uint32_t index = list_offset;
    list_pages_.push_back(reinterpret_cast<uint64_t*>(memory.bytes(kBlockBytes)));
    prp2_ = address_of(list_pages_[0] + list_offset);
    for (size_t page = 1; page < pages_.size(); ++page) {
      const size_t left = pages_.size() - page;
      if (index == kEntriesPerPage - 1 && left > 1) {
        auto* const next = reinterpret_cast<uint64_t*>(memory.bytes(kBlockBytes));
        list_pages_.back()[index] = address_of(next);
        list_pages_.push_back(next);
        index = 0;
      }
      list_pages_.back()[index++] = address_of(pages_[page]);
    }
  }

  uint32_t offset_;
  uint32_t bytes_;
  uint64_t prp1_ = 0;
  uint64_t prp2_ = 0;
  std::vector<uint8_t*> pages_;
  std::vector<uint64_t*> list_pages_;
};

/// Bytes that differ from block to block and from seed to seed.
inline std::vector<uint8_t> pattern(size_t bytes, uint32_t seed) {
  std::vector<uint8_t> data(bytes);
  uint32_t state = seed * 2654435761u + 1;
  for (uint8_t& byte : data) {
    state = state * 1664525u + 1013904223u;
    byte = static_cast<uint8_t>(state >> 24);
  }
  return data;
}

}  // namespace gofs::ssd
