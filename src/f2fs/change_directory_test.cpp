// SPDX-License-Identifier: Apache-2.0
//
// Directories that change, against a map in memory: inline ones, which move to blocks, and hashed
// ones of several levels, up to node trees of full depth; full volumes, readers beside changes and
// checkpoints, disks that fail and lose power. fsck.f2fs looks at what is left.
#include "f2fs/change_directory.h"

#include <gtest/gtest.h>

#include <atomic>
#include <random>
#include <string>
#include <vector>

#include "f2fs/begin_operation.h"
#include "f2fs/changing_for_test.hpp"
#include "f2fs/links.h"
#include "host/image/reader_for_test.h"
#include "ssd/power_cut.h"
#include "testing/repetitions.hpp"

namespace gofs::f2fs {
namespace {

using gofs::testing::printed_seed;
using gofs::testing::run_alone;
using gofs::testing::run_crowd;
using gofs::testing::TestImage;
using gofs::testing::VolumeRigOptions;

constexpr uint32_t kTargets = 16;
constexpr uint32_t kRoomyCache = 4096;  // no operation makes a checkpoint

struct DirectoryKind {
  const char* name;
  bool in_inode;
  uint8_t dir_level;
};
// With 2^9 buckets of two blocks the first level does not fit in the inode's slots, with 2^20 some
// of its blocks are at the end of the deepest tree of nodes.
constexpr DirectoryKind kDirectoryKinds[] = {{"inline", true, 0}, {"odd inline", true, 3},
                                             {"plain", false, 0}, {"levelled", false, 2},
                                             {"nodes", false, 9}, {"deep", false, 20}};

void fill_with_directories(image::ImageBuilder& builder) {
  for (uint32_t i = 0; i < kTargets; ++i) {
    const std::string name = "target" + std::to_string(i);
    image::FileSpec file;
    file.name = name;
    TestImage::must(builder.add_file(builder.root(), file));
  }
  for (const DirectoryKind& kind : kDirectoryKinds) {
    image::DirectoryOptions options;
    options.inline_dentries = kind.in_inode;
    options.dir_level = kind.dir_level;
    image::Directory directory;
    TestImage::must(builder.add_directory(builder.root(), kind.name, {}, options, &directory));
  }
}

/// Below `count`.
uint32_t draw(std::mt19937_64& random, uint32_t count) {
  return static_cast<uint32_t>(random() % count);
}

/// Any bytes but those that no name has.
std::string random_name(std::mt19937_64& random) {
  const uint32_t way = draw(random, 8);
  const size_t length = way == 0 ? 1 + random() % 255 : way == 1 ? 1 : 1 + random() % 20;
  std::string name(length, '\0');
  for (char& byte : name) {
    do {
      byte = static_cast<char>(way < 4 ? random() : 'a' + random() % 3);
    } while (byte == '\0' || byte == '/');
  }
  return name == "." || name == ".." ? "x" : name;
}

class ChangeDirectoryTest : public ::testing::TestWithParam<uint32_t> {
 protected:
  uint32_t width() const { return GetParam(); }

  /// The inos of an image: of the targets, and of the directories by kind.
  struct Inos {
    std::vector<uint32_t> targets;
    std::vector<uint32_t> directories;
  };
  static Inos inos_in(TestImage& image) {
    Inos inos;
    const auto target = image.target();
    image::TestReader reader(*target);
    for (uint32_t i = 0; i < kTargets; ++i) {
      inos.targets.push_back(reader.at("/target" + std::to_string(i)).ino);
    }
    for (const DirectoryKind& kind : kDirectoryKinds) {
      inos.directories.push_back(reader.at(std::string("/") + kind.name).ino);
    }
    return inos;
  }

