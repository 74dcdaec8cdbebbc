// SPDX-License-Identifier: Apache-2.0
//
// Many make and remove names in one directory at once: all that calls reported as made is there,
// once, and nothing else; of several that make or remove the same name one does; beside others that
// rename and look, and on a volume that fills up. Directories and names may share their locks.
#include <algorithm>
#include <atomic>
#include <cstdio>

#include "vfs/make_file.h"
#include "vfs/remove_file.h"
#include "vfs/rename.h"
#include "vfs/writing_vfs_for_test.hpp"

namespace gofs::vfs {
namespace {

constexpr uint32_t kAddingWarps = 6;

struct PathText {
  char bytes[64];
};
template <typename... Numbers>
PathText path_of(const char* form, Numbers... numbers) {
  PathText text{};
  std::snprintf(text.bytes, sizeof(text.bytes), form, numbers...);
  return text;
}

class SharedDirectoryTest : public WritingVfsTest {
 protected:
  SharedDirectoryTest()
      : WritingVfsTest(
            [](image::ImageBuilder& builder) {
              image::FileSpec spec;
              spec.name = "f";
              spec.attributes = {.mode = 0644};
              TestImage::must(builder.add_file(builder.root(), spec));
              for (const char* const name : {"d", "e"}) {
                TestImage::must(
                    builder.add_directory(builder.root(), name, {.mode = 0755}, {}, nullptr));
              }
            },
            with_ticks()) {
    fs().credentials = who(0, 0);
  }
  /// Stamps of a tick of a clock, as mounted volumes have them.
  static VolumeRigOptions with_ticks() {
    VolumeRigOptions options;
    options.filesystem.time_granularity_ns = 1'000'000;
    return options;
  }
  /// All inodes share one lock, and all names.
  void share_all_locks() {
    fs().inode_lock_mask = 0;
    fs().name_lock_mask = 0;
  }

