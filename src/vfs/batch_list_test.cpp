// SPDX-License-Identifier: Apache-2.0
//
// All regular files of a directory as a batch: by one warp or by many, in the order of readdir,
// from directories of every form, sound and damaged.
#include "vfs/batch_list.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "host/image/reader_for_test.h"
#include "simt/warp_group.h"
#include "vfs/metadata.h"
#include "vfs/vfs_for_test.hpp"

namespace gofs::vfs {
namespace {

constexpr uint32_t kManyFiles = 2500;
constexpr uint32_t kScatteredFiles = 150;
constexpr uint32_t kMoreThanAnyHas = 4000;
constexpr uint32_t kUntouchedIno = 0xdeadbeef;

const char* const kPaths[] = {"/empty", "/inline", "/one", "/scattered", "/many"};

/// Every name is a file of its own, so that an ino says which one it is. Each directory but the
/// empty one also has other things than files.
void fill(image::ImageBuilder& builder) {
  const auto add = [&](const char* path, const image::DirectoryOptions& options, uint32_t count) {
    image::Directory directory;
    TestImage::must(builder.add_directory(builder.root(), path + 1, {}, options, &directory));
    for (uint32_t i = 0; i < count; ++i) {
      const std::string name = "file-" + std::to_string(i * 7919);
      image::FileSpec file;
      file.name = name;
      TestImage::must(builder.add_file(directory, file));
      if (i % 50 == 3) TestImage::must(builder.add_symlink(directory, "to-" + name, name, {}));
    }
    if (count == 0) return;
    image::Directory inner;
    TestImage::must(builder.add_directory(directory, "inner", {}, {}, &inner));
  };
  image::DirectoryOptions in_inode;
  in_inode.inline_dentries = true;
  image::DirectoryOptions wide;
  wide.dir_level = 11;  // 4096 blocks, of which hardly any is there
  add("/empty", {}, 0);
  add("/inline", in_inode, 20);
  add("/one", {}, 30);
  add("/scattered", wide, kScatteredFiles);
  add("/many", {}, kManyFiles);
}

struct Listing {
  std::vector<uint32_t> inos;
  std::vector<int> errors;  // of each file
  int error = 0;            // of the whole

  bool operator==(const Listing&) const = default;
};

Listing first_of(const Listing& all, size_t count) {
  Listing cut = all;
  cut.inos.resize(std::min(count, all.inos.size()));
  cut.errors.resize(cut.inos.size());
  return cut;
}

class BatchListTest : public ::testing::TestWithParam<uint32_t> {
 protected:
  simt::Barrier barrier_{};  // of warps that play a grid
  static void SetUpTestSuite() { image_ = std::make_unique<TestImage>(fill); }
  static void TearDownTestSuite() { image_.reset(); }

  void SetUp() override { mount({}); }
  void mount(const VolumeRigOptions& options) {
    VolumeRigOptions with_faults = options;
    with_faults.ssd.fault_capacity = 2;
    rig_.reset();
    rig_ = std::make_unique<VolumeRig>(*image_, with_faults);
    rig_->mount_ready();
  }
  uint32_t width() const { return GetParam(); }
  TestImage& image() { return *image_; }
  VolumeRig& rig() { return *rig_; }
  Filesystem& fs() { return rig_->fs(); }
  BatchTable& table() { return *fs().batches; }
  /// How many warps list together. A team is slow: fewer of them.
  std::vector<uint32_t> groups() const {
    return width() == 1 ? std::vector<uint32_t>{1, 2, 5, 24} : std::vector<uint32_t>{1, 3};
  }

  Batch& begin(const std::string& path, uint32_t room) {
    int bd = 0;
    run_alone(1, [&](const simt::Warp& warp) {
      bd = begin_batch(warp, fs(), table(), path.c_str(), room);
    });
    EXPECT_GE(bd, 0) << path;
    Batch& batch = *find_batch_descriptor(table(), bd);
    for (uint32_t i = 0; i < room; ++i) table().files[batch.first + i].ino = kUntouchedIno;
    return batch;
  }
  void end(const Batch& batch) {
    run_alone(1, [&](const simt::Warp& warp) {
      EXPECT_EQ(end_batch(warp, table(), static_cast<int>(&batch - table().batches)), 0);
    });
  }
  Listing entered(const Batch& batch) {
    Listing listing;
    listing.error = batch.error;
    for (uint32_t i = 0; i < batch.count; ++i) {
      listing.inos.push_back(table().files[batch.first + i].ino);
      listing.errors.push_back(table().files[batch.first + i].error);
    }
    for (uint32_t i = batch.count; i < batch.room; ++i) {
      EXPECT_EQ(table().files[batch.first + i].ino, kUntouchedIno) << i;
    }
    return listing;
  }

