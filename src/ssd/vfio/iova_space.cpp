// SPDX-License-Identifier: Apache-2.0
#include "ssd/vfio/iova_space.h"

#include <algorithm>

namespace gofs::ssd::vfio {

IovaSpace::IovaSpace(const std::vector<IovaRange>& allowed) {
  for (const IovaRange& range : allowed) {
    const IovaRange cut = {std::max(range.first, kFirst), std::min(range.last, kLast)};
    if (cut.first < cut.last) allowed_.push_back(cut);
  }
  std::sort(allowed_.begin(), allowed_.end(),
            [](const IovaRange& a, const IovaRange& b) { return a.first < b.first; });
}

std::vector<IovaRange> IovaSpace::cautious_ranges() {
  constexpr uint64_t kInterruptsFirst = 0xfee00000;
  constexpr uint64_t kInterruptsLast = 0xfeefffff;
  return {{0, kInterruptsFirst - 1}, {kInterruptsLast + 1, (uint64_t{1} << 39) - 1}};
}

std::optional<uint64_t> IovaSpace::take(uint64_t bytes) {
  if (bytes == 0 || bytes % kPageBytes != 0 || bytes > kLast) return std::nullopt;
  const uint64_t alignment = bytes >= kHugePageBytes ? kHugePageBytes : kPageBytes;
  for (const IovaRange& range : allowed_) {
    uint64_t first = range.first;
    for (;;) {
      first = (first + alignment - 1) / alignment * alignment;
      if (first > range.last || range.last - first < bytes - 1) break;
      // The taken range that begins last before the end of this one is the only one in the way.
      auto next = taken_.lower_bound(first + bytes);
      if (next == taken_.begin()) {
        taken_[first] = bytes;
        return first;
      }
      --next;
      const uint64_t end = next->first + next->second;
      if (end <= first) {
        taken_[first] = bytes;
        return first;
      }
      first = end;
    }
  }
  return std::nullopt;
}

bool IovaSpace::release(uint64_t first, uint64_t bytes) {
  const auto found = taken_.find(first);
  if (found == taken_.end() || found->second != bytes) return false;
  taken_.erase(found);
  return true;
}

}  // namespace gofs::ssd::vfio
