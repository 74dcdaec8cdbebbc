// SPDX-License-Identifier: Apache-2.0
//
// Many files made and written in one call: what they hold, what is refused and leaves nothing
// behind, on a full volume and a disk that fails.
#include "vfs/batch_create.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cerrno>
#include <map>
#include <random>
#include <set>
#include <string>
#include <vector>

#include "ssd/power_cut.h"
#include "vfs/changes_for_test.hpp"
#include "vfs/set_xattr.h"

namespace gofs::vfs {
namespace {

constexpr const char* kNoName = "(null)";  // stands for no name at all
constexpr uint32_t kMakers = 3;

VolumeRigOptions with_a_fault_and_a_log() {
  VolumeRigOptions options;
  options.ssd.fault_capacity = 1;
  options.ssd.logged_commands = 4096;
  options.ssd.logged_bytes = 16 << 20;
  return options;
}

/// Files to be made, and what they shall hold.
struct Wanted {
  std::vector<std::string> names;
  std::vector<uint64_t> offsets;
  std::vector<uint64_t> bytes;
  std::string buffer;

  void add(std::mt19937& random, const std::string& name, uint64_t count) {
    names.push_back(name);
    // Odd addresses too, which the device cannot take the data from.
    offsets.push_back(buffer.size() + random() % 2 * (random() % 7));
    bytes.push_back(count);
    buffer.resize(offsets.back() + count);
    for (uint64_t i = 0; i < count; ++i) buffer[offsets.back() + i] = static_cast<char>(random());
    buffer.resize(simt::align_up(buffer.size(), uint64_t{4}));
  }
  std::string content(size_t i) const { return buffer.substr(offsets[i], bytes[i]); }
};

class BatchCreateTest : public ChangesTest {
 protected:
  simt::Barrier barrier_{};  // of warps that play a grid
  BatchCreateTest()
      : ChangesTest(
            [](image::ImageBuilder& builder) {
              image::Directory directory;
              TestImage::must(
                  builder.add_directory(builder.root(), "d", {.mode = 0777}, {}, &directory));
              image::FileSpec spec;
              spec.name = "old";
              spec.attributes = {.mode = 0644, .uid = 7, .gid = 70};
              spec.size_bytes = 5000;
              TestImage::must(builder.add_file(directory, spec));
              TestImage::must(builder.add_directory(builder.root(), "group",
                                                    {.mode = 02777, .gid = 70}, {}, nullptr));
              TestImage::must(
                  builder.add_directory(builder.root(), "mine", {.mode = 0755}, {}, nullptr));
            },
            with_a_fault_and_a_log()) {}

