// SPDX-License-Identifier: Apache-2.0
//
// A volume of 10 million files, each of which is found by its name and asked for, with 264 MiB for
// all of the file system's memory, 63 of them for the files that can be open at once. Needs 45 GB
// in $TMPDIR and some minutes, so it is labelled `long`. GOFS_WALK_DIRECTORIES and
// GOFS_WALK_FILES_EACH make it others than 10,000 times 1,000.
#include <gtest/gtest.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <string>

#include "gofs/volume.hpp"
#include "host/image/fsck_for_test.h"
#include "host/walk_for_test.h"

namespace gofs {
namespace {

double seconds_since(std::chrono::steady_clock::time_point start) {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

uint32_t number_in(const char* variable, uint32_t otherwise) {
  const char* const text = std::getenv(variable);
  return text != nullptr ? static_cast<uint32_t>(std::strtoul(text, nullptr, 10)) : otherwise;
}

TEST(LongWalk, ten_million_files_within_264_mib) {
  const host::ManyFiles many{number_in("GOFS_WALK_DIRECTORIES", 10'000),
                             number_in("GOFS_WALK_FILES_EACH", 1000)};
  const image::TemporaryPath image;
  auto start = std::chrono::steady_clock::now();
  host::make_many_files(image.path(), many);
  const double made_s = seconds_since(start);
  Volume volume = Volume::mount(image.path() + "?cache=64M", {.backend = "cpu"}).value();
  start = std::chrono::steady_clock::now();
  const host::WalkOfTree walked = host::walk_by_names(volume);
  const double walked_s = seconds_since(start);
  EXPECT_EQ(walked.problem, "");
  EXPECT_EQ(walked.directories, many.directories);
  EXPECT_EQ(walked.files, many.count());
  EXPECT_EQ(walked.ino_sum, walked.stat_sum);
  EXPECT_LE(walked.most_bytes, uint64_t{264} << 20);
  std::printf("%llu files: made in %.0f s, walked in %.0f s with %.1f MiB\n",
              static_cast<unsigned long long>(walked.files), made_s, walked_s,
              static_cast<double>(walked.most_bytes) / (1 << 20));
}

}  // namespace
}  // namespace gofs
