// SPDX-License-Identifier: Apache-2.0
//
// What a file loses when its contents change, whoever changes them and in whatever way.
#include "vfs/prepare_write.h"

#include <gtest/gtest.h>

#include <atomic>
#include <cerrno>
#include <functional>
#include <string>
#include <vector>

#include "f2fs/capability_looks.h"
#include "testing/held_command.hpp"
#include "vfs/async.h"
#include "vfs/async_write.h"
#include "vfs/fallocate.h"
#include "vfs/open.h"
#include "vfs/set_xattr.h"
#include "vfs/write_lanes.h"
#include "vfs/writing_vfs_for_test.hpp"

namespace gofs::vfs {
namespace {

const std::string kCapability("\1\0\0\2\0\4\0\0\0\0\0\0\0\0\0\0\0\0\0\0", 20);

class PrepareWriteTest : public WritingVfsTest {
 protected:
  PrepareWriteTest()
      : WritingVfsTest([](image::ImageBuilder& builder) {
          image::FileSpec spec;
          spec.name = "f";
          spec.attributes = {.mode = 0666};
          spec.size_bytes = 20'000;
          spec.inline_xattr = true;
          TestImage::must(builder.add_file(builder.root(), spec));
        }),
        block_(2 * kBlockBytes, 'b') {
    fd_ = static_cast<int>(
        as_root([&](const simt::Warp& warp) { return open(warp, fs(), "/f", kOpenReadWrite); }));
    EXPECT_GE(fd_, 0);
  }
  /// A block that a device can take, where it asks for more than any bytes.
  const uint8_t* block() const {
    const auto from = reinterpret_cast<uintptr_t>(block_.data());
    return reinterpret_cast<const uint8_t*>(block_.data()) + (kBlockBytes - from % kBlockBytes);
  }
  int64_t give(const char* name, const std::string& value) {
    return as_root([&](const simt::Warp& warp) {
      return setxattr(warp, fs(), "/f", LastLink::kFollow, name, value.data(), value.size(), 0);
    });
  }
  int64_t size_of(const char* name) {
    return as_root([&](const simt::Warp& warp) {
      return getxattr(warp, fs(), "/f", LastLink::kFollow, name, nullptr, 0);
    });
  }