  /// A batch descriptor or a negative errno.
  int create(const std::string& path, const Wanted& wanted, uint32_t permissions = 0640,
             bool with_contents = true) {
    std::vector<const char*> names;
    for (const std::string& name : wanted.names) {
      names.push_back(name == kNoName ? nullptr : name.c_str());
    }
    const BatchCreation creation{
        path.c_str(),
        names.data(),
        static_cast<uint32_t>(names.size()),
        permissions,
        with_contents ? reinterpret_cast<const uint8_t*>(wanted.buffer.data()) : nullptr,
        wanted.offsets.data(),
        wanted.bytes.data()};
    const auto bd = static_cast<int>(
        alone([&](const simt::Warp& warp) { return begin_creation(warp, fs(), creation); }));
    if (bd < 0) return bd;
    Batch& batch = fs().batches->batches[bd];
    run_crowd({kMakers, width()}, [&](const simt::Warp& warp, uint32_t index) {
      prepare_creation(warp, fs(), batch, index, kMakers);
    });
    run_crowd({kMakers, width()}, [&](const simt::Warp& warp, uint32_t index) {
      create_batch(warp, fs(), batch, creation, index, kMakers);
    });
    alone([&](const simt::Warp& warp) {
      end_creation(warp, fs(), batch);
      return 0;
    });
    return bd;
  }
  uint64_t write_all(int bd, const Wanted& wanted) {
    uint64_t written = 0;
    run_crowd({kMakers, width()}, [&](const simt::Warp& warp, uint32_t index) {
      const uint64_t mine = write_batch(warp, fs(), *fs().batches, fs().batches->batches[bd],
                                        reinterpret_cast<const uint8_t*>(wanted.buffer.data()),
                                        wanted.offsets.data(), wanted.bytes.data(), index, kMakers);
      if (warp.thread_rank() == 0) simt::add_relaxed(written, mine);
    });
    return written;
  }
  const BatchEntry& file(int bd, size_t index) {
    return fs().batches->files[fs().batches->batches[bd].first + index];
  }
  void end(int bd) {
    EXPECT_EQ(alone([&](const simt::Warp& warp) { return end_batch(warp, *fs().batches, bd); }), 0);
  }
  /// 0 to 5 blocks and a bit, inline or not.
  static Wanted many(std::mt19937& random, uint32_t count) {
    Wanted wanted;
    for (uint32_t i = 0; i < count; ++i) {
      const uint64_t sizes[] = {0, 1 + random() % 3400, 4096, 16384, 1 + random() % 20'000};
      wanted.add(random, "file-" + std::to_string(i), sizes[random() % 5]);
    }
    return wanted;
  }
};
GOFS_AT_BOTH_WIDTHS(BatchCreateTest);

TEST_P(BatchCreateTest, files_come_with_their_contents) {
  std::mt19937 random(static_cast<uint32_t>(printed_seed()));
  Wanted wanted = many(random, 300);
  wanted.add(random, "large", 930 * kBlockBytes + 5);
  const uint64_t used = fs().volume.valid_block_count;
  const int bd = create("/d", wanted);
  ASSERT_GE(bd, 0);
  uint64_t blocks = 0;
  for (size_t i = 0; i < wanted.names.size(); ++i) {
    ASSERT_EQ(file(bd, i).error, 0) << wanted.names[i];
    EXPECT_EQ(file(bd, i).size_bytes, wanted.bytes[i]);
    const uint32_t inlined = f2fs::detail::new_inode_layout(fs().volume).inline_bytes;
    blocks += 1 + (wanted.bytes[i] <= inlined ? 0 : (wanted.bytes[i] + 4095) / 4096);
  }
  const uint64_t taken = fs().volume.valid_block_count - used;
  EXPECT_GE(taken, blocks + 1) << "with a node of the large one, and those of the directory";
  EXPECT_LE(taken, blocks + 40);
  // Read as a batch at once.
  std::vector<uint8_t> read(wanted.buffer.size());
  uint64_t bytes = 0;
  run_crowd({kMakers, width()}, [&](const simt::Warp& warp, uint32_t index) {
    const uint64_t mine = read_batch(warp, fs(), *fs().batches, fs().batches->batches[bd],
                                     read.data(), wanted.offsets.data(), index, kMakers);
    if (warp.thread_rank() == 0) simt::add_relaxed(bytes, mine);
  });
  uint64_t all = 0;
  for (size_t i = 0; i < wanted.names.size(); ++i) {
    all += wanted.bytes[i];
    EXPECT_TRUE(
        std::equal(read.begin() + static_cast<ptrdiff_t>(wanted.offsets[i]),
                   read.begin() + static_cast<ptrdiff_t>(wanted.offsets[i] + wanted.bytes[i]),
                   reinterpret_cast<const uint8_t*>(wanted.content(i).data())))
        << wanted.names[i];
  }
  EXPECT_EQ(bytes, all);
  end(bd);
  mount_again();
  for (size_t i = 0; i < wanted.names.size(); ++i) {
    EXPECT_TRUE(contents("/d/" + wanted.names[i]) == wanted.content(i)) << wanted.names[i];
    EXPECT_EQ(stat_of_path("/d/" + wanted.names[i]).mode & format::kModePermissionMask, 0640u);
  }
  EXPECT_EQ(names_of("/d").size(), wanted.names.size() + 1);
}

TEST_P(BatchCreateTest, files_that_were_made_empty_are_written_later) {
  std::mt19937 random(static_cast<uint32_t>(printed_seed()));
  const Wanted wanted = many(random, 100);
  fs().credentials = who(9, 90);
  const int bd = create("/group", wanted, 0, false);
  ASSERT_GE(bd, 0);
  uint64_t all = 0;
  for (const uint64_t bytes : wanted.bytes) all += bytes;
  EXPECT_EQ(write_all(bd, wanted), all);
  for (size_t i = 0; i < wanted.names.size(); ++i) {
    EXPECT_EQ(file(bd, i).error, 0);
    EXPECT_EQ(file(bd, i).size_bytes, wanted.bytes[i]);
  }
  EXPECT_EQ(write_all(bd, wanted), all) << "again";
  end(bd);
  fs().credentials = who(0, 0);
  mount_again();
  for (size_t i = 0; i < wanted.names.size(); ++i) {
    const std::string path = "/group/" + wanted.names[i];
    EXPECT_TRUE(contents(path) == wanted.content(i)) << path;
    EXPECT_EQ(stat_of_path(path).uid, 9u);
    EXPECT_EQ(stat_of_path(path).gid, 70u);
  }
}

TEST_P(BatchCreateTest, writing_new_files_takes_nothing_from_their_mode) {
  std::mt19937 random(3);
  Wanted wanted;
  wanted.add(random, "small", 100);
  wanted.add(random, "large", 930 * kBlockBytes);
  const auto create_all = [&] {
    fs().credentials = who(9, 0);
    const int bd = create("/d", wanted, 06750);
    fs().credentials = who(0, 0);
    ASSERT_GE(bd, 0);
    for (size_t i = 0; i < wanted.names.size(); ++i) {
      EXPECT_EQ(file(bd, i).error, 0);
      const std::string path = "/d/" + wanted.names[i];
      EXPECT_EQ(stat_of_path(path).mode & format::kModePermissionMask, 06750u) << path;
      EXPECT_TRUE(contents(path) == wanted.content(i)) << path;
    }
    end(bd);
  };
  create_all();
  // Owner, one of a group, mask, all others: new files are made one by one.
  std::string list("\2\0\0\0", 4);
  for (const uint32_t entry : {0x70001u, 0x70004u, 0x70010u, 0x70020u}) {
    for (const uint32_t word : {entry, ~0u}) {
      for (uint32_t i = 0; i < 4; ++i) list += static_cast<char>(word >> 8 * i);
    }
  }
  EXPECT_EQ(alone([&](const simt::Warp& warp) {
              return setxattr(warp, fs(), "/d", LastLink::kFollow, "system.posix_acl_default",
                              list.data(), list.size(), 0);
            }),
            0);
  wanted.names = {"small2", "large2"};
  create_all();
}

TEST_P(BatchCreateTest, files_that_were_there_are_written_by_who_may) {
  std::mt19937 random(static_cast<uint32_t>(printed_seed()));
  Wanted wanted;
  wanted.add(random, "old", 3000);
  const char* const name = "old";
  const auto open_batch = [&] {
    return static_cast<int>(alone([&](const simt::Warp& warp) {
      const int bd = begin_batch(warp, fs(), *fs().batches, "/d", 1);
      if (bd < 0) return bd;
      Batch& batch = fs().batches->batches[bd];
      find_batch(warp, fs(), *fs().batches, batch, &name, 0, 1);
      warp.sync();
      load_batch(warp, fs(), *fs().batches, batch, 0, 1);
      return bd;
    }));
  };
  const std::string before = contents("/d/old");
  fs().credentials = who(9, 90);
  int bd = open_batch();
  EXPECT_EQ(write_all(bd, wanted), 0u);
  EXPECT_EQ(file(bd, 0).error, -EACCES);
  end(bd);
  EXPECT_TRUE(contents("/d/old") == before);
  fs().credentials = who(7, 70);
  bd = open_batch();
  EXPECT_EQ(write_all(bd, wanted), 3000u);
  EXPECT_EQ(file(bd, 0).error, 0);
  EXPECT_EQ(file(bd, 0).size_bytes, 5000u);
  end(bd);
  EXPECT_TRUE(contents("/d/old") == wanted.content(0) + before.substr(3000));
  mount_again();
}

TEST_P(BatchCreateTest, what_cannot_be_made_is_told_for_each) {
  std::mt19937 random(static_cast<uint32_t>(printed_seed()));
  Wanted wanted;
  const std::map<std::string, int> refused = {
      {"old", -EEXIST},  {".", -EEXIST},   {"..", -EEXIST},
      {"", -ENOENT},     {"a/b", -EINVAL}, {std::string(256, 'n'), -ENAMETOOLONG},
      {kNoName, -EFAULT}};
  for (const auto& [name, error] : refused) wanted.add(random, name, 5000);
  wanted.add(random, std::string(255, 'n'), 5000);
  for (uint32_t i = 0; i < 20; ++i) wanted.add(random, "twice-" + std::to_string(i % 10), 9000);
  const int bd = create("/d", wanted);
  ASSERT_GE(bd, 0);
  for (size_t i = 0; i < refused.size(); ++i) {
    EXPECT_EQ(file(bd, i).error, refused.at(wanted.names[i])) << wanted.names[i];
  }
  EXPECT_EQ(file(bd, refused.size()).error, 0);
  std::map<std::string, uint32_t> made;
  for (size_t i = refused.size() + 1; i < wanted.names.size(); ++i) {
    if (file(bd, i).error == 0) {
      ++made[wanted.names[i]];
      EXPECT_TRUE(contents("/d/" + wanted.names[i]) == wanted.content(i));
    } else {
      EXPECT_EQ(file(bd, i).error, -EEXIST);
    }
  }
  EXPECT_EQ(made.size(), 10u);
  for (const auto& [name, count] : made) EXPECT_EQ(count, 1u) << name;
  end(bd);
  EXPECT_EQ(create("/none", wanted), -ENOENT);
  EXPECT_EQ(create("/d/old", wanted), -ENOTDIR);
  fs().credentials = who(9, 90);
  EXPECT_EQ(create("/mine", wanted), -EACCES);
  fs().credentials = who(0, 0);
  fs().batches->capacity = 10;
  EXPECT_EQ(create("/mine", wanted), -ENOMEM);
  EXPECT_TRUE(names_of("/mine").empty());
  mount_again();
  fs().writer = nullptr;
  EXPECT_EQ(create("/mine", wanted), -EROFS);
}

TEST_P(BatchCreateTest, a_full_volume_makes_as_many_as_fit) {
  std::mt19937 random(static_cast<uint32_t>(printed_seed()));
  Wanted wanted;
  for (uint32_t i = 0; i < 60; ++i) wanted.add(random, "f" + std::to_string(i), 16384);
  const uint64_t before = fs().volume.user_block_count;
  fs().volume.user_block_count = fs().volume.valid_block_count + 40 * 5 + 3;
  const int bd = create("/mine", wanted);
  fs().volume.user_block_count = before;
  ASSERT_GE(bd, 0);
  std::set<std::string> made;
  for (size_t i = 0; i < wanted.names.size(); ++i) {
    if (file(bd, i).error == 0) {
      made.insert(wanted.names[i]);
      EXPECT_TRUE(contents("/mine/" + wanted.names[i]) == wanted.content(i));
    } else {
      EXPECT_EQ(file(bd, i).error, -ENOSPC);
    }
  }
  // The directory needs a block or two, and warps may hold room that they then release.
  EXPECT_GE(made.size(), 30u);
  EXPECT_LE(made.size(), 40u);
  EXPECT_EQ(names_of("/mine"), made);
  end(bd);
  mount_again();
  EXPECT_EQ(names_of("/mine"), made);
}

TEST_P(BatchCreateTest, a_file_that_was_written_in_part_has_the_error_of_the_disk) {
  std::mt19937 random(static_cast<uint32_t>(printed_seed()));
  Wanted wanted;
  constexpr uint64_t kBytes = 600 * kBlockBytes;  // at least five commands, of 128 blocks at most
  wanted.add(random, "f", kBytes);
  const int bd = create("/d", wanted, 0640, false);
  ASSERT_GE(bd, 0);
  ssd::FaultRule rule;
  rule.opcode_mask = 1u << static_cast<uint32_t>(format::nvme::IoOpcode::kWrite);
  rule.skip = 3;
  rule.status = format::nvme::kWriteFault;
  writing_->rig().add_fault(rule);
  const uint64_t written = write_all(bd, wanted);
  writing_->rig().clear_faults();
  EXPECT_LT(written, kBytes);
  EXPECT_EQ(file(bd, 0).error, -EIO);
  end(bd);
}

TEST_P(BatchCreateTest, a_disk_that_fails_leaves_whole_files) {
  std::mt19937 random(static_cast<uint32_t>(printed_seed()));
  for (const uint32_t passed : {0u, 5u, 20u}) {
    Wanted wanted;
    for (uint32_t i = 0; i < 40; ++i) {
      wanted.add(random, "f" + std::to_string(passed) + "-" + std::to_string(i), 12'000);
    }
    ssd::FaultRule rule;
    rule.opcode_mask = 1u << static_cast<uint32_t>(format::nvme::IoOpcode::kWrite);
    rule.skip = passed;
    rule.count = 2;
    rule.status = format::nvme::kWriteFault;
    writing_->rig().add_fault(rule);
    const int bd = create("/d", wanted);
    writing_->rig().clear_faults();
    ASSERT_GE(bd, 0);
    const std::set<std::string> names = names_of("/d");
    uint32_t failed = 0;
    for (size_t i = 0; i < wanted.names.size(); ++i) {
      EXPECT_EQ(names.count(wanted.names[i]), file(bd, i).error == 0 ? 1u : 0u);
      if (file(bd, i).error == 0) {
        EXPECT_TRUE(contents("/d/" + wanted.names[i]) == wanted.content(i));
      } else {
        EXPECT_EQ(file(bd, i).error, -EIO);
        ++failed;
      }
    }
    EXPECT_GE(failed, 1u);
    end(bd);
  }
  mount_again();
}

TEST_P(BatchCreateTest, a_power_cut_leaves_whole_files_or_none) {
  GOFS_NEED_TOOL("fsck.f2fs");
  std::mt19937 random(static_cast<uint32_t>(printed_seed()));
  const TestImage before(image_);
  const Wanted first = many(random, 60);
  Wanted second;
  for (uint32_t i = 0; i < 40; ++i) second.add(random, "second-" + std::to_string(i), 9000);
  const int one = create("/d", first);
  ASSERT_GE(one, 0);
  ASSERT_EQ(writing_->checkpoint(false), 0);
  const auto trace = [&] {
    return ssd::read_trace(writing_->rig().arena().space(), writing_->rig().controller());
  };
  const uint32_t first_event = trace().events;
  ASSERT_GE(create("/mine", second), 0);
  ASSERT_EQ(writing_->checkpoint(false), 0);
  const ssd::WriteTrace log = trace();
  TestImage left(before);
  uint32_t looks = 0;
  std::set<uint32_t> counts;
  // A part of them, and all of the last ones, among which the checkpoint becomes valid.
  for (uint32_t event = first_event; event <= log.events;
       event += event + 8 < log.events ? 1 + static_cast<uint32_t>(random() % 8) : 1) {
    ssd::PowerCut(log, event).apply({left.data(), left.bytes()}, 512, [&](uint32_t, uint64_t) {
      return random() % 2 == 0;
    });
    f2fs::WritingRig reading(left, 1);
    Filesystem& after = reading.rig().fs();
    uint32_t found = 0;
    const auto look = [&](const std::string& path, const std::string& wanted, bool must) {
      run_alone(1, [&](const simt::Warp& warp) {
        const int fd = open_existing(warp, after, path.c_str(), kOpenReadOnly);
        if (fd == -ENOENT && !must) return;
        ASSERT_GE(fd, 0) << path << " after event " << event;
        ++found;
        std::string bytes(wanted.size() + 1, '\0');
        const int64_t got = pread(warp, after, fd, bytes.data(), bytes.size(), 0);
        ASSERT_EQ(got, static_cast<int64_t>(wanted.size())) << path << " after event " << event;
        bytes.resize(wanted.size());
        EXPECT_TRUE(bytes == wanted) << path << " after event " << event;
        EXPECT_EQ(close(warp, after, fd), 0);
      });
    };
    for (size_t i = 0; i < first.names.size(); i += 7) {
      look("/d/" + first.names[i], first.content(i), true);
    }
    found = 0;
    for (size_t i = 0; i < second.names.size(); ++i) {
      look("/mine/" + second.names[i], second.content(i), false);
    }
    counts.insert(found);
    if (looks++ % 8 == 0) {
      EXPECT_TRUE(f2fs::fsck_likes(left, true)) << event;
    }
    f2fs::put_back(left, before, log);
  }
  EXPECT_GE(counts.size(), 2u) << "none at first, and some later";
}

// Others make and look up names in the same directory meanwhile.
TEST_P(BatchCreateTest, beside_others) {
  std::mt19937 random(static_cast<uint32_t>(printed_seed()));
  const Wanted wanted = many(random, 80);
  std::vector<const char*> names;
  for (const std::string& name : wanted.names) names.push_back(name.c_str());
  const BatchCreation creation{"/d",
                               names.data(),
                               static_cast<uint32_t>(names.size()),
                               0644,
                               reinterpret_cast<const uint8_t*>(wanted.buffer.data()),
                               wanted.offsets.data(),
                               wanted.bytes.data()};
  int bd = 0;
  run_crowd({kMakers + 1, width()}, [&](const simt::Warp& warp, uint32_t index) {
    if (index < kMakers) {
      const simt::GridGroup group(warp, index, kMakers, barrier_);
      if (index == 0) {
        const int mine = begin_creation(warp, fs(), creation);
        if (warp.thread_rank() == 0) bd = mine;
      }
      group.sync();
      Batch& batch = fs().batches->batches[bd];
      prepare_creation(warp, fs(), batch, index, kMakers);
      group.sync();
      create_batch(warp, fs(), batch, creation, index, kMakers);
      group.sync();
      if (index == 0) end_creation(warp, fs(), batch);
      return;
    }
    for (uint32_t i = 0; i < 30; ++i) {
      const std::string path = "/d/other-" + std::to_string(i);
      const int fd = open(warp, fs(), path.c_str(), kOpenCreate | kOpenWriteOnly, 0600);
      EXPECT_GE(fd, 0);
      EXPECT_EQ(write(warp, fs(), fd, path.data(), path.size()), static_cast<int64_t>(path.size()));
      EXPECT_EQ(close(warp, fs(), fd), 0);
      const std::string found = "/d/" + wanted.names[i];
      Stat seen{};
      const int error = stat(warp, fs(), found.c_str(), LastLink::kKeep, seen);
      EXPECT_TRUE(error == -ENOENT || (error == 0 && seen.size_bytes == wanted.bytes[i])) << error;
    }
  });
  mount_again();
  EXPECT_EQ(names_of("/d").size(), wanted.names.size() + 30 + 1);
  for (size_t i = 0; i < wanted.names.size(); ++i) {
    EXPECT_TRUE(contents("/d/" + wanted.names[i]) == wanted.content(i));
  }
}

}  // namespace
}  // namespace gofs::vfs
