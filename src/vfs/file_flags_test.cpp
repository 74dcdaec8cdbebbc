// SPDX-License-Identifier: Apache-2.0
//
// Files that chattr has marked, which GoFS itself does not do.
#include <gtest/gtest.h>

#include <cerrno>
#include <vector>

#include "vfs/open.h"
#include "vfs/writing_vfs_for_test.hpp"

namespace gofs::vfs {
namespace {

class FileFlagsTest : public WritingVfsTest {
 protected:
  FileFlagsTest()
      : WritingVfsTest([](image::ImageBuilder& builder) {
          image::FileSpec spec;
          spec.name = "f";
          spec.attributes = {.mode = 0644, .uid = 7, .gid = 7};
          spec.size_bytes = 20'000;
          TestImage::must(builder.add_file(builder.root(), spec));
          TestImage::must(
              builder.add_directory(builder.root(), "dir", {.mode = 0777}, {}, nullptr));
        }) {}
  uint32_t number_of(const char* path) { return static_cast<uint32_t>(stat_of_path(path).ino); }
  /// Marks what `path` names, as chattr does, while the volume is not mounted.
  void mark(const char* path, uint32_t flags, uint8_t advise = 0) {
    const uint32_t ino = number_of(path);
    unmount();
    auto* const node =
        reinterpret_cast<format::NodeBlock*>(image_.block(image_.nat_entry(ino).block_addr));
    node->inode.i_flags = flags;
    node->inode.i_advise = advise;
    begin();
  }
  int64_t open_as(uint32_t uid, const char* path, uint32_t flags) {
    return as(who(uid, uid),
              [&](const simt::Warp& warp) { return open(warp, fs(), path, flags, 0644); });
  }
};
GOFS_AT_BOTH_WIDTHS(FileFlagsTest);

TEST_P(FileFlagsTest, what_is_only_appended_to_is_not_cut) {
  mark("/f", format::kFlagAppend);
  EXPECT_EQ(open_as(0, "/f", kOpenReadWrite), -EPERM);
  const auto fd = static_cast<int>(open_as(0, "/f", kOpenReadWrite | kOpenAppend));
  ASSERT_GE(fd, 0);
  for (const uint64_t size : {0, 20'000, 30'000}) {
    EXPECT_EQ(as_root([&](const simt::Warp& warp) { return ftruncate(warp, fs(), fd, size); }),
              -EPERM);
  }
  EXPECT_EQ(as_root([&](const simt::Warp& warp) { return truncate(warp, fs(), "/f", 0); }), -EPERM);
  EXPECT_EQ(as_root([&](const simt::Warp& warp) { return write(warp, fs(), fd, "more", 4); }), 4);
  EXPECT_EQ(stat_of_path("/f").size_bytes, 20'004u);
}

TEST_P(FileFlagsTest, what_is_immutable_says_so_before_anything_else) {
  mark("/f", format::kFlagImmutable);
  for (const uint32_t uid : {0u, 7u, 8u}) {
    EXPECT_EQ(open_as(uid, "/f", kOpenWriteOnly), -EPERM) << uid;
    EXPECT_EQ(as(who(uid, uid),
                 [&](const simt::Warp& warp) { return access(warp, fs(), "/f", kMayWrite); }),
              -EPERM)
        << uid;
  }
  EXPECT_GE(open_as(8, "/f", kOpenReadOnly), 0);
  mark("/f", 0);
  mark("/dir", format::kFlagImmutable);
  for (const uint32_t uid : {0u, 8u}) {
    EXPECT_EQ(open_as(uid, "/dir/new", kOpenWriteOnly | kOpenCreate), -EPERM) << uid;
  }
}

TEST_P(FileFlagsTest, what_fs_verity_protects_is_read_only) {
  mark("/f", 0, format::kAdviseVerity);
  EXPECT_EQ(open_as(0, "/f", kOpenReadWrite), -EPERM);
  EXPECT_EQ(open_as(0, "/f", kOpenWriteOnly | kOpenTruncate), -EPERM);
  EXPECT_EQ(as_root([&](const simt::Warp& warp) { return truncate(warp, fs(), "/f", 0); }), -EPERM);
  EXPECT_GE(open_as(0, "/f", kOpenReadOnly), 0);
  EXPECT_EQ(stat_of_path("/f").size_bytes, 20'000u);
}

TEST_P(FileFlagsTest, what_is_synchronous_is_durable_when_a_write_returns) {
  mark("/f", format::kFlagSync);
  const auto fd = static_cast<int>(open_as(0, "/f", kOpenReadWrite));
  ASSERT_GE(fd, 0);
  EXPECT_NE(fs().descriptors[fd].flags & kOpenDataSync, 0u);
  EXPECT_EQ(as_root([&](const simt::Warp& warp) {
              return pwrite(warp, fs(), fd, "behind the end", 14, 20'000);
            }),
            14);
  // No checkpoint was made, and the file's inode is clean.
  const uint64_t key = f2fs::page_key(f2fs::PageKind::kNode, number_of("/f"));
  const uint32_t frame = f2fs::find_frame(volume().cache, key);
  ASSERT_NE(frame, f2fs::kNoFrame);
  uint64_t held = 0;
  EXPECT_FALSE(f2fs::is_dirty_page(volume().cache, frame, f2fs::PageKind::kNode, held));
}

TEST_P(FileFlagsTest, reading_without_a_trace_is_for_owners) {
  EXPECT_EQ(open_as(8, "/f", kOpenNoAtime), -EPERM);
  EXPECT_GE(open_as(7, "/f", kOpenNoAtime), 0);
  EXPECT_GE(open_as(0, "/f", kOpenNoAtime), 0);
  EXPECT_GE(open_as(8, "/f", kOpenNoAtime | kOpenPath), 0);
}

TEST_P(FileFlagsTest, no_file_is_made_where_no_descriptor_is_left) {
  std::vector<int> fds;
  for (int64_t fd = open_as(0, "/f", kOpenReadOnly); fd >= 0;
       fd = open_as(0, "/f", kOpenReadOnly)) {
    fds.push_back(static_cast<int>(fd));
  }
  EXPECT_EQ(fds.size(), fs().descriptor_count);
  EXPECT_EQ(open_as(0, "/new", kOpenWriteOnly | kOpenCreate), -EMFILE);
  EXPECT_EQ(open_as(0, "/new", kOpenWriteOnly | kOpenCreate | kOpenExclusive), -EMFILE);
  EXPECT_EQ(lookup_error("/new"), -ENOENT);
  EXPECT_EQ(as_root([&](const simt::Warp& warp) { return close(warp, fs(), fds.back()); }), 0);
  EXPECT_EQ(open_as(0, "/none/new", kOpenWriteOnly | kOpenCreate), -ENOENT);
  EXPECT_GE(open_as(0, "/new", kOpenWriteOnly | kOpenCreate | kOpenExclusive), 0)
      << "what was refused has given its number back";
}

TEST_P(FileFlagsTest, no_file_is_larger_than_linux_makes_one) {
  const auto fd = static_cast<int>(open_as(0, "/f", kOpenReadWrite));
  ASSERT_GE(fd, 0);
  constexpr uint64_t kMost = f2fs::kFileBytesMax;
  const auto resize = [&](uint64_t size) {
    return as_root([&](const simt::Warp& warp) { return ftruncate(warp, fs(), fd, size); });
  };
  const auto write_at = [&](uint64_t offset) {
    return as_root(
        [&](const simt::Warp& warp) { return pwrite(warp, fs(), fd, "abcdef", 6, offset); });
  };
  EXPECT_EQ(resize(kMost + 1), -EFBIG);
  EXPECT_EQ(write_at(kMost), -EFBIG);
  EXPECT_EQ(write_at(kMost - 2), 2) << "as much as fits";
  EXPECT_EQ(stat_of_path("/f").size_bytes, kMost);
  EXPECT_EQ(resize(kMost), 0);
  EXPECT_EQ(resize(0), 0);
}

}  // namespace
}  // namespace gofs::vfs
