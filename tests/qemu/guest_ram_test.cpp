// SPDX-License-Identifier: Apache-2.0
//
// A machine's memory: which sizes it has, and which ranges of it are given out.
#include "guest_ram.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "errors_for_test.h"
#include "scratch_folder.h"

namespace gofs::ssd {
namespace {

constexpr uint64_t kMiB = uint64_t{1} << 20;

class GuestRamTest : public ::testing::Test {
 protected:
  ScratchFolder folder_{::testing::TempDir()};
  GuestRam ram_{folder_.file("ram"), 4 * kMiB};
};

TEST_F(GuestRamTest, gives_out_what_lies_above_the_first_mebibyte) {
  uint8_t* const first = ram_.take(kMiB);
  uint8_t* const second = ram_.take(2 * kMiB);
  EXPECT_EQ(ram_.guest_address(first, kMiB), kMiB);
  EXPECT_EQ(ram_.guest_address(second, 2 * kMiB), 2 * kMiB);
  EXPECT_EQ(trouble_of([&] { ram_.take(1); }).error, ENOMEM);
  ram_.release(first);
  ram_.release(second);
}

TEST_F(GuestRamTest, a_range_that_was_given_back_is_given_out_again_as_zeros) {
  uint8_t* const first = ram_.take(5000);
  uint8_t* const second = ram_.take(1);
  EXPECT_EQ(second, first + 8192);
  std::memset(first, 1, 8192);
  ram_.release(first);
  // It does not fit between.
  uint8_t* const third = ram_.take(8193);
  EXPECT_EQ(third, second + 4096);
  EXPECT_EQ(ram_.take(8192), first);
  EXPECT_TRUE(std::all_of(first, first + 8192, [](uint8_t byte) { return byte == 0; }));
}

TEST_F(GuestRamTest, knows_the_address_of_its_own_alone) {
  uint8_t* const range = ram_.take(3 * kMiB);
  EXPECT_EQ(ram_.guest_address(range + 100, 1), kMiB + 100);
  EXPECT_FALSE(ram_.guest_address(range - 1, 1));  // the firmware's
  EXPECT_FALSE(ram_.guest_address(range, 3 * kMiB + 1));
  EXPECT_FALSE(ram_.guest_address(range + 4096, ~uint64_t{0} - 4095));
  EXPECT_FALSE(ram_.guest_address(range + 3 * kMiB + 1, 0));
  const int elsewhere = 0;
  EXPECT_FALSE(ram_.guest_address(&elsewhere, sizeof(elsewhere)));
}

TEST_F(GuestRamTest, sizes_that_no_machine_has_are_refused) {
  for (const uint64_t bytes : {uint64_t{0}, kMiB, 2 * kMiB + 4096, uint64_t{3} << 30}) {
    const Trouble trouble = trouble_of([&] { GuestRam(folder_.file("other"), bytes); });
    EXPECT_EQ(trouble.error, EINVAL) << bytes;
    EXPECT_TRUE(trouble.says(std::to_string(bytes) + " bytes")) << trouble.text;
  }
  EXPECT_EQ(trouble_of([&] { GuestRam(folder_.file("ram"), 2 * kMiB); }).error, EEXIST);
  EXPECT_EQ(trouble_of([&] { ram_.take(0); }).error, EINVAL);
}

}  // namespace
}  // namespace gofs::ssd