  std::string block_;
  int fd_ = -1;
};
GOFS_AT_BOTH_WIDTHS(PrepareWriteTest);

TEST_P(PrepareWriteTest, what_changes_contents_takes_the_capability) {
  struct Way {
    const char* name;
    std::function<int64_t(const simt::Warp&)> change;
  };
  const std::vector<Way> ways = {
      {"over a part of a block",
       [&](const simt::Warp& warp) { return pwrite(warp, fs(), fd_, "abc", 3, 5000); }},
      {"over a block",
       [&](const simt::Warp& warp) {
         return pwrite(warp, fs(), fd_, block(), kBlockBytes, kBlockBytes);
       }},
      {"behind the end",
       [&](const simt::Warp& warp) { return pwrite(warp, fs(), fd_, "abc", 3, 30'000); }},
      {"by lanes",
       [&](const simt::Warp& warp) {
         return pwrite_lanes(warp, fs(),
                             {fd_, block(), kBlockBytes, warp.thread_rank() * kBlockBytes});
       }},
      {"in the background",
       [&](const simt::Warp& warp) {
         const Ticket ticket = pwrite_async(warp, fs(), fd_, block(), kBlockBytes, 0);
         return ticket.result < 0 ? ticket.result : wait(warp, fs(), ticket);
       }},
      {"shorter", [&](const simt::Warp& warp) { return ftruncate(warp, fs(), fd_, 19'000); }},
      {"by its path", [&](const simt::Warp& warp) { return truncate(warp, fs(), "/f", 21'000); }},
      {"reserved",
       [&](const simt::Warp& warp) { return fallocate(warp, fs(), fd_, 0, 0, 40'000); }},
      {"with a hole",
       [&](const simt::Warp& warp) {
         return fallocate(warp, fs(), fd_, kFallocatePunchHole | kFallocateKeepSize, 0, 4096);
       }},
      {"emptied",
       [&](const simt::Warp& warp) -> int64_t {
         const int fd = open(warp, fs(), "/f", kOpenWriteOnly | kOpenTruncate);
         return fd < 0 ? fd : close(warp, fs(), fd);
       }},
  };
  ASSERT_EQ(give("user.other", "stays"), 0);
  for (const Way& way : ways) {
    for (const uint32_t uid : {0u, 8u}) {
      ASSERT_EQ(give("security.capability", kCapability), 0);
      ASSERT_EQ(size_of("security.capability"), 20);
      EXPECT_GE(as(who(uid, uid), way.change), 0) << way.name;
      EXPECT_EQ(size_of("security.capability"), -ENODATA) << way.name << ", by user " << uid;
      EXPECT_GE(as(who(uid, uid), way.change), 0) << way.name;
    }
  }
  EXPECT_EQ(size_of("user.other"), 5);
}

TEST_P(PrepareWriteTest, that_there_is_none_is_looked_up_once_and_forgotten_when_there_may_be_one) {
  const f2fs::Inode& inode = fs().open_inodes[fs().descriptors[fd_].open_inode].inode;
  const auto overwrite = [&] {
    EXPECT_EQ(as_root([&](const simt::Warp& warp) {
                return pwrite(warp, fs(), fd_, block(), kBlockBytes, 0);
              }),
              int64_t{kBlockBytes});
  };
  EXPECT_FALSE(f2fs::is_known_without_capability(inode));
  overwrite();
  EXPECT_TRUE(f2fs::is_known_without_capability(inode));
  EXPECT_EQ(give("user.any", "x"), 0);
  EXPECT_TRUE(f2fs::is_known_without_capability(inode));
  EXPECT_EQ(give("security.capability", kCapability), 0);
  EXPECT_FALSE(f2fs::is_known_without_capability(inode));
  EXPECT_EQ(inode.times_set_ns, 0) << "no fast path";
  overwrite();
  EXPECT_EQ(size_of("security.capability"), -ENODATA);
}

TEST_P(PrepareWriteTest, nobody_writes_before_the_capability_is_gone) {
  ASSERT_EQ(give("security.capability", kCapability), 0);
  const uint32_t ino = fs().open_inodes[fs().descriptors[fd_].open_inode].inode.ino;
  std::atomic<bool> is_held{false};
  std::atomic<uint32_t> written{0};
  testing::run_crowd({4, GetParam()}, [&](const simt::Warp& warp, uint32_t index) {
    if (index == 0) {
      ASSERT_EQ(lock_inode(warp, fs(), ino), 0);
      if (warp.thread_rank() == 0) is_held = true;
      // All others come to where one has to take the capability away, and cannot.
      (void)testing::wait_until([&] { return written != 0; }, 50'000'000);
      EXPECT_EQ(written, 0u);
      unlock_inode(warp, fs(), ino);
      return;
    }
    EXPECT_TRUE(testing::wait_until([&] { return is_held.load(); }));
    warp.sync();
    EXPECT_EQ(pwrite(warp, fs(), fd_, block(), kBlockBytes, uint64_t{index} * kBlockBytes),
              int64_t{kBlockBytes});
    if (warp.thread_rank() == 0) ++written;
  });
  EXPECT_EQ(written, 3u);
  EXPECT_EQ(size_of("security.capability"), -ENODATA);
}

TEST(CapabilityLooks, what_is_set_during_a_look_is_not_overlooked) {
  f2fs::Inode inode{};
  const uint32_t first = f2fs::begin_capability_look(inode);
  const uint32_t second = f2fs::begin_capability_look(inode);
  f2fs::without_capability(inode, first);
  f2fs::without_capability(inode, second);
  EXPECT_TRUE(f2fs::is_known_without_capability(inode));
  const uint32_t third = f2fs::begin_capability_look(inode);
  f2fs::capability_may_be_there(inode);
  f2fs::without_capability(inode, third);
  EXPECT_FALSE(f2fs::is_known_without_capability(inode));
  const uint32_t fourth = f2fs::begin_capability_look(inode);
  f2fs::capability_may_be_there(inode);
  f2fs::without_capability(inode, fourth);
  EXPECT_FALSE(f2fs::is_known_without_capability(inode));
  f2fs::without_capability(inode, f2fs::begin_capability_look(inode));
  EXPECT_TRUE(f2fs::is_known_without_capability(inode));
}

}  // namespace
}  // namespace gofs::vfs
