// SPDX-License-Identifier: Apache-2.0
//
// Places: areas of a volume, slots of an inode, nodes of a file, levels of a directory. Expected
// values were seen on volumes that f2fs-tools and Linux wrote; sweeps compare closed forms with the
// definition counted out.
#include <gtest/gtest.h>

#include <cerrno>
#include <cstdint>
#include <cstring>
#include <memory>

#include "format/f2fs.h"
#include "format/volume_plan.h"

namespace gofs::format {
namespace {

constexpr uint64_t kMiB = uint64_t{1} << 20;
constexpr uint64_t kGiB = uint64_t{1} << 30;
constexpr uint64_t kTiB = uint64_t{1} << 40;

struct PlanCase {
  uint64_t bytes;
  uint32_t sit_both;
  uint32_t nat_both;
  uint32_t ssa;
  uint32_t main;
  uint32_t main_blkaddr;
  uint32_t payload;
  uint32_t nat_bitmap;
  uint32_t reserved;
  uint32_t overprovision;
  uint64_t user_blocks;
};

class PlanTest : public testing::TestWithParam<PlanCase> {};

TEST_P(PlanTest, divides_as_mkfs_does) {
  const PlanCase& want = GetParam();
  const auto plan = plan_volume(want.bytes / kBlockBytes, 0);
  ASSERT_TRUE(plan.ok());
  const Geometry& geometry = plan.value.geometry;
  EXPECT_EQ(geometry.segment0_blkaddr, 512u);
  EXPECT_EQ(2 * geometry.sit_segments, want.sit_both);
  EXPECT_EQ(2 * geometry.nat_segments, want.nat_both);
  EXPECT_EQ(geometry.ssa_segments, want.ssa);
  EXPECT_EQ(geometry.main_segments, want.main);
  EXPECT_EQ(geometry.main_blkaddr, want.main_blkaddr);
  EXPECT_EQ(geometry.cp_payload, want.payload);
  EXPECT_EQ(geometry.nat_bitmap_bytes(), want.nat_bitmap);
  EXPECT_EQ(plan.value.rsvd_segment_count, want.reserved);
  EXPECT_EQ(plan.value.overprov_segment_count, want.overprovision);
  EXPECT_EQ(plan.value.user_block_count, want.user_blocks);
  EXPECT_LE(geometry.main_end(), geometry.block_count);
  EXPECT_GE(geometry.ssa_segments * kBlocksPerSegment, geometry.main_segments);
  EXPECT_GE(geometry.sit_segments * kBlocksPerSegment, geometry.sit_blocks_used());
}

INSTANTIATE_TEST_SUITE_P(
    sizes, PlanTest,
    testing::Values(
        PlanCase{64 * kMiB, 2, 2, 1, 24, 4096, 0, 64, 13, 16, 4096},
        PlanCase{65 * kMiB, 2, 2, 1, 24, 4096, 0, 64, 13, 16, 4096},
        PlanCase{100 * kMiB, 2, 2, 1, 42, 4096, 0, 64, 16, 22, 10240},
        PlanCase{512 * kMiB, 2, 2, 1, 248, 4096, 0, 64, 28, 50, 101376},
        PlanCase{600 * kMiB, 2, 2, 1, 292, 4096, 0, 64, 31, 52, 122880},
        PlanCase{1 * kGiB, 2, 4, 1, 502, 5120, 0, 128, 39, 68, 222208},
        PlanCase{4 * kGiB, 2, 10, 4, 2029, 9728, 0, 320, 71, 132, 971264},
        PlanCase{16 * kGiB, 2, 36, 16, 8135, 29184, 0, 1152, 135, 260, 4032000},
        PlanCase{100 * kGiB, 4, 116, 100, 50977, 114176, 0, 3712, 325, 644, 25770496},
        PlanCase{200000 * kMiB, 8, 112, 196, 99681, 163328, 0, 3584, 452, 898, 50576896},
        PlanCase{1 * kTiB, 38, 82, 1024, 523141, 587264, 0, 2624, 1007, 2051, 266798080},
        PlanCase{3000000 * kMiB, 108, 12, 2930, 1496947, 1563136, 0, 384, 1674, 3468, 764661248},
        PlanCase{4 * kTiB, 150, 120, 4096, 2092783, 2236928, 2, 3840, 2008, 4098, 1069406720},
        PlanCase{15 * kTiB, 560, 120, 15359, 7848278, 8213504, 5, 3840, 4008, 7930, 4014258176},
        PlanCase{16 * kTiB - kMiB, 596, 120, 16383, 8371505, 8756224, 5, 3840, 4008, 8191,
                 4282016768}));

TEST(Plan, refuses_sizes_that_f2fs_cannot_have) {
  EXPECT_EQ(plan_volume(0, 0).error, -ENOSPC);
  EXPECT_EQ(plan_volume((64 * kMiB - 1) / kBlockBytes, 0).error, -ENOSPC);
  EXPECT_TRUE(plan_volume(16 * kTiB / kBlockBytes, 0).ok());
  EXPECT_EQ(plan_volume(16 * kTiB / kBlockBytes + 1, 0).error, -EFBIG);
}

TEST(Plan, every_size_leaves_room_for_users_and_fits_its_tables) {
  for (uint64_t bytes = kVolumeBytesMin; bytes < kVolumeBytesMax; bytes += bytes / 37) {
    const auto plan = plan_volume(bytes / kBlockBytes, 0);
    ASSERT_TRUE(plan.ok());
    const Geometry& geometry = plan.value.geometry;
    EXPECT_GT(plan.value.user_block_count, 0u);
    EXPECT_LT(plan.value.overprov_segment_count, geometry.main_segments);
    EXPECT_LE(geometry.main_end(), geometry.block_count);
    EXPECT_GE(geometry.sit_segments * kBlocksPerSegment, geometry.sit_blocks_used());
    EXPECT_GE(geometry.ssa_segments * kBlocksPerSegment, geometry.main_segments);
    const uint32_t in_block =
        geometry.nat_bitmap_bytes() + (geometry.cp_payload > 0 ? 0 : geometry.sit_bitmap_bytes());
    EXPECT_LE(kCheckpointBitmapOffset + in_block, kCheckpointChecksumOffset);
    EXPECT_LE(geometry.cp_payload > 0 ? geometry.sit_bitmap_bytes() : 0,
              geometry.cp_payload * kBlockBytes);
  }
}

TEST(Geometry, table_copies_lie_as_two_halves_and_by_segment) {
  const Geometry geometry = plan_volume(16 * kGiB / kBlockBytes, 0).value.geometry;
  EXPECT_EQ(geometry.sit_block(3, false), geometry.sit_blkaddr + 3);
  EXPECT_EQ(geometry.sit_block(3, true), geometry.sit_blkaddr + 512 + 3);
  EXPECT_EQ(geometry.nat_block(511, false), geometry.nat_blkaddr + 511);
  EXPECT_EQ(geometry.nat_block(511, true), geometry.nat_blkaddr + 1023);
  EXPECT_EQ(geometry.nat_block(512, false), geometry.nat_blkaddr + 1024);
  EXPECT_EQ(geometry.nat_block(512, true), geometry.nat_blkaddr + 1536);
  EXPECT_EQ(geometry.nat_block(geometry.nat_blocks() - 1, true), geometry.ssa_blkaddr - 1);
  EXPECT_EQ(geometry.sit_block(geometry.sit_segments * 512 - 1, true), geometry.nat_blkaddr - 1);

  const uint32_t block = geometry.block_of(77, 300);
  EXPECT_EQ(geometry.segno_of(block), 77u);
  EXPECT_EQ(geometry.offset_in_segment(block), 300u);
  EXPECT_TRUE(geometry.in_main(geometry.main_blkaddr));
  EXPECT_FALSE(geometry.in_main(geometry.main_blkaddr - 1));
  EXPECT_FALSE(geometry.in_main(static_cast<uint32_t>(geometry.main_end())));
  EXPECT_FALSE(geometry.in_main(kNewAddr));

  const Geometry large = plan_volume(4 * kTiB / kBlockBytes, 0).value.geometry;
  EXPECT_EQ(large.nid_count(), 13977600u);
}

TEST(Checkpoint, bitmaps_have_three_arrangements) {
  Checkpoint checkpoint{};
  checkpoint.sit_ver_bitmap_bytesize = 64;
  checkpoint.nat_ver_bitmap_bytesize = 128;
  auto places = version_bitmap_places(checkpoint, 0);
  EXPECT_EQ(places.sit_offset, 192u);
  EXPECT_EQ(places.nat_offset, 256u);
  EXPECT_TRUE(places.fit);

  checkpoint.sit_ver_bitmap_bytesize = 64 * 75;  // 4 TiB
  places = version_bitmap_places(checkpoint, 2);
  EXPECT_EQ(places.nat_offset, 192u);
  EXPECT_EQ(places.sit_offset, 4096u);
  EXPECT_TRUE(places.fit);

  checkpoint.ckpt_flags = kCheckpointLargeNatBitmap;
  places = version_bitmap_places(checkpoint, 2);
  EXPECT_EQ(places.nat_offset, 196u);
  EXPECT_EQ(places.sit_offset, 196u + 128u);
  EXPECT_TRUE(places.fit);

  checkpoint.nat_ver_bitmap_bytesize = 0xFFFFFFFF;
  EXPECT_FALSE(version_bitmap_places(checkpoint, 2).fit);
  checkpoint.ckpt_flags = 0;
  EXPECT_FALSE(version_bitmap_places(checkpoint, 0).fit);
}

TEST(Checkpoint, checksum_leaves_itself_out) {
  auto block = std::make_unique<uint8_t[]>(kBlockBytes);
  block[17] = 3;
  block[4000] = 5;
  const uint32_t at_end = checkpoint_checksum(block.get(), 4092);
  const uint32_t at_192 = checkpoint_checksum(block.get(), 192);
  store_u32(block.get() + 4092, at_end);
  EXPECT_EQ(checkpoint_checksum(block.get(), 4092), at_end);
  EXPECT_NE(checkpoint_checksum(block.get(), 192), at_192);  // covers what follows it
  EXPECT_TRUE(checksum_offset_valid(192));
  EXPECT_FALSE(checksum_offset_valid(191));
  EXPECT_FALSE(checksum_offset_valid(4093));
  EXPECT_FALSE(checksum_offset_valid(4096));
}

TEST(Checkpoint, summaries_are_found_from_the_end_of_the_pack) {
  Checkpoint checkpoint{};
  checkpoint.cp_pack_total_block_count = 8;
  checkpoint.ckpt_flags = kCheckpointUmount;
  EXPECT_EQ(summary_block_in_pack(checkpoint, kHotData), 1u);
  EXPECT_EQ(summary_block_in_pack(checkpoint, kHotNode), 4u);
  EXPECT_EQ(summary_block_in_pack(checkpoint, kColdNode), 6u);
  checkpoint.ckpt_flags = 0;
  EXPECT_EQ(summary_block_in_pack(checkpoint, kHotData), 4u);
  EXPECT_EQ(summary_block_in_pack(checkpoint, kColdData), 6u);
}

TEST(Summary, compact_entries_stop_before_a_footer_would) {
  EXPECT_EQ(compact_summary_place(0).offset_bytes, 1014u);
  EXPECT_EQ(compact_summary_place(438).block, 0u);
  EXPECT_LE(compact_summary_place(438).offset_bytes + 7, 4091u);
  EXPECT_EQ(compact_summary_place(439).block, 1u);
  EXPECT_EQ(compact_summary_place(439).offset_bytes, 0u);
  EXPECT_EQ(compact_summary_place(439 + 583).block, 1u);
  EXPECT_LE(compact_summary_place(439 + 583).offset_bytes + 7, 4091u);
  EXPECT_EQ(compact_summary_place(439 + 584).block, 2u);
}

class InodeLayoutTest : public testing::Test {
 protected:
  std::unique_ptr<NodeBlock> block_ = std::make_unique<NodeBlock>();
  Inode& inode_ = block_->inode;
};

TEST_F(InodeLayoutTest, plain_inode_has_all_slots) {
  const InodeLayout layout = inode_layout(inode_, 0);
  EXPECT_TRUE(layout.sane);
  EXPECT_EQ(layout.slot_count, 923u);
  EXPECT_EQ(layout.inline_bytes, 3688u);
  EXPECT_EQ(layout.inline_offset, 364u);
  EXPECT_EQ(layout.xattr_bytes, 0u);
}

TEST_F(InodeLayoutTest, inline_xattr_or_inline_dentry_takes_50_words) {
  for (const uint8_t flag : {uint8_t{kInlineXattr}, uint8_t{kInlineDentry}}) {
    inode_.i_inline = flag;
    const InodeLayout layout = inode_layout(inode_, 0);
    EXPECT_TRUE(layout.sane);
    EXPECT_EQ(layout.slot_count, 873u);
    EXPECT_EQ(layout.inline_bytes, 3488u);
    EXPECT_EQ(layout.xattr_offset, 3852u);
    EXPECT_EQ(layout.xattr_bytes, 200u);
  }
  inode_.i_inline = kInlineData;
  EXPECT_EQ(inode_layout(inode_, 0).slot_count, 923u);
}

TEST_F(InodeLayoutTest, extra_attributes_shift_the_slots) {
  inode_.i_inline = kInlineExtraAttr | kInlineXattr;
  extra_attr(inode_).i_extra_isize = 36;
  const InodeLayout layout = inode_layout(inode_, kFeatureExtraAttr);
  EXPECT_TRUE(layout.sane);
  EXPECT_EQ(layout.extra_words, 9u);
  EXPECT_EQ(layout.word_of_slot(0), 9u);
  EXPECT_EQ(layout.slot_count, 864u);
  EXPECT_EQ(layout.inline_bytes, 3452u);
  EXPECT_EQ(layout.inline_offset, 400u);
  EXPECT_TRUE(has_extra_field(inode_, kExtraCompressEnd));
  EXPECT_FALSE(inode_layout(inode_, 0).sane);  // the volume has no such feature
}

TEST_F(InodeLayoutTest, flexible_inline_xattr_says_its_own_size) {
  constexpr uint32_t kFeatures = kFeatureExtraAttr | kFeatureFlexibleInlineXattr;
  inode_.i_inline = kInlineExtraAttr;
  extra_attr(inode_).i_extra_isize = 8;
  extra_attr(inode_).i_inline_xattr_size = 100;
  InodeLayout layout = inode_layout(inode_, kFeatures);
  EXPECT_TRUE(layout.sane);
  EXPECT_EQ(layout.slot_count, 923u - 2 - 100);
  EXPECT_EQ(layout.xattr_offset, 4052u - 400);
  EXPECT_FALSE(has_extra_field(inode_, kExtraChecksumEnd));
  inode_.i_inline = 0;
  EXPECT_FALSE(inode_layout(inode_, kFeatures).sane);
}

TEST_F(InodeLayoutTest, whatever_the_inode_says_areas_stay_inside) {
  const uint16_t values[] = {0,  1,   3,   4,   7,   8,   35,  36,   37,
                             40, 200, 914, 921, 922, 923, 924, 3692, 65535};
  for (const uint16_t extra : values) {
    for (const uint16_t xattr : values) {
      for (unsigned inline_bits = 0; inline_bits < 64; ++inline_bits) {
        for (const uint32_t feature : {0u, 8u, 0x48u, 0x40u}) {
          inode_.i_inline = static_cast<uint8_t>(inline_bits);
          extra_attr(inode_).i_extra_isize = extra;
          extra_attr(inode_).i_inline_xattr_size = xattr;
          const InodeLayout layout = inode_layout(inode_, feature);
          ASSERT_GE(layout.slot_count, 1u);
          ASSERT_LE(layout.word_of_slot(layout.slot_count - 1), 922u);
          ASSERT_GE(layout.inline_offset, kInodeAddrOffset + 4);
          ASSERT_LE(layout.inline_offset + layout.inline_bytes, layout.xattr_offset);
          ASSERT_EQ(layout.xattr_offset + layout.xattr_bytes, kInodeAddrEnd);
          const DentryArea area = inline_dentry_area(layout.inline_bytes);
          ASSERT_LE(area.bitmap_bytes, area.dentry_offset);
          ASSERT_EQ(area.name_at(area.slot_count), layout.inline_bytes);
        }
      }
    }
  }
}

TEST_F(InodeLayoutTest, checksum_ignores_only_its_own_bytes) {
  uint8_t uuid[16];
  for (uint8_t i = 0; i < 16; ++i) uuid[i] = i;
  const uint32_t seed = inode_checksum_seed(uuid);
  block_->footer.ino = 77;
  const uint32_t sum = inode_checksum(seed, *block_);
  extra_attr(inode_).i_inode_checksum = sum;
  EXPECT_EQ(inode_checksum(seed, *block_), sum);
  block_->footer.next_blkaddr = 1;
  EXPECT_NE(inode_checksum(seed, *block_), sum);
}

TEST(Device, numbers_have_two_encodings) {
  EXPECT_EQ(encode_device({1, 3}).slot0, 0x103u);
  EXPECT_EQ(encode_device({259, 1048575}).slot0, 0u);
  EXPECT_EQ(encode_device({259, 1048575}).slot1, 0xFFF103FFu);
  EXPECT_EQ(encode_device({300, 70000}).slot1, 0x11112C70u);
  for (const uint32_t major : {0u, 1u, 8u, 255u, 256u, 259u, 4095u}) {
    for (const uint32_t minor : {1u, 255u, 256u, 4096u, 70000u, 1048575u}) {
      const DeviceSlots slots = encode_device({major, minor});
      const DeviceNumber device = decode_device(slots.slot0, slots.slot1);
      EXPECT_EQ(device.major, major);
      EXPECT_EQ(device.minor, minor);
    }
  }
}

TEST(NodePath, node_offsets_seen_on_disk) {
  // Offsets of the footers of a file with blocks in all five trees.
  EXPECT_EQ(kIndirect1Offset, 3u);
  EXPECT_EQ(kIndirect2Offset, 4u + 1018);
  EXPECT_EQ(kDoubleIndirectOffset, 2041u);
  EXPECT_EQ(file_blocks_max(923), 1057053439u);

  uint32_t at[4];
  uint32_t node[4];
  const uint64_t second_direct = 923 + 1018;
  ASSERT_EQ(node_path(second_direct + 5, 923, at, node), 1);
  EXPECT_EQ(at[0], 1u);
  EXPECT_EQ(at[1], 5u);
  EXPECT_EQ(node[1], 2u);

  const uint64_t indirect = 923 + 2 * 1018;
  ASSERT_EQ(node_path(indirect + 11 * 1018 + 7, 923, at, node), 2);
  EXPECT_EQ(node[1], 3u);
  EXPECT_EQ(node[2], 15u);
  EXPECT_EQ(at[2], 7u);

  const uint64_t double_indirect = indirect + 2 * 1018 * 1018;
  ASSERT_EQ(node_path(double_indirect, 923, at, node), 3);
  EXPECT_EQ(node[1], 2041u);
  EXPECT_EQ(node[2], 2042u);
  EXPECT_EQ(node[3], 2043u);
  ASSERT_EQ(node_path(double_indirect + 119 * 1018, 923, at, node), 3);
  EXPECT_EQ(node[3], 2162u);
  const uint64_t far = double_indirect + uint64_t{940} * 1018 * 1018;
  ASSERT_EQ(node_path(far, 923, at, node), 3);
  EXPECT_EQ(node[2], 2042u + 940 * 1019);
  EXPECT_EQ(at[1], 940u);
}

TEST(NodePath, walks_every_boundary_and_ends) {
  // Paths of neighbours differ by one step of an odometer, across all boundaries.
  for (const uint32_t slots : {923u, 873u, 864u, 1u}) {
    const uint64_t edges[] = {0,
                              slots,
                              slots + kDirectBlocks,
                              slots + 2 * kDirectBlocks,
                              slots + 2 * kDirectBlocks + kIndirectBlocks,
                              slots + 2 * kDirectBlocks + 2 * kIndirectBlocks};
    const int depths[] = {0, 1, 1, 2, 2, 3};
    const uint32_t first[] = {0, 0, 1, 2, 3, 4};
    for (int i = 0; i < 6; ++i) {
      uint32_t at[4];
      uint32_t node[4];
      ASSERT_EQ(node_path(edges[i], slots, at, node), depths[i]);
      EXPECT_EQ(at[0], first[i]);
      for (int k = 1; k <= depths[i]; ++k) {
        EXPECT_EQ(at[k], 0u);
        EXPECT_EQ(node[k], node[1] + static_cast<uint32_t>(k) - 1);
      }
      if (i == 0) continue;
      ASSERT_EQ(node_path(edges[i] - 1, slots, at, node), depths[i - 1]);
      for (int k = 1; k <= depths[i - 1]; ++k) EXPECT_EQ(at[k], 1017u);
    }
    uint32_t at[4];
    uint32_t node[4];
    EXPECT_EQ(node_path(file_blocks_max(slots) - 1, slots, at, node), 3);
    EXPECT_EQ(at[1], 1017u);
    EXPECT_EQ(at[3], 1017u);
    // Each node knows the first block that its addresses are of.
    for (uint64_t block = 0; block < edges[5] + 3 * kIndirectBlocks; block += 331) {
      const int depth = node_path(block, slots, at, node);
      ASSERT_EQ(first_block_of_node(node[depth], slots) + at[depth], block) << slots;
      for (int k = 1; k < depth; ++k) {
        ASSERT_EQ(first_block_of_node(node[k], slots), kNoFileBlock) << node[k];
      }
    }
    ASSERT_EQ(node_path(file_blocks_max(slots) - 1, slots, at, node), 3);
    EXPECT_EQ(first_block_of_node(node[3], slots) + at[3], file_blocks_max(slots) - 1);
    EXPECT_EQ(first_block_of_node(node[3] + 1, slots), kNoFileBlock);
    EXPECT_EQ(first_block_of_node(node[3] + 2, slots), kNoFileBlock);
    EXPECT_EQ(first_block_of_node(kXattrNodeOffset, slots), kNoFileBlock);
    EXPECT_EQ(node_path(file_blocks_max(slots), slots, at, node), -1);
    EXPECT_EQ(node_path(~uint64_t{0}, slots, at, node), -1);
  }
}

TEST(Dentry, inline_area_of_an_ordinary_inode) {
  const DentryArea area = inline_dentry_area(3488);
  EXPECT_EQ(area.slot_count, 182u);
  EXPECT_EQ(area.bitmap_bytes, 23u);
  EXPECT_EQ(area.dentry_offset, 30u);
  EXPECT_EQ(area.name_offset, 30u + 182 * 11);
  EXPECT_EQ(dentry_block_area().name_at(213), 4088u);
}

TEST(Dentry, names_end_within_their_area) {
  const DentryArea area = dentry_block_area();
  EXPECT_TRUE(area.name_fits(0, 255));
  EXPECT_TRUE(area.name_fits(182, 255));
  EXPECT_FALSE(area.name_fits(183, 255));
  EXPECT_TRUE(area.name_fits(213, 8));
  EXPECT_FALSE(area.name_fits(213, 9));
  EXPECT_FALSE(area.name_fits(214, 1));
  EXPECT_FALSE(area.name_fits(0, 256));
  EXPECT_FALSE(area.name_fits(0xFFFFFFFF, 1));
  EXPECT_EQ(name_slots(8), 1u);
  EXPECT_EQ(name_slots(9), 2u);
  EXPECT_EQ(name_slots(255), 32u);
}

TEST(Dentry, level_starts_are_the_sum_of_the_levels_before) {
  const uint64_t seen[] = {0, 2, 6, 14, 30, 62};
  for (uint32_t level = 0; level < 6; ++level) EXPECT_EQ(dir_level_start(level, 0), seen[level]);
  for (uint32_t dir_level : {0u, 1u, 3u, 29u, 30u, 31u, 60u, 255u}) {
    uint64_t start = 0;
    for (uint32_t level = 0; level <= kDirDepthMax; ++level) {
      ASSERT_EQ(dir_level_start(level, dir_level), start) << level << " " << dir_level;
      const uint64_t last = dir_bucket_start(level, dir_level, dir_buckets(level, dir_level) - 1);
      start += uint64_t{dir_buckets(level, dir_level)} * dir_bucket_blocks(level);
      ASSERT_EQ(last + dir_bucket_blocks(level), start);
    }
  }
}

TEST(Dentry, modes_have_types) {
  EXPECT_EQ(file_type_of_mode(0100644), kTypeRegular);
  EXPECT_EQ(file_type_of_mode(0040755), kTypeDirectory);
  EXPECT_EQ(file_type_of_mode(0120777), kTypeSymlink);
  EXPECT_EQ(file_type_of_mode(0020666), kTypeCharDevice);
  EXPECT_EQ(file_type_of_mode(0060660), kTypeBlockDevice);
  EXPECT_EQ(file_type_of_mode(0010644), kTypeFifo);
  EXPECT_EQ(file_type_of_mode(0140755), kTypeSocket);
  EXPECT_EQ(file_type_of_mode(0), kTypeUnknown);
}

TEST(Xattr, entries_are_padded_to_words) {
  XattrEntry entry{};
  entry.e_name_len = 4;
  entry.e_value_size = 5;
  EXPECT_EQ(entry.padded_bytes(), 16u);
  entry.e_value_size = 65535;
  entry.e_name_len = 255;
  EXPECT_EQ(entry.padded_bytes(), 65796u);
}

}  // namespace
}  // namespace gofs::format
