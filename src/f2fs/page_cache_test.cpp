// SPDX-License-Identifier: Apache-2.0
//
// The page cache by itself: its states one by one, then tiny caches under many threads that load,
// pin, fail and evict. Pages are written and read by plain accesses, so that ThreadSanitizer sees
// every page that two could have at once.
#include "f2fs/page_cache.h"

#include <gtest/gtest.h>

#include <atomic>
#include <cstring>
#include <set>
#include <thread>
#include <vector>

#include "f2fs/page_pool.h"
#include "host/image/pattern.h"
#include "testing/ssd_rig.hpp"

namespace gofs::f2fs {
namespace {

using gofs::testing::run_crowd;
using gofs::testing::TestArena;

class CacheOwner {
 public:
  explicit CacheOwner(uint32_t frames) {
    const uint32_t sets = frames / kWays;
    cache_.sets = reinterpret_cast<FrameSet*>(arena_.bytes(sets * sizeof(FrameSet)));
    cache_.pages = arena_.bytes(uint64_t{frames} * kBlockBytes);
    cache_.set_mask = sets - 1;
    cache_.dirty_maps = reinterpret_cast<uint32_t*>(
        arena_.bytes(kPageKinds * cache_.map_words() * sizeof(uint32_t)));
  }
  PageCache& operator*() { return cache_; }

