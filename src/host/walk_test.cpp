// SPDX-License-Identifier: Apache-2.0
//
// A volume of many more files than the page cache has room for: all are found, and nothing is
// allocated on the way.
#include <gtest/gtest.h>

#include "gofs/volume.hpp"
#include "host/image/fsck_for_test.h"
#include "host/walk_for_test.h"
#include "testing/repetitions.hpp"

namespace gofs {
namespace {

/// Of metadata blocks that are in memory.
uint64_t cached_bytes(const MemoryReport& report) {
  uint64_t bytes = 0;
  for (const CachedPages& pages : report.cached) bytes += pages.bytes;
  return bytes;
}

// 100,000 files, as 10 million are to a page cache of 100 MiB; walk_long_test.cpp has as many.
TEST(ManyFilesWalk, a_small_page_cache_is_enough_for_many_files) {
  const host::ManyFiles many{testing::repetitions(50, 10), 2000};
  constexpr uint64_t kCacheBytes = uint64_t{1} << 20;
  const image::TemporaryPath image;
  host::make_many_files(image.path(), many);
  MountOptions options{.backend = "cpu"};
  options.cache_bytes = kCacheBytes;
  Volume volume = Volume::mount(image.path(), options).value();
  const MemoryReport before = volume.memory().value();
  const host::WalkOfTree walked = host::walk_by_names(volume);
  EXPECT_EQ(walked.problem, "");
  EXPECT_EQ(walked.directories, many.directories);
  EXPECT_EQ(walked.files, many.count());
  EXPECT_EQ(walked.ino_sum, walked.stat_sum);
  EXPECT_EQ(walked.most_bytes, before.filesystem_bytes);
  EXPECT_LE(walked.most_bytes, uint64_t{256} << 20);
  const MemoryReport after = volume.memory().value();
  EXPECT_LE(cached_bytes(after), kCacheBytes);
  EXPECT_GE(cached_bytes(after), kCacheBytes / 2);
}

}  // namespace
}  // namespace gofs
