// SPDX-License-Identifier: Apache-2.0
//
// What open files keep of where their blocks and the nodes with their addresses lie: it is right
// after all that changes them, and a file that was empty keeps it from when it is longer.
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "vfs/async.h"
#include "vfs/changes_for_test.hpp"
#include "vfs/write.h"

namespace gofs::vfs {
namespace {

static_assert(f2fs::leaf_number(922, 923) == 0 && f2fs::leaf_number(923, 923) == 1);
static_assert(f2fs::leaf_number(923 + 1017, 923) == 1 && f2fs::leaf_number(923 + 1018, 923) == 2);
static_assert(f2fs::first_of_leaf(0, 923) == 0 && f2fs::first_of_leaf(2, 923) == 923 + 1018);
static_assert(f2fs::map_words(0, 923) == 0);
static_assert(f2fs::map_words(1, 923) == 2 + 2 && f2fs::map_words(924, 923) == 924 + 4);

constexpr uint64_t kBlocks = 3'000;  // the inode's, two direct nodes' and some of a third

class FileMapsTest : public ChangesTest {
 protected:
  FileMapsTest()
      : ChangesTest(
            [](image::ImageBuilder& builder) {
              image::FileSpec spec;
              spec.name = "long";
              spec.size_bytes = kBlocks * kBlockBytes;
              spec.content = image::pattern_content(5);
              TestImage::must(builder.add_file(builder.root(), spec));
            },
            that_takes_new_blocks()) {}
  /// Who writes over blocks where they lie does not look for nodes.
  static VolumeRigOptions that_takes_new_blocks() {
    VolumeRigOptions options;
    options.ssd.atomic_bytes = 512;
    return options;
  }

  f2fs::Inode& inode_of(int fd) { return fs().open_inodes[fs().descriptors[fd].open_inode].inode; }
  f2fs::Leaf leaf_of(int fd, uint64_t index) {
    return f2fs::detail::find_leaf(inode_of(fd), index);
  }
  /// The node is what the walk down to it says.
  void expect_right(int fd, uint64_t index) {
    const f2fs::Leaf leaf = leaf_of(fd, index);
    EXPECT_EQ(leaf.number, f2fs::leaf_number(index, inode_of(fd).slot_count));
    alone([&](const simt::Warp& warp) {
      f2fs::BlockPlace place{};
      f2fs::detail::LastNode last{};
      EXPECT_EQ(f2fs::detail::walk_nodes(warp, fs().volume, 1u, inode_of(fd), index, place, last,
                                         f2fs::detail::SupplyNothing{}),
                0);
      f2fs::NatRecord record{};
      EXPECT_EQ(f2fs::look_up_nat(warp, fs().volume, 1u, last.nid, record), 0);
      if (warp.thread_rank() == 0) {
        EXPECT_EQ(last.nid, leaf.nid) << index;
        EXPECT_EQ(record.version, leaf.version) << index;
      }
      return 0;
    });
  }
  void write_block(int fd, uint64_t index, char byte) {
    ASSERT_EQ(pwrite_file(fd, std::string(kBlockBytes, byte), index * kBlockBytes),
              int64_t{kBlockBytes});
  }
  void resize(int fd, uint64_t blocks) {
    ASSERT_EQ(alone([&](const simt::Warp& warp) {
                return ftruncate(warp, fs(), fd, blocks * kBlockBytes);
              }),
              0);
  }
  std::string buffers_[2];  // of warps

