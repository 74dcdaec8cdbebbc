// SPDX-License-Identifier: Apache-2.0
//
// Copies of every alignment, by warps of one thread and by teams, and the memory they move in. The
// arrays have guard bytes on both sides, so that a byte too many is seen.
#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>
#include <random>
#include <vector>

#include "simt/copy.h"
#include "simt/copy_ranges.h"
#include "simt/host_memory.h"
#include "simt/unit_numbers.h"
#include "testing/teams.hpp"

namespace gofs::simt {
namespace {

constexpr uint32_t kGuard = 32;
constexpr uint8_t kGuardByte = 0xa5;

/// A target that starts `shift` bytes after a 64-byte boundary.
class Target {
 public:
  Target(uint32_t shift, uint32_t bytes)
      : storage_(2 * kGuard + 128 + bytes, kGuardByte), bytes_(bytes) {
    const uintptr_t base = align_up(reinterpret_cast<uintptr_t>(storage_.data()) + kGuard, 64);
    begin_ = reinterpret_cast<uint8_t*>(base) + shift;
  }
  uint8_t* data() { return begin_; }
  /// True if the target holds `wanted` and nothing around it was touched.
  bool holds(const std::vector<uint8_t>& wanted) const {
    const auto untouched = [](uint8_t byte) { return byte == kGuardByte; };
    const uint8_t* const first = storage_.data();
    const uint8_t* const last = first + storage_.size();
    return std::equal(wanted.begin(), wanted.end(), begin_, begin_ + bytes_) &&
           std::all_of(first, static_cast<const uint8_t*>(begin_), untouched) &&
           std::all_of(static_cast<const uint8_t*>(begin_) + bytes_, last, untouched);
  }

