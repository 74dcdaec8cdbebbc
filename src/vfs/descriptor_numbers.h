// SPDX-License-Identifier: Apache-2.0
//
// Which descriptor numbers are taken: a bit for each, and for each processor where its warps found
// a free one last. So however many files are open, who opens one looks at a word or two, and those
// of different processors keep out of each other's way.
#pragma once

#include <cerrno>

#include "simt/atomic.h"
#include "simt/warp.h"

namespace gofs::vfs {

inline constexpr uint32_t kNumberCursors = 256;

struct DescriptorNumbers {
  uint32_t* taken;    // a bit for each number; those behind the last one are taken for ever
  uint32_t words;     // of `taken`
  uint32_t* cursors;  // kNumberCursors: words in which processors look first
};

/// What the last word of `taken` is while none of `count` numbers is taken.
GOFS_HD constexpr uint32_t numbers_beyond(uint32_t count) {
  return count % 32 == 0 ? 0 : ~0u << count % 32;
}

/// Takes a number that is not in use, or -EMFILE. Any lane.
GOFS_HD inline int take_number(const DescriptorNumbers& numbers) {
  uint32_t& cursor = numbers.cursors[simt::processor_id() % kNumberCursors];
  const uint32_t start = simt::load_relaxed(cursor);
  for (uint32_t step = 0; step < numbers.words; ++step) {
    const uint32_t index =
        start + step < numbers.words ? start + step : start + step - numbers.words;
    simt::AtomicRef<uint32_t> word(numbers.taken[index]);
    for (uint32_t seen = word.load(simt::memory_order_relaxed); ~seen != 0;) {
      const uint32_t bit = ~seen & (seen + 1);                // the lowest that is free
      seen = word.fetch_or(bit, simt::memory_order_acquire);  // [V17]
      if ((seen & bit) == 0) {
        if (step != 0) simt::store_relaxed(cursor, index);
        return static_cast<int>(32 * index + simt::lowest_bit(bit));
      }
    }
  }
  return -EMFILE;
}

/// Gives a number back that take_number() gave. Any lane.
GOFS_HD inline void release_number(const DescriptorNumbers& numbers, uint32_t number) {
  simt::AtomicRef<uint32_t>(numbers.taken[number / 32])
      .fetch_and(~(1u << number % 32), simt::memory_order_release);  // [V17]
}

}  // namespace gofs::vfs
