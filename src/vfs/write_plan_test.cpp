// SPDX-License-Identifier: Apache-2.0
//
// Plans of writes: a table of files and requests.
#include "vfs/write_plan.h"

#include <gtest/gtest.h>

#include <random>

#include "testing/crowd.hpp"

namespace gofs::vfs {
namespace {

constexpr uint64_t kB = kBlockBytes;
constexpr FileView kTenBlocks{10 * kB, false, true};
constexpr FileView kUnaligned{10 * kB + 100, false, true};
constexpr FileView kUnclean{10 * kB + 100, false, false};
constexpr FileView kInline{100, true, false};

struct PlanCase {
  const char* name;
  FileView file;
  uint64_t offset;
  uint64_t bytes;
  WritePlan wanted;
};

const PlanCase kCases[] = {
    {"part of a block", kTenBlocks, 5, 10, {Hold::kBlocks, {0, kB}, false, true, false}},
    {"a block", kTenBlocks, kB, kB, {Hold::kBlocks, {kB, kB}, false, true, false}},
    {"up to the end",
     kTenBlocks,
     9 * kB + 1,
     kB - 1,
     {Hold::kBlocks, {9 * kB, kB}, false, true, false}},
    {"over a border", kTenBlocks, kB - 1, 2, {Hold::kBlocks, {0, 2 * kB}, false, false, false}},
    {"one byte past the end",
     kTenBlocks,
     9 * kB + 1,
     kB,
     {Hold::kBlocks, {9 * kB, 2 * kB}, true, false, false}},
    {"at the end", kTenBlocks, 10 * kB, 1, {Hold::kBlocks, {10 * kB, kB}, true, false, false}},
    {"far behind the end",
     kTenBlocks,
     99 * kB,
     kB,
     {Hold::kBlocks, {99 * kB, kB}, true, false, false}},
    {"32 blocks", kTenBlocks, 0, 32 * kB, {Hold::kBlocks, {0, 32 * kB}, true, false, false}},
    {"32 blocks that touch 33",
     kTenBlocks,
     1,
     32 * kB,
     {Hold::kRange, {0, 33 * kB}, true, false, false}},
    {"33 blocks",
     kTenBlocks,
     4 * kB,
     33 * kB,
     {Hold::kRange, {4 * kB, 33 * kB}, true, false, false}},
    {"from within the last block",
     kUnaligned,
     10 * kB + 50,
     100,
     {Hold::kBlocks, {10 * kB, kB}, true, false, false}},
    {"behind a tail of zeros",
     kUnaligned,
     20 * kB,
     kB,
     {Hold::kBlocks, {20 * kB, kB}, true, false, false}},
    {"behind a tail that is not known",
     kUnclean,
     20 * kB,
     kB,
     {Hold::kRange, {10 * kB, 11 * kB}, true, false, true}},
    {"at such an end",
     kUnclean,
     10 * kB + 100,
     5,
     {Hold::kBlocks, {10 * kB, kB}, true, false, false}},
    {"before such an end", kUnclean, 9 * kB, kB, {Hold::kBlocks, {9 * kB, kB}, false, true, false}},
    {"in an inode", kInline, 5, 5, {Hold::kWholeFile, whole_file(), false, false, true}},
    {"out of an inode", kInline, 50 * kB, kB, {Hold::kWholeFile, whole_file(), true, false, true}},
};

void expect_equal(const WritePlan& made, const WritePlan& wanted) {
  EXPECT_EQ(static_cast<uint32_t>(made.hold), static_cast<uint32_t>(wanted.hold));
  EXPECT_EQ(made.range.offset, wanted.range.offset);
  EXPECT_EQ(made.range.bytes, wanted.range.bytes);
  EXPECT_EQ(made.grows, wanted.grows);
  EXPECT_EQ(made.in_place, wanted.in_place);
  EXPECT_EQ(made.clears, wanted.clears);
}

TEST(WritePlanTest, requests_are_planned_as_the_table_says) {
  for (const PlanCase& one : kCases) {
    SCOPED_TRACE(one.name);
    expect_equal(plan_write(one.file, one.offset, one.bytes), one.wanted);
  }
}

TEST(WritePlanTest, an_append_holds_the_end_and_all_behind_it) {
  expect_equal(plan_append(kUnaligned),
               {Hold::kRange, {10 * kB, kOffsetMax - 10 * kB}, true, false, false});
  expect_equal(plan_append(kInline), {Hold::kWholeFile, whole_file(), true, false, true});
}

TEST(WritePlanTest, an_allocation_that_makes_a_file_longer_holds_its_end) {
  expect_equal(plan_allocation(kUnaligned, 20 * kB, kB),
               {Hold::kRange, {10 * kB, kOffsetMax - 10 * kB}, true, false, false});
  expect_equal(plan_allocation(kTenBlocks, 2 * kB, kB),
               {Hold::kRange, {2 * kB, kB}, false, true, false});
}

TEST(WritePlanTest, a_plan_is_enough_for_a_file_that_has_grown_and_not_for_another_kind) {
  const WritePlan held = plan_write(kTenBlocks, 20 * kB, 3 * kB);
  EXPECT_TRUE(is_enough(held, plan_write({40 * kB, false, true}, 20 * kB, 3 * kB)));
  EXPECT_FALSE(is_enough(held, plan_write(kUnclean, 20 * kB, 3 * kB)));
  EXPECT_FALSE(is_enough(held, plan_write(kInline, 20 * kB, 3 * kB)));
  EXPECT_TRUE(is_enough(plan_write(kInline, 20 * kB, 3 * kB), held));
}

TEST(WritePlanTest, a_plan_holds_all_that_it_writes) {
  std::mt19937_64 random(gofs::testing::printed_seed());
  for (uint32_t step = 0; step < 100'000; ++step) {
    const FileView file{random() % (64 * kB), random() % 8 == 0, random() % 2 == 0};
    const uint64_t offset = random() % (128 * kB);
    const uint64_t bytes = 1 + random() % (random() % 2 == 0 ? kB : 80 * kB);
    const WritePlan plan = plan_write(file, offset, bytes);
    ASSERT_TRUE(covers(plan.range, {offset, bytes}));
    ASSERT_EQ(plan.grows, offset + bytes > file.size_bytes);
    if (plan.hold == Hold::kWholeFile) continue;
    ASSERT_EQ(plan.range.offset % kB, 0u);
    ASSERT_EQ(plan.range.bytes % kB, 0u);
    ASSERT_EQ(plan.hold == Hold::kBlocks && plan.range.bytes > kQueuedBlocksMax * kB, false);
    if (plan.in_place) {
      ASSERT_FALSE(plan.grows);
      ASSERT_EQ(plan.range.bytes, kB);
    }
  }
}

}  // namespace
}  // namespace gofs::vfs
