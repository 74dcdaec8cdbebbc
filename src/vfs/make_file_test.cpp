// SPDX-License-Identifier: Apache-2.0
//
// New names through paths: what is made, who may make it, and thousands made side by side in one
// directory and in many.
#include "vfs/make_file.h"

#include <cstdio>

#include "vfs/writing_vfs_for_test.hpp"

namespace gofs::vfs {
namespace {

class MakeFileTest : public WritingVfsTest {
 protected:
  MakeFileTest()
      : WritingVfsTest([](image::ImageBuilder& builder) {
          image::FileSpec spec;
          spec.name = "f";
          spec.attributes = {.mode = 0644, .uid = 7, .gid = 70};
          TestImage::must(builder.add_file(builder.root(), spec));
          TestImage::must(builder.add_directory(builder.root(), "group",
                                                {.mode = 02777, .uid = 7, .gid = 70}, {}, nullptr));
          TestImage::must(builder.add_directory(builder.root(), "d", {.mode = 0755}, {}, nullptr));
          TestImage::must(builder.add_symlink(builder.root(), "to_d", "d", {}));
          TestImage::must(builder.add_symlink(builder.root(), "nowhere", "gone", {}, true));
        }) {}
  int64_t mkdir_as(const Credentials& user, const char* path, uint32_t mode = 0755) {
    return as(user, [&](const simt::Warp& warp) { return mkdir(warp, fs(), path, mode); });
  }
  int64_t mknod_as(const Credentials& user, const char* path, uint32_t mode) {
    return as(user, [&](const simt::Warp& warp) { return mknod(warp, fs(), path, mode, {3, 4}); });
  }
  int64_t symlink_as(const Credentials& user, const std::string& target, const char* path) {
    return as(user,
              [&](const simt::Warp& warp) { return symlink(warp, fs(), target.c_str(), path); });
  }
  int64_t link_as(const Credentials& user, const char* existing, const char* path) {
    return as(user, [&](const simt::Warp& warp) { return link(warp, fs(), existing, path); });
  }
  /// Closes what it opened. 0 or a negative errno.
  int64_t open_as(const Credentials& user, const char* path, uint32_t flags, uint32_t mode) {
    return as(user, [&](const simt::Warp& warp) {
      const int fd = open(warp, fs(), path, flags, mode);
      return fd < 0 ? fd : close(warp, fs(), fd);
    });
  }
};
GOFS_AT_BOTH_WIDTHS(MakeFileTest);

TEST_P(MakeFileTest, every_kind_is_what_was_asked_for) {
  const Credentials root = who(0, 0);
  EXPECT_EQ(mkdir_as(root, "/d/sub//", 01751), 0);
  EXPECT_EQ(mkdir_as(root, "/to_d/sub/deep", 0700), 0);
  EXPECT_EQ(mknod_as(root, "/fifo", format::kModeFifo | 0640), 0);
  EXPECT_EQ(mknod_as(root, "/socket", format::kModeSocket | 0600), 0);
  EXPECT_EQ(mknod_as(root, "/char", format::kModeCharDevice | 0600), 0);
  EXPECT_EQ(mknod_as(root, "/plain", 0604), 0);
  EXPECT_EQ(symlink_as(root, "d/sub", "/soft"), 0);
  EXPECT_EQ(symlink_as(root, std::string(3000, 'x'), "/d/far"), 0);
  EXPECT_EQ(link_as(root, "/f", "/d/hard"), 0);
  EXPECT_EQ(link_as(root, "/soft", "/d/soft2"), 0);
  EXPECT_EQ(open_as(root, "/d/new", kOpenWriteOnly | kOpenCreate, 0404), 0);
  mount_again();
  EXPECT_EQ(stat_of_path("/d/sub").mode, uint32_t{format::kModeDirectory} | 01751);
  EXPECT_EQ(stat_of_path("/d/sub").links, 3u);
  EXPECT_EQ(stat_of_path("/d").links, 3u);
  EXPECT_EQ(stat_of_path("/fifo").mode, uint32_t{format::kModeFifo} | 0640);
  EXPECT_EQ(stat_of_path("/socket").mode & format::kModeTypeMask, uint32_t{format::kModeSocket});
  EXPECT_EQ(stat_of_path("/char").device_major, 3u);
  EXPECT_EQ(stat_of_path("/char").device_minor, 4u);
  EXPECT_EQ(stat_of_path("/plain").mode, uint32_t{format::kModeRegular} | 0604);
  EXPECT_EQ(stat_of_path("/soft").size_bytes, 5u);
  EXPECT_EQ(stat_of_path("/soft").links, 2u);
  EXPECT_EQ(stat_of_path("/soft/deep").mode & format::kModePermissionMask, 0700u);
  EXPECT_EQ(stat_of_path("/d/far").size_bytes, 3000u);
  EXPECT_EQ(stat_of_path("/d/hard").ino, stat_of_path("/f").ino);
  EXPECT_EQ(stat_of_path("/f").links, 2u);
  EXPECT_EQ(stat_of_path("/d/new").mode, uint32_t{format::kModeRegular} | 0404);
  EXPECT_EQ(stat_of_path("/d/new").modified.seconds, 2'000'000'000);
  EXPECT_EQ(names_in("/d"), (std::set<std::string>{"sub", "far", "hard", "soft2", "new"}));
}

TEST_P(MakeFileTest, what_cannot_be_is_refused) {
  const Credentials root = who(0, 0);
  const std::string long_name = "/" + std::string(256, 'n');
  EXPECT_EQ(mkdir_as(root, "/d"), -EEXIST);
  EXPECT_EQ(mkdir_as(root, "/"), -EEXIST);
  EXPECT_EQ(mkdir_as(root, "/d/."), -EEXIST);
  EXPECT_EQ(mkdir_as(root, "/d/.."), -EEXIST);
  EXPECT_EQ(mkdir_as(root, "/nowhere"), -EEXIST);
  EXPECT_EQ(mkdir_as(root, ""), -ENOENT);
  EXPECT_EQ(mkdir_as(root, "/none/x"), -ENOENT);
  EXPECT_EQ(mkdir_as(root, "/f/x"), -ENOTDIR);
  EXPECT_EQ(mkdir_as(root, long_name.c_str()), -ENAMETOOLONG);
  EXPECT_EQ(mknod_as(root, "/x/", format::kModeFifo), -ENOENT);
  EXPECT_EQ(mknod_as(root, "/x", format::kModeDirectory), -EPERM);
  EXPECT_EQ(mknod_as(root, "/x", format::kModeSymlink), -EINVAL);
  EXPECT_EQ(mknod_as(who(7, 7), "/group/x", format::kModeBlockDevice), -EPERM);
  EXPECT_EQ(symlink_as(root, "", "/x"), -ENOENT);
  EXPECT_EQ(symlink_as(root, std::string(4096, 'x'), "/x"), -ENAMETOOLONG);
  EXPECT_EQ(symlink_as(root, "x", "/f"), -EEXIST);
  EXPECT_EQ(link_as(root, "/d", "/x"), -EPERM);
  EXPECT_EQ(link_as(root, "/none", "/x"), -ENOENT);
  EXPECT_EQ(link_as(root, "/f", "/d"), -EEXIST);
  EXPECT_EQ(link_as(root, "/f", "/x/"), -ENOENT);
  EXPECT_EQ(open_as(root, "/f", kOpenCreate | kOpenExclusive, 0), -EEXIST);
  EXPECT_EQ(open_as(root, "/nowhere", kOpenCreate | kOpenExclusive, 0), -EEXIST);
  EXPECT_EQ(open_as(root, "/d/..", kOpenCreate | kOpenExclusive, 0), -EEXIST);
  EXPECT_EQ(open_as(root, "/x/", kOpenCreate, 0), -EISDIR);
  EXPECT_EQ(open_as(root, "/x", kOpenCreate | kOpenDirectory, 0), -EINVAL);
  EXPECT_EQ(open_as(root, "/d", kOpenCreate | kOpenReadWrite, 0), -EISDIR);
  EXPECT_EQ(open_as(root, "/d", kOpenCreate, 0), -EISDIR);
  EXPECT_EQ(open_as(who(7, 7), "/d/x", kOpenCreate, 0644), -EACCES);
  EXPECT_EQ(mkdir_as(who(7, 7), "/d/x"), -EACCES);
  fs().writer = nullptr;
  EXPECT_EQ(mkdir_as(root, "/d"), -EEXIST);
  EXPECT_EQ(mkdir_as(root, "/x"), -EROFS);
  EXPECT_EQ(open_as(root, "/x", kOpenCreate, 0), -EROFS);
  EXPECT_EQ(open_as(root, "/f", kOpenCreate, 0), 0);
  EXPECT_EQ(link_as(root, "/f", "/x"), -EROFS);
}

TEST_P(MakeFileTest, long_targets_lie_in_a_block) {
  const Credentials root = who(0, 0);
  const uint64_t used = fs().volume.valid_block_count;
  std::string target = "d";
  while (target.size() < 4095) target.insert(0, target.size() % 2 == 1 ? "/" : ".");
  ASSERT_EQ(target.size(), 4095u);
  EXPECT_EQ(symlink_as(root, target, "/far"), 0);
  EXPECT_EQ(fs().volume.valid_block_count, used + 2);
  EXPECT_EQ(open_as(root, "/far/new", kOpenCreate | kOpenWriteOnly, 0600), -ENAMETOOLONG)
      << "with what follows it is too long";
  const uint64_t before = fs().volume.user_block_count;
  fs().volume.user_block_count = fs().volume.valid_block_count + 1;
  EXPECT_EQ(symlink_as(root, target, "/farther"), -ENOSPC);
  fs().volume.user_block_count = before;
  mount_again();
  char got[5000];
  EXPECT_EQ(
      as(root,
         [&](const simt::Warp& warp) { return readlink(warp, fs(), "/far", got, sizeof(got)); }),
      4095);
  EXPECT_EQ(std::string(got, 4095), target);
  EXPECT_EQ(stat_of_path("/far").size_bytes, 4095u);
  EXPECT_EQ(as(root,
               [&](const simt::Warp& warp) {
                 Stat found{};
                 return stat(warp, fs(), "/far", LastLink::kFollow, found);
               }),
            0);
  EXPECT_EQ(names_in("/").count("farther"), 0u);
}

TEST_P(MakeFileTest, a_file_is_made_where_a_link_to_nowhere_leads) {
  const Credentials root = who(0, 0);
  EXPECT_EQ(open_as(root, "/nowhere", kOpenCreate | kOpenWriteOnly | kOpenNoFollow, 0640), -ELOOP);
  EXPECT_EQ(open_as(root, "/nowhere", kOpenWriteOnly, 0), -ENOENT);
  EXPECT_EQ(open_as(root, "/nowhere", kOpenCreate | kOpenWriteOnly, 0640), 0);
  EXPECT_EQ(stat_of_path("/gone").mode & format::kModePermissionMask, 0640u);
  EXPECT_EQ(open_as(root, "/nowhere", kOpenCreate | kOpenWriteOnly, 0), 0) << "it is there";
  // Through several, of other directories.
  EXPECT_EQ(symlink_as(root, "../to_d/second", "/group/first"), 0);
  EXPECT_EQ(symlink_as(root, "/to_d/third", "/d/second"), 0);
  EXPECT_EQ(open_as(root, "/group/first", kOpenCreate | kOpenExclusive, 0600), -EEXIST);
  EXPECT_EQ(open_as(root, "/group/first", kOpenCreate | kOpenReadWrite, 0600), 0);
  EXPECT_EQ(stat_of_path("/d/third").mode & format::kModePermissionMask, 0600u);
  EXPECT_EQ(symlink_as(root, "none/deep", "/astray"), 0);
  EXPECT_EQ(open_as(root, "/astray", kOpenCreate, 0600), -ENOENT);
  EXPECT_EQ(symlink_as(root, "around", "/around"), 0);
  EXPECT_EQ(open_as(root, "/around", kOpenCreate, 0600), -ELOOP);
  EXPECT_EQ(symlink_as(root, "d/mine", "/denied"), 0);
  EXPECT_EQ(open_as(who(9, 90), "/denied", kOpenCreate, 0600), -EACCES);
  EXPECT_EQ(mkdir_as(root, "/denied"), -EEXIST) << "only a file is made behind a link";
  mount_again();
  EXPECT_EQ(names_in("/d"), (std::set<std::string>{"second", "third"}));
}

TEST_P(MakeFileTest, owners_and_groups_come_from_the_maker_or_the_directory) {
  EXPECT_EQ(open_as(who(9, 90), "/group/f", kOpenCreate | kOpenWriteOnly, 02775), 0);
  EXPECT_EQ(mkdir_as(who(9, 90), "/group/d", 0755), 0);
  const Stat file = stat_of_path("/group/f");
  EXPECT_EQ(file.uid, 9u);
  EXPECT_EQ(file.gid, 70u);
  EXPECT_EQ(file.mode & format::kModePermissionMask, 0775u) << "of a group that is not his";
  EXPECT_EQ(stat_of_path("/group/d").mode & format::kModePermissionMask, 02755u);
  EXPECT_EQ(stat_of_path("/group/d").gid, 70u);
}

TEST_P(MakeFileTest, a_new_file_is_written_by_who_made_it_whatever_its_mode) {
  const int64_t written = as(who(9, 90), [&](const simt::Warp& warp) -> int64_t {
    const int fd = open(warp, fs(), "/group/secret", kOpenCreate | kOpenReadWrite, 0);
    if (fd < 0) return fd;
    const int64_t bytes = write(warp, fs(), fd, "text", 4);
    return close(warp, fs(), fd) == 0 ? bytes : -1;
  });
  EXPECT_EQ(written, 4);
  EXPECT_EQ(open_as(who(9, 90), "/group/secret", kOpenReadWrite, 0), -EACCES);
  mount_again();
  EXPECT_EQ(stat_of_path("/group/secret").size_bytes, 4u);
}

// In one directory, in one of each warp's own, and all of them the same names: who is second finds
// what the first has made.
TEST_P(MakeFileTest, many_make_names_side_by_side) {
  constexpr uint32_t kWarps = 4;
  constexpr uint32_t kEach = 60;
  std::vector<uint32_t> made(kWarps);
  fs().credentials = who(0, 0);
  run_crowd({kWarps, width()}, [&](const simt::Warp& warp, uint32_t index) {
    char path[64];
    std::snprintf(path, sizeof(path), "/own%u", index);
    EXPECT_EQ(mkdir(warp, fs(), path, 0755), 0);
    for (uint32_t i = 0; i < kEach; ++i) {
      std::snprintf(path, sizeof(path), "/d/file-%u-%u", index, i);
      int fd = open(warp, fs(), path, kOpenCreate | kOpenExclusive | kOpenWriteOnly, 0644);
      EXPECT_GE(fd, 0);
      EXPECT_EQ(write(warp, fs(), fd, path, 10), 10);
      EXPECT_EQ(close(warp, fs(), fd), 0);
      std::snprintf(path, sizeof(path), "/own%u/file-%u", index, i);
      fd = open(warp, fs(), path, kOpenCreate | kOpenWriteOnly, 0644);
      EXPECT_GE(fd, 0);
      EXPECT_EQ(close(warp, fs(), fd), 0);
      std::snprintf(path, sizeof(path), "/group/shared-%u", i);
      const int error = mkdir(warp, fs(), path, 0755);
      EXPECT_TRUE(error == 0 || error == -EEXIST) << error;
      if (error == 0 && warp.thread_rank() == 0) ++made[index];
    }
  });
  mount_again();
  uint32_t all = 0;
  for (const uint32_t count : made) all += count;
  EXPECT_EQ(all, kEach);
  EXPECT_EQ(names_in("/group").size(), kEach);
  EXPECT_EQ(names_in("/d").size(), kWarps * kEach);
  EXPECT_EQ(names_in("/own2").size(), kEach);
  EXPECT_EQ(stat_of_path("/group").links, kEach + 2);
  EXPECT_EQ(stat_of_path("/d/file-3-7").size_bytes, 10u);
}

TEST_P(MakeFileTest, a_full_volume_makes_nothing_by_halves) {
  const Credentials root = who(0, 0);
  const uint64_t before = fs().volume.user_block_count;
  fs().volume.user_block_count = fs().volume.valid_block_count;
  EXPECT_EQ(mkdir_as(root, "/d/x"), -ENOSPC);
  EXPECT_EQ(open_as(root, "/d/y", kOpenCreate, 0644), -ENOSPC);
  EXPECT_EQ(symlink_as(root, "z", "/d/z"), -ENOSPC);
  EXPECT_EQ(link_as(root, "/f", "/d/hard"), 0) << "there is room in the directory";
  fs().volume.user_block_count = before;
  EXPECT_EQ(names_in("/d"), std::set<std::string>{"hard"});
  mount_again();
  EXPECT_EQ(stat_of_path("/d").links, 2u);
  EXPECT_EQ(mkdir_as(root, "/d/x"), 0);
}

}  // namespace
}  // namespace gofs::vfs
