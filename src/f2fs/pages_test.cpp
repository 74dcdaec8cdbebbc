// SPDX-License-Identifier: Apache-2.0
//
// Metadata blocks by the warp: lanes that want the same page, different pages, pages that cannot be
// had, through caches so small that all are in each other's way.
#include "f2fs/pages.h"

#include <gtest/gtest.h>

#include <atomic>
#include <memory>
#include <vector>

#include "testing/ssd_rig.hpp"

namespace gofs::f2fs {
namespace {

using gofs::testing::all_lanes;
using gofs::testing::printed_seed;
using gofs::testing::run_alone;
using gofs::testing::run_crowd;
using gofs::testing::SsdRig;
using gofs::testing::SsdRigOptions;

/// A device, and a volume of which there is only the cache.
class CachedSsd {
 public:
  explicit CachedSsd(uint32_t frames, uint32_t fault_capacity = 0)
      : rig_(options(fault_capacity)), volume_(std::make_unique<Volume>()) {
    rig_.bring_up_ready();
    std::memset(static_cast<void*>(volume_.get()), 0, sizeof(Volume));
    volume_->array = nvme::array_of(rig_.device());
    volume_->cache.sets =
        reinterpret_cast<FrameSet*>(rig_.arena().bytes(frames / kWays * sizeof(FrameSet)));
    volume_->cache.pages = rig_.arena().bytes(uint64_t{frames} * kBlockBytes);
    volume_->cache.set_mask = frames / kWays - 1;
    volume_->cache.dirty_maps = reinterpret_cast<uint32_t*>(
        rig_.arena().bytes(kPageKinds * volume_->cache.map_words() * sizeof(uint32_t)));
    volume_->cache_counts = reinterpret_cast<CacheCounts*>(
        rig_.arena().bytes(simt::kCountPlaces * sizeof(CacheCounts)));
  }

  SsdRig& rig() { return rig_; }
  Volume& volume() { return *volume_; }
  bool holds(const uint8_t* page, uint32_t block) {
    return rig_.holds(page, uint64_t{block} * 8, 8);
  }
  LookupCounts lookups(CacheKind kind) const {
    LookupCounts sum{};
    for (uint32_t i = 0; i < simt::kCountPlaces; ++i) {
      const LookupCounts& counts = volume_->cache_counts[i].lookups[static_cast<uint32_t>(kind)];
      sum = {sum.hits + counts.hits, sum.misses + counts.misses};
    }
    return sum;
  }
  void expect_nothing_pinned() {
    for (uint32_t frame = 0; frame < volume_->cache.frame_count(); ++frame) {
      EXPECT_EQ(volume_->cache.state(frame) & (kPinMask | kFrameLoading), 0u) << frame;
    }
  }

  static ssd::FaultRule failing(uint32_t block, uint64_t count = ~uint64_t{0}) {
    ssd::FaultRule rule;
    rule.lba_first = uint64_t{block} * 8;
    rule.lba_last = rule.lba_first + 7;
    rule.count = count;
    rule.status = format::nvme::kUnrecoveredReadError;
    return rule;
  }

 private:
  static SsdRigOptions options(uint32_t fault_capacity) {
    SsdRigOptions options;
    options.ssd.fault_capacity = fault_capacity;
    return options;
  }