 private:
  TestArena arena_;
  PageCache cache_{};
};

uint64_t key_of(uint32_t block) { return page_key(PageKind::kBlock, block); }

uint32_t load(const PageCache& cache, uint32_t block) {
  const uint32_t frame = claim_frame(cache, key_of(block));
  if (frame != kNoFrame) publish_frame(cache, frame);
  return frame;
}

TEST(PageCacheTest, nothing_is_found_in_an_empty_cache) {
  CacheOwner cache(8);
  EXPECT_EQ((*cache).frame_count(), 8u);
  EXPECT_EQ(find_frame(*cache, key_of(0)), kNoFrame);
  EXPECT_EQ(find_frame(*cache, key_of(7)), kNoFrame);
}

TEST(PageCacheTest, a_page_can_be_pinned_when_it_is_published_and_not_before) {
  CacheOwner cache(8);
  const uint32_t frame = claim_frame(*cache, key_of(5));
  ASSERT_NE(frame, kNoFrame);
  EXPECT_EQ(find_frame(*cache, key_of(5)), frame);
  EXPECT_FALSE(pin_frame(*cache, frame, key_of(5)));
  EXPECT_EQ(claim_frame(*cache, key_of(5)), kNoFrame) << "claimed twice";
  publish_frame(*cache, frame);
  EXPECT_TRUE(pin_frame(*cache, frame, key_of(5)));
  EXPECT_FALSE(pin_frame(*cache, frame, key_of(6)));
  unpin(*cache, frame);
  unpin(*cache, frame);
  EXPECT_EQ((*cache).state(frame) & kPinMask, 0u);
  EXPECT_EQ(claim_frame(*cache, key_of(5)), kNoFrame) << "it is there already";
}

TEST(PageCacheTest, the_same_number_of_another_kind_is_another_page) {
  CacheOwner cache(8);
  ASSERT_NE(load(*cache, 9), kNoFrame);
  EXPECT_EQ(find_frame(*cache, page_key(PageKind::kNode, 9)), kNoFrame);
}

TEST(PageCacheTest, an_abandoned_page_is_gone_and_its_frame_free) {
  CacheOwner cache(8);
  for (uint32_t turn = 0; turn < 20; ++turn) {
    const uint32_t frame = claim_frame(*cache, key_of(3));
    ASSERT_NE(frame, kNoFrame);
    abandon_frame(*cache, frame);
    EXPECT_EQ(find_frame(*cache, key_of(3)), kNoFrame);
    EXPECT_EQ((*cache).state(frame), 0u);
  }
}

TEST(PageCacheTest, pinned_frames_stay_and_a_full_set_gives_none) {
  CacheOwner cache(8);
  std::set<uint32_t> frames;
  for (uint32_t block = 1; block <= 8; ++block) frames.insert(load(*cache, block));
  EXPECT_EQ(frames.size(), 8u);
  EXPECT_EQ(frames.count(kNoFrame), 0u);
  EXPECT_EQ(claim_frame(*cache, key_of(9)), kNoFrame);
  const uint32_t fifth = find_frame(*cache, key_of(5));
  unpin(*cache, fifth);
  EXPECT_EQ(claim_frame(*cache, key_of(9)), fifth);
  EXPECT_EQ(find_frame(*cache, key_of(5)), kNoFrame);
  EXPECT_FALSE(pin_frame(*cache, fifth, key_of(5)));
}

TEST(PageCacheTest, a_page_that_was_used_lately_outlives_those_that_were_not) {
  CacheOwner cache(8);
  for (uint32_t block = 1; block <= 8; ++block) unpin(*cache, load(*cache, block));
  const uint32_t used = find_frame(*cache, key_of(4));
  ASSERT_TRUE(pin_frame(*cache, used, key_of(4)));
  unpin(*cache, used);
  for (uint32_t block = 20; block < 27; ++block) {
    const uint32_t frame = load(*cache, block);
    ASSERT_NE(frame, kNoFrame);
    EXPECT_NE(frame, used);
    unpin(*cache, frame);
  }
  EXPECT_EQ(find_frame(*cache, key_of(4)), used);
  // But not for ever.
  for (uint32_t block = 30; block < 38; ++block) unpin(*cache, load(*cache, block));
  EXPECT_EQ(find_frame(*cache, key_of(4)), kNoFrame);
}

/// (frames, threads that may hold a pin at once)
struct Squeeze {
  uint32_t frames;
  uint32_t threads;
  uint32_t keys;
};

class PageCacheCrowdTest : public ::testing::TestWithParam<Squeeze> {};

INSTANTIATE_TEST_SUITE_P(sizes, PageCacheCrowdTest,
                         ::testing::Values(Squeeze{8, 4, 3}, Squeeze{8, 16, 40},
                                           Squeeze{64, 16, 100}, Squeeze{64, 8, 2000}),
                         [](const auto& test) {
                           return std::to_string(test.param.frames) + "_frames_" +
                                  std::to_string(test.param.threads) + "_threads_" +
                                  std::to_string(test.param.keys) + "_keys";
                         });

TEST_P(PageCacheCrowdTest, every_pinned_page_is_the_right_one_whole_and_nobody_is_stuck) {
  const Squeeze squeeze = GetParam();
  CacheOwner cache(squeeze.frames);
  std::atomic<uint64_t> loads{0};
  std::atomic<uint64_t> wrong{0};
  const uint64_t seed = gofs::testing::printed_seed();
  constexpr uint32_t kTurns = 250;
  run_crowd({squeeze.threads, 1}, [&](const simt::Warp&, uint32_t index) {
    for (uint32_t turn = 0; turn < kTurns; ++turn) {
      const uint64_t random = image::pattern_word(seed + index, turn);
      const auto block = static_cast<uint32_t>(random % squeeze.keys) + 1;
      const uint64_t key = key_of(block);
      bool fails = (random >> 32) % 8 == 0;  // the first attempt of some loads
      simt::Backoff backoff;
      for (;;) {
        uint32_t frame = find_frame(*cache, key);
        bool pinned = frame != kNoFrame && pin_frame(*cache, frame, key);
        if (!pinned) {
          frame = claim_frame(*cache, key);
          if (frame != kNoFrame) {
            uint8_t* const page = (*cache).page(frame);
            if (fails) {
              std::memset(page, 0xee, 64);
              abandon_frame(*cache, frame);
              fails = false;
              continue;
            }
            image::fill_pattern(block, 0, page, kBlockBytes);
            publish_frame(*cache, frame);
            ++loads;
            pinned = true;
          }
        }
        if (pinned) {
          const uint8_t* const page = (*cache).page(frame);
          for (uint32_t at = turn % 97; at < kBlockBytes; at += 97) {
            if (page[at] != image::pattern_byte(block, at)) ++wrong;
          }
          unpin(*cache, frame);
          break;
        }
        backoff.pause();
      }
    }
  });
  EXPECT_EQ(wrong, 0u);
  EXPECT_GE(loads, 1u);
  // Nothing is left pinned or loading, and no key is there twice.
  std::set<uint64_t> keys;
  for (uint32_t frame = 0; frame < squeeze.frames; ++frame) {
    EXPECT_EQ((*cache).state(frame) & (kPinMask | kFrameLoading), 0u) << frame;
    const uint64_t key = (*cache).sets[frame / kWays].keys[frame % kWays];
    if ((*cache).state(frame) != 0) {
      EXPECT_TRUE(keys.insert(key).second) << "twice: " << key;
    }
  }
}

// --- Pages that change. --------------------------------------------------------------------------

/// Loads a page and releases it.
uint32_t load_once(const PageCache& cache, uint64_t key) {
  const uint32_t frame = claim_frame(cache, key);
  if (frame != kNoFrame) {
    publish_frame(cache, frame);
    unpin(cache, frame);
  }
  return frame;
}

void change_once(PageCache& cache, uint32_t frame, uint64_t key) {
  ASSERT_TRUE(take_frame(cache, frame, key));
  release_frame(cache, frame, true);
}

/// `count` keys that belong to the same set.
std::vector<uint64_t> keys_of_one_set(const PageCache& cache, uint32_t count) {
  std::vector<uint64_t> keys;
  for (uint32_t block = 1; keys.size() < count; ++block) {
    if (cache.set_of(key_of(block)) == 1) keys.push_back(key_of(block));
  }
  return keys;
}

TEST(PageCacheTest, a_taken_page_is_exclusive_until_it_is_released) {
  CacheOwner cache(8);
  const uint64_t key = key_of(5);
  const uint32_t frame = load_once(*cache, key);
  ASSERT_TRUE(pin_frame(*cache, frame, key));
  EXPECT_FALSE(take_frame(*cache, frame, key)) << "it is pinned";
  EXPECT_FALSE(pin_frame(*cache, frame, key)) << "it is wanted";
  EXPECT_TRUE(pin_frame(*cache, frame, key, false));
  EXPECT_TRUE(pin_frame(*cache, frame, key)) << "it was not taken";
  unpin(*cache, frame);
  unpin(*cache, frame);
  unpin(*cache, frame);
  EXPECT_FALSE(take_frame(*cache, frame, key_of(6)));
  ASSERT_TRUE(take_frame(*cache, frame, key));
  EXPECT_FALSE(take_frame(*cache, frame, key));
  EXPECT_FALSE(pin_frame(*cache, frame, key));
  EXPECT_EQ(find_frame(*cache, key), frame);
  EXPECT_EQ(claim_frame(*cache, key), kNoFrame);
  release_frame(*cache, frame, true);
  EXPECT_TRUE(pin_frame(*cache, frame, key));
  unpin(*cache, frame);
  uint64_t found = 0;
  EXPECT_TRUE(is_dirty_page(*cache, frame, PageKind::kBlock, found));
  EXPECT_EQ(found, key);
  EXPECT_FALSE(is_dirty_page(*cache, frame, PageKind::kNode, found));
  EXPECT_FALSE(is_dirty_page(*cache, 8, PageKind::kBlock, found));
}

TEST(PageCacheTest, changed_pages_stay_and_the_next_go_to_other_sets) {
  CacheOwner cache(32);
  const std::vector<uint64_t> keys = keys_of_one_set(*cache, 33);
  std::set<uint32_t> frames;
  for (uint32_t i = 0; i < 32; ++i) {
    const uint32_t frame = load_once(*cache, keys[i]);
    ASSERT_NE(frame, kNoFrame) << i;
    change_once(*cache, frame, keys[i]);
    frames.insert(frame);
  }
  EXPECT_EQ(frames.size(), 32u);
  EXPECT_EQ(claim_frame(*cache, keys[32]), kNoFrame) << "nothing can be spared";
  for (uint32_t i = 0; i < 32; ++i) {
    const uint32_t frame = find_frame(*cache, keys[i]);
    ASSERT_TRUE(frames.count(frame)) << i;
    EXPECT_EQ(claim_frame(*cache, keys[i]), kNoFrame);
  }
  // What is written may go, wherever it is, and its place is then another's.
  const uint32_t far = find_frame(*cache, keys[20]);
  const uint32_t before = cleaned_count(*cache, keys[20]);
  clean_frame(*cache, far, keys[20]);
  EXPECT_NE(cleaned_count(*cache, keys[20]), before);
  EXPECT_EQ(load_once(*cache, keys[32]), far);
  EXPECT_EQ(find_frame(*cache, keys[32]), far);
  EXPECT_EQ(find_frame(*cache, keys[20]), kNoFrame);
  EXPECT_EQ((*cache).dirty, 31u);
  const uint32_t removed = find_frame(*cache, keys[7]);
  ASSERT_TRUE(take_frame(*cache, removed, keys[7]));
  invalidate_frame(*cache, removed);
  EXPECT_EQ(find_frame(*cache, keys[7]), kNoFrame);
  EXPECT_EQ((*cache).dirty, 30u);
  EXPECT_EQ((*cache).state(removed), 0u);
}

TEST(PageCacheTest, a_set_that_is_only_in_use_does_not_overflow) {
  CacheOwner cache(32);
  const std::vector<uint64_t> keys = keys_of_one_set(*cache, 9);
  for (uint32_t i = 0; i < 7; ++i) change_once(*cache, load_once(*cache, keys[i]), keys[i]);
  const uint32_t pinned = load_once(*cache, keys[7]);
  ASSERT_TRUE(pin_frame(*cache, pinned, keys[7]));
  EXPECT_EQ(claim_frame(*cache, keys[8]), kNoFrame);
  unpin(*cache, pinned);
  EXPECT_EQ(load_once(*cache, keys[8]), pinned);
}

/// A disk whose pages move each time they are written; what lies where one was is scribbled over.
struct MovingDisk {
  struct Page {
    uint32_t place = 0;               // 0 or 1
    uint32_t contents[2] = {0, ~0u};  // plain: ThreadSanitizer sees who reads at the wrong place
  };
  std::vector<Page> pages;
};

// Threads count in pages that others load, look at, write elsewhere and evict: no count is lost.
TEST(PageCacheTest, changes_survive_writing_and_eviction) {
  constexpr uint32_t kKeys = 40;
  constexpr uint32_t kThreads = 8;
  constexpr uint32_t kTurns = 400;
  CacheOwner cache(16);
  MovingDisk disk;
  disk.pages.resize(kKeys);
  std::vector<std::atomic<uint32_t>> wanted(kKeys);
  std::atomic<uint32_t> torn{0};
  const auto words = [&](uint32_t frame) {
    return reinterpret_cast<uint32_t*>((*cache).page(frame));
  };
  /// Writes a page, if it has changed and no thread uses it.
  const auto write = [&](uint32_t frame) {
    uint64_t key = 0;
    if (!is_dirty_page(*cache, frame, PageKind::kBlock, key)) return;
    if (!take_frame(*cache, frame, key)) return;
    if (is_dirty_page(*cache, frame, PageKind::kBlock, key)) {
      MovingDisk::Page& page = disk.pages[id_of(key)];
      const uint32_t now = simt::load_relaxed(page.place);
      page.contents[1 - now] = words(frame)[0];
      simt::store_relaxed(page.place, 1 - now);
      clean_frame(*cache, frame, key);
      page.contents[now] = ~0u;
    }
    release_frame(*cache, frame, false);
  };
  const uint64_t seed = gofs::testing::printed_seed();
  run_crowd({kThreads, 1}, [&](const simt::Warp&, uint32_t index) {
    simt::Backoff backoff;
    for (uint32_t turn = 0; turn < kTurns;) {
      const uint64_t random = image::pattern_word(seed + index, turn);
      const auto number = static_cast<uint32_t>(random % kKeys);
      const uint64_t key = key_of(number);
      write(static_cast<uint32_t>(random >> 32) % 16);
      uint32_t frame = find_frame(*cache, key);
      if (frame == kNoFrame) {
        const uint32_t cleaned = cleaned_count(*cache, key);
        const uint32_t place = simt::load_relaxed(disk.pages[number].place);
        backoff.pause();
        frame = claim_frame(*cache, key);
        if (frame != kNoFrame && cleaned_count(*cache, key) != cleaned) {
          abandon_frame(*cache, frame);
        } else if (frame != kNoFrame) {
          words(frame)[0] = words(frame)[9] = disk.pages[number].contents[place];
          publish_frame(*cache, frame);
          unpin(*cache, frame);
        }
      } else if (random >> 40 & 1) {
        if (pin_frame(*cache, frame, key)) {
          if (words(frame)[0] != words(frame)[9]) ++torn;
          unpin(*cache, frame);
          ++turn;
        }
      } else if (take_frame(*cache, frame, key)) {
        ++words(frame)[0];
        ++words(frame)[9];
        ++wanted[number];
        release_frame(*cache, frame, true);
        ++turn;
      } else {
        backoff.pause();
      }
    }
  });
  EXPECT_EQ(torn, 0u);
  for (uint32_t frame = 0; frame < 16; ++frame) write(frame);
  for (uint32_t number = 0; number < kKeys; ++number) {
    const MovingDisk::Page& page = disk.pages[number];
    EXPECT_EQ(page.contents[page.place], wanted[number]) << number;
  }
}

// --- Spare blocks. -------------------------------------------------------------------------------

class PoolOwner {
 public:
  explicit PoolOwner(uint32_t count) {
    pool_.count = count;
    pool_.pages = arena_.bytes(uint64_t{count} * kBlockBytes);
    pool_.locks = reinterpret_cast<uint32_t*>(arena_.bytes(count * sizeof(uint32_t)));
  }
  const PagePool& operator*() const { return pool_; }

