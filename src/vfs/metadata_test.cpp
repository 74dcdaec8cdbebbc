// SPDX-License-Identifier: Apache-2.0
//
// Positions of descriptors: how far they may be moved, and what a descriptor of a mere path may not
// be asked.
#include "vfs/metadata.h"

#include <gtest/gtest.h>

#include <cerrno>
#include <cstdint>
#include <memory>
#include <vector>

#include "testing/volume_rig.hpp"
#include "vfs/open.h"
#include "vfs/xattr.h"

namespace gofs::vfs {
namespace {

using gofs::testing::run_alone;
using gofs::testing::TestImage;
using gofs::testing::VolumeRig;

constexpr int64_t kSizeBytes = 5000;

class PositionsTest : public ::testing::TestWithParam<uint32_t> {
 protected:
  PositionsTest()
      : image_([](image::ImageBuilder& builder) {
          image::FileSpec spec;
          spec.name = "f";
          spec.size_bytes = kSizeBytes;
          TestImage::must(builder.add_file(builder.root(), spec));
        }),
        rig_(image_) {
    rig_.mount_ready(width());
  }
  uint32_t width() const { return GetParam(); }
  Filesystem& fs() { return rig_.fs(); }

  TestImage image_;
  VolumeRig rig_;
};
GOFS_AT_BOTH_WIDTHS(PositionsTest);

TEST_P(PositionsTest, end_where_linux_ends_them) {
  constexpr int64_t kMax = f2fs::kFileBytesMax;
  static_assert(f2fs::kFileBytesMax == uint64_t{1'057'052'516} * kBlockBytes);
  for (const char* path : {"/f", "/"}) {
    run_alone(width(), [&](const simt::Warp& warp) {
      const int fd = open(warp, fs(), path, kOpenReadOnly);
      EXPECT_GE(fd, 0);
      const auto seek = [&](int64_t offset, int whence) {
        return lseek(warp, fs(), fd, offset, whence);
      };
      const int64_t size = seek(0, kSeekEnd);
      EXPECT_GE(size, 0);
      EXPECT_EQ(seek(kMax, kSeekSet), kMax);
      EXPECT_EQ(seek(kMax + 1, kSeekSet), -EINVAL);
      EXPECT_EQ(seek(INT64_MAX, kSeekSet), -EINVAL);
      EXPECT_EQ(seek(-1, kSeekSet), -EINVAL);
      EXPECT_EQ(seek(INT64_MIN, kSeekSet), -EINVAL);
      EXPECT_EQ(seek(1, kSeekCurrent), -EINVAL);
      EXPECT_EQ(seek(INT64_MAX, kSeekCurrent), -EINVAL);
      EXPECT_EQ(seek(INT64_MIN, kSeekCurrent), -EINVAL);
      EXPECT_EQ(seek(0, kSeekCurrent), kMax) << "a refused move moves nothing";
      EXPECT_EQ(seek(kMax - size, kSeekEnd), kMax);
      EXPECT_EQ(seek(kMax - size + 1, kSeekEnd), -EINVAL);
      EXPECT_EQ(seek(INT64_MAX, kSeekEnd), -EINVAL);
      EXPECT_EQ(seek(-size, kSeekEnd), 0);
      EXPECT_EQ(seek(-size - 1, kSeekEnd), -EINVAL);
      EXPECT_EQ(close(warp, fs(), fd), 0);
    });
  }
}

TEST_P(PositionsTest, of_a_mere_path_there_is_none) {
  run_alone(width(), [&](const simt::Warp& warp) {
    const int path = open(warp, fs(), "/f", kOpenPath);
    EXPECT_GE(path, 0);
    const int closed = open(warp, fs(), "/f", kOpenReadOnly);
    EXPECT_EQ(close(warp, fs(), closed), 0);
    std::vector<f2fs::NamedEntry> entries(32);
    uint8_t byte = 0;
    for (const int fd : {path, closed, -1, INT32_MAX}) {
      EXPECT_EQ(find_file(simt::Warp(), fs(), fd), nullptr);
      EXPECT_EQ(lseek(warp, fs(), fd, 0, kSeekSet), -EBADF);
      EXPECT_EQ(advance_position(warp, fs(), fd, 1), -EBADF);
      EXPECT_EQ(readdir(warp, fs(), fd, entries.data(), 32), -EBADF);
      EXPECT_EQ(pread(warp, fs(), fd, &byte, 1, 0), -EBADF);
      EXPECT_EQ(fgetxattr(warp, fs(), fd, "user.u", &byte, 1), -EBADF);
    }
    EXPECT_NE(find_descriptor(simt::Warp(), fs(), path), nullptr);
    EXPECT_EQ(close(warp, fs(), path), 0);
  });
}

TEST(ScatteredReadTest, parts_are_added_up_before_anything_is_read) {
  constexpr uint64_t kMax = kOffsetMax;
  const auto total = [](const std::vector<uint64_t>& bytes) {
    std::vector<IoVector> parts;
    for (const uint64_t one : bytes) parts.push_back({nullptr, one});
    return total_bytes(parts.data(), static_cast<int>(parts.size()));
  };
  EXPECT_EQ(total({}), 0);
  EXPECT_EQ(total({0, 7, 0, 4096}), 4103);
  EXPECT_EQ(total({kMax}), INT64_MAX);
  EXPECT_EQ(total({kMax - 5, 0, 5}), INT64_MAX);
  EXPECT_EQ(total({kMax - 5, 6}), -EINVAL);
  EXPECT_EQ(total({kMax + 1}), -EINVAL);
  EXPECT_EQ(total({1, ~uint64_t{0}}), -EINVAL) << "it would come to 0";
  EXPECT_EQ(total({kMax + 1, kMax + 1}), -EINVAL);
  EXPECT_EQ(total(std::vector<uint64_t>(kIoVectorsMax, 3)), 3 * kIoVectorsMax);
  EXPECT_EQ(total(std::vector<uint64_t>(kIoVectorsMax + 1, 3)), -EINVAL);
  EXPECT_EQ(total_bytes(nullptr, -1), -EINVAL);
}

}  // namespace
}  // namespace gofs::vfs
