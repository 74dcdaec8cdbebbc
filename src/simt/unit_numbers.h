// SPDX-License-Identifier: Apache-2.0
//
// What the lanes of a warp have, cut into units that are numbered through, so that the warp can
// take them up side by side whoever has how many.
#pragma once

#include "simt/warp.h"

namespace gofs::simt {

/// Which lane's range a unit is of, and where in it.
struct UnitPlace {
  uint32_t owner;  // rank
  uint32_t offset_units;
};

/// How the units of all lanes' ranges are numbered through.
class UnitNumbers {
 public:
  /// Each lane has `units`; those in `lanes`, at least one, and no others have some. Collective.
  GOFS_HD UnitNumbers(AnyWarp auto warp, uint32_t lanes, uint32_t units) {
    // Most often lanes that follow each other have as many each, and that is a power of two.
    const uint32_t each = warp.shfl(units, 0);
    const bool as_many = (lanes & (lanes + 1)) == 0 && (each & (each - 1)) == 0;
    if (as_many && warp.all(units == each || units == 0)) {
      shift_ = lowest_bit(each);
      count_ = popcount(lanes) << shift_;
      return;
    }
    first_ = sum_before(warp, units, count_);
  }

  GOFS_HD uint32_t count() const { return count_; }

  /// Of unit `index` of each lane. Collective.
  GOFS_HD UnitPlace find(AnyWarp auto warp, uint32_t index) const {
    if (shift_ != kUnlike) return {index >> shift_, index & ((1u << shift_) - 1)};
    // The owner is the last lane whose first unit is at or before it.
    uint32_t owner = 0;
    for (uint32_t step = 16; step != 0; step /= 2) {
      const uint32_t other = simt::min(owner + step, warp.size() - 1);
      if (warp.shfl(first_, other) <= index) owner = other;
    }
    return {owner, index - warp.shfl(first_, owner)};
  }

 private:
  static constexpr uint32_t kUnlike = ~0u;

  uint32_t shift_ = kUnlike;
  uint32_t first_ = 0;
  uint32_t count_ = 0;
};

}  // namespace gofs::simt
