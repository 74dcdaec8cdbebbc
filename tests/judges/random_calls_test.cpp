// SPDX-License-Identifier: Apache-2.0
//
// What tests/gpu does with many warps of a kernel, by threads of the CPU.
#include <gtest/gtest.h>

#include <filesystem>

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
  RandomRunOnHost run(kWarps, 400);
  SCOPED_TRACE(words_of(run.params));
  {
    auto volume = Volume::mount(file.path(), {.backend = "cpu", .read_only = false});
    ASSERT_TRUE(volume) << volume.error().message;
    ASSERT_TRUE(volume->mkdir("/shared", 0777));
    const testing::MountedVolume mounted{*volume->device()};
    simt::run_workers(kWarps, [&](const simt::Warp& warp, uint32_t index) {
      testing::random_calls_body(warp, index, run.params, mounted);
    });
    EXPECT_EQ(judge_random_calls(run.params, kWarps, *volume), "");
    const auto unmounted = volume->unmount();
    ASSERT_TRUE(unmounted) << unmounted.error().message;
  }
  EXPECT_TRUE(image::fsck_is_clean(file.path()));
  auto volume = Volume::mount(file.path(), {.backend = "cpu"});
  ASSERT_TRUE(volume) << volume.error().message;
  EXPECT_EQ(judge_random_calls(run.params, kWarps, *volume), "");
  // The judge itself.
  ++run.answers[run.answers.size() / 2];
  EXPECT_NE(judge_random_calls(run.params, kWarps, *volume), "");
}

}  // namespace
}  // namespace gofs::judges
