// SPDX-License-Identifier: Apache-2.0
//
// For tests only: range locks with a pool of rings of their own, and synthetic readers and writers
// of what such locks protect.
#pragma once

#include <gtest/gtest.h>

#include <atomic>
#include <memory>
#include <vector>

#include "host/image/pattern.h"
#include "simt/clock.h"
#include "vfs/block_queue.h"
#include "vfs/vfs_for_test.hpp"

namespace gofs::vfs {

inline constexpr uint64_t kLongNs = 60'000'000'000;
inline constexpr uint64_t kShortNs = 20'000'000;
inline constexpr uint32_t kNoneWaits = 0;

/// Locks as the file system keeps them: zeroed, with rings for some of them.
inline std::shared_ptr<RangeLock[]> make_locks(uint32_t count, uint32_t rings) {
  const auto arena = std::make_shared<TestArena>();
  auto* const pool = reinterpret_cast<RangeRings*>(arena->bytes(RangeRings::bytes_for(rings)));
  pool->count = rings;
  auto* const locks = reinterpret_cast<RangeLock*>(arena->bytes(count * sizeof(RangeLock)));
  for (uint32_t i = 0; i < count; ++i) locks[i].rings = pool;
  return {arena, locks};
}
inline std::shared_ptr<RangeLock> make_fresh_lock() {
  const auto locks = make_locks(1, 1);
  return {locks, locks.get()};
}

/// Has one warp take a lock: 0 or a negative errno.
inline int lock_alone(uint32_t width, RangeLock& lock, const ByteRange& range, bool exclusively,
                      uint64_t timeout_ns, RangeHold& hold) {
  int result = 0;
  run_alone(width, [&](const simt::Warp& warp) {
    RangeHold mine{};
    const auto deadline = simt::Deadline::after_ns(timeout_ns);
    const int error = exclusively ? lock_exclusive(warp, lock, range, deadline, mine)
                                  : lock_shared(warp, lock, range, deadline, mine);
    if (warp.thread_rank() == 0) {
      result = error;
      hold = mine;
    }
  });
  return result;
}

/// No thread holds anything: an exclusive lock of everything is granted at once.
inline void expect_free(RangeLock& lock) {
  const uint64_t counts = lock.whole_file != 0 ? detail::kOneWriter : 0;
  EXPECT_EQ(lock.holder_counts, counts);
  EXPECT_EQ(lock.ring_readers, 0u);
  EXPECT_EQ(lock.detached_count, 0u);
  RangeHold hold{};
  ASSERT_EQ(lock_exclusive(simt::Warp(), lock, {0, ~uint64_t{0} >> 1},
                           simt::Deadline::after_ns(kShortNs), hold),
            0);
  unlock_exclusive(simt::Warp(), lock, hold);
  EXPECT_EQ(lock.holder_counts, counts);
}

struct Storm {
  uint32_t readers;
  uint32_t writers;
  uint32_t turns;
  bool detaches = false;       // writers leave the ring, most often
  uint32_t block_writers = 0;  // who fill single words, one a lane
};

inline constexpr uint32_t kStormWords = 64;
using StormQueues = std::vector<BlockQueue>;

/// Holds `word` for the lane where it is its turn, and calls `fill()` then. Collective. False:
/// another thread reads, or writes otherwise.
template <typename Fill>
bool fill_queued(const simt::Warp& warp, RangeLock& lock, BlockQueue& queue, Fill fill) {
  if (!try_join_block_writers(warp, lock, kNoneWaits)) return false;
  const uint32_t ticket = detail::queue_up(queue);
  bool waiting = true;
  while (warp.any(waiting)) {
    const bool served = waiting && detail::is_served(queue, ticket);
    if (served) fill();
    if (served) detail::serve_next(simt::Release(), queue, ticket);
    if (served) waiting = false;
    simt::Backoff().pause();
  }
  leave_block_writers(warp, lock);
  return true;
}

/// Each lane fills a word of its own, again and again.
inline void fill_words(const simt::Warp& warp, RangeLock& lock, StormQueues& queues,
                       std::vector<uint64_t>& words, uint32_t index, uint32_t turns, uint64_t seed,
                       std::atomic<uint32_t>& wrong) {
  for (uint32_t turn = 0; turn < turns; ++turn) {
    const uint64_t first = image::pattern_word(seed + index, turn);
    const uint64_t word = (first + uint64_t{warp.thread_rank()} * 5) % kStormWords;
    const uint64_t stamp = uint64_t{index} << 32 | turn;
    const auto fill = [&] {
      words[word] = stamp;
      simt::Backoff().pause();
      if (words[word] != stamp) ++wrong;
    };
    // Half as many queues as words: two words share one.
    if (fill_queued(warp, lock, queues[word % queues.size()], fill)) continue;
    for (uint32_t lane = 0; lane < warp.size(); ++lane) {
      RangeHold hold{};
      const ByteRange range{warp.shfl(word, lane), 1};
      if (lock_exclusive(warp, lock, range, simt::Deadline::after_ns(kLongNs), hold) != 0) ++wrong;
      if (warp.thread_rank() == lane) fill();
      unlock_exclusive(warp, lock, hold);
    }
  }
}

/// Writers fill ranges of a row of words with a number of their own, readers look whether every
/// word they hold is what the last writer left, and whether it stays.
inline void run_storm(RangeLock& lock, uint32_t width, const Storm& storm, uint64_t seed) {
  std::vector<uint64_t> words(kStormWords);
  StormQueues queues(kStormWords / 2);
  std::atomic<uint32_t> wrong{0};
  const uint32_t others = storm.readers + storm.writers;
  run_crowd({others + storm.block_writers, width}, [&](const simt::Warp& warp, uint32_t index) {
    if (index >= others) {
      fill_words(warp, lock, queues, words, index, 4 * storm.turns, seed, wrong);
      return;
    }
    const bool writes = index < storm.writers;
    for (uint32_t turn = 0; turn < storm.turns; ++turn) {
      const uint64_t random = image::pattern_word(seed + index, turn);
      const uint64_t offset = random % kStormWords;
      const uint64_t bytes = (random >> 8) % (kStormWords - offset) + 1;
      const ByteRange range{offset, bytes};
      const simt::Deadline deadline = simt::Deadline::after_ns(kLongNs);
      RangeHold hold{};
      const int error = writes ? lock_exclusive(warp, lock, range, deadline, hold)
                               : lock_shared(warp, lock, range, deadline, hold);
      if (error != 0) {
        ++wrong;
        continue;
      }
      // Each lane its words, as the data of a read is dealt.
      const uint64_t stamp = uint64_t{index} << 32 | turn;
      uint32_t detached = kDetachedRanges;
      if (writes && storm.detaches && turn % 3 != 0 && !detach_lock(warp, lock, hold, detached)) {
        ++wrong;
      }
      const uint64_t first = offset + warp.thread_rank();
      for (uint64_t i = first; i < offset + bytes; i += warp.size()) {
        if (writes) words[i] = stamp;
      }
      if (turn % 4 == 0) simt::Backoff().pause();
      uint64_t seen = 0;
      for (uint64_t i = first; i < offset + bytes; i += warp.size()) {
        if (writes && words[i] != stamp) ++wrong;
        seen ^= words[i];
      }
      simt::Backoff().pause();
      for (uint64_t i = first; i < offset + bytes; i += warp.size()) seen ^= words[i];
      if (seen != 0) ++wrong;
      if (detached != kDetachedRanges) {
        unlock_detached(warp, lock, detached);
        continue;
      }
      writes ? unlock_exclusive(warp, lock, hold) : unlock_shared(warp, lock, hold);
    }
  });
  EXPECT_EQ(wrong, 0u) << "seed=" << seed;
}

}  // namespace gofs::vfs
