// SPDX-License-Identifier: Apache-2.0
//
// Which addresses a device is given for memory: I/O virtual addresses (IOVA), which the IOMMU
// translates. Each lies in a range that the IOMMU allows and in no other's. Not for several threads
// at once. Host only.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <vector>

namespace gofs::ssd::vfio {

struct IovaRange {
  uint64_t first;
  uint64_t last;  // the last byte
};

class IovaSpace {
 public:
  static constexpr uint64_t kPageBytes = 4096;
  static constexpr uint64_t kHugePageBytes = uint64_t{2} << 20;
  /// Nothing lies below: 0 is never given out.
  static constexpr uint64_t kFirst = kHugePageBytes;
  /// An address of a physical page has at most 52 bits, and so have a PRP's consumers in practice.
  static constexpr uint64_t kLast = (uint64_t{1} << 52) - 1;

  explicit IovaSpace(const std::vector<IovaRange>& allowed);

  /// What type1 without its list of ranges can be trusted with: 39 bits, as IOMMUs with three
  /// levels of tables have, without the window to which interrupts are written.
  static std::vector<IovaRange> cautious_ranges();

  /// The lowest free range of so many bytes, a multiple of 4 KiB; from 2 MiB on it starts at a
  /// multiple of that, so that large pages can be used. Nothing if there is no room.
  std::optional<uint64_t> take(uint64_t bytes);
  /// One that take() gave; false if it is none.
  bool release(uint64_t first, uint64_t bytes);

 private:
  std::vector<IovaRange> allowed_;
  std::map<uint64_t, uint64_t> taken_;  // first -> bytes
};

}  // namespace gofs::ssd::vfio
