// SPDX-License-Identifier: Apache-2.0
//
// Where a ticket falls in a ring of any depth. Tickets count for ever; a ring position is a
// ticket's remainder, its lap the quotient.
#pragma once

#include "simt/platform.h"

namespace gofs::nvme {

struct RingPosition {
  uint32_t index;
  uint32_t lap;  // low 32 bits: laps are compared for equality or by signed distance

  /// The position `distance` further on.
  GOFS_HD RingPosition plus(uint32_t distance, uint32_t depth) const {
    RingPosition next{index + distance, lap};
    while (next.index >= depth) {
      next.index -= depth;
      ++next.lap;
    }
    return next;
  }
};

/// Splits tickets without a 64-bit division where the depth is a power of two.
struct RingShape {
  uint32_t depth;
  uint32_t shift;  // log2 of depth, or kNoShift

  static constexpr uint32_t kNoShift = 0xff;

  GOFS_HD static RingShape of(uint32_t depth) {
    uint32_t shift = 0;
    while ((uint64_t{1} << shift) < depth) ++shift;
    return RingShape{depth, (uint64_t{1} << shift) == depth ? shift : kNoShift};
  }
  GOFS_HD RingPosition position(uint64_t ticket) const {
    if (shift != kNoShift) {
      return RingPosition{static_cast<uint32_t>(ticket) & (depth - 1),
                          static_cast<uint32_t>(ticket >> shift)};
    }
    const uint64_t lap = ticket / depth;
    return RingPosition{static_cast<uint32_t>(ticket - lap * depth), static_cast<uint32_t>(lap)};
  }
};

}  // namespace gofs::nvme
