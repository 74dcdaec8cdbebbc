// SPDX-License-Identifier: Apache-2.0
//
// For tests only: a volume mounted for writing, changed through paths by users of all kinds.
#pragma once

#include <cerrno>
#include <set>
#include <vector>

#include "vfs/changes_for_test.hpp"

namespace gofs::vfs {

/// Parameter: lanes of a warp.
class WritingVfsTest : public ChangesTest {
 protected:
  using ChangesTest::ChangesTest;
  f2fs::Volume& volume() { return fs().volume; }

  /// What `body(warp)` answers when `user` calls it.
  template <typename Body>
  int64_t as(const Credentials& user, Body body) {
    fs().credentials = user;
    return alone(body);
  }
  template <typename Body>
  int64_t as_root(Body body) {
    return as(who(0, 0), body);
  }

  /// Makes a file of `bytes` bytes, all `letter`.
  void put_file(const char* path, uint64_t bytes, char letter) {
    const std::string text(bytes, letter);
    const int64_t answer = as_root([&](const simt::Warp& warp) -> int64_t {
      const int fd = open(warp, fs(), path, kOpenWriteOnly | kOpenCreate | kOpenTruncate, 0644);
      if (fd < 0) return fd;
      const int64_t written = bytes == 0 ? 0 : pwrite(warp, fs(), fd, text.data(), bytes, 0);
      return close(warp, fs(), fd) == 0 ? written : -EIO;
    });
    EXPECT_EQ(answer, static_cast<int64_t>(bytes)) << path;
  }
  /// The first byte of a file, 0 of an empty one, or a negative errno.
  int64_t letter_of(const char* path) {
    return as_root([&](const simt::Warp& warp) -> int64_t {
      const int fd = open(warp, fs(), path, kOpenReadOnly);
      if (fd < 0) return fd;
      const int64_t letter = first_letter(warp, fd);
      (void)close(warp, fs(), fd);
      return letter;
    });
  }
  int64_t first_letter(const simt::Warp& warp, int fd) {
    char* const letter = &letter_;
    if (warp.thread_rank() == 0) *letter = 0;
    warp.sync();
    const int64_t read = pread(warp, fs(), fd, letter, 1, 0);
    warp.sync();
    return read < 0 ? read : *letter;
  }
  int64_t lookup_error(const char* path) {
    return as_root([&](const simt::Warp& warp) {
      Stat ignored{};
      return stat(warp, fs(), path, LastLink::kKeep, ignored);
    });
  }
  Stat stat_of_path(const char* path) {
    fs().credentials = who(0, 0);
    return ChangesTest::stat_of_path(path);
  }
  std::set<std::string> names_in(const char* path) {
    std::set<std::string> names;
    std::vector<f2fs::NamedEntry> entries(64);
    as_root([&](const simt::Warp& warp) {
      const int fd = opendir(warp, fs(), path);
      EXPECT_GE(fd, 0) << path;
      for (;;) {
        const int64_t count = readdir(warp, fs(), fd, entries.data(), 64);
        EXPECT_GE(count, 0);
        if (count <= 0) break;
        if (warp.thread_rank() == 0) {
          for (int64_t i = 0; i < count; ++i) {
            const f2fs::NamedEntry& entry = entries[static_cast<size_t>(i)];
            EXPECT_TRUE(names.emplace(entry.name, entry.name_length).second);
          }
        }
        warp.sync();
      }
      return close(warp, fs(), fd);
    });
    return names;
  }
  /// What the volume has counted as used: blocks, nodes, inodes.
  std::vector<uint64_t> used() {
    return {volume().valid_block_count, volume().valid_node_count, volume().valid_inode_count};
  }

 private:
  char letter_ = 0;
};

}  // namespace gofs::vfs
