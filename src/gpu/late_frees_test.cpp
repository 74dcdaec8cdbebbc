// SPDX-License-Identifier: Apache-2.0
#include "gpu/late_frees.h"

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <thread>
#include <vector>

namespace gofs::gpu {
namespace {

std::vector<void*> freed;

class LateFreesTest : public ::testing::Test {
 protected:
  void SetUp() override { freed.clear(); }

  void* at(size_t index) { return &places_[index]; }

  char places_[4] = {};
  LaunchCount launches_;
  LateFrees frees_{launches_, [](void* memory) { freed.push_back(memory); }};
};

TEST_F(LateFreesTest, frees_at_once_while_nothing_runs) {
  frees_.free(at(0), 10);
  EXPECT_EQ(freed, std::vector<void*>{at(0)});
  EXPECT_EQ(frees_.take_back(10), nullptr);
}

TEST_F(LateFreesTest, keeps_what_is_released_beside_launches_for_who_wants_as_much) {
  launches_.add();
  launches_.add();
  frees_.free(at(0), 10);
  frees_.free(at(1), 20);
  frees_.free(at(2), 10);
  EXPECT_FALSE(launches_.remove());
  frees_.free_all();
  EXPECT_EQ(frees_.take_back(11), nullptr);
  EXPECT_EQ(frees_.take_back(20), at(1));
  EXPECT_EQ(frees_.take_back(20), nullptr);
  EXPECT_TRUE(freed.empty());
  EXPECT_TRUE(launches_.remove());
  frees_.free_all();
  EXPECT_EQ(freed, (std::vector<void*>{at(0), at(2)}));
  EXPECT_EQ(frees_.take_back(10), nullptr);
}

std::atomic<bool> is_freeing{false};
std::atomic<bool> goes_on{false};

TEST(LateFrees, no_launch_begins_while_memory_is_freed) {
  LaunchCount launches;
  LateFrees frees(launches, [](void*) {
    is_freeing.store(true);
    while (!goes_on.load()) std::this_thread::yield();
    is_freeing.store(false);
  });
  char place = 0;
  std::thread freeing([&] { frees.free(&place, 1); });
  while (!is_freeing.load()) std::this_thread::yield();
  bool met = true;
  std::thread beginning([&] {
    launches.add();
    met = is_freeing.load();
  });
  std::this_thread::sleep_for(std::chrono::milliseconds(10));  // in which it would begin
  goes_on.store(true);
  freeing.join();
  beginning.join();
  EXPECT_FALSE(met);
  launches.remove();
}

}  // namespace
}  // namespace gofs::gpu
