// SPDX-License-Identifier: Apache-2.0
//
// Checkpoints: what fsck.f2fs makes of them, that they change nothing but themselves, and that a
// failing disk or a power cut leaves the one before.
#include "f2fs/write_checkpoint.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <random>
#include <vector>

#include "f2fs/writing_for_test.hpp"
#include "ssd/power_cut.h"

namespace gofs::f2fs {
namespace {

using gofs::testing::TestImage;
using gofs::testing::VolumeRig;
using gofs::testing::VolumeRigOptions;

/// Makes a volume with mkfs.f2fs, which uses both journals; then sload.f2fs may put some files
/// there.
std::function<void(const std::string&)> made_by_tools(const std::string& options, bool with_files) {
  return [=](const std::string& path) {
    std::string command = "mkfs.f2fs -f " + options + " '" + path + "'";
    if (with_files) {
      command +=
          " && folder=$(mktemp -d) && seq 200000 > $folder/numbers && echo one > $folder/one"
          " && sload.f2fs -f $folder '" +
          path + "' && rm -r $folder";
    }
    const image::ToolAnswer made = image::run_tool(command);
    EXPECT_EQ(made.exit_code, 0) << made.output;
  };
}

void fill_for_checkpoint(image::ImageBuilder& builder) {
  for (uint32_t i = 0; i < 20; ++i) {
    const std::string name = "file" + std::to_string(i);
    image::FileSpec file;
    file.name = name;
    file.size_bytes = 20'000 * i;
    file.content = image::pattern_content(i);
    TestImage::must(builder.add_file(builder.root(), file));
  }
}

class WriteCheckpointTest : public ::testing::TestWithParam<uint32_t> {
 protected:
  uint32_t width() const { return GetParam(); }

  static uint64_t version_of(TestImage& image) {
    VolumeRig rig(image);
    rig.mount_ready();
    return rig.volume().checkpoint_version;
  }

