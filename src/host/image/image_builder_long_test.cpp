// SPDX-License-Identifier: Apache-2.0
//
// The sizes that benchmarks use: 100,000 small files and a million empty ones in one directory, a
// large file in pieces of one block. Needs 5 GB in $TMPDIR and a minute or two, so it is labelled
// `long`.
#include <gtest/gtest.h>

#include <cstdio>
#include <memory>
#include <string>

#include "host/image/fsck_for_test.h"
#include "host/image/image_builder.h"
#include "host/image/pattern.h"
#include "host/image/reader_for_test.h"

namespace gofs::image {
namespace {

constexpr uint64_t kGiB = uint64_t{1} << 30;

class LongImageTest : public testing::Test {
 protected:
  void start(uint64_t size_bytes) {
    must(open_file_target(image_.path(), size_bytes, &target_));
    VolumeOptions options;
    options.flush = false;
    must(ImageBuilder::create(*target_, options, &builder_));
  }
  void must(const Status& status) { ASSERT_TRUE(status.ok()) << status.message; }
  void finish() {
    must(builder_->finish());
    GOFS_NEED_TOOL("fsck.f2fs");
    EXPECT_TRUE(fsck_is_clean(image_.path()));
  }
  static std::string file_name(uint32_t index) {
    char name[32];
    std::snprintf(name, sizeof(name), "file-%07u", index);
    return name;
  }
  /// Adds `count` files of `bytes` to a new directory "d" and looks some of them up again.
  void fill_directory(uint32_t count, uint64_t bytes) {
    Directory directory;
    must(builder_->add_directory(builder_->root(), "d", {}, {}, &directory));
    for (uint32_t i = 0; i < count; ++i) {
      const std::string name = file_name(i);
      FileSpec file;
      file.name = name;
      file.size_bytes = bytes;
      file.content = pattern_content(i);
      const Status status = builder_->add_file(directory, file);
      ASSERT_TRUE(status.ok()) << status.message;
    }
    finish();
    TestReader reader(*target_);
    const auto read = reader.at("/d");
    for (uint32_t i = 0; i < count; i += count / 997) {
      const uint32_t ino = reader.lookup(read, file_name(i));
      ASSERT_NE(ino, 0u) << i;
      std::string expected(bytes, '\0');
      fill_pattern(i, 0, expected.data(), bytes);
      EXPECT_TRUE(reader.content(reader.file(ino)) == expected);
    }
    EXPECT_EQ(reader.lookup(read, file_name(count)), 0u);
  }

  const TemporaryPath image_;
  std::unique_ptr<ImageTarget> target_;
  std::unique_ptr<ImageBuilder> builder_;
};

TEST_F(LongImageTest, one_hundred_thousand_files_of_16_kib_in_one_directory) {
  start(4 * kGiB);
  fill_directory(100'000, 16384);
}

TEST_F(LongImageTest, one_million_empty_files_in_one_directory) {
  start(8 * kGiB);
  fill_directory(1'000'000, 0);
}

TEST_F(LongImageTest, four_gib_in_pieces_of_one_block) {
  start(8 * kGiB);
  FileSpec file;
  file.name = "large";
  file.size_bytes = 4 * kGiB;
  file.content = pattern_content(1);
  must(builder_->add_file(builder_->root(), file, {.run_blocks = 1}));
  finish();
  TestReader reader(*target_);
  const auto read = reader.at("/large");
  for (uint64_t block = 0; block < 4 * kGiB / kBlockBytes; block += 1013) {
    uint64_t word = 0;
    must(target_->read(uint64_t{reader.address(read, block)} * kBlockBytes, &word, sizeof(word)));
    ASSERT_EQ(word, pattern_word(1, block * 512)) << block;
  }
}

}  // namespace
}  // namespace gofs::image
