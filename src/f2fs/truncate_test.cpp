// SPDX-License-Identifier: Apache-2.0
//
// Files that shrink, grow and get holes between writes, against models in memory; trees of every
// height that go in portions, with checkpoints, failures and power cuts between them. fsck.f2fs
// looks at every volume.
#include "f2fs/truncate.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <vector>

#include "f2fs/file_model_for_test.hpp"
#include "f2fs/operation_for_test.hpp"
#include "f2fs/punch_hole.h"
#include "ssd/power_cut.h"

namespace gofs::f2fs {
namespace {

using gofs::testing::printed_seed;
using gofs::testing::run_alone;
using gofs::testing::run_crowd;
using gofs::testing::TestImage;
using gofs::testing::VolumeRigOptions;

constexpr uint64_t kSlots = 923;

/// Far apart: a block under each node that an inode names, and several under the last.
const std::vector<uint64_t>& blocks_all_over() {
  static const std::vector<uint64_t> blocks = [] {
    const uint64_t indirect = kSlots + 2 * format::kDirectBlocks;
    const uint64_t doubly = indirect + 2 * format::kIndirectBlocks;
    std::vector<uint64_t> all = {0, 700, kSlots + 3, kSlots + format::kDirectBlocks + 1};
    for (uint64_t i = 0; i < 12; ++i) all.push_back(indirect + i * 2 * format::kDirectBlocks + 5);
    all.push_back(indirect + format::kIndirectBlocks + 77);
    all.push_back(doubly);
    for (uint64_t i = 1; i < 6; ++i) all.push_back(doubly + i * i * format::kIndirectBlocks + i);
    return all;
  }();
  return blocks;
}

class TruncateTest : public ::testing::TestWithParam<uint32_t> {
 protected:
  uint32_t width() const { return GetParam(); }

