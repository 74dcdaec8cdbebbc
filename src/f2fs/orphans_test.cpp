// SPDX-License-Identifier: Apache-2.0
//
// The list of orphans: in memory, under many warps, and in checkpoints, of any length, across
// mounts. Most of the inodes that are listed here need not exist.
#include "f2fs/orphans.h"

#include <gtest/gtest.h>

#include <random>
#include <set>
#include <vector>

#include "f2fs/begin_operation.h"
#include "f2fs/orphans_for_test.hpp"

namespace gofs::f2fs {
namespace {

using gofs::testing::run_alone;
using gofs::testing::run_crowd;
using gofs::testing::TestImage;

/// A table outside any volume.
class LooseTable {
 public:
  LooseTable(uint32_t ino_count, uint32_t most)
      : words_(size_t{orphan_lines(ino_count)} * kWordsPerOrphanLine),
        lines_(orphan_lines(ino_count) / 32 + 1) {
    table.words = words_.data();
    table.lines = lines_.data();
    table.ino_count = ino_count;
    table.most = most;
  }
  /// All that are listed, in order, by `width` lanes that go through the table.
  std::vector<uint32_t> all(uint32_t width) {
    std::vector<uint32_t> inos;
    run_alone(width, [&](const simt::Warp& warp) {
      for (uint32_t ino = 0; (ino = next_orphan(warp, table, ino)) < table.ino_count; ++ino) {
        if (warp.thread_rank() == 0) inos.push_back(ino);
      }
    });
    return inos;
  }

  OrphanTable table{};

 private:
  std::vector<uint32_t> words_;
  std::vector<uint32_t> lines_;
};

void fill_for_orphans(image::ImageBuilder& builder) {
  for (uint32_t i = 0; i < 8; ++i) {
    const std::string name = "kept" + std::to_string(i);
    image::FileSpec file;
    file.name = name;
    file.size_bytes = 9'000 * i;
    file.content = image::pattern_content(i);
    TestImage::must(builder.add_file(builder.root(), file));
  }
}

class OrphansTest : public ::testing::TestWithParam<uint32_t> {
 protected:
  uint32_t width() const { return GetParam(); }

