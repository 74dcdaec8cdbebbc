// SPDX-License-Identifier: Apache-2.0
#include "host/default_media.h"

#include <gtest/gtest.h>
#include <linux/magic.h>
#include <sys/vfs.h>
#include <unistd.h>

#include <string>
#include <vector>

#include "simt/available_memory.h"
#include "ssd/temporary_file_for_test.h"

namespace gofs::host {
namespace {

constexpr const char* kTmpfs = "/dev/shm/";
constexpr uint64_t kGibibyte = uint64_t{1} << 30;

/// What stands for the SSD of a file of so many bytes, all of which are a hole.
MediaKind media_of_hole(const std::string& folder, uint64_t bytes,
                        Lasting lasting = Lasting::kOnSync) {
  const ssd::TemporaryFile file{folder};
  EXPECT_EQ(::truncate(file.path().c_str(), static_cast<off_t>(bytes)), 0);
  std::vector<VolumeSpec> members = parse_volume_specs(file.path()).value();
  choose_media(members, lasting);
  return members.front().media;
}

class DefaultMedia : public ::testing::Test {
 protected:
  void SetUp() override {
    struct statfs system {};
    if (::statfs(kTmpfs, &system) != 0 || system.f_type != TMPFS_MAGIC) GTEST_SKIP() << "no tmpfs";
    if (simt::available_memory_bytes().value_or(0) < 9 * kGibibyte) GTEST_SKIP() << "too small";
  }
};

TEST_F(DefaultMedia, an_image_in_memory_has_a_virtual_ssd) {
  EXPECT_EQ(media_of_hole(kTmpfs, kGibibyte), MediaKind::kMemory);
  EXPECT_EQ(media_of_hole(kTmpfs, kGibibyte, Lasting::kAlways), MediaKind::kHosted);
}

TEST_F(DefaultMedia, more_holes_than_can_be_filled_are_for_host_threads) {
  EXPECT_EQ(media_of_hole(kTmpfs, 4 * kGibibyte), MediaKind::kMemory);
  EXPECT_EQ(media_of_hole(kTmpfs, 4 * kGibibyte + 4096), MediaKind::kHosted);
}

}  // namespace
}  // namespace gofs::host
