// SPDX-License-Identifier: Apache-2.0
//
// Extended attributes that change, against a map in memory: in inodes, in nodes that come and go,
// across checkpoints and mounts, up to the last byte of an inode's room and the last block of the
// volume. fsck.f2fs looks at every volume.
#include "f2fs/set_xattr.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <iterator>
#include <map>
#include <random>
#include <string>
#include <vector>

#include "f2fs/operation_for_test.hpp"
#include "f2fs/writing_for_test.hpp"
#include "ssd/power_cut.h"

namespace gofs::f2fs {
namespace {

using gofs::testing::run_alone;
using gofs::testing::run_crowd;
using gofs::testing::TestImage;
using gofs::testing::VolumeRigOptions;

/// Name -> value, of "user." attributes.
using Values = std::map<std::string, std::string>;

constexpr uint32_t kOwners = 8;

void fill_with_owners(image::ImageBuilder& builder) {
  for (uint32_t i = 0; i < kOwners; ++i) {
    const std::string name = "f" + std::to_string(i);
    image::FileSpec file;
    file.name = name;
    file.inline_xattr = i % 2 == 0;
    file.size_bytes = 3000 * i;
    file.content = image::pattern_content(i);
    TestImage::must(builder.add_file(builder.root(), file));
  }
}

std::string some_bytes(std::mt19937& random, size_t count) {
  std::string bytes(count, '\0');
  for (char& byte : bytes) byte = static_cast<char>(random());
  return bytes;
}

class SetXattrTest : public ::testing::TestWithParam<uint32_t> {
 protected:
  uint32_t width() const { return GetParam(); }

