// SPDX-License-Identifier: Apache-2.0
//
// Names that go: what is removed, who may, what stays while it is open, that all the room comes
// back, and lookups beside removals.
#include "vfs/remove_file.h"

#include <atomic>
#include <cstdio>

#include "vfs/writing_vfs_for_test.hpp"

namespace gofs::vfs {
namespace {

class RemoveFileTest : public WritingVfsTest {
 protected:
  RemoveFileTest()
      : WritingVfsTest([](image::ImageBuilder& builder) {
          image::FileSpec spec;
          spec.name = "f";
          spec.attributes = {.mode = 0644, .uid = 7, .gid = 70};
          TestImage::must(builder.add_file(builder.root(), spec));
          TestImage::must(builder.add_directory(builder.root(), "d", {.mode = 0755}, {}, nullptr));
          TestImage::must(
              builder.add_directory(builder.root(), "open", {.mode = 0777}, {}, nullptr));
          TestImage::must(
              builder.add_directory(builder.root(), "sticky", {.mode = 01777}, {}, nullptr));
          TestImage::must(builder.add_symlink(builder.root(), "link", "d", {}));
        }) {}

  int64_t unlink_as(const Credentials& user, const char* path) {
    return as(user, [&](const simt::Warp& warp) { return unlink(warp, fs(), path); });
  }
  int64_t rmdir_as(const Credentials& user, const char* path) {
    return as(user, [&](const simt::Warp& warp) { return rmdir(warp, fs(), path); });
  }
  int64_t mkdir_root(const char* path) {
    return as_root([&](const simt::Warp& warp) { return mkdir(warp, fs(), path, 0755); });
  }
};
GOFS_AT_BOTH_WIDTHS(RemoveFileTest);

TEST_P(RemoveFileTest, by_number_of_the_directory_as_by_path) {
  const auto ino = static_cast<uint32_t>(stat_of_path("/d").ino);
  put_file("/d/x", 1, 'x');
  EXPECT_EQ(mkdir_root("/d/sub"), 0);
  const auto unlinked = [&](const Credentials& user, uint32_t directory, const char* name) {
    return as(user, [&](const simt::Warp& warp) { return unlink_in(warp, fs(), directory, name); });
  };
  const auto removed = [&](uint32_t directory, const char* name) {
    return as_root([&](const simt::Warp& warp) { return rmdir_in(warp, fs(), directory, name); });
  };
  EXPECT_EQ(unlinked(who(1, 1), ino, "x"), -EACCES);
  EXPECT_EQ(unlinked(who(0, 0), ino, "sub"), -EISDIR);
  EXPECT_EQ(unlinked(who(0, 0), ino, "none"), -ENOENT);
  EXPECT_EQ(unlinked(who(0, 0), ino, ""), -ENOENT);
  EXPECT_EQ(unlinked(who(0, 0), ino, ".."), -EISDIR);
  EXPECT_EQ(unlinked(who(0, 0), format::kRootIno, "d/x"), -EINVAL);
  EXPECT_EQ(unlinked(who(0, 0), static_cast<uint32_t>(stat_of_path("/f").ino), "x"), -ENOTDIR);
  EXPECT_EQ(removed(ino, "x"), -ENOTDIR);
  EXPECT_EQ(unlinked(who(0, 0), ino, "x"), 0);
  EXPECT_EQ(removed(ino, "sub"), 0);
  EXPECT_EQ(lookup_error("/d/x"), -ENOENT);
  EXPECT_EQ(removed(format::kRootIno, "d"), 0);
  EXPECT_EQ(unlinked(who(0, 0), ino, "x"), -ESTALE);
}

TEST_P(RemoveFileTest, what_is_removed_is_gone_and_its_room_is_back) {
  const std::vector<uint64_t> before = used();
  put_file("/d/small", 100, 's');
  put_file("/d/large", 9'000'000, 'l');
  put_file("/d/empty", 0, 'e');
  EXPECT_EQ(mkdir_root("/d/sub"), 0);
  EXPECT_EQ(stat_of_path("/d").links, 3u);
  for (const char* path : {"/d/small", "/d/large", "/d/empty"}) {
    EXPECT_EQ(unlink_as(who(0, 0), path), 0) << path;
    EXPECT_EQ(lookup_error(path), -ENOENT);
  }
  EXPECT_EQ(rmdir_as(who(0, 0), "/d/sub/"), 0);
  EXPECT_EQ(lookup_error("/d/sub"), -ENOENT);
  EXPECT_EQ(stat_of_path("/d").links, 2u);
  EXPECT_GE(stat_of_path("/d").modified.seconds, 2'000'000'000);
  EXPECT_TRUE(names_in("/d").empty());
  EXPECT_EQ(used(), before);
  EXPECT_EQ(writing_->writer().orphans.count, 0u);
  mount_again();
  EXPECT_TRUE(names_in("/d").empty());
  EXPECT_EQ(used(), before);
}

TEST_P(RemoveFileTest, a_file_with_other_names_stays) {
  put_file("/d/a", 10, 'a');
  EXPECT_EQ(as_root([&](const simt::Warp& warp) { return link(warp, fs(), "/d/a", "/d/b"); }), 0);
  EXPECT_EQ(unlink_as(who(0, 0), "/d/a"), 0);
  EXPECT_EQ(stat_of_path("/d/b").links, 1u);
  EXPECT_EQ(letter_of("/d/b"), 'a');
  mount_again();
  EXPECT_EQ(letter_of("/d/b"), 'a');
  EXPECT_EQ(names_in("/d"), (std::set<std::string>{"b"}));
}

TEST_P(RemoveFileTest, what_cannot_be_removed_is_refused) {
  const Credentials root = who(0, 0);
  const Credentials user = who(7, 70);
  EXPECT_EQ(mkdir_root("/d/full"), 0);
  put_file("/d/full/x", 0, 'x');
  put_file("/sticky/of_root", 0, 'x');
  EXPECT_EQ(unlink_as(root, "/none"), -ENOENT);
  EXPECT_EQ(unlink_as(root, "/none/x"), -ENOENT);
  EXPECT_EQ(unlink_as(root, ""), -ENOENT);
  EXPECT_EQ(unlink_as(root, "/f/x"), -ENOTDIR);
  EXPECT_EQ(unlink_as(root, "/f/"), -ENOTDIR);
  EXPECT_EQ(unlink_as(root, "/d"), -EISDIR);
  EXPECT_EQ(unlink_as(root, "/d/"), -EISDIR);
  EXPECT_EQ(unlink_as(root, "/"), -EISDIR);
  EXPECT_EQ(unlink_as(root, "/d/."), -EISDIR);
  EXPECT_EQ(rmdir_as(root, "/f"), -ENOTDIR);
  EXPECT_EQ(rmdir_as(root, "/link"), -ENOTDIR);
  EXPECT_EQ(rmdir_as(root, "/none"), -ENOENT);
  EXPECT_EQ(rmdir_as(root, "/"), -EBUSY);
  EXPECT_EQ(rmdir_as(root, "/d/."), -EINVAL);
  EXPECT_EQ(rmdir_as(root, "/d/full/.."), -ENOTEMPTY);
  EXPECT_EQ(rmdir_as(root, "/d/full"), -ENOTEMPTY);
  EXPECT_EQ(rmdir_as(root, "/d"), -ENOTEMPTY);
  EXPECT_EQ(unlink_as(user, "/f"), -EACCES);
  EXPECT_EQ(unlink_as(user, "/sticky/of_root"), -EPERM);
  EXPECT_EQ(unlink_as(root, (std::string("/") + std::string(256, 'n')).c_str()), -ENAMETOOLONG);
  EXPECT_EQ(names_in("/d/full"), (std::set<std::string>{"x"}));
  EXPECT_EQ(unlink_as(root, "/link"), 0) << "the link, not what it leads to";
  EXPECT_EQ(lookup_error("/d"), 0);
  EXPECT_EQ(unlink_as(root, "/sticky/of_root"), 0);
  fs().writer = nullptr;
  EXPECT_EQ(unlink_as(root, "/f"), -EROFS);
  EXPECT_EQ(rmdir_as(root, "/d/full"), -EROFS);
}

TEST_P(RemoveFileTest, others_may_remove_where_they_may_write) {
  put_file("/open/of_root", 0, 'x');
  EXPECT_EQ(unlink_as(who(7, 70), "/open/of_root"), 0);
  EXPECT_EQ(as(who(7, 70),
               [&](const simt::Warp& warp) {
                 const int fd = open(warp, fs(), "/sticky/own", kOpenCreate | kOpenWriteOnly, 0600);
                 return fd < 0 ? fd : close(warp, fs(), fd);
               }),
            0);
  EXPECT_EQ(unlink_as(who(8, 80), "/sticky/own"), -EPERM);
  EXPECT_EQ(unlink_as(who(7, 70), "/sticky/own"), 0);
}

// POSIX: the file lives until it is closed last.
TEST_P(RemoveFileTest, an_open_file_lives_until_its_last_close) {
  put_file("/d/x", 50'000, 'x');
  const std::vector<uint64_t> with_file = used();
  int fds[2] = {};
  as_root([&](const simt::Warp& warp) {
    for (int& fd : fds) {
      const int opened = open(warp, fs(), "/d/x", kOpenReadWrite);
      if (warp.thread_rank() == 0) fd = opened;
      warp.sync();
    }
    return 0;
  });
  EXPECT_EQ(unlink_as(who(0, 0), "/d/x"), 0);
  EXPECT_EQ(lookup_error("/d/x"), -ENOENT);
  EXPECT_EQ(used(), with_file);
  EXPECT_EQ(writing_->writer().orphans.count, 1u);
  put_file("/d/x", 10, 'y');
  as_root([&](const simt::Warp& warp) {
    Stat now{};
    EXPECT_EQ(fstat(warp, fs(), fds[0], now), 0);
    EXPECT_EQ(now.links, 0u);
    EXPECT_EQ(now.size_bytes, 50'000u);
    EXPECT_EQ(pwrite(warp, fs(), fds[0], "new", 3, 49'999), 3);
    EXPECT_EQ(first_letter(warp, fds[1]), 'x');
    EXPECT_EQ(close(warp, fs(), fds[0]), 0);
    EXPECT_EQ(first_letter(warp, fds[1]), 'x');
    return 0;
  });
  EXPECT_EQ(letter_of("/d/x"), 'y') << "another file of that name";
  EXPECT_EQ(writing_->writer().orphans.count, 1u);
  as_root([&](const simt::Warp& warp) { return close(warp, fs(), fds[1]); });
  EXPECT_EQ(writing_->writer().orphans.count, 0u);
  EXPECT_EQ(unlink_as(who(0, 0), "/d/x"), 0);
  mount_again();
  EXPECT_TRUE(names_in("/d").empty());
}

TEST_P(RemoveFileTest, an_open_directory_may_go_and_takes_no_new_names) {
  EXPECT_EQ(mkdir_root("/d/sub"), 0);
  int fd = -1;
  as_root([&](const simt::Warp& warp) {
    const int opened = opendir(warp, fs(), "/d/sub");
    if (warp.thread_rank() == 0) fd = opened;
    return 0;
  });
  EXPECT_EQ(rmdir_as(who(0, 0), "/d/sub"), 0);
  std::vector<f2fs::NamedEntry> entries(32);
  EXPECT_EQ(
      as_root([&](const simt::Warp& warp) { return readdir(warp, fs(), fd, entries.data(), 32); }),
      0);
  EXPECT_EQ(mkdir_root("/d/sub/deeper"), -ENOENT);
  EXPECT_EQ(mkdir_root("/d/sub"), 0) << "a new one of that name";
  EXPECT_EQ(as_root([&](const simt::Warp& warp) { return close(warp, fs(), fd); }), 0);
  mount_again();
  EXPECT_EQ(names_in("/d"), (std::set<std::string>{"sub"}));
}

// Numbers are used again: what is remembered of a name must not lead to another file.
TEST_P(RemoveFileTest, names_never_lead_to_what_got_their_number_later) {
  for (uint32_t turn = 0; turn < 30; ++turn) {
    const char letter = static_cast<char>('a' + turn % 26);
    const std::string path = "/d/" + std::string(1 + turn % 5, 'n');
    const std::string other = "/open/" + std::string(1 + turn % 3, 'm');
    put_file(path.c_str(), 5000, letter);
    EXPECT_EQ(letter_of(path.c_str()), letter);
    EXPECT_EQ(unlink_as(who(0, 0), path.c_str()), 0);
    put_file(other.c_str(), 5000, 'Z');
    EXPECT_EQ(letter_of(path.c_str()), -ENOENT);
    EXPECT_EQ(unlink_as(who(0, 0), other.c_str()), 0);
  }
  EXPECT_EQ(f2fs::count_findings(*volume().corruptions), 0u);
}

TEST_P(RemoveFileTest, a_number_whose_file_has_gone_is_stale) {
  put_file("/d/x", 5000, 'x');
  const auto ino = static_cast<uint32_t>(stat_of_path("/d/x").ino);
  EXPECT_EQ(unlink_as(who(0, 0), "/d/x"), 0);
  EXPECT_EQ(
      as_root([&](const simt::Warp& warp) { return open_inode(warp, fs(), ino, kOpenReadOnly); }),
      -ESTALE);
  EXPECT_EQ(f2fs::count_findings(*volume().corruptions), 0u);
}

// Some make and remove the same few names, others look them up, open and read them: they find what
// was there, never damage, and never another file's contents.
TEST_P(RemoveFileTest, lookups_beside_removals_find_all_or_nothing) {
  constexpr uint32_t kComingAndGoing = 6;
  const uint32_t turns = width() == 1 ? 120 : 25;
  std::atomic<uint32_t> wrong{0};
  std::atomic<uint32_t> found{0};
  std::atomic<uint32_t> missed{0};
  std::vector<std::string> texts;
  for (uint32_t i = 0; i < kComingAndGoing; ++i) {
    texts.emplace_back(i % 2 == 0 ? 300 : 9000, static_cast<char>('a' + i));
  }
  std::vector<std::string> buffers(4, std::string(9000, ' '));
  fs().credentials = who(0, 0);
  run_crowd({4, width()}, [&](const simt::Warp& warp, uint32_t index) {
    std::string& buffer = buffers[index];
    for (uint32_t turn = 0; turn < turns; ++turn) {
      const uint32_t name = (turn * 5 + index) % kComingAndGoing;
      const std::string& text = texts[name];
      char path[64];
      std::snprintf(path, sizeof(path), name % 3 == 0 ? "/d/sub%u/x" : "/d/x%u", name);
      char directory[64];
      std::snprintf(directory, sizeof(directory), "/d/sub%u", name);
      int64_t answer = 0;
      if (index < 2) {
        if (name % 3 == 0) (void)mkdir(warp, fs(), directory, 0755);
        const int fd = open(warp, fs(), path, kOpenCreate | kOpenWriteOnly | kOpenExclusive, 0644);
        if (fd >= 0) {
          answer = pwrite(warp, fs(), fd, text.data(), text.size(), 0);
          if (answer != static_cast<int64_t>(text.size())) ++wrong;
          (void)close(warp, fs(), fd);
        } else if (fd != -EEXIST && fd != -ENOENT) {
          ++wrong;
        }
        answer = unlink(warp, fs(), path);
        if (answer != 0 && answer != -ENOENT) ++wrong;
        if (name % 3 == 0) {
          answer = rmdir(warp, fs(), directory);
          if (answer != 0 && answer != -ENOENT && answer != -ENOTEMPTY) ++wrong;
        }
        continue;
      }
      const int fd = open(warp, fs(), path, kOpenReadOnly);
      if (fd == -ENOENT) {
        ++missed;
        continue;
      }
      if (fd < 0) {
        ++wrong;
        continue;
      }
      ++found;
      // Its maker may have written nothing yet, or be writing a block at a time.
      answer = pread(warp, fs(), fd, buffer.data(), text.size(), 0);
      warp.sync();
      if (answer < 0) ++wrong;
      for (int64_t i = 0; i < answer; ++i) {
        const char letter = buffer[static_cast<size_t>(i)];
        if (letter != text[0] && letter != '\0') ++wrong;
      }
      warp.sync();
      (void)close(warp, fs(), fd);
    }
  });
  EXPECT_EQ(wrong, 0u);
  EXPECT_GT(found + missed, 0u);
  EXPECT_EQ(f2fs::count_findings(*volume().corruptions), 0u);
  mount_again();
  EXPECT_EQ(writing_->writer().orphans.count, 0u);
}

}  // namespace
}  // namespace gofs::vfs
