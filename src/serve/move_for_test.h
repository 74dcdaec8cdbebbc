// SPDX-License-Identifier: Apache-2.0
//
// For tests only: a range that is moved by warps of a client which threads play.
#pragma once

#include <algorithm>
#include <mutex>

#include "serve/kernel_data.h"

namespace gofs::serve {

/// Moves a range by `warps` warps together, or by one where it may not be shared: what a group's
/// call answers. `launch(count, work)` runs `work(warp, index)` by so many warps.
template <typename Launch>
int64_t move_together(KernelChannel& channel, const MovedRange& range, uint32_t warps,
                      const Launch& launch) {
  std::mutex mutex;
  int64_t greatest = 0;
  launch(warps, [&](const simt::Warp& warp, uint32_t index) {
    const int64_t mine = move_share(warp, channel, range, index, warps);
    const std::lock_guard lock(mutex);
    greatest = std::max(greatest, mine);
  });
  const int64_t moved = moved_bytes(range, greatest);
  return moved == kByOneWarp && warps > 1 ? move_together(channel, range, 1, launch) : moved;
}

}  // namespace gofs::serve
