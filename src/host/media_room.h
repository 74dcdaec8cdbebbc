// SPDX-License-Identifier: Apache-2.0
//
// Which segments of a volume can be written where its SSDs have no memory for all of it: a sparse
// image on a GPU, whose holes are filled from a bounded number of spare chunks.
#pragma once

#include <cstdint>
#include <vector>

#include "format/geometry.h"
#include "format/stripe.h"
#include "kernels/backend.h"

namespace gofs::host {

struct RoomPlan {
  /// A bit for each main segment that is not to be taken. Empty: all of them can be.
  std::vector<uint32_t> withheld;
  uint32_t withheld_segments = 0;
  /// Bytes of spare chunks that one of the SSDs lacks, without which no checkpoint is safe. 0:
  /// none.
  uint64_t lacking_bytes = 0;
};

/// Deals out the spare chunks: to what every checkpoint writes first, then to segments, with what
/// goes into the SSA for them. So those that are not withheld can be written wholly, whatever is
/// written to them in which order. `rooms` of the SSDs in the order of the stripe; null: it can be
/// written everywhere.
RoomPlan plan_room(const format::Geometry& geometry, const format::Stripe& stripe,
                   const std::vector<const kernels::MediaRoom*>& rooms);

}  // namespace gofs::host
