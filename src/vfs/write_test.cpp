// SPDX-License-Identifier: Apache-2.0
//
// Writing open files: against a model in memory, from several warps and descriptors at once, and
// what is refused.
#include "vfs/write.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cerrno>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "f2fs/writing_for_test.hpp"
#include "vfs/metadata.h"
#include "vfs/open.h"
#include "vfs/vfs_for_test.hpp"

namespace gofs::vfs {
namespace {

constexpr uint64_t kModelBytes = 300 * kBlockBytes;

class WriteFilesTest : public ::testing::TestWithParam<uint32_t> {
 protected:
  WriteFilesTest()
      : image_([](image::ImageBuilder& builder) {
          const auto add = [&](const char* name, uint16_t mode, bool inlined, uint64_t bytes) {
            image::FileSpec spec;
            spec.name = name;
            spec.attributes = {.mode = mode, .uid = 7, .gid = 70};
            spec.inline_data = inlined;
            spec.size_bytes = bytes;
            TestImage::must(builder.add_file(builder.root(), spec));
          };
          add("empty", 0644, true, 0);
          add("blocks", 0644, false, 0);
          add("powers", 06777, false, 10);
          add("shared", 0666, false, 0);
          TestImage::must(builder.add_directory(builder.root(), "dir", {}, {}, nullptr));
        }),
        writing_(std::make_unique<f2fs::WritingRig>(image_, width())) {
    begin();
  }
  uint32_t width() const { return GetParam(); }
  Filesystem& fs() { return writing_->rig().fs(); }
  void begin() {
    EXPECT_EQ(writing_->begin().error, 0);
    fs().writer = &writing_->writer();
  }
  void mount_again() {
    EXPECT_EQ(writing_->checkpoint(true), 0);
    writing_.reset();
    EXPECT_TRUE(f2fs::fsck_likes(image_));
    writing_ = std::make_unique<f2fs::WritingRig>(image_, width());
    begin();
  }
  template <typename Body>
  int64_t alone(Body body) {
    int64_t answer = 0;
    run_alone(width(), [&](const simt::Warp& warp) {
      const int64_t mine = body(warp);
      if (warp.thread_rank() == 0) answer = mine;
    });
    return answer;
  }
  int open_file(const char* path, uint32_t flags) {
    return static_cast<int>(
        alone([&](const simt::Warp& warp) { return open(warp, fs(), path, flags); }));
  }
  int64_t pwrite_file(int fd, const std::string& bytes, uint64_t offset) {
    return alone([&](const simt::Warp& warp) {
      return pwrite(warp, fs(), fd, bytes.data(), bytes.size(), offset);
    });
  }
  std::string contents(const char* path) {
    const int fd = open_file(path, kOpenReadOnly);
    std::string bytes(kModelBytes, '\0');
    const int64_t got = alone([&](const simt::Warp& warp) {
      return pread(warp, fs(), fd, bytes.data(), bytes.size(), 0);
    });
    EXPECT_GE(got, 0);
    alone([&](const simt::Warp& warp) { return close(warp, fs(), fd); });
    bytes.resize(static_cast<size_t>(std::max<int64_t>(got, 0)));
    return bytes;
  }

