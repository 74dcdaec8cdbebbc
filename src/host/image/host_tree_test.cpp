// SPDX-License-Identifier: Apache-2.0
//
// A tree of the host, made for the purpose, is copied into a volume and read back.
#include "host/image/host_tree.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <fstream>
#include <memory>
#include <string>
#include <vector>

#include "host/image/fsck_for_test.h"
#include "host/image/reader_for_test.h"

namespace gofs::image {
namespace {

class HostTreeTest : public testing::TestWithParam<bool> {
 protected:
  HostTreeTest() {
    std::string pattern = "/tmp/gofs-tree-XXXXXX";
    top_ = mkdtemp(pattern.data());
  }
  ~HostTreeTest() override { run_tool("rm -rf '" + top_ + "'"); }

  void write_file(const std::string& name, const std::string& text) {
    std::ofstream(top_ + "/" + name, std::ios::binary) << text;
  }
  Status build(const std::string& host_path) {
    GOFS_RETURN_IF_FAILED(open_file_target(image_.path(), uint64_t{128} << 20, &target_));
    VolumeOptions volume;
    volume.flush = false;
    std::unique_ptr<ImageBuilder> builder;
    GOFS_RETURN_IF_FAILED(ImageBuilder::create(*target_, volume, &builder));
    HostTreeOptions options;
    options.inline_data = GetParam();
    options.inline_dentries = GetParam();
    GOFS_RETURN_IF_FAILED(add_host_tree(*builder, builder->root(), host_path, options, &counts_));
    return builder->finish();
  }

  std::string top_;
  const TemporaryPath image_;
  std::unique_ptr<ImageTarget> target_;
  HostTreeCounts counts_;
};

INSTANTIATE_TEST_SUITE_P(inline_or_not, HostTreeTest, testing::Bool());

TEST_P(HostTreeTest, everything_is_copied) {
  write_file("empty", "");
  write_file("small", "hello");
  std::string large(3'000'001, '\0');
  for (size_t i = 0; i < large.size(); ++i) large[i] = static_cast<char>(i * 7 + (i >> 12));
  write_file("large", large);
  ASSERT_EQ(mkdir((top_ + "/dir").c_str(), 0750), 0);
  ASSERT_EQ(mkdir((top_ + "/dir/deeper").c_str(), 0700), 0);
  write_file("dir/deeper/leaf", "leaf");
  ASSERT_EQ(link((top_ + "/small").c_str(), (top_ + "/dir/linked").c_str()), 0);
  ASSERT_EQ(symlink("../nowhere", (top_ + "/dir/broken").c_str()), 0);
  ASSERT_EQ(mkfifo((top_ + "/fifo").c_str(), 0600), 0);
  ASSERT_EQ(chmod((top_ + "/small").c_str(), 04711), 0);
  const timespec times[2] = {{123, 456}, {-789, 12}};
  ASSERT_EQ(utimensat(AT_FDCWD, (top_ + "/small").c_str(), times, 0), 0);
  const int fd = open((top_ + "/sparse").c_str(), O_RDWR | O_CREAT, 0644);
  ASSERT_GE(fd, 0);
  ASSERT_EQ(ftruncate(fd, 50'000'000), 0);
  ASSERT_EQ(pwrite(fd, "middle", 6, 20'000'000), 6);
  close(fd);

  const Status status = build(top_);
  ASSERT_TRUE(status.ok()) << status.message;
  if (tool_exists("fsck.f2fs")) {
    EXPECT_TRUE(fsck_is_clean(image_.path()));
  } else {
    GTEST_LOG_(WARNING) << "fsck.f2fs is not installed: half of this test was not done";
  }
  EXPECT_EQ(counts_.directories, 2u);
  EXPECT_EQ(counts_.files, 5u);
  EXPECT_EQ(counts_.symlinks, 1u);
  EXPECT_EQ(counts_.specials, 1u);
  EXPECT_EQ(counts_.hard_links, 1u);

  TestReader reader(*target_);
  EXPECT_EQ(reader.content(reader.at("/empty")), "");
  EXPECT_EQ(reader.content(reader.at("/small")), "hello");
  EXPECT_TRUE(reader.content(reader.at("/large")) == large);
  EXPECT_EQ(reader.content(reader.at("/dir/deeper/leaf")), "leaf");
  EXPECT_EQ(reader.content(reader.at("/dir/broken")), "../nowhere");
  EXPECT_EQ(reader.at("/dir/linked").ino, reader.at("/small").ino);
  const auto small = reader.at("/small");
  EXPECT_EQ(small.inode().i_links, 2u);
  EXPECT_EQ(small.inode().i_mode, 0104711);
  EXPECT_EQ(small.inode().i_uid, geteuid());
  EXPECT_EQ(small.inode().i_atime, 123);
  EXPECT_EQ(small.inode().i_mtime, -789);
  EXPECT_EQ(small.inode().i_mtime_nsec, 12u);
  EXPECT_EQ(reader.at("/dir").inode().i_mode, 040750);
  EXPECT_EQ(reader.at("/fifo").inode().i_mode, 010600);
  const auto sparse = reader.at("/sparse");
  EXPECT_LT(sparse.inode().i_blocks, 100u);
  const std::string text = reader.content(sparse);
  EXPECT_EQ(text.size(), 50'000'000u);
  EXPECT_EQ(text.substr(20'000'000, 6), "middle");
  EXPECT_EQ(text.find_first_not_of('\0'), 20'000'000u);
}

TEST_P(HostTreeTest, failures_name_the_path) {
  const Status missing = build(top_ + "/missing");
  EXPECT_EQ(missing.error, -ENOENT);
  EXPECT_NE(missing.message.find(top_ + "/missing"), std::string::npos);

  write_file("large", std::string(1000, 'x'));
  ASSERT_EQ(truncate((top_ + "/large").c_str(), off_t{200} << 20), 0);
  const int fd = open((top_ + "/large").c_str(), O_WRONLY);
  ASSERT_GE(fd, 0);
  // Too much data for the volume, without holes.
  ASSERT_EQ(posix_fallocate(fd, 0, off_t{200} << 20), 0);
  close(fd);
  const Status full = build(top_);
  EXPECT_EQ(full.error, -ENOSPC);
  EXPECT_NE(full.message.find("large"), std::string::npos);
}

}  // namespace
}  // namespace gofs::image
