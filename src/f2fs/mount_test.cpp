// SPDX-License-Identifier: Apache-2.0
//
// Mounting: what is taken from a sound volume, which copy is chosen when one is damaged or cannot
// be read, where the NAT is looked up, and what is refused by which name.
#include "f2fs/mount.h"

#include <gtest/gtest.h>

#include <cstring>
#include <functional>
#include <memory>

#include "testing/volume_rig.hpp"

namespace gofs::f2fs {
namespace {

using gofs::testing::run_alone;
using gofs::testing::TestImage;
using gofs::testing::VolumeRig;
using gofs::testing::VolumeRigOptions;

constexpr uint64_t kOneFileBytes = 10'000;

void fill_with_one_file(image::ImageBuilder& builder) {
  image::FileSpec file;
  file.name = "one";
  file.size_bytes = kOneFileBytes;
  file.content = image::pattern_content(1);
  TestImage::must(builder.add_file(builder.root(), file));
}

constexpr uint32_t kFileIno = format::kFirstFreeNid;

class MountTest : public ::testing::TestWithParam<uint32_t> {
 protected:
  uint32_t width() const { return GetParam(); }

  /// A fresh image; tests change it.
  void build(uint32_t feature = 0) {
    image_ = std::make_unique<TestImage>(fill_with_one_file, feature);
  }
  TestImage& image() { return *image_; }
  MountResult mount() {
    VolumeRigOptions options;
    options.ssd.fault_capacity = 8;
    rig_ = std::make_unique<VolumeRig>(*image_, options);
    for (const ssd::FaultRule& rule : rules_) rig_->add_fault(rule);
    return rig_->mount(width());
  }
  void expect_refused(MountProblem problem, int error) {
    const MountResult result = mount();
    EXPECT_EQ(static_cast<int>(result.problem), static_cast<int>(problem))
        << "value " << result.value;
    EXPECT_EQ(result.error, error);
  }
  void expect_mounted() {
    const MountResult result = mount();
    ASSERT_EQ(result.error, 0) << "problem " << static_cast<int>(result.problem) << ", value "
                               << result.value;
    EXPECT_EQ(static_cast<int>(result.problem), static_cast<int>(MountProblem::kNone));
  }
  /// Loads the inode of the one file.
  int load(uint32_t ino, Inode& inode) {
    int error = 0;
    run_alone(width(), [&](const simt::Warp& warp) {
      Inode mine{};
      const int result = load_inodes(warp, rig_->volume(), warp.ballot(true), ino, mine);
      if (warp.thread_rank() == 0) {
        error = result;
        inode = mine;
      }
    });
    return error;
  }
  void fail_reads_of(uint32_t block) {
    rules_.push_back(VolumeRig::reads_of_block(block, 9, ssd::FaultAction::kStatus));
  }
  VolumeRig& rig() { return *rig_; }

