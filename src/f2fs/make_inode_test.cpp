// SPDX-License-Identifier: Apache-2.0
//
// Inodes that are made, named, renamed and removed: trees of all kinds of files against a model,
// with every feature that changes an inode's layout. fsck.f2fs judges what is on the disk.
#include "f2fs/make_inode.h"

#include <gtest/gtest.h>

#include <random>
#include <string>
#include <vector>

#include "f2fs/begin_operation.h"
#include "f2fs/changing_for_test.hpp"
#include "f2fs/empty_directory.h"
#include "f2fs/links.h"
#include "f2fs/operation_for_test.hpp"
#include "f2fs/read.h"
#include "f2fs/remove_inode.h"
#include "f2fs/set_xattr.h"

namespace gofs::f2fs {
namespace {

using gofs::testing::printed_seed;
using gofs::testing::run_alone;
using gofs::testing::run_crowd;
using gofs::testing::TestImage;
using gofs::testing::VolumeRigOptions;

constexpr uint16_t kModes[] = {format::kModeRegular | 0644,     format::kModeDirectory | 0755,
                               format::kModeSymlink | 0777,     format::kModeFifo | 0600,
                               format::kModeSocket | 0600,      format::kModeCharDevice | 0660,
                               format::kModeBlockDevice | 06660};
constexpr uint32_t kAllFeatures = format::kFeatureExtraAttr | format::kFeatureInodeChecksum |
                                  format::kFeatureFlexibleInlineXattr | format::kFeatureInodeCrtime;

void leave_empty(image::ImageBuilder&) {}

/// What callers ask for.
struct Wanted {
  std::string name;
  uint16_t mode = format::kModeRegular | 0644;
  std::string target{};
  format::DeviceNumber device{};
};

class MakeInodeTest : public ::testing::TestWithParam<uint32_t> {
 protected:
  uint32_t width() const { return GetParam(); }