  /// Lists inodes that need not be there, or takes them off the list.
  void change_list(WritingRig& writing, const std::vector<uint32_t>& inos, bool add) {
    run_alone(width(), [&](const simt::Warp& warp) {
      OperationSlot operation;
      ASSERT_EQ(begin_operation(warp, {writing.volume(), writing.writer()}, 0, operation), 0);
      for (size_t i = warp.thread_rank(); i < inos.size(); i += warp.size()) {
        if (add) {
          EXPECT_EQ(add_orphan(writing.writer().orphans, inos[i]), 0);
        } else {
          remove_orphan(writing.writer().orphans, inos[i]);
        }
      }
      end_operation(warp, operation);
    });
  }
};
GOFS_AT_BOTH_WIDTHS(OrphansTest);

TEST_P(OrphansTest, the_table_lists_what_was_added_and_not_removed) {
  for (const uint32_t ino_count : {1u, 31u, 1024u, 1025u, 40'000u}) {
    LooseTable loose(ino_count, ~0u >> 1);
    std::set<uint32_t> model;
    std::mt19937 random(ino_count);
    for (uint32_t turn = 0; turn < 3000; ++turn) {
      const auto ino = static_cast<uint32_t>(random() % ino_count);
      if (random() % 3 == 0) {
        remove_orphan(loose.table, ino);
        model.erase(ino);
      } else {
        EXPECT_EQ(add_orphan(loose.table, ino), 0);
        model.insert(ino);
      }
      EXPECT_EQ(loose.table.count, model.size());
      EXPECT_EQ(is_orphan(loose.table, ino), model.contains(ino));
    }
    EXPECT_EQ(loose.all(width()), std::vector<uint32_t>(model.begin(), model.end()));
    for (const uint32_t ino : std::set<uint32_t>(model)) remove_orphan(loose.table, ino);
    EXPECT_EQ(loose.table.count, 0u);
    EXPECT_TRUE(loose.all(width()).empty());
  }
}

TEST_P(OrphansTest, a_full_table_takes_no_more_until_one_goes) {
  LooseTable loose(5000, 7);
  for (uint32_t i = 0; i < 7; ++i) EXPECT_EQ(add_orphan(loose.table, 700 * i), 0);
  EXPECT_EQ(add_orphan(loose.table, 1), -ENOSPC);
  EXPECT_EQ(add_orphan(loose.table, 700), 0) << "it is listed already";
  EXPECT_EQ(loose.table.count, 7u);
  EXPECT_FALSE(is_orphan(loose.table, 1));
  remove_orphan(loose.table, 1);
  EXPECT_EQ(loose.table.count, 7u);
  remove_orphan(loose.table, 1400);
  EXPECT_EQ(add_orphan(loose.table, 1), 0);
  EXPECT_EQ(add_orphan(loose.table, 1400), -ENOSPC);
}

TEST_P(OrphansTest, the_table_has_the_pack_s_room) {
  EXPECT_EQ(orphans_max(0), 514'080u);
  EXPECT_EQ(orphans_max(503), 1020u);
  TestImage image(fill_for_orphans);
  WritingRig writing(image, width());
  EXPECT_EQ(writing.writer().orphans.most, orphans_max(0));
  EXPECT_EQ(writing.writer().orphans.ino_count, writing.volume().geometry.nid_count());
}

TEST_P(OrphansTest, many_warps_change_the_table_at_once) {
  constexpr uint32_t kWarps = 6;
  constexpr uint32_t kInos = 3000;
  LooseTable loose(kInos, kInos);
  const auto stays = [](uint32_t ino) { return ino % 3 == 0; };
  run_crowd({kWarps, width()}, [&](const simt::Warp& warp, uint32_t index) {
    // Neighbours share words; some inos belong to several warps at once, which all leave them
    // listed.
    for (uint32_t round = 0; round < 2; ++round) {
      for (uint32_t first = 0; first < kInos; first += warp.size()) {
        const uint32_t ino = first + warp.thread_rank();
        if (ino >= kInos) continue;
        const bool mine = ino % kWarps == index;
        if (stays(ino) || mine) {
          EXPECT_EQ(add_orphan(loose.table, ino), 0);
        }
        if (!stays(ino) && mine) remove_orphan(loose.table, ino);
      }
    }
  });
  std::vector<uint32_t> expected;
  for (uint32_t ino = 0; ino < kInos; ++ino) {
    if (stays(ino)) expected.push_back(ino);
  }
  EXPECT_EQ(loose.table.count, expected.size());
  EXPECT_EQ(loose.all(width()), expected);
}

TEST_P(OrphansTest, many_warps_get_no_more_places_than_there_are) {
  constexpr uint32_t kWarps = 6;
  constexpr uint32_t kMost = 500;
  LooseTable loose(10'000, kMost);
  run_crowd({kWarps, width()}, [&](const simt::Warp& warp, uint32_t index) {
    for (uint32_t i = warp.thread_rank(); i < 400; i += warp.size()) {
      const uint32_t ino = 400 * index + i;
      const int error = add_orphan(loose.table, ino);
      EXPECT_TRUE(error == 0 || error == -ENOSPC);
      EXPECT_EQ(is_orphan(loose.table, ino), error == 0);
    }
  });
  const size_t listed = loose.all(width()).size();
  EXPECT_EQ(listed, loose.table.count);
  EXPECT_LE(listed, kMost);
  EXPECT_GE(listed, kMost - kWarps * width()) << "few were turned away for others' attempts";
}

TEST_P(OrphansTest, checkpoints_list_any_number_across_mounts) {
  for (const uint32_t count : {0u, 1u, 1019u, 1020u, 1021u, 2040u, 7000u}) {
    for (const uint32_t step : {1u, 33u}) {
      SCOPED_TRACE(count);
      TestImage image(fill_for_orphans);
      std::vector<uint32_t> inos(count);
      for (uint32_t i = 0; i < count; ++i) inos[i] = 100 + i * step;
      {
        WritingRig writing(image, width());
        ASSERT_EQ(writing.begin().error, 0);
        change_list(writing, inos, true);
        ASSERT_EQ(writing.checkpoint(false), 0);
        EXPECT_EQ(listed_on_disk(image), inos);
        ASSERT_EQ(writing.checkpoint(true), 0);
        EXPECT_EQ(listed_on_disk(image), inos);
      }
      for (uint32_t mounts = 0; mounts < 2; ++mounts) {
        WritingRig writing(image, width());
        const WriteResult begun = writing.begin();
        ASSERT_EQ(begun.error, 0) << static_cast<int>(begun.problem);
        EXPECT_EQ(writing.writer().orphans.count, inos.size());
        EXPECT_EQ(count_findings(*writing.volume().corruptions), 0u);
        const std::vector<uint32_t> some(inos.begin() + static_cast<ptrdiff_t>(inos.size() / 2),
                                         inos.end());
        change_list(writing, some, false);
        inos.resize(inos.size() / 2);
        ASSERT_EQ(writing.checkpoint(true), 0);
        EXPECT_EQ(listed_on_disk(image), inos);
      }
      WritingRig writing(image, width());
      ASSERT_EQ(writing.begin().error, 0);
      change_list(writing, inos, false);
      ASSERT_EQ(writing.checkpoint(true), 0);
      EXPECT_TRUE(listed_on_disk(image).empty());
    }
  }
}

TEST_P(OrphansTest, a_list_as_long_as_a_pack_can_hold_fits_its_segment) {
  // So many nids need a volume of some size; only a few of its blocks are touched.
  TestImage image(fill_for_orphans, 0, uint64_t{2} << 30);
  const uint32_t nids = image.geometry().nid_count();
  ASSERT_GT(nids, orphans_max(0) + 200);
  std::vector<uint32_t> inos(orphans_max(0));
  for (uint32_t i = 0; i < inos.size(); ++i) inos[i] = 200 + i;
  const uint32_t beside = image.geometry().pack_block(0) + 2 * format::kBlocksPerSegment;
  const std::vector<uint8_t> before(image.block(beside), image.block(beside + 1));
  {
    WritingRig writing(image, width());
    ASSERT_EQ(writing.begin().error, 0);
    change_list(writing, inos, true);
    EXPECT_EQ(add_orphan(writing.writer().orphans, 199), -ENOSPC);
    ASSERT_EQ(writing.checkpoint(true), 0);
  }
  EXPECT_EQ(listed_on_disk(image), inos);
  EXPECT_EQ(before, std::vector<uint8_t>(image.block(beside), image.block(beside + 1)));
  WritingRig writing(image, width());
  ASSERT_EQ(writing.begin().error, 0);
  EXPECT_EQ(writing.writer().orphans.count, inos.size());
}

}  // namespace
}  // namespace gofs::f2fs