  /// All portions, each an operation of its own, at most `portions`. 0 or the first error; `more`:
  /// there are others.
  static int truncate(const simt::Warp& warp, WritingRig& writing, Inode& inode, uint64_t size,
                      uint32_t portions, bool& more) {
    int error = 0;
    more = true;
    for (; error == 0 && more && portions != 0; --portions) {
      OperationSlot operation;
      error = begin_operation(
          warp, {writing.volume(), writing.writer(), &writing.rig().fs().pool}, kPagesToTruncate,
          [] {
            return TimeStamp{7, 7};
          },
          operation);
      if (error < 0) return error;
      error = truncate_file(warp, *operation, testing::hold_alone(inode), size, more);
      end_operation(warp, operation);
    }
    return error;
  }
  int truncate_alone(WritingRig& writing, Inode& inode, uint64_t size, uint32_t portions = ~0u,
                     bool* left = nullptr) {
    int result = 0;
    run_alone(width(), [&](const simt::Warp& warp) {
      bool more = false;
      const int mine = truncate(warp, writing, inode, size, portions, more);
      if (warp.thread_rank() == 0) {
        result = mine;
        if (left != nullptr) *left = more;
      }
    });
    return result;
  }
  int punch_alone(WritingRig& writing, Inode& inode, uint64_t from, uint64_t to) {
    int result = 0;
    run_alone(width(), [&](const simt::Warp& warp) {
      uint64_t next = from;
      int error = 0;
      while (error == 0 && next < to) {
        OperationSlot operation;
        EXPECT_EQ(
            begin_operation(
                warp, {writing.volume(), writing.writer(), &writing.rig().fs().pool}, kPagesToPunch,
                [] {
                  return TimeStamp{8, 8};
                },
                operation),
            0);
        error = punch_hole(warp, *operation, testing::hold_alone(inode), next, to);
        end_operation(warp, operation);
      }
      if (warp.thread_rank() == 0) result = error;
    });
    return result;
  }
  /// Writes some bytes to each of blocks_all_over().
  void scatter(WritingRig& writing, OpenFileModel& file) {
    for (const uint64_t block : blocks_all_over()) {
      const std::vector<uint8_t> bytes(100, static_cast<uint8_t>(1 + block % 200));
      const uint64_t offset = block * kBlockBytes + 50;
      ASSERT_EQ(write_alone(writing, width(), file.inode, offset, bytes), 0);
      file.model.write(offset, bytes.data(), bytes.size());
    }
  }
};
GOFS_AT_BOTH_WIDTHS(TruncateTest);

TEST_P(TruncateTest, any_changes_agree_with_a_model) {
  GOFS_NEED_TOOL("fsck.f2fs");
  std::mt19937_64 random(printed_seed());
  for (const uint32_t feature :
       {uint32_t{0}, format::kFeatureExtraAttr | format::kFeatureInodeChecksum |
                         format::kFeatureFlexibleInlineXattr}) {
    TestImage image(fill_with_written, feature);
    const std::vector<uint32_t> inos = inodes_of(image);
    std::vector<OpenFileModel> files;
    for (uint32_t mounts = 0; mounts < 2; ++mounts) {
      WritingRig writing(image, width());
      ASSERT_EQ(writing.begin().error, 0);
      if (mounts == 0) {
        files = open_files(writing, inos);
      } else {
        for (size_t i = 0; i < files.size(); ++i) {
          reopen_file(writing, inos[1 + i], i == 1, files[i]);
        }
      }
      const uint32_t turns = width() == 1 ? 150 : 40;
      for (uint32_t turn = 0; turn < turns; ++turn) {
        OpenFileModel& file = files[random() % files.size()];
        const uint64_t offset = random_offset(random, file.model.size());
        switch (random() % 4) {
          case 0: {
            ASSERT_EQ(truncate_alone(writing, file.inode, offset), 0);
            file.model.resize(offset);
            break;
          }
          case 1: {
            const uint64_t to = offset + random() % (turn % 2 == 0 ? 5000 : 9'000'000);
            ASSERT_EQ(punch_alone(writing, file.inode, offset, to), 0);
            file.model.punch(offset, to);
            break;
          }
          default: {
            const std::vector<uint8_t> bytes = random_bytes(random, 1 + random() % 9000);
            ASSERT_EQ(write_alone(writing, width(), file.inode, offset, bytes), 0);
            file.model.write(offset, bytes.data(), bytes.size());
          }
        }
        ASSERT_TRUE(file_is(writing, width(), file.inode, file.model)) << turn;
        if (turn % 20 == 19) {
          ASSERT_EQ(writing.checkpoint(turn + 1 == turns), 0);
        }
      }
      ASSERT_EQ(writing.checkpoint(true), 0);
      expect_files(writing, width(), files);
      EXPECT_TRUE(fsck_likes(image));
    }
    WritingRig again(image, 1);
    for (OpenFileModel& file : files) file.inode = load_inode(again, file.inode.ino);
    expect_files(again, 1, files);
  }
}

// Whatever the height of the tree, nothing is left of an emptied file but its inode.
TEST_P(TruncateTest, an_emptied_file_gives_all_of_its_blocks_and_nodes_back) {
  GOFS_NEED_TOOL("fsck.f2fs");
  TestImage image(fill_with_written);
  const std::vector<uint32_t> inos = inodes_of(image);
  WritingRig writing(image, width());
  ASSERT_EQ(writing.begin().error, 0);
  std::vector<OpenFileModel> files = open_files(writing, inos);
  const uint32_t nodes = writing.volume().valid_node_count;
  const uint64_t blocks = writing.volume().valid_block_count;
  scatter(writing, files[0]);
  ASSERT_GT(writing.volume().valid_node_count, nodes + 25);
  ASSERT_EQ(writing.checkpoint(false), 0);
  ASSERT_EQ(truncate_alone(writing, files[0].inode, 0), 0);
  files[0].model.resize(0);
  EXPECT_EQ(writing.volume().valid_node_count, nodes);
  EXPECT_EQ(writing.volume().valid_block_count, blocks);
  EXPECT_EQ(files[0].inode.block_count, 1u);
  EXPECT_EQ(files[0].inode.modified.seconds, 7);
  expect_files(writing, width(), files);
  for (OpenFileModel& file : files) {
    ASSERT_EQ(truncate_alone(writing, file.inode, 0), 0);
    EXPECT_EQ(file.inode.block_count, 1u);
    file.model.resize(0);
  }
  expect_files(writing, width(), files);
  // There are no inodes but these and the root, whose entries are in it or in a block.
  EXPECT_EQ(writing.volume().valid_node_count, inos.size());
  EXPECT_LE(writing.volume().valid_block_count, inos.size() + 1);
  ASSERT_EQ(writing.checkpoint(true), 0);
  EXPECT_TRUE(fsck_likes(image));
}

TEST_P(TruncateTest, after_each_portion_the_volume_is_sound) {
  GOFS_NEED_TOOL("fsck.f2fs");
  TestImage image(fill_with_written);
  const std::vector<uint32_t> inos = inodes_of(image);
  WritingRig writing(image, width());
  ASSERT_EQ(writing.begin().error, 0);
  std::vector<OpenFileModel> files = open_files(writing, inos);
  scatter(writing, files[0]);
  const uint64_t size = 800 * kBlockBytes + 9;
  uint32_t portions = 0;
  uint64_t before = files[0].inode.size_bytes;
  for (bool more = true; more; ++portions) {
    ASSERT_EQ(truncate_alone(writing, files[0].inode, size, 1, &more), 0);
    EXPECT_LT(files[0].inode.size_bytes, before);
    EXPECT_GE(files[0].inode.size_bytes, size);
    before = files[0].inode.size_bytes;
    files[0].model.resize(before);
    expect_files(writing, width(), files);
    ASSERT_EQ(writing.checkpoint(false), 0);
    EXPECT_TRUE(fsck_likes(image)) << portions;
  }
  EXPECT_GT(portions, 3u);
  EXPECT_EQ(before, size);
}

TEST_P(TruncateTest, a_full_volume_has_room_again) {
  GOFS_NEED_TOOL("fsck.f2fs");
  TestImage image(fill_with_written);
  const std::vector<uint32_t> inos = inodes_of(image);
  WritingRig writing(image, width());
  ASSERT_EQ(writing.begin().error, 0);
  Volume& volume = writing.volume();
  std::vector<OpenFileModel> files = open_files(writing, inos);
  const uint64_t user_blocks = volume.user_block_count;
  if (width() > 1) volume.user_block_count = volume.valid_block_count + 300;
  const std::vector<uint8_t> much(200 * kBlockBytes, uint8_t{7});
  const auto fill = [&] {
    for (;;) {
      const int error =
          write_alone(writing, width(), files[0].inode, files[0].inode.size_bytes, much);
      if (error < 0) return error;
    }
  };
  for (uint32_t turn = 0; turn < 3; ++turn) {
    EXPECT_EQ(fill(), -ENOSPC);
    EXPECT_GT(volume.valid_block_count + 8, volume.user_block_count);
    ASSERT_EQ(writing.checkpoint(false), 0);
    ASSERT_EQ(truncate_alone(writing, files[0].inode, 5), 0);
    EXPECT_EQ(files[0].inode.block_count, 2u);
    ASSERT_EQ(writing.checkpoint(false), 0);
  }
  files[0].model.write(0, much.data(), 5);
  expect_files(writing, width(), files);
  volume.user_block_count = user_blocks;
  ASSERT_EQ(writing.checkpoint(true), 0);
  EXPECT_TRUE(fsck_likes(image));
}

// The block of the new end takes another one's place.
TEST_P(TruncateTest, without_a_block_for_its_new_end_a_file_stays_as_it_is) {
  GOFS_NEED_TOOL("fsck.f2fs");
  TestImage image(fill_with_written);
  const std::vector<uint32_t> inos = inodes_of(image);
  WritingRig writing(image, width());
  ASSERT_EQ(writing.begin().error, 0);
  std::vector<OpenFileModel> files = open_files(writing, inos);
  const std::vector<uint8_t> bytes(7 * kBlockBytes + 9, uint8_t{5});
  ASSERT_EQ(write_alone(writing, width(), files[0].inode, 0, bytes), 0);
  files[0].model.write(0, bytes.data(), bytes.size());
  scatter(writing, files[1]);
  ASSERT_EQ(writing.checkpoint(false), 0);
  std::vector<uint32_t> taken;
  run_alone(1, [&](const simt::Warp& warp) {
    uint32_t block = 0;
    while (allocate_blocks(warp, *TestOperation(warp, writing.volume(), writing.writer()), 1u,
                           format::kWarmData, {}, block) == 0) {
      taken.push_back(block);
    }
  });
  const uint64_t blocks = files[0].inode.block_count;
  const uint64_t used = writing.volume().valid_block_count;
  for (const uint64_t size : {1u, 2 * kBlockBytes + 100, 7 * kBlockBytes + 8}) {
    EXPECT_EQ(truncate_alone(writing, files[0].inode, size), -ENOSPC) << size;
    expect_files(writing, width(), files);
  }
  EXPECT_EQ(files[0].inode.block_count, blocks);
  EXPECT_EQ(writing.volume().valid_block_count, used);
  // Whole nodes have gone before.
  const uint64_t first = kBlockBytes * blocks_all_over()[2] + 60;
  EXPECT_EQ(truncate_alone(writing, files[1].inode, first), -ENOSPC);
  EXPECT_EQ(files[1].inode.size_bytes % kBlockBytes, 0u);
  EXPECT_GT(files[1].inode.size_bytes, first);
  files[1].model.resize(files[1].inode.size_bytes);
  expect_files(writing, width(), files);
  run_alone(1, [&](const simt::Warp& warp) {
    for (const uint32_t block : taken) {
      free_blocks(warp, *TestOperation(warp, writing.volume(), writing.writer()), 1u, block);
    }
  });
  ASSERT_EQ(writing.checkpoint(false), 0);
  for (const auto& [file, size] : {std::pair{0, uint64_t{2 * kBlockBytes + 100}}, {1, first}}) {
    ASSERT_EQ(truncate_alone(writing, files[file].inode, size), 0);
    files[file].model.resize(size);
  }
  expect_files(writing, width(), files);
  ASSERT_EQ(writing.checkpoint(true), 0);
  EXPECT_TRUE(fsck_likes(image));
}

// Each command fails once.
TEST_P(TruncateTest, a_command_that_fails_leaves_a_sound_file) {
  GOFS_NEED_TOOL("fsck.f2fs");
  VolumeRigOptions options;
  options.ssd.fault_capacity = 1;
  TestImage sound(fill_with_written);
  const std::vector<uint32_t> inos = inodes_of(sound);
  OpenFileModel scattered;
  {
    WritingRig writing(sound, width());
    ASSERT_EQ(writing.begin().error, 0);
    scattered.inode = load_inode(writing, inos[1]);
    scatter(writing, scattered);
    ASSERT_EQ(writing.checkpoint(true), 0);
  }
  for (const uint64_t size : {uint64_t{0}, uint64_t{700 * kBlockBytes + 60}}) {
    uint32_t failures = 0;
    // Failed commands are many; the first ones and every third.
    for (uint32_t skip = 0;; skip += skip < 8 ? 1 : 3) {
      TestImage image(sound);
      WritingRig writing(image, width(), options);
      ASSERT_EQ(writing.begin().error, 0);
      OpenFileModel file;
      file.model = scattered.model;
      reopen_file(writing, inos[1], true, file);
      ssd::FaultRule rule;
      rule.skip = skip;
      rule.count = 1;
      rule.status = format::nvme::kInternalError;
      writing.rig().add_fault(rule);
      const int error = truncate_alone(writing, file.inode, size);
      writing.rig().clear_faults();
      file.model.resize(file.inode.size_bytes);
      EXPECT_TRUE(file_is(writing, width(), file.inode, file.model)) << skip;
      ASSERT_EQ(writing.checkpoint(false), 0);
      if (skip % 5 == 0) {
        EXPECT_TRUE(fsck_likes(image)) << skip;
      }
      if (error == 0) break;
      ++failures;
      EXPECT_EQ(error, -EIO);
      ASSERT_EQ(truncate_alone(writing, file.inode, size), 0);
      file.model.resize(size);
      EXPECT_TRUE(file_is(writing, width(), file.inode, file.model)) << skip;
      ASSERT_EQ(writing.checkpoint(true), 0);
      if (skip % 5 == 1) {
        EXPECT_TRUE(fsck_likes(image)) << skip;
      }
    }
    EXPECT_GT(failures, 10u);
  }
}

// After a power cut a file has the size and the bytes of some portion's end.
TEST_P(TruncateTest, a_power_cut_leaves_a_sound_file_of_some_size) {
  GOFS_NEED_TOOL("fsck.f2fs");
  TestImage image(fill_with_written);
  const std::vector<uint32_t> inos = inodes_of(image);
  const TestImage before(image);
  VolumeRigOptions options;
  options.ssd.logged_commands = 8192;
  options.ssd.logged_bytes = 64 << 20;
  WritingRig writing(image, width(), options);
  ASSERT_EQ(writing.begin().error, 0);
  std::vector<OpenFileModel> files = open_files(writing, inos);
  scatter(writing, files[0]);
  ASSERT_EQ(writing.checkpoint(false), 0);
  const auto trace = [&] {
    return ssd::read_trace(writing.rig().arena().space(), writing.rig().controller());
  };
  const uint32_t first_event = trace().events;
  std::vector<uint64_t> sizes = {files[0].inode.size_bytes};
  for (bool more = true; more;) {
    ASSERT_EQ(truncate_alone(writing, files[0].inode, 60, 1, &more), 0);
    sizes.push_back(files[0].inode.size_bytes);
    ASSERT_EQ(writing.checkpoint(false), 0);
  }
  const ssd::WriteTrace log = trace();
  std::mt19937_64 random(5);
  TestImage left(before);
  size_t seen = 0;
  for (uint32_t event = first_event; event <= log.events;
       event += event + 5 < log.events ? 1 + static_cast<uint32_t>(random() % 5) : 1) {
    // What survives one cut survives the later ones, or the last checkpoint might come and go.
    ssd::PowerCut(log, event)
        .apply({left.data(), left.bytes()}, 512, [&](uint32_t command, uint64_t unit) {
          return std::mt19937_64(uint64_t{command} << 32 | unit)() % 2 == 0;
        });
    WritingRig reading(left, 1);
    const Inode inode = load_inode(reading, files[0].inode.ino);
    const auto size = std::find(sizes.begin(), sizes.end(), inode.size_bytes);
    ASSERT_NE(size, sizes.end()) << inode.size_bytes;
    EXPECT_GE(size - sizes.begin(), static_cast<ptrdiff_t>(seen)) << "it grew again";
    seen = static_cast<size_t>(size - sizes.begin());
    FileModel model = files[0].model;
    model.resize(inode.size_bytes);
    EXPECT_TRUE(file_is(reading, 1, inode, model)) << event;
    if (random() % 8 == 0) {
      EXPECT_TRUE(fsck_likes(left, true)) << event;
    }
    put_back(left, before, log);
  }
  EXPECT_EQ(seen + 1, sizes.size());
}

TEST_P(TruncateTest, several_warps_cut_files_of_their_own) {
  GOFS_NEED_TOOL("fsck.f2fs");
  TestImage image(fill_with_written);
  const std::vector<uint32_t> inos = inodes_of(image);
  WritingRig writing(image, width());
  ASSERT_EQ(writing.begin().error, 0);
  std::vector<OpenFileModel> files = open_files(writing, inos);
  constexpr uint32_t kWarps = 4;
  const auto change_size = [](uint32_t index, uint32_t turn) {
    return uint64_t{(index * 7 + turn * 1237) % 2400} * 3000 + turn;
  };
  constexpr uint32_t kTurns = 10;
  const std::vector<uint8_t> bytes(20'000, uint8_t{0x3d});
  run_crowd({kWarps, width()}, [&](const simt::Warp& warp, uint32_t index) {
    for (uint32_t turn = 0; turn < kTurns; ++turn) {
      const uint64_t size = change_size(index, turn);
      bool more = false;
      EXPECT_EQ(truncate(warp, writing, files[index].inode, size, ~0u, more), 0);
      EXPECT_EQ(write_range(warp, writing, files[index].inode, size / 2, bytes.size(), bytes.data(),
                            {9, turn}),
                0);
    }
  });
  for (uint32_t index = 0; index < kWarps; ++index) {
    for (uint32_t turn = 0; turn < kTurns; ++turn) {
      files[index].model.resize(change_size(index, turn));
      files[index].model.write(change_size(index, turn) / 2, bytes.data(), bytes.size());
    }
  }
  expect_files(writing, width(), files);
  ASSERT_EQ(writing.checkpoint(true), 0);
  EXPECT_TRUE(fsck_likes(image));
}

// What is no tree of addresses is not taken for one.
TEST_P(TruncateTest, special_files_and_inline_directories_have_nothing_to_free) {
  TestImage image([](image::ImageBuilder& builder) {
    TestImage::must(builder.add_special(builder.root(), "device", format::kModeBlockDevice,
                                        {259, 1048575}, {}));
    image::DirectoryOptions inlined;
    inlined.inline_dentries = true;
    image::Directory directory;
    TestImage::must(builder.add_directory(builder.root(), "inline", {}, inlined, &directory));
    TestImage::must(builder.add_symlink(builder.root(), "link", std::string(3800, 'x'), {}));
  });
  WritingRig writing(image, width());
  ASSERT_EQ(writing.begin().error, 0);
  const uint64_t blocks = writing.volume().valid_block_count;
  uint32_t links = 0;
  for (const uint32_t ino : inodes_of(image)) {
    if (ino == format::kRootIno) continue;
    Inode inode = load_inode(writing, ino);
    EXPECT_EQ(truncate_alone(writing, inode, 0), 0);
    links += inode.is_symlink() ? 1 : 0;
  }
  EXPECT_EQ(links, 1u);
  EXPECT_EQ(writing.volume().valid_block_count, blocks - 1) << "the link's block";
  EXPECT_EQ(count_findings(*writing.volume().corruptions), 0u);
}

TEST_P(TruncateTest, trees_that_cannot_be_are_refused_and_never_walked_in_circles) {
  TestImage image(fill_with_written);
  const std::vector<uint32_t> inos = inodes_of(image);
  const TestImage contents(image);
  using Damage = void (*)(format::NodeBlock& inode, uint32_t other);
  const Damage damages[] = {
      [](format::NodeBlock& inode, uint32_t) { inode.inode.i_nid[4] = uint32_t{inode.footer.nid}; },
      [](format::NodeBlock& inode, uint32_t other) { inode.inode.i_nid[0] = other; },
      [](format::NodeBlock& inode, uint32_t) { inode.inode.i_nid[1] = 0xfffffff0u; },
      [](format::NodeBlock& inode, uint32_t) { inode.inode.i_addr[3] = 17; },
      [](format::NodeBlock& inode, uint32_t) { inode.inode.i_addr[3] = 0xfffffff0u; },
      // Free, as far as the SIT knows.
      [](format::NodeBlock& inode, uint32_t) {
        inode.inode.i_addr[3] = uint32_t{inode.inode.i_addr[3]} + 12'000;
      },
  };
  for (const Damage damage : damages) {
    TestImage damaged(contents);
    damage(damaged.node(inos[5]), inos[6]);
    WritingRig writing(damaged, width());
    ASSERT_EQ(writing.begin().error, 0);
    const uint64_t blocks = writing.volume().valid_block_count;
    Inode inode = load_inode(writing, inos[5]);
    const int error = truncate_alone(writing, inode, 0);
    EXPECT_TRUE(error == -EUCLEAN) << error;
    EXPECT_EQ(writing.volume().valid_block_count, blocks);
    EXPECT_GE(count_findings(*writing.volume().corruptions), 1u);
    const int punched = punch_alone(writing, inode, 0, inode.size_bytes + 5'000'000);
    EXPECT_TRUE(punched == -EUCLEAN || punched == 0) << punched;
  }
}

TEST_P(TruncateTest, refusals_change_nothing) {
  TestImage image(fill_with_written);
  const std::vector<uint32_t> inos = inodes_of(image);
  WritingRig writing(image, width());
  ASSERT_EQ(writing.begin().error, 0);
  Inode inode = load_inode(writing, inos[5]);
  EXPECT_EQ(truncate_alone(writing, inode, kFileBytesMax + 1), -EFBIG);
  inode.flags = format::kFlagCompressed;
  EXPECT_EQ(truncate_alone(writing, inode, 0), -EOPNOTSUPP);
  inode.flags = 0;
  inode.advise = format::kAdviseEncrypted;
  EXPECT_EQ(truncate_alone(writing, inode, 5), -EOPNOTSUPP);
  EXPECT_EQ(writing.volume().cache.dirty, 0u);
  EXPECT_EQ(truncate_alone(writing, inode, 0), 0) << "to remove it, no key is needed";
  inode.advise = 0;
  EXPECT_EQ(truncate_alone(writing, inode, kFileBytesMax), 0);
  EXPECT_EQ(inode.size_bytes, kFileBytesMax);
  ASSERT_EQ(writing.checkpoint(true), 0);
  EXPECT_TRUE(fsck_likes(image));
}

}  // namespace
}  // namespace gofs::f2fs
