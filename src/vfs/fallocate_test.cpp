// SPDX-License-Identifier: Apache-2.0
//
// Reserving, zeroing and making holes: against a model in memory of what the file holds and of
// which blocks it has, on a full volume, beside writers, and what is refused.
#include "vfs/fallocate.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cerrno>
#include <random>
#include <string>
#include <vector>

#include "vfs/changes_for_test.hpp"

namespace gofs::vfs {
namespace {

constexpr uint32_t kPunch = kFallocatePunchHole | kFallocateKeepSize;

class FallocateTest : public ChangesTest {
 protected:
  FallocateTest()
      : ChangesTest([](image::ImageBuilder& builder) {
          const auto add = [&](const char* name, bool inlined, uint64_t bytes) {
            image::FileSpec spec;
            spec.name = name;
            spec.attributes = {.mode = 06777, .uid = 7, .gid = 70};
            spec.inline_data = inlined;
            spec.size_bytes = bytes;
            TestImage::must(builder.add_file(builder.root(), spec));
          };
          add("empty", true, 0);
          add("inline", true, 1000);
          add("blocks", false, 0);
          TestImage::must(builder.add_directory(builder.root(), "dir", {}, {}, nullptr));
        }) {}
  int allocate(int fd, uint32_t mode, uint64_t offset, uint64_t bytes) {
    return static_cast<int>(alone(
        [&](const simt::Warp& warp) { return fallocate(warp, fs(), fd, mode, offset, bytes); }));
  }
  /// With the inode's own, of a file whose data is not in it.
  uint64_t blocks_of(const std::string& path) { return 1 + stat_of_path(path).blocks_512 / 8; }
};
GOFS_AT_BOTH_WIDTHS(FallocateTest);

/// A file as fallocate() sees it.
class AllocationModel {
 public:
  void write(uint64_t offset, const std::string& bytes) {
    grow(offset + bytes.size());
    std::copy(bytes.begin(), bytes.end(), contents.begin() + static_cast<ptrdiff_t>(offset));
    has(offset, offset + bytes.size(), true);
  }
  void allocate(uint32_t mode, uint64_t offset, uint64_t bytes) {
    const uint64_t end = offset + bytes;
    if ((mode & kFallocateKeepSize) == 0) grow(end);
    if ((mode & (kFallocatePunchHole | kFallocateZeroRange)) != 0) {
      const uint64_t to = std::min<uint64_t>(end, contents.size());
      if (offset < to)
        std::fill_n(contents.begin() + static_cast<ptrdiff_t>(offset), to - offset, '\0');
    }
    if ((mode & kFallocatePunchHole) == 0) return has(offset, end, true);
    const uint64_t first = (offset + kBlockBytes - 1) / kBlockBytes;
    const uint64_t last = end / kBlockBytes;
    if (first < last) has(first * kBlockBytes, last * kBlockBytes, false);
  }
  void resize(uint64_t size) {
    const uint64_t after = (size + kBlockBytes - 1) / kBlockBytes * kBlockBytes;
    // As Linux: one that grows keeps what is reserved behind its end.
    if (size <= contents.size()) has(after, blocks.size() * kBlockBytes, false);
    contents.resize(size);
  }
  uint64_t count() const {
    return static_cast<uint64_t>(std::count(blocks.begin(), blocks.end(), true));
  }

  std::string contents;

 private:
  void grow(uint64_t size) {
    if (contents.size() < size) contents.resize(size);
  }
  void has(uint64_t from, uint64_t to, bool value) {
    const uint64_t end = (to + kBlockBytes - 1) / kBlockBytes;
    if (value && blocks.size() < end) blocks.resize(end);
    for (uint64_t i = from / kBlockBytes; i < std::min<uint64_t>(end, blocks.size()); ++i) {
      blocks[i] = value;
    }
  }