 private:
  std::unique_ptr<TestImage> image_;
  std::unique_ptr<VolumeRig> rig_;
  std::vector<ssd::FaultRule> rules_;
};
GOFS_AT_BOTH_WIDTHS(MountTest);

TEST_P(MountTest, a_sound_volume_says_what_it_is) {
  for (const uint32_t feature : {0u, image::kFeaturesOffered}) {
    build(feature);
    expect_mounted();
    const Volume& volume = rig().volume();
    EXPECT_EQ(volume.geometry.feature, feature);
    EXPECT_EQ(volume.geometry.main_blkaddr, image().geometry().main_blkaddr);
    EXPECT_EQ(volume.label[0], 't');
    EXPECT_EQ(volume.label[4], 0);
    EXPECT_EQ(std::memcmp(volume.uuid, image().superblock(0).uuid, 16), 0);
    EXPECT_TRUE(volume.cleanly_unmounted());
    const bool lost_found = (feature & format::kFeatureLostFound) != 0;
    EXPECT_EQ(volume.valid_inode_count, lost_found ? 3u : 2u);
    EXPECT_EQ(count_findings(*volume.corruptions), 0u);
    Inode inode{};
    ASSERT_EQ(load(lost_found ? kFileIno + 1 : kFileIno, inode), 0);
    EXPECT_EQ(inode.size_bytes, kOneFileBytes);
    EXPECT_TRUE(inode.is_regular());
  }
}

TEST_P(MountTest, the_second_superblock_stands_in_for_the_first) {
  build();
  std::memset(image().block(0), 0, kBlockBytes);
  expect_mounted();
  build(image::kFeaturesOffered);
  image().superblock(0).uuid[0] ^= 1;  // the sum no longer holds
  expect_mounted();
  EXPECT_EQ(rig().volume().uuid[0], image().superblock(1).uuid[0]);
}

TEST_P(MountTest, a_superblock_that_cannot_be_read_is_no_better_and_no_worse_than_a_broken_one) {
  build();
  fail_reads_of(0);
  expect_mounted();
  fail_reads_of(1);
  expect_refused(MountProblem::kDevice, -EIO);
}

TEST_P(MountTest, no_superblock_at_all) {
  build();
  image().superblock(0).magic = 1;
  image().superblock(1).magic = 2;
  expect_refused(MountProblem::kNoSuperblock, -EINVAL);
}

TEST_P(MountTest, fields_that_contradict_each_other_are_refused) {
  const std::function<void(format::Superblock&)> changes[] = {
      [](format::Superblock& super) { super.log_blocks_per_seg = 10; },
      [](format::Superblock& super) { super.segment_count = 0; },
      [](format::Superblock& super) { super.segment_count = super.segment_count + 1000000; },
      [](format::Superblock& super) { super.segment_count_main = super.segment_count_main + 1; },
      [](format::Superblock& super) { super.main_blkaddr = super.main_blkaddr + 512; },
      [](format::Superblock& super) { super.nat_blkaddr = 0xffffff00; },
      [](format::Superblock& super) { super.segment_count_nat = 3; },
      [](format::Superblock& super) { super.segs_per_sec = 0; },
      [](format::Superblock& super) { super.cp_payload = 511; },
      [](format::Superblock& super) { super.root_ino = 4; },
  };
  build();
  const format::Superblock sound = image().superblock(0);
  for (const auto& change : changes) {
    for (uint32_t copy = 0; copy < 2; ++copy) {
      image().superblock(copy) = sound;
      change(image().superblock(copy));
    }
    expect_refused(MountProblem::kSuperblockField, -EUCLEAN);
  }
}

TEST_P(MountTest, blocks_of_another_size_are_not_supported_where_the_superblock_is_whole) {
  for (const uint32_t log : {0u, 10u, 13u, 16u, 200u}) {
    build();
    for (uint32_t copy = 0; copy < 2; ++copy) image().superblock(copy).log_blocksize = log;
    expect_refused(MountProblem::kBlockSize, -EOPNOTSUPP);
  }
  build(image::kFeaturesOffered);
  for (uint32_t copy = 0; copy < 2; ++copy) image().superblock(copy).log_blocksize = 14;
  expect_refused(MountProblem::kSuperblockChecksum, -EUCLEAN);
  for (uint32_t copy = 0; copy < 2; ++copy) image().seal_superblock(copy);
  expect_refused(MountProblem::kBlockSize, -EOPNOTSUPP);
  image().superblock(0).log_blocksize = 12;
  image().seal_superblock(0);
  expect_mounted();
}

TEST_P(MountTest, features_that_change_the_format_are_refused) {
  for (const uint32_t feature :
       {uint32_t{format::kFeatureZoned}, uint32_t{format::kFeatureReadOnly}, uint32_t{0x10000}}) {
    build();
    for (uint32_t copy = 0; copy < 2; ++copy) image().superblock(copy).feature = feature;
    expect_refused(MountProblem::kFeature, -EOPNOTSUPP);
  }
  // Those that concern some files only are not.
  for (const uint32_t feature :
       {uint32_t{format::kFeatureEncrypt}, uint32_t{format::kFeatureCompression},
        uint32_t{format::kFeatureVerity}, uint32_t{format::kFeatureQuota}}) {
    build();
    for (uint32_t copy = 0; copy < 2; ++copy) image().superblock(copy).feature = feature;
    expect_mounted();
  }
}

TEST_P(MountTest, several_devices_and_a_device_too_small_are_refused) {
  build();
  for (uint32_t copy = 0; copy < 2; ++copy) image().superblock(copy).devs[0].path[0] = 'x';
  expect_refused(MountProblem::kMultiDevice, -EOPNOTSUPP);
  build();
  VolumeRigOptions options;
  options.ssd.capacity_bytes = image().geometry().main_end() * kBlockBytes - 512;
  VolumeRig small(image(), options);
  const MountResult result = small.mount(width());
  EXPECT_EQ(static_cast<int>(result.problem), static_cast<int>(MountProblem::kDeviceTooSmall));
  EXPECT_EQ(result.value, image().geometry().main_end());
}

TEST_P(MountTest, the_later_sound_checkpoint_counts) {
  build();
  const uint64_t version = image().checkpoint(0).checkpoint_ver;
  expect_mounted();
  EXPECT_EQ(rig().volume().checkpoint_pack, 0u);
  EXPECT_EQ(rig().volume().checkpoint_version, version);
  // Pack 1 overtakes.
  image().checkpoint(1).checkpoint_ver = version + 1;
  image().seal_checkpoint(1);
  expect_mounted();
  EXPECT_EQ(rig().volume().checkpoint_pack, 1u);
  EXPECT_EQ(rig().volume().checkpoint_version, version + 1);
}

TEST_P(MountTest, a_checkpoint_that_was_not_completed_does_not_count) {
  const std::function<void(TestImage&)> damages[] = {
      // The head is damaged; the tail is of another version; the tail is damaged.
      [](TestImage& image) { image.checkpoint(0).valid_node_count = 77; },
      [](TestImage& image) {
        const uint32_t tail =
            image.geometry().pack_block(0) + image.checkpoint(0).cp_pack_total_block_count - 1;
        auto& checkpoint = *reinterpret_cast<format::Checkpoint*>(image.block(tail));
        checkpoint.checkpoint_ver = checkpoint.checkpoint_ver + 1;
        format::store_u32(
            image.block(tail) + format::kCheckpointChecksumOffset,
            format::checkpoint_checksum(image.block(tail), format::kCheckpointChecksumOffset));
      },
      [](TestImage& image) {
        const uint32_t tail =
            image.geometry().pack_block(0) + image.checkpoint(0).cp_pack_total_block_count - 1;
        image.block(tail)[300] ^= 1;
      },
      [](TestImage& image) {
        image.checkpoint(0).cp_pack_total_block_count = 513;
        uint8_t* const head = image.block(image.geometry().pack_block(0));
        format::store_u32(head + format::kCheckpointChecksumOffset,
                          format::checkpoint_checksum(head, format::kCheckpointChecksumOffset));
      },
      [](TestImage& image) { image.checkpoint(0).checksum_offset = 4093; },
  };
  for (const auto& damage : damages) {
    build();
    damage(image());
    expect_mounted();
    EXPECT_EQ(rig().volume().checkpoint_pack, 1u);
    std::memset(image().block(image().geometry().pack_block(1)), 0, kBlockBytes);
    expect_refused(MountProblem::kNoCheckpoint, -EUCLEAN);
  }
}

TEST_P(MountTest, a_checkpoint_that_cannot_be_read_leaves_the_other) {
  build();
  fail_reads_of(image().geometry().pack_block(0));
  expect_mounted();
  EXPECT_EQ(rig().volume().checkpoint_pack, 1u);
  fail_reads_of(image().geometry().pack_block(1));
  expect_refused(MountProblem::kDevice, -EIO);
}

TEST_P(MountTest, checkpoint_fields_that_make_no_sense_are_refused) {
  const std::function<void(format::Checkpoint&)> changes[] = {
      [](format::Checkpoint& at) { at.user_block_count = 0; },
      [](format::Checkpoint& at) { at.user_block_count = uint64_t{1} << 40; },
      [](format::Checkpoint& at) { at.sit_ver_bitmap_bytesize = 1; },
      [](format::Checkpoint& at) { at.nat_ver_bitmap_bytesize = 4000; },
      [](format::Checkpoint& at) { at.cp_pack_start_sum = 0; },
      [](format::Checkpoint& at) { at.cp_pack_start_sum = 100; },
      [](format::Checkpoint& at) { at.cur_node_segno[1] = 0x7fffffff; },
      [](format::Checkpoint& at) { at.cur_data_blkoff[0] = 512; },
  };
  for (const auto& change : changes) {
    build();
    change(image().checkpoint(0));
    image().seal_checkpoint(0);
    expect_refused(MountProblem::kCheckpointField, -EUCLEAN);
  }
}

TEST_P(MountTest, a_volume_that_was_not_unmounted_says_so) {
  build();
  image().checkpoint(0).ckpt_flags =
      image().checkpoint(0).ckpt_flags & ~uint32_t{format::kCheckpointUmount};
  // Without the flag the node summaries are not there, and the pack is shorter.
  image().checkpoint(0).cp_pack_total_block_count =
      image().checkpoint(0).cp_pack_total_block_count - 3;
  image().seal_checkpoint(0);
  expect_mounted();
  EXPECT_FALSE(rig().volume().cleanly_unmounted());
  Inode inode{};
  EXPECT_EQ(load(kFileIno, inode), 0);
}

TEST_P(MountTest, a_volume_with_checkpoints_switched_off_is_refused) {
  build();
  image().checkpoint(0).ckpt_flags =
      image().checkpoint(0).ckpt_flags | uint32_t{format::kCheckpointDisabled};
  image().seal_checkpoint(0);
  expect_refused(MountProblem::kCheckpointDisabled, -EOPNOTSUPP);
}

/// Moves the NAT entry of the one file into the journal, which then alone has it right.
void move_to_journal(TestImage& image, format::NatJournal& journal) {
  journal.count = 1;
  journal.entries[0].nid = kFileIno;
  journal.entries[0].ne = image.nat_entry(kFileIno);
  image.nat_entry(kFileIno).block_addr = 0;
}

TEST_P(MountTest, the_nat_journal_outranks_the_nat) {
  build();
  format::Checkpoint& checkpoint = image().checkpoint(0);
  const uint32_t base = image().geometry().pack_block(0);
  auto& summary = *reinterpret_cast<format::SummaryBlock*>(
      image().block(base + format::summary_block_in_pack(checkpoint, format::kHotData)));
  move_to_journal(image(), summary.nat_journal);
  expect_mounted();
  EXPECT_EQ(rig().volume().nat_journal_count, 1u);
  Inode inode{};
  ASSERT_EQ(load(kFileIno, inode), 0);
  EXPECT_EQ(inode.size_bytes, kOneFileBytes);
}

TEST_P(MountTest, journals_of_compact_summaries_are_found) {
  build();
  format::Checkpoint& checkpoint = image().checkpoint(0);
  const uint32_t start = image().geometry().pack_block(0) + checkpoint.cp_pack_start_sum;
  auto& head = *reinterpret_cast<format::CompactSummaryHead*>(image().block(start));
  std::memset(static_cast<void*>(&head), 0, sizeof(head));
  move_to_journal(image(), head.nat_journal);
  head.sit_journal.count = 1;
  head.sit_journal.entries[0].segno = 5;
  checkpoint.ckpt_flags = checkpoint.ckpt_flags | uint32_t{format::kCheckpointCompactSummary};
  image().seal_checkpoint(0);
  expect_mounted();
  EXPECT_EQ(rig().volume().nat_journal_count, 1u);
  ASSERT_EQ(rig().volume().sit_journal_count, 1u);
  EXPECT_EQ(rig().volume().sit_journal[0].segno, 5u);
  Inode inode{};
  EXPECT_EQ(load(kFileIno, inode), 0);
}

TEST_P(MountTest, journals_with_more_entries_than_fit_are_refused) {
  build();
  const uint32_t base = image().geometry().pack_block(0);
  auto* const hot = reinterpret_cast<format::SummaryBlock*>(
      image().block(base + format::summary_block_in_pack(image().checkpoint(0), format::kHotData)));
  auto* const cold = reinterpret_cast<format::SummaryBlock*>(image().block(
      base + format::summary_block_in_pack(image().checkpoint(0), format::kColdData)));
  hot->nat_journal.count = format::kNatJournalEntries + 1;
  expect_refused(MountProblem::kJournal, -EUCLEAN);
  hot->nat_journal.count = 0;
  cold->sit_journal.count = 0xffff;
  expect_refused(MountProblem::kJournal, -EUCLEAN);
}

TEST_P(MountTest, version_bits_choose_the_copy_of_a_nat_block) {
  build();
  const format::Geometry& geometry = image().geometry();
  std::memcpy(image().block(geometry.nat_block(0, true)),
              image().block(geometry.nat_block(0, false)), kBlockBytes);
  std::memset(image().block(geometry.nat_block(0, false)), 0xff, kBlockBytes);
  format::Checkpoint& checkpoint = image().checkpoint(0);
  const auto places = format::version_bitmap_places(checkpoint, geometry.cp_payload);
  format::set_msb_bit(reinterpret_cast<uint8_t*>(&checkpoint) + places.nat_offset, 0, true);
  image().seal_checkpoint(0);
  expect_mounted();
  Inode inode{};
  EXPECT_EQ(load(kFileIno, inode), 0);
  EXPECT_EQ(inode.size_bytes, kOneFileBytes);
}

TEST_P(MountTest, a_root_that_is_no_directory_is_refused) {
  build();
  format::NodeBlock& root = image().node(format::kRootIno);
  root.inode.i_mode = format::kModeRegular | 0644;
  expect_refused(MountProblem::kRootDirectory, -EUCLEAN);
  root.inode.i_mode = format::kModeDirectory | 0755;
  expect_mounted();
  image().nat_entry(format::kRootIno).block_addr = 0;
  expect_refused(MountProblem::kRootDirectory, -EUCLEAN);
  EXPECT_GT(count_findings(*rig().volume().corruptions), 0u);
}

TEST_P(MountTest, inodes_that_cannot_be_are_reported) {
  struct Case {
    std::function<void(TestImage&)> damage;
    Structure structure;
  };
  const Case cases[] = {
      {[](TestImage& image) { image.nat_entry(kFileIno).block_addr = 7; }, Structure::kNatEntry},
      {[](TestImage& image) { image.nat_entry(kFileIno).block_addr = 0xfffffff0; },
       Structure::kNatEntry},
      {[](TestImage& image) { image.nat_entry(kFileIno).ino = 99; }, Structure::kNatEntry},
      {[](TestImage& image) { image.node(kFileIno).footer.nid = 9; }, Structure::kNodeFooter},
      {[](TestImage& image) { image.node(kFileIno).footer.ino = 9; }, Structure::kNodeFooter},
      {[](TestImage& image) { image.node(kFileIno).inode.i_mode = 0; }, Structure::kInode},
      {[](TestImage& image) { image.node(kFileIno).inode.i_size = uint64_t{1} << 60; },
       Structure::kInode},
      {[](TestImage& image) { image.node(kFileIno).inode.i_inline = format::kInlineData; },
       Structure::kInode},
      {[](TestImage& image) { image.node(kFileIno).inode.i_inline = format::kInlineDentry; },
       Structure::kInode},
  };
  for (const Case& one : cases) {
    build();
    one.damage(image());
    expect_mounted();
    Inode inode{};
    EXPECT_EQ(load(kFileIno, inode), -EUCLEAN);
    ASSERT_GT(count_findings(*rig().volume().corruptions), 0u);
    EXPECT_EQ(static_cast<int>(rig().volume().corruptions->records[0].structure),
              static_cast<int>(one.structure));
  }
  build();
  expect_mounted();
  Inode inode{};
  EXPECT_EQ(load(0, inode), -EUCLEAN);
  EXPECT_EQ(load(1000, inode), -EUCLEAN) << "a free number";
  EXPECT_EQ(load(rig().volume().geometry.nid_count(), inode), -EUCLEAN);
  EXPECT_EQ(load(0xffffffff, inode), -EUCLEAN);
}

TEST_P(MountTest, a_wrong_inode_checksum_is_noticed) {
  build(image::kFeaturesOffered);
  const uint32_t ino = kFileIno + 1;  // after lost+found
  image().node(ino).inode.i_uid = 12;
  expect_mounted();
  Inode inode{};
  EXPECT_EQ(load(ino, inode), -EUCLEAN);
  EXPECT_EQ(rig().volume().corruptions->records[0].structure, Structure::kInodeChecksum);
  image().seal_inode(ino);
  expect_mounted();
  EXPECT_EQ(load(ino, inode), 0);
  EXPECT_EQ(inode.uid, 12u);
}

}  // namespace
}  // namespace gofs::f2fs
