// SPDX-License-Identifier: Apache-2.0
//
// Finding and listing names: inline directories, hashed ones of many levels, names of every length
// and byte, ten thousand of them; blocks that cannot be read, entries that cannot be.
#include "f2fs/directory.h"

#include <gtest/gtest.h>

#include <atomic>
#include <cstring>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "f2fs/listing.h"
#include "host/image/reader_for_test.h"
#include "testing/volume_rig.hpp"

namespace gofs::f2fs {
namespace {

using gofs::testing::run_alone;
using gofs::testing::run_crowd;
using gofs::testing::TestImage;
using gofs::testing::VolumeRig;
using gofs::testing::VolumeRigOptions;

/// name -> ino, as the builder gave them.
using Names = std::map<std::string, uint32_t>;

/// Names of 1 to 255 bytes, with every byte but NUL and '/' in some of them.
std::vector<std::string> odd_names() {
  std::vector<std::string> names;
  for (uint32_t length = 1; length <= 255; length += length < 20 ? 1 : 13) {
    names.emplace_back(length, 'x');
  }
  names.emplace_back(255, 'y');
  for (int byte = 1; byte < 256; ++byte) {
    if (byte == '/') continue;
    names.push_back(std::string("b") + static_cast<char>(byte));
  }
  names.insert(names.end(), {"...", ".hidden", "..x", "-", " ", "\xc3\xa4\xe2\x82\xac.txt"});
  return names;
}

enum Kind { kInline, kOdd, kMany, kLevelled, kEmpty, kKinds };
constexpr const char* kPaths[kKinds] = {"/inline", "/odd", "/many", "/levelled", "/empty"};

/// One image for all tests that do not change it: 10,000 names take a moment.
struct SharedDirectories {
  SharedDirectories()
      : image([this](image::ImageBuilder& builder) { fill(builder); },
              format::kFeatureExtraAttr | format::kFeatureFlexibleInlineXattr) {
    const auto target = image.target();
    image::TestReader reader(*target);
    for (int kind = 0; kind < kKinds; ++kind) {
      const auto directory = reader.at(kPaths[kind]);
      inos[kind] = directory.ino;
      depths[kind] = directory.inode().i_current_depth;
    }
  }

  Names names[kKinds];
  uint32_t inos[kKinds];
  uint32_t depths[kKinds];
  TestImage image;