  std::vector<bool> blocks;
};

TEST_P(FallocateTest, any_changes_agree_with_a_model) {
  constexpr uint64_t kModelBlocks = 1200;  // past those of the inode
  std::mt19937 random(static_cast<uint32_t>(printed_seed()));
  const uint32_t modes[] = {0, kFallocateKeepSize, kFallocateZeroRange,
                            kFallocateZeroRange | kFallocateKeepSize, kPunch};
  for (const char* path : {"/blocks", "/empty"}) {
    AllocationModel model;
    int fd = open_file(path, kOpenReadWrite);
    // Its data is out of the inode from here on, so that all blocks count.
    ASSERT_EQ(allocate(fd, 0, 0, 1), 0);
    model.allocate(0, 0, 1);
    for (uint32_t step = 0; step < 80; ++step) {
      const uint64_t near = random() % 3 == 0 ? 850 * kBlockBytes : 0;
      const uint64_t offset = near + random() % (kModelBlocks * kBlockBytes / 4);
      const uint64_t count = 1 + random() % (random() % 3 == 0 ? 5000 : 100 * kBlockBytes);
      switch (random() % 4) {
        case 0: {
          const std::string bytes(count, static_cast<char>('A' + step % 50));
          ASSERT_EQ(pwrite_file(fd, bytes, offset), static_cast<int64_t>(count));
          model.write(offset, bytes);
          break;
        }
        case 1:
          if (random() % 4 == 0) {
            ASSERT_EQ(
                alone([&](const simt::Warp& warp) { return ftruncate(warp, fs(), fd, offset); }),
                0);
            model.resize(offset);
          }
          break;
        default: {
          const uint32_t mode = modes[random() % 5];
          ASSERT_EQ(allocate(fd, mode, offset, count), 0);
          model.allocate(mode, offset, count);
        }
      }
      if (step % 20 == 19) {
        ASSERT_TRUE(contents(path) == model.contents) << path << " after step " << step;
        // The inode, and up to one node of addresses.
        const uint64_t nodes = blocks_of(path) - model.count();
        ASSERT_TRUE(nodes == 1 || nodes == 2) << nodes << " after step " << step;
      }
    }
    mount_again();
    EXPECT_TRUE(contents(path) == model.contents) << path;
    const uint64_t nodes = blocks_of(path) - model.count();
    EXPECT_TRUE(nodes == 1 || nodes == 2) << nodes;
  }
}

TEST_P(FallocateTest, what_lies_behind_the_end_stays_there_until_it_is_wanted) {
  int fd = open_file("/inline", kOpenReadWrite);
  const std::string before = contents("/inline");
  ASSERT_EQ(before.size(), 1000u);
  EXPECT_EQ(allocate(fd, kFallocateKeepSize, 0, 10 * kBlockBytes), 0);
  EXPECT_EQ(contents("/inline"), before);
  EXPECT_EQ(blocks_of("/inline"), 1u + 10);
  mount_again();
  fd = open_file("/inline", kOpenReadWrite);
  EXPECT_EQ(blocks_of("/inline"), 1u + 10);
  const uint64_t used = fs().volume.valid_block_count;
  EXPECT_EQ(pwrite_file(fd, "x", 9 * kBlockBytes + 5), 1);
  EXPECT_EQ(fs().volume.valid_block_count, used) << "it had room";
  std::string all = before;
  all.resize(9 * kBlockBytes + 5);
  all += 'x';
  EXPECT_TRUE(contents("/inline") == all);
  EXPECT_EQ(allocate(fd, kFallocateKeepSize, 0, 20 * kBlockBytes), 0);
  EXPECT_EQ(alone([&](const simt::Warp& warp) { return ftruncate(warp, fs(), fd, 5000); }), 0);
  EXPECT_EQ(blocks_of("/inline"), 1u + 2);
  mount_again();
  EXPECT_TRUE(contents("/inline") == all.substr(0, 5000));
}

TEST_P(FallocateTest, a_file_of_many_nodes) {
  const int fd = open_file("/empty", kOpenReadWrite);
  // Into the first indirect node and beyond: 1 + 2 + 1 + 2 nodes.
  constexpr uint64_t kBlocks = 923 + 3 * 1018 + 10;
  EXPECT_EQ(allocate(fd, 0, 0, kBlocks * kBlockBytes), 0);
  EXPECT_EQ(stat_of_path("/empty").size_bytes, kBlocks * kBlockBytes);
  EXPECT_EQ(blocks_of("/empty"), kBlocks + 1 + 2 + 1 + 2);
  uint64_t missing = 0;
  OpenInode& open = fs().open_inodes[fs().descriptors[fd].open_inode];
  const auto count = [&](uint64_t first, uint64_t end) {
    EXPECT_EQ(alone([&](const simt::Warp& warp) {
                uint64_t mine = 0;
                const int error =
                    f2fs::count_to_reserve(warp, fs().volume, open.inode, first, end, mine);
                if (warp.thread_rank() == 0) missing = mine;
                return error;
              }),
              0);
    return missing;
  };
  EXPECT_EQ(count(0, kBlocks), 0u);
  EXPECT_EQ(count(kBlocks - 1, kBlocks + 100), 100u);
  EXPECT_EQ(count(kBlocks, 923 + 5 * 1018), 5 * 1018 - 3 * 1018 - 10 + 1);
  const uint64_t second = 923 + 2 * 1018 + 1018 * 1018;  // begins with two nodes of its own
  EXPECT_EQ(count(second + 5, second + 1018 + 1), 1018u - 5 + 1 + 3);
  EXPECT_EQ(allocate(fd, kPunch, 0, kBlocks * kBlockBytes), 0);
  EXPECT_EQ(blocks_of("/empty"), 1u + 2 + 1 + 2);
  mount_again();
}

TEST_P(FallocateTest, a_full_volume_refuses_before_anything_is_changed) {
  const int fd = open_file("/blocks", kOpenReadWrite);
  EXPECT_EQ(pwrite_file(fd, std::string(5000, 'b'), 0), 5000);
  const uint64_t used = fs().volume.valid_block_count;
  const uint64_t before = fs().volume.user_block_count;
  fs().volume.user_block_count = used + 10;
  for (const uint32_t mode : {uint32_t{0}, kFallocateKeepSize, kFallocateZeroRange}) {
    EXPECT_EQ(allocate(fd, mode, 100, 13 * kBlockBytes), -ENOSPC);
    EXPECT_EQ(allocate(fd, mode, uint64_t{923} * kBlockBytes, 10 * kBlockBytes), -ENOSPC)
        << "with the node it is one too many";
    EXPECT_EQ(allocate(fd, mode, 0, uint64_t{1} << 40), -ENOSPC);
  }
  EXPECT_EQ(fs().volume.valid_block_count, used);
  EXPECT_EQ(contents("/blocks"), std::string(5000, 'b'));
  EXPECT_EQ(allocate(fd, 0, 0, 12 * kBlockBytes), 0) << "exactly what there is";
  EXPECT_EQ(fs().volume.valid_block_count, used + 10);
  EXPECT_EQ(pwrite_file(fd, std::string(12 * kBlockBytes, 'c'), 0), 12 * kBlockBytes);
  EXPECT_EQ(pwrite_file(fd, "d", 12 * kBlockBytes), -ENOSPC);
  EXPECT_EQ(allocate(fd, kFallocateZeroRange, 1, 12 * kBlockBytes - 1), 0);
  EXPECT_EQ(contents("/blocks"), "c" + std::string(12 * kBlockBytes - 1, '\0'));
  fs().volume.user_block_count = before;
  mount_again();
}

TEST_P(FallocateTest, what_cannot_be_is_refused) {
  const int fd = open_file("/blocks", kOpenReadWrite);
  const int reading = open_file("/blocks", kOpenReadOnly);
  EXPECT_EQ(allocate(fd, 0, 0, 0), -EINVAL);
  EXPECT_EQ(allocate(fd, 0, uint64_t{1} << 63, 1), -EINVAL);
  EXPECT_EQ(allocate(fd, 0, kOffsetMax, kOffsetMax), -EFBIG);
  EXPECT_EQ(allocate(fd, 0, uint64_t{1} << 42, 1), -EFBIG);
  for (const uint32_t mode :
       {kFallocatePunchHole, 4u, 8u, 0x20u, 0x40u, 0x80000000u, kPunch | kFallocateZeroRange}) {
    EXPECT_EQ(allocate(fd, mode, 0, 4096), -EOPNOTSUPP) << mode;
  }
  EXPECT_EQ(allocate(reading, 0, 0, 4096), -EBADF);
  EXPECT_EQ(allocate(999, 0, 0, 4096), -EBADF);
  EXPECT_EQ(allocate(open_file("/dir", kOpenReadOnly), 0, 0, 1), -EBADF);
  EXPECT_EQ(blocks_of("/blocks"), 1u);
}

TEST_P(FallocateTest, an_allocation_in_a_program_of_others_clears_its_set_id_bits) {
  fs().credentials = who(8, 8);
  EXPECT_EQ(allocate(open_file("/blocks", kOpenWriteOnly), kFallocateKeepSize, 0, 1), 0);
  EXPECT_EQ(stat_of_path("/blocks").mode & format::kModePermissionMask, 0777u);
  EXPECT_EQ(allocate(open_file("/inline", kOpenWriteOnly), kPunch, 0, 1), 0);
  EXPECT_EQ(stat_of_path("/inline").mode & format::kModePermissionMask, 0777u);
}

// Some reserve, zero and punch where others write: a record is whole, or zeros from somewhere on.
TEST_P(FallocateTest, beside_writers) {
  constexpr uint32_t kWarps = 4;
  constexpr uint64_t kRecord = 5 * kBlockBytes;
  const int fd = open_file("/blocks", kOpenReadWrite);
  std::vector<std::string> buffers(kWarps, std::string(kRecord, '\0'));
  run_crowd({kWarps, width()}, [&](const simt::Warp& warp, uint32_t index) {
    for (uint32_t round = 0; round < 15; ++round) {
      const uint64_t offset = (round + index) % kWarps * kRecord;
      if (index % 2 == 0) {
        if (warp.thread_rank() == 0) buffers[index].assign(kRecord, static_cast<char>('a' + round));
        warp.sync();
        EXPECT_EQ(pwrite(warp, fs(), fd, buffers[index].data(), kRecord, offset), kRecord);
      } else {
        const uint32_t mode = round % 3 == 0 ? kPunch : round % 3 == 1 ? kFallocateZeroRange : 0;
        EXPECT_EQ(fallocate(warp, fs(), fd, mode, offset, kRecord), 0);
      }
    }
  });
  mount_again();
  const std::string all = contents("/blocks");
  for (uint64_t at = 0; at < all.size(); at += kRecord) {
    const std::string record = all.substr(at, kRecord);
    EXPECT_EQ(record, std::string(record.size(), record[0])) << at;
  }
}

}  // namespace
}  // namespace gofs::vfs
