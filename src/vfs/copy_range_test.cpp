// SPDX-License-Identifier: Apache-2.0
#include "vfs/copy_range.h"

#include <gtest/gtest.h>

#include <cerrno>
#include <string>

#include "vfs/changes_for_test.hpp"

namespace gofs::vfs {
namespace {

class CopyRangeTest : public ChangesTest {
 protected:
  CopyRangeTest()
      : ChangesTest([](image::ImageBuilder& builder) {
          TestImage::must(builder.add_directory(builder.root(), "dir", {}, {}, nullptr));
        }) {
    for (size_t i = 0; i < text_.size(); ++i) text_[i] = static_cast<char>('a' + i % 23);
    from_ = open_file("/from", kOpenCreate | kOpenReadWrite);
    to_ = open_file("/to", kOpenCreate | kOpenReadWrite);
    EXPECT_EQ(pwrite_file(from_, text_, 0), int64_t(text_.size()));
  }

  /// With so much memory to work in.
  int64_t copy(const CopyRange& range, uint64_t room_bytes = 40'000) {
    std::string room(room_bytes, '\0');
    return alone([&](const simt::Warp& warp) {
      return copy_range(warp, fs(), range, room.data(), room.size());
    });
  }

  std::string text_ = std::string(30'000, '\0');
  int from_ = -1;
  int to_ = -1;
};
GOFS_AT_BOTH_WIDTHS(CopyRangeTest);

TEST_P(CopyRangeTest, what_is_copied_is_what_was_there) {
  EXPECT_EQ(copy({from_, to_, 0, 0, 30'000}), 30'000);
  EXPECT_TRUE(contents("/to") == text_);
  EXPECT_EQ(copy({from_, to_, 5, 10'001, 9'000}), 9'000);
  EXPECT_TRUE(contents("/to") ==
              text_.substr(0, 10'001) + text_.substr(5, 9'000) + text_.substr(19'001));
  mount_again();
  EXPECT_TRUE(contents("/to").substr(0, 10'001) == text_.substr(0, 10'001));
}

TEST_P(CopyRangeTest, a_call_copies_what_it_has_memory_for) {
  EXPECT_EQ(copy({from_, to_, 0, 0, 30'000}, 8'192), 8'192);
  EXPECT_EQ(copy({from_, to_, 8'192, 8'192, 21'808}, 30'000), 21'808);
  EXPECT_TRUE(contents("/to") == text_);
}

TEST_P(CopyRangeTest, it_ends_where_the_source_ends) {
  EXPECT_EQ(copy({from_, to_, 29'990, 0, 100}), 10);
  EXPECT_EQ(contents("/to"), text_.substr(29'990));
  EXPECT_EQ(copy({from_, to_, 30'000, 0, 100}), 0);
  EXPECT_EQ(copy({from_, to_, 50'000, 0, 100}), 0);
  EXPECT_EQ(copy({from_, to_, 0, 0, 0}), 0);
  EXPECT_EQ(copy({from_, to_, 0, 0, ~uint64_t{0}}), 30'000) << "no more than there is";
}

TEST_P(CopyRangeTest, within_one_file_ranges_may_touch_and_not_overlap) {
  EXPECT_EQ(copy({from_, from_, 0, 10'000, 10'001}), -EINVAL);
  EXPECT_EQ(copy({from_, from_, 10'000, 0, 10'001}), -EINVAL);
  EXPECT_EQ(copy({from_, from_, 0, 0, 1}), -EINVAL);
  // Also where the call would not come so far.
  EXPECT_EQ(copy({from_, from_, 0, 10'000, 30'000}, 4'096), -EINVAL);
  EXPECT_TRUE(contents("/from") == text_);
  EXPECT_EQ(copy({from_, from_, 0, 10'000, 10'000}), 10'000);
  EXPECT_TRUE(contents("/from") ==
              text_.substr(0, 10'000) + text_.substr(0, 10'000) + text_.substr(20'000));
  // What is behind the end is not of the range.
  EXPECT_EQ(copy({from_, from_, 29'999, 30'000, 10}), 1);
  const int again = open_file("/from", kOpenReadWrite);
  EXPECT_EQ(copy({from_, again, 0, 5, 10}), -EINVAL) << "the file counts, not the descriptor";
}

TEST_P(CopyRangeTest, holes_are_zeros) {
  const int sparse = open_file("/sparse", kOpenCreate | kOpenReadWrite);
  EXPECT_EQ(pwrite_file(sparse, "end", 20'000), 3);
  EXPECT_EQ(copy({sparse, to_, 0, 0, 30'000}), 20'003);
  EXPECT_TRUE(contents("/to") == std::string(20'000, '\0') + "end");
}

TEST_P(CopyRangeTest, what_linux_refuses_is_refused) {
  const int reader = open_file("/from", kOpenReadOnly);
  const int writer = open_file("/to", kOpenWriteOnly);
  const int appender = open_file("/to", kOpenReadWrite | kOpenAppend);
  const int path = open_file("/from", kOpenPath);
  const int directory = open_file("/dir", kOpenReadOnly);
  EXPECT_EQ(copy({reader, writer, 0, 0, 1}), 1);
  EXPECT_EQ(copy({writer, from_, 0, 0, 1}), -EBADF);
  EXPECT_EQ(copy({from_, reader, 0, 0, 1}), -EBADF);
  EXPECT_EQ(copy({from_, appender, 0, 0, 1}), -EBADF);
  EXPECT_EQ(copy({path, to_, 0, 0, 1}), -EBADF);
  EXPECT_EQ(copy({from_, path, 0, 0, 1}), -EBADF);
  EXPECT_EQ(copy({-1, to_, 0, 0, 1}), -EBADF);
  EXPECT_EQ(copy({from_, 1 << 20, 0, 0, 1}), -EBADF);
  EXPECT_EQ(copy({directory, to_, 0, 0, 1}), -EISDIR);
  EXPECT_EQ(copy({from_, directory, 0, 0, 1}), -EISDIR);
  EXPECT_EQ(copy({from_, to_, ~uint64_t{0}, 0, 1}), -EINVAL);
  EXPECT_EQ(copy({from_, to_, 0, ~uint64_t{0}, 1}), -EINVAL);
  EXPECT_EQ(copy({from_, to_, 0, kOffsetMax, 2}), -EFBIG);
}

}  // namespace
}  // namespace gofs::vfs
