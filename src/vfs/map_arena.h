// SPDX-License-Identifier: Apache-2.0
//
// Memory for the block maps of open files: 4 bytes for each 4 KiB of a file, in one piece, so that
// finding a block is one load. Kept all zero while free. A file for which there is no room is read
// through its nodes.
#pragma once

#include "simt/atomic.h"
#include "simt/clock.h"
#include "simt/warp.h"

namespace gofs::vfs {

struct MapArena {
  static constexpr uint32_t kUnitWords = 1024;

  uint32_t* words;
  uint32_t* used;       // a bit a unit
  uint32_t unit_count;  // a multiple of 32
  uint32_t lock;
  uint32_t cursor;  // where the last search ended

  GOFS_HD static uint32_t units_for(uint64_t words) {
    const uint64_t units = simt::divide_up(words, kUnitWords);
    return units > 0xffffffffu ? 0xffffffffu : static_cast<uint32_t>(units);
  }

  /// Zeroed memory for `count` words, or null. By one lane.
  GOFS_HD uint32_t* allocate(uint64_t count) {
    const uint32_t units = units_for(count);
    if (units == 0 || units > unit_count) return nullptr;
    lock_arena();
    uint32_t* found = nullptr;
    // From the cursor to the end, then from the start.
    for (uint32_t turn = 0; turn < 2 && found == nullptr; ++turn) {
      uint32_t run = 0;
      for (uint32_t unit = turn == 0 ? cursor : 0; unit < unit_count; ++unit) {
        if (unit % 32 == 0 && used[unit / 32] == ~0u) {
          run = 0;
          unit += 31;
          continue;
        }
        run = (used[unit / 32] >> (unit % 32) & 1u) == 0 ? run + 1 : 0;
        if (run == units) {
          const uint32_t first = unit + 1 - units;
          mark(first, units, true);
          cursor = unit + 1 == unit_count ? 0 : unit + 1;
          found = words + uint64_t{first} * kUnitWords;
          break;
        }
      }
    }
    simt::unlock(lock);
    return found;
  }

  /// Gives memory back; it is zero again. By one lane.
  GOFS_HD void release(uint32_t* memory, uint64_t count) {
    lock_arena();
    mark(static_cast<uint32_t>(static_cast<uint64_t>(memory - words) / kUnitWords),
         units_for(count), false);
    simt::unlock(lock);
  }

  /// Bytes that are somebody's. By one lane.
  GOFS_HD uint64_t bytes_used() {
    lock_arena();
    uint64_t units = 0;
    for (uint32_t i = 0; i < unit_count / 32; ++i) units += simt::popcount(used[i]);
    simt::unlock(lock);
    return units * kUnitWords * sizeof(uint32_t);
  }

 private:
  GOFS_HD void lock_arena() {
    simt::Backoff backoff;
    // Held for a search at the most, by a lane that waits for nothing.
    while (!simt::try_lock(lock)) backoff.pause();
  }
  GOFS_HD void mark(uint32_t first, uint32_t units, bool taken) {
    for (uint32_t unit = first; unit < first + units; ++unit) {
      const uint32_t bit = 1u << (unit % 32);
      used[unit / 32] = taken ? used[unit / 32] | bit : used[unit / 32] & ~bit;
    }
  }
};

}  // namespace gofs::vfs