  /// 0 or a negative errno.
  int create(const simt::Warp& warp, const char* path, uint32_t flags = kOpenExclusive) {
    const int fd = open(warp, fs(), path, kOpenCreate | kOpenWriteOnly | flags, 0644);
    return fd < 0 ? fd : close(warp, fs(), fd);
  }
  int make(const simt::Warp& warp, uint32_t kind, const char* path) {
    switch (kind % 5) {
      case 0:
        return mkdir(warp, fs(), path, 0755);
      case 1:
        return mknod(warp, fs(), path, format::kModeFifo | 0600, {});
      case 2:
        return symlink(warp, fs(), "somewhere", path);
      case 3:
        return link(warp, fs(), "/f", path);
      default:
        return create(warp, path);
    }
  }
  /// Removes what make() has made.
  int unmake(const simt::Warp& warp, uint32_t kind, const char* path) {
    return kind % 5 == 0 ? rmdir(warp, fs(), path) : unlink(warp, fs(), path);
  }
  /// Each warp makes `each` names of all kinds in /d, then as many new ones while it removes those,
  /// then removes all.
  void make_and_remove(uint32_t each);
  /// Each warp makes `each` names of all kinds in /d, and as many in its own directory.
  void make_all_kinds(uint32_t each);
  void come_and_go(uint32_t rounds);
};
GOFS_AT_BOTH_WIDTHS(SharedDirectoryTest);

void SharedDirectoryTest::make_all_kinds(uint32_t each) {
  run_crowd({kAddingWarps, width()}, [&](const simt::Warp& warp, uint32_t index) {
    EXPECT_EQ(mkdir(warp, fs(), path_of("/e/%u", index).bytes, 0755), 0);
    for (uint32_t i = 0; i < each; ++i) {
      EXPECT_EQ(make(warp, i, path_of("/d/name-%u-%u", index, i).bytes), 0);
      if (i % 4 != 0) continue;
      EXPECT_EQ(make(warp, i, path_of("/e/%u/%u", index, i).bytes), 0);
    }
  });
  mount_again();
  const std::set<std::string> names = names_in("/d");
  EXPECT_EQ(names.size(), kAddingWarps * each);
  for (uint32_t index = 0; index < kAddingWarps; ++index) {
    for (uint32_t i = 0; i < each; ++i) {
      EXPECT_EQ(names.count(path_of("name-%u-%u", index, i).bytes), 1u);
    }
    EXPECT_EQ(names_in(path_of("/e/%u", index).bytes).size(), (each + 3) / 4);
  }
  uint32_t links = 0;
  for (uint32_t i = 3; i < each; i += 5) links += i % 4 == 0 ? 2 : 1;
  EXPECT_EQ(stat_of_path("/d").links, 2 + kAddingWarps * (each / 5));
  EXPECT_EQ(stat_of_path("/f").links, 1 + kAddingWarps * links);
}

// It begins with its entries in the inode, and ends with several hash levels.
TEST_P(SharedDirectoryTest, all_names_that_many_make_at_once_are_there) {
  make_all_kinds(width() == 1 ? 240 : 100);
}

// Blocks of several levels take the names, and not the first ones alone.
TEST_P(SharedDirectoryTest, names_of_many_makers_are_spread_over_levels) {
  constexpr uint32_t kOthers = 1'000;
  constexpr uint32_t kEach = 30;
  const auto ino = static_cast<uint32_t>(stat_of_path("/d").ino);
  simt::SharedLock& users = inode_lock(fs(), ino).users;
  run_alone(1, [&](const simt::Warp& warp) {
    for (uint32_t i = 0; i < kOthers; ++i) {
      EXPECT_TRUE(simt::lock_shared(warp, users, simt::Deadline::after_ns(0)));
    }
  });
  run_crowd({kAddingWarps, width()}, [&](const simt::Warp& warp, uint32_t index) {
    for (uint32_t i = 0; i < kEach; ++i) {
      EXPECT_EQ(make(warp, i, path_of("/d/name-%u-%u", index, i).bytes), 0);
    }
  });
  run_alone(1, [&](const simt::Warp& warp) {
    for (uint32_t i = 0; i < kOthers; ++i) simt::unlock_shared(warp, users);
  });
  EXPECT_EQ(simt::count_sharers(users), 0u);
  // Two blocks would have room for all of them.
  constexpr uint32_t kLevels = 5;
  EXPECT_GT(stat_of_path("/d").size_bytes,
            format::dir_level_start(kLevels - 1, 0) * uint64_t{kBlockBytes});
  mount_again();
  EXPECT_EQ(names_in("/d").size(), kAddingWarps * kEach);
  run_crowd({kAddingWarps, width()}, [&](const simt::Warp& warp, uint32_t index) {
    for (uint32_t i = 0; i < kEach; ++i) {
      const PathText path = path_of("/d/name-%u-%u", index, i);
      EXPECT_EQ(make(warp, i, path.bytes), -EEXIST);
      EXPECT_EQ(unmake(warp, i, path.bytes), 0);
    }
  });
  EXPECT_TRUE(names_in("/d").empty());
}

TEST_P(SharedDirectoryTest, they_are_there_where_all_share_their_locks) {
  share_all_locks();
  make_all_kinds(60);
}

TEST_P(SharedDirectoryTest, of_several_who_make_a_name_one_does) {
  constexpr uint32_t kWantedNames = 80;
  std::vector<uint32_t> made(kWantedNames);
  std::vector<uint64_t> inos(kWantedNames * kAddingWarps);
  run_crowd({kAddingWarps, width()}, [&](const simt::Warp& warp, uint32_t index) {
    const bool leader = warp.thread_rank() == 0;
    for (uint32_t i = 0; i < kWantedNames; ++i) {
      const PathText path = path_of("/d/same-%u", i);
      const int error = make(warp, i + index, path.bytes);
      EXPECT_TRUE(error == 0 || error == -EEXIST) << error;
      if (error == 0 && leader) simt::add_relaxed(made[i], 1u);
      // And without O_EXCL: whoever has made it, all have the same file.
      const PathText open_path = path_of("/d/open-%u", i);
      const int fd = open(warp, fs(), open_path.bytes, kOpenCreate | kOpenWriteOnly, 0644);
      EXPECT_GE(fd, 0);
      Stat stat{};
      EXPECT_EQ(fstat(warp, fs(), fd, stat), 0);
      if (leader) inos[i * kAddingWarps + index] = stat.ino;
      EXPECT_EQ(close(warp, fs(), fd), 0);
    }
  });
  for (uint32_t i = 0; i < kWantedNames; ++i) {
    EXPECT_EQ(made[i], 1u) << i;
    for (uint32_t index = 1; index < kAddingWarps; ++index) {
      EXPECT_EQ(inos[i * kAddingWarps + index], inos[i * kAddingWarps]) << i;
    }
  }
  mount_again();
  EXPECT_EQ(names_in("/d").size(), 2 * kWantedNames);
}

void SharedDirectoryTest::make_and_remove(uint32_t each) {
  const uint64_t used_before = volume().valid_block_count;
  const auto all = [&](const auto& work) {
    run_crowd({kAddingWarps, width()}, [&](const simt::Warp& warp, uint32_t index) {
      for (uint32_t i = 0; i < each; ++i) EXPECT_EQ(work(warp, index, i), 0) << index << " " << i;
    });
  };
  all([&](const simt::Warp& warp, uint32_t index, uint32_t i) {
    return make(warp, i, path_of("/d/name-%u-%u", index, i).bytes);
  });
  EXPECT_EQ(names_in("/d").size(), kAddingWarps * each);
  all([&](const simt::Warp& warp, uint32_t index, uint32_t i) {
    const int error = unmake(warp, i, path_of("/d/name-%u-%u", index, i).bytes);
    return error != 0 ? error : make(warp, i + 1, path_of("/d/next-%u-%u", index, i).bytes);
  });
  mount_again();
  const std::set<std::string> names = names_in("/d");
  EXPECT_EQ(names.size(), kAddingWarps * each);
  for (const std::string& name : names) EXPECT_EQ(name.substr(0, 5), "next-");
  EXPECT_EQ(stat_of_path("/d").links, 2 + kAddingWarps * (each / 5));
  EXPECT_EQ(stat_of_path("/f").links, 1 + kAddingWarps * (each / 5));
  all([&](const simt::Warp& warp, uint32_t index, uint32_t i) {
    return unmake(warp, i + 1, path_of("/d/next-%u-%u", index, i).bytes);
  });
  EXPECT_TRUE(names_in("/d").empty());
  EXPECT_EQ(stat_of_path("/d").links, 2u);
  EXPECT_EQ(stat_of_path("/f").links, 1u);
  // With the last entry of a block goes the block; one has those of the directory itself.
  EXPECT_EQ(stat_of_path("/d").blocks_512, uint64_t{kBlockBytes} / 512);
  EXPECT_LE(volume().valid_block_count, used_before + 1);
  mount_again();
}

// Entries leave the inode meanwhile, and levels come.
TEST_P(SharedDirectoryTest, names_come_and_go_side_by_side) {
  make_and_remove(width() == 1 ? 240 : 100);
}

TEST_P(SharedDirectoryTest, they_come_and_go_where_all_share_their_locks) {
  share_all_locks();
  make_and_remove(60);
}

// Few names, which all make and remove all the time.
TEST_P(SharedDirectoryTest, each_name_is_there_as_often_as_it_was_made_and_not_removed) {
  constexpr uint32_t kWantedNames = 7;
  const uint32_t rounds = width() == 1 ? 300 : 120;
  const uint64_t seed = printed_seed();
  std::vector<int32_t> there(kWantedNames);
  run_crowd({kAddingWarps, width()}, [&](const simt::Warp& warp, uint32_t index) {
    for (uint32_t i = 0; i < rounds; ++i) {
      const uint64_t random = image::pattern_word(seed + index, i);
      const auto number = static_cast<uint32_t>(random % kWantedNames);
      const PathText path = path_of("/d/same-%u", number);
      const bool makes = (random >> 32) % 2 == 0;
      const uint32_t kind = number == 0 ? 0 : 1 + number % 4;
      const int error = makes ? make(warp, kind, path.bytes) : unmake(warp, kind, path.bytes);
      EXPECT_TRUE(error == 0 || error == (makes ? -EEXIST : -ENOENT)) << error;
      if (error == 0 && warp.thread_rank() == 0) simt::add_relaxed(there[number], makes ? 1 : -1);
    }
  });
  mount_again();
  const std::set<std::string> names = names_in("/d");
  for (uint32_t number = 0; number < kWantedNames; ++number) {
    EXPECT_EQ(there[number], static_cast<int32_t>(names.count(path_of("same-%u", number).bytes)));
  }
}

/// Some warps make names in /d, others remove or rename theirs, one changes its permissions and
/// its times, and one looks for names that stay.
void SharedDirectoryTest::come_and_go(uint32_t rounds) {
  constexpr uint32_t kStaying = 20;
  constexpr uint32_t kNewcomers = 3;
  for (uint32_t i = 0; i < kStaying; ++i) put_file(path_of("/d/stays-%u", i).bytes, 0, 's');
  std::atomic<uint32_t> makers_left = kNewcomers;
  run_crowd({kNewcomers + 4, width()}, [&](const simt::Warp& warp, uint32_t index) {
    if (index < kNewcomers) {
      for (uint32_t i = 0; i < rounds; ++i) {
        EXPECT_EQ(make(warp, i, path_of("/d/new-%u-%u", index, i).bytes), 0);
      }
      if (warp.thread_rank() == 0) --makers_left;
      return;
    }
    for (uint32_t i = 0; warp.any(makers_left.load() != 0); ++i) {
      const PathText other = path_of("/d/other-%u", index);
      const PathText moved = path_of(i % 2 == 0 ? "/d/moved-%u" : "/e/moved-%u", index);
      if (index == kNewcomers) {
        EXPECT_EQ(create(warp, other.bytes), 0);
        EXPECT_EQ(unlink(warp, fs(), other.bytes), 0);
      } else if (index == kNewcomers + 1) {
        EXPECT_EQ(mkdir(warp, fs(), other.bytes, 0755), 0);
        EXPECT_EQ(rename(warp, fs(), other.bytes, moved.bytes), 0);
        EXPECT_EQ(rmdir(warp, fs(), moved.bytes), 0);
      } else if (index == kNewcomers + 2) {
        const f2fs::TimeStamp time{1'000, 0};
        EXPECT_EQ(chmod(warp, fs(), "/d", i % 2 == 0 ? 0755 : 0711), 0);
        EXPECT_EQ(utimens(warp, fs(), "/d", LastLink::kFollow, time, time), 0);
      } else {
        Stat stat{};
        const PathText path = path_of("/d/stays-%u", i % kStaying);
        EXPECT_EQ(vfs::stat(warp, fs(), path.bytes, LastLink::kKeep, stat), 0) << i;
      }
    }
  });
  mount_again();
  EXPECT_EQ(names_in("/d").size(), kStaying + kNewcomers * rounds);
  EXPECT_TRUE(names_in("/e").empty());
  EXPECT_EQ(stat_of_path("/d").links, 2 + kNewcomers * ((rounds + 4) / 5));
}

TEST_P(SharedDirectoryTest, names_come_while_others_go) { come_and_go(width() == 1 ? 150 : 60); }

TEST_P(SharedDirectoryTest, they_do_where_all_share_their_locks) {
  share_all_locks();
  come_and_go(40);
}

// Who is refused has made nothing, and who is not has made all of it.
TEST_P(SharedDirectoryTest, a_volume_that_fills_up_has_what_was_made) {
  const uint64_t before = volume().user_block_count;
  volume().user_block_count = volume().valid_block_count + 60;
  std::atomic<uint32_t> made = 0;
  std::atomic<uint32_t> made_directories = 0;
  run_crowd({kAddingWarps, width()}, [&](const simt::Warp& warp, uint32_t index) {
    // With names that soon fill a block.
    constexpr const char* kForm = "/d/a-name-that-takes-eight-slots-of-eight-bytes-%06u-%06u";
    for (uint32_t i = 0; i < 30; ++i) {
      const int error = make(warp, i, path_of(kForm, index, i).bytes);
      EXPECT_TRUE(error == 0 || error == -ENOSPC) << error;
      if (error != 0 || warp.thread_rank() != 0) continue;
      ++made;
      if (i % 5 == 0) ++made_directories;
    }
  });
  EXPECT_LE(volume().valid_block_count, volume().user_block_count);
  volume().user_block_count = before;
  mount_again();
  EXPECT_LT(made.load(), kAddingWarps * 30u);
  EXPECT_EQ(names_in("/d").size(), made.load());
  EXPECT_EQ(stat_of_path("/d").links, 2 + made_directories.load());
}

// Whoever has made a name finds the directory changed then or later; a time that was set goes,
// though it may be one to come.
TEST_P(SharedDirectoryTest, its_times_are_those_of_the_last_name) {
  run_crowd({kAddingWarps, width()}, [&](const simt::Warp& warp, uint32_t index) {
    for (uint32_t i = 0; i < 60; ++i) {
      const f2fs::TimeStamp before = time_now(fs());
      EXPECT_EQ(make(warp, i, path_of("/d/%u-%u", index, i).bytes), 0);
      Stat stat{};
      EXPECT_EQ(vfs::stat(warp, fs(), "/d", LastLink::kFollow, stat), 0);
      // While another thread sets them, one may be newer than the other.
      EXPECT_GE(f2fs::nanoseconds_of(stat.modified), f2fs::nanoseconds_of(before));
      EXPECT_GE(f2fs::nanoseconds_of(stat.changed), f2fs::nanoseconds_of(before));
    }
  });
  const Stat last = stat_of_path("/d");
  EXPECT_EQ(f2fs::nanoseconds_of(last.modified), f2fs::nanoseconds_of(last.changed));
  for (const uint32_t kind : {0u, 4u}) {
    const f2fs::TimeStamp now = time_now(fs());
    const f2fs::TimeStamp later{now.seconds + 1, now.nanoseconds};
    EXPECT_EQ(as_root([&](const simt::Warp& warp) {
                const int error = utimens(warp, fs(), "/d", LastLink::kFollow, later, later);
                return error < 0 ? error : make(warp, kind, path_of("/d/later-%u", kind).bytes);
              }),
              0);
    const Stat stat = stat_of_path("/d");
    EXPECT_EQ(stat.modified.seconds, stat.changed.seconds);
    EXPECT_EQ(stat.modified.nanoseconds, stat.changed.nanoseconds);
  }
}

// A name of a directory that goes is made before it goes or not at all.
TEST_P(SharedDirectoryTest, no_name_is_made_in_a_directory_that_is_gone) {
  for (uint32_t round = 0; round < 20; ++round) {
    EXPECT_EQ(as_root([&](const simt::Warp& warp) { return mkdir(warp, fs(), "/d/sub", 0755); }),
              0);
    std::atomic<uint32_t> made = 0;
    std::atomic<bool> removed = false;
    run_crowd({4, width()}, [&](const simt::Warp& warp, uint32_t index) {
      const bool leader = warp.thread_rank() == 0;
      if (index == 0) {
        const int error = rmdir(warp, fs(), "/d/sub");
        EXPECT_TRUE(error == 0 || error == -ENOTEMPTY) << error;
        if (leader) removed = error == 0;
        return;
      }
      const int error = make(warp, index, path_of("/d/sub/%u", index).bytes);
      EXPECT_TRUE(error == 0 || error == -ENOENT) << error;
      if (leader && error == 0) ++made;
    });
    EXPECT_EQ(removed.load(), made.load() == 0);
    if (removed.load()) continue;
    EXPECT_EQ(names_in("/d/sub").size(), made.load());
    EXPECT_EQ(as_root([&](const simt::Warp& warp) {
                return rename(warp, fs(), "/d/sub", path_of("/e/%u", round).bytes);
              }),
              0);
  }
  mount_again();
}

}  // namespace
}  // namespace gofs::vfs
