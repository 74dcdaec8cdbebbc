// SPDX-License-Identifier: Apache-2.0
//
// For tests only: directories of a volume that is written to, by name.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "f2fs/change_directory.h"
#include "f2fs/listing.h"
#include "f2fs/writing_for_test.hpp"

namespace gofs::f2fs {

/// name -> (ino, type).
using NamesOf = std::map<std::string, std::pair<uint32_t, uint8_t>>;

inline constexpr TimeStamp kTestNow{1'900'000'000, 7};

inline EntryName entry_name(const std::string& name) {
  return {name.data(), static_cast<uint32_t>(name.size())};
}

/// Loads an inode for the whole warp.
inline Inode load_for_test(const simt::Warp& warp, Volume& volume, uint32_t ino) {
  Inode inode{};
  EXPECT_EQ(load_inodes(warp, volume, warp.ballot(true), ino, inode), 0) << ino;
  return inode;
}

inline Inode load_alone(WritingRig& writing, uint32_t ino) {
  Inode inode{};
  testing::run_alone(
      1, [&](const simt::Warp& warp) { inode = load_for_test(warp, writing.volume(), ino); });
  return inode;
}

/// Calls `work(warp) -> int`, by one warp of `width`; its answer.
template <typename Work>
int answer_of(uint32_t width, Work work) {
  int result = 0;
  testing::run_alone(width, [&](const simt::Warp& warp) {
    const int mine = work(warp);
    EXPECT_TRUE(warp.all(warp.shfl(mine, 0) == mine));
    if (warp.thread_rank() == 0) result = mine;
  });
  return result;
}

/// What a listing gives.
inline NamesOf names_of(WritingRig& writing, uint32_t ino) {
  NamesOf names;
  testing::run_alone(1, [&](const simt::Warp& warp) {
    const Inode directory = load_for_test(warp, writing.volume(), ino);
    std::vector<NamedEntry> entries(64);
    DirectoryCursor cursor = 0;
    int damage = 0;
    for (;;) {
      const int64_t count =
          list_entries(warp, writing.volume(), directory, cursor, entries.data(), 64, damage);
      EXPECT_GE(count, 0);
      if (count <= 0) break;
      for (size_t i = 0; i < static_cast<size_t>(count); ++i) {
        const NamedEntry& entry = entries[i];
        const std::string name(entry.name, entry.name_length);
        EXPECT_TRUE(names.emplace(name, std::pair(entry.ino, entry.type)).second)
            << "twice: " << name;
      }
    }
    EXPECT_EQ(damage, 0);
  });
  EXPECT_EQ(count_findings(*writing.volume().corruptions), 0u);
  return names;
}

/// The ino that a name leads to, or the errno of looking it up.
inline int64_t find_for_test(const simt::Warp& warp, Volume& volume, const Inode& directory,
                             const std::string& name) {
  DirectoryEntry entry{};
  const int error =
      find_entry(warp, volume, directory, name.data(), static_cast<uint32_t>(name.size()), entry);
  return error < 0 ? error : int64_t{entry.ino};
}

/// Whether listing and finding give what `model` has.
inline void expect_names(WritingRig& writing, uint32_t ino, const NamesOf& model) {
  EXPECT_EQ(names_of(writing, ino), model);
  testing::run_alone(1, [&](const simt::Warp& warp) {
    const Inode directory = load_for_test(warp, writing.volume(), ino);
    for (const auto& [name, entry] : model) {
      EXPECT_EQ(find_for_test(warp, writing.volume(), directory, name), entry.first) << name;
    }
  });
}

}  // namespace gofs::f2fs
