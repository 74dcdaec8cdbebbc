// SPDX-License-Identifier: Apache-2.0
//
// Which of several answers Linux gives, and what it takes from a file that changes: what the
// differential test has found to be otherwise here.
#include <cerrno>

#include "vfs/fallocate.h"
#include "vfs/rename.h"
#include "vfs/set_xattr.h"
#include "vfs/writing_vfs_for_test.hpp"

namespace gofs::vfs {
namespace {

class LinuxAnswersTest : public WritingVfsTest {
 protected:
  static constexpr uint32_t kOwner = 1000;
  static constexpr uint32_t kStranger = 2000;

  LinuxAnswersTest()
      : WritingVfsTest([](image::ImageBuilder& builder) {
          TestImage::must(
              builder.add_directory(builder.root(), "closed", {.mode = 0700}, {}, nullptr));
          TestImage::must(
              builder.add_directory(builder.root(), "open", {.mode = 0777}, {}, nullptr));
        }) {}

  template <typename Body>
  int64_t as_stranger(Body body) {
    return as(who(kStranger, kStranger), body);
  }
  /// A file of kOwner's.
  void put_owned(const char* path, uint32_t mode) {
    put_file(path, 10, 'x');
    EXPECT_EQ(as_root([&](const simt::Warp& warp) {
                int error = chown(warp, fs(), path, LastLink::kKeep, kOwner, kOwner);
                if (error == 0) error = chmod(warp, fs(), path, mode);
                return error;
              }),
              0);
  }
  uint32_t mode_of(const char* path) { return stat_of_path(path).mode & 07777; }
};
GOFS_AT_BOTH_WIDTHS(LinuxAnswersTest);

TEST_P(LinuxAnswersTest, a_directory_that_may_not_be_searched_tells_nothing) {
  put_file("/closed/there", 1, 'x');
  for (const char* path : {"/closed/there", "/closed/missing"}) {
    const auto is_refused = [&](auto body) { EXPECT_EQ(as_stranger(body), -EACCES) << path; };
    is_refused([&](const simt::Warp& warp) { return mkdir(warp, fs(), path, 0700); });
    is_refused([&](const simt::Warp& warp) { return unlink(warp, fs(), path); });
    is_refused([&](const simt::Warp& warp) { return rmdir(warp, fs(), path); });
    is_refused([&](const simt::Warp& warp) { return rename(warp, fs(), path, "/open/x"); });
    is_refused([&](const simt::Warp& warp) {
      return open(warp, fs(), path, kOpenCreate | kOpenExclusive, 0600);
    });
  }
}

TEST_P(LinuxAnswersTest, what_comes_first_on_the_way_is_said_first) {
  const std::string late = "/missing/" + std::string(300, 'n');
  const auto is = [&](int wanted, auto body) { EXPECT_EQ(as_root(body), wanted); };
  is(-ENOENT, [&](const simt::Warp& warp) { return mkdir(warp, fs(), late.c_str(), 0700); });
  is(-ENOENT, [&](const simt::Warp& warp) { return unlink(warp, fs(), late.c_str()); });
  const std::string longer = "/open/" + std::string(300, 'n');
  is(-ENAMETOOLONG, [&](const simt::Warp& warp) { return unlink(warp, fs(), longer.c_str()); });
  is(-ENAMETOOLONG,
     [&](const simt::Warp& warp) { return mkdir(warp, fs(), longer.c_str(), 0700); });
  is(-ENOENT,
     [&](const simt::Warp& warp) { return rename(warp, fs(), "/open/missing", longer.c_str()); });
  put_file("/open/file", 1, 'x');
  is(-EEXIST,
     [&](const simt::Warp& warp) { return link(warp, fs(), "/open/file", "/open/file/"); });
  is(-EISDIR, [&](const simt::Warp& warp) {
    return open(warp, fs(), "/open/file/", kOpenCreate | kOpenReadWrite, 0600);
  });
  is(-EINVAL, [&](const simt::Warp& warp) {
    return setxattr(warp, fs(), "/missing", LastLink::kKeep, "user.a", "b", 1, 4);
  });
  is(0, [&](const simt::Warp& warp) {
    return utimens(warp, fs(), "/missing", LastLink::kKeep, {0, kTimeOmit}, {0, kTimeOmit});
  });
}

TEST_P(LinuxAnswersTest, kinds_of_files_come_before_permissions) {
  EXPECT_EQ(as_root([&](const simt::Warp& warp) {
              return mknod(warp, fs(), "/open/fifo", format::kModeFifo | 0600, {});
            }),
            0);
  EXPECT_EQ(
      as_stranger([&](const simt::Warp& warp) { return truncate(warp, fs(), "/open/fifo", 0); }),
      -EINVAL);
  // Whether there is one comes before whether he may make one.
  EXPECT_EQ(as_stranger([&](const simt::Warp& warp) {
              return mknod(warp, fs(), "/open/fifo", format::kModeCharDevice | 0600, {1, 3});
            }),
            -EEXIST);
  EXPECT_EQ(as_stranger([&](const simt::Warp& warp) {
              return mknod(warp, fs(), "/open/device", format::kModeCharDevice | 0600, {1, 3});
            }),
            -EPERM);
}

TEST_P(LinuxAnswersTest, a_file_that_was_just_made_is_not_emptied) {
  EXPECT_EQ(as_stranger([&](const simt::Warp& warp) {
              const int fd = open(warp, fs(), "/open/new",
                                  kOpenCreate | kOpenTruncate | kOpenReadWrite, 04755);
              return fd < 0 ? fd : close(warp, fs(), fd);
            }),
            0);
  EXPECT_EQ(mode_of("/open/new"), 04755u);
}

TEST_P(LinuxAnswersTest, writes_of_strangers_clear_the_set_id_bits) {
  put_owned("/open/written", 06666);
  EXPECT_EQ(as_stranger([&](const simt::Warp& warp) -> int64_t {
              const int fd = open(warp, fs(), "/open/written", kOpenWriteOnly);
              if (fd < 0) return fd;
              const int64_t written = pwrite(warp, fs(), fd, "y", 1, 0);
              return close(warp, fs(), fd) == 0 ? written : -EIO;
            }),
            1);
  EXPECT_EQ(mode_of("/open/written"), 0666u);
  const auto keep = [&](const char* path) {
    return as_stranger([&](const simt::Warp& warp) {
      return chown(warp, fs(), path, LastLink::kKeep, kKeepId, kKeepId);
    });
  };
  put_owned("/open/plain", 0600);
  EXPECT_EQ(keep("/open/plain"), 0);
  put_owned("/open/powerful", 04700);
  EXPECT_EQ(keep("/open/powerful"), -EPERM);
  EXPECT_EQ(mode_of("/open/powerful"), 04700u);
}

TEST_P(LinuxAnswersTest, a_hole_behind_the_end_is_a_change_too) {
  put_file("/open/file", 10, 'x');
  const f2fs::TimeStamp before = stat_of_path("/open/file").modified;
  const int fd = open_file("/open/file", kOpenReadWrite);
  EXPECT_EQ(alone([&](const simt::Warp& warp) {
              return fallocate(warp, fs(), fd, kFallocatePunchHole | kFallocateKeepSize, 100, 10);
            }),
            0);
  EXPECT_EQ(close_file(fd), 0);
  const f2fs::TimeStamp after = stat_of_path("/open/file").modified;
  EXPECT_GT(std::pair(after.seconds, after.nanoseconds),
            std::pair(before.seconds, before.nanoseconds));
}

}  // namespace
}  // namespace gofs::vfs
