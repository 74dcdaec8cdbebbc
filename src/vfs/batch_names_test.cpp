// SPDX-License-Identifier: Apache-2.0
//
// Names that many warps enter in one directory at the same time: all are found afterwards, each
// once, whatever their hashes; and what there is no room for leaves nothing behind.
#include "vfs/batch_names.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cerrno>
#include <map>
#include <random>
#include <set>
#include <string>
#include <vector>

#include "vfs/batch_create.h"
#include "vfs/changes_for_test.hpp"

namespace gofs::vfs {
namespace {

constexpr uint32_t kEnterers = 6;

VolumeRigOptions with_cache(uint32_t pages) {
  VolumeRigOptions options;
  options.filesystem.cache_pages = pages;
  options.filesystem.batch_files = 32'768;
  return options;
}

uint32_t hash_of_entry(const std::string& name) {
  return format::name_hash(name.data(), static_cast<uint32_t>(name.size()));
}

class BatchNamesTest : public ChangesTest {
 protected:
  explicit BatchNamesTest(uint32_t cache_pages = 8192)
      : ChangesTest(
            [](image::ImageBuilder& builder) {
              for (const char* name : {"d", "e"}) {
                TestImage::must(builder.add_directory(builder.root(), name, {}, {}, nullptr));
              }
            },
            with_cache(cache_pages), 0, uint64_t{96} << 20) {}

