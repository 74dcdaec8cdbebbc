// SPDX-License-Identifier: Apache-2.0
//
// A program of C++17 that uses the library, which is C++20. That it can also read and list a volume
// is examples/host_read.cpp's to show.
#include "gofs/volume.hpp"

#include <gtest/gtest.h>

#include <cerrno>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

namespace gofs {
namespace {

static_assert(__cplusplus < 202002L, "this is to be compiled as C++17");
static_assert(!std::is_copy_constructible_v<Volume> &&
              std::is_nothrow_move_constructible_v<Volume>);
static_assert(std::is_same_v<decltype(std::declval<const Volume&>().device()), VolumeHandle>);

TEST(PublicVolumeTest, what_cannot_be_mounted_is_an_error_with_an_errno_and_words) {
  MountOptions options;
  options.backend = "cpu";
  const Expected<Volume> volume = Volume::mount("/no/such/image", options);
  ASSERT_FALSE(volume);
  EXPECT_EQ(volume.error().code, ENOENT);
  EXPECT_NE(volume.error().message.find("/no/such/image"), std::string::npos);
}

TEST(PublicVolumeTest, more_groups_than_the_limit_are_refused) {
  MountOptions options;
  options.backend = "cpu";
  options.groups = std::vector<uint32_t>(kGroupsMax + 1);
  const Expected<Volume> volume = Volume::mount("/no/such/image", options);
  ASSERT_FALSE(volume);
  EXPECT_EQ(volume.error().code, EINVAL);
}

TEST(PublicVolumeTest, an_unknown_mechanism_to_do_without_is_refused) {
  MountOptions options;
  options.backend = "cpu";
  options.ablations = kAblateBlockMaps << 1;
  const Expected<Volume> volume = Volume::mount("/no/such/image", options);
  ASSERT_FALSE(volume);
  EXPECT_EQ(volume.error().code, EINVAL);
}

TEST(ExpectedTest, a_value_that_is_not_there_throws_the_error) {
  const Expected<int> failed(Error{ENOENT, "/a: No such file or directory"});
  EXPECT_EQ(failed.value_or(7), 7);
  try {
    (void)failed.value();
    FAIL() << "nothing was thrown";
  } catch (const BadExpectedAccess& error) {
    EXPECT_EQ(error.code(), ENOENT);
    EXPECT_STREQ(error.what(), "/a: No such file or directory");
  }
  EXPECT_THROW(Expected<void>(Error{EIO, "x"}).value(), BadExpectedAccess);
  EXPECT_NO_THROW(Expected<void>().value());
}

}  // namespace
}  // namespace gofs
