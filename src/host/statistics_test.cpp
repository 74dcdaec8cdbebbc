// SPDX-License-Identifier: Apache-2.0
//
// What Volume::statistics() says: as many calls and bytes as were asked for, and as many commands
// and blocks as the SSD has counted by itself.
#include <fcntl.h>
#include <gtest/gtest.h>

#include <cerrno>
#include <optional>
#include <string>

#include "gofs/volume.hpp"
#include "host/image/fsck_for_test.h"
#include "host/statistics_for_test.h"
#include "host/volume_for_test.h"

namespace gofs {
namespace {

using host::all_of;
using host::calls_of;
using host::checked_statistics;
using host::commands_of;
using host::lookups_of;
using host::segments_in;

#ifdef GOFS_WITH_CUDA
constexpr const char* kBackend = "cuda";
#else
constexpr const char* kBackend = "cpu";
#endif

/// On a virtual SSD, which counts by itself.
Volume mount_to_count(const std::string& image, bool read_only) {
  return Volume::mount(image + "?media=memory", {.backend = kBackend, .read_only = read_only})
      .value();
}

class WrittenStatistics : public ::testing::Test {
 protected:
  WrittenStatistics() {
    EXPECT_EQ(image::run_tool("cp " + host::sample_volume().path() + " " + copy_.path()).exit_code,
              0);
    volume_.emplace(mount_to_count(copy_.path(), false));
  }
  Volume& volume() { return *volume_; }

 private:
  image::TemporaryPath copy_;
  std::optional<Volume> volume_;
};

TEST_F(WrittenStatistics, calls_and_bytes_are_those_that_were_made) {
  const Statistics before = checked_statistics(volume());
  const std::string bytes(100'000, 'x');
  ASSERT_TRUE(volume().mkdir("/new"));
  const int fd = volume().open("/new/file", O_RDWR | O_CREAT, 0644).value();
  EXPECT_EQ(volume().pwrite(fd, bytes.data(), bytes.size(), 0).value(), bytes.size());
  std::string found(bytes.size(), '\0');
  EXPECT_EQ(volume().pread(fd, found.data(), found.size(), 0).value(), bytes.size());
  EXPECT_EQ(volume().read(fd, found.data(), 10).value(), 10u);
  EXPECT_TRUE(volume().fsync(fd));
  EXPECT_TRUE(volume().ftruncate(fd, 5));
  EXPECT_TRUE(volume().close(fd));
  EXPECT_FALSE(volume().close(fd));
  EXPECT_FALSE(volume().open("/none"));
  EXPECT_FALSE(volume().mkdir("/new"));
  EXPECT_FALSE(volume().pread(fd, found.data(), 1, 0));
  EXPECT_TRUE(volume().chmod("/new/file", 0600));
  EXPECT_TRUE(volume().stat("/new/file"));
  const Statistics after = checked_statistics(volume());

  const auto made = [&](CallKind kind) {
    return OutcomeCounts{calls_of(after, kind).succeeded - calls_of(before, kind).succeeded,
                         calls_of(after, kind).failed - calls_of(before, kind).failed};
  };
  const auto expect_made = [&](CallKind kind, uint64_t succeeded, uint64_t failed) {
    EXPECT_EQ(made(kind).succeeded, succeeded) << kCallKindNames[static_cast<uint32_t>(kind)];
    EXPECT_EQ(made(kind).failed, failed) << kCallKindNames[static_cast<uint32_t>(kind)];
  };
  expect_made(CallKind::kOpen, 1, 1);
  expect_made(CallKind::kClose, 1, 1);
  expect_made(CallKind::kRead, 2, 1);
  expect_made(CallKind::kWrite, 1, 0);
  expect_made(CallKind::kSync, 1, 0);
  expect_made(CallKind::kStat, 1, 0);
  expect_made(CallKind::kReaddir, 0, 0);
  expect_made(CallKind::kName, 1, 1);
  expect_made(CallKind::kAttribute, 1, 0);
  expect_made(CallKind::kResize, 1, 0);
  EXPECT_EQ(after.bytes_written - before.bytes_written, bytes.size());
  EXPECT_EQ(after.bytes_read - before.bytes_read, bytes.size() + 10);
  EXPECT_GE(after.ssd_bytes_written - before.ssd_bytes_written, bytes.size());
  EXPECT_GE(commands_of(after, CommandKind::kFlush).succeeded, 1u);
  EXPECT_GT(lookups_of(after, CacheKind::kNodes).hits, lookups_of(before, CacheKind::kNodes).hits);
  EXPECT_GT(lookups_of(after, CacheKind::kNames).hits + lookups_of(after, CacheKind::kPaths).hits,
            0u);
}

TEST_F(WrittenStatistics, dirty_pages_go_with_a_checkpoint) {
  ASSERT_TRUE(volume().mkdir("/new"));
  const Statistics dirty = checked_statistics(volume());
  EXPECT_GT(dirty.dirty_node_pages, 0u);
  EXPECT_GE(dirty.dirty_pages, dirty.dirty_node_pages);
  EXPECT_LE(dirty.dirty_pages, dirty.cache_pages);
  ASSERT_TRUE(volume().sync());
  const Statistics clean = checked_statistics(volume());
  EXPECT_EQ(clean.dirty_pages, 0u);
  EXPECT_EQ(clean.dirty_node_pages, 0u);
  EXPECT_EQ(clean.checkpoints, dirty.checkpoints + 1);
}

TEST_F(WrittenStatistics, every_segment_is_in_some_state) {
  const auto sum = [](const Statistics& seen) {
    uint64_t all = 0;
    for (const uint64_t state : seen.segments) all += state;
    return all;
  };
  const Statistics before = checked_statistics(volume());
  EXPECT_EQ(sum(before), volume().info().main_segments);
  EXPECT_EQ(segments_in(before, SegmentState::kFree), volume().info().free_segments);
  const int fd = volume().open("/large", O_RDWR | O_CREAT, 0644).value();
  const std::string bytes(3 << 20, 'y');
  EXPECT_EQ(volume().pwrite(fd, bytes.data(), bytes.size(), 0).value(), bytes.size());
  ASSERT_TRUE(volume().sync());
  const Statistics written = checked_statistics(volume());
  EXPECT_EQ(sum(written), volume().info().main_segments);
  EXPECT_LT(segments_in(written, SegmentState::kFree), segments_in(before, SegmentState::kFree));
  EXPECT_TRUE(volume().close(fd));
  ASSERT_TRUE(volume().unlink("/large"));
  EXPECT_GT(segments_in(checked_statistics(volume()), SegmentState::kPrefree), 0u);
}

TEST(Statistics, of_a_volume_that_is_only_read) {
  Volume volume = mount_to_count(host::sample_volume().path(), true);
  const Statistics seen = checked_statistics(volume);
  EXPECT_GT(commands_of(seen, CommandKind::kRead).succeeded, 0u);
  EXPECT_EQ(all_of(commands_of(seen, CommandKind::kWrite)), 0u);
  for (const uint64_t state : seen.segments) EXPECT_EQ(state, 0u);
  EXPECT_EQ(seen.checkpoints, 0u);
  ASSERT_TRUE(volume.unmount());
  EXPECT_EQ(volume.statistics().error().code, ENODEV);
}

}  // namespace
}  // namespace gofs
