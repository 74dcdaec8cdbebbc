// SPDX-License-Identifier: Apache-2.0
//
// Volume::stat_many() and its like: each answer is that of the single call, whatever the backend.
#include <fcntl.h>
#include <gtest/gtest.h>

#include <cerrno>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "gofs/mkfs.hpp"
#include "host/backend_for_test.h"
#include "host/image/fsck_for_test.h"

namespace gofs::host {
namespace {

class CallsAtOnceTest : public ::testing::TestWithParam<bool> {
 protected:
  CallsAtOnceTest() {
    MkfsOptions options;
    options.size_bytes = uint64_t{128} << 20;
    EXPECT_TRUE(mkfs(image_.path(), options));
    const BackendMaker like_gpu = [](const std::string&,
                                     std::string&) -> std::unique_ptr<kernels::Backend> {
      return std::make_unique<BackendForTest>(3);
    };
    volume_.emplace(VolumeForTest::mount(image_.path() + "?media=memory",
                                         {.backend = "cpu", .read_only = false},
                                         GetParam() ? like_gpu : BackendMaker(make_backend))
                        .value());
  }

  image::TemporaryPath image_;
  std::optional<Volume> volume_;
};

TEST_P(CallsAtOnceTest, answer_as_single_calls_do) {
  std::vector<std::string> paths;
  for (int i = 0; i < 300; ++i) {
    const std::string path = "/file-" + std::to_string(i);
    if (i % 3 != 2) {
      const int fd = volume_->open(path, O_RDWR | O_CREAT).value();
      EXPECT_EQ(volume_->pwrite(fd, path.data(), path.size(), 0).value(), path.size());
      EXPECT_TRUE(volume_->close(fd));
    }
    paths.push_back(path);
  }
  paths.insert(paths.end(),
               {"/", "/file-0/x", std::string("/a\0b", 4), std::string(5000, 'x'), ""});
  const auto stats = volume_->stat_many(paths);
  const auto opened = volume_->open_many(paths, O_RDONLY);
  ASSERT_EQ(stats.size(), paths.size());
  ASSERT_EQ(opened.size(), paths.size());
  std::vector<int> fds;
  for (size_t i = 0; i < paths.size(); ++i) {
    SCOPED_TRACE(paths[i].substr(0, 20));
    const auto alone = volume_->stat(paths[i]);
    ASSERT_EQ(static_cast<bool>(stats[i]), static_cast<bool>(alone));
    ASSERT_EQ(static_cast<bool>(opened[i]), static_cast<bool>(alone));
    if (!alone) {
      EXPECT_EQ(stats[i].error().code, alone.error().code);
      EXPECT_EQ(stats[i].error().message, alone.error().message);
      EXPECT_EQ(opened[i].error().code, alone.error().code);
      continue;
    }
    EXPECT_EQ(stats[i]->ino, alone->ino);
    EXPECT_EQ(stats[i]->size_bytes, alone->size_bytes);
    EXPECT_EQ(volume_->fstat(*opened[i])->ino, alone->ino);
    fds.push_back(*opened[i]);
  }
  EXPECT_EQ(std::set<int>(fds.begin(), fds.end()).size(), fds.size());
  fds.push_back(1'000'000);
  fds.push_back(-1);
  const auto closed = volume_->close_many(fds);
  for (size_t i = 0; i + 2 < fds.size(); ++i) EXPECT_TRUE(closed[i]);
  EXPECT_EQ(closed[fds.size() - 2].error().code, EBADF);
  EXPECT_EQ(closed[fds.size() - 1].error().code, EBADF);
  EXPECT_EQ(volume_->fstat(fds[0]).error().code, EBADF);
}

TEST_P(CallsAtOnceTest, make_files_and_take_none_at_all) {
  std::vector<std::string> paths;
  for (int i = 0; i < 100; ++i) paths.push_back("/new-" + std::to_string(i));
  std::vector<int> fds;
  for (const auto& fd : volume_->open_many(paths, O_RDWR | O_CREAT | O_EXCL, 0640)) {
    fds.push_back(fd.value());
  }
  for (const auto& again : volume_->open_many(paths, O_RDWR | O_CREAT | O_EXCL, 0640)) {
    EXPECT_EQ(again.error().code, EEXIST);
  }
  EXPECT_EQ(volume_->fstat(fds[7])->mode & 07777, 0640u);
  for (const auto& closed : volume_->close_many(fds)) EXPECT_TRUE(closed);
  EXPECT_TRUE(volume_->stat_many({}).empty());
  EXPECT_TRUE(volume_->unmount());
  EXPECT_EQ(volume_->stat_many(paths)[3].error().code, ENODEV);
  GOFS_NEED_TOOL("fsck.f2fs");
  EXPECT_TRUE(image::fsck_is_clean(image_.path()));
}

INSTANTIATE_TEST_SUITE_P(backends, CallsAtOnceTest, ::testing::Bool());

}  // namespace
}  // namespace gofs::host