  static NewInode new_inode(const Wanted& wanted) {
    NewInode inode{};
    inode.mode = wanted.mode;
    inode.uid = 1000;
    inode.gid = 100;
    inode.generation = 77;
    inode.name = entry_name(wanted.name);
    inode.target = wanted.target.data();
    inode.target_bytes = static_cast<uint32_t>(wanted.target.size());
    inode.device = wanted.device;
    inode.now = kTestNow;
    return inode;
  }
  /// As mknod, mkdir and symlink. The ino or a negative errno.
  static int64_t make(const simt::Warp& warp, WritingRig& writing, uint32_t parent_ino,
                      const Wanted& wanted) {
    Volume& volume = writing.volume();
    const bool is_directory = (wanted.mode & format::kModeTypeMask) == format::kModeDirectory;
    OperationSlot operation;
    Inode parent = load_for_test(warp, volume, parent_ino);
    int error = begin_operation(
        warp, {volume, writing.writer(), &writing.rig().fs().pool},
        pages_to_add_entry(parent) + kPagesToMakeInode, [&] { return kTestNow; }, operation);
    if (error < 0) return error;
    uint32_t ino = 0;
    uint32_t links = 0;
    error = make_inodes(warp, *operation, 1u, parent, new_inode(wanted), ino);
    error = warp.shfl(error, 0);
    ino = warp.shfl(ino, 0);
    if (error == 0) {
      error = add_entry(warp, *operation, parent, entry_name(wanted.name),
                        {ino, format::file_type_of_mode(wanted.mode)});
      if (error < 0) {
        Inode made = load_for_test(warp, volume, ino);
        bool more = false;
        EXPECT_EQ(remove_inode(warp, *operation, made, more), 0);
        EXPECT_FALSE(more);
      } else if (is_directory) {
        EXPECT_EQ(change_links(warp, *operation, 1u, parent_ino, 1, links), 0);
      }
    }
    end_operation(warp, operation);
    return error < 0 ? error : int64_t{ino};
  }
  int64_t make_alone(WritingRig& writing, uint32_t parent, const Wanted& wanted) {
    int64_t result = 0;
    run_alone(width(), [&](const simt::Warp& warp) {
      const int64_t mine = make(warp, writing, parent, wanted);
      if (warp.thread_rank() == 0) result = mine;
    });
    return result;
  }
  /// As unlink and rmdir of what is not open.
  static int remove(const simt::Warp& warp, WritingRig& writing, uint32_t parent_ino,
                    const std::string& name, uint32_t ino) {
    Volume& volume = writing.volume();
    Inode inode = load_for_test(warp, volume, ino);
    if (inode.is_directory()) {
      const int empty = is_empty_directory(warp, volume, inode);
      if (empty <= 0) return empty < 0 ? empty : -ENOTEMPTY;
    }
    OperationSlot operation;
    int error = begin_operation(
        warp, {volume, writing.writer(), &writing.rig().fs().pool},
        kPagesToChangeEntry + kPagesToRemoveInode, [&] { return kTestNow; }, operation);
    if (error < 0) return error;
    Inode parent = load_for_test(warp, volume, parent_ino);
    error = remove_entry(warp, *operation, parent, entry_name(name));
    uint32_t links = 0;
    if (error == 0) {
      const int32_t change = inode.is_directory() ? -2 : -1;
      EXPECT_EQ(change_links(warp, *operation, 1u, ino, change, links), 0);
      if (inode.is_directory()) {
        uint32_t others = 0;
        EXPECT_EQ(change_links(warp, *operation, 1u, parent_ino, -1, others), 0);
      }
    }
    bool more = error == 0 && warp.shfl(links, 0) == 0;
    if (more) error = remove_inode(warp, *operation, inode, more);
    end_operation(warp, operation);
    while (error == 0 && more) {
      error = begin_operation(
          warp, {volume, writing.writer(), &writing.rig().fs().pool}, kPagesToRemoveInode,
          [&] { return kTestNow; }, operation);
      if (error < 0) break;
      error = remove_inode(warp, *operation, inode, more);
      end_operation(warp, operation);
    }
    return error;
  }
  int remove_alone(WritingRig& writing, uint32_t parent, const std::string& name, uint32_t ino) {
    return answer_of(
        width(), [&](const simt::Warp& warp) { return remove(warp, writing, parent, name, ino); });
  }
  /// As rename to a name that is not there.
  static int move(const simt::Warp& warp, WritingRig& writing, uint32_t from_ino,
                  const std::string& from, uint32_t to_ino, const std::string& to, uint32_t ino) {
    Volume& volume = writing.volume();
    OperationSlot operation;
    Inode target = load_for_test(warp, volume, to_ino);
    int error = begin_operation(
        warp, {volume, writing.writer()}, pages_to_add_entry(target) + 2 * kPagesToChangeEntry + 1,
        [&] { return kTestNow; }, operation);
    if (error < 0) return error;
    Inode inode = load_for_test(warp, volume, ino);
    error = add_entry(warp, *operation, target, entry_name(to),
                      {ino, format::file_type_of_mode(inode.mode)});
    if (error == 0) {
      Inode source = load_for_test(warp, volume, from_ino);
      EXPECT_EQ(remove_entry(warp, *operation, source, entry_name(from)), 0);
      EXPECT_EQ(set_parent(warp, *operation, 1u, ino, to_ino, entry_name(to)), 0);
      if (inode.is_directory() && from_ino != to_ino) {
        uint32_t links = 0;
        EXPECT_EQ(set_entry(warp, *operation, inode, {"..", 2}, {to_ino, format::kTypeDirectory}),
                  0);
        EXPECT_EQ(change_links(warp, *operation, 1u, from_ino, -1, links), 0);
        EXPECT_EQ(change_links(warp, *operation, 1u, to_ino, 1, links), 0);
      }
    }
    end_operation(warp, operation);
    return error;
  }
  static std::string target_of(WritingRig& writing, uint32_t ino) {
    std::string text;
    run_alone(1, [&](const simt::Warp& warp) {
      const Inode link = load_for_test(warp, writing.volume(), ino);
      std::vector<uint8_t> bytes(link.size_bytes);
      const Piece piece{0, static_cast<uint32_t>(link.size_bytes), bytes.data()};
      EXPECT_EQ(read_pieces(warp, writing.volume(), writing.rig().fs().pool, 1u, link, piece), 0);
      text.assign(bytes.begin(), bytes.end());
    });
    return text;
  }
};
GOFS_AT_BOTH_WIDTHS(MakeInodeTest);

TEST_P(MakeInodeTest, every_kind_is_what_was_asked_for) {
  GOFS_NEED_TOOL("fsck.f2fs");
  for (const uint32_t feature :
       {uint32_t{0}, uint32_t{format::kFeatureExtraAttr},
        format::kFeatureExtraAttr | format::kFeatureInodeChecksum, kAllFeatures}) {
    TestImage image(leave_empty, feature);
    std::vector<std::pair<Wanted, uint32_t>> made;
    const std::string long_target(3000, 't');
    {
      WritingRig writing(image, width());
      ASSERT_EQ(writing.begin().error, 0);
      for (const uint16_t mode : kModes) {
        Wanted wanted{"name of " + std::to_string(mode), mode};
        const bool device = mode == kModes[5] || mode == kModes[6];
        if (mode == kModes[2]) wanted.target = long_target;
        if (device)
          wanted.device = {mode == kModes[5] ? 5u : 259u, mode == kModes[5] ? 1u : 70'000};
        const int64_t ino = make_alone(writing, format::kRootIno, wanted);
        ASSERT_GT(ino, 0) << mode;
        made.emplace_back(wanted, static_cast<uint32_t>(ino));
      }
      EXPECT_EQ(make_alone(writing, format::kRootIno, {"no type", 0644}), -EINVAL);
      EXPECT_EQ(make_alone(writing, format::kRootIno, {"long", kModes[2], std::string(3700, 'l')}),
                -EOPNOTSUPP);
      ASSERT_EQ(writing.checkpoint(true), 0);
    }
    EXPECT_TRUE(fsck_likes(image)) << feature;
    WritingRig again(image, 1);
    EXPECT_EQ(load_alone(again, format::kRootIno).links, 3u);
    for (const auto& [wanted, ino] : made) {
      const Inode inode = load_alone(again, ino);
      EXPECT_EQ(inode.mode, wanted.mode);
      EXPECT_EQ(inode.uid, 1000u);
      EXPECT_EQ(inode.gid, 100u);
      EXPECT_EQ(inode.generation, 77u);
      EXPECT_EQ(inode.parent_ino, uint32_t{format::kRootIno});
      EXPECT_EQ(inode.block_count, 1u);
      EXPECT_EQ(inode.links, inode.is_directory() ? 2u : 1u);
      EXPECT_EQ(inode.modified.seconds, kTestNow.seconds);
      EXPECT_EQ(inode.created.seconds,
                (feature & format::kFeatureInodeCrtime) != 0 ? kTestNow.seconds : 0);
      if (wanted.device.major != 0) {
        EXPECT_EQ(inode.device.major, wanted.device.major);
        EXPECT_EQ(inode.device.minor, wanted.device.minor);
      }
      EXPECT_EQ(inode.has_inline_data(), inode.is_regular() || inode.is_symlink());
      EXPECT_EQ(inode.has_inline_dentries(), inode.is_directory());
      if (inode.is_symlink()) {
        EXPECT_EQ(target_of(again, ino), wanted.target);
      }
    }
    EXPECT_EQ(names_of(again, format::kRootIno).size(), made.size());
  }
}

TEST_P(MakeInodeTest, any_tree_agrees_with_a_model) {
  GOFS_NEED_TOOL("fsck.f2fs");
  std::mt19937_64 random(printed_seed());
  const auto pick = [&](size_t count) { return static_cast<uint32_t>(random() % count); };
  for (const uint32_t feature : {uint32_t{0}, kAllFeatures}) {
    TestImage image(leave_empty, feature);
    std::map<uint32_t, NamesOf> tree{{format::kRootIno, {}}};  // by directory
    std::map<uint32_t, uint32_t> parents;                      // of directories
    const auto is_below = [&](uint32_t ino, uint32_t ancestor) {
      for (; ino != format::kRootIno; ino = parents[ino]) {
        if (ino == ancestor) return true;
      }
      return ino == ancestor;
    };
    for (uint32_t mounts = 0; mounts < 2; ++mounts) {
      WritingRig writing(image, width());
      ASSERT_EQ(writing.begin().error, 0);
      for (uint32_t turn = 0; turn < (width() == 1 ? 1500u : 120u); ++turn) {
        const auto some_directory = [&] {
          return std::next(tree.begin(), pick(tree.size()))->first;
        };
        const uint32_t at = some_directory();
        NamesOf& names = tree[at];
        const std::string name(1 + pick(random() % 4 == 0 ? 255 : 12),
                               static_cast<char>('a' + pick(26)));
        const auto found =
            names.empty() ? names.end() : std::next(names.begin(), pick(names.size()));
        const uint32_t what = pick(5);
        if (what < 3 && names.count(name) == 0) {
          Wanted wanted{name, kModes[pick(std::size(kModes))]};
          if (wanted.mode == kModes[2]) wanted.target = std::string(1 + pick(200), 't');
          const int64_t ino = make_alone(writing, at, wanted);
          ASSERT_GT(ino, 0);
          const auto made = static_cast<uint32_t>(ino);
          names[name] = {made, format::file_type_of_mode(wanted.mode)};
          if (wanted.mode == kModes[1]) {
            ASSERT_TRUE(tree.emplace(made, NamesOf{}).second);
            parents[made] = at;
          }
        } else if (what == 3 && found != names.end()) {
          const uint32_t ino = found->second.first;
          const bool is_directory = found->second.second == format::kTypeDirectory;
          const bool full = is_directory && !tree[ino].empty();
          ASSERT_EQ(remove_alone(writing, at, found->first, ino), full ? -ENOTEMPTY : 0);
          if (full) continue;
          if (is_directory) tree.erase(ino);
          tree[at].erase(found);
        } else if (what == 4 && found != names.end()) {
          const uint32_t to = some_directory();
          const auto [ino, type] = found->second;
          if (tree[to].count(name) != 0) continue;
          if (type == format::kTypeDirectory && is_below(to, ino)) continue;
          ASSERT_EQ(answer_of(width(),
                              [&](const simt::Warp& warp) {
                                return move(warp, writing, at, found->first, to, name, ino);
                              }),
                    0);
          names.erase(found);
          tree[to][name] = {ino, type};
          if (type == format::kTypeDirectory) parents[ino] = to;
        }
      }
      ASSERT_EQ(writing.checkpoint(true), 0);
      EXPECT_TRUE(fsck_likes(image));
      for (const auto& [ino, names] : tree) expect_names(writing, ino, names);
    }
    WritingRig again(image, 1);
    for (const auto& [ino, names] : tree) expect_names(again, ino, names);
    for (const auto& [ino, parent] : parents) {
      if (tree.count(ino) == 0) continue;
      EXPECT_EQ(load_alone(again, ino).parent_ino, parent);
      run_alone(1, [&](const simt::Warp& warp) {
        const Inode directory = load_for_test(warp, again.volume(), ino);
        EXPECT_EQ(find_for_test(warp, again.volume(), directory, ".."), parent);
      });
    }
  }
}

TEST_P(MakeInodeTest, lanes_make_inodes_side_by_side) {
  TestImage image(leave_empty, kAllFeatures);
  WritingRig writing(image, width());
  ASSERT_EQ(writing.begin().error, 0);
  std::vector<std::string> names;
  for (uint32_t i = 0; i < width(); ++i) names.push_back("lane" + std::to_string(i));
  run_alone(width(), [&](const simt::Warp& warp) {
    Volume& volume = writing.volume();
    Inode root = load_for_test(warp, volume, format::kRootIno);
    const uint32_t rank = warp.thread_rank();
    const Wanted wanted{names[rank], rank % 2 == 0 ? kModes[0] : kModes[3]};
    uint32_t ino = 0;
    EXPECT_EQ(make_inodes(warp, *TestOperation(warp, volume, writing.writer()), warp.ballot(true),
                          root, new_inode(wanted), ino),
              0);
    for (uint32_t lane = 0; lane < warp.size(); ++lane) {
      const auto type =
          static_cast<uint8_t>(lane % 2 == 0 ? format::kTypeRegular : format::kTypeFifo);
      EXPECT_EQ(add_entry(warp, *TestOperation(warp, volume, writing.writer(), nullptr, kTestNow),
                          root, entry_name(names[lane]), {warp.shfl(ino, lane), type}),
                0);
    }
  });
  EXPECT_EQ(names_of(writing, format::kRootIno).size(), width());
  ASSERT_EQ(writing.checkpoint(true), 0);
  EXPECT_TRUE(fsck_likes(image));
}

TEST_P(MakeInodeTest, what_an_inode_held_is_free_again) {
  TestImage image(leave_empty);
  WritingRig writing(image, width());
  ASSERT_EQ(writing.begin().error, 0);
  Volume& volume = writing.volume();
  const uint64_t blocks = volume.valid_block_count;
  const uint32_t nodes = volume.valid_node_count;
  const auto ino = static_cast<uint32_t>(
      make_alone(writing, format::kRootIno, {"d", format::kModeDirectory | 0700}));
  // Enough names for blocks, an attribute with a node of its own.
  std::map<std::string, uint32_t> files;
  for (uint32_t i = 0; i < 40; ++i) {
    const std::string name = std::string(100, 'n') + std::to_string(i);
    files[name] = static_cast<uint32_t>(make_alone(writing, ino, {name}));
  }
  const std::string value(1000, 'v');
  EXPECT_EQ(answer_of(width(),
                      [&](const simt::Warp& warp) {
                        Inode inode = load_for_test(warp, volume, ino);
                        XattrChange change{};
                        change.index = format::kXattrUser;
                        change.name = "a";
                        change.name_bytes = 1;
                        change.value = value.data();
                        change.value_bytes = 1000;
                        change.changed = kTestNow;
                        return set_xattr(warp,
                                         *TestOperation(warp, volume, writing.writer(),
                                                        &writing.rig().fs().pool),
                                         inode, change);
                      }),
            0);
  EXPECT_FALSE(load_alone(writing, ino).has_inline_dentries());
  EXPECT_EQ(remove_alone(writing, format::kRootIno, "d", ino), -ENOTEMPTY);
  ASSERT_EQ(writing.checkpoint(false), 0);
  EXPECT_TRUE(fsck_likes(image));
  for (const auto& [name, file] : files) EXPECT_EQ(remove_alone(writing, ino, name, file), 0);
  EXPECT_EQ(remove_alone(writing, format::kRootIno, "d", ino), 0);
  EXPECT_EQ(volume.valid_block_count, blocks);
  EXPECT_EQ(volume.valid_node_count, nodes);
  EXPECT_EQ(names_of(writing, format::kRootIno).size(), 0u);
  // Its number may be another's now, who must not meet its pages.
  writing.writer().nid_cursors[0].next = ino;
  EXPECT_EQ(make_alone(writing, format::kRootIno, {"e", format::kModeDirectory | 0700}), ino);
  EXPECT_EQ(names_of(writing, ino).size(), 0u);
  for (uint32_t i = 0; i < 40; ++i) {
    EXPECT_GT(make_alone(writing, ino, {std::string(90, 'm') + std::to_string(i)}), 0);
  }
  EXPECT_EQ(names_of(writing, ino).size(), 40u);
  ASSERT_EQ(writing.checkpoint(true), 0);
  EXPECT_TRUE(fsck_likes(image));
}

TEST_P(MakeInodeTest, a_removed_directory_has_no_names_whoever_has_its_number) {
  TestImage image(leave_empty);
  WritingRig writing(image, width());
  ASSERT_EQ(writing.begin().error, 0);
  for (const uint32_t names : {3u, 40u}) {
    const auto ino = static_cast<uint32_t>(
        make_alone(writing, format::kRootIno, {"d", format::kModeDirectory | 0700}));
    std::map<std::string, uint32_t> files;
    for (uint32_t i = 0; i < names; ++i) {
      const std::string name = std::string(100, 'n') + std::to_string(i);
      files[name] = static_cast<uint32_t>(make_alone(writing, ino, {name}));
    }
    const Inode before = load_alone(writing, ino);
    EXPECT_EQ(before.has_inline_dentries(), names == 3);
    for (const auto& [name, file] : files) EXPECT_EQ(remove_alone(writing, ino, name, file), 0);
    EXPECT_EQ(remove_alone(writing, format::kRootIno, "d", ino), 0);
    writing.writer().nid_cursors[0].next = ino;
    EXPECT_EQ(make_alone(writing, format::kRootIno, {"f" + std::to_string(names)}), ino);
    run_alone(width(), [&](const simt::Warp& warp) {
      for (const auto& [name, file] : files) {
        EXPECT_EQ(find_for_test(warp, writing.volume(), before, name), -ENOENT);
      }
    });
  }
  EXPECT_EQ(count_findings(*writing.volume().corruptions), 0u);
  ASSERT_EQ(writing.checkpoint(true), 0);
  EXPECT_TRUE(fsck_likes(image));
}

// Files of all depths, and a directory that has been large: its nodes stay when its blocks go.
TEST_P(MakeInodeTest, whatever_has_nodes_goes_in_portions) {
  GOFS_NEED_TOOL("fsck.f2fs");
  TestImage image([&](image::ImageBuilder& builder) {
    image::DirectoryOptions options;
    options.dir_level = 20;  // its blocks lie in all trees of nodes
    image::Directory directory;
    TestImage::must(builder.add_directory(builder.root(), "wide", {}, options, &directory));
    for (uint32_t i = 0; i < (width() == 1 ? 40u : 6u); ++i) {
      const std::string name = "in it " + std::to_string(i);
      image::FileSpec file;
      file.name = name;
      TestImage::must(builder.add_file(directory, file));
    }
    image::FileSpec large;
    large.name = "large";
    large.size_bytes = uint64_t{10} << 30;
    large.sparse = true;
    for (uint32_t i = 0; i < 30; ++i) large.ranges.push_back({i * i * 2900, 2});
    TestImage::must(builder.add_file(builder.root(), large));
  });
  WritingRig writing(image, width());
  ASSERT_EQ(writing.begin().error, 0);
  Volume& volume = writing.volume();
  const NamesOf root = names_of(writing, format::kRootIno);
  const uint32_t wide = root.at("wide").first;
  EXPECT_EQ(remove_alone(writing, format::kRootIno, "wide", wide), -ENOTEMPTY);
  for (const auto& [name, entry] : names_of(writing, wide)) {
    ASSERT_EQ(remove_alone(writing, wide, name, entry.first), 0);
  }
  EXPECT_GT(load_alone(writing, wide).block_count, 6u) << "nodes";
  ASSERT_EQ(remove_alone(writing, format::kRootIno, "wide", wide), 0);
  ASSERT_EQ(remove_alone(writing, format::kRootIno, "large", root.at("large").first), 0);
  EXPECT_EQ(volume.valid_inode_count, 1u);
  EXPECT_EQ(volume.valid_node_count, 1u);
  EXPECT_EQ(volume.valid_block_count, load_alone(writing, format::kRootIno).block_count);
  ASSERT_EQ(writing.checkpoint(true), 0);
  EXPECT_TRUE(fsck_likes(image));
  EXPECT_EQ(count_findings(*volume.corruptions), 0u);
}

TEST_P(MakeInodeTest, a_full_volume_makes_nothing) {
  TestImage image(leave_empty);
  WritingRig writing(image, width());
  ASSERT_EQ(writing.begin().error, 0);
  Volume& volume = writing.volume();
  const uint64_t user_blocks = volume.user_block_count;
  volume.user_block_count = volume.valid_block_count + 20;
  std::map<std::string, int64_t> made;
  for (uint32_t i = 0;; ++i) {
    const std::string name = std::string(250, 'f') + std::to_string(i);
    const int64_t ino = make_alone(writing, format::kRootIno, {name});
    if (ino < 0) {
      EXPECT_EQ(ino, -ENOSPC);
      break;
    }
    made[name] = ino;
  }
  EXPECT_GE(made.size(), 15u);
  NamesOf names = names_of(writing, format::kRootIno);
  EXPECT_EQ(names.size(), made.size());
  volume.user_block_count = user_blocks;
  ASSERT_EQ(writing.checkpoint(true), 0);
  EXPECT_TRUE(fsck_likes(image));
}

TEST_P(MakeInodeTest, links_are_counted_and_names_noted) {
  TestImage image(leave_empty);
  WritingRig writing(image, width());
  ASSERT_EQ(writing.begin().error, 0);
  Volume& volume = writing.volume();
  const auto ino = static_cast<uint32_t>(make_alone(writing, format::kRootIno, {"f"}));
  const auto change = [&](int32_t by, int wanted) {
    uint32_t links = 0;
    EXPECT_EQ(answer_of(1,
                        [&](const simt::Warp& warp) {
                          return change_links(
                              warp,
                              *TestOperation(warp, volume, writing.writer(), nullptr, kTestNow), 1u,
                              ino, by, links);
                        }),
              wanted);
    return links;
  };
  EXPECT_EQ(change(1, 0), 2u);
  EXPECT_NE(load_alone(writing, ino).advise & format::kAdviseLostPino, 0);
  EXPECT_EQ(change(-1, 0), 1u);
  change(-2, -EUCLEAN);
  EXPECT_EQ(load_alone(writing, ino).links, 1u);
  EXPECT_EQ(count_findings(*volume.corruptions), 1u);
  const auto other = static_cast<uint32_t>(make_alone(writing, format::kRootIno, {"g"}));
  EXPECT_EQ(load_alone(writing, other).advise & format::kAdviseLostPino, 0);
  const auto give_name = [&](uint32_t to) {
    run_alone(width(), [&](const simt::Warp& warp) {
      EXPECT_EQ(set_parent(warp, *TestOperation(warp, volume, writing.writer(), nullptr, kTestNow),
                           1u, to, 99, {"other", 5}),
                0);
    });
    const Inode renamed = load_alone(writing, to);
    EXPECT_EQ(renamed.parent_ino, 99u);
    EXPECT_TRUE(may_be_freed(writing.writer(), renamed_inode(to)));
    return renamed;
  };
  EXPECT_FALSE(may_be_freed(writing.writer(), renamed_inode(other)));
  EXPECT_EQ(give_name(other).advise & format::kAdviseLostPino, 0) << "its only name";
  EXPECT_EQ(give_name(ino).advise & format::kAdviseLostPino, 0) << "known again";
  EXPECT_EQ(change(1, 0), 2u);
  EXPECT_NE(give_name(ino).advise & format::kAdviseLostPino, 0) << "one of two";
  EXPECT_EQ(writing.checkpoint(false), 0);
  EXPECT_FALSE(may_be_freed(writing.writer(), renamed_inode(ino)));
}

}  // namespace
}  // namespace gofs::f2fs