  // Operations as callers make them. All lanes get the answer.
  static int link(const simt::Warp& warp, WritingRig& writing, uint32_t ino,
                  const std::string& name, uint32_t target) {
    Volume& volume = writing.volume();
    OperationSlot operation;
    const Inode before = load_for_test(warp, volume, ino);
    int error = begin_operation(
        warp, {volume, writing.writer()}, pages_to_add_entry(before) + 1, [&] { return kTestNow; },
        operation);
    if (error < 0) return error;
    Inode directory = load_for_test(warp, volume, ino);
    error =
        add_entry(warp, *operation, directory, entry_name(name), {target, format::kTypeRegular});
    if (error == 0) {
      expect_same(warp, directory, load_for_test(warp, volume, ino));
      count(warp, *operation, target, 1);
    }
    end_operation(warp, operation);
    return error;
  }
  static int unlink(const simt::Warp& warp, WritingRig& writing, uint32_t ino,
                    const std::string& name, uint32_t target) {
    OperationSlot operation;
    int error = begin_operation(
        warp, {writing.volume(), writing.writer()}, kPagesToChangeEntry + 1,
        [&] { return kTestNow; }, operation);
    if (error < 0) return error;
    Inode directory = load_for_test(warp, writing.volume(), ino);
    error = remove_entry(warp, *operation, directory, entry_name(name));
    if (error == 0) {
      expect_same(warp, directory, load_for_test(warp, writing.volume(), ino));
      count(warp, *operation, target, -1);
    }
    end_operation(warp, operation);
    return error;
  }
  /// Removes a name beside others, by a caller that has loaded the directory as `directory`.
  static int unlink_shared(const simt::Warp& warp, WritingRig& writing, Inode& directory,
                           const std::string& name, uint32_t target, DirectoryLocks& locks,
                           EmptiedBlock& emptied) {
    OperationSlot operation;
    int error = begin_operation(
        warp, {writing.volume(), writing.writer()}, kPagesToChangeEntry + 1,
        [&] { return kTestNow; }, operation);
    if (error < 0) return error;
    error = remove_shared_entry(warp, *operation, directory, entry_name(name), &locks, emptied);
    if (error == 0) count(warp, *operation, target, -1);
    end_operation(warp, operation);
    return error;
  }
  static int drop_empty(const simt::Warp& warp, WritingRig& writing, uint32_t ino, uint64_t index) {
    OperationSlot operation;
    int error =
        begin_operation(warp, {writing.volume(), writing.writer()}, kPagesToChangeEntry, operation);
    if (error < 0) return error;
    Inode directory = load_for_test(warp, writing.volume(), ino);
    error = drop_if_empty(warp, *operation, directory, index);
    end_operation(warp, operation);
    return error;
  }
  static int relink(const simt::Warp& warp, WritingRig& writing, uint32_t ino,
                    const std::string& name, uint32_t from, uint32_t to) {
    OperationSlot operation;
    int error = begin_operation(
        warp, {writing.volume(), writing.writer()}, kPagesToChangeEntry + 2,
        [&] { return kTestNow; }, operation);
    if (error < 0) return error;
    Inode directory = load_for_test(warp, writing.volume(), ino);
    error = set_entry(warp, *operation, directory, entry_name(name), {to, format::kTypeRegular});
    if (error == 0) {
      count(warp, *operation, from, -1);
      count(warp, *operation, to, 1);
    }
    end_operation(warp, operation);
    return error;
  }
  static void count(const simt::Warp& warp, Operation& op, uint32_t ino, int32_t change) {
    uint32_t links = 0;
    EXPECT_EQ(change_links(warp, op, 1u, ino, change, links), 0);
  }
  static void expect_same(const simt::Warp& warp, const Inode& ours, const Inode& theirs) {
    if (warp.thread_rank() != 0) return;
    EXPECT_EQ(ours.size_bytes, theirs.size_bytes);
    EXPECT_EQ(ours.block_count, theirs.block_count);
    EXPECT_EQ(ours.dir_depth, theirs.dir_depth);
    EXPECT_EQ(ours.inline_flags, theirs.inline_flags);
    EXPECT_EQ(ours.slot_count, theirs.slot_count);
    EXPECT_EQ(ours.modified.seconds, theirs.modified.seconds);
    EXPECT_EQ(theirs.changed.seconds, kTestNow.seconds);
  }