  /// Checkpoints of every kind, one after another and across mounts.
  void expect_good_checkpoints(TestImage& image) {
    uint64_t version = version_of(image);
    for (uint32_t mounts = 0; mounts < 2; ++mounts) {
      WritingRig writing(image, width());
      const WriteResult begun = writing.begin();
      ASSERT_EQ(begun.error, 0) << static_cast<int>(begun.problem) << " " << begun.value;
      for (uint32_t i = 0; i < mounts; ++i) {
        ASSERT_EQ(writing.checkpoint(false), 0);
        EXPECT_EQ(version_of(image), ++version);
        EXPECT_TRUE(fsck_likes(image));
      }
      ASSERT_EQ(writing.checkpoint(true), 0);
      EXPECT_EQ(version_of(image), ++version);
      EXPECT_TRUE(fsck_likes(image));
    }
  }
};

INSTANTIATE_TEST_SUITE_P(width, WriteCheckpointTest,
                         ::testing::ValuesIn(gofs::testing::widths({1, 4})));

TEST_P(WriteCheckpointTest, fsck_finds_nothing) {
  GOFS_NEED_TOOL("fsck.f2fs");
  TestImage image(fill_for_checkpoint);
  expect_good_checkpoints(image);
}

TEST_P(WriteCheckpointTest, journals_and_compact_summaries_are_taken_over) {
  GOFS_NEED_TOOL("sload.f2fs");
  for (const char* options : {"", "-O extra_attr,inode_checksum,sb_checksum", "-i"}) {
    for (const bool with_files : {false, true}) {
      SCOPED_TRACE(std::string(options) + (with_files ? ", files" : ""));
      TestImage image(made_by_tools(options, with_files));
      expect_good_checkpoints(image);
    }
  }
}

TEST_P(WriteCheckpointTest, the_segment_table_is_what_the_sit_says) {
  TestImage image(fill_for_checkpoint);
  WritingRig writing(image, width());
  ASSERT_EQ(writing.begin().error, 0);
  const Volume& volume = writing.rig().volume();
  uint64_t valid = 0;
  for (uint32_t segno = 0; segno < volume.geometry.main_segments; ++segno) {
    const SegmentInfo& segment = writing.writer().segments.segments[segno];
    valid += segment.valid_count;
    for (uint32_t i = 0; i < kMapWords; ++i) EXPECT_EQ(segment.valid[i], segment.committed[i]);
  }
  EXPECT_EQ(valid, volume.valid_block_count);
  // Where the root directory is, something is.
  const uint32_t root = image.nat_entry(format::kRootIno).block_addr;
  const SegmentInfo& segment = writing.writer().segments.segments[volume.geometry.segno_of(root)];
  const uint32_t offset = volume.geometry.offset_in_segment(root);
  EXPECT_TRUE((segment.valid[offset / 32] >> offset % 32 & 1u) != 0);
}

TEST_P(WriteCheckpointTest, volumes_that_cannot_be_written_to_are_refused) {
  const auto problem_of = [&](const TestImage::Fill& fill,
                              const std::function<void(TestImage&)>& change) {
    TestImage image(fill);
    change(image);
    WritingRig writing(image, width());
    const WriteResult result = writing.begin();
    EXPECT_LT(result.error, 0);
    return result.problem;
  };
  EXPECT_EQ(problem_of(fill_for_checkpoint,
                       [](TestImage& image) {
                         image.superblock(0).feature =
                             image.superblock(0).feature | format::kFeatureQuota;
                       }),
            WriteProblem::kFeature);
  EXPECT_EQ(problem_of(fill_for_checkpoint,
                       [](TestImage& image) {
                         format::Superblock& super = image.superblock(0);
                         super.segs_per_sec = 2;
                         super.section_count = super.segment_count_main / 2;
                       }),
            WriteProblem::kSections);
  EXPECT_EQ(problem_of(fill_for_checkpoint,
                       [](TestImage& image) {
                         for (uint32_t pack = 0; pack < 2; ++pack) {
                           format::Checkpoint& checkpoint = image.checkpoint(pack);
                           checkpoint.cur_data_segno[0] = checkpoint.cur_segno(format::kWarmData);
                           image.seal_checkpoint(pack);
                         }
                       }),
            WriteProblem::kCurrentLog);
  EXPECT_EQ(problem_of(fill_for_checkpoint,
                       [](TestImage& image) {
                         image.block(image.geometry().sit_block(0, false))[0] ^= 1;
                       }),
            WriteProblem::kSegments);
}

TEST_P(WriteCheckpointTest, a_write_that_fails_leaves_the_checkpoint_before) {
  GOFS_NEED_TOOL("sload.f2fs");
  const TestImage contents(made_by_tools("", false));
  constexpr uint32_t kWrites = 1u << static_cast<uint32_t>(format::nvme::IoOpcode::kWrite);
  constexpr uint32_t kFlushes = 1u << static_cast<uint32_t>(format::nvme::IoOpcode::kFlush);
  for (const uint32_t opcodes : {kWrites, kFlushes}) {
    uint32_t failures = 0;
    for (uint32_t skip = 0;; ++skip) {
      TestImage image(contents);
      const uint64_t version = version_of(image);
      VolumeRigOptions options;
      options.ssd.fault_capacity = 1;
      WritingRig writing(image, width(), options);
      ASSERT_EQ(writing.begin().error, 0);
      ssd::FaultRule rule;
      rule.opcode_mask = opcodes;
      rule.skip = skip;
      rule.count = 1;
      rule.status = format::nvme::kWriteFault;
      writing.rig().add_fault(rule);
      const int error = writing.checkpoint(true);
      writing.rig().clear_faults();
      if (error == 0) break;
      ++failures;
      EXPECT_EQ(error, -EIO);
      const bool unknown = writing.writer().failed < 0;
      // After the last step it is not known which of the two it is.
      EXPECT_TRUE(version_of(image) == version || (unknown && version_of(image) == version + 1));
      EXPECT_EQ(writing.checkpoint(true), unknown ? -EROFS : 0);
      if (skip % 3 == 0) {
        EXPECT_TRUE(fsck_likes(image, true));
      }
    }
    // The pack has eight blocks, and the journals change some of the SIT and one of the NAT.
    EXPECT_GE(failures, opcodes == kFlushes ? 2u : 10u);
  }
}

TEST_P(WriteCheckpointTest, a_power_cut_leaves_this_checkpoint_or_the_one_before) {
  GOFS_NEED_TOOL("sload.f2fs");
  const TestImage before(made_by_tools("", false));
  TestImage image(before);
  const uint64_t version = version_of(image);
  VolumeRigOptions options;
  options.ssd.logged_commands = 4096;
  options.ssd.logged_bytes = 16 << 20;
  WritingRig writing(image, width(), options);
  ASSERT_EQ(writing.begin().error, 0);
  ASSERT_EQ(writing.checkpoint(false), 0);
  ASSERT_EQ(writing.checkpoint(true), 0);
  const ssd::WriteTrace trace =
      ssd::read_trace(writing.rig().arena().space(), writing.rig().controller());
  std::mt19937 random(1);
  TestImage left(before);
  uint64_t least = version;
  for (uint32_t event = 0; event <= trace.events; ++event) {
    const ssd::PowerCut cut(trace, event);
    for (uint32_t way = 0; way < 3; ++way) {
      cut.apply({left.data(), left.bytes()}, 512, [&](uint32_t, uint64_t) {
        return way == 0 ? false : way == 1 ? true : random() % 2 == 0;
      });
      const uint64_t found = version_of(left);
      EXPECT_LE(found, version + 2);
      EXPECT_GE(found, least) << "a checkpoint that was durable is gone";
      if (way == 0) least = found;
      if (event % 9 == 3 * way) {
        EXPECT_TRUE(fsck_likes(left, true)) << event;
      }
      put_back(left, before, trace);
    }
  }
  EXPECT_EQ(least, version + 2);
}

}  // namespace
}  // namespace gofs::f2fs
