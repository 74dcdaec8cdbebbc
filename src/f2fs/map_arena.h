// SPDX-License-Identifier: Apache-2.0
//
// Memory for the maps of open files (file_maps.h). It is kept all zero while free, and dealt in
// small units, since most files are small where many are open. A part of a map that finds no room
// is done without: its blocks are looked up in the file's nodes.
#pragma once

#include "simt/atomic.h"
#include "simt/clock.h"
#include "simt/warp.h"

namespace gofs::f2fs {

struct MapArena {
  static constexpr uint32_t kUnitWords = 32;  // a line, the map of a file of up to 32 blocks
  static constexpr uint32_t kNoHome = ~0u;

  uint32_t* words;
  uint32_t* used;       // a bit a unit
  uint32_t unit_count;  // a multiple of 32
  uint32_t lock;
  uint32_t cursor;   // where the last search ended
  uint32_t refused;  // so many contiguous units, or more, there are not, until some are released;
                     // 0: not known

  GOFS_HD static uint32_t units_for(uint64_t words) {
    const uint64_t units = simt::divide_up(words, kUnitWords);
    return units > 0xffffffffu ? 0xffffffffu : static_cast<uint32_t>(units);
  }

  /// Zeroed memory for `count` words, or null. By one lane.
  GOFS_HD uint32_t* allocate(uint64_t count) {
    const uint32_t units = units_for(count);
    if (units == 0 || units > unit_count) return nullptr;
    lock_arena();
    const uint32_t first = take(units);
    simt::unlock(lock);
    return first == unit_count ? nullptr : words + uint64_t{first} * kUnitWords;
  }

  /// Whether the word `home` names memory: it is 0 until settle() has decided, then for ever the
  /// number of a unit + 1, or kNoHome.
  GOFS_HD static constexpr bool is_home(uint32_t home) { return home - 1 < kNoHome - 1; }
  GOFS_HD uint32_t home_at(const uint32_t* memory) const {
    return static_cast<uint32_t>(static_cast<uint64_t>(memory - words) / kUnitWords) + 1;
  }
  GOFS_HD uint32_t* at_home(uint32_t home) const { return words + uint64_t{home - 1} * kUnitWords; }

  /// Decides where the `count` words of `home` lie; 0 words, or more than there is room for, lie
  /// nowhere. By one lane; of several at the same time one decides.
  GOFS_HD void settle(uint32_t& home, uint64_t count) {
    const uint32_t units = units_for(count);
    simt::Backoff backoff;
    while (!simt::try_lock(lock)) {
      if (simt::load_relaxed(home) != 0) return;
      backoff.pause();
    }
    if (simt::load_relaxed(home) == 0) {
      const uint32_t first = units == 0 || units > unit_count ? unit_count : take(units);
      simt::store_release(home, first == unit_count ? kNoHome : first + 1);  // [F3]
    }
    simt::unlock(lock);
  }

  /// Releases memory; it is zero again. By one lane.
  GOFS_HD void release(uint32_t* memory, uint64_t count) {
    lock_arena();
    mark(static_cast<uint32_t>(static_cast<uint64_t>(memory - words) / kUnitWords),
         units_for(count), false);
    refused = 0;
    simt::unlock(lock);
  }

  /// Bytes that are in use. By one lane.
  GOFS_HD uint64_t bytes_used() {
    lock_arena();
    uint64_t units = 0;
    for (uint32_t i = 0; i < unit_count / 32; ++i) units += simt::popcount(used[i]);
    simt::unlock(lock);
    return units * kUnitWords * sizeof(uint32_t);
  }

 private:
  /// So many contiguous units, or unit_count. Under the lock.
  GOFS_HD uint32_t take(uint32_t units) {
    if (refused != 0 && units >= refused) return unit_count;
    uint32_t first = find(cursor, units);
    if (first == unit_count) first = find(0, units);
    if (first == unit_count) {
      refused = units;
      return unit_count;
    }
    mark(first, units, true);
    cursor = first + units == unit_count ? 0 : first + units;
    return first;
  }
  GOFS_HD void lock_arena() {
    simt::Backoff backoff;
    // Held for a search at the most, by a lane that waits for nothing.
    while (!simt::try_lock(lock)) backoff.pause();
  }
  /// The first of so many contiguous free ones, from unit `from` on, or unit_count. A word of bits
  /// at a time, or a few.
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

}  // namespace gofs::f2fs
