// SPDX-License-Identifier: Apache-2.0
//
// Mounts that do without something: how one asks for it, and that all calls answer as they do where
// nothing is missing.
#include <gtest/gtest.h>

#include <cerrno>
#include <string>
#include <vector>

#include "gofs/volume.hpp"
#include "host/image/fsck_for_test.h"
#include "host/volume_for_test.h"
#include "simt/workers.h"
#include "testing/random_calls_mounted.h"

namespace gofs {
namespace {

constexpr uint32_t kAblatedCalls = 500;

class MountAblationsTest : public ::testing::Test {
 protected:
  /// What random calls of `warps` warps answer on a new copy of the sample volume.
  std::vector<int64_t> answers(uint32_t ablations, uint32_t warps, uint64_t seed) {
    const image::TemporaryPath copy;
    const auto copied = image::run_tool("cp " + host::sample_volume().path() + " " + copy.path());
    EXPECT_EQ(copied.exit_code, 0) << copied.output;
    std::vector<int64_t> answers(uint64_t{warps} * kAblatedCalls);
    std::vector<testing::RandomScratch> scratch(warps);
    auto volume =
        Volume::mount(copy.path(), {.backend = "cpu", .read_only = false, .ablations = ablations});
    if (!volume) {
      ADD_FAILURE() << volume.error().message;
      return {};
    }
    EXPECT_TRUE(volume->mkdir("/shared", 0777));
    testing::RandomCallsParams run{};
    run.seed = seed;
    run.calls = kAblatedCalls;
    run.answers = answers.data();
    run.scratch = scratch.data();
    const testing::MountedVolume mounted{*volume->device()};
    simt::run_workers(warps, [&](const simt::Warp& warp, uint32_t index) {
      testing::random_calls_body(warp, index, run, mounted);
    });
    EXPECT_TRUE(volume->unmount());
    EXPECT_TRUE(image::fsck_is_clean(copy.path())) << ablations;
    return answers;
  }
};

TEST_F(MountAblationsTest, calls_answer_as_they_do_with_everything) {
  constexpr uint64_t kSeed = 11;
  const std::vector<int64_t> usual = answers(0, 1, kSeed);
  for (uint32_t bit = 0; bit < vfs::kAblations; ++bit) {
    EXPECT_EQ(answers(1u << bit, 1, kSeed), usual) << bit;
  }
  EXPECT_EQ(answers(vfs::kAblationsKnown, 1, kSeed), usual);
}

TEST_F(MountAblationsTest, many_warps_meet_no_trouble) {
  for (const uint32_t ablations : {uint32_t{kAblateRangeLocks}, vfs::kAblationsKnown}) {
    for (const int64_t answer : answers(ablations, 5, 12)) {
      EXPECT_TRUE(answer != -EIO && answer != -EUCLEAN && answer != -EBUSY && answer != -ETIMEDOUT)
          << answer;
    }
  }
}

TEST_F(MountAblationsTest, a_spec_wins_over_the_options) {
  const std::string& path = host::sample_volume().path();
  const auto named = [](const std::string& spec, uint32_t ablations) {
    auto volume = Volume::mount(spec, {.backend = "cpu", .ablations = ablations});
    EXPECT_TRUE(volume) << volume.error().message;
    return volume ? volume->info().ablations : std::vector<std::string>{};
  };
  using Names = std::vector<std::string>;
  EXPECT_EQ(named(path, 0), Names{});
  EXPECT_EQ(named(path, kAblateLevelWalks | kAblateRangeLocks),
            (Names{"inode-lock", "single-walks"}));
  EXPECT_EQ(named(path + "?ablate=one-log", kAblateLevelWalks), Names{"one-log"});
  const auto unknown = Volume::mount(path, {.backend = "cpu", .ablations = 1u << 31});
  ASSERT_FALSE(unknown);
  EXPECT_EQ(unknown.error().code, EINVAL);
  EXPECT_NE(unknown.error().message.find("not known"), std::string::npos);
}

}  // namespace
}  // namespace gofs
