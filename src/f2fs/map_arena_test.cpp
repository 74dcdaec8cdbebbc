// SPDX-License-Identifier: Apache-2.0
//
// Room for block maps: pieces do not overlap, come back zeroed, and a request that does not fit is
// refused without harm.
#include "f2fs/map_arena.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <cstring>
#include <vector>

#include "host/image/pattern.h"
#include "testing/ssd_rig.hpp"

namespace gofs::f2fs {
namespace {

constexpr uint32_t kUnit = MapArena::kUnitWords;

class ArenaOwner {
 public:
  explicit ArenaOwner(uint32_t units) {
    arena_.unit_count = units;
    arena_.words = reinterpret_cast<uint32_t*>(memory_.bytes(uint64_t{units} * kUnit * 4));
    arena_.used = reinterpret_cast<uint32_t*>(memory_.bytes(units / 32 * 4));
  }
  MapArena* operator->() { return &arena_; }

 private:
  gofs::testing::TestArena memory_;
  MapArena arena_{};
};

TEST(MapArenaTest, pieces_lie_apart_until_the_arena_is_full) {
  ArenaOwner arena(64);
  std::vector<uint32_t*> pieces;
  for (uint32_t i = 0; i < 64; ++i) {
    uint32_t* const piece = arena->allocate(i % 2 == 0 ? 1 : kUnit);
    ASSERT_NE(piece, nullptr) << i;
    pieces.push_back(piece);
  }
  std::sort(pieces.begin(), pieces.end());
  for (size_t i = 1; i < pieces.size(); ++i) EXPECT_GE(pieces[i] - pieces[i - 1], kUnit);
  EXPECT_EQ(arena->allocate(1), nullptr);
  arena->release(pieces[40], 1);
  EXPECT_EQ(arena->allocate(kUnit + 1), nullptr);
  EXPECT_EQ(arena->allocate(kUnit), pieces[40]);
}

TEST(MapArenaTest, sizes_that_make_no_sense_are_refused) {
  ArenaOwner arena(32);
  EXPECT_EQ(arena->allocate(0), nullptr);
  EXPECT_EQ(arena->allocate(32 * uint64_t{kUnit} + 1), nullptr);
  EXPECT_EQ(arena->allocate(~uint64_t{0} - kUnit), nullptr);
  uint32_t* const whole = arena->allocate(32 * uint64_t{kUnit});
  ASSERT_NE(whole, nullptr);
  arena->release(whole, 32 * uint64_t{kUnit});
  EXPECT_EQ(arena->allocate(32 * uint64_t{kUnit}), whole);
}

TEST(MapArenaTest, runs_over_words_of_the_bitmap_are_found) {
  ArenaOwner arena(96);
  uint32_t* const head = arena->allocate(20 * kUnit);
  uint32_t* const middle = arena->allocate(50 * kUnit);
  ASSERT_NE(middle, nullptr);
  arena->release(head, 20 * kUnit);
  EXPECT_EQ(arena->allocate(27 * kUnit), nullptr) << "26 at the end, 20 at the start";
  EXPECT_NE(arena->allocate(26 * kUnit), nullptr);
  EXPECT_EQ(arena->allocate(20 * kUnit), head);
}

// A search for what there is not is made once, until something has come back.
TEST(MapArenaTest, what_was_refused_is_refused_until_something_comes_back) {
  ArenaOwner arena(64);
  std::vector<uint32_t*> pieces;
  for (uint32_t i = 0; i < 64; ++i) pieces.push_back(arena->allocate(kUnit));
  for (uint32_t i = 0; i < 64; i += 2) arena->release(pieces[i], kUnit);
  for (int turn = 0; turn < 2; ++turn) {
    EXPECT_EQ(arena->allocate(5 * kUnit), nullptr);
    EXPECT_EQ(arena->allocate(2 * kUnit), nullptr);
    EXPECT_EQ(arena->allocate(3 * kUnit), nullptr);
  }
  uint32_t* const one = arena->allocate(kUnit);
  EXPECT_NE(one, nullptr) << "there are smaller ones";
  arena->release(one, kUnit);
  EXPECT_EQ(arena->allocate(2 * kUnit), nullptr);
  arena->release(pieces[33], kUnit);
  uint32_t* const three = arena->allocate(3 * kUnit);
  EXPECT_EQ(three, pieces[32]);
}

// As one that was released while the search went on, unseen, would leave it.
TEST(MapArenaTest, a_refusal_that_nobody_takes_back_ends) {
  ArenaOwner arena(32);
  for (const uint32_t units : {1u, 3u}) {
    arena->refused = 1;
    arena->refused_until_ns = simt::now_ns() + 3600'000'000'000;
    EXPECT_EQ(arena->allocate(uint64_t{units} * kUnit), nullptr);
    arena->refused_until_ns = simt::now_ns();
    EXPECT_NE(arena->allocate(uint64_t{units} * kUnit), nullptr);
  }
}

TEST(MapArenaTest, what_lies_in_an_arena_is_what_a_list_of_pieces_says) {
  constexpr uint32_t kUnits = 160;
  ArenaOwner arena(kUnits);
  const uint64_t seed = gofs::testing::printed_seed();
  struct Piece {
    uint32_t* words;
    uint32_t units;
  };
  std::vector<Piece> pieces;
  std::vector<bool> taken(kUnits);
  const auto longest = [&] {
    uint32_t most = 0;
    uint32_t run = 0;
    for (const bool one : taken) most = std::max(most, run = one ? 0 : run + 1);
    return most;
  };
  const auto set = [&](const Piece& piece, bool value) {
    const auto first = static_cast<uint32_t>((piece.words - arena->words) / kUnit);
    for (uint32_t i = first; i < first + piece.units; ++i) {
      ASSERT_NE(taken[i], value) << i;
      taken[i] = value;
    }
  };
  for (uint32_t turn = 0; turn < 3000; ++turn) {
    const uint64_t random = image::pattern_word(seed, turn);
    if (random % 5 < 2 && !pieces.empty()) {
      const size_t which = random / 8 % pieces.size();
      arena->release(pieces[which].words, uint64_t{pieces[which].units} * kUnit);
      set(pieces[which], false);
      pieces[which] = pieces.back();
      pieces.pop_back();
      continue;
    }
    const auto units = static_cast<uint32_t>(random / 8 % 70 + 1);
    const Piece piece{arena->allocate(uint64_t{units} * kUnit - random / 1024 % kUnit), units};
    ASSERT_EQ(piece.words != nullptr, units <= longest()) << turn;
    if (piece.words == nullptr) continue;
    set(piece, true);
    pieces.push_back(piece);
  }
}

// As close() uses it: who gives a piece back has cleared it.
TEST(MapArenaTest, many_threads_never_share_a_piece) {
  ArenaOwner arena(64);
  std::atomic<uint32_t> wrong{0};
  std::atomic<uint32_t> got{0};
  gofs::testing::run_crowd({8, 1}, [&](const simt::Warp&, uint32_t index) {
    for (uint32_t turn = 0; turn < 150; ++turn) {
      const uint64_t random = image::pattern_word(index, turn);
      const uint64_t words = random % (random >> 32 & 1 ? kUnit : 20 * kUnit) + 1;
      uint32_t* const piece = arena->allocate(words);
      if (piece == nullptr) {
        simt::Backoff().pause();
        continue;
      }
      ++got;
      for (uint64_t i = 0; i < words; i += 13) {
        if (piece[i] != 0) ++wrong;
        piece[i] = index + 1;
      }
      simt::Backoff().pause();
      for (uint64_t i = 0; i < words; i += 13) {
        if (piece[i] != index + 1) ++wrong;
      }
      std::memset(piece, 0, words * sizeof(uint32_t));
      arena->release(piece, words);
    }
  });
  EXPECT_EQ(wrong, 0u);
  EXPECT_GT(got, 100u);
}

TEST(MapArenaTest, of_many_who_want_one_home_settled_one_decides) {
  ArenaOwner arena(64);
  constexpr uint32_t kHomes = 40;
  std::vector<uint32_t> homes(kHomes);
  std::vector<std::vector<uint32_t>> seen(8, std::vector<uint32_t>(kHomes));
  gofs::testing::run_crowd({8, 1}, [&](const simt::Warp&, uint32_t index) {
    for (uint32_t i = 0; i < kHomes; ++i) {
      arena->settle(homes[i], 2 * kUnit);
      seen[index][i] = simt::load_acquire(homes[i]);
    }
  });
  for (const auto& mine : seen) EXPECT_EQ(mine, homes);
  // 32 of them have found room, and what they have is no other's.
  uint32_t placed = 0;
  std::vector<uint32_t> units;
  for (const uint32_t home : homes) {
    ASSERT_NE(home, 0u);
    if (!MapArena::is_home(home)) continue;
    ++placed;
    units.push_back(home);
    EXPECT_EQ(arena->home_at(arena->at_home(home)), home);
  }
  EXPECT_EQ(placed, 32u);
  std::sort(units.begin(), units.end());
  for (size_t i = 1; i < units.size(); ++i) EXPECT_GE(units[i] - units[i - 1], 2u);
  // What has been decided stays so.
  arena->release(arena->at_home(units[0]), 2 * kUnit);
  const auto without =
      static_cast<size_t>(std::find(homes.begin(), homes.end(), MapArena::kNoHome) - homes.begin());
  ASSERT_LT(without, homes.size());
  arena->settle(homes[without], 2 * kUnit);
  EXPECT_EQ(homes[without], MapArena::kNoHome);
}

TEST(MapArenaTest, homes_of_one_unit_are_settled_by_one_as_well) {
  ArenaOwner arena(64);
  constexpr uint32_t kHomes = 70;
  std::vector<uint32_t> homes(kHomes);
  std::vector<std::vector<uint32_t>> seen(8, std::vector<uint32_t>(kHomes));
  gofs::testing::run_crowd({8, 1}, [&](const simt::Warp&, uint32_t index) {
    for (uint32_t i = 0; i < kHomes; ++i) {
      arena->settle(homes[i], kUnit);
      seen[index][i] = simt::load_acquire(homes[i]);
    }
  });
  for (const auto& mine : seen) EXPECT_EQ(mine, homes);
  std::vector<uint32_t> placed;
  for (const uint32_t home : homes) {
    ASSERT_NE(home, 0u);
    if (MapArena::is_home(home)) placed.push_back(home);
  }
  std::sort(placed.begin(), placed.end());
  EXPECT_EQ(std::unique(placed.begin(), placed.end()), placed.end());
  EXPECT_EQ(arena->bytes_used(), placed.size() * kUnit * sizeof(uint32_t)) << "what lost is free";
  EXPECT_GE(placed.size(), 50u);
}

TEST(MapArenaTest, an_arena_without_memory_refuses_all) {
  ArenaOwner arena(0);
  EXPECT_EQ(arena->allocate(1), nullptr);
  EXPECT_EQ(arena->allocate(2 * kUnit), nullptr);
  for (const uint64_t words : {1u, kUnit, 2 * kUnit}) {
    uint32_t home = 0;
    arena->settle(home, words);
    EXPECT_EQ(home, MapArena::kNoHome) << words;
  }
}

TEST(MapArenaTest, a_home_of_no_words_or_of_too_many_is_none) {
  ArenaOwner arena(32);
  for (const uint64_t words : {uint64_t{0}, 32 * uint64_t{kUnit} + 1, ~uint64_t{0}}) {
    uint32_t home = 0;
    arena->settle(home, words);
    EXPECT_EQ(home, MapArena::kNoHome) << words;
  }
  uint32_t home = 0;
  arena->settle(home, 32 * uint64_t{kUnit});
  EXPECT_EQ(home, 1u);
}

}  // namespace
}  // namespace gofs::f2fs
