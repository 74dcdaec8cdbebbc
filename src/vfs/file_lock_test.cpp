// SPDX-License-Identifier: Apache-2.0
//
// The tokens of a file's blocks: who can make them, and that writes change what they hold and
// nothing beside it, since others hold the rest.
#include "vfs/file_lock.h"

#include <gtest/gtest.h>

#include <string>
#include <type_traits>

#include "vfs/async.h"
#include "vfs/changes_for_test.hpp"
#include "vfs/write_together.h"

namespace gofs::vfs {
namespace {

static_assert(!std::is_copy_constructible_v<f2fs::FileHold>);
static_assert(!std::is_copy_assignable_v<f2fs::FileHold>);
static_assert(!std::is_constructible_v<f2fs::FileHold, f2fs::Inode&, f2fs::FileBlocks>);
static_assert(!std::is_copy_constructible_v<WriteHold> && !std::is_copy_assignable_v<WriteHold>);
static_assert(!std::is_constructible_v<WriteHold, OpenInode*, RangeHold, ByteRange, Hold, bool>);
// Memory of a block has no first value, and the warps of a group share one.
static_assert(std::is_trivially_default_constructible_v<SharedWrite>);
static_assert(std::is_copy_assignable_v<SharedWrite>);

constexpr uint64_t kLockedBlocks = 10;
constexpr uint64_t kLockedTail = 500;  // of the block behind them

class FileLockTest : public ChangesTest {
 protected:
  FileLockTest()
      : ChangesTest([](image::ImageBuilder& builder) {
          for (const uint64_t tail : {uint64_t{0}, kLockedTail}) {
            image::FileSpec spec;
            spec.name = tail == 0 ? "whole" : "tail";
            spec.attributes = {.mode = 0666, .uid = 0, .gid = 0};
            spec.size_bytes = kLockedBlocks * kBlockBytes + tail;
            spec.content = image::pattern_content(5);
            TestImage::must(builder.add_file(builder.root(), spec));
          }
        }) {}

