// SPDX-License-Identifier: Apache-2.0
//
// What the baselines' device code does where a warp has several lanes.
#include <gtest/gtest.h>
#include <unistd.h>

#include <cerrno>
#include <filesystem>
#include <string>

#include "basic.hpp"
#include "bench_volume.hpp"
#include "companion.hpp"
#include "host/backends.h"
#include "rpc.hpp"
#include "slots.hpp"
#include "wide_device_for_test.hpp"

namespace gofs::bench {
namespace {

class WideWarpsTest : public ::testing::Test {
 protected:
  WideWarpsTest() { std::filesystem::create_directories(folder_); }
  ~WideWarpsTest() override { std::filesystem::remove_all(folder_); }

  Expected<std::unique_ptr<BenchVolume>> make_volume() const {
    Options options;
    options.folder = folder_;
    options.large_bytes = 2 * kMiB;
    return BenchVolume::make(options, "cpu", "none", {});
  }

  const std::string folder_ = ::testing::TempDir() + "gofs-wide-" + std::to_string(::getpid());
  std::string why_;
  const std::unique_ptr<kernels::Backend> cpu_ = host::make_backend("cpu", why_);
  WideDevice device_{*cpu_};
};

TEST_F(WideWarpsTest, a_companion_reads_and_writes_with_and_without_the_lock) {
  const auto volume = make_volume();
  ASSERT_TRUE(volume) << volume.error().message;
  WideDevice device((*volume)->state().backend());
  const uint64_t before = (*volume)->state().commands_issued();
  for (const WarpLock lock : {WarpLock::kNone, WarpLock::kHeld}) {
    Companion companion(device, **volume, lock, {0.001});
    for (const bool writes : {false, true}) {
      struct Case {
        uint32_t outstanding;
        uint32_t lanes_per_warp;
        uint32_t warps;
      };
      // Whole warps, one that is not, and warps of few threads each.
      for (const Case& one : {Case{16, 0, 2}, Case{3, 0, 1}, Case{16, 4, 4}, Case{3, 1, 3}}) {
        const auto sample =
            companion.measure({writes, true, one.outstanding, {one.lanes_per_warp, 0}});
        ASSERT_TRUE(sample) << sample.error().message;
        EXPECT_GT(sample->operations, 0u);
        EXPECT_EQ(sample->outstanding, one.outstanding);
        EXPECT_EQ(sample->in_flight, lock == WarpLock::kHeld ? one.warps : one.outstanding);
      }
    }
  }
  EXPECT_GT((*volume)->state().commands_issued(), before);
}

TEST_F(WideWarpsTest, a_companion_has_controller_warps_beside_it) {
  const auto volume = make_volume();
  ASSERT_TRUE(volume) << volume.error().message;
  WideDevice device((*volume)->state().backend());
  for (const WarpLock lock : {WarpLock::kNone, WarpLock::kHeld}) {
    Companion companion(device, **volume, lock, {0.001, 3});
    EXPECT_EQ(companion.controller_warps(), 3u);
    for (const bool writes : {false, true}) {
      const auto sample = companion.measure({writes, true, 16});
      ASSERT_TRUE(sample) << sample.error().message;
      EXPECT_GT(sample->operations, 0u);
      EXPECT_EQ(sample->outstanding, 16u);
    }
  }
}

TEST_F(WideWarpsTest, a_map_has_the_files_blocks_and_no_holes) {
  const auto volume = make_volume();
  ASSERT_TRUE(volume) << volume.error().message;
  WideDevice device((*volume)->state().backend());
  const uint64_t count = (*volume)->large_bytes() / kBlockBytes;
  const auto map =
      BlockMap::make(device, (*volume)->state(), (*volume)->large(), (*volume)->large_bytes());
  ASSERT_TRUE(map) << map.error().message;
  for (uint64_t block = 1; block < count; ++block) {
    EXPECT_NE((*map)->blocks()[block], (*map)->blocks()[block - 1]);
  }
  const auto holes = BlockMap::make(device, (*volume)->state(), (*volume)->large(),
                                    (*volume)->large_bytes() + kBlockBytes);
  ASSERT_FALSE(holes);
  EXPECT_NE(holes.error().message.find("has the address 0"), std::string::npos)
      << holes.error().message;
  EXPECT_FALSE(BlockMap::make(device, (*volume)->state(), 4000, kBlockBytes));
}

TEST_F(WideWarpsTest, lanes_ask_the_host_together) {
  const auto file = StampedFile::make(folder_ + "/file", kMiB);
  ASSERT_TRUE(file);
  const auto small = SmallFiles::make(folder_ + "/files", 0);
  ASSERT_TRUE(small);
  const auto storage = open_file_storage(**file, **small, false);
  ASSERT_TRUE(storage);
  Rpc rpc(device_, **storage, {0.002, 2});
  Basic basic(device_, **storage, {0.002, 3});
  for (const bool writes : {false, true}) {
    for (const bool random : {false, true}) {
      // More lanes than a server takes at once, and part of a warp.
      for (const uint32_t outstanding : {160u, 3u}) {
        const auto sample = rpc.measure({writes, random, outstanding});
        ASSERT_TRUE(sample) << sample.error().message;
        EXPECT_EQ(sample->outstanding, outstanding);
        EXPECT_GE(sample->operations, outstanding);
      }
      const auto sample = basic.measure({writes, random, 3});
      ASSERT_TRUE(sample) << sample.error().message;
    }
  }
}

TEST_F(WideWarpsTest, nobody_waits_for_a_dead_host_for_ever) {
  const auto file = StampedFile::make(folder_ + "/file", kMiB);
  ASSERT_TRUE(file);
  const auto small = SmallFiles::make(folder_ + "/files", 0);
  ASSERT_TRUE(small);
  const auto storage = open_file_storage(**file, **small, false);
  ASSERT_TRUE(storage);
  Rpc rpc(device_, **storage, {0.001, 0, 20'000'000});
  const auto sample = rpc.measure({false, true, 16});
  ASSERT_FALSE(sample);
  EXPECT_EQ(sample.error().code, ETIMEDOUT) << sample.error().message;
}

}  // namespace
}  // namespace gofs::bench
