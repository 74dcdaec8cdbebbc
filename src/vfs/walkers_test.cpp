// SPDX-License-Identifier: Apache-2.0
//
// Waiting for walkers: who waits has all who were walking behind him, and is not kept by who comes
// later.
#include "vfs/walkers.h"

#include <gtest/gtest.h>

#include <atomic>
#include <cerrno>
#include <memory>
#include <vector>

#include "vfs/vfs_for_test.hpp"

namespace gofs::vfs {
namespace {

constexpr uint64_t kWalkersTimeoutNs = 30'000'000'000;

class WalkersTest : public ::testing::TestWithParam<uint32_t> {
 protected:
  uint32_t width() const { return GetParam(); }
  std::unique_ptr<Walkers> walkers_ = std::make_unique<Walkers>();
};
GOFS_AT_BOTH_WIDTHS(WalkersTest);

TEST_P(WalkersTest, who_waits_is_not_kept_by_who_comes_later) {
  run_alone(width(), [&](const simt::Warp& warp) {
    EXPECT_EQ(wait_for_walkers(warp, *walkers_, kWalkersTimeoutNs), 0);
    const WalkPass first = enter_walk(warp, *walkers_);
    EXPECT_EQ(wait_for_walkers(warp, *walkers_, 1'000'000), -EBUSY) << "one is walking";
    const WalkPass second = enter_walk(warp, *walkers_);
    leave_walk(warp, *walkers_, first);
    EXPECT_EQ(wait_for_walkers(warp, *walkers_, 1'000'000), -EBUSY) << "the other still is";
    leave_walk(warp, *walkers_, second);
    EXPECT_EQ(wait_for_walkers(warp, *walkers_, kWalkersTimeoutNs), 0);
  });
}

// Things are taken away and spoilt once nobody can be looking at them; who walks looks at what he
// found there for a while.
TEST_P(WalkersTest, nobody_sees_what_is_freed) {
  constexpr uint32_t kPlaces = 3;
  constexpr uint32_t kGood = 77;
  const uint32_t turns = width() == 1 ? 400 : 60;
  struct Thing {
    uint32_t value;
  };
  std::vector<Thing> things(kPlaces * 2 * 400, Thing{kGood});
  // Index of a thing, plus 1. Each has one from the beginning: readers may be done before anybody
  // has exchanged any.
  const auto last = static_cast<uint32_t>(things.size());
  std::vector<uint32_t> places{last, last - 1, last - 2};
  ASSERT_EQ(places.size(), kPlaces);
  std::atomic<uint32_t> wrong{0};
  std::atomic<uint32_t> seen{0};
  run_crowd({4, width()}, [&](const simt::Warp& warp, uint32_t index) {
    for (uint32_t turn = 0; turn < turns; ++turn) {
      uint32_t& place = places[turn % kPlaces];
      if (index < 2) {
        const uint32_t thing = (index * 400 + turn) + 1;
        uint32_t old = 0;
        if (warp.thread_rank() == 0) {
          old = simt::AtomicRef<uint32_t>(place).exchange(thing, simt::memory_order_acq_rel);
        }
        old = warp.shfl(old, 0);
        if (wait_for_walkers(warp, *walkers_, kWalkersTimeoutNs) < 0) ++wrong;
        // A plain store: ThreadSanitizer sees a reader that should have been waited for.
        if (old != 0 && warp.thread_rank() == 0) things[old - 1].value = 0;
        continue;
      }
      const WalkPass pass = enter_walk(warp, *walkers_);
      const uint32_t thing = warp.shfl(simt::load_acquire(place), 0);
      for (uint32_t look = 0; look < 20 && thing != 0; ++look) {
        if (things[thing - 1].value != kGood) ++wrong;
        ++seen;
      }
      leave_walk(warp, *walkers_, pass);
    }
  });
  EXPECT_EQ(wrong, 0u);
  EXPECT_GT(seen, 0u);
}

}  // namespace
}  // namespace gofs::vfs
