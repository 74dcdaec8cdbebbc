// SPDX-License-Identifier: Apache-2.0
//
// Descriptors and the open inodes behind them: all that there are can be used, one inode is there
// once however many have it open, and what is closed is free again.
#include <gtest/gtest.h>

#include <set>
#include <string>
#include <vector>

#include "vfs/open.h"
#include "vfs/vfs_for_test.hpp"

namespace gofs::vfs {
namespace {

constexpr uint32_t kFiles = 200;
constexpr uint32_t kDescriptors = 64;

void fill_many(image::ImageBuilder& builder) {
  for (uint32_t i = 0; i < kFiles; ++i) {
    image::FileSpec spec;
    const std::string name = "f" + std::to_string(i);
    spec.name = name;
    spec.size_bytes = 5000;
    TestImage::must(builder.add_file(builder.root(), spec));
  }
}

std::string path_of(uint32_t file) { return "/f" + std::to_string(file % kFiles); }

class OpenFilesTest : public ::testing::TestWithParam<uint32_t> {
 protected:
  static void SetUpTestSuite() { image_ = std::make_unique<TestImage>(fill_many); }
  static void TearDownTestSuite() { image_.reset(); }

  void SetUp() override {
    VolumeRigOptions options;
    options.filesystem.descriptors = kDescriptors;
    rig_ = std::make_unique<VolumeRig>(*image_, options);
    rig_->mount_ready(width());
  }
  uint32_t width() const { return GetParam(); }
  Filesystem& fs() { return rig_->fs(); }
  uint32_t places() { return fs().open_inode_set_count * kOpenInodeWays; }

  void expect_all_free() {
    for (uint32_t i = 0; i < places(); ++i) EXPECT_EQ(fs().open_inodes[i].ino, 0u) << i;
    for (uint32_t i = 0; i < fs().open_inode_set_count; ++i) {
      EXPECT_EQ(fs().open_inode_sets[i].lock, 0u) << i;
      EXPECT_EQ(fs().open_inode_sets[i].elsewhere, 0u) << i;
    }
    for (uint32_t i = 0; i < kDescriptors; ++i) {
      EXPECT_EQ(fs().descriptors[i].state, uint32_t{kDescriptorClosed}) << i;
    }
    const DescriptorNumbers& numbers = fs().descriptor_numbers;
    for (uint32_t i = 0; i < numbers.words; ++i) {
      EXPECT_EQ(numbers.taken[i], i + 1 < numbers.words ? 0 : numbers_beyond(kDescriptors)) << i;
    }
    for (uint32_t i = 0; i < fs().volume.maps.unit_count / 32; ++i)
      EXPECT_EQ(fs().volume.maps.used[i], 0u);
  }