 private:
  void fill(image::ImageBuilder& builder) {
    // What the names lead to: few inodes, but enough that a wrong one is noticed.
    std::vector<image::FileHandle> files(97);
    for (size_t i = 0; i < files.size(); ++i) {
      image::FileSpec file;
      const std::string name = "target" + std::to_string(i);
      file.name = name;
      TestImage::must(builder.add_file(builder.root(), file, {}, &files[i]));
    }
    const auto add = [&](Kind kind, const image::DirectoryOptions& options,
                         const std::vector<std::string>& wanted) {
      image::Directory directory;
      TestImage::must(
          builder.add_directory(builder.root(), kPaths[kind] + 1, {}, options, &directory));
      for (size_t i = 0; i < wanted.size(); ++i) {
        const image::FileHandle& file = files[i % files.size()];
        TestImage::must(builder.add_link(directory, wanted[i], file));
        EXPECT_TRUE(names[kind].emplace(wanted[i], file.ino).second) << wanted[i];
      }
    };
    const auto numbered = [](const char* prefix, uint32_t count) {
      std::vector<std::string> all;
      for (uint32_t i = 0; i < count; ++i) all.push_back(prefix + std::to_string(i * 7919));
      return all;
    };
    image::DirectoryOptions in_inode;
    in_inode.inline_dentries = true;
    add(kInline, in_inode, {"a", "bb", "a rather long name, which takes several slots", "z"});
    add(kOdd, {}, odd_names());
    add(kMany, {}, numbered("file-", 10'000));
    image::DirectoryOptions levelled;
    levelled.dir_level = 3;
    add(kLevelled, levelled, numbered("n", 700));
    add(kEmpty, {}, {});
  }
};

class DirectoryTest : public ::testing::TestWithParam<uint32_t> {
 protected:
  static void SetUpTestSuite() { shared_ = std::make_unique<SharedDirectories>(); }
  static void TearDownTestSuite() { shared_.reset(); }

  uint32_t width() const { return GetParam(); }

  void SetUp() override {
    VolumeRigOptions options;
    options.ssd.fault_capacity = 4;
    rig_ = std::make_unique<VolumeRig>(shared_->image, options);
    rig_->mount_ready();
  }
  Volume& volume() { return rig_->volume(); }
  VolumeRig& rig() { return *rig_; }

  Inode load(const simt::Warp& warp, uint32_t ino) {
    Inode inode{};
    EXPECT_EQ(load_inodes(warp, volume(), warp.ballot(true), ino, inode), 0);
    return inode;
  }
  /// Looks a name up; all lanes must agree. The ino, or the errno.
  int64_t find(const simt::Warp& warp, const Inode& directory, const std::string& name) {
    DirectoryEntry entry{};
    const int error = find_entry(warp, volume(), directory, name.data(),
                                 static_cast<uint32_t>(name.size()), entry);
    EXPECT_TRUE(warp.all(warp.shfl(error, 0) == error));
    if (error < 0) return error;
    EXPECT_TRUE(warp.all(warp.shfl(entry.ino, 0) == entry.ino));
    return entry.ino;
  }
  struct Listing {
    std::map<std::string, uint32_t> names;
    uint32_t entries = 0;
    int damage = 0;
  };
  /// All that list_entries gives, `capacity` entries at a time.
  Listing list(uint32_t ino, uint32_t capacity) {
    Listing listing;
    std::vector<NamedEntry> entries(capacity);
    run_alone(width(), [&](const simt::Warp& warp) {
      const Inode directory = load(warp, ino);
      DirectoryCursor cursor = 0;
      int damage = 0;
      for (;;) {
        const int64_t count =
            list_entries(warp, volume(), directory, cursor, entries.data(), capacity, damage);
        ASSERT_LE(count, capacity);
        ASSERT_GE(count, 0);
        if (count == 0) break;
        if (warp.thread_rank() == 0) {
          for (size_t i = 0; i < static_cast<size_t>(count); ++i) {
            const NamedEntry& entry = entries[i];
            EXPECT_EQ(entry.name[entry.name_length], '\0');
            EXPECT_EQ(entry.type, format::kTypeRegular);
            listing.names.emplace(std::string(entry.name, entry.name_length), entry.ino);
            ++listing.entries;
          }
        }
        warp.sync();
      }
      if (warp.thread_rank() == 0) listing.damage = damage;
    });
    return listing;
  }

  static std::unique_ptr<SharedDirectories> shared_;

 private:
  std::unique_ptr<VolumeRig> rig_;
};
std::unique_ptr<SharedDirectories> DirectoryTest::shared_;
GOFS_AT_BOTH_WIDTHS(DirectoryTest);

TEST_P(DirectoryTest, every_name_is_found) {
  run_alone(width(), [&](const simt::Warp& warp) {
    for (int kind = 0; kind < kKinds; ++kind) {
      const Inode directory = load(warp, shared_->inos[kind]);
      EXPECT_EQ(directory.has_inline_dentries(), kind == kInline);
      // A team is slow: it looks up some of them.
      const size_t step = width() == 1 ? 1 : kind == kMany ? 331 : 23;
      size_t position = 0;
      for (const auto& [name, ino] : shared_->names[kind]) {
        if (position++ % step != 0) continue;
        ASSERT_EQ(find(warp, directory, name), ino) << kPaths[kind] << "/" << name;
      }
    }
  });
  EXPECT_GE(shared_->depths[kMany], 4u);
  EXPECT_EQ(count_findings(*volume().corruptions), 0u);
}

TEST_P(DirectoryTest, names_that_are_not_there_are_not_found) {
  run_alone(width(), [&](const simt::Warp& warp) {
    for (int kind = 0; kind < kKinds; ++kind) {
      const Inode directory = load(warp, shared_->inos[kind]);
      for (const std::string& name :
           {std::string("nobody"), std::string("A"), std::string(255, 'q'), std::string("file-"),
            std::string("a "), std::string("file-7919 "), std::string("n791")}) {
        EXPECT_EQ(find(warp, directory, name), -ENOENT) << kPaths[kind] << "/" << name;
      }
    }
  });
}

TEST_P(DirectoryTest, dots_are_entries_like_others) {
  run_alone(width(), [&](const simt::Warp& warp) {
    for (int kind = 0; kind < kKinds; ++kind) {
      const Inode directory = load(warp, shared_->inos[kind]);
      EXPECT_EQ(find(warp, directory, "."), shared_->inos[kind]) << kPaths[kind];
      EXPECT_EQ(find(warp, directory, ".."), format::kRootIno) << kPaths[kind];
    }
  });
}

TEST_P(DirectoryTest, listing_gives_every_name_once_whatever_fits_at_a_time) {
  for (int kind = 0; kind < kKinds; ++kind) {
    for (const uint32_t capacity : {32u, 33u, 215u, 20'000u}) {
      if (width() != 1 && kind == kMany && capacity < 10'000) continue;
      const Listing listing = list(shared_->inos[kind], capacity);
      EXPECT_EQ(listing.entries, shared_->names[kind].size()) << kPaths[kind] << " " << capacity;
      EXPECT_TRUE(listing.names == shared_->names[kind]) << kPaths[kind] << " " << capacity;
      EXPECT_EQ(listing.damage, 0);
    }
  }
  EXPECT_EQ(count_findings(*volume().corruptions), 0u);
}

TEST_P(DirectoryTest, the_smallest_buffer_holds_an_entry_for_each_lane) {
  const Listing listing = list(shared_->inos[kOdd], width());
  EXPECT_TRUE(listing.names == shared_->names[kOdd]);
}

TEST_P(DirectoryTest, many_warps_look_up_at_once_in_a_small_cache) {
  VolumeRigOptions options;
  options.filesystem.cache_pages = 64;
  VolumeRig rig(shared_->image, options);
  rig.mount_ready();
  const Names& names = shared_->names[kMany];
  const uint32_t warps = width() == 1 ? 12 : 3;
  const uint32_t turns = width() == 1 ? 60 : 8;
  std::vector<std::pair<std::string, uint32_t>> some;
  for (const auto& entry : names) {
    if (some.size() < 997) some.push_back(entry);
  }
  std::atomic<uint32_t> wrong{0};
  run_crowd({warps, width()}, [&](const simt::Warp& warp, uint32_t index) {
    Inode directory{};
    if (load_inodes(warp, rig.volume(), warp.ballot(true), shared_->inos[kMany], directory) != 0) {
      ++wrong;
      return;
    }
    for (uint32_t turn = 0; turn < turns; ++turn) {
      const auto& [name, ino] = some[(index * 131 + turn * 17) % some.size()];
      DirectoryEntry entry{};
      if (find_entry(warp, rig.volume(), directory, name.data(), static_cast<uint32_t>(name.size()),
                     entry) != 0 ||
          entry.ino != ino || entry.type != format::kTypeRegular) {
        ++wrong;
      }
    }
  });
  EXPECT_EQ(wrong, 0u);
}

/// The block of the directory that holds the names of hash level 0.
uint32_t first_block(TestImage& image, uint32_t ino) {
  const auto target = image.target();
  image::TestReader reader(*target);
  const auto directory = reader.file(ino);
  return reader.address(directory, 0);
}

TEST_P(DirectoryTest, a_block_that_cannot_be_read_costs_its_own_names_only) {
  const uint32_t damaged = first_block(shared_->image, shared_->inos[kMany]);
  rig().add_fault(VolumeRig::reads_of_block(damaged, 9, ssd::FaultAction::kStatus));
  const Listing listing = list(shared_->inos[kMany], 512);
  EXPECT_EQ(listing.damage, -EIO);
  EXPECT_LT(listing.entries, 10'000u);
  EXPECT_GT(listing.entries, 9'700u);
  EXPECT_EQ(listing.names.size(), listing.entries);
  // Every look-up begins in one of the blocks of level 0, so some cannot say whether a name exists.
  run_alone(width(), [&](const simt::Warp& warp) {
    const Inode directory = load(warp, shared_->inos[kMany]);
    uint32_t failed = 0;
    for (uint32_t i = 0; i < 8; ++i) {
      const int64_t found = find(warp, directory, "nobody" + std::to_string(i));
      EXPECT_TRUE(found == -EIO || found == -ENOENT) << found;
      failed += found == -EIO ? 1 : 0;
    }
    EXPECT_GT(failed, 0u) << "a name in an unreadable block must not be called missing";
  });
}

/// An image of its own, with one directory of three names, for tests that change entries.
class DamagedDirectoryTest : public ::testing::TestWithParam<uint32_t> {
 protected:
  DamagedDirectoryTest() {
    const auto target = image_.target();
    image::TestReader reader(*target);
    const auto directory = reader.at("/d");
    ino_ = directory.ino;
    address_ = reader.address(directory, 0);
    block_ = reinterpret_cast<format::DentryBlock*>(image_.block(address_));
  }
  format::Dentry& entry(const std::string& name) {
    for (uint32_t slot = 0; slot < format::kDentrySlotsPerBlock; ++slot) {
      if (format::lsb_bit(block_->dentry_bitmap, slot) &&
          block_->dentry[slot].name_len == name.size() &&
          std::memcmp(block_->filename[slot], name.data(), name.size()) == 0) {
        return block_->dentry[slot];
      }
    }
    ADD_FAILURE() << name;
    return block_->dentry[0];
  }
  uint8_t* name_bytes(const format::Dentry& entry) {
    return block_->filename[&entry - block_->dentry];
  }
  struct Outcome {
    std::set<std::string> listed;
    int found;  // of "two"
    uint32_t reported;
    int damage;
    Corruption first;
  };
  Outcome look() {
    VolumeRig rig(image_);
    rig.mount_ready();
    Outcome outcome{{}, 0, 0, 0, {}};
    std::vector<NamedEntry> entries(64);
    run_alone(GetParam(), [&](const simt::Warp& warp) {
      Inode directory{};
      ASSERT_EQ(load_inodes(warp, rig.volume(), warp.ballot(true), ino_, directory), 0);
      DirectoryCursor cursor = 0;
      int damage = 0;
      const int64_t count =
          list_entries(warp, rig.volume(), directory, cursor, entries.data(), 64, damage);
      DirectoryEntry found{};
      const int error = find_entry(warp, rig.volume(), directory, "two", 3, found);
      if (warp.thread_rank() == 0) {
        for (int64_t i = 0; i < count; ++i) {
          const NamedEntry& one = entries[static_cast<size_t>(i)];
          outcome.listed.emplace(one.name, one.name_length);
        }
        outcome.found = error;
        outcome.damage = damage;
      }
    });
    outcome.reported = count_findings(*rig.volume().corruptions);
    outcome.first = rig.volume().corruptions->records[0];
    return outcome;
  }

  TestImage image_{[](image::ImageBuilder& builder) {
    image::Directory directory;
    TestImage::must(builder.add_directory(builder.root(), "d", {}, {}, &directory));
    for (const char* name : {"one", "two", "three, which is longer than its slot"}) {
      image::FileSpec file;
      file.name = name;
      TestImage::must(builder.add_file(directory, file));
    }
  }};
  uint32_t ino_;
  uint32_t address_;
  format::DentryBlock* block_;
};
GOFS_AT_BOTH_WIDTHS(DamagedDirectoryTest);

TEST_P(DamagedDirectoryTest, sound_as_built) {
  const Outcome outcome = look();
  EXPECT_EQ(outcome.listed,
            (std::set<std::string>{"one", "two", "three, which is longer than its slot"}));
  EXPECT_EQ(outcome.found, 0);
  EXPECT_EQ(outcome.reported, 0u);
  EXPECT_EQ(outcome.damage, 0);
}

TEST_P(DamagedDirectoryTest, entries_that_lead_nowhere_are_reported_and_left_out) {
  const auto without_two = std::set<std::string>{"one", "three, which is longer than its slot"};
  const format::Dentry sound = entry("two");
  for (const uint32_t ino : {0u, 1u, 2u, 0xffffffffu, image_.geometry().nid_count()}) {
    entry("two").ino = ino;
    const Outcome outcome = look();
    EXPECT_EQ(outcome.listed, without_two);
    EXPECT_EQ(outcome.found, -EUCLEAN);
    EXPECT_EQ(outcome.reported, 1u) << "met twice, noted once";
    EXPECT_EQ(outcome.damage, -EUCLEAN);
    const auto slot = static_cast<uint32_t>(&entry("two") - block_->dentry);
    EXPECT_EQ(outcome.first,
              (Corruption{Structure::kDentry, address_, ino_, slot_value(slot, ino)}));
    entry("two") = sound;
  }
  for (const uint8_t type : {uint8_t{0}, uint8_t{8}, uint8_t{255}}) {
    entry("two").file_type = type;
    const Outcome outcome = look();
    EXPECT_EQ(outcome.listed, without_two);
    EXPECT_EQ(outcome.found, -EUCLEAN);
    entry("two") = sound;
  }
}

TEST_P(DamagedDirectoryTest, names_that_cannot_be_are_reported_and_left_out) {
  format::Dentry& two = entry("two");
  for (const char* bad : {"t/o", "\0wo"}) {
    std::memcpy(name_bytes(two), bad, 3);
    const Outcome outcome = look();
    EXPECT_EQ(outcome.listed,
              (std::set<std::string>{"one", "three, which is longer than its slot"}));
    EXPECT_EQ(outcome.found, -ENOENT);
    EXPECT_EQ(outcome.reported, 1u);
  }
  std::memcpy(name_bytes(two), "two", 3);
  for (const uint32_t length : {256u, 1712u, 65535u}) {
    two.name_len = static_cast<uint16_t>(length);
    const Outcome outcome = look();
    EXPECT_EQ(outcome.listed.count("two"), 0u);
    EXPECT_EQ(outcome.found, -ENOENT);
    EXPECT_GE(outcome.reported, 1u);
  }
  two.name_len = 3;
}

TEST_P(DamagedDirectoryTest, dots_belong_to_the_first_two_slots_only) {
  format::Dentry& two = entry("two");
  for (const uint16_t length : {uint16_t{1}, uint16_t{2}}) {
    std::memcpy(name_bytes(two), "..", 2);
    two.name_len = length;
    const Outcome outcome = look();
    EXPECT_EQ(outcome.listed.size(), 2u);
    EXPECT_EQ(outcome.damage, -EUCLEAN);
    EXPECT_EQ(outcome.reported, 1u);
    EXPECT_EQ(outcome.first.structure, Structure::kDentryName);
  }
}

TEST_P(DamagedDirectoryTest, slots_that_no_name_reaches_are_reported_once) {
  const format::Dentry sound = entry("two");
  entry("two").name_len = 0;
  EXPECT_EQ(look().reported, 1u);
  EXPECT_EQ(look().damage, -EUCLEAN);
  block_->dentry[3] = sound;  // "one", "two", and the five slots of "three"
  ASSERT_EQ(look().reported, 0u);
  format::Dentry& three = entry("three, which is longer than its slot");
  for (const uint16_t length : {uint16_t{0}, uint16_t{8}, uint16_t{30}}) {
    const uint16_t was = three.name_len;
    three.name_len = length;
    const Outcome outcome = look();
    // 30 bytes take four slots, as the fifth one says.
    EXPECT_EQ(outcome.reported, 1u) << length;
    EXPECT_EQ(outcome.first.structure, Structure::kDentryName) << length;
    EXPECT_EQ(outcome.listed.size(), length == 0 ? 2u : 3u);
    three.name_len = was;
  }
}

TEST_P(DamagedDirectoryTest, a_directory_without_blocks_is_not_taken_for_empty) {
  image_.node(ino_).inode.i_size = 0;
  const Outcome outcome = look();
  EXPECT_TRUE(outcome.listed.empty());
  EXPECT_EQ(outcome.found, -EUCLEAN);
  EXPECT_EQ(outcome.damage, -EUCLEAN);
  EXPECT_EQ(outcome.first, (Corruption{Structure::kDirectory, 0, ino_, 0}));
}

TEST_P(DamagedDirectoryTest, an_unused_slot_is_no_entry_whatever_it_holds) {
  const auto slot = static_cast<uint32_t>(&entry("two") - block_->dentry);
  format::set_lsb_bit(block_->dentry_bitmap, slot, false);
  const Outcome outcome = look();
  EXPECT_EQ(outcome.listed.count("two"), 0u);
  EXPECT_EQ(outcome.found, -ENOENT);
  EXPECT_EQ(outcome.reported, 0u);
}

TEST_P(DamagedDirectoryTest, a_depth_and_size_beyond_all_measure_end_all_the_same) {
  format::Inode& inode = image_.node(ino_).inode;
  inode.i_current_depth = 0xffffffff;
  inode.i_size = format::file_blocks_max(923) * kBlockBytes;
  const Outcome outcome = look();
  EXPECT_EQ(outcome.found, 0);
  EXPECT_EQ(outcome.listed.size(), 3u);
  EXPECT_GE(outcome.reported, 1u) << "no directory has blocks that far";
  name_bytes(entry("two"))[0] = 'T';
  EXPECT_EQ(look().found, -EUCLEAN) << "a name may be where it is not looked for";
}

TEST_P(DirectoryTest, pages_are_known_by_their_place_in_the_directory) {
  const uint32_t ino = shared_->inos[kMany];
  const std::string name = shared_->names[kMany].begin()->first;
  run_alone(width(), [&](const simt::Warp& warp) {
    const Inode directory = load(warp, ino);
    EXPECT_EQ(find(warp, directory, name), shared_->names[kMany].begin()->second);
  });
  const uint64_t bucket_start = format::dir_bucket_start(
      0, 0, format::name_hash(name.data(), static_cast<uint32_t>(name.size())));
  EXPECT_NE(find_frame(volume().cache, directory_key(ino, bucket_start)), kNoFrame);
  // A page that is there needs neither node nor block.
  rig().add_fault(
      VolumeRig::reads_of_block(first_block(shared_->image, ino), 9, ssd::FaultAction::kStatus));
  run_alone(width(), [&](const simt::Warp& warp) {
    const Inode directory = load(warp, ino);
    uint64_t span = 0;
    EXPECT_EQ(with_directory_blocks(warp, volume(), warp.ballot(true), directory, bucket_start,
                                    span, [](const uint8_t*) {}),
              0);
  });
  const uint64_t key = directory_key(0xffffffff, kDirectoryBlocksMax - 1);
  EXPECT_EQ(kind_of(key), PageKind::kDirectory);
  EXPECT_EQ(directory_of(key), 0xffffffff);
  EXPECT_EQ(directory_index_of(key), kDirectoryBlocksMax - 1);
}

}  // namespace
}  // namespace gofs::f2fs
