// SPDX-License-Identifier: Apache-2.0
//
// Waiting for path readers: all that were reading have finished when the wait ends, and those that
// come later do not hold it up.
#include "vfs/path_readers.h"

#include <gtest/gtest.h>

#include <atomic>
#include <cerrno>
#include <memory>
#include <vector>

#include "vfs/vfs_for_test.hpp"

namespace gofs::vfs {
namespace {

constexpr uint64_t kPathReadersTimeoutNs = 30'000'000'000;

class PathReadersTest : public ::testing::TestWithParam<uint32_t> {
 protected:
  uint32_t width() const { return GetParam(); }
  std::unique_ptr<PathReaders> readers_ = std::make_unique<PathReaders>();
};
GOFS_AT_BOTH_WIDTHS(PathReadersTest);

TEST_P(PathReadersTest, a_wait_is_not_held_up_by_later_readers) {
  run_alone(width(), [&](const simt::Warp& warp) {
    EXPECT_EQ(wait_for_path_readers(warp, *readers_, kPathReadersTimeoutNs), 0);
    const PathReaderPass first = enter_path_readers(warp, *readers_);
    EXPECT_EQ(wait_for_path_readers(warp, *readers_, 1'000'000), -EBUSY) << "one is reading";
    const PathReaderPass second = enter_path_readers(warp, *readers_);
    leave_path_readers(warp, *readers_, first);
    EXPECT_EQ(wait_for_path_readers(warp, *readers_, 1'000'000), -EBUSY) << "the other still is";
    leave_path_readers(warp, *readers_, second);
    EXPECT_EQ(wait_for_path_readers(warp, *readers_, kPathReadersTimeoutNs), 0);
  });
}

// Things are taken away and spoilt once none can be looking at them; a path reader looks at what it
// found there for a while.
TEST_P(PathReadersTest, no_reader_sees_what_is_freed) {
  constexpr uint32_t kPlaces = 3;
  constexpr uint32_t kGood = 77;
  const uint32_t turns = width() == 1 ? 400 : 60;
  struct Thing {
    uint32_t value;
  };
  std::vector<Thing> things(kPlaces * 2 * 400, Thing{kGood});
  // Index of a thing, plus 1. Each has one from the beginning: readers may be done before any was
  // exchanged.
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
        if (wait_for_path_readers(warp, *readers_, kPathReadersTimeoutNs) < 0) ++wrong;
        // A plain store: ThreadSanitizer sees a reader that should have been waited for.
        if (old != 0 && warp.thread_rank() == 0) things[old - 1].value = 0;
        continue;
      }
      const PathReaderPass pass = enter_path_readers(warp, *readers_);
      const uint32_t thing = warp.shfl(simt::load_acquire(place), 0);
      for (uint32_t look = 0; look < 20 && thing != 0; ++look) {
        if (things[thing - 1].value != kGood) ++wrong;
        ++seen;
      }
      leave_path_readers(warp, *readers_, pass);
    }
  });
  EXPECT_EQ(wrong, 0u);
  EXPECT_GT(seen, 0u);
}

}  // namespace
}  // namespace gofs::vfs
