// SPDX-License-Identifier: Apache-2.0
//
// Numbers of descriptors: each belongs to one thread alone, all of them can be had, and none is
// lost, while many take and release.
#include "vfs/descriptor_numbers.h"

#include <gtest/gtest.h>

#include <atomic>
#include <random>
#include <set>
#include <thread>
#include <vector>

namespace gofs::vfs {
namespace {

/// So many numbers, in ordinary memory.
class Numbers {
 public:
  explicit Numbers(uint32_t count) : taken_((count + 31) / 32), cursors_(kNumberCursors) {
    taken_.back() = numbers_beyond(count);
    for (uint32_t i = 0; i < kNumberCursors; ++i) {
      cursors_[i] = i % static_cast<uint32_t>(taken_.size());
    }
  }
  DescriptorNumbers get() {
    return {taken_.data(), static_cast<uint32_t>(taken_.size()), cursors_.data()};
  }

 private:
  std::vector<uint32_t> taken_;
  std::vector<uint32_t> cursors_;
};

TEST(DescriptorNumbersTest, as_many_can_be_had_as_there_are) {
  for (const uint32_t count : {1u, 31u, 32u, 33u, 1'000u, 4'096u}) {
    Numbers numbers(count);
    std::set<int> had;
    for (uint32_t i = 0; i < count; ++i) had.insert(take_number(numbers.get()));
    EXPECT_EQ(had.size(), count);
    EXPECT_EQ(*had.begin(), 0);
    EXPECT_EQ(*had.rbegin(), static_cast<int>(count) - 1);
    EXPECT_EQ(take_number(numbers.get()), -EMFILE);
    release_number(numbers.get(), count / 2);
    EXPECT_EQ(take_number(numbers.get()), static_cast<int>(count / 2));
    EXPECT_EQ(take_number(numbers.get()), -EMFILE);
  }
}

TEST(DescriptorNumbersTest, each_is_one_takers_alone) {
  constexpr uint32_t kCount = 100;
  constexpr uint32_t kTakers = 4;
  Numbers numbers(kCount);
  std::vector<std::atomic<uint32_t>> holders(kCount);
  std::vector<std::thread> takers;
  for (uint32_t taker = 0; taker < kTakers; ++taker) {
    takers.emplace_back([&, taker] {
      std::mt19937 random(taker);
      std::vector<int> mine;
      for (uint32_t turn = 0; turn < 20'000; ++turn) {
        // Together they want more than there are.
        if (mine.size() < 30 && random() % 2 == 0) {
          const int number = take_number(numbers.get());
          if (number < 0) continue;
          EXPECT_EQ(holders[static_cast<size_t>(number)]++, 0u);
          mine.push_back(number);
        } else if (!mine.empty()) {
          std::swap(mine[random() % mine.size()], mine.back());
          const auto number = static_cast<uint32_t>(mine.back());
          mine.pop_back();
          --holders[number];
          release_number(numbers.get(), number);
        }
      }
      for (const int number : mine) {
        --holders[static_cast<size_t>(number)];
        release_number(numbers.get(), static_cast<uint32_t>(number));
      }
    });
  }
  for (std::thread& taker : takers) taker.join();
  for (uint32_t i = 0; i < kCount; ++i) EXPECT_GE(take_number(numbers.get()), 0);
  EXPECT_EQ(take_number(numbers.get()), -EMFILE);
}

}  // namespace
}  // namespace gofs::vfs
