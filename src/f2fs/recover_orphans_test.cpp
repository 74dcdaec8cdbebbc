// SPDX-License-Identifier: Apache-2.0
//
// Files of all kinds that are unlinked while they are open, and freed by who mounts next: all that
// belonged to them and nothing else, with disks that fail, power cuts, and lists that say what
// cannot be. fsck.f2fs judges what is on the disk.
#include "f2fs/recover_orphans.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <functional>
#include <map>
#include <random>
#include <string>
#include <vector>

#include "f2fs/changing_for_test.hpp"
#include "f2fs/links.h"
#include "f2fs/orphans_for_test.hpp"
#include "ssd/power_cut.h"

namespace gofs::f2fs {
namespace {

using gofs::testing::run_alone;
using gofs::testing::TestImage;
using gofs::testing::VolumeRigOptions;

constexpr uint32_t kFeaturesOfInodes = format::kFeatureExtraAttr | format::kFeatureInodeChecksum |
                                       format::kFeatureFlexibleInlineXattr |
                                       format::kFeatureInodeCrtime;

void add_one(image::ImageBuilder& builder, const std::string& name,
             const std::function<void(image::FileSpec&)>& choose) {
  image::FileSpec file;
  file.name = name;
  file.content = image::pattern_content(name.size());
  choose(file);
  TestImage::must(builder.add_file(builder.root(), file));
}

/// Files that stay, named `kept...`, and one of each kind that goes, named `gone...`.
void fill_all_kinds(image::ImageBuilder& builder) {
  const image::Xattr large{1, "large", std::string(2000, 'x')};
  for (const std::string prefix : {"kept", "gone"}) {
    add_one(builder, prefix + " empty", [](image::FileSpec&) {});
    add_one(builder, prefix + " inline", [](image::FileSpec& file) {
      file.size_bytes = 700;
      file.inline_data = true;
      file.inline_xattr = true;
    });
    add_one(builder, prefix + " some", [](image::FileSpec& file) { file.size_bytes = 123'456; });
    add_one(builder, prefix + " xattr", [&](image::FileSpec& file) {
      file.size_bytes = 5000;
      file.xattrs = {large};
    });
    add_one(builder, prefix + " sparse", [](image::FileSpec& file) {
      file.size_bytes = uint64_t{10} << 30;
      file.sparse = true;
      for (uint32_t i = 0; i < 30; ++i) file.ranges.push_back({i * i * 2900, 2, i % 7 == 0});
    });
    TestImage::must(builder.add_symlink(builder.root(), prefix + " link", "over there", {}));
    TestImage::must(
        builder.add_special(builder.root(), prefix + " fifo", format::kModeFifo, {}, {}));
    for (const bool inlined : {true, false}) {
      image::DirectoryOptions options;
      options.inline_dentries = inlined;
      if (!inlined) options.xattrs = {large};
      image::Directory directory;
      TestImage::must(builder.add_directory(builder.root(),
                                            prefix + (inlined ? " inline directory" : " directory"),
                                            {}, options, &directory));
    }
  }
}

/// `count` small files that go and one that stays.
TestImage::Fill fill_with_gone(uint32_t count) {
  return [count](image::ImageBuilder& builder) {
    add_one(builder, "kept", [](image::FileSpec& file) { file.size_bytes = 50'000; });
    for (uint32_t i = 0; i < count; ++i) {
      add_one(builder, "gone" + std::to_string(i), [](image::FileSpec& file) {
        file.size_bytes = 10;
        file.inline_data = true;
      });
    }
  };
}

/// Few that go among many that stay, so that freeing them changes several blocks of the NAT.
void fill_far_apart(image::ImageBuilder& builder) {
  for (uint32_t i = 0; i < 2800; ++i) {
    const std::string name = (i % 150 == 0 ? "gone" : "kept") + std::to_string(i);
    add_one(builder, name, [i](image::FileSpec& file) {
      file.size_bytes = i % 450 == 0 ? 30'000 : 0;
      file.inline_data = i % 450 != 0;
    });
  }
}

/// Not much more than one operation needs.
constexpr uint32_t kTightPages = 128;

VolumeRigOptions roomy_cache() {
  VolumeRigOptions options;
  options.filesystem.cache_pages = 4096;
  options.ssd.fault_capacity = 1;
  return options;
}

/// What the volume counts.
struct Counts {
  uint64_t blocks;
  uint32_t nodes;
  uint32_t inodes;

  friend bool operator==(const Counts&, const Counts&) = default;
  friend std::ostream& operator<<(std::ostream& out, const Counts& counts) {
    return out << counts.blocks << " blocks, " << counts.nodes << " nodes, " << counts.inodes
               << " inodes";
  }
};

Counts counts_of(const Volume& volume) {
  return {volume.valid_block_count, volume.valid_node_count, volume.valid_inode_count};
}

class RecoverOrphansTest : public ::testing::TestWithParam<uint32_t> {
 protected:
  uint32_t width() const { return GetParam(); }

  static bool goes(const std::string& name) { return name.starts_with("gone"); }

  /// As unlink or rmdir of what is open.
  static int unlink_open(const simt::Warp& warp, WritingRig& writing, const std::string& name,
                         uint32_t ino) {
    Volume& volume = writing.volume();
    Writer& writer = writing.writer();
    OperationSlot operation;
    int error = begin_operation(
        warp, {volume, writer}, kPagesToChangeEntry + 2, [&] { return kTestNow; }, operation);
    if (error < 0) return error;
    Inode parent = load_for_test(warp, volume, format::kRootIno);
    const bool directory = load_for_test(warp, volume, ino).is_directory();
    error = remove_entry(warp, *operation, parent, entry_name(name));
    uint32_t links = 0;
    if (error == 0) {
      error = change_links(warp, *operation, 1u, ino, directory ? -2 : -1, links);
      EXPECT_EQ(warp.shfl(links, 0), 0u);
      if (directory) {
        EXPECT_EQ(change_links(warp, *operation, 1u, format::kRootIno, -1, links), 0);
      }
      if (warp.thread_rank() == 0) {
        EXPECT_EQ(add_orphan(writer.orphans, ino), 0);
      }
    }
    end_operation(warp, operation);
    return simt::first_error(warp, error);
  }
  /// Unlinks all that goes. The inos, and what there is to be counted when it is freed.
  std::vector<uint32_t> unlink_all(WritingRig& writing, Counts& left) {
    const NamesOf names = names_of(writing, format::kRootIno);
    std::vector<uint32_t> inos;
    uint64_t held = 0;
    for (const auto& [name, entry] : names) {
      if (!goes(name)) continue;
      inos.push_back(entry.first);
      held += load_alone(writing, entry.first).block_count;
    }
    std::sort(inos.begin(), inos.end());
    run_alone(width(), [&](const simt::Warp& warp) {
      for (const auto& [name, entry] : names) {
        if (!goes(name)) continue;
        EXPECT_EQ(unlink_open(warp, writing, name, entry.first), 0) << name;
      }
    });
    // Behind the unlinking, which takes blocks out of the root directory.
    left = counts_of(writing.volume());
    left.blocks -= held;
    left.inodes -= static_cast<uint32_t>(inos.size());
    return inos;
  }
  /// An image whose last unmount left orphans.
  std::vector<uint32_t> leave_orphans(TestImage& image, Counts& left,
                                      const VolumeRigOptions& options = roomy_cache()) {
    WritingRig writing(image, width(), options);
    EXPECT_EQ(writing.begin().error, 0);
    const std::vector<uint32_t> inos = unlink_all(writing, left);
    EXPECT_EQ(writing.checkpoint(true), 0);
    return inos;
  }
  int recover(WritingRig& writing) {
    return answer_of(width(), [&](const simt::Warp& warp) {
      return recover_orphans(warp, writing.volume(), writing.writer(), writing.rig().fs().pool);
    });
  }
  /// Mounts, recovers and unmounts; what is counted then. All is sound afterwards.
  void expect_recovered(TestImage& image, const Counts& left,
                        const VolumeRigOptions& options = roomy_cache()) {
    {
      WritingRig writing(image, width(), options);
      ASSERT_EQ(writing.begin().error, 0);
      EXPECT_EQ(recover(writing), 0);
      EXPECT_EQ(writing.writer().orphans.count, 0u);
      EXPECT_EQ(writing.writer().reserved, 0u);
      const Counts now = counts_of(writing.volume());
      EXPECT_EQ(now.blocks, left.blocks);
      EXPECT_EQ(now.inodes, left.inodes);
      EXPECT_EQ(count_findings(*writing.volume().corruptions), 0u);
      ASSERT_EQ(writing.checkpoint(true), 0);
    }
    EXPECT_TRUE(listed_on_disk(image).empty());
    EXPECT_TRUE(fsck_likes(image));
  }
  /// Changes some of fill_far_apart(), so that a tight cache needs a checkpoint while others of it
  /// are freed.
  void change_kept(WritingRig& writing) {
    run_alone(width(), [&](const simt::Warp& warp) {
      OperationSlot operation;
      ASSERT_EQ(begin_operation(warp, {writing.volume(), writing.writer()}, 8, operation), 0);
      for (uint32_t i = 0; i < 8; ++i) {
        EXPECT_EQ(keep_inode(warp, *operation, format::kRootIno + 2 + i), 0);
      }
      end_operation(warp, operation);
    });
  }
};
GOFS_AT_BOTH_WIDTHS(RecoverOrphansTest);

TEST_P(RecoverOrphansTest, files_of_all_kinds_are_freed_by_the_next_mount) {
  GOFS_NEED_TOOL("fsck.f2fs");
  for (const uint32_t feature : {uint32_t{0}, kFeaturesOfInodes}) {
    for (const uint32_t cache_pages : {kTightPages, 4096u}) {
      SCOPED_TRACE(std::to_string(feature) + ", " + std::to_string(cache_pages));
      VolumeRigOptions options;
      options.filesystem.cache_pages = cache_pages;
      TestImage image(fill_all_kinds, feature);
      Counts left{};
      const std::vector<uint32_t> inos = leave_orphans(image, left, options);
      ASSERT_EQ(inos.size(), 9u);
      EXPECT_EQ(listed_on_disk(image), inos);
      EXPECT_TRUE(fsck_likes(image));
      expect_recovered(image, left, options);
      WritingRig writing(image, width());
      for (const auto& [name, entry] : names_of(writing, format::kRootIno)) {
        EXPECT_FALSE(goes(name));
        EXPECT_GT(load_alone(writing, entry.first).links, 0u);
      }
      EXPECT_EQ(names_of(writing, format::kRootIno).size(), 9u);
    }
  }
}

TEST_P(RecoverOrphansTest, any_number_of_them) {
  GOFS_NEED_TOOL("fsck.f2fs");
  for (const uint32_t count : {0u, 1u, 1020u, 1021u, 2500u}) {
    if (width() != 1 && count > 1021) continue;  // no other steps
    SCOPED_TRACE(count);
    TestImage image(fill_with_gone(count));
    Counts left{};
    const std::vector<uint32_t> inos = leave_orphans(image, left);
    ASSERT_EQ(inos.size(), count);
    EXPECT_EQ(listed_on_disk(image), inos);
    EXPECT_TRUE(fsck_likes(image));
    expect_recovered(image, left);
  }
}

TEST_P(RecoverOrphansTest, what_is_not_freed_stays_listed) {
  GOFS_NEED_TOOL("fsck.f2fs");
  TestImage image(fill_all_kinds);
  Counts left{};
  const std::vector<uint32_t> inos = leave_orphans(image, left);
  for (uint32_t mounts = 0; mounts < 2; ++mounts) {
    WritingRig writing(image, width());
    ASSERT_EQ(writing.begin().error, 0);
    ASSERT_EQ(writing.checkpoint(mounts == 1), 0);
    EXPECT_EQ(listed_on_disk(image), inos);
    EXPECT_TRUE(fsck_likes(image));
    if (mounts == 0) {
      ASSERT_EQ(writing.checkpoint(true), 0);
    }
  }
  expect_recovered(image, left);
}

TEST_P(RecoverOrphansTest, reading_leaves_them) {
  TestImage image(fill_all_kinds);
  Counts left{};
  const std::vector<uint32_t> inos = leave_orphans(image, left);
  const TestImage before(image);
  {
    WritingRig reading(image, width());
    EXPECT_EQ(names_of(reading, format::kRootIno).size(), 9u);
    for (const uint32_t ino : inos) EXPECT_EQ(load_alone(reading, ino).links, 0u);
  }
  EXPECT_TRUE(before.file() == image.file());
}

TEST_P(RecoverOrphansTest, a_checkpoint_that_fails_leaves_the_list_before) {
  GOFS_NEED_TOOL("fsck.f2fs");
  TestImage made(fill_with_gone(width() == 1 ? 1030 : 3));
  constexpr uint32_t kWritten = 1u << static_cast<uint32_t>(format::nvme::IoOpcode::kWrite);
  constexpr uint32_t kFlushed = 1u << static_cast<uint32_t>(format::nvme::IoOpcode::kFlush);
  for (const uint32_t opcodes : {kWritten, kFlushed}) {
    uint32_t failures = 0;
    // The nodes are written first, many alike; the pack comes last.
    for (uint32_t skip = 0;; ++skip) {
      TestImage image(made);
      WritingRig writing(image, width(), roomy_cache());
      ASSERT_EQ(writing.begin().error, 0);
      Counts left{};
      const std::vector<uint32_t> inos = unlink_all(writing, left);
      if (opcodes == kWritten && width() == 1 && skip == 3) skip = 1024;
      ssd::FaultRule rule;
      rule.opcode_mask = opcodes;
      rule.skip = skip;
      rule.count = 1;
      rule.status = format::nvme::kWriteFault;
      writing.rig().add_fault(rule);
      const int error = writing.checkpoint(true);
      writing.rig().clear_faults();
      if (error == 0) {
        EXPECT_EQ(listed_on_disk(image), inos);
        break;
      }
      ++failures;
      EXPECT_EQ(error, -EIO);
      const bool unknown = writing.writer().failed < 0;
      const std::vector<uint32_t> listed = listed_on_disk(image);
      EXPECT_TRUE(listed.empty() || (unknown && listed == inos));
      EXPECT_EQ(writing.checkpoint(true), unknown ? -EROFS : 0);
      if (!unknown) {
        EXPECT_EQ(listed_on_disk(image), inos);
      }
      if (skip % 5 == 0 || opcodes == kFlushed) {
        EXPECT_TRUE(fsck_likes(image, true));
      }
    }
    EXPECT_GE(failures, opcodes == kFlushed ? 2u : 10u);
  }
}

TEST_P(RecoverOrphansTest, a_power_cut_leaves_a_list_that_is_right) {
  GOFS_NEED_TOOL("fsck.f2fs");
  TestImage image(fill_with_gone(width() == 1 ? 1025 : 5));
  const TestImage before(image);
  VolumeRigOptions options = roomy_cache();
  options.ssd.logged_commands = 8192;
  options.ssd.logged_bytes = 64 << 20;
  WritingRig writing(image, width(), options);
  ASSERT_EQ(writing.begin().error, 0);
  Counts left{};
  const std::vector<uint32_t> inos = unlink_all(writing, left);
  ASSERT_EQ(writing.checkpoint(true), 0);
  const ssd::WriteTrace trace =
      ssd::read_trace(writing.rig().arena().space(), writing.rig().controller());
  std::mt19937 random(1);
  TestImage cut_off(before);
  const uint32_t interesting = 40;  // events from the end on: the pack, SIT and NAT
  const uint32_t start = static_cast<uint32_t>(trace.events) - interesting;
  for (uint32_t event = trace.events < interesting ? 0 : start; event <= trace.events; ++event) {
    const ssd::PowerCut cut(trace, event);
    for (uint32_t way = 0; way < 3; ++way) {
      cut.apply({cut_off.data(), cut_off.bytes()}, 512, [&](uint32_t, uint64_t) {
        return way == 0 ? false : way == 1 ? true : random() % 2 == 0;
      });
      const std::vector<uint32_t> listed = listed_on_disk(cut_off);
      EXPECT_TRUE(listed.empty() || listed == inos);
      if (event == trace.events) {
        EXPECT_EQ(listed, inos);
      }
      if (event % 6 == 2 * way) {
        EXPECT_TRUE(fsck_likes(cut_off, true)) << event;
      }
      put_back(cut_off, before, trace);
    }
  }
}

TEST_P(RecoverOrphansTest, recovery_that_is_cut_off_is_done_again) {
  GOFS_NEED_TOOL("fsck.f2fs");
  TestImage image(fill_far_apart);
  Counts left{};
  const std::vector<uint32_t> inos = leave_orphans(image, left);
  const TestImage before(image);
  VolumeRigOptions options;
  options.filesystem.cache_pages = kTightPages;
  options.ssd.logged_commands = 8192;
  options.ssd.logged_bytes = 64 << 20;
  WritingRig writing(image, width(), options);
  ASSERT_EQ(writing.begin().error, 0);
  const uint64_t version = writing.volume().checkpoint_version;
  change_kept(writing);
  EXPECT_EQ(recover(writing), 0);
  ASSERT_EQ(writing.checkpoint(true), 0);
  EXPECT_GT(writing.volume().checkpoint_version, version + 1);
  const ssd::WriteTrace trace =
      ssd::read_trace(writing.rig().arena().space(), writing.rig().controller());
  std::mt19937 random(1);
  TestImage cut_off(before);
  uint32_t repeated = 0;
  for (uint32_t event = 0; event <= trace.events; event += 7) {
    ssd::PowerCut(trace, event)
        .apply({cut_off.data(), cut_off.bytes()}, 512,
               [&](uint32_t, uint64_t) { return random() % 2 == 0; });
    const std::vector<uint32_t> listed = listed_on_disk(cut_off);
    EXPECT_TRUE(std::includes(inos.begin(), inos.end(), listed.begin(), listed.end()));
    EXPECT_TRUE(fsck_likes(cut_off, true)) << event;
    // One that was made on the way is not that of an unmount, and is only read for now.
    if (listed == inos && repeated < 6) {
      TestImage again(cut_off);
      WritingRig mounted(again, width());
      if (mounted.begin().error == 0) {
        ++repeated;
        EXPECT_EQ(recover(mounted), 0);
        ASSERT_EQ(mounted.checkpoint(true), 0);
        EXPECT_EQ(counts_of(mounted.volume()), counts_of(writing.volume()));
        EXPECT_TRUE(fsck_likes(again, true));
      }
    }
    put_back(cut_off, before, trace);
  }
  EXPECT_GT(repeated, 0u);
}

TEST_P(RecoverOrphansTest, a_disk_that_cannot_be_read_stops_it_and_it_goes_on_later) {
  GOFS_NEED_TOOL("fsck.f2fs");
  TestImage image(fill_all_kinds);
  Counts left{};
  const std::vector<uint32_t> inos = leave_orphans(image, left);
  uint32_t failures = 0;
  const TestImage before(image);
  for (uint32_t skip = 0;; skip += width() == 1 ? 1 : 5) {
    TestImage again(before);
    WritingRig writing(again, width(), roomy_cache());
    ASSERT_EQ(writing.begin().error, 0);
    ssd::FaultRule rule;
    rule.opcode_mask = 1u << static_cast<uint32_t>(format::nvme::IoOpcode::kRead);
    rule.skip = skip;
    rule.status = format::nvme::kUnrecoveredReadError;
    writing.rig().add_fault(rule);
    const int error = recover(writing);
    writing.rig().clear_faults();
    if (error == 0) break;
    ++failures;
    EXPECT_EQ(error, -EIO);
    const uint32_t listed = writing.writer().orphans.count;
    EXPECT_GT(listed, 0u);
    if (skip % 10 == 0) {
      ASSERT_EQ(writing.checkpoint(false), 0);
      EXPECT_EQ(listed_on_disk(again).size(), listed);
      EXPECT_TRUE(fsck_likes(again));
    }
    EXPECT_EQ(recover(writing), 0);
    EXPECT_EQ(counts_of(writing.volume()).blocks, left.blocks);
    EXPECT_EQ(writing.writer().orphans.count, 0u);
    EXPECT_EQ(writing.writer().reserved, 0u);
    if (skip % 10 == 0) {
      ASSERT_EQ(writing.checkpoint(true), 0);
      EXPECT_TRUE(fsck_likes(again));
    }
  }
  EXPECT_GT(failures, 5u);
}

TEST_P(RecoverOrphansTest, a_disk_that_cannot_be_written_stops_it_and_it_goes_on_later) {
  GOFS_NEED_TOOL("fsck.f2fs");
  TestImage image(fill_far_apart);
  Counts left{};
  (void)leave_orphans(image, left);
  const TestImage before(image);
  VolumeRigOptions options = roomy_cache();
  options.filesystem.cache_pages = kTightPages;
  uint32_t failures = 0;
  for (uint32_t skip = 0;; skip += width() == 1 ? 1 : 5) {
    TestImage again(before);
    WritingRig writing(again, width(), options);
    ASSERT_EQ(writing.begin().error, 0);
    change_kept(writing);
    ssd::FaultRule rule;
    rule.opcode_mask = 1u << static_cast<uint32_t>(format::nvme::IoOpcode::kWrite);
    rule.skip = skip;
    rule.count = 1;
    rule.status = format::nvme::kWriteFault;
    writing.rig().add_fault(rule);
    const int error = recover(writing);
    writing.rig().clear_faults();
    if (error == 0) break;
    ++failures;
    EXPECT_EQ(error, -EIO);
    EXPECT_GT(writing.writer().orphans.count, 0u);
    EXPECT_TRUE(fsck_likes(again, true));
    const bool unknown = writing.writer().failed < 0;
    EXPECT_EQ(recover(writing), unknown ? -EROFS : 0);
    EXPECT_EQ(writing.writer().reserved, 0u);
    if (unknown) continue;
    EXPECT_EQ(counts_of(writing.volume()).blocks, left.blocks);
    ASSERT_EQ(writing.checkpoint(true), 0);
    EXPECT_TRUE(fsck_likes(again));
  }
  EXPECT_GT(failures, 2u);
}

TEST_P(RecoverOrphansTest, what_cannot_be_an_orphan_is_left_alone) {
  GOFS_NEED_TOOL("fsck.f2fs");
  TestImage image(fill_all_kinds);
  Counts left{};
  const std::vector<uint32_t> inos = leave_orphans(image, left);
  uint32_t kept_ino = 0;
  uint32_t kept_xattr = 0;
  uint32_t free_nid = 0;
  {
    WritingRig reading(image, 1);
    const NamesOf names = names_of(reading, format::kRootIno);
    kept_ino = names.at("kept some").first;
    kept_xattr = load_alone(reading, names.at("kept xattr").first).xattr_nid;
    free_nid = reading.volume().geometry.nid_count() - 1;
  }
  ASSERT_NE(kept_xattr, 0u);
  format::OrphanBlock& block = orphan_block(image, 0);
  uint32_t count = block.entry_count;
  for (const uint32_t odd : {0u, 1u, 2u, format::kRootIno, kept_ino, kept_xattr, free_nid,
                             free_nid + 1, 0xffffffffu, inos[0], inos[3]}) {
    block.ino[count++] = odd;
  }
  block.entry_count = count;
  block.check_sum = 0xabcdef;
  block.blk_addr = 77;
  block.blk_count = 0;
  WritingRig writing(image, width());
  ASSERT_EQ(writing.begin().error, 0);
  EXPECT_EQ(writing.writer().orphans.count, inos.size() + 3);
  EXPECT_EQ(recover(writing), 0);
  EXPECT_EQ(counts_of(writing.volume()).blocks, left.blocks);
  EXPECT_EQ(counts_of(writing.volume()).inodes, left.inodes);
  EXPECT_EQ(count_findings(*writing.volume().corruptions), 9u);
  ASSERT_EQ(writing.checkpoint(true), 0);
  EXPECT_TRUE(listed_on_disk(image).empty());
  EXPECT_TRUE(fsck_likes(image));
}

TEST_P(RecoverOrphansTest, a_block_that_is_no_list_refuses_writing) {
  TestImage image(fill_all_kinds);
  Counts left{};
  (void)leave_orphans(image, left);
  orphan_block(image, 0).entry_count = format::kOrphansPerBlock + 1;
  WritingRig writing(image, width());
  const WriteResult result = writing.begin();
  EXPECT_EQ(result.problem, WriteProblem::kOrphans);
  EXPECT_EQ(result.error, -EUCLEAN);
  EXPECT_EQ(count_findings(*writing.volume().corruptions), 1u);
  EXPECT_EQ(load_alone(writing, format::kRootIno).links, 4u) << "it can be read";
}

TEST_P(RecoverOrphansTest, a_flag_without_a_list_is_no_reason_to_refuse) {
  TestImage image(fill_all_kinds);
  for (uint32_t pack = 0; pack < 2; ++pack) {
    format::Checkpoint& checkpoint = image.checkpoint(pack);
    checkpoint.ckpt_flags = checkpoint.ckpt_flags | format::kCheckpointOrphan;
    image.seal_checkpoint(pack);
  }
  WritingRig writing(image, width());
  ASSERT_EQ(writing.begin().error, 0);
  EXPECT_EQ(recover(writing), 0);
  ASSERT_EQ(writing.checkpoint(true), 0);
  EXPECT_TRUE(listed_on_disk(image).empty());
}

TEST_P(RecoverOrphansTest, one_that_contradicts_itself_frees_nothing_of_others_and_stays) {
  TestImage made(fill_all_kinds);
  Counts left{};
  NamesOf names;
  std::map<std::string, uint32_t> xattr_nids;
  {
    WritingRig reading(made, 1);
    names = names_of(reading, format::kRootIno);
    for (const auto& [name, entry] : names) {
      xattr_nids[name] = load_alone(reading, entry.first).xattr_nid;
    }
  }
  const std::vector<uint32_t> inos = leave_orphans(made, left);
  const uint32_t with_xattrs = names.at("gone xattr").first;
  const uint32_t sparse = names.at("gone sparse").first;
  using Damage = std::function<void(format::NodeBlock&)>;
  const std::vector<std::pair<uint32_t, Damage>> damages = {
      {with_xattrs,
       [&](format::NodeBlock& node) { node.inode.i_xattr_nid = names.at("kept some").first; }},
      {with_xattrs,
       [&](format::NodeBlock& node) { node.inode.i_xattr_nid = xattr_nids.at("kept xattr"); }},
      {with_xattrs, [&](format::NodeBlock& node) { node.inode.i_xattr_nid = with_xattrs; }},
      {with_xattrs, [&](format::NodeBlock& node) { node.inode.i_xattr_nid = 0xfffffff0; }},
      {with_xattrs, [&](format::NodeBlock& node) { node.inode.i_mode = 0; }},
      {with_xattrs, [&](format::NodeBlock& node) { node.footer.ino = 3; }},
      {sparse, [&](format::NodeBlock& node) { node.inode.i_nid[4] = node.inode.i_nid[2].value(); }},
      {sparse, [&](format::NodeBlock& node) { node.inode.i_nid[3] = sparse; }},
      {sparse, [&](format::NodeBlock& node) { node.inode.i_addr[0] = 1; }},
  };
  for (size_t i = 0; i < damages.size(); ++i) {
    SCOPED_TRACE(i);
    TestImage image(made);
    const auto& [ino, damage] = damages[i];
    uint32_t where = 0;
    {
      WritingRig reading(image, 1);
      run_alone(1, [&](const simt::Warp& warp) {
        NatRecord record{};
        EXPECT_EQ(look_up_nat(warp, reading.volume(), 1u, ino, record), 0);
        where = record.block;
      });
    }
    damage(*reinterpret_cast<format::NodeBlock*>(image.block(where)));
    WritingRig writing(image, width());
    ASSERT_EQ(writing.begin().error, 0);
    EXPECT_EQ(recover(writing), 0);
    EXPECT_GT(count_findings(*writing.volume().corruptions), 0u);
    EXPECT_EQ(writing.writer().orphans.count, 1u);
    EXPECT_TRUE(is_orphan(writing.writer().orphans, ino));
    ASSERT_EQ(writing.checkpoint(true), 0);
    EXPECT_EQ(listed_on_disk(image), std::vector<uint32_t>{ino});
    // What others have is still theirs.
    WritingRig after(image, 1);
    for (const auto& [name, entry] : names) {
      if (goes(name)) continue;
      const Inode inode = load_alone(after, entry.first);
      EXPECT_EQ(inode.xattr_nid, xattr_nids.at(name));
      run_alone(1, [&](const simt::Warp& warp) {
        NatRecord record{};
        for (const uint32_t nid : {entry.first, xattr_nids.at(name)}) {
          if (nid == 0) continue;
          EXPECT_EQ(look_up_nat(warp, after.volume(), 1u, nid, record), 0);
          EXPECT_EQ(record.ino, entry.first);
          EXPECT_NE(record.block, format::kNullAddr);
        }
      });
    }
  }
}

}  // namespace
}  // namespace gofs::f2fs