  void expect_no_maps_in_use() {
    for (uint32_t i = 0; i < fs().maps.unit_count / 32; ++i) EXPECT_EQ(fs().maps.used[i], 0u);
  }
};
GOFS_AT_BOTH_WIDTHS(FileMapsTest);

TEST_P(FileMapsTest, nodes_are_known_from_the_first_write_until_they_go) {
  std::string model = contents("/long");
  const int fd = open_file("/long", kOpenReadWrite);
  const auto write = [&](uint64_t index, char byte) {
    write_block(fd, index, byte);
    model.replace(index * kBlockBytes, kBlockBytes, std::string(kBlockBytes, byte));
  };
  for (const uint64_t index : {0u, 1'500u, 2'999u}) EXPECT_EQ(leaf_of(fd, index).nid, 0u);
  for (const char byte : {'a', 'b'}) {
    for (const uint64_t index : {0u, 922u, 923u, 1'500u, 2'999u}) write(index, byte);
  }
  for (const uint64_t index : {0u, 922u, 923u, 1'500u, 2'999u}) expect_right(fd, index);
  // Blocks that were only met beside those are known as well.
  EXPECT_NE(inode_of(fd).block_map[1'501], 0u);
  // The second direct node and the third go; what comes in their place may be others.
  resize(fd, 1'400);
  model.resize(1'400 * kBlockBytes);
  EXPECT_NE(leaf_of(fd, 1'300).nid, 0u);
  EXPECT_EQ(leaf_of(fd, 2'000).nid, 0u);
  EXPECT_EQ(leaf_of(fd, 2'999).nid, 0u);
  write_block(open_file("/other", kOpenReadWrite | kOpenCreate), 0, 'o');  // takes a nid
  resize(fd, kBlocks);
  model.resize(kBlocks * kBlockBytes);
  for (const uint64_t index : {2'999u, 2'000u, 1'399u, 1'400u}) write(index, 'c');
  for (const uint64_t index : {2'999u, 2'000u, 1'399u, 1'400u}) expect_right(fd, index);
  EXPECT_TRUE(contents("/long") == model);
  EXPECT_EQ(close_file(fd), 0);
  mount_again();
  EXPECT_TRUE(contents("/long") == model);
}

TEST_P(FileMapsTest, a_file_that_becomes_longer_keeps_maps_from_then_on) {
  const int fd = open_file("/new", kOpenReadWrite | kOpenCreate);
  EXPECT_EQ(inode_of(fd).block_map, nullptr);
  resize(fd, kBlocks);
  EXPECT_EQ(inode_of(fd).block_map_blocks, kBlocks);
  write_block(fd, 3, 'x');
  EXPECT_TRUE(fs().volume.is_main_block(inode_of(fd).block_map[3]));
  expect_right(fd, 3);
  write_block(fd, 2'900, 'y');
  expect_right(fd, 2'900);
  // They stay, whatever becomes of the file.
  const uint32_t* const map = inode_of(fd).block_map;
  resize(fd, 4);
  resize(fd, 2 * kBlocks);
  EXPECT_EQ(inode_of(fd).block_map, map);
  EXPECT_EQ(inode_of(fd).block_map_blocks, kBlocks);
  write_block(fd, 2 * kBlocks - 1, 'z');
  expect_right(fd, 2 * kBlocks - 1);
  std::string model(2 * kBlocks * kBlockBytes, '\0');
  model.replace(3 * kBlockBytes, kBlockBytes, std::string(kBlockBytes, 'x'));
  model.replace((2 * kBlocks - 1) * kBlockBytes, kBlockBytes, std::string(kBlockBytes, 'z'));
  EXPECT_TRUE(contents("/new") == model);
  EXPECT_EQ(close_file(fd), 0);
  expect_no_maps_in_use();
}

// Who reads without a lock meets maps that are made meanwhile.
TEST_P(FileMapsTest, asynchronous_reads_go_on_while_a_file_gets_maps) {
  constexpr uint64_t kRounds = 20;
  constexpr uint64_t kLonger = 1'000;
  std::vector<int> fds;
  for (uint64_t i = 0; i < kRounds; ++i) {
    fds.push_back(open_file("/async" + std::to_string(i), kOpenReadWrite | kOpenCreate));
    for (uint64_t block = 0; block < 4; ++block) {
      const std::string bytes(kBlockBytes, static_cast<char>('a' + block));
      ASSERT_EQ(pwrite_file(fds.back(), bytes, block * kBlockBytes), int64_t{kBlockBytes});
    }
    ASSERT_EQ(inode_of(fds.back()).block_map, nullptr);
  }
  testing::run_crowd({2, width()}, [&](const simt::Warp& warp, uint32_t index) {
    std::string& found = buffers_[index];
    if (warp.thread_rank() == 0) found.assign(4 * kBlockBytes, '\0');
    warp.sync();
    for (const int fd : fds) {
      if (index == 0) {
        EXPECT_EQ(ftruncate(warp, fs(), fd, kLonger * kBlockBytes), 0);
        continue;
      }
      for (uint32_t turn = 0; turn < 10; ++turn) {
        const Ticket ticket = pread_async(warp, fs(), fd, found.data(), 4 * kBlockBytes, 0);
        EXPECT_EQ(wait(warp, fs(), ticket), int64_t{4 * kBlockBytes});
        for (uint64_t block = 0; block < 4; ++block) {
          EXPECT_EQ(found[block * kBlockBytes], static_cast<char>('a' + block));
        }
        warp.sync();
      }
    }
  });
  for (const int fd : fds) EXPECT_EQ(inode_of(fd).block_map_blocks, kLonger);
}

TEST_P(FileMapsTest, who_appends_knows_the_last_node) {
  const int fd = open_file("/log", kOpenReadWrite | kOpenCreate | kOpenAppend);
  std::string model;
  for (uint64_t index = 0; index < 1'000; ++index) {
    const std::string bytes(kBlockBytes, static_cast<char>('a' + index % 26));
    ASSERT_EQ(pwrite_file(fd, bytes, 0), int64_t{kBlockBytes});
    model += bytes;
    if (index == 900 || index == 950) expect_right(fd, index);
  }
  resize(fd, 500);
  model.resize(500 * kBlockBytes);
  ASSERT_EQ(pwrite_file(fd, "end", 0), 3);
  model += "end";
  EXPECT_TRUE(contents("/log") == model);
  EXPECT_EQ(close_file(fd), 0);
  mount_again();
  EXPECT_TRUE(contents("/log") == model);
}

}  // namespace
}  // namespace gofs::vfs