  TestImage image_;
  std::unique_ptr<f2fs::WritingRig> writing_;
};
GOFS_AT_BOTH_WIDTHS(WriteFilesTest);

TEST_P(WriteFilesTest, files_hold_what_was_written) {
  std::mt19937 random(static_cast<uint32_t>(printed_seed()));
  for (const char* path : {"/empty", "/blocks"}) {
    std::string model;
    const int fd = open_file(path, kOpenReadWrite);
    ASSERT_GE(fd, 0);
    for (uint32_t step = 0; step < 60; ++step) {
      const uint64_t offset = random() % 4 == 0 ? model.size() : random() % (kModelBytes / 2);
      const uint64_t count = random() % 3 == 0 ? random() % 64 : random() % (20 * kBlockBytes);
      if (random() % 8 == 0) {
        model.resize(offset);
        EXPECT_EQ(alone([&](const simt::Warp& warp) { return ftruncate(warp, fs(), fd, offset); }),
                  0);
      } else {
        const std::string bytes(count, static_cast<char>('A' + step % 50));
        EXPECT_EQ(pwrite_file(fd, bytes, offset), static_cast<int64_t>(count));
        if (count != 0 && model.size() < offset + count) model.resize(offset + count);
        std::copy(bytes.begin(), bytes.end(),
                  model.begin() + static_cast<ptrdiff_t>(count != 0 ? offset : 0));
      }
      if (step % 20 == 19) {
        EXPECT_TRUE(contents(path) == model) << path << " after step " << step;
      }
    }
    EXPECT_EQ(alone([&](const simt::Warp& warp) { return close(warp, fs(), fd); }), 0);
    mount_again();
    EXPECT_TRUE(contents(path) == model) << path;
    Stat got{};
    alone([&](const simt::Warp& warp) {
      Stat mine{};
      const int error = stat(warp, fs(), path, LastLink::kKeep, mine);
      if (warp.thread_rank() == 0) got = mine;
      return error;
    });
    EXPECT_EQ(got.size_bytes, model.size());
  }
}

TEST_P(WriteFilesTest, positions_and_appends) {
  const int fd = open_file("/shared", kOpenWriteOnly);
  const int appending = open_file("/shared", kOpenWriteOnly | kOpenAppend);
  const auto write_to = [&](int to, const std::string& bytes) {
    return alone(
        [&](const simt::Warp& warp) { return write(warp, fs(), to, bytes.data(), bytes.size()); });
  };
  EXPECT_EQ(write_to(fd, "one"), 3);
  EXPECT_EQ(write_to(fd, "two"), 3);
  EXPECT_EQ(write_to(appending, "three"), 5);
  EXPECT_EQ(pwrite_file(appending, "four", 0), 4) << "at the end all the same";
  EXPECT_EQ(write_to(fd, ""), 0);
  EXPECT_EQ(write_to(fd, "T"), 1);
  EXPECT_EQ(contents("/shared"), "onetwoThreefour");
  EXPECT_EQ(
      alone([&](const simt::Warp& warp) { return lseek(warp, fs(), appending, 0, kSeekCurrent); }),
      11);
}

TEST_P(WriteFilesTest, what_cannot_be_written_is_refused) {
  const int reading = open_file("/empty", kOpenReadOnly);
  EXPECT_EQ(pwrite_file(reading, "x", 0), -EBADF);
  EXPECT_EQ(alone([&](const simt::Warp& warp) { return ftruncate(warp, fs(), reading, 1); }),
            -EINVAL);
  const int writing = open_file("/empty", kOpenWriteOnly);
  char byte = 0;
  EXPECT_EQ(alone([&](const simt::Warp& warp) { return pread(warp, fs(), writing, &byte, 1, 0); }),
            -EBADF);
  EXPECT_EQ(alone([&](const simt::Warp& warp) {
              return pread_lanes(warp, fs(), ReadRequest{writing, &byte, 1, 0});
            }),
            -EBADF);
  EXPECT_EQ(pwrite_file(writing, "x", uint64_t{1} << 63), -EINVAL);
  EXPECT_EQ(pwrite_file(writing, "x", kOffsetMax - 1), -EFBIG);
  EXPECT_EQ(
      alone([&](const simt::Warp& warp) { return ftruncate(warp, fs(), writing, kOffsetMax); }),
      -EFBIG);
  EXPECT_EQ(open_file("/dir", kOpenWriteOnly), -EISDIR);
  EXPECT_EQ(alone([&](const simt::Warp& warp) { return truncate(warp, fs(), "/dir", 0); }),
            -EISDIR);
  EXPECT_EQ(alone([&](const simt::Warp& warp) { return truncate(warp, fs(), "/none", 0); }),
            -ENOENT);
  fs().credentials = who(8, 8);
  EXPECT_EQ(open_file("/empty", kOpenReadWrite), -EACCES);
  EXPECT_EQ(open_file("/empty", kOpenReadOnly | kOpenTruncate), -EACCES);
  EXPECT_GE(open_file("/shared", kOpenReadWrite), 0);
  fs().writer = nullptr;
  EXPECT_EQ(open_file("/shared", kOpenReadWrite), -EROFS);
  EXPECT_EQ(open_file("/empty", kOpenReadWrite), -EROFS) << "before what its mode says, as Linux";
  EXPECT_EQ(open_file("/shared", kOpenTruncate), -EROFS);
}

TEST_P(WriteFilesTest, opening_may_empty_a_file) {
  const int fd = open_file("/powers", kOpenWriteOnly);
  EXPECT_EQ(pwrite_file(fd, std::string(100'000, 'p'), 0), 100'000);
  const int reader = open_file("/powers", kOpenReadOnly);
  ASSERT_GE(open_file("/powers", kOpenWriteOnly | kOpenTruncate), 0);
  EXPECT_EQ(contents("/powers"), "");
  char byte = 1;
  EXPECT_EQ(alone([&](const simt::Warp& warp) { return pread(warp, fs(), reader, &byte, 1, 0); }),
            0);
}

TEST_P(WriteFilesTest, a_write_to_a_program_of_others_clears_its_set_id_bits) {
  const auto mode = [&] {
    Stat got{};
    alone([&](const simt::Warp& warp) {
      Stat mine{};
      const int error = stat(warp, fs(), "/powers", LastLink::kKeep, mine);
      if (warp.thread_rank() == 0) got = mine;
      return error;
    });
    return got.mode & format::kModePermissionMask;
  };
  EXPECT_EQ(pwrite_file(open_file("/powers", kOpenWriteOnly), "x", 0), 1);
  EXPECT_EQ(mode(), 06777u) << "user 0 may";
  fs().credentials = who(8, 8);
  EXPECT_EQ(pwrite_file(open_file("/powers", kOpenWriteOnly), "x", 0), 1);
  EXPECT_EQ(mode(), 0777u);
}

// Each record is written at once; no reader, during the writes or afterwards, finds two mixed.
TEST_P(WriteFilesTest, overlapping_writes_do_not_mix) {
  constexpr uint64_t kRecord = 3 * kBlockBytes + 500;
  constexpr uint32_t kWarps = 4;
  constexpr uint32_t kRounds = 12;
  const int fd = open_file("/shared", kOpenReadWrite);
  EXPECT_EQ(pwrite_file(fd, std::string(2 * kRecord, 'z'), 0), static_cast<int64_t>(2 * kRecord));
  std::vector<std::string> buffers(kWarps, std::string(kRecord, '\0'));
  run_crowd({kWarps, width()}, [&](const simt::Warp& warp, uint32_t index) {
    std::string& mine = buffers[index];
    for (uint32_t round = 0; round < kRounds; ++round) {
      // Two places that share no block.
      const uint64_t offset = round % 2 == 0 ? 0 : 5 * kBlockBytes;
      if (index < 2) {
        if (warp.thread_rank() == 0)
          mine.assign(kRecord, static_cast<char>('a' + round * 2 + index));
        warp.sync();
        EXPECT_EQ(pwrite(warp, fs(), fd, mine.data(), kRecord, offset), kRecord);
      } else {
        const int64_t got = pread(warp, fs(), fd, mine.data(), kRecord, offset);
        warp.sync();
        if (warp.thread_rank() == 0) {
          const auto end = mine.begin() + got;
          EXPECT_EQ(std::count(mine.begin(), end, mine[0]), got);
        }
        warp.sync();
      }
    }
  });
  mount_again();
}

// Another thread opens, changes and closes the file between the look at it and the opening.
TEST_P(WriteFilesTest, a_file_is_opened_as_it_is_then) {
  f2fs::Inode before{};
  alone([&](const simt::Warp& warp) {
    f2fs::Inode mine{};
    const int error = resolve(warp, fs(), "/shared", LastLink::kFollow, mine);
    if (warp.thread_rank() == 0) before = mine;
    return error;
  });
  const int other = open_file("/shared", kOpenWriteOnly);
  EXPECT_EQ(pwrite_file(other, std::string(5000, 'o'), 0), 5000);
  EXPECT_EQ(alone([&](const simt::Warp& warp) { return close(warp, fs(), other); }), 0);
  const auto fd = static_cast<int>(alone([&](const simt::Warp& warp) {
    return detail::open_checked(warp, fs(), before, kOpenWriteOnly | kOpenAppend);
  }));
  EXPECT_EQ(pwrite_file(fd, "end", 0), 3);
  EXPECT_EQ(contents("/shared"), std::string(5000, 'o') + "end");
}

TEST_P(WriteFilesTest, many_append_and_nothing_is_lost) {
  constexpr uint32_t kWarps = 4;
  constexpr uint32_t kRounds = 10;
  constexpr uint64_t kRecord = 700;
  const int fd = open_file("/shared", kOpenWriteOnly | kOpenAppend);
  run_crowd({kWarps, width()}, [&](const simt::Warp& warp, uint32_t index) {
    const std::string record(kRecord, static_cast<char>('a' + index));
    for (uint32_t round = 0; round < kRounds; ++round) {
      EXPECT_EQ(write(warp, fs(), fd, record.data(), kRecord), kRecord);
    }
  });
  mount_again();
  const std::string all = contents("/shared");
  ASSERT_EQ(all.size(), kWarps * kRounds * kRecord);
  for (uint32_t i = 0; i < kWarps * kRounds; ++i) {
    const std::string record = all.substr(i * kRecord, kRecord);
    EXPECT_EQ(record, std::string(kRecord, record[0]));
  }
  for (uint32_t index = 0; index < kWarps; ++index) {
    EXPECT_EQ(std::count(all.begin(), all.end(), 'a' + static_cast<char>(index)),
              static_cast<ptrdiff_t>(kRounds * kRecord));
  }
}

}  // namespace
}  // namespace gofs::vfs
