// SPDX-License-Identifier: Apache-2.0
//
// The log of damage: what it keeps of what many threads report while one reads.
#include "f2fs/corruption.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <memory>
#include <vector>

#include "simt/workers.h"
#include "testing/teams.hpp"

namespace gofs::f2fs {
namespace {

constexpr int kDamaged = -117;

/// The `number`-th of findings that all differ, and whose fields belong together.
Corruption finding(uint32_t number) {
  return {Structure::kNode, number, uint64_t{number} * 3, ~uint64_t{number}};
}

bool belongs_together(const Corruption& corruption) {
  return corruption == finding(corruption.block);
}

std::vector<Corruption> take(CorruptionLog& log) {
  std::vector<Corruption> taken(kCorruptionsKept);
  taken.resize(take_findings(log, taken.data()));
  return taken;
}

TEST(CorruptionLogTest, the_same_finding_is_kept_once) {
  auto log = std::make_unique<CorruptionLog>();
  for (uint32_t round = 0; round < 3; ++round) {
    for (const uint32_t number : {5u, 2u, 5u, 9u}) {
      EXPECT_EQ(report(*log, finding(number)), kDamaged);
    }
  }
  EXPECT_EQ(count_findings(*log), 3u);
  EXPECT_EQ(log->records[0], finding(5));
  EXPECT_EQ(log->lost, 0u);
  EXPECT_EQ(take(*log), (std::vector<Corruption>{finding(5), finding(2), finding(9)}));
  EXPECT_EQ(count_findings(*log), 0u);
}

TEST(CorruptionLogTest, findings_that_differ_in_one_field_are_all_kept) {
  auto log = std::make_unique<CorruptionLog>();
  const Corruption all[] = {{Structure::kNone, 0, 0, 0},  {Structure::kNode, 0, 0, 0},
                            {Structure::kInode, 0, 0, 0}, {Structure::kNode, 1, 0, 0},
                            {Structure::kNode, 2, 0, 0},  {Structure::kNode, 0, 1, 0},
                            {Structure::kNode, 0, 2, 0},  {Structure::kNode, 0, 0, 1},
                            {Structure::kNode, 0, 0, 2},  {Structure::kNode, 0, 0, ~0u}};
  for (const Corruption& one : all) report(*log, one);
  EXPECT_EQ(take(*log), std::vector<Corruption>(std::begin(all), std::end(all)));
}

TEST(CorruptionLogTest, a_full_log_keeps_the_first_and_counts_what_it_loses) {
  auto log = std::make_unique<CorruptionLog>();
  for (uint32_t i = 0; i < kCorruptionsKept; ++i) report(*log, finding(i));
  EXPECT_EQ(log->lost, 0u);
  report(*log, finding(3));
  EXPECT_EQ(log->lost, 0u) << "it is there already";
  EXPECT_EQ(report(*log, finding(kCorruptionsKept)), kDamaged);
  report(*log, finding(kCorruptionsKept + 1));
  EXPECT_EQ(log->lost, 2u);
  const auto taken = take(*log);
  ASSERT_EQ(taken.size(), kCorruptionsKept);
  for (uint32_t i = 0; i < kCorruptionsKept; ++i) EXPECT_EQ(taken[i], finding(i));
  report(*log, finding(kCorruptionsKept));
  EXPECT_EQ(take(*log).size(), 1u) << "there is room again";
}

TEST(CorruptionLogTest, all_lanes_of_all_teams_with_the_same_findings_leave_one_each) {
  constexpr uint32_t kFindings = 40;
  auto log = std::make_unique<CorruptionLog>();
  testing::run_teams(2, 4, [&](const simt::Warp& warp, uint32_t) {
    for (uint32_t i = 0; i < kFindings; ++i) {
      report(*log, finding(i));
      EXPECT_EQ(report_once(warp, *log, finding(i)), kDamaged);
    }
  });
  auto taken = take(*log);
  ASSERT_EQ(taken.size(), kFindings);
  std::sort(taken.begin(), taken.end(),
            [](const auto& one, const auto& other) { return one.block < other.block; });
  for (uint32_t i = 0; i < kFindings; ++i) EXPECT_EQ(taken[i], finding(i));
}

// Slots are taken and used again all the time: a record that is read before it is whole, or written
// while it is read, shows here or to ThreadSanitizer.
TEST(CorruptionLogTest, one_takes_while_many_report) {
  constexpr uint32_t kReporters = 4;
  constexpr uint32_t kFindings = 20'000;
  auto log = std::make_unique<CorruptionLog>();
  std::atomic<uint32_t> running{kReporters};
  std::vector<uint32_t> met(kFindings);
  uint32_t torn = 0;
  simt::run_workers(kReporters + 1, [&](const simt::Warp&, uint32_t index) {
    if (index < kReporters) {
      for (uint32_t i = 0; i < kFindings; ++i) report(*log, finding(i));
      --running;
      return;
    }
    for (bool last = false; !last;) {
      last = running == 0;
      for (const Corruption& one : take(*log)) {
        if (belongs_together(one)) {
          ++met[one.block];
        } else {
          ++torn;
        }
      }
    }
  });
  EXPECT_EQ(torn, 0u);
  EXPECT_EQ(count_findings(*log), 0u);
  const auto kinds = std::count_if(met.begin(), met.end(), [](uint32_t count) { return count; });
  // Everything that was not taken found a full log.
  EXPECT_GE(static_cast<uint64_t>(kinds) + log->lost, uint64_t{kFindings});
}

}  // namespace
}  // namespace gofs::f2fs
