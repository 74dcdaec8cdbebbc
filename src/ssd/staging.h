// SPDX-License-Identifier: Apache-2.0
//
// The way of data that a physical controller cannot reach, such as buffers in a GPU's memory:
// each place of a queue's ring has an area that the controller reaches. What is to be written is
// copied there before the command is made known, what was read is copied on before its completion
// is handed to whoever waits. The layers above cannot tell; a command moves no more than an area
// holds. The driver calls both functions (nvme/submit.h, nvme/queue_pair.h).
#pragma once

#include "simt/copy_ranges.h"
#include "simt/warp.h"

namespace gofs::ssd {

/// Whose data is in an area. Written before the command is made known, good until it has completed.
struct StagedBuffer {
  uint8_t* buffer;  // null: the controller reaches it by itself
  uint32_t bytes;
  uint32_t is_read;  // not 0: the controller writes, and the buffer gets it
};

/// Of one queue. Constant once the queue is made.
struct Staging {
  uint8_t* areas;  // null: the controller reaches all memory
  StagedBuffer* buffers;
  const uint32_t* failure;  // of the device: not 0 once it fails, then nothing is copied any more
  uint32_t area_bytes;

  GOFS_HD uint8_t* area(uint32_t index) const { return areas + uint64_t{index} * area_bytes; }
  /// What the command in ring place `index` shall name instead of its buffer.
  GOFS_HD void* place_of(uint32_t index, void* buffer) const {
    return areas != nullptr && buffers[index].buffer != nullptr ? area(index) : buffer;
  }
};

/// Notes whose data each lane in `lanes` moves through the area of its ring place `index`, and
/// brings what is to be written there; `buffer.buffer` is null where the controller reaches it.
/// Collective; sync() before a command is made known.
GOFS_NOINLINE GOFS_HD inline void stage(simt::AnyWarp auto warp, const Staging& staging,
                                        uint32_t lanes, uint32_t index,
                                        const StagedBuffer& buffer) {
  const bool mine = (lanes >> warp.thread_rank() & 1u) != 0;
  if (mine) staging.buffers[index] = buffer;
  const bool brings = mine && buffer.buffer != nullptr && buffer.is_read == 0;
  const uint32_t lanes_that_bring = warp.ballot(brings);
  if (lanes_that_bring == 0) return;
  warp.sync();
  simt::copy_ranges(warp, lanes_that_bring,
                    {staging.area(mine ? index : 0), buffer.buffer, buffer.bytes});
}

/// Hands on what the commands in the ring places `index` of `lanes`, which have succeeded, have
/// read. Collective, by one warp at a time for a queue; sync() before their waiters see it.
GOFS_NOINLINE GOFS_HD inline void unstage(simt::AnyWarp auto warp, const Staging& staging,
                                          uint32_t lanes, uint32_t index) {
  const bool mine = (lanes >> warp.thread_rank() & 1u) != 0;
  StagedBuffer staged{nullptr, 0, 0};
  if (mine) staged = staging.buffers[index];
  const bool gets = staged.buffer != nullptr && staged.is_read != 0;
  const uint32_t lanes_that_get = warp.ballot(gets);
  if (lanes_that_get == 0) return;
  warp.sync();
  simt::copy_ranges(warp, lanes_that_get,
                    {staged.buffer, staging.area(mine ? index : 0), staged.bytes});
}

}  // namespace gofs::ssd