  OpenInode& open_of(int fd) { return fs().open_inodes[fs().descriptors[fd].open_inode]; }
  uint64_t size_of(int fd) { return simt::load_relaxed(open_of(fd).inode.size_bytes); }
};
GOFS_AT_BOTH_WIDTHS(FileLockTest);

TEST_P(FileLockTest, of_a_hold_what_it_covers_is_known_and_an_empty_one_covers_no_file) {
  const int fd = open_file("/whole", kOpenReadWrite);
  alone([&](const simt::Warp& warp) {
    WriteHold hold{};
    const simt::Deadline deadline = simt::Deadline::after_ns(fs().lock_timeout_ns);
    EXPECT_EQ(detail::hold_in_ring(warp, open_of(fd), Hold::kRange, {kBlockBytes, kBlockBytes},
                                   deadline, hold),
              0);
    EXPECT_EQ(&hold.open(), &open_of(fd));
    EXPECT_EQ(hold.range().offset, kBlockBytes);
    WriteHold refused{};
    EXPECT_EQ(detail::hold_in_ring(warp, open_of(fd), Hold::kWholeFile, {},
                                   simt::Deadline::after_ns(0), refused),
              -ETIMEDOUT);
    if (warp.size() == 1) {
      EXPECT_DEATH((void)refused.open(), "");
    }
    detail::release(warp, fs(), hold);
    return 0;
  });
}

// Of two that write behind the end, each holds its own blocks, and the one that fails may have
// begun when the file was shorter.
TEST_P(FileLockTest, a_write_that_fails_leaves_what_others_have_written_in_front_of_it) {
  const int fd = open_file("/whole", kOpenReadWrite);
  SharedWrite failing{};
  alone([&](const simt::Warp& warp) {
    SharedWrite mine{};
    detail::begin_request(warp, fs(), open_of(fd), 3 * kBlockBytes, false, 40 * kBlockBytes, mine);
    EXPECT_EQ(mine.result, 0);
    EXPECT_EQ(mine.hold.kind(), Hold::kBlocks);
    if (warp.thread_rank() == 0) failing = mine;
    return 0;
  });
  const std::string between(2 * kBlockBytes, 'b');
  ASSERT_EQ(pwrite_file(fd, between, 20 * kBlockBytes), static_cast<int64_t>(between.size()));
  ASSERT_EQ(size_of(fd), 22 * kBlockBytes);
  // Its last block is there, and then the one before it fails.
  const std::string last(kBlockBytes, 'l');
  alone([&](const simt::Warp& warp) {
    const IoFailure failure =
        detail::write_part(warp, fs(), failing, reinterpret_cast<const uint8_t*>(last.data()),
                           last.size(), 2 * kBlockBytes, 0, 1);
    EXPECT_EQ(failure.error, 0);
    return 0;
  });
  ASSERT_EQ(size_of(fd), 43 * kBlockBytes);
  failing.failure = detail::pack_failure({0, -EIO});
  EXPECT_EQ(alone([&](const simt::Warp& warp) { return detail::end_request(warp, fs(), failing); }),
            -EIO);
  EXPECT_EQ(size_of(fd), 22 * kBlockBytes);
  EXPECT_EQ(block_of(fd, 42), format::kNullAddr);
  EXPECT_EQ(contents("/whole").substr(20 * kBlockBytes, between.size()), between);
  mount_again();
  EXPECT_EQ(contents("/whole").substr(20 * kBlockBytes, between.size()), between);
}

TEST_P(FileLockTest, a_write_behind_an_end_with_zeros_behind_it_leaves_the_last_block_alone) {
  for (const uint32_t uid : {0u, 1000u}) {
    fs().credentials = who(uid, uid);
    for (const bool async : {false, true}) {
      const int fd = open_file("/tail", kOpenReadWrite);
      // The file grows by a write, so that what is behind its new end is known.
      const uint64_t end = simt::align_up(size_of(fd), uint64_t{kBlockBytes}) + 200;
      const std::string piece(200, 'e');
      ASSERT_EQ(pwrite_file(fd, piece, end - piece.size()), 200);
      ASSERT_EQ(open_of(fd).inode.clean_tail, 1u);
      const uint32_t before = block_of(fd, end / kBlockBytes);
      open_of(fd).inode.times_set_ns = 0;
      const uint64_t far = (end / kBlockBytes + 5) * kBlockBytes;
      const std::string block(kBlockBytes, 'f');
      EXPECT_EQ(alone([&](const simt::Warp& warp) -> int64_t {
                  if (!async) return pwrite(warp, fs(), fd, block.data(), block.size(), far);
                  const Ticket ticket =
                      pwrite_async(warp, fs(), fd, block.data(), block.size(), far);
                  return wait(warp, fs(), ticket);
                }),
                static_cast<int64_t>(block.size()));
      EXPECT_EQ(block_of(fd, end / kBlockBytes), before) << uid << async;
      const std::string all = contents("/tail");
      EXPECT_EQ(all.substr(end - 200, 200), piece);
      EXPECT_EQ(all.substr(end, far - end), std::string(far - end, '\0'));
      EXPECT_EQ(all.substr(far), block);
      EXPECT_EQ(close_file(fd), 0);
    }
  }
}

TEST_P(FileLockTest, what_is_written_beside_a_hold_is_noticed_by_checks) {
  if (!simt::kDebugChecks) GTEST_SKIP() << "built without GOFS_DEBUG_CHECKS";
  const int fd = open_file("/whole", kOpenReadWrite);
  const std::string bytes(kBlockBytes, 'x');
  const auto write_with_five_held = [&](uint64_t index) {
    return alone([&](const simt::Warp& warp) {
      WriteHold hold{};
      const simt::Deadline deadline = simt::Deadline::after_ns(fs().lock_timeout_ns);
      EXPECT_EQ(detail::hold_in_ring(warp, open_of(fd), Hold::kRange,
                                     {5 * kBlockBytes, kBlockBytes}, deadline, hold),
                0);
      const int error = detail::write_block_pieces(
          warp, fs(), detail::held_file(hold), 1u,
          {index * kBlockBytes, kBlockBytes, reinterpret_cast<const uint8_t*>(bytes.data())});
      detail::release(warp, fs(), hold);
      return error;
    });
  };
  EXPECT_EQ(write_with_five_held(5), 0);
  EXPECT_DEATH(write_with_five_held(4), "");
  EXPECT_DEATH(write_with_five_held(6), "");
}

}  // namespace
}  // namespace gofs::vfs