  /// Changes a directory `turns` times at random, and the model with it.
  void change(WritingRig& writing, const Inos& inos, uint32_t ino, uint32_t turns,
              std::mt19937_64& random, NamesOf& model) {
    for (uint32_t turn = 0; turn < turns; ++turn) {
      const uint32_t target = inos.targets[random() % inos.targets.size()];
      const uint32_t what = draw(random, 8);
      std::string name = random_name(random);
      if (what < 4 && !model.empty()) {
        auto some = model.lower_bound(name);
        if (some == model.end()) some = model.begin();
        name = some->first;
      }
      const auto found = model.find(name);
      int wanted = 0;
      const int error = answer_of(width(), [&](const simt::Warp& warp) {
        if (what == 0) {
          const uint32_t from = found == model.end() ? 0 : found->second.first;
          return relink(warp, writing, ino, name, from, target);
        }
        if (what < 4) {
          const uint32_t from = found == model.end() ? 0 : found->second.first;
          return unlink(warp, writing, ino, name, from);
        }
        return found == model.end() ? link(warp, writing, ino, name, target) : 0;
      });
      if (what < 4 && found == model.end()) wanted = -ENOENT;
      ASSERT_EQ(error, wanted) << "turn " << turn << " what " << what;
      if (error < 0) continue;
      if (what == 0) {
        found->second.first = target;
      } else if (what < 4) {
        model.erase(found);
      } else if (found == model.end()) {
        model[name] = {target, format::kTypeRegular};
      }
    }
  }
  void add_numbered(WritingRig& writing, const Inos& inos, uint32_t ino, const std::string& prefix,
                    uint32_t count, NamesOf& model) {
    run_alone(width(), [&](const simt::Warp& warp) {
      for (uint32_t i = 0; i < count; ++i) {
        const std::string name = prefix + std::to_string(i);
        const uint32_t target = inos.targets[i % kTargets];
        ASSERT_EQ(link(warp, writing, ino, name, target), 0) << name;
        if (warp.thread_rank() == 0) model[name] = {target, format::kTypeRegular};
      }
    });
  }
};
GOFS_AT_BOTH_WIDTHS(ChangeDirectoryTest);

TEST_P(ChangeDirectoryTest, any_changes_agree_with_a_map) {
  GOFS_NEED_TOOL("fsck.f2fs");
  std::mt19937_64 random(printed_seed());
  for (const uint32_t feature :
       {uint32_t{0}, format::kFeatureExtraAttr | format::kFeatureInodeChecksum |
                         format::kFeatureFlexibleInlineXattr | format::kFeatureInodeCrtime}) {
    TestImage image(fill_with_directories, feature);
    const Inos inos = inos_in(image);
    std::vector<NamesOf> models(inos.directories.size());
    for (uint32_t mounts = 0; mounts < 2; ++mounts) {
      WritingRig writing(image, width());
      ASSERT_EQ(writing.begin().error, 0);
      for (size_t kind = 0; kind < models.size(); ++kind) {
        const uint32_t turns = width() == 1 ? testing::repetitions(500, 150) : 60;
        change(writing, inos, inos.directories[kind], turns, random, models[kind]);
        expect_names(writing, inos.directories[kind], models[kind]);
      }
      ASSERT_EQ(writing.checkpoint(true), 0);
      for (size_t kind = 0; kind < models.size(); ++kind) {
        expect_names(writing, inos.directories[kind], models[kind]);
      }
      EXPECT_EQ(simt::load_relaxed(writing.volume().cache.dirty), 0u);
      EXPECT_TRUE(fsck_likes(image));
    }
    WritingRig again(image, 1);
    for (size_t kind = 0; kind < models.size(); ++kind) {
      expect_names(again, inos.directories[kind], models[kind]);
    }
  }
}

TEST_P(ChangeDirectoryTest, thousands_of_names_come_and_go) {
  GOFS_NEED_TOOL("fsck.f2fs");
  TestImage image(fill_with_directories);
  const Inos inos = inos_in(image);
  const uint32_t ino = inos.directories[0];
  WritingRig writing(image, width());
  ASSERT_EQ(writing.begin().error, 0);
  const uint64_t blocks_before = writing.volume().valid_block_count;
  const uint32_t many = width() == 1 ? 4000 : 500;
  NamesOf model;
  add_numbered(writing, inos, ino, "a name of four slots all in all", many, model);
  expect_names(writing, ino, model);
  const Inode grown = load_alone(writing, ino);
  EXPECT_FALSE(grown.has_inline_dentries());
  EXPECT_GE(grown.dir_depth, width() == 1 ? 6u : 3u);
  EXPECT_GT(grown.block_count, many * 5 / format::kDentrySlotsPerBlock);
  ASSERT_EQ(writing.checkpoint(false), 0);
  EXPECT_TRUE(fsck_likes(image));
  run_alone(width(), [&](const simt::Warp& warp) {
    for (const auto& [name, entry] : model) {
      ASSERT_EQ(unlink(warp, writing, ino, name, entry.first), 0) << name;
    }
  });
  expect_names(writing, ino, {});
  // Empty blocks were removed, but for that of `.` and `..`.
  EXPECT_EQ(load_alone(writing, ino).block_count, 2u);
  EXPECT_EQ(writing.volume().valid_block_count, blocks_before + 1);
  ASSERT_EQ(writing.checkpoint(true), 0);
  EXPECT_TRUE(fsck_likes(image));
}

TEST_P(ChangeDirectoryTest, a_full_volume_leaves_everything_as_it_was) {
  for (size_t kind = 0; kind < std::size(kDirectoryKinds); ++kind) {
    TestImage image(fill_with_directories);
    const Inos inos = inos_in(image);
    const uint32_t ino = inos.directories[kind];
    WritingRig writing(image, width());
    ASSERT_EQ(writing.begin().error, 0);
    Volume& volume = writing.volume();
    const uint64_t user_blocks = volume.user_block_count;
    volume.user_block_count = volume.valid_block_count + 3;
    NamesOf model;
    int error = 0;
    run_alone(width(), [&](const simt::Warp& warp) {
      for (uint32_t i = 0;; ++i) {
        const std::string name = std::string(200, 'n') + std::to_string(i);
        const uint64_t counted = volume.valid_block_count;
        const Inode before = load_for_test(warp, volume, ino);
        const int mine = link(warp, writing, ino, name, inos.targets[0]);
        if (warp.thread_rank() == 0) {
          error = mine;
          if (mine == 0) model[name] = {inos.targets[0], format::kTypeRegular};
        }
        if (mine == 0) continue;
        const Inode after = load_for_test(warp, volume, ino);
        // Nodes may have been made on the way.
        if (warp.thread_rank() == 0) {
          EXPECT_EQ(after.block_count - before.block_count, volume.valid_block_count - counted);
          EXPECT_EQ(after.size_bytes, before.size_bytes);
        }
        break;
      }
    });
    EXPECT_EQ(error, -ENOSPC);
    expect_names(writing, ino, model);
    volume.user_block_count = user_blocks;
    add_numbered(writing, inos, ino, "more", 20, model);
    expect_names(writing, ino, model);
    ASSERT_EQ(writing.checkpoint(true), 0);
    EXPECT_TRUE(fsck_likes(image)) << kDirectoryKinds[kind].name;
  }
}

// A name that stays is found at any time, by who loads the directory and then looks.
TEST_P(ChangeDirectoryTest, readers_find_what_stays_beside_changes_and_checkpoints) {
  TestImage image(fill_with_directories);
  const Inos inos = inos_in(image);
  VolumeRigOptions options;
  options.filesystem.cache_pages = 64;
  WritingRig writing(image, width(), options);
  ASSERT_EQ(writing.begin().error, 0);
  const uint32_t rounds = width() == 1 ? 40 : 4;
  std::vector<std::atomic<uint32_t>> stays(inos.directories.size());
  std::atomic<bool> over{false};
  std::atomic<uint32_t> wrong{0};
  std::atomic<uint32_t> looked{0};
  std::vector<std::vector<NamedEntry>> listings(3, std::vector<NamedEntry>(32));
  run_crowd({3, width()}, [&](const simt::Warp& warp, uint32_t index) {
    Volume& volume = writing.volume();
    if (index == 0) {
      for (uint32_t round = 0; round < rounds; ++round) {
        for (size_t kind = 0; kind < inos.directories.size(); ++kind) {
          const uint32_t ino = inos.directories[kind];
          const std::string stay = "stays" + std::to_string(round);
          EXPECT_EQ(link(warp, writing, ino, stay, inos.targets[0]), 0);
          if (warp.thread_rank() == 0) stays[kind] = round + 1;
          for (uint32_t i = 0; i < 4; ++i) {
            const std::string goes = std::string(50 * i + 1, 'g') + std::to_string(i);
            EXPECT_EQ(round % 2 == 0 ? link(warp, writing, ino, goes, inos.targets[1])
                                     : unlink(warp, writing, ino, goes, inos.targets[1]),
                      0);
          }
        }
        if (round % 4 == 3) {
          EXPECT_EQ(write_checkpoint(warp, volume, writing.writer(), false), 0);
        }
      }
      over = true;
      return;
    }
    std::mt19937_64 random(index);
    std::vector<NamedEntry>& entries = listings[index];
    while (!warp.any(over)) {
      const size_t kind = random() % inos.directories.size();
      const uint32_t there = warp.shfl(stays[kind].load(), 0);
      if (there == 0) continue;
      const std::string name = "stays" + std::to_string(random() % there);
      const Inode directory = load_for_test(warp, volume, inos.directories[kind]);
      if (find_for_test(warp, volume, directory, name) != inos.targets[0]) ++wrong;
      if (find_for_test(warp, volume, directory, "never") != -ENOENT) ++wrong;
      ++looked;
      if (random() % 8 != 0) continue;
      // A listing has all that was there before it began.
      uint32_t seen = 0;
      int damage = 0;
      DirectoryCursor cursor = 0;
      for (int64_t listed = 1; listed > 0;) {
        listed = list_entries(warp, volume, directory, cursor, entries.data(),
                              static_cast<uint32_t>(entries.size()), damage);
        warp.sync();
        for (int64_t i = 0; i < listed; ++i) {
          const NamedEntry& entry = entries[static_cast<size_t>(i)];
          if (std::string(entry.name).rfind("stays", 0) == 0) ++seen;
        }
        warp.sync();
        if (listed < 0) ++wrong;
      }
      if (seen < there || damage != 0) ++wrong;
    }
  });
  EXPECT_EQ(wrong, 0u);
  EXPECT_GT(looked, 0u);
  EXPECT_EQ(count_findings(*writing.volume().corruptions), 0u);
  ASSERT_EQ(writing.checkpoint(true), 0);
  EXPECT_TRUE(fsck_likes(image));
}

TEST_P(ChangeDirectoryTest, who_loaded_a_directory_before_finds_what_stayed) {
  TestImage image(fill_with_directories);
  const Inos inos = inos_in(image);
  WritingRig writing(image, width());
  ASSERT_EQ(writing.begin().error, 0);
  std::vector<NamedEntry> entries(64);
  for (const uint32_t ino : inos.directories) {
    NamesOf model;
    add_numbered(writing, inos, ino, "stays", 3, model);
    const Inode before = load_alone(writing, ino);
    add_numbered(writing, inos, ino, std::string(200, 'n'), 30, model);
    EXPECT_FALSE(load_alone(writing, ino).has_inline_dentries());
    run_alone(width(), [&](const simt::Warp& warp) {
      EXPECT_EQ(find_for_test(warp, writing.volume(), before, "stays1"), inos.targets[1]);
      EXPECT_EQ(find_for_test(warp, writing.volume(), before, "never"), -ENOENT);
      uint32_t seen = 0;
      int damage = 0;
      DirectoryCursor cursor = 0;
      for (int64_t listed = 1; listed > 0;) {
        listed = list_entries(warp, writing.volume(), before, cursor, entries.data(),
                              static_cast<uint32_t>(entries.size()), damage);
        warp.sync();
        for (int64_t i = 0; i < listed; ++i) {
          if (entries[static_cast<size_t>(i)].name[0] == 's') ++seen;
        }
        warp.sync();
        EXPECT_GE(listed, 0);
      }
      EXPECT_EQ(seen, 3u);
      EXPECT_EQ(damage, 0);
    });
  }
  EXPECT_EQ(count_findings(*writing.volume().corruptions), 0u);
}

// Others may have made it deeper, or moved its entries out of the inode. A block that has become
// empty stays until a thread holds the directory exclusively, and goes then only if it is still
// empty.
TEST_P(ChangeDirectoryTest, who_removes_beside_others_leaves_empty_blocks) {
  GOFS_NEED_TOOL("fsck.f2fs");
  TestImage image(fill_with_directories);
  const Inos inos = inos_in(image);
  WritingRig writing(image, width());
  ASSERT_EQ(writing.begin().error, 0);
  for (const uint32_t ino : inos.directories) {
    NamesOf model;
    add_numbered(writing, inos, ino, "stays", 3, model);
    Inode before = load_alone(writing, ino);
    const std::string prefix(200, 'n');
    add_numbered(writing, inos, ino, prefix, 30, model);
    DirectoryLocks locks{};
    run_alone(width(), [&](const simt::Warp& warp) {
      EmptiedBlock emptied{};
      const uint32_t target = model.at("stays1").first;
      Inode directory = before;
      EXPECT_EQ(unlink_shared(warp, writing, directory, "stays1", target, locks, emptied), 0);
      EXPECT_EQ(unlink_shared(warp, writing, directory, "stays1", target, locks, emptied), -ENOENT);
    });
    model.erase("stays1");
    expect_names(writing, ino, model);

    // All that go leave as many blocks as there were.
    const uint64_t blocks = load_alone(writing, ino).block_count;
    std::vector<uint64_t> empty;
    std::string again;
    for (const auto& [name, entry] : NamesOf(model)) {
      if (name[0] != 'n') continue;
      run_alone(width(), [&](const simt::Warp& warp) {
        EmptiedBlock emptied{};
        Inode directory = load_for_test(warp, writing.volume(), ino);
        EXPECT_EQ(unlink_shared(warp, writing, directory, name, entry.first, locks, emptied), 0);
        if (emptied.is_empty && warp.thread_rank() == 0) empty.push_back(emptied.index);
      });
      model.erase(name);
      again = name;
    }
    EXPECT_EQ(locks.growth, 0u);
    EXPECT_EQ(locks.times, 0u);
    EXPECT_EQ(load_alone(writing, ino).block_count, blocks);
    ASSERT_FALSE(empty.empty());
    // One of them gets an entry again.
    run_alone(width(), [&](const simt::Warp& warp) {
      EXPECT_EQ(link(warp, writing, ino, again, inos.targets[0]), 0);
    });
    model[again] = {inos.targets[0], format::kTypeRegular};
    const uint64_t used = load_alone(writing, ino).block_count;
    run_alone(width(), [&](const simt::Warp& warp) {
      for (const uint64_t index : empty) EXPECT_EQ(drop_empty(warp, writing, ino, index), 0);
      for (const uint64_t index : empty) EXPECT_EQ(drop_empty(warp, writing, ino, index), 0);
      EXPECT_EQ(drop_empty(warp, writing, ino, uint64_t{1} << 28), 0);
    });
    EXPECT_LT(load_alone(writing, ino).block_count, used);
    expect_names(writing, ino, model);
  }
  ASSERT_EQ(writing.checkpoint(true), 0);
  EXPECT_TRUE(fsck_likes(image));
}

// Several directories at once, each changed by one warp.
TEST_P(ChangeDirectoryTest, warps_change_directories_of_their_own) {
  TestImage image(fill_with_directories);
  const Inos inos = inos_in(image);
  WritingRig writing(image, width());
  ASSERT_EQ(writing.begin().error, 0);
  const auto warps = static_cast<uint32_t>(inos.directories.size());
  const uint32_t count_each = width() == 1 ? 120 : 20;
  run_crowd({warps, width()}, [&](const simt::Warp& warp, uint32_t index) {
    for (uint32_t i = 0; i < count_each; ++i) {
      const std::string name = std::string(i % 40, 'x') + std::to_string(i);
      EXPECT_EQ(link(warp, writing, inos.directories[index], name, inos.targets[index]), 0);
    }
  });
  for (const uint32_t ino : inos.directories) {
    EXPECT_EQ(names_of(writing, ino).size(), count_each);
  }
  ASSERT_EQ(writing.checkpoint(true), 0);
  EXPECT_TRUE(fsck_likes(image));
}

TEST_P(ChangeDirectoryTest, a_write_that_fails_leaves_the_checkpoint_before) {
  TestImage sound(fill_with_directories);
  const Inos inos = inos_in(sound);
  uint32_t failures = 0;
  for (uint32_t skip = 0;; skip += width() == 1 ? 3 : 29) {
    TestImage image(sound);
    VolumeRigOptions options;
    options.ssd.fault_capacity = 1;
    options.filesystem.cache_pages = kRoomyCache;
    WritingRig writing(image, width(), options);
    ASSERT_EQ(writing.begin().error, 0);
    std::vector<NamesOf> models(inos.directories.size());
    for (size_t kind = 0; kind < models.size(); ++kind) {
      const uint32_t count_each = width() == 1 ? 20 : 8;
      add_numbered(writing, inos, inos.directories[kind], std::string(200, 'f'), count_each,
                   models[kind]);
    }
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
    const auto on_disk = [&](size_t kind) {
      WritingRig reading(image, 1);
      return names_of(reading, inos.directories[kind]);
    };
    const size_t some = skip % models.size();
    EXPECT_TRUE(names_of(writing, inos.directories[some]) == models[some]) << skip;
    if (writing.writer().failed < 0) continue;  // not known
    EXPECT_EQ(on_disk(some).size(), 0u) << skip;
    ASSERT_EQ(writing.checkpoint(true), 0);
    EXPECT_TRUE(on_disk(some) == models[some]) << skip;
    if (failures % 4 == 1) {
      EXPECT_TRUE(fsck_likes(image)) << skip;
    }
  }
  EXPECT_GT(failures, width() == 1 ? 15u : 1u);
}

TEST_P(ChangeDirectoryTest, a_power_cut_leaves_the_names_of_a_checkpoint) {
  GOFS_NEED_TOOL("fsck.f2fs");
  TestImage image(fill_with_directories);
  const Inos inos = inos_in(image);
  const TestImage before(image);
  VolumeRigOptions options;
  options.ssd.logged_commands = 4096;
  options.ssd.logged_bytes = 16 << 20;
  options.filesystem.cache_pages = kRoomyCache;
  WritingRig writing(image, width(), options);
  ASSERT_EQ(writing.begin().error, 0);
  constexpr uint32_t kRounds = 3;
  std::mt19937_64 random(5);
  std::vector<std::vector<NamesOf>> rounds(1, std::vector<NamesOf>(inos.directories.size()));
  for (uint32_t round = 1; round <= kRounds; ++round) {
    rounds.push_back(rounds.back());
    for (size_t kind = 0; kind < inos.directories.size(); ++kind) {
      change(writing, inos, inos.directories[kind], 40, random, rounds.back()[kind]);
    }
    ASSERT_EQ(writing.checkpoint(false), 0);
  }
  const ssd::WriteTrace trace =
      ssd::read_trace(writing.rig().arena().space(), writing.rig().controller());
  TestImage left(before);
  size_t least = 0;
  for (uint32_t event = 0; event <= trace.events;
       event += 1 + draw(random, width() == 1 ? testing::repetitions(6, 40) : 40)) {
    const ssd::PowerCut cut(trace, event);
    for (uint32_t way = 0; way < 3; ++way) {
      cut.apply({left.data(), left.bytes()}, 512, [&](uint32_t, uint64_t) {
        return way == 0 ? false : way == 1 ? true : random() % 2 == 0;
      });
      WritingRig reading(left, 1);
      std::vector<NamesOf> found;
      for (const uint32_t ino : inos.directories) found.push_back(names_of(reading, ino));
      size_t round = 0;
      while (round < rounds.size() && rounds[round] != found) ++round;
      EXPECT_LT(round, rounds.size()) << "no checkpoint had these names";
      EXPECT_GE(round, least) << "what was durable is gone";
      if (way == 0) least = round;
      if (way == 2 && random() % 12 == 0) {
        EXPECT_TRUE(fsck_likes(left, true)) << event;
      }
      put_back(left, before, trace);
    }
  }
}

TEST_P(ChangeDirectoryTest, a_block_that_cannot_be_read_refuses_what_needs_it) {
  TestImage image(fill_with_directories);
  const Inos inos = inos_in(image);
  const uint32_t ino = inos.directories[2];
  NamesOf model;
  {
    WritingRig writing(image, width());
    ASSERT_EQ(writing.begin().error, 0);
    add_numbered(writing, inos, ino, "before", 30, model);
    ASSERT_EQ(writing.checkpoint(true), 0);
  }
  VolumeRigOptions options;
  options.ssd.fault_capacity = 1;
  WritingRig writing(image, width(), options);
  ASSERT_EQ(writing.begin().error, 0);
  BlockPlace first{};
  run_alone(1, [&](const simt::Warp& warp) {
    const Inode directory = load_for_test(warp, writing.volume(), ino);
    EXPECT_EQ(map_blocks(warp, writing.volume(), 1u, directory, 0, first), 0);
  });
  writing.rig().add_fault(
      testing::VolumeRig::reads_of_block(first.block, 9, ssd::FaultAction::kStatus));
  const uint64_t blocks = writing.volume().valid_block_count;
  const auto try_all = [&](int wanted) {
    EXPECT_EQ(answer_of(width(),
                        [&](const simt::Warp& warp) {
                          return link(warp, writing, ino, "new", inos.targets[0]);
                        }),
              wanted);
    EXPECT_EQ(answer_of(width(),
                        [&](const simt::Warp& warp) {
                          return relink(warp, writing, ino, "before1", inos.targets[1],
                                        inos.targets[2]);
                        }),
              wanted);
    EXPECT_EQ(answer_of(width(),
                        [&](const simt::Warp& warp) {
                          return unlink(warp, writing, ino, "before0", inos.targets[0]);
                        }),
              wanted);
  };
  try_all(-EIO);
  EXPECT_EQ(writing.volume().valid_block_count, blocks);
  writing.rig().clear_faults();
  expect_names(writing, ino, model);
  try_all(0);
  model.erase("before0");
  model["before1"].first = inos.targets[2];
  model["new"] = {inos.targets[0], format::kTypeRegular};
  expect_names(writing, ino, model);
  ASSERT_EQ(writing.checkpoint(true), 0);
  EXPECT_TRUE(fsck_likes(image));
}

TEST_P(ChangeDirectoryTest, room_is_found_wherever_it_is) {
  std::mt19937_64 random(9);
  std::vector<uint8_t> page(kBlockBytes);
  for (uint32_t turn = 0; turn < 3000; ++turn) {
    const bool whole = turn % 2 == 0;
    const format::DentryArea area = whole ? format::dentry_block_area()
                                          : format::inline_dentry_area(4 * (1 + draw(random, 900)));
    for (uint8_t& byte : page) byte = static_cast<uint8_t>(random());
    const uint32_t density = 1 + draw(random, 20);
    for (uint32_t slot = 0; slot < area.slot_count; ++slot) {
      format::set_lsb_bit(page.data(), slot, random() % density == 0);
    }
    const uint32_t count_wanted = 1 + draw(random, 32);
    uint32_t wanted = detail::kNoSlot;
    uint32_t last_used = 0;
    for (uint32_t slot = 0; slot < area.slot_count; ++slot) {
      bool free = slot + count_wanted <= area.slot_count;
      for (uint32_t i = 0; i < count_wanted && free; ++i) {
        free = !format::lsb_bit(page.data(), slot + i);
      }
      if (free && wanted == detail::kNoSlot) wanted = slot;
      if (format::lsb_bit(page.data(), slot)) last_used = slot + 1;
    }
    EXPECT_EQ(detail::find_free_slots({page.data(), area}, count_wanted), wanted);
    const uint32_t from = draw(random, area.slot_count + 1);
    EXPECT_EQ(detail::any_used_slot({page.data(), area}, from), last_used > from);
  }
}

}  // namespace
}  // namespace gofs::f2fs