 private:
  static std::unique_ptr<TestImage> image_;
  std::unique_ptr<VolumeRig> rig_;
};
std::unique_ptr<TestImage> OpenFilesTest::image_;
GOFS_AT_BOTH_WIDTHS(OpenFilesTest);

TEST_P(OpenFilesTest, as_many_files_open_as_there_are_descriptors) {
  run_alone(width(), [&](const simt::Warp& warp) {
    for (uint32_t first = 0; first < kFiles; first += kDescriptors) {
      int fds[kDescriptors];
      for (uint32_t i = 0; i < kDescriptors; ++i) {
        fds[i] = open(warp, fs(), path_of(first + i).c_str(), kOpenReadOnly);
        EXPECT_GE(fds[i], 0) << first + i;
      }
      EXPECT_EQ(open(warp, fs(), "/f0", kOpenReadOnly), -EMFILE);
      for (const int fd : fds) EXPECT_EQ(close(warp, fs(), fd), 0);
      EXPECT_EQ(close(warp, fs(), fds[0]), -EBADF);
    }
  });
  expect_all_free();
}

TEST_P(OpenFilesTest, inodes_that_find_their_set_full_are_found_elsewhere) {
  // More inodes of one home than a set has places, opened twice and closed in another order.
  constexpr uint32_t kSame = 2 * kOpenInodeWays + 3;
  run_alone(width(), [&](const simt::Warp& warp) {
    std::vector<f2fs::Inode> inodes;
    const uint32_t home = detail::home_of(fs(), 77);
    for (uint32_t ino = 5; inodes.size() < kSame; ++ino) {
      if (detail::home_of(fs(), ino) != home) continue;
      f2fs::Inode inode{};
      inode.ino = ino;
      inode.mode = format::kModeFifo;
      inodes.push_back(inode);
    }
    if (warp.thread_rank() != 0) return;  // by one lane
    std::vector<int> indices;
    for (const f2fs::Inode& inode : inodes) {
      indices.push_back(detail::acquire_open_inode(fs(), inode));
      ASSERT_GE(indices.back(), 0);
    }
    EXPECT_EQ(std::set<int>(indices.begin(), indices.end()).size(), kSame);
    EXPECT_EQ(fs().open_inode_sets[home].elsewhere, kSame - kOpenInodeWays);
    // A free place at home is no reason to be there twice.
    detail::release_open_inode(fs(), static_cast<uint32_t>(indices[0]));
    for (uint32_t i = kSame - 1; i > 0; --i) {
      EXPECT_EQ(detail::acquire_open_inode(fs(), inodes[i]), indices[i]);
      EXPECT_EQ(fs().open_inodes[indices[i]].references, 2u);
    }
    for (uint32_t i = 1; i < kSame; ++i) {
      detail::release_open_inode(fs(), static_cast<uint32_t>(indices[i]));
      detail::release_open_inode(fs(), static_cast<uint32_t>(indices[i]));
    }
  });
  expect_all_free();
}

TEST_P(OpenFilesTest, all_who_open_one_file_share_its_inode) {
  run_alone(width(), [&](const simt::Warp& warp) {
    const int first = open(warp, fs(), "/f1", kOpenReadOnly);
    const int second = open(warp, fs(), "/f1", kOpenReadOnly);
    const int other = open(warp, fs(), "/f2", kOpenReadOnly);
    ASSERT_TRUE(first >= 0 && second >= 0 && other >= 0);
    EXPECT_NE(first, second);
    const auto inode_of = [&](int fd) { return fs().descriptors[fd].open_inode; };
    EXPECT_EQ(inode_of(first), inode_of(second));
    EXPECT_NE(inode_of(first), inode_of(other));
    EXPECT_EQ(fs().open_inodes[inode_of(first)].references, 2u);
    for (const int fd : {first, second, other}) EXPECT_EQ(close(warp, fs(), fd), 0);
  });
  expect_all_free();
}

TEST_P(OpenFilesTest, many_warps_open_and_close_the_same_files) {
  constexpr uint32_t kWarps = 8;
  run_crowd({kWarps, width()}, [&](const simt::Warp& warp, uint32_t me) {
    for (uint32_t turn = 0; turn < 40; ++turn) {
      // All warps want nearly the same files at the same time.
      int fds[4];
      for (uint32_t i = 0; i < 4; ++i) {
        const uint32_t file = turn * 3 + i * (1 + me % 2);
        fds[i] = open(warp, fs(), path_of(file).c_str(), kOpenReadOnly);
        EXPECT_GE(fds[i], 0);
        if (fds[i] < 0) continue;
        const OpenInode& shared = fs().open_inodes[fs().descriptors[fds[i]].open_inode];
        EXPECT_EQ(shared.inode.ino, simt::load_relaxed(shared.ino));
        EXPECT_EQ(shared.inode.size_bytes, 5000u);
      }
      for (const int fd : fds) EXPECT_EQ(close(warp, fs(), fd), 0);
    }
  });
  expect_all_free();
}

TEST_P(OpenFilesTest, what_open_refuses) {
  run_alone(width(), [&](const simt::Warp& warp) {
    EXPECT_EQ(open(warp, fs(), "/nobody", kOpenReadOnly), -ENOENT);
    EXPECT_EQ(open(warp, fs(), "/nobody", kOpenCreate | 1), -EROFS);
    EXPECT_EQ(open(warp, fs(), "/f1", 1), -EROFS);
    EXPECT_EQ(open(warp, fs(), "/f1", kOpenTruncate), -EROFS);
    EXPECT_EQ(open(warp, fs(), "/f1", kOpenDirectory), -ENOTDIR);
    EXPECT_EQ(open(warp, fs(), "/f1", kOpenAccessMask), -EINVAL);
    EXPECT_EQ(open(warp, fs(), "/f1", 1u << 31), -EINVAL);
    EXPECT_EQ(open(warp, fs(), "/", kOpenTemporary | kOpenDirectory | 2), -EOPNOTSUPP);
    for (const int fd : {-1, 0, static_cast<int>(kDescriptors), 1 << 30}) {
      EXPECT_EQ(close(warp, fs(), fd), -EBADF) << fd;
    }
  });
  expect_all_free();
}

}  // namespace
}  // namespace gofs::vfs