  SsdRig rig_;
  std::unique_ptr<Volume> volume_;
};

class PagesTest : public ::testing::TestWithParam<uint32_t> {
 protected:
  uint32_t width() const { return GetParam(); }
  uint32_t warps() const { return width() == 1 ? 12 : 3; }
};
GOFS_AT_BOTH_WIDTHS(PagesTest);

TEST_P(PagesTest, lanes_that_want_the_same_page_read_it_once) {
  CachedSsd ssd(64);
  std::atomic<uint32_t> uses{0};
  for (uint32_t turn = 0; turn < 3; ++turn) {
    run_crowd({warps(), width()}, [&](const simt::Warp& warp, uint32_t) {
      const int result =
          with_blocks(warp, ssd.volume(), all_lanes(warp), 17, [&](const uint8_t* page) {
            // All lanes are here: a collective must work.
            EXPECT_EQ(warp.ballot(true), all_lanes(warp));
            if (ssd.holds(page, 17)) ++uses;
          });
      EXPECT_EQ(result, 0);
    });
  }
  EXPECT_EQ(uses, 3 * warps() * width());
  EXPECT_EQ(ssd.rig().counters().read_commands, 1u);
  // Each warp has looked it up once a turn, for all of its lanes.
  const LookupCounts lookups = ssd.lookups(CacheKind::kOthers);
  EXPECT_EQ(lookups.misses, 1u);
  EXPECT_EQ(lookups.hits, 3 * warps() - 1);
  EXPECT_EQ(ssd.lookups(CacheKind::kNodes).hits + ssd.lookups(CacheKind::kNat).misses, 0u);
  ssd.expect_nothing_pinned();
}

TEST_P(PagesTest, lanes_that_are_not_asked_get_nothing) {
  CachedSsd ssd(64);
  run_alone(width(), [&](const simt::Warp& warp) {
    bool used = false;
    EXPECT_EQ(with_blocks(warp, ssd.volume(), 1u, 5, [&](const uint8_t*) { used = true; }), 0);
    EXPECT_EQ(used, warp.thread_rank() == 0);
    used = false;
    EXPECT_EQ(with_blocks(warp, ssd.volume(), 0, 5, [&](const uint8_t*) { used = true; }), 0);
    EXPECT_FALSE(used);
  });
}

/// Many pages through few frames.
class PagesSqueezeTest : public ::testing::TestWithParam<std::tuple<uint32_t, uint32_t>> {};
INSTANTIATE_TEST_SUITE_P(frames, PagesSqueezeTest,
                         ::testing::Combine(::testing::Values(8u, 64u), ::testing::Values(1u, 4u)),
                         [](const auto& test) {
                           return std::to_string(std::get<0>(test.param)) + "_width_" +
                                  std::to_string(std::get<1>(test.param));
                         });

TEST_P(PagesSqueezeTest, everybody_gets_his_pages) {
  const auto [frames, width] = GetParam();
  CachedSsd ssd(frames);
  const uint64_t seed = printed_seed();
  const uint32_t turns = width == 1 ? 80 : 12;
  const uint32_t warps = width == 1 ? 16 : 3;
  std::atomic<uint32_t> right{0};
  run_crowd({warps, width}, [&, width = width](const simt::Warp& warp, uint32_t index) {
    for (uint32_t turn = 0; turn < turns; ++turn) {
      // Some lanes ask for the same page, some for others; hot pages and cold ones.
      const uint32_t who = index * width + warp.thread_rank();
      const uint64_t random = image::pattern_word(seed + who, turn);
      const uint32_t block = static_cast<uint32_t>(random >> 8) % (random % 4 == 0 ? 1000 : 12);
      const int result =
          with_blocks(warp, ssd.volume(), all_lanes(warp), block, [&](const uint8_t* page) {
            if (ssd.holds(page, block)) ++right;
          });
      EXPECT_EQ(result, 0);
    }
  });
  EXPECT_EQ(right, warps * width * turns);
  ssd.expect_nothing_pinned();
}

// As a NAT block is read to find a node: the way to the page leads over another page.
TEST_P(PagesSqueezeTest, pages_that_are_found_by_other_pages) {
  const auto [frames, width] = GetParam();
  CachedSsd ssd(frames);
  const uint32_t turns = width == 1 ? 60 : 10;
  const uint32_t warps = width == 1 ? 16 : 3;
  std::atomic<uint32_t> right{0};
  run_crowd({warps, width}, [&, width = width](const simt::Warp& warp, uint32_t index) {
    for (uint32_t turn = 0; turn < turns; ++turn) {
      const uint32_t node = (index * width + warp.thread_rank() + turn * 7) % 90;
      const int result = with_pages(
          warp, ssd.volume(), all_lanes(warp), page_key(PageKind::kNode, node),
          [&](uint32_t missing, uint32_t& block) {
            block = 500 + node;
            return with_blocks(
                warp, ssd.volume(), missing, 400 + node % 9,
                [&](const uint8_t* page) { EXPECT_TRUE(ssd.holds(page, 400 + node % 9)); });
          },
          [&](const uint8_t* page, uint32_t block) {
            return block == 500 + node && ssd.holds(page, block) ? 0 : -EUCLEAN;
          },
          [&](const uint8_t* page) {
            if (ssd.holds(page, 500 + node)) ++right;
          });
      EXPECT_EQ(result, 0);
    }
  });
  EXPECT_EQ(right, warps * width * turns);
  ssd.expect_nothing_pinned();
}

TEST_P(PagesTest, errors_go_to_the_lanes_that_asked_for_the_page) {
  CachedSsd ssd(8, 4);
  ssd.rig().add_fault(CachedSsd::failing(33));
  run_crowd({warps(), width()}, [&](const simt::Warp& warp, uint32_t) {
    for (uint32_t turn = 0; turn < 6; ++turn) {
      // 30 is sound, 31 cannot be resolved, 32 is found wrong, 33 cannot be read.
      const uint32_t page_number = 30 + (warp.thread_rank() + turn) % 4;
      bool used = false;
      const int result = with_pages(
          warp, ssd.volume(), all_lanes(warp), page_key(PageKind::kNode, page_number),
          [&](uint32_t, uint32_t& block) {
            block = page_number;
            return page_number == 31 ? -ENOENT : 0;
          },
          [&](const uint8_t*, uint32_t block) { return block == 32 ? -EUCLEAN : 0; },
          [&](const uint8_t* page) {
            used = true;
            EXPECT_TRUE(ssd.holds(page, page_number));
          });
      const int wanted[] = {0, -ENOENT, -EUCLEAN, -EIO};
      EXPECT_EQ(result, wanted[page_number - 30]);
      EXPECT_EQ(used, result == 0);
    }
  });
  ssd.expect_nothing_pinned();
  EXPECT_EQ(find_frame(ssd.volume().cache, page_key(PageKind::kNode, 32)), kNoFrame);
}

TEST_P(PagesTest, a_page_that_could_not_be_read_is_tried_again) {
  CachedSsd ssd(8, 1);
  ssd.rig().add_fault(CachedSsd::failing(12, 2));
  const auto read = [&] {
    int result = 0;
    run_alone(width(), [&](const simt::Warp& warp) {
      const int mine = with_blocks(warp, ssd.volume(), all_lanes(warp), 12,
                                   [&](const uint8_t* page) { EXPECT_TRUE(ssd.holds(page, 12)); });
      if (warp.thread_rank() == 0) result = mine;
    });
    return result;
  };
  EXPECT_EQ(read(), -EIO);
  EXPECT_EQ(read(), -EIO);
  EXPECT_EQ(read(), 0);
  EXPECT_EQ(read(), 0);
  EXPECT_EQ(ssd.rig().counters().read_commands, 3u);
}

TEST_P(PagesTest, a_failed_device_is_an_error_of_every_page_that_is_not_there) {
  CachedSsd ssd(8, 1);
  run_alone(width(), [&](const simt::Warp& warp) {
    EXPECT_EQ(with_blocks(warp, ssd.volume(), all_lanes(warp), 3, [](const uint8_t*) {}), 0);
    nvme::fail_device(warp, ssd.rig().device());
    EXPECT_EQ(with_blocks(warp, ssd.volume(), all_lanes(warp), 3, [](const uint8_t*) {}), 0);
    EXPECT_EQ(with_blocks(warp, ssd.volume(), all_lanes(warp), 4 + warp.thread_rank(),
                          [](const uint8_t*) { ADD_FAILURE(); }),
              -EIO);
  });
  ssd.expect_nothing_pinned();
}

}  // namespace
}  // namespace gofs::f2fs
