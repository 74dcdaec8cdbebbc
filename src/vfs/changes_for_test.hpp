// SPDX-License-Identifier: Apache-2.0
//
// For tests only: a volume that is changed through paths and descriptors, is mounted again, and is
// looked at by fsck.f2fs.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "f2fs/writing_for_test.hpp"
#include "vfs/metadata.h"
#include "vfs/open.h"
#include "vfs/vfs_for_test.hpp"
#include "vfs/write.h"

namespace gofs::vfs {

class ChangesTest : public ::testing::TestWithParam<uint32_t> {
 protected:
  explicit ChangesTest(const TestImage::Fill& fill, const VolumeRigOptions& options = {},
                       uint32_t feature = 0, uint64_t volume_bytes = testing::kSmallVolumeBytes)
      : image_(fill, feature, volume_bytes), options_(options) {
    begin();
  }

  uint32_t width() const { return GetParam(); }
  Filesystem& fs() { return writing_->rig().fs(); }
  void begin() {
    writing_ = std::make_unique<f2fs::WritingRig>(image_, width(), options_);
    EXPECT_EQ(writing_->begin().error, 0);
    fs().writer = &writing_->writer();
    fs().clock = {{{simt::now_ns(), 2'000'000'000'000'000'000, 0}, {}}, 0};
  }
  void unmount() {
    EXPECT_EQ(writing_->checkpoint(true), 0);
    writing_.reset();
  }
  void mount_again() {
    unmount();
    EXPECT_TRUE(f2fs::fsck_likes(image_));
    begin();
  }
  /// What `body(warp)` says, done by one warp.
  template <typename Body>
  int64_t alone(Body body) {
    int64_t answer = 0;
    run_alone(width(), [&](const simt::Warp& warp) {
      const int64_t mine = body(warp);
      if (warp.thread_rank() == 0) answer = mine;
    });
    return answer;
  }
  /// Where block `index` of an open file lies.
  uint32_t block_of(int fd, uint64_t index) {
    const OpenInode& open = fs().open_inodes[fs().descriptors[fd].open_inode];
    return static_cast<uint32_t>(alone([&](const simt::Warp& warp) {
      f2fs::BlockPlace place{};
      EXPECT_EQ(f2fs::map_blocks(warp, fs().volume, 1u, open.inode, index, place), 0);
      return int64_t{place.block};
    }));
  }
  int open_file(const std::string& path, uint32_t flags, uint32_t mode = 0644) {
    return static_cast<int>(
        alone([&](const simt::Warp& warp) { return open(warp, fs(), path.c_str(), flags, mode); }));
  }
  int close_file(int fd) {
    return static_cast<int>(alone([&](const simt::Warp& warp) { return close(warp, fs(), fd); }));
  }
  int64_t pwrite_file(int fd, const std::string& bytes, uint64_t offset) {
    return alone([&](const simt::Warp& warp) {
      return pwrite(warp, fs(), fd, bytes.data(), bytes.size(), offset);
    });
  }
  /// What a directory lists, each name once.
  std::set<std::string> names_of(const std::string& path) {
    std::set<std::string> names;
    std::vector<f2fs::NamedEntry> entries(64);
    alone([&](const simt::Warp& warp) {
      const int fd = opendir(warp, fs(), path.c_str());
      for (;;) {
        const int64_t count = readdir(warp, fs(), fd, entries.data(), 64);
        EXPECT_GE(count, 0);
        if (count <= 0) break;
        for (int64_t i = 0; warp.thread_rank() == 0 && i < count; ++i) {
          const f2fs::NamedEntry& entry = entries[static_cast<size_t>(i)];
          EXPECT_TRUE(names.emplace(entry.name, entry.name_length).second);
        }
        warp.sync();
      }
      return close(warp, fs(), fd);
    });
    return names;
  }
  std::string contents(const std::string& path) {
    const int fd = open_file(path, kOpenReadOnly);
    EXPECT_GE(fd, 0) << path;
    std::string bytes(stat_of_path(path).size_bytes, '\0');
    EXPECT_EQ(alone([&](const simt::Warp& warp) {
                return pread(warp, fs(), fd, bytes.data(), bytes.size() + 1, 0);
              }),
              static_cast<int64_t>(bytes.size()));
    EXPECT_EQ(close_file(fd), 0);
    return bytes;
  }
  Stat stat_of_path(const std::string& path) {
    Stat result{};
    EXPECT_EQ(alone([&](const simt::Warp& warp) {
                Stat mine{};
                const int error = stat(warp, fs(), path.c_str(), LastLink::kKeep, mine);
                if (warp.thread_rank() == 0) result = mine;
                return error;
              }),
              0)
        << path;
    return result;
  }

  TestImage image_;
  const VolumeRigOptions options_;
  std::unique_ptr<f2fs::WritingRig> writing_;
};

}  // namespace gofs::vfs
