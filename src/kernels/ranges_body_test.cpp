// SPDX-License-Identifier: Apache-2.0
//
// Pieces of ranges by several warps: one at a time by all lanes, or several, one a lane. Against a
// model, with what is wrong with some of them.
#include <gtest/gtest.h>

#include <algorithm>
#include <cerrno>
#include <random>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "kernels/ranges.h"
#include "vfs/changes_for_test.hpp"

namespace gofs::kernels {
namespace {

constexpr uint64_t kRangedBytes = 40 * 4096 + 77;
constexpr uint32_t kRangeWarps = 3;
constexpr int64_t kNoResult = -1;  // is EPERM, which no range has

class RangesBodyTest : public vfs::ChangesTest {
 protected:
  RangesBodyTest()
      : ChangesTest([](image::ImageBuilder& builder) {
          image::FileSpec spec;
          spec.size_bytes = kRangedBytes;
          for (const char* const name : {"1", "2"}) {
            spec.name = name;
            spec.content = image::pattern_content(static_cast<uint64_t>(*name));
            vfs::TestImage::must(builder.add_file(builder.root(), spec));
          }
        }) {}

  /// In pieces of so many bytes; those `left_out` are of no piece. The results.
  std::vector<int64_t> move(bool writes, uint32_t at_once, const std::vector<IoRange>& ranges,
                            uint32_t shift = 16, const std::set<size_t>& left_out = {}) {
    std::vector<int64_t> results(ranges.size(), kNoResult);
    states_.resize(std::max(states_.size(), ranges.size()));
    RangesParams params{};
    params.fs = &fs();
    params.writes = writes ? 1 : 0;
    params.range_count = static_cast<uint32_t>(ranges.size());
    params.pieces_at_once = at_once;
    params.cut = {shift};
    params.ranges = ranges.data();
    params.states = states_.data();
    params.progress = &progress_;
    params.results = results.data();
    std::vector<uint32_t> first_pieces;
    bool all_whole = left_out.empty();
    for (size_t i = 0; i < ranges.size(); ++i) {
      first_pieces.push_back(params.piece_count);
      if (left_out.contains(i)) continue;
      all_whole = all_whole && params.cut.leaves_whole(ranges[i]);
      params.piece_count += static_cast<uint32_t>(params.cut.pieces_of(ranges[i]));
    }
    if (!all_whole) params.first_pieces = first_pieces.data();
    testing::run_crowd({kRangeWarps, width()}, [&](const simt::Warp& warp, uint32_t index) {
      ranges_body(warp, index, kRangeWarps, params);
    });
    for (const RangeState& state : states_) {
      EXPECT_EQ(state.lacking | state.ended | static_cast<uint32_t>(state.error), 0u);
    }
    return results;
  }
  /// One of each number of pieces that a warp may take.
  std::vector<uint32_t> all_at_once() const {
    std::vector<uint32_t> all;
    for (uint32_t count = 1; count <= width(); count *= 2) all.push_back(count);
    return all;
  }
  uint64_t calls(CallKind kind, bool succeeded) {
    uint64_t sum = 0;
    for (uint32_t i = 0; i < simt::kCountPlaces; ++i) {
      const auto& calls = fs().call_counts[i].calls[static_cast<uint32_t>(kind)];
      sum += succeeded ? calls.succeeded : calls.failed;
    }
    return sum;
  }