  /// Lists `path` by `warps` warps that run at the same time.
  Listing list(const std::string& path, uint32_t room, uint32_t warps) {
    Batch& batch = begin(path, room);
    std::vector<int> results(warps);
    run_crowd({warps, width()}, [&](const simt::Warp& warp, uint32_t index) {
      const simt::GridGroup group(warp, index, warps, barrier_);
      survey_batch(warp, fs(), table(), batch, index, warps);
      group.sync();
      const int error = list_batch(warp, fs(), table(), batch, index, warps);
      if (warp.thread_rank() == 0) results[index] = error;
    });
    const Listing listing = entered(batch);
    for (const int result : results) EXPECT_EQ(result, listing.error);
    end(batch);
    return listing;
  }
  /// The same where there are more warps than the machine has threads: they take turns.
  void survey_in_turns(Batch& batch, uint32_t warps) {
    run_alone(1, [&](const simt::Warp& warp) {
      for (uint32_t i = 0; i < warps; ++i) survey_batch(warp, fs(), table(), batch, i, warps);
    });
  }
  void list_in_turns(Batch& batch, uint32_t warps) {
    run_alone(1, [&](const simt::Warp& warp) {
      // The last first: none needs what another one does in this step.
      for (uint32_t i = warps; i-- > 0;) list_batch(warp, fs(), table(), batch, i, warps);
    });
  }

  /// What readdir says of the regular files.
  Listing by_readdir(const std::string& path) {
    Listing listing;
    std::vector<f2fs::NamedEntry> entries(64);
    run_alone(1, [&](const simt::Warp& warp) {
      const int fd = opendir(warp, fs(), path.c_str());
      ASSERT_GE(fd, 0);
      int64_t got = 0;
      while ((got = readdir(warp, fs(), fd, entries.data(), 64)) > 0) {
        for (size_t i = 0; i < static_cast<size_t>(got); ++i) {
          if (entries[i].type != format::kTypeRegular) continue;
          listing.inos.push_back(entries[i].ino);
          listing.errors.push_back(0);
        }
      }
      listing.error = static_cast<int>(got);
      EXPECT_EQ(close(warp, fs(), fd), 0);
    });
    return listing;
  }

  uint32_t ino_of(const std::string& path) {
    const auto target = image_->target();
    return image::TestReader(*target).at(path).ino;
  }
  /// The blocks of a directory that are there, in order.
  std::vector<uint32_t> blocks_of(const std::string& path) {
    const auto target = image_->target();
    image::TestReader reader(*target);
    const auto directory = reader.at(path);
    std::vector<uint32_t> blocks;
    for (uint64_t i = 0; i < directory.inode().i_size / kBlockBytes; ++i) {
      const uint32_t address = reader.address(directory, i);
      if (address != format::kNullAddr) blocks.push_back(address);
    }
    return blocks;
  }
  void break_block(uint32_t block) {
    rig_->add_fault(VolumeRig::reads_of_block(block, 9, ssd::FaultAction::kStatus));
  }

