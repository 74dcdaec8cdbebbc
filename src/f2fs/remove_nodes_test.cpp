// SPDX-License-Identifier: Apache-2.0
//
// Numbers of nodes that are taken back while others look for free ones.
#include <gtest/gtest.h>

#include "f2fs/node_space.h"
#include "f2fs/operation_for_test.hpp"
#include "f2fs/writing_for_test.hpp"
#include "testing/held_command.hpp"

namespace gofs::f2fs {
namespace {

using gofs::testing::run_alone;
using gofs::testing::run_crowd;

class RemoveNodesTest : public ::testing::TestWithParam<uint32_t> {
 protected:
  RemoveNodesTest() : image_([](image::ImageBuilder&) {}), writing_(image_, width()) {
    EXPECT_EQ(writing_.begin().error, 0);
  }
  uint32_t width() const { return GetParam(); }
  Volume& volume() { return writing_.volume(); }
  Writer& writer() { return writing_.writer(); }
  /// The next free number from `from` on.
  uint32_t take(uint32_t from) {
    uint32_t taken = 0;
    for (auto& cursor : writer().nid_cursors) simt::store_relaxed(cursor.next, from);
    run_alone(width(), [&](const simt::Warp& warp) {
      TestOperation op(warp, volume(), writer());
      uint32_t nid = 0;
      EXPECT_EQ(take_nids(warp, *op, 1u, 0, nid), 0);
      if (warp.thread_rank() == 0) taken = nid;
    });
    return taken;
  }

  TestImage image_;
  WritingRig writing_;
};
GOFS_AT_BOTH_WIDTHS(RemoveNodesTest);

// A warp takes two numbers back; that of the first lane is out of the NAT when it waits for the
// page with the other's entry. What another one makes then must be there afterwards.
TEST_P(RemoveNodesTest, a_number_is_not_used_again_before_its_page_is_gone) {
  if (width() == 1) GTEST_SKIP() << "two lanes take back";
  constexpr uint32_t kPer = format::kNatEntriesPerBlock;
  const uint32_t nids[] = {take(kPer + 10), take(2 * kPer + 10)};
  ASSERT_EQ(nids[0], kPer + 10);
  ASSERT_EQ(nids[1], 2 * kPer + 10);
  for (auto& cursor : writer().nid_cursors) cursor.next = nids[0];
  const PageCache& cache = volume().cache;
  const uint64_t other = page_key(PageKind::kNat, 2);
  const uint32_t frame = find_frame(cache, other);
  ASSERT_NE(frame, kNoFrame);
  ASSERT_TRUE(pin_frame(cache, frame, other));
  uint32_t made = 0;
  run_crowd({2, width()}, [&](const simt::Warp& warp, uint32_t index) {
    TestOperation op(warp, volume(), writer());
    if (index == 0) {
      const uint32_t nid = warp.thread_rank() < 2 ? nids[warp.thread_rank()] : 0;
      EXPECT_EQ(remove_nodes(warp, *op, 3u, nid), 0);
      return;
    }
    EXPECT_TRUE(testing::wait_until(
        [&] { return (simt::load_relaxed(cache.state(frame)) & kFrameWanted) != 0; }));
    warp.sync();
    uint32_t nid = 0;
    EXPECT_EQ(take_nids(warp, *op, 1u, 0, nid), 0);
    EXPECT_EQ(make_nodes(warp, *op, 1u, nid, nid, 0, [](format::NodeBlock&) {}), 0);
    warp.sync();
    if (warp.thread_rank() == 0) {
      made = nid;
      unpin(cache, frame);
    }
    warp.sync();
  });
  run_alone(width(), [&](const simt::Warp& warp) {
    const int found = with_nodes(warp, volume(), 1u, made, made, [](const format::NodeBlock&) {});
    if (warp.thread_rank() == 0) {
      EXPECT_EQ(found, 0) << "the new node is gone";
    }
  });
  for (const uint32_t nid : nids) {
    EXPECT_TRUE(nid == made || take(nid) == nid) << nid << " is free again";
  }
}

}  // namespace
}  // namespace gofs::f2fs
