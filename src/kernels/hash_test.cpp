// SPDX-License-Identifier: Apache-2.0
//
// How a warp deals the blocks of its lanes' chunks to its lanes, at widths that a CPU has not: with
// a team of lanes that plays the warp.
#include "kernels/hash.h"

#include <gtest/gtest.h>

#include <vector>

#include "testing/teams.hpp"

namespace gofs::kernels {
namespace {

/// (owner, index) of each item, found by a team of `blocks.size()` lanes.
std::vector<std::pair<uint32_t, uint32_t>> deal(const std::vector<uint32_t>& blocks) {
  const auto width = static_cast<uint32_t>(blocks.size());
  uint32_t total = 0;
  for (const uint32_t count : blocks) total += count;
  std::vector<std::pair<uint32_t, uint32_t>> items(total);
  std::vector<uint32_t> counts(width);
  testing::run_teams(1, width, [&](const simt::Warp& warp, uint32_t) {
    const uint32_t rank = warp.thread_rank();
    const detail::ChunkBlocks list(warp, blocks[rank]);
    counts[rank] = list.count();
    for (uint32_t first = 0; first < total; first += width) {
      uint32_t index = 0;
      const uint32_t owner = list.owner(first + rank, index);
      if (first + rank < total) items[first + rank] = {owner, index};
    }
  });
  EXPECT_EQ(counts, std::vector<uint32_t>(width, total));
  return items;
}

TEST(ChunkBlocks, every_block_has_its_owner) {
  const std::vector<std::vector<uint32_t>> cases = {{5},
                                                    {0},
                                                    {3, 0},
                                                    {0, 3},
                                                    {1, 1, 1, 1},
                                                    {0, 7, 0, 2},
                                                    {16, 1, 0},
                                                    {0, 0, 0, 0, 1},
                                                    {2, 3, 1, 0, 0, 4, 1, 6},
                                                    {0, 0, 1}};
  for (const auto& blocks : cases) {
    std::vector<std::pair<uint32_t, uint32_t>> expected;
    for (uint32_t owner = 0; owner < blocks.size(); ++owner) {
      for (uint32_t index = 0; index < blocks[owner]; ++index) expected.emplace_back(owner, index);
    }
    EXPECT_EQ(deal(blocks), expected) << ::testing::PrintToString(blocks);
  }
}

TEST(TakeFiles, every_file_is_taken_once) {
  constexpr uint32_t kFiles = 10;
  constexpr uint32_t kWidth = 4;
  uint32_t cursor = 0;
  HashParams params{};
  params.count = kFiles;
  params.cursor = &cursor;
  std::vector<std::vector<uint32_t>> taken(kWidth);
  testing::run_teams(1, kWidth, [&](const simt::Warp& warp, uint32_t) {
    // Lane 2 wants nothing in the first rounds.
    for (uint32_t round = 0; round < 5; ++round) {
      const bool wants = warp.thread_rank() != 2 || round > 1;
      const uint32_t index = detail::take_files(warp, params, warp.ballot(wants));
      if (wants) taken[warp.thread_rank()].push_back(index);
    }
  });
  std::vector<uint32_t> count(kFiles + 1, 0);
  for (const auto& lane : taken) {
    for (const uint32_t index : lane) ++count.at(index);
  }
  for (uint32_t file = 0; file < kFiles; ++file) EXPECT_EQ(count[file], 1u) << file;
  EXPECT_EQ(count[kFiles], 3u * 2 + 4 * 3 - kFiles);
}

}  // namespace
}  // namespace gofs::kernels
