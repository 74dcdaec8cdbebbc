// SPDX-License-Identifier: Apache-2.0
//
// Inodes that change: what readers see before and after a checkpoint, what fsck.f2fs says, and that
// a failing disk or a power cut leaves all changes of a checkpoint or none.
#include "f2fs/write_nodes.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <map>
#include <random>
#include <vector>

#include "f2fs/change_attributes.h"
#include "f2fs/operation_for_test.hpp"
#include "f2fs/writing_for_test.hpp"
#include "ssd/power_cut.h"

namespace gofs::f2fs {
namespace {

using gofs::testing::all_lanes;
using gofs::testing::run_alone;
using gofs::testing::run_crowd;
using gofs::testing::TestImage;
using gofs::testing::VolumeRig;
using gofs::testing::VolumeRigOptions;

constexpr uint32_t kChangedFiles = 40;

void fill_with_files(image::ImageBuilder& builder) {
  for (uint32_t i = 0; i < kChangedFiles; ++i) {
    const std::string name = "f" + std::to_string(i);
    image::FileSpec file;
    file.name = name;
    file.size_bytes = 5'000 * i;
    file.content = image::pattern_content(i);
    TestImage::must(builder.add_file(builder.root(), file));
  }
}

/// What one round of changes makes of an inode.
AttributeChange change_of(uint32_t ino, uint32_t round) {
  AttributeChange change{};
  change.mask = kSetPermissions | kSetUid | kSetGid | kSetAccessed | kSetModified;
  change.permissions = static_cast<uint16_t>((ino * 7 + round) & format::kModePermissionMask);
  change.uid = ino + round;
  change.gid = ino + 2 * round;
  change.accessed = {int64_t{1} << 33, round};
  change.modified = {-int64_t{round}, ino};
  change.changed = {1'800'000'000 + round, 999'999'999};
  return change;
}

bool shows(const Inode& inode, const AttributeChange& change) {
  const auto same = [](const TimeStamp& a, const TimeStamp& b) {
    return a.seconds == b.seconds && a.nanoseconds == b.nanoseconds;
  };
  return (inode.mode & format::kModePermissionMask) == change.permissions &&
         inode.uid == change.uid && inode.gid == change.gid &&
         same(inode.accessed, change.accessed) && same(inode.modified, change.modified) &&
         same(inode.changed, change.changed);
}

class WriteNodesTest : public ::testing::TestWithParam<uint32_t> {
 protected:
  uint32_t width() const { return GetParam(); }

  static Inode load(WritingRig& writing, uint32_t ino) {
    Inode inode{};
    run_alone(1, [&](const simt::Warp& warp) {
      EXPECT_EQ(load_inodes(warp, writing.volume(), 1u, ino, inode), 0) << ino;
    });
    return inode;
  }
  /// Changes every inode, by several warps.
  void change_all(WritingRig& writing, const std::vector<uint32_t>& inos, uint32_t round) {
    constexpr uint32_t kWarps = 3;
    run_crowd({kWarps, width()}, [&](const simt::Warp& warp, uint32_t index) {
      const uint32_t all = kWarps * warp.size();
      const auto count = static_cast<uint32_t>(inos.size());
      for (uint32_t first = 0; first < count; first += all) {
        const uint32_t i = first + index * warp.size() + warp.thread_rank();
        const uint32_t ino = i < count ? inos[i] : 0;
        const int error =
            change_attributes(warp, *TestOperation(warp, writing.volume(), writing.writer()),
                              warp.ballot(i < count), ino, change_of(ino, round));
        if (i < count) {
          EXPECT_EQ(error, 0) << ino;
        }
      }
    });
  }
  void expect_round(WritingRig& writing, const std::vector<uint32_t>& inos, uint32_t round) {
    for (const uint32_t ino : inos) {
      EXPECT_TRUE(shows(load(writing, ino), change_of(ino, round))) << ino << " in " << round;
    }
  }
  /// The round that every inode of the image shows; a mixture is a failure.
  uint32_t round_of(TestImage& image, const std::vector<uint32_t>& inos, uint32_t rounds) {
    WritingRig writing(image, 1);
    for (uint32_t round = 1; round <= rounds; ++round) {
      if (!shows(load(writing, inos[0]), change_of(inos[0], round))) continue;
      expect_round(writing, inos, round);
      return round;
    }
    for (const uint32_t ino : inos) {
      EXPECT_EQ(load(writing, ino).changed.seconds, 1'700'000'000) << ino;
    }
    return 0;
  }
};
GOFS_AT_BOTH_WIDTHS(WriteNodesTest);

TEST_P(WriteNodesTest, changes_are_seen_at_once_and_stay) {
  GOFS_NEED_TOOL("fsck.f2fs");
  for (const uint32_t feature :
       {uint32_t{0}, format::kFeatureExtraAttr | format::kFeatureInodeChecksum}) {
    TestImage image(fill_with_files, feature);
    const std::vector<uint32_t> inos = inodes_of(image);
    ASSERT_GT(inos.size(), kChangedFiles);
    uint32_t round = 0;
    for (uint32_t mounts = 0; mounts < 2; ++mounts) {
      WritingRig writing(image, width());
      ASSERT_EQ(writing.begin().error, 0);
      for (uint32_t i = 0; i < 3; ++i) {
        change_all(writing, inos, ++round);
        expect_round(writing, inos, round);
        ASSERT_EQ(writing.checkpoint(i == 2), 0);
        expect_round(writing, inos, round);
      }
      EXPECT_TRUE(fsck_likes(image));
    }
    EXPECT_EQ(round_of(image, inos, round), round);
  }
}

// More changed pages than there is room for in the sets where they belong.
TEST_P(WriteNodesTest, a_small_cache_keeps_all_that_has_changed) {
  GOFS_NEED_TOOL("fsck.f2fs");
  TestImage image(fill_with_files);
  const std::vector<uint32_t> inos = inodes_of(image);
  VolumeRigOptions options;
  options.filesystem.cache_pages = 64;
  WritingRig writing(image, width(), options);
  ASSERT_EQ(writing.begin().error, 0);
  for (uint32_t round = 1; round <= 3; ++round) {
    change_all(writing, inos, round);
    expect_round(writing, inos, round);
    if (round == 2) {
      ASSERT_EQ(writing.checkpoint(false), 0);
    }
  }
  ASSERT_EQ(writing.checkpoint(true), 0);
  EXPECT_TRUE(fsck_likes(image));
  EXPECT_EQ(round_of(image, inos, 3), 3u);
}

TEST_P(WriteNodesTest, lanes_and_warps_that_change_one_inode_take_turns) {
  TestImage image(fill_with_files);
  const uint32_t ino = inodes_of(image)[1];
  WritingRig writing(image, width());
  ASSERT_EQ(writing.begin().error, 0);
  const uint32_t before = load(writing, ino).uid;
  constexpr uint32_t kWarps = 4;
  constexpr uint32_t kTurns = 50;
  std::atomic<uint32_t> torn{0};
  run_crowd({kWarps, width()}, [&](const simt::Warp& warp, uint32_t) {
    for (uint32_t turn = 0; turn < kTurns; ++turn) {
      EXPECT_EQ(change_nodes(warp, *TestOperation(warp, writing.volume(), writing.writer()),
                             all_lanes(warp), ino, ino,
                             [](format::NodeBlock& node) {
                               node.inode.i_uid = node.inode.i_uid + 1;
                               node.inode.i_gid = uint32_t{node.inode.i_uid};
                             }),
                0);
      Inode inode{};
      EXPECT_EQ(load_inodes(warp, writing.volume(), all_lanes(warp), ino, inode), 0);
      if (inode.uid != inode.gid) ++torn;
    }
  });
  EXPECT_EQ(torn, 0u);
  EXPECT_EQ(load(writing, ino).uid, before + kWarps * kTurns * width());
}

// Pages go as soon as they are written, and are read again where they went.
TEST_P(WriteNodesTest, readers_see_no_older_state_beside_checkpoints) {
  TestImage image(fill_with_files);
  std::vector<uint32_t> inos = inodes_of(image);
  inos.resize(6);
  VolumeRigOptions options;
  options.filesystem.cache_pages = 8;
  WritingRig writing(image, width(), options);
  ASSERT_EQ(writing.begin().error, 0);
  const uint32_t rounds = width() == 1 ? 60 : 15;
  std::atomic<bool> over{false};
  std::atomic<uint32_t> wrong{0};
  run_crowd({3, width()}, [&](const simt::Warp& warp, uint32_t index) {
    if (index == 0) {
      for (uint32_t round = 1; round <= rounds; ++round) {
        for (const uint32_t ino : inos) {
          EXPECT_EQ(
              change_attributes(
                  warp, *TestOperation(warp, writing.volume(), writing.writer(), nullptr, {}, 1),
                  1u, ino, change_of(ino, round)),
              0);
        }
        EXPECT_EQ(write_checkpoint(warp, writing.volume(), writing.writer(), false), 0);
      }
      over = true;
      return;
    }
    std::map<uint32_t, int64_t> seen;
    while (!warp.any(over)) {
      for (const uint32_t ino : inos) {
        Inode inode{};
        if (load_inodes(warp, writing.volume(), all_lanes(warp), ino, inode) != 0) ++wrong;
        if (inode.changed.seconds < seen[ino]) ++wrong;
        seen[ino] = inode.changed.seconds;
      }
    }
  });
  EXPECT_EQ(wrong, 0u);
  expect_round(writing, inos, rounds);
}

TEST_P(WriteNodesTest, a_write_that_fails_leaves_the_checkpoint_before) {
  TestImage sound(fill_with_files);
  const std::vector<uint32_t> inos = inodes_of(sound);
  uint32_t failures = 0;
  for (uint32_t skip = 0;; skip += 7) {
    TestImage image(sound);
    VolumeRigOptions options;
    options.ssd.fault_capacity = 1;
    WritingRig writing(image, width(), options);
    ASSERT_EQ(writing.begin().error, 0);
    change_all(writing, inos, 1);
    ssd::FaultRule rule;
    rule.opcode_mask = 1u << static_cast<uint32_t>(format::nvme::IoOpcode::kWrite);
    rule.skip = skip;
    rule.count = 1;
    rule.status = format::nvme::kWriteFault;
    writing.rig().add_fault(rule);
    const int error = writing.checkpoint(false);
    writing.rig().clear_faults();
    if (error == 0) break;
    ++failures;
    EXPECT_EQ(error, -EIO);
    expect_round(writing, inos, 1);
    if (writing.writer().failed < 0) continue;  // not known
    EXPECT_EQ(round_of(image, inos, 1), 0u);
    ASSERT_EQ(writing.checkpoint(true), 0);
    EXPECT_EQ(round_of(image, inos, 1), 1u);
    if (skip % 21 == 0) {
      EXPECT_TRUE(fsck_likes(image));
    }
  }
  EXPECT_GT(failures, inos.size() / 7);
}

TEST_P(WriteNodesTest, a_power_cut_leaves_all_changes_of_a_checkpoint_or_none) {
  TestImage image(fill_with_files);
  const std::vector<uint32_t> inos = inodes_of(image);
  const TestImage before(image);
  constexpr uint32_t kRounds = 2;
  VolumeRigOptions options;
  options.ssd.logged_commands = 4096;
  options.ssd.logged_bytes = 16 << 20;
  WritingRig writing(image, width(), options);
  ASSERT_EQ(writing.begin().error, 0);
  for (uint32_t round = 1; round <= kRounds; ++round) {
    change_all(writing, inos, round);
    ASSERT_EQ(writing.checkpoint(false), 0);
  }
  const ssd::WriteTrace trace =
      ssd::read_trace(writing.rig().arena().space(), writing.rig().controller());
  std::mt19937 random(1);
  TestImage left(before);
  uint32_t least = 0;
  for (uint32_t event = 0; event <= trace.events; event += event + 20 < trace.events ? 3 : 1) {
    const ssd::PowerCut cut(trace, event);
    for (uint32_t way = 0; way < 3; ++way) {
      cut.apply({left.data(), left.bytes()}, 512, [&](uint32_t, uint64_t) {
        return way == 0 ? false : way == 1 ? true : random() % 2 == 0;
      });
      const uint32_t found = round_of(left, inos, kRounds);
      EXPECT_GE(found, least) << "what was durable is gone";
      if (way == 0) least = found;
      put_back(left, before, trace);
    }
  }
  EXPECT_EQ(least, kRounds);
}

}  // namespace
}  // namespace gofs::f2fs