 private:
  std::vector<uint8_t> storage_;
  uint32_t bytes_;
  uint8_t* begin_;
};

std::vector<uint8_t> counted(uint32_t bytes, uint32_t start) {
  std::vector<uint8_t> values(bytes);
  for (uint32_t i = 0; i < bytes; ++i) values[i] = static_cast<uint8_t>(start + i * 7);
  return values;
}

class CopyTest : public ::testing::TestWithParam<uint32_t> {
 protected:
  void run(const std::function<void(const Warp&)>& work) {
    testing::run_teams(1, GetParam(), [&](const Warp& warp, uint32_t) { work(warp); });
  }
  bool leads(const Warp& warp) { return warp.thread_rank() == 0; }
};

INSTANTIATE_TEST_SUITE_P(width, CopyTest, ::testing::Values(1u, 4u),
                         ::testing::PrintToStringParamName());

constexpr uint32_t kLengths[] = {0, 1, 3, 15, 16, 17, 64, 511, 512, 4096, 4099};

TEST_P(CopyTest, copies_every_alignment) {
  for (uint32_t to = 0; to < 17; ++to) {
    for (uint32_t from = 0; from < 17; from += to % 2 + 1) {
      for (const uint32_t bytes : kLengths) {
        Target target(to, bytes);
        Target source(from, bytes);
        const std::vector<uint8_t> wanted = counted(bytes, to * 31 + from);
        std::copy(wanted.begin(), wanted.end(), source.data());
        if (GetParam() == 1) {
          copy_bytes(Warp(), target.data(), source.data(), bytes);
        } else if ((to + from) % 8 == 0) {
          run([&](const Warp& warp) { copy_bytes(warp, target.data(), source.data(), bytes); });
        } else {
          continue;
        }
        ASSERT_TRUE(target.holds(wanted)) << to << " from " << from << ", " << bytes << " bytes";
      }
    }
  }
}

TEST_P(CopyTest, zeroes_every_alignment) {
  for (uint32_t to = 0; to < 17; ++to) {
    for (const uint32_t bytes : kLengths) {
      Target target(to, bytes);
      run([&](const Warp& warp) { zero_bytes(warp, target.data(), bytes); });
      ASSERT_TRUE(target.holds(std::vector<uint8_t>(bytes, 0))) << to << ", " << bytes << " bytes";
    }
  }
}

TEST_P(CopyTest, copies_the_ranges_of_lanes_or_clears_them) {
  constexpr uint32_t kSomeBytes[] = {0, 5, 512, 4096, 1, 2048};
  for (uint32_t kind = 0; kind < 1u << 8; ++kind) {  // of each lane: has a source; takes part
    const uint32_t lanes = kind >> 4;
    std::vector<Target> targets;
    std::vector<std::vector<uint8_t>> sources;
    for (uint32_t lane = 0; lane < 4; ++lane) {
      const uint32_t bytes = kSomeBytes[(kind + lane) % 6];
      targets.emplace_back(lane == 3 ? 3 : 0, bytes);
      sources.push_back(counted(bytes, lane));
    }
    run([&](const Warp& warp) {
      const uint32_t lane = warp.thread_rank();
      const bool has_source = (kind >> lane & 1) != 0;
      const auto bytes = static_cast<uint32_t>(sources[lane].size());
      const uint32_t here = lanes & ((1u << warp.size()) - 1);
      copy_ranges(warp, here,
                  {targets[lane].data(), has_source ? sources[lane].data() : nullptr, bytes});
    });
    for (uint32_t lane = 0; lane < GetParam(); ++lane) {
      const size_t bytes = sources[lane].size();
      if ((lanes >> lane & 1) == 0) {
        ASSERT_TRUE(targets[lane].holds(std::vector<uint8_t>(bytes, kGuardByte)));
        continue;
      }
      // An empty vector may have no address.
      const bool has_source = (kind >> lane & 1) != 0;
      ASSERT_TRUE(targets[lane].holds(has_source ? sources[lane] : std::vector<uint8_t>(bytes)))
          << kind << " " << lane;
    }
  }
}

// Against counting by hand, with the numbers of units that occur: as many each, of the first lanes
// only, of some, and any.
TEST(UnitNumbersTest, find_every_unit_of_every_lane) {
  std::mt19937 random(7);
  for (const uint32_t width : {1u, 4u, 32u}) {
    for (int round = 0; round < 200; ++round) {
      const uint32_t each = round % 4 == 3 ? 3 : 1u << random() % 4;
      uint32_t lanes = static_cast<uint32_t>(random() & (width == 32 ? ~0u : (1u << width) - 1));
      if (round % 2 == 0)
        lanes = static_cast<uint32_t>((uint64_t{1} << (1 + random() % width)) - 1);
      std::vector<uint32_t> units(width, 0);
      std::vector<UnitPlace> wanted;
      for (uint32_t lane = 0; lane < width; ++lane) {
        if ((lanes >> lane & 1) == 0) continue;
        units[lane] = round % 3 == 2 ? 1 + static_cast<uint32_t>(random() % 5) : each;
        for (uint32_t unit = 0; unit < units[lane]; ++unit) wanted.push_back({lane, unit});
      }
      if (wanted.empty()) continue;
      std::vector<UnitPlace> found(wanted.size());
      testing::run_teams(1, width, [&](const Warp& warp, uint32_t) {
        const uint32_t rank = warp.thread_rank();
        const UnitNumbers numbers(warp, lanes, units[rank]);
        ASSERT_EQ(numbers.count(), wanted.size());
        for (uint32_t window = 0; window < numbers.count(); window += width) {
          const UnitPlace place = numbers.find(warp, window + rank);
          if (window + rank < found.size()) found[window + rank] = place;
        }
      });
      for (size_t i = 0; i < wanted.size(); ++i) {
        ASSERT_EQ(found[i].owner, wanted[i].owner) << width << " " << round << " " << i;
        ASSERT_EQ(found[i].offset_units, wanted[i].offset_units) << width << " " << round;
      }
    }
  }
}

// Plain bytes: without sync() a data race.
TEST_P(CopyTest, what_was_copied_is_visible_to_the_team_after_sync) {
  const std::vector<uint8_t> source = counted(4096, 9);
  std::vector<uint8_t> target(4096);
  run([&](const Warp& warp) {
    copy_bytes(warp, target.data(), source.data(), 4096);
    warp.sync();
    EXPECT_TRUE(target == source);
  });
}

TEST(HostMemorySpaceTest, gives_zeroed_blocks_at_block_boundaries) {
  HostMemorySpace space;
  for (const size_t bytes : {size_t{0}, size_t{1}, size_t{4095}, size_t{4096}, size_t{100'000},
                             size_t{1} << 20, (size_t{1} << 20) + 5}) {
    auto* const memory = static_cast<uint8_t*>(space.allocate(bytes));
    ASSERT_NE(memory, nullptr);
    EXPECT_EQ(reinterpret_cast<uintptr_t>(memory) % kBlockBytes, 0u);
    EXPECT_TRUE(std::all_of(memory, memory + bytes, [](uint8_t byte) { return byte == 0; }));
    std::memset(memory, 0xff, bytes);
    space.release(memory);
  }
  space.release(nullptr);
}

TEST(HostMemorySpaceTest, refuses_sizes_that_overflow) {
  HostMemorySpace space;
  EXPECT_THROW(space.allocate(SIZE_MAX), std::bad_alloc);
  EXPECT_THROW(space.allocate(SIZE_MAX - kBlockBytes), std::bad_alloc);
  // The product would be eight bytes.
  EXPECT_THROW(space.allocate_array<uint64_t>((SIZE_MAX >> 3) + 2), std::bad_alloc);
}

uint64_t bytes_of(const MemorySpace& space, MemoryPart part) {
  return space.bytes_by_part()[static_cast<size_t>(part)];
}

uint64_t bytes_of_all_parts(const MemorySpace& space) {
  const MemoryBytes bytes = space.bytes_by_part();
  return std::accumulate(bytes.begin(), bytes.end(), uint64_t{0});
}

TEST(MemoryPartsTest, each_part_has_what_was_taken_for_it) {
  HostMemorySpace space;
  EXPECT_EQ(space.bytes_taken(), 0u);
  void* const queue = space.allocate(5000, MemoryPart::kQueues);
  {
    Allocations own(space);
    own.take<uint64_t>(100'000, MemoryPart::kNames);  // a mapping of its own
    own.take<uint8_t>(1, MemoryPart::kNames);
    EXPECT_GE(bytes_of(space, MemoryPart::kNames), 800'001u);
    EXPECT_LE(bytes_of(space, MemoryPart::kNames), 800'001u + 4 * kBlockBytes);
    EXPECT_GE(bytes_of(space, MemoryPart::kQueues), 5000u);
    EXPECT_EQ(bytes_of_all_parts(space), space.bytes_taken());
  }
  EXPECT_EQ(bytes_of(space, MemoryPart::kNames), 0u);
  EXPECT_EQ(bytes_of_all_parts(space), space.bytes_taken());
  space.release(queue);
  EXPECT_EQ(space.bytes_taken(), 0u);
  EXPECT_EQ(bytes_of_all_parts(space), 0u);
}

TEST(MemoryPartsTest, an_array_may_belong_to_two) {
  HostMemorySpace space;
  void* const memory = space.allocate(10'000, MemoryPart::kOpenInodes);
  const uint64_t all = space.bytes_taken();
  space.count_as(memory, MemoryPart::kRangeLocks, 9000);
  EXPECT_EQ(bytes_of(space, MemoryPart::kRangeLocks), 9000u);
  EXPECT_EQ(bytes_of(space, MemoryPart::kOpenInodes), all - 9000);
  space.release(memory);
  EXPECT_EQ(bytes_of_all_parts(space), 0u);
}

TEST(MemoryPartsTest, what_could_not_be_had_is_not_counted) {
  HostMemorySpace space;
  EXPECT_THROW(space.allocate(SIZE_MAX / 2, MemoryPart::kBatches), std::bad_alloc);
  EXPECT_EQ(bytes_of_all_parts(space), 0u);
  EXPECT_EQ(space.bytes_taken(), 0u);
}

TEST(HostMemorySpaceTest, what_belongs_to_another_goes_with_it_whatever_its_memory_holds) {
  HostMemorySpace space;
  auto* const owner = space.allocate_array<uint64_t>(2);
  auto* const other = space.allocate_array<uint64_t>(1);
  owner[0] =
      reinterpret_cast<uint64_t>(space.allocate_for<uint8_t>(owner, 5000, MemoryPart::kCalls));
  owner[1] = reinterpret_cast<uint64_t>(space.allocate_for<uint8_t>(owner, 10, MemoryPart::kMedia));
  owner[0] = owner[1] = 12345;  // as by a wild store of a kernel
  space.release_belongings(other);
  EXPECT_GT(bytes_of(space, MemoryPart::kMedia), 0u);
  space.release_belongings(owner);
  EXPECT_EQ(bytes_of(space, MemoryPart::kMedia), 0u);
  space.release_belongings(owner);
  space.release(owner);
  space.release(other);
  EXPECT_EQ(space.bytes_taken(), 0u);
}

TEST(HostMemorySpaceTest, objects_come_back_as_they_were_written) {
  struct Pair {
    uint64_t a;
    uint32_t b;
  };
  HostMemorySpace space;
  Pair* const placed = space.allocate_array<Pair>(3);
  space.write_object(placed + 2, Pair{1, 2});
  EXPECT_EQ(space.read_object(placed).a, 0u);
  EXPECT_EQ(space.read_object(placed + 2).a, 1u);
  EXPECT_EQ(space.read_object(placed + 2).b, 2u);
  space.release(placed);
}

}  // namespace
}  // namespace gofs::simt