  /// What became of each name.
  std::vector<int> enter(const std::string& path, const std::vector<std::string>& wanted) {
    std::vector<const char*> names;
    for (const std::string& name : wanted) names.push_back(name.c_str());
    const auto count = static_cast<uint32_t>(names.size());
    const BatchCreation creation{path.c_str(), names.data(), count,  0644,
                                 nullptr,      nullptr,      nullptr};
    const auto bd = static_cast<int>(
        alone([&](const simt::Warp& warp) { return begin_creation(warp, fs(), creation); }));
    EXPECT_GE(bd, 0);
    if (bd < 0) return {};
    Batch& batch = fs().batches->batches[bd];
    run_crowd({kEnterers, width()}, [&](const simt::Warp& warp, uint32_t index) {
      prepare_creation(warp, fs(), batch, index, kEnterers);
    });
    run_crowd({kEnterers, width()}, [&](const simt::Warp& warp, uint32_t index) {
      create_batch(warp, fs(), batch, creation, index, kEnterers);
    });
    std::vector<int> errors;
    for (uint32_t i = 0; i < count; ++i) {
      errors.push_back(fs().batches->files[batch.first + i].error);
    }
    EXPECT_EQ(alone([&](const simt::Warp& warp) {
                end_creation(warp, fs(), batch);
                return end_batch(warp, *fs().batches, bd);
              }),
              0);
    return errors;
  }
  /// The directory has just these names, by listing and by looking them up, and so it has after
  /// another mount.
  void expect_names(const std::string& path, const std::set<std::string>& wanted) {
    for (uint32_t mounts = 0; mounts < 2; ++mounts) {
      EXPECT_TRUE(names_of(path) == wanted);
      uint32_t missing = 0;
      alone([&](const simt::Warp& warp) {
        for (const std::string& name : wanted) {
          Stat seen{};
          const std::string whole = path + "/" + name;
          const int error = stat(warp, fs(), whole.c_str(), LastLink::kKeep, seen);
          if (warp.thread_rank() == 0 && error != 0) ++missing;
        }
        return 0;
      });
      EXPECT_EQ(missing, 0u);
      mount_again();
    }
  }
};
GOFS_AT_BOTH_WIDTHS(BatchNamesTest);

std::vector<std::string> numbered(const std::string& prefix, uint32_t from, uint32_t to) {
  std::vector<std::string> names;
  for (uint32_t i = from; i < to; ++i) names.push_back(prefix + std::to_string(i));
  return names;
}

TEST_P(BatchNamesTest, thousands_of_names_and_some_that_are_there) {
  const uint32_t count = width() == 1 ? 8'000 : 3'000;
  const Stat before = stat_of_path("/d");
  std::vector<std::string> names = numbered("some-file-", 0, count);
  for (const int error : enter("/d", names)) EXPECT_EQ(error, 0);
  expect_names("/d", {names.begin(), names.end()});
  EXPECT_GT(stat_of_path("/d").modified.seconds, before.modified.seconds);
  // Of the second batch every third is there.
  std::vector<std::string> more = numbered("some-file-", count - 500, count + 1000);
  std::shuffle(more.begin(), more.end(), std::mt19937(1));
  const std::set<std::string> there(names.begin(), names.end());
  const std::vector<int> errors = enter("/d", more);
  for (size_t i = 0; i < more.size(); ++i) {
    EXPECT_EQ(errors[i], there.count(more[i]) != 0 ? -EEXIST : 0) << more[i];
  }
  std::set<std::string> all = there;
  all.insert(more.begin(), more.end());
  expect_names("/d", all);
}

TEST_P(BatchNamesTest, of_a_name_that_comes_more_than_once_one_is_made) {
  std::mt19937 random(static_cast<uint32_t>(printed_seed()));
  std::vector<std::string> names;
  for (uint32_t i = 0; i < 300; ++i) {
    for (uint32_t k = 0; k < 1 + i % 4; ++k) names.push_back("n" + std::to_string(i));
  }
  // Neighbours, which one warp has, and such as different warps have.
  std::shuffle(names.begin() + 200, names.end(), random);
  const std::vector<int> errors = enter("/d", names);
  std::map<std::string, uint32_t> made;
  for (size_t i = 0; i < names.size(); ++i) {
    EXPECT_TRUE(errors[i] == 0 || errors[i] == -EEXIST) << errors[i];
    made[names[i]] += errors[i] == 0 ? 1 : 0;
  }
  for (const auto& [name, count] : made) EXPECT_EQ(count, 1u) << name;
  expect_names("/d", {names.begin(), names.end()});
}

// They all want the same blocks, and more levels than one operation has room for.
TEST_P(BatchNamesTest, long_names_of_one_bucket) {
  std::vector<std::string> names;
  for (uint32_t i = 0; names.size() < 90; ++i) {
    std::string name = std::to_string(i);
    name.resize(255, 'x');
    if (hash_of_entry(name) % 1024 == 77) names.push_back(name);
  }
  for (const int error : enter("/d", names)) EXPECT_EQ(error, 0);
  for (const int error : enter("/d", names)) EXPECT_EQ(error, -EEXIST);
  expect_names("/d", {names.begin(), names.end()});
}

TEST_P(BatchNamesTest, different_names_of_one_hash) {
  const std::string pairs[][2] = {
      {"h6313", "h6331"}, {"h41169", "h41565"}, {"h33359", "h66547"}, {"h91367", "h112823"}};
  std::vector<std::string> names;
  for (const auto& [one, other] : pairs) {
    ASSERT_EQ(hash_of_entry(one), hash_of_entry(other));
    names.insert(names.end(), {one, other, other});
  }
  const std::vector<int> errors = enter("/d", names);
  const std::set<std::string> wanted(names.begin(), names.end());
  EXPECT_EQ(static_cast<size_t>(std::count(errors.begin(), errors.end(), 0)), wanted.size());
  expect_names("/d", wanted);
}

// Blocks for inodes, and blocks for names, give out in the middle of groups.
TEST_P(BatchNamesTest, on_a_full_volume_those_that_fit) {
  std::set<std::string> made;
  uint32_t round = 0;
  for (const uint64_t room : {40u, 3u, 77u, 150u}) {
    std::vector<std::string> names = numbered("r" + std::to_string(round++) + "-", 0, 200);
    for (std::string& name : names) name.resize(120, 'y');
    const uint64_t before = fs().volume.user_block_count;
    fs().volume.user_block_count = fs().volume.valid_block_count + room;
    const std::vector<int> errors = enter("/d", names);
    EXPECT_LE(fs().volume.valid_block_count, fs().volume.user_block_count);
    fs().volume.user_block_count = before;
    size_t count = 0;
    for (size_t i = 0; i < names.size(); ++i) {
      EXPECT_TRUE(errors[i] == 0 || errors[i] == -ENOSPC) << errors[i];
      if (errors[i] != 0) continue;
      made.insert(names[i]);
      ++count;
    }
    EXPECT_LE(count, room);
    EXPECT_GE(count, room / 3);
  }
  expect_names("/d", made);
}

// Each name comes three times, and there is no room for all: a lane that got its name finds it, and
// the others that there was none.
TEST_P(BatchNamesTest, of_a_name_without_room_none_is_said_to_be_there) {
  std::vector<std::string> names = numbered("n", 0, 300);
  const std::vector<std::string> once = names;
  for (uint32_t i = 0; i < 2; ++i) names.insert(names.end(), once.begin(), once.end());
  std::shuffle(names.begin() + 150, names.end(),
               std::mt19937(static_cast<uint32_t>(printed_seed())));
  const uint64_t before = fs().volume.user_block_count;
  fs().volume.user_block_count = fs().volume.valid_block_count + 200;
  const std::vector<int> errors = enter("/d", names);
  fs().volume.user_block_count = before;
  std::map<std::string, std::multiset<int>> answers;
  for (size_t i = 0; i < names.size(); ++i) answers[names[i]].insert(errors[i]);
  std::set<std::string> made;
  for (const auto& [name, said] : answers) {
    if (said.count(0) == 0) {
      EXPECT_EQ(said.count(-ENOSPC), 3u) << name;
      continue;
    }
    EXPECT_EQ(said.count(0), 1u) << name;
    EXPECT_EQ(said.count(-EEXIST) + said.count(-ENOSPC), 2u) << name;
    made.insert(name);
  }
  EXPECT_GT(made.size(), 50u);
  EXPECT_LT(made.size(), 300u);
  expect_names("/d", made);
}

class BatchNamesInSmallCacheTest : public BatchNamesTest {
 protected:
  BatchNamesInSmallCacheTest() : BatchNamesTest(64) {}
};
GOFS_AT_BOTH_WIDTHS(BatchNamesInSmallCacheTest);

TEST_P(BatchNamesInSmallCacheTest, all_are_entered) {
  const std::vector<std::string> names = numbered("file-", 0, 700);
  for (const int error : enter("/e", names)) EXPECT_EQ(error, 0);
  expect_names("/e", {names.begin(), names.end()});
}

}  // namespace
}  // namespace gofs::vfs