 private:
  TestArena arena_;
  PagePool pool_{};
};

TEST(PagePoolTest, the_last_page_is_found_wherever_it_is) {
  for (const uint32_t count : {32u, 64u}) {
    PoolOwner pool(count);
    for (uint32_t last = 0; last < count; ++last) {
      for (uint32_t i = 0; i < count; ++i) (*pool).locks[i] = i == last ? 0 : 1;
      uint8_t* const page = (*pool).try_take(simt::Warp());
      EXPECT_EQ(page, (*pool).pages + uint64_t{last} * kBlockBytes) << last << " of " << count;
    }
  }
}

TEST(PagePoolTest, gives_each_page_once_until_it_comes_back) {
  PoolOwner pool(32);
  std::set<uint8_t*> pages;
  for (uint32_t i = 0; i < 32; ++i) {
    uint8_t* const page = (*pool).try_take(simt::Warp());
    ASSERT_NE(page, nullptr) << i;
    EXPECT_TRUE(pages.insert(page).second);
  }
  EXPECT_EQ((*pool).try_take(simt::Warp()), nullptr);
  (*pool).release(*pages.begin());
  EXPECT_EQ((*pool).try_take(simt::Warp()), *pages.begin());
}

TEST(PagePoolTest, no_two_share_a_page) {
  PoolOwner pool(32);
  std::atomic<uint32_t> wrong{0};
  run_crowd({40, 1}, [&](const simt::Warp& warp, uint32_t index) {
    for (uint32_t done = 0; done < 50;) {
      uint8_t* const page = (*pool).try_take(warp);
      if (page == nullptr) {
        simt::Backoff().pause();
        continue;
      }
      page[7] = static_cast<uint8_t>(index);  // plain: a data race if shared
      if (page[7] != static_cast<uint8_t>(index)) ++wrong;
      (*pool).release(page);
      ++done;
    }
  });
  EXPECT_EQ(wrong, 0u);
}

// Who finds a page dirty already relies on the map of dirty pages.
TEST(PageCacheTest, a_dirty_page_is_in_the_map) {
  CacheOwner owner(kWays);
  PageCache& cache = *owner;
  const uint64_t key = page_key(PageKind::kNode, 5);
  const uint32_t frame = claim_frame(cache, key);
  publish_frame(cache, frame);
  std::atomic<uint32_t> turn{0};
  std::atomic<uint32_t> seen{0};
  constexpr uint32_t kTurns = 3'000;
  uint32_t missed = 0;
  std::thread first([&] {
    for (uint32_t i = 1; i <= kTurns; ++i) {
      while (turn != i) std::this_thread::yield();
      (void)mark_dirty(cache, frame);
      while (seen != i) {
      }
      clean_frame(cache, frame, key);
      turn = 0;
    }
  });
  for (uint32_t i = 1; i <= kTurns; ++i) {
    turn = i;
    while ((simt::load_acquire(cache.state(frame)) & kFrameDataDirty) == 0) {
    }
    // mark_dirty() of a second writer returns here without doing anything.
    const uint32_t word = simt::load_relaxed(cache.dirty_word(PageKind::kNode, frame / 32));
    if ((word >> frame % 32 & 1u) == 0) ++missed;
    seen = i;
    while (turn != 0) std::this_thread::yield();
  }
  first.join();
  EXPECT_EQ(missed, 0u);
}

}  // namespace
}  // namespace gofs::f2fs
