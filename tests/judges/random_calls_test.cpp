// SPDX-License-Identifier: Apache-2.0
//
// What tests/gpu does with many warps of a kernel, by threads of the CPU.
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <random>
#include <vector>

#include "host/image/fsck_for_test.h"
#include "random_calls_judge.hpp"
#include "simt/workers.h"
#include "testing/random_calls_mounted.h"

namespace gofs::judges {
namespace {

TEST(RandomCallsTest, many_warps_do_what_their_models_do) {
  GOFS_NEED_TOOL("mkfs.f2fs");
  GOFS_NEED_TOOL("fsck.f2fs");
  constexpr uint32_t kWarps = 6;
  const image::TemporaryPath file;
  std::filesystem::resize_file(file.path(), 128 << 20);
  ASSERT_EQ(image::run_tool("mkfs.f2fs -q '" + file.path() + "'").exit_code, 0);
  const char* const seed = std::getenv("GOFS_SEED");
  testing::RandomCallsParams run{};
  run.seed = seed != nullptr ? std::strtoull(seed, nullptr, 0) : std::random_device()();
  run.calls = 400;
  SCOPED_TRACE("GOFS_SEED=" + std::to_string(run.seed));
  std::vector<int64_t> answers(kWarps * run.calls);
  std::vector<testing::RandomScratch> scratch(kWarps);
  run.answers = answers.data();
  run.scratch = scratch.data();
  {
    auto volume = Volume::mount(file.path(), {.backend = "cpu", .read_only = false});
    ASSERT_TRUE(volume) << volume.error().message;
    ASSERT_TRUE(volume->mkdir("/shared", 0777));
    const testing::MountedVolume mounted{*volume->device()};
    simt::run_workers(kWarps, [&](const simt::Warp& warp, uint32_t index) {
      testing::random_calls_body(warp, index, run, mounted);
    });
    EXPECT_EQ(judge_random_calls(run, kWarps, *volume), "");
    const auto unmounted = volume->unmount();
    ASSERT_TRUE(unmounted) << unmounted.error().message;
  }
  EXPECT_TRUE(image::fsck_is_clean(file.path()));
  auto volume = Volume::mount(file.path(), {.backend = "cpu"});
  ASSERT_TRUE(volume) << volume.error().message;
  EXPECT_EQ(judge_random_calls(run, kWarps, *volume), "");
  // The judge itself.
  ++answers[kWarps * run.calls / 2];
  EXPECT_NE(judge_random_calls(run, kWarps, *volume), "");
}

}  // namespace
}  // namespace gofs::judges
