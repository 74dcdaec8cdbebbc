// SPDX-License-Identifier: Apache-2.0
//
// Writing file data, against models in memory: any place and length, from every alignment, over
// data, holes, reserved blocks and inline data, on every level of the node tree; by one warp and by
// several; on full disks, failing disks, and up to a power cut. fsck.f2fs looks at every volume.
#include "f2fs/write.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <map>
#include <random>
#include <string>
#include <vector>

#include "f2fs/file_model_for_test.hpp"
#include "f2fs/operation_for_test.hpp"
#include "ssd/power_cut.h"

namespace gofs::f2fs {
namespace {

using gofs::testing::printed_seed;
using gofs::testing::run_alone;
using gofs::testing::run_crowd;
using gofs::testing::TestImage;
using gofs::testing::VolumeRigOptions;

constexpr uint32_t kFeaturesKeptUp =
    format::kFeatureExtraAttr | format::kFeatureInodeChecksum | format::kFeatureFlexibleInlineXattr;

class WriteTest : public ::testing::TestWithParam<uint32_t> {
 protected:
  uint32_t width() const { return GetParam(); }

  void expect_all(WritingRig& writing, const std::vector<OpenFileModel>& files) {
    expect_files(writing, width(), files);
  }
};
GOFS_AT_BOTH_WIDTHS(WriteTest);

TEST_P(WriteTest, any_writes_agree_with_a_model) {
  GOFS_NEED_TOOL("fsck.f2fs");
  std::mt19937_64 random(printed_seed());
  for (const uint32_t feature : {uint32_t{0}, kFeaturesKeptUp}) {
    TestImage image(fill_with_written, feature);
    const std::vector<uint32_t> inos = inodes_of(image);
    std::vector<OpenFileModel> files;
    for (uint32_t mounts = 0; mounts < 2; ++mounts) {
      WritingRig writing(image, width());
      ASSERT_EQ(writing.begin().error, 0);
      if (mounts == 0) {
        files = open_files(writing, inos);
      } else {
        for (size_t i = 0; i < files.size(); ++i)
          reopen_file(writing, inos[1 + i], i == 1, files[i]);
      }
      const uint32_t turns = width() == 1 ? 120 : 40;
      for (uint32_t turn = 0; turn < turns; ++turn) {
        OpenFileModel& file = files[random() % files.size()];
        const uint64_t offset = random_offset(random, file.model.size());
        const std::vector<uint8_t> bytes =
            random_bytes(random, 1 + random() % (turn % 3 == 0 ? 30'000 : 600));
        const uint64_t seconds = 2'000'000'000 + 1'000 * mounts + turn;
        ASSERT_EQ(write_alone(writing, width(), file.inode, offset, bytes,
                              {static_cast<int64_t>(seconds), turn}),
                  0);
        file.model.write(offset, bytes.data(), bytes.size());
        ASSERT_TRUE(file_is(writing, width(), file.inode, file.model)) << turn;
        EXPECT_EQ(file.inode.modified.seconds, static_cast<int64_t>(seconds));
        if (turn % 20 == 19) {
          ASSERT_EQ(writing.checkpoint(turn + 1 == turns), 0);
        }
      }
      expect_all(writing, files);
      EXPECT_TRUE(fsck_likes(image));
    }
    WritingRig again(image, 1);
    for (OpenFileModel& file : files) file.inode = load_inode(again, file.inode.ino);
    expect_all(again, files);
  }
}

// Whole blocks from aligned memory go as large commands, contiguous.
TEST_P(WriteTest, whole_blocks_are_written_from_where_they_are_and_lie_in_a_row) {
  TestImage image(fill_with_written);
  const std::vector<uint32_t> inos = inodes_of(image);
  WritingRig writing(image, width());
  ASSERT_EQ(writing.begin().error, 0);
  Inode inode = load_inode(writing, inos[1]);
  std::vector<uint8_t> bytes(64 * kBlockBytes);
  image::fill_pattern(77, 0, bytes.data(), bytes.size());
  const uint64_t writes_before = writing.rig().counters().write_commands;
  ASSERT_EQ(write_alone(writing, width(), inode, 0, bytes), 0);
  const uint64_t writes = writing.rig().counters().write_commands - writes_before;
  EXPECT_GE(writes, 64 / width());
  EXPECT_LE(writes, 64 / width() + 1) << "a log may leave its segment";
  run_alone(1, [&](const simt::Warp& warp) {
    uint32_t before = 0;
    for (uint64_t i = 0; i < 64; ++i) {
      BlockPlace place{};
      EXPECT_EQ(map_blocks(warp, writing.volume(), 1u, inode, i, place), 0);
      if (i != 0) {
        EXPECT_EQ(place.block, before + 1);
      }
      before = place.block;
      const uint32_t segno = writing.volume().geometry.segno_of(place.block);
      EXPECT_EQ(writing.writer().segments.segments[segno].type, uint32_t{format::kWarmData});
    }
  });
}

// Of many warps that write to one file, one always looks at its inode: times that stay within their
// second do not wait until none does.
TEST_P(WriteTest, nanoseconds_are_set_beside_those_who_look_at_the_inode) {
  GOFS_NEED_TOOL("fsck.f2fs");
  TestImage image(fill_with_written);
  const std::vector<uint32_t> inos = inodes_of(image);
  {
    WritingRig writing(image, width());
    ASSERT_EQ(writing.begin().error, 0);
    Inode inode = load_inode(writing, inos[1]);
    const std::vector<uint8_t> bytes(kBlockBytes, 0x5a);
    ASSERT_EQ(write_alone(writing, width(), inode, 0, bytes, {2'000'000'000, 5}), 0);
    ASSERT_EQ(writing.checkpoint(false), 0);
    PageCache& cache = writing.volume().cache;
    const uint64_t key = page_key(PageKind::kNode, inode.ino);
    const uint32_t frame = find_frame(cache, key);
    ASSERT_TRUE(frame != kNoFrame && pin_frame(cache, frame, key));
    ASSERT_EQ(write_alone(writing, width(), inode, 0, bytes, {2'000'000'000, 4'000'000}), 0);
    EXPECT_EQ(inode.modified.nanoseconds, 4'000'000u);
    // A thread that is late with what it took for now.
    ASSERT_EQ(write_alone(writing, width(), inode, 0, bytes, {2'000'000'000, 3'000'000}), 0);
    EXPECT_EQ(inode.changed.nanoseconds, 4'000'000u);
    unpin(cache, frame);
    ASSERT_EQ(writing.checkpoint(true), 0);
  }
  EXPECT_TRUE(fsck_likes(image));
  WritingRig again(image, 1);
  const Inode inode = load_inode(again, inos[1]);
  for (const TimeStamp& time : {inode.modified, inode.changed}) {
    EXPECT_EQ(time.seconds, 2'000'000'000);
    EXPECT_EQ(time.nanoseconds, 4'000'000u);
  }
}

TEST_P(WriteTest, what_lies_behind_the_end_of_a_file_does_not_come_back) {
  GOFS_NEED_TOOL("fsck.f2fs");
  const uint64_t sizes[] = {700, 3000, 40 * 4096 + 123};
  // Right behind the end, in the same block, in the next one, far away, up to the block's end.
  for (const uint64_t distance : {0, 5, 500, 4096, 100'000, 3973}) {
    TestImage image(fill_with_written);
    const std::vector<uint32_t> inos = inodes_of(image);
    const uint32_t owners[] = {inos[2], inos[3], inos[5]};
    for (uint32_t i = 0; i < 3; ++i) {
      format::NodeBlock& node = image.node(owners[i]);
      const uint32_t end = static_cast<uint32_t>(sizes[i] % kBlockBytes);
      uint8_t* block = reinterpret_cast<uint8_t*>(&node) + format::kInodeAddrOffset + 4;
      uint32_t room = i == 0 ? 3488 : 3688;
      if (i == 2) {
        block = image.block(node.inode.i_addr[sizes[i] / kBlockBytes]);
        room = kBlockBytes;
      }
      std::fill(block + end, block + room, uint8_t{0xEE});
    }
    WritingRig writing(image, width());
    ASSERT_EQ(writing.begin().error, 0);
    for (uint32_t i = 0; i < 3; ++i) {
      const size_t number = i == 2 ? 4 : i + 1;
      FileModel model = model_of_written(number);
      ASSERT_EQ(model.size(), sizes[i]);
      Inode inode = load_inode(writing, owners[i]);
      for (const uint32_t count : {3u, 9000u}) {
        const std::vector<uint8_t> bytes(count, uint8_t{0x11});
        const uint64_t offset = model.size() + distance;
        ASSERT_EQ(write_alone(writing, width(), inode, offset, bytes), 0);
        model.write(offset, bytes.data(), bytes.size());
        EXPECT_TRUE(file_is(writing, width(), inode, model)) << distance;
      }
    }
    ASSERT_EQ(writing.checkpoint(true), 0);
    EXPECT_TRUE(fsck_likes(image));
  }
}

TEST_P(WriteTest, what_cannot_be_written_is_refused_and_nothing_happens) {
  TestImage image(fill_with_written);
  const std::vector<uint32_t> inos = inodes_of(image);
  WritingRig writing(image, width());
  ASSERT_EQ(writing.begin().error, 0);
  const uint64_t blocks = writing.volume().valid_block_count;
  const std::vector<uint8_t> bytes(5000, uint8_t{1});
  Inode inode = load_inode(writing, inos[5]);
  EXPECT_EQ(write_alone(writing, width(), inode, kFileBytesMax - 4999, bytes), -EFBIG);
  inode.advise = format::kAdviseEncrypted;
  EXPECT_EQ(write_alone(writing, width(), inode, 0, bytes), -EOPNOTSUPP);
  inode.advise = 0;
  inode.flags = format::kFlagCompressed;
  EXPECT_EQ(write_alone(writing, width(), inode, 0, bytes), -EOPNOTSUPP);
  inode.flags = 0;
  writing.writer().failed = -EIO;
  EXPECT_EQ(write_alone(writing, width(), inode, 0, bytes), -EROFS);
  writing.writer().failed = 0;
  EXPECT_EQ(writing.volume().valid_block_count, blocks);
  EXPECT_EQ(writing.volume().cache.dirty, 0u);
  EXPECT_EQ(write_alone(writing, width(), inode, kFileBytesMax - 5000, bytes), 0);
  EXPECT_EQ(inode.size_bytes, kFileBytesMax);
  ASSERT_EQ(writing.checkpoint(true), 0);
  EXPECT_TRUE(fsck_likes(image));
}

TEST_P(WriteTest, logs_follow_the_advice_of_the_inode) {
  TestImage image(fill_with_written);
  const std::vector<uint32_t> inos = inodes_of(image);
  image.node(inos[5]).inode.i_advise = format::kAdviseCold;
  image.node(inos[6]).inode.i_advise = format::kAdviseHot;
  WritingRig writing(image, width());
  ASSERT_EQ(writing.begin().error, 0);
  const auto log_after_write = [&](uint32_t ino) {
    Inode inode = load_inode(writing, ino);
    EXPECT_EQ(write_alone(writing, width(), inode, 5, std::vector<uint8_t>(5000)), 0);
    uint32_t log = 99;
    run_alone(1, [&](const simt::Warp& warp) {
      BlockPlace place{};
      EXPECT_EQ(map_blocks(warp, writing.volume(), 1u, inode, 1, place), 0);
      log =
          writing.writer().segments.segments[writing.volume().geometry.segno_of(place.block)].type;
    });
    return log;
  };
  EXPECT_EQ(log_after_write(inos[1]), uint32_t{format::kWarmData});
  EXPECT_EQ(log_after_write(inos[5]), uint32_t{format::kColdData});
  EXPECT_EQ(log_after_write(inos[6]), uint32_t{format::kHotData});
  ASSERT_EQ(writing.checkpoint(true), 0);
  EXPECT_TRUE(fsck_likes(image));
}

TEST_P(WriteTest, a_full_volume_refuses_and_the_file_is_as_before) {
  GOFS_NEED_TOOL("fsck.f2fs");
  TestImage image(fill_with_written);
  const std::vector<uint32_t> inos = inodes_of(image);
  WritingRig writing(image, width());
  ASSERT_EQ(writing.begin().error, 0);
  std::vector<OpenFileModel> files = open_files(writing, inos);
  OpenFileModel& filler = files[0];
  const uint64_t user_blocks = writing.volume().user_block_count;
  if (width() > 1) writing.volume().user_block_count = writing.volume().valid_block_count + 250;
  const std::vector<uint8_t> much(100 * kBlockBytes, uint8_t{7});
  int error = 0;
  while (error == 0) {
    // What was written before the error stays: whole rounds.
    uint64_t done = 0;
    const uint64_t offset = filler.model.size();
    run_alone(width(), [&](const simt::Warp& warp) {
      const int mine =
          write_range(warp, writing, filler.inode, offset, much.size(), much.data(), {1, 1}, &done);
      if (warp.thread_rank() == 0) error = mine;
    });
    if (done != 0) filler.model.write(offset, much.data(), done);
  }
  EXPECT_EQ(error, -ENOSPC);
  const Volume& volume = writing.volume();
  EXPECT_LE(volume.valid_block_count, volume.user_block_count);
  EXPECT_GT(volume.valid_block_count, volume.user_block_count - 2 * width() - 3);
  // No block for those that need one, not even for what grows out of its inode.
  for (uint32_t i = 0; i < 2 * width() + 3; ++i) {
    const std::vector<uint8_t> one(1, uint8_t{9});
    const uint64_t offset = filler.model.size();
    if (write_alone(writing, width(), filler.inode, offset, one) == 0) {
      filler.model.write(offset, one.data(), 1);
      filler.model.resize(simt::align_up(filler.model.size(), kBlockBytes));
      const std::vector<uint8_t> last(1, uint8_t{0});
      ASSERT_EQ(write_alone(writing, width(), filler.inode, filler.model.size() - 1, last), 0);
      filler.model.write(filler.model.size() - 1, last.data(), 1);
    }
  }
  EXPECT_EQ(write_alone(writing, width(), files[1].inode, 4000, much), -ENOSPC);
  EXPECT_EQ(write_alone(writing, width(), files[5].inode, 13 * kBlockBytes, much), -ENOSPC);
  // Where there are blocks already, others take their place.
  ASSERT_EQ(write_alone(writing, width(), files[5].inode, 8 * kBlockBytes - 5, {1, 2, 3}), 0);
  const uint8_t bytes[] = {1, 2, 3};
  files[5].model.write(8 * kBlockBytes - 5, bytes, 3);
  expect_all(writing, files);
  writing.volume().user_block_count = user_blocks;
  ASSERT_EQ(writing.checkpoint(true), 0);
  EXPECT_TRUE(fsck_likes(image));
}

// Blocks that the last checkpoint refers to can be had after the next one only, which therefore
// must be possible, whatever was written.
TEST_P(WriteTest, a_disk_without_free_blocks_has_some_after_a_checkpoint) {
  GOFS_NEED_TOOL("fsck.f2fs");
  TestImage image(fill_with_written);
  const std::vector<uint32_t> inos = inodes_of(image);
  WritingRig writing(image, width());
  ASSERT_EQ(writing.begin().error, 0);
  std::vector<OpenFileModel> files = open_files(writing, inos);
  OpenFileModel& file = files[4];
  // Most of the disk is in use.
  constexpr uint32_t kLeft = 600;
  std::vector<uint32_t> taken;
  run_alone(1, [&](const simt::Warp& warp) {
    uint32_t block = 0;
    while (allocate_blocks(warp, *TestOperation(warp, writing.volume(), writing.writer()), 1u,
                           format::kWarmData, {}, block) == 0) {
      taken.push_back(block);
    }
    ASSERT_GT(taken.size(), kLeft);
    for (uint32_t i = 0; i < kLeft; ++i, taken.pop_back()) {
      free_blocks(warp, *TestOperation(warp, writing.volume(), writing.writer()), 1u, taken.back());
    }
  });
  ASSERT_EQ(writing.checkpoint(false), 0);
  std::vector<uint8_t> bytes(kLeft / 3 * 2 * kBlockBytes);
  uint32_t refused = 0;
  for (uint32_t turn = 0; turn < 4; ++turn) {
    image::fill_pattern(turn, 0, bytes.data(), bytes.size());
    // Who is refused goes on after a checkpoint where he was.
    for (uint64_t done = 0; done < bytes.size();) {
      const uint64_t from = done;
      int error = 0;
      uint64_t more = 0;
      run_alone(width(), [&](const simt::Warp& warp) {
        const int mine = write_range(warp, writing, file.inode, from, bytes.size() - from,
                                     bytes.data() + from, {1, 1}, &more);
        if (warp.thread_rank() == 0) error = mine;
      });
      done += more;
      if (error == 0) break;
      ASSERT_EQ(error, -ENOSPC);
      ASSERT_GT(more, 0u);
      ASSERT_LT(writing.volume().valid_block_count + kLeft, writing.volume().user_block_count);
      ASSERT_EQ(writing.checkpoint(false), 0);
      ++refused;
    }
    ASSERT_EQ(writing.checkpoint(false), 0);
    file.model.write(0, bytes.data(), bytes.size());
    expect_all(writing, files);
  }
  EXPECT_GE(refused, 3u);
  run_alone(1, [&](const simt::Warp& warp) {
    for (const uint32_t block : taken) {
      free_blocks(warp, *TestOperation(warp, writing.volume(), writing.writer()), 1u, block);
    }
  });
  ASSERT_EQ(writing.checkpoint(true), 0);
  EXPECT_TRUE(fsck_likes(image));
}

TEST_P(WriteTest, several_warps_write_files_of_their_own_and_parts_of_one) {
  GOFS_NEED_TOOL("fsck.f2fs");
  TestImage image(fill_with_written);
  const std::vector<uint32_t> inos = inodes_of(image);
  WritingRig writing(image, width());
  ASSERT_EQ(writing.begin().error, 0);
  std::vector<OpenFileModel> files = open_files(writing, inos);
  constexpr uint32_t kWarps = 3;
  // All parts lie within its size, in several nodes; the parts of one warp and another take turns.
  OpenFileModel& shared = files[5];
  constexpr uint64_t kPart = 6 * kBlockBytes;
  constexpr uint64_t kParts = 400;
  ASSERT_EQ(write_alone(writing, width(), shared.inode, kParts * kPart - 1, {1}), 0);
  const uint8_t one = 1;
  shared.model.write(kParts * kPart - 1, &one, 1);
  std::vector<std::vector<uint8_t>> buffers(kWarps, std::vector<uint8_t>(kPart));
  std::atomic<uint32_t> wrong{0};
  run_crowd({kWarps, width()}, [&](const simt::Warp& warp, uint32_t index) {
    std::vector<uint8_t>& buffer = buffers[index];
    for (uint32_t turn = 0; turn < 12; ++turn) {
      for (const bool own : {true, false}) {
        warp.sync();
        if (warp.thread_rank() == 0) image::fill_pattern(index + 9, turn, buffer.data(), kPart);
        warp.sync();
        Inode& inode = own ? files[index].inode : shared.inode;
        const uint64_t part = index + uint64_t{kWarps} * (turn * 11 % (kParts / kWarps));
        const uint64_t offset = own ? turn * 5000 : part * kPart + 100;
        const uint64_t bytes = own ? 7000 : kPart - 200;
        const int error =
            write_range(warp, writing, inode, offset, bytes, buffer.data(), {3, turn});
        if (error != 0) ++wrong;
      }
    }
  });
  EXPECT_EQ(wrong, 0u);
  std::vector<uint8_t> buffer(kPart);
  for (uint32_t index = 0; index < kWarps; ++index) {
    for (uint32_t turn = 0; turn < 12; ++turn) {
      image::fill_pattern(index + 9, turn, buffer.data(), kPart);
      const uint64_t part = index + uint64_t{kWarps} * (turn * 11 % (kParts / kWarps));
      files[index].model.write(turn * 5000, buffer.data(), 7000);
      shared.model.write(part * kPart + 100, buffer.data(), kPart - 200);
    }
  }
  expect_all(writing, files);
  ASSERT_EQ(writing.checkpoint(true), 0);
  EXPECT_TRUE(fsck_likes(image));
}

// Warps that each write a stripe of one write behind the end: the inode grows in any order.
TEST_P(WriteTest, several_warps_share_one_write_that_grows_a_file) {
  GOFS_NEED_TOOL("fsck.f2fs");
  TestImage image(fill_with_written);
  const std::vector<uint32_t> inos = inodes_of(image);
  WritingRig writing(image, width());
  ASSERT_EQ(writing.begin().error, 0);
  std::vector<OpenFileModel> files = open_files(writing, inos);
  constexpr uint32_t kWarps = 4;
  for (OpenFileModel& file : files) {
    const uint64_t offset = file.model.size() + 100;
    std::vector<uint8_t> bytes(1200 * kBlockBytes / 8 + 77);
    image::fill_pattern(file.inode.ino, 0, bytes.data(), bytes.size());
    run_alone(width(), [&](const simt::Warp& warp) {
      EXPECT_EQ(prepare_write(warp,
                              *TestOperation(warp, writing.volume(), writing.writer(),
                                             &writing.rig().fs().pool, {4, 4}),
                              testing::hold_alone(file.inode), offset, offset + bytes.size()),
                0);
    });
    run_crowd({kWarps, width()}, [&](const simt::Warp& warp, uint32_t index) {
      const uint64_t end = simt::divide_up(offset + bytes.size(), kBlockBytes);
      for (uint64_t first = offset / kBlockBytes + index * warp.size(); first < end;
           first += kWarps * warp.size()) {
        const WritePiece piece = piece_of_range(warp, first, offset, bytes.size(), bytes.data());
        EXPECT_EQ(
            write_pieces(warp,
                         *TestOperation(warp, writing.volume(), writing.writer(),
                                        &writing.rig().fs().pool, {4, 4}),
                         warp.ballot(piece.bytes != 0), testing::hold_alone(file.inode), piece),
            0);
      }
    });
    file.model.write(offset, bytes.data(), bytes.size());
  }
  expect_all(writing, files);
  ASSERT_EQ(writing.checkpoint(true), 0);
  EXPECT_TRUE(fsck_likes(image));
}

TEST_P(WriteTest, readers_of_other_blocks_see_them_as_they_are) {
  TestImage image(fill_with_written);
  const std::vector<uint32_t> inos = inodes_of(image);
  WritingRig writing(image, width());
  ASSERT_EQ(writing.begin().error, 0);
  std::vector<OpenFileModel> files = open_files(writing, inos);
  OpenFileModel& file = files[4];
  std::atomic<bool> over{false};
  std::atomic<uint32_t> wrong{0};
  run_crowd({3, width()}, [&](const simt::Warp& warp, uint32_t index) {
    if (index == 0) {
      for (uint32_t turn = 0; turn < 30; ++turn) {
        const std::vector<uint8_t> bytes(3 * kBlockBytes, static_cast<uint8_t>(turn));
        warp.sync();
        if (write_range(warp, writing, file.inode, 7 * kBlockBytes - 10, bytes.size(), bytes.data(),
                        {5, turn}) != 0) {
          ++wrong;
        }
      }
      over = true;
      return;
    }
    std::vector<uint8_t> buffer(kBlockBytes);
    for (uint64_t block = index; !warp.any(over); block = block % 37 + 3) {
      if (block >= 6 && block < 10) continue;
      const Piece piece{block * kBlockBytes, kBlockBytes, buffer.data()};
      const int error = read_pieces(warp, writing.volume(), writing.rig().fs().pool,
                                    warp.ballot(true), file.inode, piece);
      if (error != 0 || std::memcmp(buffer.data(), file.model.block(block), kBlockBytes) != 0) {
        ++wrong;
      }
    }
  });
  EXPECT_EQ(wrong, 0u);
  const std::vector<uint8_t> last(3 * kBlockBytes, uint8_t{29});
  file.model.write(7 * kBlockBytes - 10, last.data(), last.size());
  expect_all(writing, files);
}

// Each command fails once, of a write that grows out of the inode, one through a new node, and one
// over old blocks.
TEST_P(WriteTest, a_command_that_fails_leaves_the_file_as_it_was) {
  GOFS_NEED_TOOL("fsck.f2fs");
  TestImage sound(fill_with_written);
  const std::vector<uint32_t> inos = inodes_of(sound);
  VolumeRigOptions options;
  options.ssd.fault_capacity = 1;
  struct Case {
    size_t file;
    uint64_t offset;
    uint64_t bytes;
  };
  for (const Case& one : {Case{1, 600, 4000}, Case{1, 9000, 50}, Case{4, 41 * 4096 + 77, 100},
                          Case{4, 922 * 4096 + 1, 6000}, Case{5, 6 * 4096 + 1, 8000}}) {
    uint32_t failures = 0;
    for (uint32_t skip = 0;; ++skip) {
      TestImage image(sound);
      WritingRig writing(image, width(), options);
      ASSERT_EQ(writing.begin().error, 0);
      std::vector<OpenFileModel> files(written_files().size());
      OpenFileModel& file = files[one.file];
      file.model = model_of_written(one.file);
      reopen_file(writing, inos[1 + one.file], skip % 2 == 0, file);
      const uint64_t blocks = writing.volume().valid_block_count;
      const std::vector<uint8_t> bytes(one.bytes, uint8_t{3});
      ssd::FaultRule rule;
      rule.skip = skip;
      rule.count = 1;
      rule.status = format::nvme::kInternalError;
      writing.rig().add_fault(rule);
      uint64_t done = 0;
      int error = 0;
      run_alone(width(), [&](const simt::Warp& warp) {
        const int mine = write_range(warp, writing, file.inode, one.offset, one.bytes, bytes.data(),
                                     {1, 1}, &done);
        if (warp.thread_rank() == 0) error = mine;
      });
      writing.rig().clear_faults();
      if (error != 0) {
        EXPECT_EQ(error, -EIO);
        ++failures;
        if (done == 0 && one.file == 5) {
          EXPECT_EQ(writing.volume().valid_block_count, blocks);
        }
      }
      if (done != 0) file.model.write(one.offset, bytes.data(), done);
      EXPECT_TRUE(file_is(writing, width(), file.inode, file.model)) << skip;
      ASSERT_EQ(writing.checkpoint(false), 0);
      if (skip % 2 == 0) {
        EXPECT_TRUE(fsck_likes(image)) << one.file << " " << skip;
      }
      if (error == 0) break;
      ASSERT_EQ(write_alone(writing, width(), file.inode, one.offset, bytes), 0);
      file.model.write(one.offset, bytes.data(), bytes.size());
      EXPECT_TRUE(file_is(writing, width(), file.inode, file.model)) << skip;
      ASSERT_EQ(writing.checkpoint(true), 0);
      if (skip % 2 == 1) {
        EXPECT_TRUE(fsck_likes(image)) << one.file << " " << skip;
      }
    }
    EXPECT_GE(failures, 2u);
  }
}

TEST_P(WriteTest, a_power_cut_leaves_what_the_last_checkpoint_had) {
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
  std::vector<std::vector<FileModel>> durable;  // at each checkpoint
  std::vector<uint32_t> events;                 // of the disk, when it was made
  const auto trace = [&] {
    return ssd::read_trace(writing.rig().arena().space(), writing.rig().controller());
  };
  const auto note_state = [&] {
    std::vector<FileModel>& state = durable.emplace_back();
    for (const OpenFileModel& file : files) state.push_back(file.model);
    events.push_back(trace().events);
  };
  note_state();
  std::mt19937_64 random(11);
  for (uint32_t checkpoint = 0; checkpoint < 4; ++checkpoint) {
    for (uint32_t turn = 0; turn < 12; ++turn) {
      OpenFileModel& file = files[random() % files.size()];
      const uint64_t offset = random_offset(random, file.model.size());
      const std::vector<uint8_t> bytes = random_bytes(random, 1 + random() % 9000);
      ASSERT_EQ(write_alone(writing, width(), file.inode, offset, bytes), 0);
      file.model.write(offset, bytes.data(), bytes.size());
    }
    ASSERT_EQ(writing.checkpoint(false), 0);
    note_state();
  }
  const ssd::WriteTrace log = trace();
  TestImage left(before);
  for (uint32_t event = 0; event <= log.events; event += 1 + static_cast<uint32_t>(random() % 17)) {
    ssd::PowerCut(log, event).apply({left.data(), left.bytes()}, 512, [&](uint32_t, uint64_t) {
      return random() % 2 == 0;
    });
    size_t least = 0;
    while (least + 1 < events.size() && events[least + 1] <= event) ++least;
    WritingRig reading(left, 1);
    const auto shows = [&](size_t state) {
      for (size_t i = 0; i < files.size(); ++i) {
        const Inode inode = load_inode(reading, files[i].inode.ino);
        if (!file_is(reading, 1, inode, durable[state][i])) return false;
      }
      return true;
    };
    EXPECT_TRUE(shows(least) || (least + 1 < durable.size() && shows(least + 1))) << event;
    if (random() % 6 == 0) {
      EXPECT_TRUE(fsck_likes(left, true)) << event;
    }
    put_back(left, before, log);
  }
}

// A file's times and all blocks of a write say which write it was, whenever the power fails while
// others make checkpoints.
TEST_P(WriteTest, checkpoints_beside_writes_hold_whole_writes) {
  GOFS_NEED_TOOL("fsck.f2fs");
  TestImage image(fill_with_written);
  const std::vector<uint32_t> inos = inodes_of(image);
  const TestImage before(image);
  VolumeRigOptions options;
  options.ssd.logged_commands = 8192;
  options.ssd.logged_bytes = 64 << 20;
  constexpr uint32_t kWarps = 2;
  constexpr uint32_t kTurns = 24;
  WritingRig writing(image, width(), options);
  ASSERT_EQ(writing.begin().error, 0);
  std::vector<OpenFileModel> files = open_files(writing, inos);
  // Each write is one round: its blocks lie on both sides of a node's border.
  const uint64_t first_block = 923 - width() / 2;
  const uint64_t bytes = uint64_t{width()} * kBlockBytes;
  for (uint32_t index = 0; index < kWarps; ++index) {
    const std::vector<uint8_t> data(bytes, uint8_t{0});
    ASSERT_EQ(write_alone(writing, width(), files[4 + index].inode, first_block * kBlockBytes, data,
                          {1, 0}),
              0);
  }
  ASSERT_EQ(writing.checkpoint(false), 0);
  run_crowd({kWarps + 1, width()}, [&](const simt::Warp& warp, uint32_t index) {
    if (index == kWarps) {
      for (uint32_t i = 0; i < 6; ++i) {
        EXPECT_EQ(write_checkpoint(warp, writing.volume(), writing.writer(), false), 0);
      }
      return;
    }
    for (uint32_t turn = 1; turn <= kTurns; ++turn) {
      const std::vector<uint8_t> data(bytes, static_cast<uint8_t>(turn));
      EXPECT_EQ(write_range(warp, writing, files[4 + index].inode, first_block * kBlockBytes, bytes,
                            data.data(), {1, turn}),
                0);
    }
  });
  const ssd::WriteTrace log =
      ssd::read_trace(writing.rig().arena().space(), writing.rig().controller());
  std::mt19937_64 random(17);
  TestImage left(before);
  for (uint32_t event = 0; event <= log.events; event += 1 + static_cast<uint32_t>(random() % 30)) {
    ssd::PowerCut(log, event).apply({left.data(), left.bytes()}, 512, [&](uint32_t, uint64_t) {
      return random() % 2 == 0;
    });
    WritingRig reading(left, 1);
    for (uint32_t index = 0; index < kWarps; ++index) {
      const Inode inode = load_inode(reading, files[4 + index].inode.ino);
      FileModel model = model_of_written(4 + index);
      if (inode.modified.seconds == 1) {
        const std::vector<uint8_t> data(bytes, static_cast<uint8_t>(inode.modified.nanoseconds));
        model.write(first_block * kBlockBytes, data.data(), bytes);
      }
      EXPECT_TRUE(file_is(reading, 1, inode, model)) << event;
    }
    if (random() % 20 == 0) {
      EXPECT_TRUE(fsck_likes(left, true)) << event;
    }
    put_back(left, before, log);
  }
  ASSERT_EQ(writing.checkpoint(true), 0);
  EXPECT_TRUE(fsck_likes(image));
}

// The last step of a write fails for one of its lanes: the others take back what they entered.
TEST_P(WriteTest, addresses_are_entered_for_all_lanes_or_none) {
  TestImage image(fill_with_written);
  const std::vector<uint32_t> inos = inodes_of(image);
  WritingRig writing(image, width());
  ASSERT_EQ(writing.begin().error, 0);
  Volume& volume = writing.volume();
  OpenFileModel file;
  file.model = model_of_written(4);
  reopen_file(writing, inos[5], true, file);
  run_alone(width(), [&](const simt::Warp& warp) {
    const uint32_t rank = warp.thread_rank();
    AddressPlace place{};
    TestOperation op(warp, volume, writing.writer());
    EXPECT_EQ(grow_nodes(warp, *op, warp.ballot(true), file.inode, rank, place), 0);
    // A node of another file.
    if (rank + 1 == warp.size()) place.nid = inos[6];
    InodeUpdate update = update_of_times({77, 77});
    update.blocks = 5;
    const AddressRow row = row_of_one(rank, place, volume.geometry.main_blkaddr + rank);
    EXPECT_EQ(detail::enter_addresses(warp, *op, warp.ballot(true), file.inode, row,
                                      [&] { return update_inode(warp, *op, file.inode, update); }),
              -EUCLEAN);
  });
  EXPECT_NE(file.inode.modified.seconds, 77);
  EXPECT_TRUE(file_is(writing, width(), file.inode, file.model));
  const Inode fresh = load_inode(writing, inos[5]);
  EXPECT_EQ(fresh.block_count, file.inode.block_count);
  EXPECT_TRUE(file_is(writing, width(), fresh, file.model));
}

TEST_P(WriteTest, addresses_that_cannot_be_are_refused) {
  for (const uint32_t address : {3u, 0xfffffff0u, uint32_t{format::kCompressAddr}}) {
    TestImage image(fill_with_written);
    const std::vector<uint32_t> inos = inodes_of(image);
    image.node(inos[5]).inode.i_addr[2] = address;
    WritingRig writing(image, width());
    ASSERT_EQ(writing.begin().error, 0);
    const uint64_t blocks = writing.volume().valid_block_count;
    Inode inode = load_inode(writing, inos[5]);
    const std::vector<uint8_t> bytes(6 * kBlockBytes, uint8_t{1});
    const int error = write_alone(writing, width(), inode, 2 * kBlockBytes, bytes);
    EXPECT_EQ(error, address == format::kCompressAddr ? -EOPNOTSUPP : -EUCLEAN);
    EXPECT_EQ(writing.volume().valid_block_count, blocks);
    EXPECT_EQ(count_findings(*writing.volume().corruptions), error == -EUCLEAN ? 1u : 0u);
  }
}

// A block that two files refer to is released once.
TEST_P(WriteTest, a_block_with_two_owners_is_found_out) {
  TestImage image(fill_with_written);
  const std::vector<uint32_t> inos = inodes_of(image);
  image.node(inos[6]).inode.i_addr[0] = uint32_t{image.node(inos[5]).inode.i_addr[0]};
  WritingRig writing(image, width());
  ASSERT_EQ(writing.begin().error, 0);
  for (const uint32_t ino : {inos[5], inos[6]}) {
    Inode inode = load_inode(writing, ino);
    EXPECT_EQ(write_alone(writing, width(), inode, 0, {1, 2, 3}), 0);
  }
  EXPECT_EQ(count_findings(*writing.volume().corruptions), 1u);
  for (uint32_t segno = 0; segno < writing.volume().geometry.main_segments; ++segno) {
    const SegmentInfo& segment = writing.writer().segments.segments[segno];
    uint32_t bits = 0;
    for (const uint32_t word : segment.valid) bits += simt::popcount(word);
    EXPECT_EQ(bits, segment.valid_count) << segno;
  }
}

}  // namespace
}  // namespace gofs::f2fs