  /// `value` null: removes.
  static int set(const simt::Warp& warp, Operation& op, uint32_t ino, const std::string& name,
                 const std::string* value, XattrMode mode = XattrMode::kEither) {
    Inode inode{};
    EXPECT_EQ(load_inodes(warp, op.volume, warp.ballot(true), ino, inode), 0);
    XattrChange change{};
    change.index = format::kXattrUser;
    change.name = name.data();
    change.name_bytes = static_cast<uint32_t>(name.size());
    change.value = value == nullptr ? nullptr : value->data();
    change.value_bytes = value == nullptr ? 0 : static_cast<uint32_t>(value->size());
    change.mode = mode;
    change.changed = {1'900'000'000, 5};
    return set_xattr(warp, op, inode, change);
  }
  /// The same as an operation of its own.
  static int set(const simt::Warp& warp, WritingRig& writing, uint32_t ino, const std::string& name,
                 const std::string* value, XattrMode mode = XattrMode::kEither) {
    TestOperation op(warp, writing.volume(), writing.writer(), &writing.rig().fs().pool);
    return set(warp, *op, ino, name, value, mode);
  }
  int set_alone(WritingRig& writing, uint32_t ino, const std::string& name,
                const std::string* value, XattrMode mode = XattrMode::kEither) {
    int result = 0;
    run_alone(width(), [&](const simt::Warp& warp) {
      const int mine = set(warp, writing, ino, name, value, mode);
      if (warp.thread_rank() == 0) result = mine;
    });
    return result;
  }
  static Values values_of(WritingRig& writing, uint32_t ino) {
    Values values;
    run_alone(1, [&](const simt::Warp& warp) {
      Volume& volume = writing.volume();
      const PagePool& pool = writing.rig().fs().pool;
      Inode inode{};
      EXPECT_EQ(load_inodes(warp, volume, 1u, ino, inode), 0);
      XattrBytes bytes{};
      EXPECT_EQ(load_xattrs(warp, volume, pool, inode, bytes), 0);
      uint32_t cursor = 0;
      Xattr xattr{};
      while (bytes.bytes != 0 && next_xattr(warp, volume, bytes, cursor, xattr) == 1) {
        std::string name;
        std::string value;
        for (uint32_t i = 0; i < xattr.name_bytes; ++i) {
          name += static_cast<char>(bytes.at(xattr.name_at + i));
        }
        for (uint32_t i = 0; i < xattr.value_bytes; ++i) {
          value += static_cast<char>(bytes.at(xattr.value_at + i));
        }
        EXPECT_TRUE(values.emplace(name, value).second) << "twice: " << name;
      }
      unload_xattrs(warp, pool, bytes);
    });
    EXPECT_EQ(count_findings(*writing.volume().corruptions), 0u);
    return values;
  }
};
GOFS_AT_BOTH_WIDTHS(SetXattrTest);

TEST_P(SetXattrTest, any_changes_agree_with_a_map) {
  GOFS_NEED_TOOL("fsck.f2fs");
  for (const uint32_t feature :
       {uint32_t{0}, format::kFeatureExtraAttr | format::kFeatureInodeChecksum |
                         format::kFeatureFlexibleInlineXattr}) {
    std::mt19937 random(7);
    TestImage image(fill_with_owners, feature);
    const std::vector<uint32_t> inos = inodes_of(image);
    ASSERT_EQ(inos.size(), kOwners + 1);
    std::map<uint32_t, Values> model;
    for (uint32_t mounts = 0; mounts < 2; ++mounts) {
      WritingRig writing(image, width());
      ASSERT_EQ(writing.begin().error, 0);
      for (uint32_t turn = 0; turn < 150; ++turn) {
        const uint32_t ino = inos[random() % inos.size()];
        const std::string name(1 + random() % 3, static_cast<char>('a' + random() % 4));
        Values& values = model[ino];
        const bool there = values.count(name) != 0;
        const auto mode = static_cast<XattrMode>(random() % 3);
        if (random() % 3 == 0) {
          ASSERT_EQ(set_alone(writing, ino, name, nullptr), there ? 0 : -ENODATA);
          values.erase(name);
        } else {
          const std::string value = some_bytes(random, random() % (turn % 5 == 0 ? 1500 : 60));
          const int error = set_alone(writing, ino, name, &value, mode);
          if (mode == XattrMode::kCreate && there) {
            ASSERT_EQ(error, -EEXIST);
          } else if (mode == XattrMode::kReplace && !there) {
            ASSERT_EQ(error, -ENODATA);
          } else if (error != -ENOSPC) {
            ASSERT_EQ(error, 0);
            values[name] = value;
          }
        }
        ASSERT_EQ(values_of(writing, ino), values) << turn;
        if (turn % 50 == 49) {
          ASSERT_EQ(writing.checkpoint(turn == 149), 0);
          EXPECT_TRUE(fsck_likes(image));
        }
      }
      EXPECT_GT(writing.volume().valid_node_count, inos.size()) << "no attribute needs a node";
    }
    WritingRig again(image, 1);
    for (const uint32_t ino : inos) EXPECT_EQ(values_of(again, ino), model[ino]) << ino;
  }
}

TEST_P(SetXattrTest, the_room_of_an_inode_ends) {
  TestImage image(fill_with_owners);
  const std::vector<uint32_t> inos = inodes_of(image);
  WritingRig writing(image, width());
  ASSERT_EQ(writing.begin().error, 0);
  for (const uint32_t ino : {inos[1], inos[2]}) {
    const Inode inode = [&] {
      Inode loaded{};
      run_alone(1, [&](const simt::Warp& warp) {
        EXPECT_EQ(load_inodes(warp, writing.volume(), 1u, ino, loaded), 0);
      });
      return loaded;
    }();
    const bool room = (inode.inline_flags & format::kInlineXattr) != 0;
    const uint32_t all =
        format::kXattrNodeBytes + (room ? 4 * format::kDefaultInlineXattrWords : 0);
    // Header, entry with its name, end mark.
    const uint32_t most = all - uint32_t{sizeof(format::XattrHeader)} - 8 - 4;
    const std::string largest(most, 'x');
    const std::string larger(most + 8, 'y');
    const std::string much_larger(most + 9, 'y');  // than the room without a name
    EXPECT_EQ(set_alone(writing, ino, "abcd", &larger), -ENOSPC);
    EXPECT_EQ(set_alone(writing, ino, "abcd", &much_larger), -E2BIG);
    EXPECT_EQ(values_of(writing, ino), Values{});
    EXPECT_EQ(set_alone(writing, ino, "abcd", &largest), 0);
    const std::string more(200, 'z');
    EXPECT_EQ(set_alone(writing, ino, "efgh", &more), -ENOSPC);
    EXPECT_EQ(values_of(writing, ino), (Values{{"abcd", largest}}));
    EXPECT_EQ(set_alone(writing, ino, "abcd", nullptr), 0);
    EXPECT_EQ(values_of(writing, ino), Values{});
  }
  ASSERT_EQ(writing.checkpoint(true), 0);
  EXPECT_TRUE(fsck_likes(image));
}

TEST_P(SetXattrTest, a_full_volume_refuses_a_node_and_takes_it_when_there_is_room) {
  TestImage image(fill_with_owners);
  const std::vector<uint32_t> inos = inodes_of(image);
  WritingRig writing(image, width());
  ASSERT_EQ(writing.begin().error, 0);
  Volume& volume = writing.volume();
  const std::string value(1000, 'v');
  const uint64_t user_blocks = volume.user_block_count;
  volume.user_block_count = volume.valid_block_count + 1;
  const uint32_t nodes = volume.valid_node_count;
  EXPECT_EQ(set_alone(writing, inos[1], "a", &value), 0);
  EXPECT_EQ(set_alone(writing, inos[2], "a", &value), -ENOSPC);
  EXPECT_EQ(values_of(writing, inos[2]), Values{});
  EXPECT_EQ(volume.valid_node_count, nodes + 1);
  EXPECT_EQ(set_alone(writing, inos[1], "a", nullptr), 0);
  EXPECT_EQ(volume.valid_node_count, nodes);
  EXPECT_EQ(set_alone(writing, inos[2], "a", &value), 0);
  volume.user_block_count = user_blocks;
  ASSERT_EQ(writing.checkpoint(true), 0);
  EXPECT_TRUE(fsck_likes(image));
}

// Nodes of several files come and go at once: every nid is one file's.
TEST_P(SetXattrTest, several_warps_take_nodes_of_their_own) {
  TestImage image(fill_with_owners);
  const std::vector<uint32_t> inos = inodes_of(image);
  WritingRig writing(image, width());
  ASSERT_EQ(writing.begin().error, 0);
  constexpr uint32_t kWarps = 4;
  run_crowd({kWarps, width()}, [&](const simt::Warp& warp, uint32_t index) {
    for (uint32_t turn = 0; turn < 20; ++turn) {
      const uint32_t ino = inos[index + kWarps * (turn % 2)];
      const std::string value(900 + index, static_cast<char>('a' + turn));
      EXPECT_EQ(set(warp, writing, ino, "v", &value), 0);
      if (turn % 7 == 3) {
        EXPECT_EQ(set(warp, writing, ino, "v", nullptr), 0);
      }
    }
  });
  for (uint32_t index = 0; index < 2 * kWarps; ++index) {
    const uint32_t turn = 18 + index / kWarps;
    const std::string value(900 + index % kWarps, static_cast<char>('a' + turn));
    EXPECT_EQ(values_of(writing, inos[index]), (Values{{"v", value}})) << index;
  }
  ASSERT_EQ(writing.checkpoint(true), 0);
  EXPECT_TRUE(fsck_likes(image));
}

// Operations change two pages, or make and remove nodes, while checkpoints are made; the power
// fails at some moment. No file shows half of an operation, nor less than the last checkpoint that
// was made before.
TEST_P(SetXattrTest, checkpoints_beside_operations_hold_whole_operations) {
  GOFS_NEED_TOOL("fsck.f2fs");
  TestImage image(fill_with_owners);
  const std::vector<uint32_t> inos = inodes_of(image);
  const TestImage before(image);
  VolumeRigOptions options;
  options.ssd.logged_commands = 8192;
  options.ssd.logged_bytes = 32 << 20;
  constexpr uint32_t kWarps = 3;
  constexpr uint32_t kCheckpoints = 6;
  // What a file has after a turn.
  const auto value_after = [](uint32_t ino, uint32_t turn) {
    const auto letter = static_cast<char>('a' + turn % 26);
    return Values{{"v", std::string(turn % 2 == 0 ? 20 : 1000 + ino, letter)},
                  {"turn", std::to_string(turn)}};
  };
  std::vector<uint32_t> turns(kWarps);         // that were made
  std::vector<std::vector<uint32_t>> durable;  // the same, before each checkpoint
  std::vector<uint32_t> events;                // of the disk, after each checkpoint
  WritingRig writing(image, width(), options);
  ASSERT_EQ(writing.begin().error, 0);
  const auto trace = [&] {
    return ssd::read_trace(writing.rig().arena().space(), writing.rig().controller());
  };
  for (uint32_t checkpoint = 0; checkpoint < kCheckpoints; ++checkpoint) {
    durable.push_back(turns);
    run_crowd({kWarps + 1, width()}, [&](const simt::Warp& warp, uint32_t index) {
      if (index == kWarps) {
        EXPECT_EQ(write_checkpoint(warp, writing.volume(), writing.writer(), false), 0);
        return;
      }
      for (uint32_t i = 0; i < 3; ++i) {
        const uint32_t ino = inos[1 + index];
        const uint32_t turn = turns[index] + 1;
        const Values values = value_after(ino, turn);
        {
          TestOperation op(warp, writing.volume(), writing.writer(), &writing.rig().fs().pool);
          for (const auto& [name, value] : values) {
            EXPECT_EQ(set(warp, *op, ino, name, &value), 0);
          }
        }
        warp.sync();
        if (warp.thread_rank() == 0) turns[index] = turn;
        warp.sync();
      }
    });
    events.push_back(trace().events);
  }
  const ssd::WriteTrace log = trace();
  TestImage left(before);
  std::mt19937 random(3);
  for (uint32_t event = 0; event <= log.events; event += 1 + static_cast<uint32_t>(random() % 9)) {
    ssd::PowerCut(log, event).apply({left.data(), left.bytes()}, 512, [&](uint32_t, uint64_t) {
      return random() % 2 == 0;
    });
    std::vector<uint32_t> least(kWarps);
    for (uint32_t i = 0; i < kCheckpoints; ++i) {
      if (events[i] <= event) least = durable[i];
    }
    WritingRig reading(left, 1);
    for (uint32_t index = 0; index < kWarps; ++index) {
      const uint32_t ino = inos[1 + index];
      const Values found = values_of(reading, ino);
      const uint32_t turn = found.empty() ? 0 : static_cast<uint32_t>(std::stoul(found.at("turn")));
      EXPECT_EQ(found, turn == 0 ? Values{} : value_after(ino, turn)) << event;
      EXPECT_GE(turn, least[index]) << event;
      EXPECT_LE(turn, turns[index]) << event;
    }
    if (random() % 12 == 0) {
      EXPECT_TRUE(fsck_likes(left, true)) << event;
    }
    put_back(left, before, log);
  }
  ASSERT_EQ(writing.checkpoint(true), 0);
  EXPECT_TRUE(fsck_likes(image));
}

TEST_P(SetXattrTest, the_search_for_a_nid_goes_on_at_the_beginning) {
  TestImage image(fill_with_owners);
  const std::vector<uint32_t> inos = inodes_of(image);
  WritingRig writing(image, width());
  ASSERT_EQ(writing.begin().error, 0);
  Volume& volume = writing.volume();
  const uint32_t nids = volume.geometry.nid_count();
  const uint32_t before = volume.valid_node_count;
  writing.writer().nid_cursors[0].next = nids - 2;
  std::map<uint32_t, uint32_t> taken;
  const auto take = [&](int wanted) {
    std::vector<uint32_t> mine(width());
    run_alone(width(), [&](const simt::Warp& warp) {
      uint32_t nid = 0;
      EXPECT_EQ(take_nids(warp, *TestOperation(warp, volume, writing.writer()), warp.ballot(true),
                          inos[1], nid),
                wanted);
      mine[warp.thread_rank()] = nid;
    });
    if (wanted == 0) {
      for (const uint32_t nid : mine) EXPECT_EQ(++taken[nid], 1u) << nid;
    }
  };
  for (uint32_t turn = 0; turn < 4; ++turn) take(0);
  EXPECT_EQ(taken.count(nids - 2) + taken.count(nids - 1), 2u);
  if (width() == 1) {
    // The others are the first ones that are free.
    EXPECT_EQ(taken.begin()->first, inos.back() + 1);
    EXPECT_EQ(std::next(taken.begin())->first, inos.back() + 2);
  }
  EXPECT_EQ(volume.valid_node_count, before + 4 * width());
  // Nothing is taken where not all lanes can have theirs.
  volume.user_block_count = volume.valid_block_count + width() - 1;
  take(-ENOSPC);
  EXPECT_EQ(volume.valid_node_count, before + 4 * width());
  run_alone(1, [&](const simt::Warp& warp) {
    for (const auto& [nid, count] : taken) {
      EXPECT_EQ(remove_nodes(warp, *TestOperation(warp, volume, writing.writer()), 1u, nid), 0);
    }
  });
  EXPECT_EQ(volume.valid_node_count, before);
  ASSERT_EQ(writing.checkpoint(true), 0);
  EXPECT_TRUE(fsck_likes(image));
}

}  // namespace
}  // namespace gofs::f2fs
