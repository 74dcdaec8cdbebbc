// SPDX-License-Identifier: Apache-2.0
//
// Going through the dirty pages of a cache: each of a kind is met once, whatever the width of the
// warp, where the others lie, and who cleans meanwhile.
#include "f2fs/dirty_pages.h"

#include <gtest/gtest.h>

#include <map>
#include <vector>

#include "testing/crowd.hpp"
#include "testing/ssd_rig.hpp"

namespace gofs::f2fs {
namespace {

using gofs::testing::run_alone;
using gofs::testing::TestArena;

constexpr uint32_t kCachedFrames = 1024;

class DirtyPagesTest : public ::testing::TestWithParam<uint32_t> {
 protected:
  DirtyPagesTest() {
    constexpr uint32_t kSets = kCachedFrames / kWays;
    cache_.sets = reinterpret_cast<FrameSet*>(arena_.bytes(kSets * sizeof(FrameSet)));
    cache_.pages = arena_.bytes(uint64_t{kCachedFrames} * kBlockBytes);
    cache_.set_mask = kSets - 1;
    cache_.dirty_maps = reinterpret_cast<uint32_t*>(
        arena_.bytes(kPageKinds * cache_.map_words() * sizeof(uint32_t)));
  }
  uint32_t width() const { return GetParam(); }
  void add(uint64_t key, bool dirty) {
    const uint32_t frame = claim_frame(cache_, key);
    ASSERT_NE(frame, kNoFrame);
    release_frame(cache_, frame, dirty);
  }
  /// How often each key was met.
  std::map<uint64_t, uint32_t> meet(PageKind kind, const MapRange& range, bool cleaning) {
    std::map<uint64_t, uint32_t> met;
    run_alone(width(), [&](const simt::Warp& warp) {
      const auto use = [&](uint32_t lanes, uint32_t frame, uint64_t key) {
        if ((lanes >> warp.thread_rank() & 1u) != 0) {
          EXPECT_EQ(cache_.sets[frame / kWays].keys[frame % kWays], key);
          if (cleaning) clean_frame(cache_, frame, key);
        }
        for (uint32_t rank = 0; rank < warp.size(); ++rank) {
          const uint64_t theirs = warp.shfl(key, rank);
          if (warp.thread_rank() == 0 && (lanes >> rank & 1u) != 0) ++met[theirs];
        }
        return 0;
      };
      EXPECT_EQ(for_dirty_pages(warp, cache_, kind, range, use), 0);
    });
    return met;
  }

  TestArena arena_;
  PageCache cache_{};
};
GOFS_AT_BOTH_WIDTHS(DirtyPagesTest);

TEST_P(DirtyPagesTest, each_of_a_kind_is_met_once) {
  std::map<uint64_t, uint32_t> nodes;
  for (uint32_t i = 1; i <= 300; ++i) {
    const uint64_t key = page_key(i % 3 == 0 ? PageKind::kNat : PageKind::kNode, i);
    add(key, i % 5 != 0);
    if (i % 3 != 0 && i % 5 != 0) nodes[key] = 1;
  }
  EXPECT_EQ(meet(PageKind::kNode, whole_map(cache_), false), nodes);
  EXPECT_EQ(meet(PageKind::kNode, whole_map(cache_), false), nodes) << "they are dirty still";
  EXPECT_TRUE(meet(PageKind::kDirectory, whole_map(cache_), false).empty());
  // In portions that no thread shares.
  std::map<uint64_t, uint32_t> met;
  for (uint32_t word = 0; word < cache_.map_words(); word += 5) {
    const MapRange range{word, std::min(word + 5, cache_.map_words())};
    for (const auto& [key, times] : meet(PageKind::kNode, range, true)) met[key] += times;
  }
  EXPECT_EQ(met, nodes);
  EXPECT_TRUE(meet(PageKind::kNode, whole_map(cache_), false).empty());
  EXPECT_EQ(meet(PageKind::kNat, whole_map(cache_), true).size(), 80u);
  EXPECT_EQ(cache_.dirty, 0u);
}

TEST_P(DirtyPagesTest, one_that_is_forgotten_or_fails_is_not_met_again) {
  for (uint32_t i = 1; i <= 100; ++i) add(page_key(PageKind::kNode, i), true);
  const uint64_t gone = page_key(PageKind::kNode, 50);
  const uint32_t frame = find_frame(cache_, gone);
  ASSERT_TRUE(take_frame(cache_, frame, gone));
  invalidate_frame(cache_, frame);
  const auto met = meet(PageKind::kNode, whole_map(cache_), false);
  EXPECT_EQ(met.size(), 99u);
  EXPECT_FALSE(met.contains(gone));
  uint32_t calls = 0;
  run_alone(width(), [&](const simt::Warp& warp) {
    const auto refuse = [&](uint32_t, uint32_t, uint64_t) {
      if (warp.thread_rank() == 0) ++calls;
      return -EIO;
    };
    EXPECT_EQ(for_dirty_pages(warp, cache_, PageKind::kNode, whole_map(cache_), refuse), -EIO);
  });
  EXPECT_EQ(calls, 1u);
}

}  // namespace
}  // namespace gofs::f2fs
