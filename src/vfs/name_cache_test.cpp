// SPDX-License-Identifier: Apache-2.0
//
// The tables of names: what was entered is found, what was not is not, and while many enter and
// look up in a table far too small no thread ever gets another name's answer.
#include "vfs/name_cache.h"

#include <gtest/gtest.h>

#include <atomic>
#include <string>
#include <vector>

#include "format/name_hash.h"
#include "host/image/pattern.h"
#include "vfs/vfs_for_test.hpp"

namespace gofs::vfs {
namespace {

template <typename Table>
class TableOwner {
 public:
  explicit TableOwner(uint32_t entries) {
    table_.entries = reinterpret_cast<typename Table::Entry*>(
        arena_.bytes(entries * sizeof(typename Table::Entry)));
    table_.mask = entries - 1;
  }
  const Table& operator*() const { return table_; }

 private:
  TestArena arena_;
  Table table_{};
};

uint32_t hash_of(const std::string& name) {
  return format::name_hash(name.data(), static_cast<uint32_t>(name.size()));
}

template <typename Table>
void insert(const simt::Warp& warp, const Table& table, uint32_t scope, const std::string& name,
            const NameTarget& target) {
  const auto length = static_cast<uint32_t>(name.size());
  NameTarget before{};
  uint64_t seen = 0;
  (void)table.find(warp, scope, hash_of(name), name.data(), length, before, seen);
  table.insert(warp, scope, hash_of(name), name.data(), length, target, seen);
}

/// The ino, or 0.
template <typename Table>
uint32_t find(const simt::Warp& warp, const Table& table, uint32_t scope, const std::string& name) {
  NameTarget target{};
  uint64_t seen = 0;
  const bool found = table.find(warp, scope, hash_of(name), name.data(),
                                static_cast<uint32_t>(name.size()), target, seen);
  EXPECT_TRUE(warp.all(found) || !warp.any(found)) << "lanes disagree";
  return found ? target.ino : 0;
}

class NameCacheTest : public ::testing::TestWithParam<uint32_t> {
 protected:
  uint32_t width() const { return GetParam(); }
};
GOFS_AT_BOTH_WIDTHS(NameCacheTest);

TEST_P(NameCacheTest, what_was_entered_is_found_under_its_own_name_only) {
  TableOwner<DentryTable> table(1024);
  run_alone(width(), [&](const simt::Warp& warp) {
    std::vector<std::string> names;
    for (uint32_t length = 1; length <= 40; ++length) names.emplace_back(length, 'n');
    names.push_back(std::string("\xff\x01\x80", 3));
    EXPECT_EQ(find(warp, *table, 7, "n"), 0u);
    for (uint32_t i = 0; i < names.size(); ++i) insert(warp, *table, 7, names[i], {100 + i, 1});
    uint32_t kept = 0;
    for (uint32_t i = 0; i < names.size(); ++i) {
      const uint32_t ino = find(warp, *table, 7, names[i]);
      EXPECT_TRUE(ino == 0 || ino == 100 + i) << names[i];  // pushed out, or right
      kept += ino != 0 ? 1 : 0;
      EXPECT_EQ(find(warp, *table, 8, names[i]), 0u) << "of another directory";
      EXPECT_EQ(find(warp, *table, 7, names[i] + "x"), 0u);
    }
    EXPECT_GE(kept, 35u);
  });
}

TEST_P(NameCacheTest, names_that_differ_in_any_one_byte_differ) {
  TableOwner<PathTable> table(1);  // one entry: all names meet there
  run_alone(width(), [&](const simt::Warp& warp) {
    const std::string name(232, 'p');
    insert(warp, *table, 0, name, {55, 2});
    EXPECT_EQ(find(warp, *table, 0, name), 55u);
    for (size_t i = 0; i < name.size(); i += width() == 1 ? 1 : 9) {
      std::string other = name;
      other[i] = 'q';
      EXPECT_EQ(find(warp, *table, 0, other), 0u) << i;
    }
    EXPECT_EQ(find(warp, *table, 0, name.substr(1)), 0u);
    EXPECT_EQ(find(warp, *table, 0, name.substr(0, 224)), 0u);
    // Zero bytes are padding; a name that ends in them would be another length.
    insert(warp, *table, 0, "abc", {56, 2});
    EXPECT_EQ(find(warp, *table, 0, std::string("abc\0", 4)), 0u);
  });
}

TEST_P(NameCacheTest, names_that_do_not_fit_are_not_kept) {
  TableOwner<DentryTable> table(1);
  run_alone(width(), [&](const simt::Warp& warp) {
    insert(warp, *table, 1, std::string(40, 'a'), {9, 1});
    insert(warp, *table, 1, std::string(41, 'a'), {10, 1});
    EXPECT_EQ(find(warp, *table, 1, std::string(41, 'a')), 0u);
    EXPECT_EQ(find(warp, *table, 1, std::string(40, 'a')), 9u);
  });
}

TEST_P(NameCacheTest, a_later_entry_replaces_an_earlier_one) {
  TableOwner<DentryTable> table(1);
  run_alone(width(), [&](const simt::Warp& warp) {
    for (uint32_t turn = 1; turn < 20; ++turn) {
      const std::string name(turn * 2, static_cast<char>('a' + turn));
      insert(warp, *table, 1, name, {turn, turn % 8});
      NameTarget target{};
      uint64_t seen = 0;
      EXPECT_TRUE((*table).find(warp, 1, hash_of(name), name.data(),
                                static_cast<uint32_t>(name.size()), target, seen));
      EXPECT_EQ(target.ino, turn);
      EXPECT_EQ(target.type, turn % 8);
    }
    EXPECT_EQ(find(warp, *table, 1, "bb"), 0u);
  });
}

// Who looked on disk before a name was removed must not enter it afterwards.
TEST_P(NameCacheTest, what_was_erased_stays_unknown_to_who_had_looked_before) {
  TableOwner<DentryTable> table(1);
  run_alone(width(), [&](const simt::Warp& warp) {
    const std::string name = "name";
    const auto erase = [&] {
      warp.sync();
      if (warp.thread_rank() == 0) (*table).erase(1, hash_of(name), 4);
      warp.sync();
    };
    for (const bool was_known : {true, false}) {
      if (was_known) insert(warp, *table, 1, name, {7, 1});
      EXPECT_EQ(find(warp, *table, 1, name), was_known ? 7u : 0u);
      NameTarget target{};
      uint64_t seen = 0;
      (void)(*table).find(warp, 1, hash_of(name), name.data(), 4, target, seen);
      erase();
      EXPECT_EQ(find(warp, *table, 1, name), 0u);
      (*table).insert(warp, 1, hash_of(name), name.data(), 4, {8, 1}, seen);
      EXPECT_EQ(find(warp, *table, 1, name), 0u);
    }
    insert(warp, *table, 1, name, {9, 1});
    EXPECT_EQ(find(warp, *table, 1, name), 9u);
  });
}

/// A name whose every word depends on its number, and what it leads to.
std::string name_of(uint32_t number) {
  const uint32_t length = 9 + number % 32;
  std::string name(length, ' ');
  for (uint32_t i = 0; i < length; ++i) {
    name[i] = static_cast<char>('a' + image::pattern_word(number / 32, i / 8 + number) % 26);
  }
  return name;
}

TEST_P(NameCacheTest, no_name_gets_the_answer_of_another) {
  for (const uint32_t entries : {1, 4}) {
    TableOwner<DentryTable> table(entries);
    std::atomic<uint32_t> wrong{0};
    std::atomic<uint32_t> hits{0};
    const uint32_t warps = width() == 1 ? 8 : 3;
    const uint32_t turns = width() == 1 ? 1500 : 100;
    run_crowd({warps, width()}, [&](const simt::Warp& warp, uint32_t index) {
      for (uint32_t turn = 0; turn < turns; ++turn) {
        const auto number = static_cast<uint32_t>(image::pattern_word(index, turn) % 12);
        const std::string name = name_of(number);
        const uint32_t scope = number % 3 + 1;
        if (turn % 3 == 0) {
          insert(warp, *table, scope, name, {number + 1000, number % 7});
          continue;
        }
        NameTarget target{};
        uint64_t seen = 0;
        const bool found = (*table).find(warp, scope, hash_of(name), name.data(),
                                         static_cast<uint32_t>(name.size()), target, seen);
        if (warp.any(found) != warp.all(found)) ++wrong;
        if (!found) continue;
        ++hits;
        if (target.ino != number + 1000 || target.type != number % 7) ++wrong;
      }
    });
    EXPECT_EQ(wrong, 0u);
    EXPECT_GT(hits, 0u) << "a table that never answers would pass";
  }
}

}  // namespace
}  // namespace gofs::vfs
