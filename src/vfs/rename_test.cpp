// SPDX-License-Identifier: Apache-2.0
//
// Renames: over nothing, over files and empty directories, across directories, exchanged; what is
// refused; no block for it; and lookups and other renames beside them.
#include "vfs/rename.h"

#include <atomic>
#include <cstdio>

#include "vfs/writing_vfs_for_test.hpp"

namespace gofs::vfs {
namespace {

class RenameTest : public WritingVfsTest {
 protected:
  RenameTest()
      : WritingVfsTest([](image::ImageBuilder& builder) {
          for (const char* name : {"a", "b", "open"}) {
            TestImage::must(
                builder.add_directory(builder.root(), name, {.mode = 0777}, {}, nullptr));
          }
          TestImage::must(
              builder.add_directory(builder.root(), "sticky", {.mode = 01777}, {}, nullptr));
        }) {}

  int64_t rename_as(const Credentials& user, const char* from, const char* to, uint32_t flags = 0) {
    return as(user, [&](const simt::Warp& warp) { return rename(warp, fs(), from, to, flags); });
  }
  int64_t move(const char* from, const char* to, uint32_t flags = 0) {
    return rename_as(who(0, 0), from, to, flags);
  }
  void make_directory(const char* path) {
    EXPECT_EQ(as_root([&](const simt::Warp& warp) { return mkdir(warp, fs(), path, 0755); }), 0)
        << path;
  }
};
GOFS_AT_BOTH_WIDTHS(RenameTest);

TEST_P(RenameTest, files_get_new_names_and_places) {
  put_file("/a/x", 5000, 'x');
  const uint64_t ino = stat_of_path("/a/x").ino;
  EXPECT_EQ(letter_of("/a/x"), 'x');
  EXPECT_EQ(move("/a/x", "/a/y"), 0);
  EXPECT_EQ(letter_of("/a/x"), -ENOENT);
  EXPECT_EQ(letter_of("/a/y"), 'x');
  EXPECT_EQ(move("/a/y", "/b/longer_than_it_was"), 0);
  EXPECT_EQ(letter_of("/a/y"), -ENOENT);
  EXPECT_EQ(letter_of("/b/longer_than_it_was"), 'x');
  mount_again();
  EXPECT_EQ(stat_of_path("/b/longer_than_it_was").ino, ino);
  EXPECT_EQ(letter_of("/b/longer_than_it_was"), 'x');
  EXPECT_TRUE(names_in("/a").empty());
}

TEST_P(RenameTest, what_was_there_is_replaced_and_freed) {
  const std::vector<uint64_t> before = used();
  put_file("/a/x", 5000, 'x');
  put_file("/b/y", 9'000'000, 'y');
  EXPECT_EQ(letter_of("/b/y"), 'y');
  EXPECT_EQ(move("/a/x", "/b/y"), 0);
  EXPECT_EQ(letter_of("/b/y"), 'x');
  EXPECT_EQ(writing_->writer().orphans.count, 0u);
  EXPECT_EQ(used()[2], before[2] + 1);
  EXPECT_EQ(stat_of_path("/b/y").links, 1u);
  mount_again();
  EXPECT_EQ(letter_of("/b/y"), 'x');
}

TEST_P(RenameTest, one_of_several_names_is_replaced_and_the_others_stay) {
  put_file("/a/x", 10, 'x');
  put_file("/b/y", 10, 'y');
  EXPECT_EQ(as_root([&](const simt::Warp& warp) { return link(warp, fs(), "/b/y", "/b/z"); }), 0);
  EXPECT_EQ(move("/a/x", "/b/y"), 0);
  EXPECT_EQ(stat_of_path("/b/z").links, 1u);
  EXPECT_EQ(letter_of("/b/z"), 'y');
  EXPECT_EQ(as_root([&](const simt::Warp& warp) { return link(warp, fs(), "/b/z", "/b/w"); }), 0);
  EXPECT_EQ(move("/b/z", "/b/w"), 0) << "two names of one file: POSIX leaves both";
  EXPECT_EQ(stat_of_path("/b/z").links, 2u);
  mount_again();
  EXPECT_EQ(names_in("/b"), (std::set<std::string>{"w", "y", "z"}));
}

TEST_P(RenameTest, directories_move_with_all_that_is_in_them) {
  make_directory("/a/sub");
  make_directory("/a/sub/deep");
  put_file("/a/sub/deep/f", 10, 'f');
  make_directory("/b/empty");
  EXPECT_EQ(letter_of("/a/sub/deep/f"), 'f');
  EXPECT_EQ(stat_of_path("/a").links, 3u);
  EXPECT_EQ(stat_of_path("/b").links, 3u);
  EXPECT_EQ(move("/a/sub/", "/b/empty/"), 0);
  EXPECT_EQ(stat_of_path("/a").links, 2u);
  EXPECT_EQ(stat_of_path("/b").links, 3u);
  EXPECT_EQ(letter_of("/a/sub/deep/f"), -ENOENT);
  EXPECT_EQ(letter_of("/b/empty/deep/f"), 'f');
  EXPECT_EQ(stat_of_path("/b/empty/..").ino, stat_of_path("/b").ino);
  EXPECT_EQ(move("/b/empty", "/a/back"), 0);
  EXPECT_EQ(stat_of_path("/a/back/..").ino, stat_of_path("/a").ino);
  mount_again();
  EXPECT_EQ(letter_of("/a/back/deep/f"), 'f');
  EXPECT_EQ(stat_of_path("/a").links, 3u);
  EXPECT_EQ(stat_of_path("/b").links, 2u);
}

TEST_P(RenameTest, exchanged_names_lead_to_each_others_inodes) {
  put_file("/a/file", 10, 'f');
  make_directory("/b/dir");
  put_file("/b/dir/in", 10, 'i');
  EXPECT_EQ(move("/a/file", "/b/dir", kRenameExchange), 0);
  EXPECT_EQ(letter_of("/b/dir"), 'f');
  EXPECT_EQ(letter_of("/a/file/in"), 'i');
  EXPECT_EQ(stat_of_path("/a").links, 3u);
  EXPECT_EQ(stat_of_path("/b").links, 2u);
  EXPECT_EQ(stat_of_path("/a/file/..").ino, stat_of_path("/a").ino);
  put_file("/a/other", 10, 'o');
  put_file("/a/third", 10, 't');
  EXPECT_EQ(move("/a/other", "/a/third", kRenameExchange), 0);
  EXPECT_EQ(letter_of("/a/other"), 't');
  EXPECT_EQ(letter_of("/a/third"), 'o');
  make_directory("/b/second");
  EXPECT_EQ(move("/a/file", "/b/second", kRenameExchange), 0) << "two directories";
  mount_again();
  EXPECT_EQ(letter_of("/b/second/in"), 'i');
  EXPECT_EQ(stat_of_path("/a").links, 3u);
  EXPECT_EQ(stat_of_path("/b").links, 3u);
}

TEST_P(RenameTest, what_cannot_be_is_refused_and_changes_nothing) {
  put_file("/a/f", 10, 'f');
  put_file("/a/g", 10, 'g');
  make_directory("/a/d");
  make_directory("/a/d/e");
  make_directory("/b/empty");
  const std::string long_name = "/a/" + std::string(256, 'n');
  EXPECT_EQ(move("/a/none", "/a/x"), -ENOENT);
  EXPECT_EQ(move("/a/f", "/none/x"), -ENOENT);
  EXPECT_EQ(move("/a/f", "/a/g/x"), -ENOTDIR);
  EXPECT_EQ(move("/a/f", "/a/g", kRenameNoReplace), -EEXIST);
  EXPECT_EQ(move("/a/f", "/a/x", kRenameExchange), -ENOENT);
  EXPECT_EQ(move("/a/f", "/a/g", kRenameNoReplace | kRenameExchange), -EINVAL);
  EXPECT_EQ(move("/a/f", "/a/x", 4), -EINVAL);
  EXPECT_EQ(move("/a/f", "/a/x", 0x80000000u), -EINVAL);
  EXPECT_EQ(move("/a/f", "/a/d"), -EISDIR);
  EXPECT_EQ(move("/a/d", "/a/f"), -ENOTDIR);
  EXPECT_EQ(move("/b/empty", "/a/d"), -ENOTEMPTY);
  EXPECT_EQ(move("/a/d", "/a/d/e/x"), -EINVAL);
  EXPECT_EQ(move("/a/d", "/a/d/x"), -EINVAL);
  EXPECT_EQ(move("/a", "/a/d/e"), -EINVAL);
  EXPECT_EQ(move("/a/d/e", "/a/d"), -ENOTEMPTY);
  EXPECT_EQ(move("/a/d/e", "/a"), -ENOTEMPTY);
  EXPECT_EQ(move("/a/d/e", "/a/d", kRenameExchange), -EINVAL);
  EXPECT_EQ(move("/a/f/", "/a/x"), -ENOTDIR);
  EXPECT_EQ(move("/a/f", "/a/x/"), -ENOTDIR);
  EXPECT_EQ(move("/a/d/.", "/a/x"), -EBUSY);
  EXPECT_EQ(move("/a/d", "/a/d/e/.."), -EBUSY);
  EXPECT_EQ(move("/", "/a/x"), -EBUSY);
  EXPECT_EQ(move("/a/d", "/"), -EBUSY);
  EXPECT_EQ(move("/a/d", "/", kRenameNoReplace), -EEXIST);
  EXPECT_EQ(move("", "/a/x"), -ENOENT);
  EXPECT_EQ(move("/a/f", long_name.c_str()), -ENAMETOOLONG);
  EXPECT_EQ(move("/a/f", "/a/f"), 0) << "nothing to do";
  put_file("/sticky/of_root", 10, 's');
  EXPECT_EQ(rename_as(who(7, 7), "/sticky/of_root", "/open/x"), -EPERM);
  EXPECT_EQ(rename_as(who(7, 7), "/a/d", "/b/d"), -EACCES) << "its .. would change";
  EXPECT_EQ(rename_as(who(7, 7), "/a/d", "/a/d2"), 0);
  EXPECT_EQ(rename_as(who(7, 7), "/a/d2", "/a/d"), 0);
  fs().writer = nullptr;
  EXPECT_EQ(move("/a/f", "/a/x"), -EROFS);
  fs().writer = &writing_->writer();
  mount_again();
  EXPECT_EQ(names_in("/a"), (std::set<std::string>{"f", "g", "d"}));
  EXPECT_EQ(names_in("/a/d"), (std::set<std::string>{"e"}));
  EXPECT_EQ(stat_of_path("/a").links, 3u);
}

TEST_P(RenameTest, a_replaced_file_lives_while_it_is_open) {
  put_file("/a/x", 10, 'x');
  put_file("/a/y", 20'000, 'y');
  int fd = -1;
  as_root([&](const simt::Warp& warp) {
    const int opened = open(warp, fs(), "/a/y", kOpenReadOnly);
    if (warp.thread_rank() == 0) fd = opened;
    return 0;
  });
  EXPECT_EQ(move("/a/x", "/a/y"), 0);
  EXPECT_EQ(as_root([&](const simt::Warp& warp) { return first_letter(warp, fd); }), 'y');
  EXPECT_EQ(letter_of("/a/y"), 'x');
  EXPECT_EQ(writing_->writer().orphans.count, 1u);
  EXPECT_EQ(as_root([&](const simt::Warp& warp) { return close(warp, fs(), fd); }), 0);
  EXPECT_EQ(writing_->writer().orphans.count, 0u);
  mount_again();
  EXPECT_EQ(letter_of("/a/y"), 'x');
}

// Files go to and fro, over each other, directories into each other; what is renamed over all the
// time is there for all threads all the time.
TEST_P(RenameTest, names_that_are_replaced_are_never_missing) {
  const uint32_t turns = width() == 1 ? 100 : 20;
  put_file("/a/always", 10, 'A');
  for (uint32_t i = 0; i < 4; ++i) {
    char path[32];
    std::snprintf(path, sizeof(path), "/open/d%u", i);
    make_directory(path);
  }
  std::atomic<uint32_t> missing{0};
  std::atomic<uint32_t> wrong{0};
  fs().credentials = who(0, 0);
  run_crowd({4, width()}, [&](const simt::Warp& warp, uint32_t index) {
    for (uint32_t turn = 0; turn < turns; ++turn) {
      if (index == 0) {
        Stat now{};
        if (stat(warp, fs(), "/a/always", LastLink::kFollow, now) != 0) ++missing;
        continue;
      }
      char own[32];
      std::snprintf(own, sizeof(own), "/b/own%u", index);
      const int fd = open(warp, fs(), own, kOpenCreate | kOpenWriteOnly, 0644);
      if (fd < 0 || close(warp, fs(), fd) != 0) ++wrong;
      if (rename(warp, fs(), own, "/a/always") != 0) ++wrong;
      // Two of these would be a circle if they came at the same time.
      char from[32];
      char to[64];
      std::snprintf(from, sizeof(from), "/open/d%u", turn % 4);
      std::snprintf(to, sizeof(to), "/open/d%u/moved", (turn + index) % 4);
      int moved = rename(warp, fs(), from, to);
      if (moved != 0 && moved != -ENOENT && moved != -EINVAL && moved != -ENOTEMPTY) ++wrong;
      moved = rename(warp, fs(), to, from);
      if (moved != 0 && moved != -ENOENT && moved != -EINVAL && moved != -ENOTEMPTY) ++wrong;
    }
  });
  EXPECT_EQ(missing, 0u);
  EXPECT_EQ(wrong, 0u);
  EXPECT_EQ(f2fs::count_findings(*volume().corruptions), 0u);
  mount_again();
  EXPECT_EQ(names_in("/a"), (std::set<std::string>{"always"}));
  EXPECT_EQ(writing_->writer().orphans.count, 0u);
}

}  // namespace
}  // namespace gofs::vfs
