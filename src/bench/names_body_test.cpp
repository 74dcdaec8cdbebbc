// SPDX-License-Identifier: Apache-2.0
//
// The names that the benchmark makes and removes, and that it sees when they are not as they should
// be.
#include "bench/names_body.h"

#include <gtest/gtest.h>

#include <set>
#include <string>
#include <vector>

#include "bench/cpu_api.hpp"
#include "vfs/changes_for_test.hpp"

namespace gofs::bench {
namespace {

constexpr uint32_t kMakers = 2;  // warps
constexpr uint32_t kEach = 3;    // names of each
constexpr uint32_t kNamedBytes = 2 * kBlockBytes;

class NamesBodyTest : public vfs::ChangesTest {
 protected:
  NamesBodyTest()
      : ChangesTest([](image::ImageBuilder&) {}),
        paths_(kMakers * kNamePathBytes),
        buffers_(kMakers * kNamedBytes / sizeof(uint64_t)),
        done_(kMakers),
        stats_(kMakers) {
    EXPECT_EQ(step(NameKind::kHome, NameStep::kMake, 1).error, 0);
  }

  NamesResults step(NameKind kind, NameStep step, uint32_t each = kEach,
                    NamePlace place = NamePlace::kOwnHome) {
    NamesJob job{};
    NamesParams& params = job.params;
    params.fs = &fs();
    params.step = step;
    params.kind = kind;
    params.place = place;
    params.warps = kMakers;
    params.operations = each;
    params.time_ns = 60'000'000'000;
    params.file_bytes = kind == NameKind::kFile ? kNamedBytes : 0;
    params.run = 7;
    params.paths = paths_.data();
    params.buffers = reinterpret_cast<uint8_t*>(buffers_.data());
    params.done = done_.data();
    params.stats = stats_.data();
    testing::run_crowd({kMakers, width()}, [&](const simt::Warp& warp, uint32_t index) {
      names_body<CpuApi>(warp, index, kMakers, job);
    });
    return job.results;
  }
  void expect_good(const NamesResults& results, uint64_t names) {
    EXPECT_EQ(results.error, 0);
    EXPECT_EQ(results.wrong, 0u);
    EXPECT_EQ(results.names, names);
  }

  std::vector<char> paths_;
  std::vector<uint64_t> buffers_;
  std::vector<uint32_t> done_;
  std::vector<vfs::Stat> stats_;
};

GOFS_AT_BOTH_WIDTHS(NamesBodyTest);

TEST_P(NamesBodyTest, names_are_made_and_removed) {
  using Names = std::set<std::string>;
  EXPECT_EQ(names_of("/"), (Names{"w000000", "w000001"}));
  for (const NameKind kind : {NameKind::kFile, NameKind::kDirectory}) {
    expect_good(step(kind, NameStep::kMake), kMakers * kEach);
    const std::string letter = kind == NameKind::kFile ? "f" : "d";
    EXPECT_EQ(names_of("/w000001"),
              (Names{letter + "000000", letter + "000001", letter + "000002"}));
    expect_good(step(kind, NameStep::kCheck), 0);
    expect_good(step(kind, NameStep::kRemove), kMakers * kEach);
    EXPECT_EQ(names_of("/w000001"), Names{});
    expect_good(step(kind, NameStep::kGone), 0);
  }
  mount_again();
}

TEST_P(NamesBodyTest, all_of_them_may_be_in_one_directory) {
  const NamePlace place = NamePlace::kFirstHome;
  for (const NameKind kind : {NameKind::kFile, NameKind::kDirectory}) {
    expect_good(step(kind, NameStep::kMake, 2, place), kMakers * 2);
    const std::string letter = kind == NameKind::kFile ? "f" : "d";
    EXPECT_EQ(names_of("/w000000"),
              (std::set<std::string>{letter + "000000000000", letter + "000000000001",
                                     letter + "000001000000", letter + "000001000001"}));
    EXPECT_TRUE(names_of("/w000001").empty());
    expect_good(step(kind, NameStep::kCheck, 2, place), 0);
    expect_good(step(kind, NameStep::kRemove, 2, place), kMakers * 2);
    expect_good(step(kind, NameStep::kGone, 2, place), 0);
  }
  mount_again();
}

TEST_P(NamesBodyTest, names_that_are_not_as_they_were_made_are_found_out) {
  expect_good(step(NameKind::kFile, NameStep::kMake), kMakers * kEach);
  EXPECT_EQ(step(NameKind::kFile, NameStep::kGone).wrong, uint64_t{kMakers});
  const int fd = open_file("/w000001/f000002", vfs::kOpenReadWrite);
  EXPECT_EQ(pwrite_file(fd, "?", kNamedBytes - 1), 1);
  EXPECT_EQ(step(NameKind::kFile, NameStep::kCheck).wrong, 1u);
  EXPECT_EQ(pwrite_file(fd, "?", kNamedBytes), 1);  // longer
  EXPECT_EQ(step(NameKind::kFile, NameStep::kCheck).wrong, 1u);
  EXPECT_EQ(close_file(fd), 0);
  // Made again while they are there: refused, and told.
  EXPECT_EQ(step(NameKind::kFile, NameStep::kMake).error, -EEXIST);
}

}  // namespace
}  // namespace gofs::bench
