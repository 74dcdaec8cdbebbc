// SPDX-License-Identifier: Apache-2.0
//
// The suite of microbenchmarks in small: all of its axes measure something, and wrong bytes end it.
#include "bench/suite.hpp"

#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "bench/controller_launch.hpp"
#include "host/spoiled_image_for_test.h"
#include "host/volume_for_test.h"

namespace gofs::bench {
namespace {

SuiteOptions small_suite(const std::string& folder) {
  SuiteOptions options;
  options.folder = folder;
  options.backend = "cpu";
  options.runs = 2;
  options.seconds = 0.001;
  options.small = true;
  return options;
}

class BenchSuiteTest : public ::testing::Test {
 protected:
  BenchSuiteTest() { std::filesystem::create_directories(folder_); }
  ~BenchSuiteTest() override { std::filesystem::remove_all(folder_); }
  const std::string folder_ = ::testing::TempDir() + "gofs-suite-" + std::to_string(::getpid());
};

TEST_F(BenchSuiteTest, every_axis_measures_something) {
  SuiteSinks sinks;
  uint32_t volumes = 0;
  std::set<std::string> kinds;
  std::set<std::string> striped;
  sinks.volume = [&](const host::VolumeState&) { ++volumes; };
  sinks.row = [&](const SuiteRow& row) {
    const SuitePoint& point = row.point;
    kinds.insert(std::string(name_of(point.sweep)) +
                 (point.work == SuiteWork::kRead ? " read" : " write"));
    for (const Spread& spread : {row.raw, row.file}) {
      EXPECT_GT(spread.least, 0);
      EXPECT_LE(spread.least, spread.median);
      EXPECT_LE(spread.median, spread.most);
    }
    EXPECT_GE(row.outstanding, 1u);
    if (point.ssds > 1) striped.insert(name_of(point.sweep));
  };
  const auto done = run_suite(small_suite(folder_), sinks);
  ASSERT_TRUE(done) << done.error().message;
  EXPECT_EQ(volumes, 2u);
  // A CPU has neither thread blocks nor lanes.
  EXPECT_EQ(kinds, (std::set<std::string>{"outstanding read", "outstanding write", "size read",
                                          "size write", "lbas read", "ssds read", "ssds write",
                                          "files read", "files write"}));
  EXPECT_EQ(striped, (std::set<std::string>{"ssds", "files"}));
  EXPECT_TRUE(std::filesystem::is_empty(folder_)) << "images stay behind";
}

TEST_F(BenchSuiteTest, controller_warps_are_beside_reads_and_writes) {
  SuiteOptions options = small_suite(folder_);
  options.sweeps = {Sweep::kOutstanding, Sweep::kSsds, Sweep::kFiles};
  options.runs = 1;
  options.models = {"p5800x"};
  options.controller_warps = 2;
  uint32_t rows = 0;
  SuiteSinks sinks;
  sinks.volume = [](const host::VolumeState&) {};
  sinks.row = [&](const SuiteRow& row) {
    ++rows;
    EXPECT_GT(row.raw.least, 0);
    EXPECT_GT(row.file.least, 0);
    EXPECT_EQ(row.controller_warps, row.point.sweep == Sweep::kFiles ? 0u : 2u);
  };
  const auto done = run_suite(options, sinks);
  ASSERT_TRUE(done) << done.error().message;
  EXPECT_GT(rows, 0u);
  options.controller_warps = kControllerWarpsMax + 1;
  const auto refused = run_suite(options, sinks);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, EINVAL);
}

TEST_F(BenchSuiteTest, each_ablation_is_measured_with_and_without) {
  SuiteOptions options = small_suite(folder_);
  options.sweeps = {Sweep::kAblations};
  options.runs = 1;
  std::set<std::vector<std::string>> mounts;
  std::vector<std::string> mounted;
  std::set<std::string> rows;
  SuiteSinks sinks;
  sinks.volume = [&](const host::VolumeState& volume) {
    mounted = volume.info().ablations;
    if (volume.info().mode == "lfs") mounted.emplace_back("overwrites");
    EXPECT_TRUE(mounts.insert(mounted).second);
  };
  sinks.row = [&](const SuiteRow& row) {
    const SuitePoint& point = row.point;
    EXPECT_EQ(point.sweep, Sweep::kAblations);
    EXPECT_GT(row.raw.least, 0);
    EXPECT_GT(row.file.least, 0);
    const bool is_mounted =
        std::find(mounted.begin(), mounted.end(), point.ablation) != mounted.end();
    EXPECT_EQ(is_mounted, point.ablated && point.ablation != "one-by-one") << point.ablation;
    if (point.ablation == "one-log") {
      EXPECT_EQ(mounted.back(), "overwrites");
    }
    const char* const work = point.work == SuiteWork::kRead ? " read" : " write";
    rows.insert(point.ablation + work + (point.ablated ? " with" : ""));
  };
  const auto done = run_suite(options, sinks);
  ASSERT_TRUE(done) << done.error().message;
  EXPECT_EQ(mounts.size(), 8u);
  std::set<std::string> wanted;
  for (const char* const name : {"inode-lock read", "inode-lock write", "overwrites write",
                                 "one-log write", "single-blocks read", "single-doorbells read",
                                 "no-maps read", "single-walks read", "one-by-one read"}) {
    wanted.insert(name);
    wanted.insert(std::string(name) + " with");
  }
  EXPECT_EQ(rows, wanted);
  EXPECT_TRUE(std::filesystem::is_empty(folder_)) << "images stay behind";
}

TEST_F(BenchSuiteTest, wrong_bytes_end_it) {
  SuiteOptions options = small_suite(folder_);
  options.sweeps = {Sweep::kOutstanding};
  SuiteSinks sinks;
  uint32_t rows = 0;
  sinks.volume = [](const host::VolumeState& volume) {
    EXPECT_GT(host::spoil_indices(volume.spec().path), 0u);
  };
  sinks.row = [&](const SuiteRow&) { ++rows; };
  const auto done = run_suite(options, sinks);
  ASSERT_FALSE(done);
  EXPECT_EQ(done.error().code, EIO);
  EXPECT_NE(done.error().message.find("not those that were asked for"), std::string::npos);
  EXPECT_EQ(rows, 0u);
}

TEST_F(BenchSuiteTest, ssds_are_as_many_as_was_said) {
  SuiteOptions options = small_suite(folder_);
  options.sweeps = {Sweep::kLbas, Sweep::kSsds};
  options.ssds = {2};
  std::set<std::pair<std::string, uint32_t>> found;
  SuiteSinks sinks;
  sinks.volume = [](const host::VolumeState&) {};
  sinks.row = [&](const SuiteRow& row) { found.emplace(name_of(row.point.sweep), row.point.ssds); };
  const auto done = run_suite(options, sinks);
  ASSERT_TRUE(done) << done.error().message;
  EXPECT_TRUE(found.contains({"ssds", 2})) << "as was said";
  EXPECT_TRUE(found.contains({"lbas", 1})) << "all else is of one";
  EXPECT_FALSE(found.contains({"ssds", 4}));
}

TEST_F(BenchSuiteTest, what_is_missing_is_named) {
  SuiteOptions options = small_suite(folder_ + "/none");
  const SuiteSinks sinks{[](const host::VolumeState&) {}, [](const SuiteRow&) {}};
  auto done = run_suite(options, sinks);
  ASSERT_FALSE(done);
  EXPECT_NE(done.error().message.find(options.folder), std::string::npos);
  options.folder = folder_;
  options.models = {"floppy"};
  done = run_suite(options, sinks);
  ASSERT_FALSE(done);
  EXPECT_NE(done.error().message.find("floppy"), std::string::npos);
}

}  // namespace
}  // namespace gofs::bench