  std::vector<RangeState> states_;  // which every launch leaves as it found them
  RangesProgress progress_{};
};
GOFS_AT_BOTH_WIDTHS(RangesBodyTest);

TEST_P(RangesBodyTest, reads_what_the_files_hold) {
  std::mt19937 random(static_cast<uint32_t>(vfs::printed_seed()));
  const std::string files[] = {contents("/1"), contents("/2")};
  const int fds[] = {open_file("/1", kOpenReadOnly), open_file("/2", kOpenReadOnly)};
  for (const uint32_t at_once : all_at_once()) {
    for (const uint32_t shift : {12u, 13u, 16u}) {
      const bool one_file = random() % 2 == 0;
      std::vector<std::string> found(50);
      std::vector<std::string> wanted(found.size());
      std::vector<IoRange> ranges;
      std::set<size_t> left_out;
      for (size_t i = 0; i < found.size(); ++i) {
        const uint32_t which = one_file ? 0 : random() % 2;
        const uint64_t offset = random() % (kRangedBytes + 5000);
        found[i].assign(i % 9 == 0 ? 0 : random() % 20'000, 'x');
        wanted[i] = files[which].substr(std::min(offset, kRangedBytes), found[i].size());
        ranges.push_back({fds[which], found[i].data(), found[i].size(), offset});
        if (random() % 7 == 0) left_out.insert(i);
      }
      const std::vector<int64_t> results = move(false, at_once, ranges, shift, left_out);
      for (size_t i = 0; i < found.size(); ++i) {
        const bool moved = !left_out.contains(i);
        const auto got = static_cast<int64_t>(wanted[i].size());
        ASSERT_EQ(results[i], moved ? got : kNoResult) << i << ", " << at_once << ", " << shift;
        if (!moved) wanted[i].clear();
        wanted[i].resize(found[i].size(), 'x');
        ASSERT_TRUE(found[i] == wanted[i]) << i << ", " << at_once << ", " << shift;
      }
    }
  }
}

TEST_P(RangesBodyTest, writes_what_is_there_then) {
  std::string model = contents("/1");
  const int fd = open_file("/1", kOpenReadWrite);
  char letter = 'a';
  for (const uint32_t at_once : all_at_once()) {
    std::mt19937 random(at_once);
    std::vector<std::string> bytes;
    std::vector<IoRange> ranges;
    for (uint64_t at = 100; at < kRangedBytes + 9000; at += bytes.back().size()) {
      bytes.emplace_back(1 + random() % 9000, letter++);
      if (letter > 'z') letter = 'a';
      model.resize(std::max<uint64_t>(model.size(), at + bytes.back().size()));
      model.replace(at, bytes.back().size(), bytes.back());
      ranges.push_back({fd, nullptr, bytes.back().size(), at});
    }
    for (size_t i = 0; i < ranges.size(); ++i) ranges[i].memory = bytes[i].data();
    std::shuffle(ranges.begin(), ranges.end(), random);
    const std::vector<int64_t> results = move(true, at_once, ranges, 12);
    for (size_t i = 0; i < ranges.size(); ++i) {
      ASSERT_EQ(results[i], static_cast<int64_t>(ranges[i].bytes));
    }
    ASSERT_TRUE(contents("/1") == model) << at_once;
  }
  ASSERT_EQ(close_file(fd), 0);
  mount_again();
  EXPECT_TRUE(contents("/1") == model);
}

TEST_P(RangesBodyTest, says_of_each_what_is_wrong_with_it_and_counts_it) {
  const int fd = open_file("/1", kOpenReadOnly);
  char bytes[7][16];
  for (const uint32_t at_once : all_at_once()) {
    const uint64_t succeeded = calls(CallKind::kRead, true);
    const uint64_t failed = calls(CallKind::kRead, false);
    const std::vector<IoRange> ranges = {{fd, bytes[0], 16, 0},
                                         {fd + 30, bytes[1], 0, 0},
                                         {fd, bytes[2], 16, kRangedBytes},
                                         {-1, bytes[3], 16, 0},
                                         {fd, bytes[4], 16, kOffsetMax},
                                         {fd, bytes[5], 0, 0},
                                         {fd, bytes[6], 16, kRangedBytes - 3}};
    EXPECT_EQ(move(false, at_once, ranges), (std::vector<int64_t>{16, -EBADF, 0, -EBADF, 0, 0, 3}))
        << at_once;
    EXPECT_EQ(calls(CallKind::kRead, true), succeeded + 5);
    EXPECT_EQ(calls(CallKind::kRead, false), failed + 2);
    EXPECT_EQ(move(true, at_once, {{fd, bytes[0], 16, 0}}), std::vector<int64_t>{-EBADF});
  }
}

TEST_P(RangesBodyTest, an_error_of_one_piece_is_the_range_s) {
  const int fd = open_file("/1", kOpenWriteOnly);
  std::string bytes(20'000, 'x');
  for (const uint32_t at_once : all_at_once()) {
    // What lies behind the last block that a file can have is an error of its own.
    const uint64_t end = f2fs::kFileBytesMax;
    const std::vector<IoRange> ranges = {{fd, bytes.data(), 20'000, 0},
                                         {fd, bytes.data(), 20'000, end},
                                         {fd, bytes.data(), 20'000, 20'000}};
    EXPECT_EQ(move(true, at_once, ranges, 12), (std::vector<int64_t>{20'000, -EFBIG, 20'000}));
  }
}

TEST(RangeCutTest, cuts_at_multiples_of_the_file) {
  constexpr RangeCut kCut{12};
  char memory[20'000];
  const auto pieces = [&](uint64_t bytes, uint64_t offset) {
    const IoRange range{7, memory, bytes, offset};
    std::vector<std::pair<uint64_t, uint64_t>> all;  // offset, bytes
    uint64_t done = 0;
    for (uint64_t i = 0; i < kCut.pieces_of(range); ++i) {
      const RangePiece piece = kCut.piece(range, 3, i);
      EXPECT_EQ(piece.descriptor, 7);
      EXPECT_EQ(piece.range, 3u);
      EXPECT_EQ(piece.of_pieces, kCut.pieces_of(range));
      EXPECT_EQ(piece.memory, reinterpret_cast<uint8_t*>(memory) + done);
      done += piece.bytes;
      all.emplace_back(piece.offset, piece.bytes);
    }
    EXPECT_EQ(done, bytes);
    return all;
  };
  using Pieces = std::vector<std::pair<uint64_t, uint64_t>>;
  EXPECT_EQ(pieces(0, 5), (Pieces{{5, 0}}));
  EXPECT_EQ(pieces(4096, 5), (Pieces{{5, 4096}})) << "short ones are left whole";
  EXPECT_EQ(pieces(4097, 0), (Pieces{{0, 4096}, {4096, 1}}));
  EXPECT_EQ(pieces(4097, 4095), (Pieces{{4095, 1}, {4096, 4096}}));
  EXPECT_EQ(pieces(8193, 4095), (Pieces{{4095, 1}, {4096, 4096}, {8192, 4096}}));
  EXPECT_EQ(pieces(8194, 4095), (Pieces{{4095, 1}, {4096, 4096}, {8192, 4096}, {12288, 1}}));
}

TEST(EndPiece, bytes_behind_a_gap_do_not_count) {
  std::vector<uint8_t> memory(40'000);
  const IoRange range{3, memory.data(), memory.size(), 1'000};
  const RangeCut cut{12};
  const auto pieces = static_cast<uint32_t>(cut.pieces_of(range));
  ASSERT_EQ(pieces, 11u);
  RangeState state{};
  int64_t result = -1;
  RangesParams params{};
  params.ranges = &range;
  params.states = &state;
  params.results = &result;
  // The file grew after the third piece was read: others are whole, in whatever order they end.
  for (const bool backwards : {false, true}) {
    for (uint32_t i = 0; i < pieces; ++i) {
      const uint32_t number = backwards ? pieces - 1 - i : i;
      const RangePiece piece = cut.piece(range, 0, number);
      const bool is_short = number == 2 || number == 5;
      detail::end_piece(params, piece, is_short ? 100 : static_cast<int64_t>(piece.bytes));
    }
    EXPECT_EQ(result, 2 * 4096 - 1000 + 100);
    EXPECT_EQ(state.lacking, 0u);
    EXPECT_EQ(state.ended, 0u);
  }
}

}  // namespace
}  // namespace gofs::kernels
