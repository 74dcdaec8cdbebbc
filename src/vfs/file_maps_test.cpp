// SPDX-License-Identifier: Apache-2.0
//
// What open files keep of where their blocks and the nodes with their addresses lie: it is right
// after all that changes them, and a file that was empty keeps it from when it is longer.
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "vfs/async.h"
#include "vfs/changes_for_test.hpp"
#include "vfs/fallocate.h"
#include "vfs/overwrite.h"
#include "vfs/write.h"

namespace gofs::vfs {
namespace {

static_assert(f2fs::dnode_number(922, 923) == 0 && f2fs::dnode_number(923, 923) == 1);
static_assert(f2fs::dnode_number(923 + 1017, 923) == 1 && f2fs::dnode_number(923 + 1018, 923) == 2);
static_assert(f2fs::first_of_dnode(0, 923) == 0 && f2fs::first_of_dnode(2, 923) == 923 + 1018);

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
  f2fs::CachedDnode dnode_of(int fd, uint64_t index) {
    return f2fs::detail::find_cached_dnode(fs().volume, inode_of(fd), index);
  }
  /// What the map says of a block; 0: nothing.
  uint32_t word_of(int fd, uint64_t index) {
    const uint32_t* const word = f2fs::detail::find_block_word(fs().volume, inode_of(fd), index);
    return word == nullptr ? 0 : *word;
  }
  bool has_map(int fd, uint64_t index) {
    return f2fs::detail::find_block_word(fs().volume, inode_of(fd), index) != nullptr;
  }
  /// The node is what the walk down to it says.
  void expect_right(int fd, uint64_t index) {
    const f2fs::CachedDnode dnode = dnode_of(fd, index);
    EXPECT_EQ(dnode.number, f2fs::dnode_number(index, inode_of(fd).slot_count));
    alone([&](const simt::Warp& warp) {
      f2fs::BlockPlace place{};
      f2fs::detail::LastNode last{};
      EXPECT_EQ(f2fs::detail::walk_nodes(warp, fs().volume, 1u, inode_of(fd), index, place, last,
                                         f2fs::detail::SupplyNothing{}),
                0);
      f2fs::NatRecord record{};
      EXPECT_EQ(f2fs::look_up_nat(warp, fs().volume, 1u, last.nid, record), 0);
      if (warp.thread_rank() == 0) {
        EXPECT_EQ(last.nid, dnode.nid) << index;
        EXPECT_EQ(record.version, dnode.version) << index;
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
    for (uint32_t i = 0; i < fs().volume.maps.unit_count / 32; ++i)
      EXPECT_EQ(fs().volume.maps.used[i], 0u);
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
  for (const uint64_t index : {0u, 1'500u, 2'999u}) EXPECT_EQ(dnode_of(fd, index).nid, 0u);
  for (const char byte : {'a', 'b'}) {
    for (const uint64_t index : {0u, 922u, 923u, 1'500u, 2'999u}) write(index, byte);
  }
  for (const uint64_t index : {0u, 922u, 923u, 1'500u, 2'999u}) expect_right(fd, index);
  // Blocks that were only met beside those are known as well.
  EXPECT_NE(word_of(fd, 1'501), 0u);
  // The second direct node and the third go; what comes in their place may be others.
  resize(fd, 1'400);
  model.resize(1'400 * kBlockBytes);
  EXPECT_NE(dnode_of(fd, 1'300).nid, 0u);
  EXPECT_EQ(dnode_of(fd, 2'000).nid, 0u);
  EXPECT_EQ(dnode_of(fd, 2'999).nid, 0u);
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
  EXPECT_FALSE(has_map(fd, 0));
  resize(fd, kBlocks);
  EXPECT_TRUE(has_map(fd, 0) && has_map(fd, kBlocks - 1));
  EXPECT_FALSE(has_map(fd, 2 * kBlocks - 1));
  write_block(fd, 3, 'x');
  EXPECT_TRUE(fs().volume.is_main_block(word_of(fd, 3)));
  expect_right(fd, 3);
  write_block(fd, 2'900, 'y');
  expect_right(fd, 2'900);
  // They stay, whatever becomes of the file.
  const f2fs::FileMaps maps = *inode_of(fd).maps;
  resize(fd, 4);
  resize(fd, 2 * kBlocks);
  for (uint32_t i = 0; maps.blocks[i] != 0; ++i) {
    EXPECT_EQ(inode_of(fd).maps->blocks[i], maps.blocks[i]) << i;
  }
  EXPECT_TRUE(has_map(fd, 2 * kBlocks - 1));
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
    ASSERT_FALSE(has_map(fds.back(), kLonger - 1));
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
  for (const int fd : fds) EXPECT_TRUE(has_map(fd, kLonger - 1));
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

TEST_P(FileMapsTest, a_file_that_grows_by_writes_is_mapped_as_it_grows) {
  const int fd = open_file("/grows", kOpenReadWrite | kOpenCreate);
  std::string model;
  const auto write = [&](uint64_t index, char byte) {
    write_block(fd, index, byte);
    if (model.size() < (index + 1) * kBlockBytes) model.resize((index + 1) * kBlockBytes);
    model.replace(index * kBlockBytes, kBlockBytes, std::string(kBlockBytes, byte));
    ASSERT_TRUE(fs().volume.is_main_block(word_of(fd, index))) << index;
  };
  // The last block of a segment of the map and the first of the next one, and far behind.
  for (const uint64_t index : {0u, 31u, 32u, 63u, 64u, 1'023u, 1'024u, 40u, 2'500u, 2'047u}) {
    write(index, static_cast<char>('a' + index % 26));
    expect_right(fd, index);
  }
  EXPECT_TRUE(contents("/grows") == model);
  // What is cut off is not there when the file grows again.
  resize(fd, 1'000);
  model.resize(1'000 * kBlockBytes);
  EXPECT_FALSE(fs().volume.is_main_block(word_of(fd, 1'024)));
  write(1'030, 'z');
  EXPECT_TRUE(contents("/grows") == model);
  EXPECT_EQ(close_file(fd), 0);
  expect_no_maps_in_use();
  mount_again();
  EXPECT_TRUE(contents("/grows") == model);
}

/// Who writes over blocks where they lie.
class GrownFileTest : public ChangesTest {
 protected:
  explicit GrownFileTest(uint64_t map_bytes = 64 * 4096)
      : ChangesTest([](image::ImageBuilder&) {}, with_maps(map_bytes)) {}
  static VolumeRigOptions with_maps(uint64_t bytes) {
    VolumeRigOptions options;
    options.filesystem.map_bytes = bytes;
    return options;
  }
  OpenInode& opened(int fd) { return fs().open_inodes[fs().descriptors[fd].open_inode]; }
  /// Whether each lane's block, from `index` on, is written over the fast path.
  bool goes_straight(int fd, uint64_t index, char byte) {
    opened(fd).inode.times_set_ns = f2fs::nanoseconds_of(time_now(fs())) + 500'000'000;
    const std::string bytes(kBlockBytes, byte);
    return alone([&](const simt::Warp& warp) {
             const uint64_t mine = index + warp.thread_rank();
             return try_to_overwrite(warp, fs(),
                                     {fd, bytes.data(), kBlockBytes, mine * kBlockBytes})
                        ? 1
                        : 0;
           }) != 0;
  }
};
GOFS_AT_BOTH_WIDTHS(GrownFileTest);

TEST_P(GrownFileTest, blocks_that_it_grew_by_are_written_over_the_straight_way) {
  const int fd = open_file("/new", kOpenReadWrite | kOpenCreate);
  std::string model(100 * kBlockBytes, 'n');
  ASSERT_EQ(pwrite_file(fd, model, 0), static_cast<int64_t>(model.size()));
  for (const uint64_t index : {0u, 30u, 62u, 96u}) {  // over ends of segments of the map
    EXPECT_TRUE(goes_straight(fd, index, 's')) << index;
    model.replace(index * kBlockBytes, width() * kBlockBytes,
                  std::string(width() * kBlockBytes, 's'));
  }
  EXPECT_FALSE(goes_straight(fd, 100, 'x')) << "behind the end";
  EXPECT_FALSE(goes_straight(fd, uint64_t{1} << 40, 'x')) << "where no map has a word";
  EXPECT_TRUE(contents("/new") == model);
  mount_again();
  EXPECT_TRUE(contents("/new") == model);
}

// The reader has no lock: all that orders its read behind the write is the address that it finds.
TEST_P(GrownFileTest, who_finds_an_address_without_a_lock_finds_the_block_written) {
  constexpr uint32_t kTurns = 4;
  constexpr uint64_t kEach = 300 * kBlockBytes;  // several operations, and no block writers
  const int fd = open_file("/new", kOpenReadWrite | kOpenCreate);
  ASSERT_EQ(pwrite_file(fd, "end", kTurns * kEach), 3);
  std::string found(kBlockBytes, '\0');
  const std::string bytes(kEach, 'w');
  testing::run_crowd({2, width()}, [&](const simt::Warp& warp, uint32_t who) {
    for (uint32_t turn = 0; turn < kTurns; ++turn) {
      const uint64_t offset = turn * kEach;
      if (who == 0) {
        EXPECT_EQ(pwrite(warp, fs(), fd, bytes.data(), kEach, offset), int64_t{kEach});
        continue;
      }
      f2fs::BlockPlace place{};
      do {
        simt::Backoff().pause();
        const uint32_t* const word =
            f2fs::detail::find_block_word(fs().volume, opened(fd).inode, offset / kBlockBytes);
        if (word != nullptr) place.block = simt::load_relaxed(*word);
      } while (!warp.all(fs().volume.is_main_block(place.block)));
      warp.sync();
      EXPECT_EQ(wait(warp, fs(), pread_async(warp, fs(), fd, found.data(), kBlockBytes, offset)),
                int64_t{kBlockBytes});
      EXPECT_EQ(found[0], 'w');
      EXPECT_EQ(found[kBlockBytes - 1], 'w');
      warp.sync();
    }
  });
}

// And all that orders a write over a block behind such a read is that none is counted.
TEST_P(GrownFileTest, who_writes_over_a_block_comes_after_who_read_it_without_a_lock) {
  const int fd = open_file("/new", kOpenReadWrite | kOpenCreate);
  ASSERT_EQ(pwrite_file(fd, std::string(width() * kBlockBytes, 'n'), 0),
            static_cast<int64_t>(width() * kBlockBytes));
  std::string found(width() * kBlockBytes, '\0');
  const std::string bytes(kBlockBytes, 'w');
  std::atomic<uint32_t> turn{0};  // relaxed: it orders nothing
  testing::run_crowd({2, width()}, [&](const simt::Warp& warp, uint32_t who) {
    for (uint32_t i = 0; i < 10; ++i) {
      while (warp.shfl(turn.load(std::memory_order_relaxed), 0) != 2 * i + who) {
        simt::Backoff().pause();
      }
      if (who == 0) {
        EXPECT_EQ(wait(warp, fs(), pread_async(warp, fs(), fd, found.data(), found.size(), 0)),
                  static_cast<int64_t>(found.size()));
      } else {
        if (warp.thread_rank() == 0) {
          simt::store_relaxed(opened(fd).inode.times_set_ns,
                              f2fs::nanoseconds_of(time_now(fs())) + 500'000'000);
        }
        warp.sync();
        EXPECT_TRUE(try_to_overwrite(
            warp, fs(), {fd, bytes.data(), kBlockBytes, warp.thread_rank() * kBlockBytes}));
      }
      warp.sync();
      if (warp.thread_rank() == 0) turn.store(2 * i + who + 1, std::memory_order_relaxed);
    }
  });
  EXPECT_EQ(found, std::string(found.size(), 'w'));
}

TEST_P(GrownFileTest, many_warps_make_it_grow_and_read_it_at_once) {
  constexpr uint32_t kWriters = 4;
  constexpr uint64_t kEach = 40;
  const int fd = open_file("/crowd", kOpenReadWrite | kOpenCreate);
  const auto byte_of = [](uint64_t index) { return static_cast<char>('a' + index * 7 % 26); };
  std::string found[2];
  testing::run_crowd({kWriters + 2, width()}, [&](const simt::Warp& warp, uint32_t who) {
    if (who < kWriters) {
      // Blocks in turns, so that all of them come to the ends of segments at the same time.
      for (uint64_t turn = 0; turn < kEach; ++turn) {
        const uint64_t index = turn * kWriters + who;
        const std::string bytes(kBlockBytes, byte_of(index));
        EXPECT_EQ(pwrite(warp, fs(), fd, bytes.data(), kBlockBytes, index * kBlockBytes),
                  int64_t{kBlockBytes});
      }
      return;
    }
    std::string& mine = found[who - kWriters];
    if (warp.thread_rank() == 0) mine.assign(kBlockBytes, '\0');
    warp.sync();
    for (uint64_t turn = 0; turn < 2 * kEach; ++turn) {
      const uint64_t index = turn * 13 % (kWriters * kEach);
      const int64_t got =
          who % 2 == 0
              ? pread(warp, fs(), fd, mine.data(), kBlockBytes, index * kBlockBytes)
              : wait(warp, fs(),
                     pread_async(warp, fs(), fd, mine.data(), kBlockBytes, index * kBlockBytes));
      EXPECT_GE(got, 0);
      // A hole, or what its writer has written.
      if (got == int64_t{kBlockBytes}) {
        EXPECT_TRUE(mine[0] == '\0' || mine[0] == byte_of(index)) << index;
        EXPECT_EQ(mine[0], mine[kBlockBytes - 1]) << index;
      }
      warp.sync();
    }
  });
  for (uint64_t index = 0; index < kWriters * kEach; ++index) {
    const uint32_t* const word =
        f2fs::detail::find_block_word(fs().volume, opened(fd).inode, index);
    ASSERT_TRUE(word != nullptr && fs().volume.is_main_block(*word)) << index;
  }
  const std::string all = contents("/crowd");
  ASSERT_EQ(all.size(), kWriters * kEach * kBlockBytes);
  for (uint64_t index = 0; index < kWriters * kEach; ++index) {
    EXPECT_EQ(all[index * kBlockBytes], byte_of(index)) << index;
  }
}

// Holes are punched beside who makes the file grow: nothing that a node said before is entered.
TEST_P(GrownFileTest, what_is_punched_beside_writers_is_a_hole_in_the_map) {
  constexpr uint64_t kHere = 200;
  const int fd = open_file("/holes", kOpenReadWrite | kOpenCreate);
  ASSERT_EQ(pwrite_file(fd, std::string(kHere * kBlockBytes, 'h'), 0),
            static_cast<int64_t>(kHere * kBlockBytes));
  std::string found[1];
  testing::run_crowd({3, width()}, [&](const simt::Warp& warp, uint32_t who) {
    std::string& mine = found[0];
    if (who == 2 && warp.thread_rank() == 0) mine.assign(kBlockBytes, '\0');
    warp.sync();
    for (uint64_t turn = 0; turn < kHere / 2; ++turn) {
      if (who == 0) {
        EXPECT_EQ(fallocate(warp, fs(), fd, kFallocatePunchHole | kFallocateKeepSize,
                            2 * turn * kBlockBytes, kBlockBytes),
                  0);
      } else if (who == 1) {
        const std::string bytes(kBlockBytes, 'w');
        EXPECT_EQ(pwrite(warp, fs(), fd, bytes.data(), kBlockBytes, (kHere + turn) * kBlockBytes),
                  int64_t{kBlockBytes});
      } else {
        EXPECT_EQ(pread(warp, fs(), fd, mine.data(), kBlockBytes, turn * 11 % kHere * kBlockBytes),
                  int64_t{kBlockBytes});
        warp.sync();
      }
    }
  });
  std::string model(kHere * kBlockBytes, 'h');
  for (uint64_t turn = 0; turn < kHere / 2; ++turn) {
    model.replace(2 * turn * kBlockBytes, kBlockBytes, std::string(kBlockBytes, '\0'));
  }
  model += std::string(kHere / 2 * kBlockBytes, 'w');
  EXPECT_TRUE(contents("/holes") == model);
  mount_again();
  EXPECT_TRUE(contents("/holes") == model);
}

/// There is room for few maps.
class FewMapsTest : public GrownFileTest {
 protected:
  FewMapsTest() : GrownFileTest(32 * 128) {}  // 32 units
  void write_around(int fd, std::string& model) {
    for (const uint64_t index : {0u, 255u, 256u, 299u}) {
      const std::string bytes(kBlockBytes, 'a');
      EXPECT_EQ(pwrite_file(fd, bytes, index * kBlockBytes), int64_t{kBlockBytes});
      model.replace(index * kBlockBytes, kBlockBytes, bytes);
    }
    EXPECT_TRUE(contents("/file") == model);
  }
};
GOFS_AT_BOTH_WIDTHS(FewMapsTest);

TEST_P(FewMapsTest, what_finds_no_room_is_done_without_until_the_file_is_open_anew) {
  int other = open_file("/other", kOpenReadWrite | kOpenCreate);
  ASSERT_EQ(pwrite_file(other, std::string(400 * kBlockBytes, 'o'), 0),
            int64_t{400} * kBlockBytes);  // segments of 1, 1, 2, 4 and 8 units
  const int small = open_file("/small", kOpenReadWrite | kOpenCreate);
  ASSERT_EQ(pwrite_file(small, std::string(kBlockBytes, 's'), 0), int64_t{kBlockBytes});
  const int fd = open_file("/file", kOpenReadWrite | kOpenCreate);
  std::string model(300 * kBlockBytes, 'f');
  ASSERT_EQ(pwrite_file(fd, model, 0), static_cast<int64_t>(model.size()));
  // 15 units are left: 1, 1, 2, 4, and not 8 for the blocks from 256 on.
  EXPECT_TRUE(f2fs::MapArena::is_home(opened(fd).maps.blocks[3]));
  EXPECT_EQ(opened(fd).maps.blocks[4], f2fs::MapArena::kNoHome);
  EXPECT_TRUE(goes_straight(fd, 255 - width(), 'f'));
  EXPECT_FALSE(goes_straight(fd, 256, 'f'));
  EXPECT_EQ(close_file(other), 0);
  write_around(fd, model);
  EXPECT_EQ(opened(fd).maps.blocks[4], f2fs::MapArena::kNoHome) << "that has been decided";
  EXPECT_EQ(close_file(fd), 0);
  other = open_file("/file", kOpenReadWrite);
  EXPECT_TRUE(f2fs::MapArena::is_home(opened(other).maps.blocks[4]));
  EXPECT_TRUE(contents("/file") == model);
}

}  // namespace
}  // namespace gofs::vfs
