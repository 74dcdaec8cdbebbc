// SPDX-License-Identifier: Apache-2.0
//
// The differential test for a few seconds; gofs_differential goes on for as long as one likes.
#include "differential.h"

#include <gtest/gtest.h>

#include <random>

#include "host/image/fsck_for_test.h"

namespace gofs::judges {
namespace {

uint64_t some_seed() {
  const char* const wanted = std::getenv("GOFS_SEED");
  return wanted != nullptr ? std::strtoull(wanted, nullptr, 0) : std::random_device()();
}

void expect_no_difference(DifferentialOptions options) {
  options.seed = some_seed();
  const DifferentialResult result = run_differential(options);
  EXPECT_EQ(result.difference, "");
  EXPECT_GE(result.operations, options.operations);
}

TEST(DifferentialTest, one_thread_does_what_the_model_does) {
  GOFS_NEED_TOOL("fsck.f2fs");
  DifferentialOptions options;
  options.operations = 6000;
  expect_no_difference(options);
}

TEST(DifferentialTest, several_threads_do_what_their_models_do) {
  GOFS_NEED_TOOL("fsck.f2fs");
  DifferentialOptions options;
  options.operations = 4000;
  options.threads = 4;
  options.check_every = 200;
  options.checks_per_mount = 2;
  expect_no_difference(options);
}

TEST(DifferentialTest, little_memory_makes_no_difference) {
  GOFS_NEED_TOOL("fsck.f2fs");
  DifferentialOptions options;
  options.operations = 2000;
  options.threads = 2;
  options.cache_pages = 128;
  expect_no_difference(options);
}

TEST(DifferentialTest, wide_warps_do_what_the_model_does) {
  GOFS_NEED_TOOL("fsck.f2fs");
  DifferentialOptions options;
  options.operations = 1500;
  options.width = 4;
  options.threads = 2;
  expect_no_difference(options);
}

}  // namespace
}  // namespace gofs::judges
