// SPDX-License-Identifier: Apache-2.0
//
// The crash explorer, with some of the cuts of each scenario; `gofs_crash --all` takes all of them,
// and `gofs_crash --all --faults` all commands that can fail.
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "explorer.h"
#include "faults.h"
#include "host/image/fsck_for_test.h"

namespace gofs::judges {
namespace {

void expect_no_failures(const std::vector<std::string>& failures) {
  for (const std::string& failure : failures) ADD_FAILURE() << failure;
}

class CrashTest : public ::testing::TestWithParam<Scenario> {};

INSTANTIATE_TEST_SUITE_P(All, CrashTest, ::testing::ValuesIn(all_scenarios()),
                         [](const auto& one) { return std::string(one.param.name); });

TEST_P(CrashTest, leaves_what_was_promised) {
  GOFS_NEED_TOOL("fsck.f2fs");
  ExplorerOptions options;
  options.cuts_max = 3;
  options.subsets = 3;
  options.depth = 1;
  options.fsck_every = 3;
  for (const bool log_structured : {false, true}) {
    options.log_structured = log_structured;
    const ExplorerResult result = explore(GetParam(), options);
    expect_no_failures(result.failures);
    EXPECT_GT(result.images, 0u);
    EXPECT_GT(result.judged, 0u);
  }
}

TEST_P(CrashTest, keeps_what_was_promised_when_commands_fail) {
  GOFS_NEED_TOOL("fsck.f2fs");
  FaultsOptions options;
  options.commands_max = 1;
  options.fsck_every = 3;
  const FaultsResult result = explore_faults(GetParam(), options);
  expect_no_failures(result.failures);
  EXPECT_EQ(result.runs != 0, GetParam().takes_faults());
}

const Scenario& scenario_named(const std::string& name) {
  static const std::vector<Scenario> all = all_scenarios();
  return *std::find_if(all.begin(), all.end(),
                       [&](const Scenario& one) { return one.name == name; });
}

TEST(CrashExplorer, runs_wide_warps) {
  GOFS_NEED_TOOL("fsck.f2fs");
  ExplorerOptions options;
  options.width = 4;
  options.cuts_max = 10;
  for (const char* name : {"overwrite_parts", "trees", "fsync_truncate_node_levels", "batches"}) {
    const ExplorerResult result = explore(scenario_named(name), options);
    expect_no_failures(result.failures);
  }
}

constexpr Striping kStripings[] = {
    {.disks = 3, .chunk_bytes = 4096}, {.disks = 2, .chunk_bytes = 16384}, {.disks = 8}};

// Power goes out for all SSDs at once, but what they had not flushed is lost one by one.
TEST(CrashExplorer, cuts_the_power_of_several_ssds) {
  GOFS_NEED_TOOL("fsck.f2fs");
  for (const Striping& striping : kStripings) {
    ExplorerOptions options;
    options.striping = striping;
    options.cuts_max = 4;
    options.subsets = 3;
    options.depth = 1;
    options.fsck_every = 4;
    for (const char* name : {"trees", "unlink_files", "fsync_create", "batches"}) {
      const ExplorerResult result = explore(scenario_named(name), options);
      expect_no_failures(result.failures);
      EXPECT_GT(result.judged, 0u);
    }
  }
}

TEST(CrashExplorer, has_one_of_several_ssds_fail) {
  GOFS_NEED_TOOL("fsck.f2fs");
  for (const Striping& striping : kStripings) {
    FaultsOptions options;
    options.striping = striping;
    options.commands_max = 2;
    options.fsck_every = 3;
    for (const char* name : {"trees", "fsync_create"}) {
      const FaultsResult result = explore_faults(scenario_named(name), options);
      expect_no_failures(result.failures);
      EXPECT_GT(result.errors, 0u);
    }
  }
}

TEST(CrashExplorer, cuts_the_power_below_hosted_ssds) {
  GOFS_NEED_TOOL("fsck.f2fs");
  ExplorerOptions options;
  options.hosted = true;
  options.cuts_max = 4;
  options.subsets = 3;
  options.depth = 1;
  options.fsck_every = 4;
  for (const uint32_t disks : {1u, 2u}) {
    options.striping.disks = disks;
    for (const char* name : {"overwrite_parts", "unlink_files", "fsync_create"}) {
      options.log_structured = !options.log_structured;
      const ExplorerResult result = explore(scenario_named(name), options);
      expect_no_failures(result.failures);
      EXPECT_GT(result.judged, 0u);
    }
  }
}

TEST(CrashExplorer, has_what_hosted_ssds_ask_of_linux_fail) {
  GOFS_NEED_TOOL("fsck.f2fs");
  FaultsOptions options;
  options.hosted = true;
  options.commands_max = 2;
  options.fsck_every = 3;
  for (const uint32_t disks : {1u, 2u}) {
    options.striping.disks = disks;
    for (const char* name : {"trees", "overwrite_parts", "fsync_create"}) {
      const FaultsResult result = explore_faults(scenario_named(name), options);
      expect_no_failures(result.failures);
      EXPECT_GT(result.errors, 0u);
    }
  }
}

// An SSD that ignores flushes loses what was promised, and the explorer has to see it.
TEST(CrashExplorer, finds_what_a_lying_ssd_loses) {
  ExplorerOptions options;
  options.flushes_lie = true;
  options.fsck_every = 0;
  options.failures_max = 1;
  for (const uint32_t disks : {1u, 3u}) {  // of three, one lies
    options.striping.disks = disks;
    for (const char* name :
         {"create", "overwrite", "many_inodes", "fsync_overwrite", "fsync_create"}) {
      EXPECT_FALSE(explore(scenario_named(name), options).failures.empty()) << name;
    }
  }
  options.striping.disks = 1;
  options.hosted = true;
  EXPECT_FALSE(explore(scenario_named("create"), options).failures.empty());
}

// What is drawn from a seed is drawn again.
TEST(CrashExplorer, repeats_a_cut) {
  ExplorerOptions options;
  options.striping = {.disks = 2, .chunk_bytes = 8192};
  options.flushes_lie = true;
  options.fsck_every = 0;
  options.failures_max = 1;
  const ExplorerResult first = explore(scenario_named("create"), options);
  ASSERT_EQ(first.failures.size(), 1u);
  const std::string& words = first.failures.front();
  const auto number_behind = [&](const std::string& option) {
    return static_cast<uint32_t>(std::stoul(words.substr(words.find(option) + option.size())));
  };
  options.cut = number_behind("--cut ");
  options.subset = number_behind("--subset ");
  const ExplorerResult again = explore(scenario_named("create"), options);
  ASSERT_EQ(again.failures.size(), 1u);
  EXPECT_EQ(again.images, 1u);
}

}  // namespace
}  // namespace gofs::judges
