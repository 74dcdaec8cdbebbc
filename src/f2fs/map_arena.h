// SPDX-License-Identifier: Apache-2.0
//
// Memory for the maps of open files (file_maps.h). It is kept all zero while free, and dealt in
// small units, since most files are small where many are open. A part of a map that finds no room
// is done without: its blocks are looked up in the file's nodes.
//
// One unit is taken by an atomic on its bit, each processor where it has found one last, from the
// end on; so thousands of warps that open small files do not wait for each other. Several in a row
// are looked for under a lock, from the beginning on.
#pragma once

#include "simt/atomic.h"
#include "simt/clock.h"
#include "simt/warp.h"

namespace gofs::f2fs {

struct MapArena {
  static constexpr uint32_t kUnitWords = 32;  // a line, the map of a file of up to 32 blocks
  static constexpr uint32_t kNoHome = ~0u;
  static constexpr uint64_t kRefusalNs = 10'000'000;

  uint32_t* words;
  uint32_t* used;       // a bit a unit [F7]
  uint32_t unit_count;  // a multiple of 32
  uint32_t lock;
  uint32_t cursor;   // where the last search under the lock ended
  uint32_t refused;  // so many contiguous units, or more, there are not, until some are released;
                     // 0: not known
  /// And until then: who has released some at that moment may not have seen that it counts.
  uint64_t refused_until_ns;
  static constexpr uint32_t kHints = 256;
  static constexpr uint32_t kWordsApart = 4;  // processors begin so far from each other
  uint32_t hints[kHints];  // for processors: how many words of bits before the last one to begin,
                           // and 1; 0: not known

  GOFS_HD static uint32_t units_for(uint64_t words) {
    const uint64_t units = simt::divide_up(words, kUnitWords);
    return units > 0xffffffffu ? 0xffffffffu : static_cast<uint32_t>(units);
  }

  /// Zeroed memory for `count` words, or null. By one lane.
  GOFS_HD uint32_t* allocate(uint64_t count) {
    const uint32_t units = units_for(count);
    if (units == 0 || units > unit_count) return nullptr;
    uint32_t first = 0;
    if (units == 1) {
      first = take_one();
    } else {
      lock_arena();
      first = take(units);
      simt::unlock(lock);
    }
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
    if (units == 1) {
      settle_one(home);
      return;
    }
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
    const auto first = static_cast<uint32_t>(static_cast<uint64_t>(memory - words) / kUnitWords);
    unmark(first, units_for(count));
    if (simt::load_relaxed(refused) != 0) simt::store_relaxed(refused, 0u);
  }

  /// Bytes that are in use. By one lane.
  GOFS_HD uint64_t bytes_used() {
    uint64_t units = 0;
    for (uint32_t i = 0; i < unit_count / 32; ++i) {
      units += simt::popcount(simt::load_relaxed(used[i]));
    }
    return units * kUnitWords * sizeof(uint32_t);
  }

 private:
  /// A unit, or unit_count.
  GOFS_HD uint32_t take_one() {
    const uint32_t count = unit_count / 32;
    if (count == 0 || is_refused(1)) return unit_count;
    const uint32_t processor = simt::processor_id();
    uint32_t& hint = hints[processor % kHints];
    const uint32_t known = simt::load_relaxed(hint);
    const uint32_t start = known != 0 ? known - 1 : kWordsApart * processor % count;
    for (uint32_t step = 0; step < count; ++step) {
      const uint32_t back = (start + step) % count;
      simt::AtomicRef<uint32_t> word(used[count - 1 - back]);
      for (uint32_t seen = word.load(simt::memory_order_relaxed); ~seen != 0;) {
        const uint32_t bit = ~seen & (seen + 1);                // the lowest that is free
        seen = word.fetch_or(bit, simt::memory_order_acquire);  // [F7]
        if ((seen & bit) != 0) continue;
        if (step != 0) simt::store_relaxed(hint, back + 1);
        return 32 * (count - 1 - back) + simt::lowest_bit(bit);
      }
    }
    refuse(1);
    return unit_count;
  }
  GOFS_HD bool is_refused(uint32_t units) const {
    const uint32_t from = simt::load_relaxed(refused);
    return from != 0 && units >= from && simt::now_ns() < simt::load_relaxed(refused_until_ns);
  }
  GOFS_HD void refuse(uint32_t units) {
    simt::store_relaxed(refused_until_ns, simt::now_ns() + kRefusalNs);
    simt::store_relaxed(refused, units);
  }
  /// settle() of one unit.
  GOFS_HD void settle_one(uint32_t& home) {
    if (simt::load_relaxed(home) != 0) return;
    const uint32_t first = take_one();
    uint32_t undecided = 0;
    const uint32_t decision = first == unit_count ? kNoHome : first + 1;
    const bool decided = simt::AtomicRef<uint32_t>(home).compare_exchange_strong(
        undecided, decision, simt::memory_order_release, simt::memory_order_relaxed);  // [F3]
    if (!decided && first != unit_count) unmark(first, 1);
  }

  /// So many contiguous units, or unit_count. Under the lock.
  GOFS_HD uint32_t take(uint32_t units) {
    if (is_refused(units)) return unit_count;
    for (;;) {
      uint32_t first = find(cursor, units);
      if (first == unit_count) first = find(0, units);
      if (first == unit_count) {
        // Who has released some since then does not know that it counts.
        refuse(units);
        first = find(0, units);
        if (first == unit_count) return unit_count;
        simt::store_relaxed(refused, 0u);
      }
      if (!mark(first, units)) continue;  // single ones of these were taken meanwhile
      cursor = first + units == unit_count ? 0 : first + units;
      return first;
    }
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
      const uint32_t bits = simt::load_relaxed(used[unit / 32]) >> unit % 32;
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
  /// The units from `unit` on, and before `end`, that lie in one word of bits: how many.
  GOFS_HD static uint32_t units_in_word(uint32_t unit, uint32_t end) {
    return simt::min(end - unit, 32 - unit % 32);
  }
  GOFS_HD static uint32_t bits_of(uint32_t unit, uint32_t count) {
    return (count == 32 ? ~0u : (1u << count) - 1) << unit % 32;
  }
  /// Takes units that were free. False: not all of them are any more, and none is taken.
  GOFS_HD bool mark(uint32_t first, uint32_t units) {
    const uint32_t end = first + units;
    for (uint32_t unit = first; unit < end;) {
      const uint32_t count = units_in_word(unit, end);
      const uint32_t bits = bits_of(unit, count);
      simt::AtomicRef<uint32_t> word(used[unit / 32]);
      const uint32_t before = word.fetch_or(bits, simt::memory_order_acquire);  // [F7]
      if ((before & bits) != 0) {
        word.fetch_and(~(bits & ~before), simt::memory_order_release);  // [F7]
        unmark(first, unit - first);
        return false;
      }
      unit += count;
    }
    return true;
  }
  GOFS_HD void unmark(uint32_t first, uint32_t units) {
    const uint32_t end = first + units;
    for (uint32_t unit = first; unit < end;) {
      const uint32_t count = units_in_word(unit, end);
      simt::AtomicRef<uint32_t>(used[unit / 32])
          .fetch_and(~bits_of(unit, count), simt::memory_order_release);  // [F7]
      unit += count;
    }
  }
};

}  // namespace gofs::f2fs
