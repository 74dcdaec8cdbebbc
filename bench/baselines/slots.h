// SPDX-License-Identifier: Apache-2.0
//
// 4 KiB blocks in the device's memory that host threads read into or write from, and their stamps:
// the index of the block in the file, and a run's number behind it. The device looks for itself
// whether what it was given is right.
#pragma once

#include "format/little_endian.h"
#include "simt/atomic.h"
#include "simt/warp.h"

namespace gofs::bench {

/// Of a slot that holds no block of the file.
inline constexpr uint64_t kNoBlock = ~uint64_t{0};

struct SlotParams {
  uint8_t* buffers;
  const uint64_t* blocks;  // of each slot which block of the file it holds
  uint64_t count;          // of slots
  uint64_t run;            // 0 where it is not checked: of what a file held before
  uint64_t wrong;          // slots that hold something else
};

/// One lane.
GOFS_HD inline void put_block_stamp(uint8_t* data, uint64_t block, uint64_t run) {
  format::store_u64(data, block);
  format::store_u64(data + sizeof(uint64_t), run);
}

/// One lane.
GOFS_HD inline bool has_block_stamp(const uint8_t* data, uint64_t block, uint64_t run) {
  return format::load_u64(data) == block &&
         (run == 0 || format::load_u64(data + sizeof(uint64_t)) == run);
}

GOFS_HD inline void stamp_slots_body(simt::AnyWarp auto warp, uint32_t warp_index,
                                     uint32_t warp_count, SlotParams& params) {
  const uint64_t step = uint64_t{warp_count} * warp.size();
  for (uint64_t slot = uint64_t{warp_index} * warp.size() + warp.thread_rank(); slot < params.count;
       slot += step) {
    if (params.blocks[slot] == kNoBlock) continue;
    put_block_stamp(params.buffers + slot * kBlockBytes, params.blocks[slot], params.run);
  }
}

GOFS_HD inline void check_slots_body(simt::AnyWarp auto warp, uint32_t warp_index,
                                     uint32_t warp_count, SlotParams& params) {
  const uint64_t step = uint64_t{warp_count} * warp.size();
  uint64_t wrong = 0;
  for (uint64_t slot = uint64_t{warp_index} * warp.size() + warp.thread_rank(); slot < params.count;
       slot += step) {
    const uint64_t block = params.blocks[slot];
    if (block == kNoBlock) continue;
    if (!has_block_stamp(params.buffers + slot * kBlockBytes, block, params.run)) ++wrong;
  }
  warp.sync();
  wrong = simt::reduce_add(warp, wrong);
  if (warp.thread_rank() == 0 && wrong != 0) simt::add_relaxed(params.wrong, wrong);
}

}  // namespace gofs::bench