 private:
  static std::unique_ptr<TestImage> image_;
  std::unique_ptr<VolumeRig> rig_;
};
std::unique_ptr<TestImage> BatchListTest::image_;
GOFS_AT_BOTH_WIDTHS(BatchListTest);

TEST_P(BatchListTest, any_number_of_warps_gives_the_files_in_the_order_of_readdir) {
  const std::map<std::string, size_t> counts = {{"/empty", 0},
                                                {"/inline", 20},
                                                {"/one", 30},
                                                {"/scattered", kScatteredFiles},
                                                {"/many", kManyFiles}};
  for (const char* path : kPaths) {
    const Listing wanted = by_readdir(path);
    EXPECT_EQ(wanted.inos.size(), counts.at(path)) << path;
    EXPECT_EQ(wanted.error, 0);
    for (const uint32_t warps : groups()) {
      EXPECT_EQ(list(path, kMoreThanAnyHas, warps), wanted) << path << " by " << warps;
    }
  }
  EXPECT_EQ(f2fs::count_findings(*fs().volume.corruptions), 0u);
}

TEST_P(BatchListTest, more_warps_than_parts_are_as_good_as_as_many) {
  for (const char* path : kPaths) {
    const Listing wanted = by_readdir(path);
    for (const uint32_t warps : {kBatchPartsMax - 1, kBatchPartsMax, kBatchPartsMax + 300}) {
      Batch& batch = begin(path, kMoreThanAnyHas);
      survey_in_turns(batch, warps);
      list_in_turns(batch, warps);
      EXPECT_EQ(entered(batch), wanted) << path << " by " << warps;
      end(batch);
    }
  }
}

TEST_P(BatchListTest, what_does_not_fit_is_cut) {
  for (const std::string path : {"/inline", "/scattered", "/many"}) {
    const Listing all = by_readdir(path);
    const auto count = static_cast<uint32_t>(all.inos.size());
    for (const uint32_t room : {0u, 1u, count / 3, count - 1, count, count + 1}) {
      if (width() != 1 && path != "/inline" && room != count / 3) continue;
      for (const uint32_t warps : groups()) {
        EXPECT_EQ(list(path, room, warps), first_of(all, room))
            << path << ", " << room << " by " << warps;
      }
    }
  }
}

TEST_P(BatchListTest, room_that_is_not_needed_goes_back) {
  Batch& all = begin("/one", table().capacity);
  survey_in_turns(all, 2);
  list_in_turns(all, 2);
  EXPECT_EQ(all.count, 30u);
  Batch& rest = begin("/many", table().capacity - 30);
  EXPECT_EQ(rest.first, 30u);
  end(rest);
  end(all);
}

TEST_P(BatchListTest, batches_that_are_listed_at_the_same_time_do_not_mix) {
  Batch& one = begin("/one", 500);
  Batch& many = begin("/many", 3000);
  survey_in_turns(one, 40);
  survey_in_turns(many, 40);
  list_in_turns(one, 40);
  list_in_turns(many, 40);
  EXPECT_EQ(entered(one), by_readdir("/one"));
  EXPECT_EQ(entered(many), by_readdir("/many"));
  end(one);
  end(many);
}

TEST_P(BatchListTest, a_block_that_cannot_be_read_costs_its_own_files_only) {
  const Listing sound = by_readdir("/many");
  const std::vector<uint32_t> blocks = blocks_of("/many");
  ASSERT_GE(blocks.size(), 30u);
  mount({});
  break_block(blocks[blocks.size() / 2]);
  const Listing damaged = by_readdir("/many");
  EXPECT_EQ(damaged.error, -EIO) << "readdir too says which errno";
  ASSERT_LT(damaged.inos.size(), sound.inos.size());
  const auto before = static_cast<uint32_t>(
      std::mismatch(damaged.inos.begin(), damaged.inos.end(), sound.inos.begin()).first -
      damaged.inos.begin());
  ASSERT_GT(before, 0u);
  ASSERT_LT(before, damaged.inos.size());
  Listing wanted = damaged;
  wanted.error = -EIO;
  for (const uint32_t warps : groups()) {
    EXPECT_EQ(list("/many", kMoreThanAnyHas, warps), wanted) << warps;
    // Damage counts only if it is met before the room is full.
    EXPECT_EQ(list("/many", before, warps), first_of(sound, before)) << warps;
    EXPECT_EQ(list("/many", before + 1, warps), first_of(wanted, before + 1)) << warps;
  }
}

TEST_P(BatchListTest, a_node_that_cannot_be_read_costs_the_files_below_it_only) {
  const Listing sound = by_readdir("/scattered");
  format::NodeBlock& inode = image().node(ino_of("/scattered"));
  const uint32_t direct = inode.inode.i_nid[0];
  ASSERT_NE(direct, 0u);
  mount({});
  break_block(image().nat_entry(direct).block_addr);
  Listing wanted = by_readdir("/scattered");
  ASSERT_LT(wanted.inos.size(), sound.inos.size());
  ASSERT_GT(wanted.inos.size(), 0u);
  wanted.error = -EIO;
  for (const uint32_t warps : groups()) {
    EXPECT_EQ(list("/scattered", kMoreThanAnyHas, warps), wanted) << warps;
  }
}

TEST_P(BatchListTest, the_last_errno_counts) {
  const std::vector<uint32_t> blocks = blocks_of("/many");
  format::NodeBlock& inode = image().node(ino_of("/many"));
  uint32_t first = 0;
  while (inode.inode.i_addr[first] != blocks.front()) ++first;
  format::le32& address = inode.inode.i_addr[first];
  const format::le32 was = address;
  address = 1;  // no block of the main area: -EUCLEAN
  mount({});
  break_block(blocks.back());
  for (const uint32_t warps : groups()) {
    EXPECT_EQ(list("/many", kMoreThanAnyHas, warps).error, -EIO) << warps;
  }
  rig().clear_faults();
  for (const uint32_t warps : groups()) {
    EXPECT_EQ(list("/many", kMoreThanAnyHas, warps).error, -EUCLEAN) << warps;
  }
  address = was;
}

TEST_P(BatchListTest, an_entry_that_leads_nowhere_is_left_out_and_told) {
  Listing wanted = by_readdir("/one");
  auto& block = *reinterpret_cast<format::DentryBlock*>(image().block(blocks_of("/one").front()));
  uint32_t slot = 0;
  while (block.dentry[slot].ino != wanted.inos[7]) ++slot;
  const format::le32 was = block.dentry[slot].ino;
  block.dentry[slot].ino = 0xffffffff;
  wanted.inos.erase(wanted.inos.begin() + 7);
  wanted.errors.pop_back();
  wanted.error = -EUCLEAN;
  mount({});
  for (const uint32_t warps : groups()) {
    EXPECT_EQ(list("/one", kMoreThanAnyHas, warps), wanted) << warps;
  }
  EXPECT_EQ(f2fs::count_findings(*fs().volume.corruptions), 1u);
  block.dentry[slot].ino = was;
}

TEST_P(BatchListTest, an_enormous_size_costs_each_part_only_a_few_looks) {
  for (const std::string path : {"/scattered", "/empty", "/one"}) {
    if (width() != 1 && path != "/scattered") continue;  // a team takes its time
    const Listing wanted = by_readdir(path);
    format::Inode& inode = image().node(ino_of(path)).inode;
    const format::le64 was = inode.i_size;
    inode.i_size = f2fs::kDirectoryBlocksMax * kBlockBytes;
    mount({});
    // One look at each of its blocks, and this would not end.
    for (const uint32_t warps : groups()) {
      EXPECT_EQ(list(path, kMoreThanAnyHas, warps), wanted) << path << " by " << warps;
    }
    Batch& batch = begin(path, kMoreThanAnyHas);
    survey_in_turns(batch, 2 * kBatchPartsMax);
    list_in_turns(batch, 2 * kBatchPartsMax);
    EXPECT_EQ(entered(batch), wanted) << path;
    end(batch);
    inode.i_size = was;
  }
}

TEST_P(BatchListTest, a_directory_that_is_gone_gives_no_files) {
  for (const uint32_t warps : groups()) {
    Batch& batch = begin("/one", 100);
    batch.directory_ino = image().geometry().nid_count() - 1;
    survey_in_turns(batch, warps);
    list_in_turns(batch, warps);
    EXPECT_EQ(entered(batch), (Listing{{}, {}, -EUCLEAN})) << warps;
    end(batch);
  }
}

TEST_P(BatchListTest, files_of_a_block_that_is_lost_between_the_steps_have_its_error) {
  const Listing sound = by_readdir("/many");
  const std::vector<uint32_t> blocks = blocks_of("/many");
  for (const uint32_t warps : {1u, 6u}) {
    VolumeRigOptions options;
    options.filesystem.cache_pages = 64;
    mount(options);
    Batch& batch = begin("/many", kMoreThanAnyHas);
    survey_in_turns(batch, warps);
    // Other directories push it out of the cache.
    (void)by_readdir("/scattered");
    break_block(blocks[3]);
    list_in_turns(batch, warps);
    const Listing listing = entered(batch);
    EXPECT_EQ(listing.error, 0);
    ASSERT_EQ(listing.inos.size(), sound.inos.size());
    size_t lost = 0;
    for (size_t i = 0; i < listing.inos.size(); ++i) {
      EXPECT_EQ(listing.errors[i], listing.inos[i] == 0 ? -EIO : 0) << i;
      lost += listing.inos[i] == 0;
    }
    EXPECT_GT(lost, 0u);
    EXPECT_LT(lost, format::kDentrySlotsPerBlock);
    // All others are there once, still in order.
    std::vector<uint32_t> rest = listing.inos;
    std::erase(rest, 0u);
    std::vector<uint32_t> left = sound.inos;
    std::erase_if(
        left, [&](uint32_t ino) { return std::find(rest.begin(), rest.end(), ino) == rest.end(); });
    EXPECT_EQ(rest, left);
    end(batch);
  }
}

}  // namespace
}  // namespace gofs::vfs
