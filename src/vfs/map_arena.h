// SPDX-License-Identifier: Apache-2.0
//
// Memory for the block maps of open files: 4 bytes for each 4 KiB of a file, in one piece, so that
// finding a block is one load. Kept all zero while free. A file for which there is no room is read
// through its nodes. It is dealt in small units, since most files are small where many are open.
#pragma once

#include "simt/atomic.h"
#include "simt/clock.h"
#include "simt/warp.h"

namespace gofs::vfs {

struct MapArena {
  static constexpr uint32_t kUnitWords = 32;  // a line, the map of a file of up to 28 blocks

  uint32_t* words;
  uint32_t* used;       // a bit a unit
  uint32_t unit_count;  // a multiple of 32
  uint32_t lock;
  uint32_t cursor;   // where the last search ended
  uint32_t refused;  // so many units in a row, or more, there are not, until some come back; 0: not
                     // known

  GOFS_HD static uint32_t units_for(uint64_t words) {
    const uint64_t units = simt::divide_up(words, kUnitWords);
    return units > 0xffffffffu ? 0xffffffffu : static_cast<uint32_t>(units);
  }

  /// Zeroed memory for `count` words, or null. By one lane.
  GOFS_HD uint32_t* allocate(uint64_t count) {
    const uint32_t units = units_for(count);
    if (units == 0 || units > unit_count) return nullptr;
    lock_arena();
    uint32_t first = unit_count;
    if (refused == 0 || units < refused) {
      first = find(cursor, units);
      if (first == unit_count) first = find(0, units);
      if (first == unit_count) refused = units;
    }
    if (first != unit_count) {
      mark(first, units, true);
      cursor = first + units == unit_count ? 0 : first + units;
    }
    simt::unlock(lock);
    return first == unit_count ? nullptr : words + uint64_t{first} * kUnitWords;
  }

  /// Gives memory back; it is zero again. By one lane.
  GOFS_HD void release(uint32_t* memory, uint64_t count) {
    lock_arena();
    mark(static_cast<uint32_t>(static_cast<uint64_t>(memory - words) / kUnitWords),
         units_for(count), false);
    refused = 0;
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
  /// The first of so many free ones in a row, from unit `from` on, or unit_count. A word of bits at
  /// a time, or a few.
  GOFS_HD uint32_t find(uint32_t from, uint32_t units) const {
    uint32_t run = 0;
    for (uint32_t unit = from; unit < unit_count;) {
      const uint32_t left = 32 - unit % 32;  // in this word
      const uint32_t bits = used[unit / 32] >> unit % 32;
      const uint32_t free = bits == 0 ? left : simt::lowest_bit(bits);
      run += free;
      if (run >= units) return unit + free - run;
      unit += free;
      if (free == left) continue;
      const uint32_t rest = ~(bits >> free);
      unit += rest == 0 ? 32 : simt::lowest_bit(rest);
      run = 0;
    }
    return unit_count;
  }
  GOFS_HD void mark(uint32_t first, uint32_t units, bool taken) {
    const uint32_t end = first + units;
    for (uint32_t unit = first; unit < end;) {
      const uint32_t count = simt::min(end - unit, 32 - unit % 32);
      const uint32_t bits = (count == 32 ? ~0u : (1u << count) - 1) << unit % 32;
      used[unit / 32] = taken ? used[unit / 32] | bits : used[unit / 32] & ~bits;
      unit += count;
    }
  }
};

}  // namespace gofs::vfs
