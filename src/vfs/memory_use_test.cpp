// SPDX-License-Identifier: Apache-2.0
//
// What is in use of a file system's memory: each part goes up by what was taken and comes back; and
// what many files take that are opened as one batch.
#include "vfs/memory_use.h"

#include <gtest/gtest.h>

#include <bit>
#include <cstdio>
#include <memory>
#include <numeric>
#include <string>

#include "host/image/pattern.h"
#include "simt/warp_group.h"
#include "vfs/batch_list.h"
#include "vfs/open.h"
#include "vfs/vfs_for_test.hpp"

namespace gofs::vfs {
namespace {

using simt::MemoryPart;

constexpr uint32_t kLargeBlocks = 1500;  // many units of the map arena

void fill_for_use(image::ImageBuilder& builder) {
  image::Directory set;
  TestImage::must(builder.add_directory(builder.root(), "set", {}, {}, &set));
  for (uint32_t i = 0; i < 40; ++i) {
    const std::string name = "f" + std::to_string(i);
    image::FileSpec file;
    file.name = name;
    file.size_bytes = i == 0 ? uint64_t{kLargeBlocks} * kBlockBytes : 5000;
    TestImage::must(builder.add_file(set, file));
  }
}

uint64_t part_of(const MemoryUse& use, MemoryPart part) {
  const auto index = static_cast<uint32_t>(part);
  EXPECT_NE(use.told >> index & 1u, 0u) << index;
  return use.parts[index];
}

uint64_t all_parts(const MemoryUse& use) {
  return std::accumulate(std::begin(use.parts), std::end(use.parts), uint64_t{0});
}

MemoryUse use_of(Filesystem& fs, uint32_t width) {
  MemoryUse use{};
  run_alone(width, [&](const simt::Warp& warp) {
    MemoryUse mine;
    count_memory(warp, fs, mine);
    if (warp.thread_rank() == 0) use = mine;
  });
  return use;
}

class MemoryUseTest : public ::testing::TestWithParam<uint32_t> {
 protected:
  static void SetUpTestSuite() { image_ = std::make_unique<TestImage>(fill_for_use); }
  static void TearDownTestSuite() { image_.reset(); }

  void SetUp() override {
    rig_ = std::make_unique<VolumeRig>(*image_);
    rig_->mount_ready(width());
  }
  uint32_t width() const { return GetParam(); }
  Filesystem& fs() { return rig_->fs(); }
  MemoryUse use() { return use_of(fs(), width()); }

 private:
  static std::unique_ptr<TestImage> image_;
  std::unique_ptr<VolumeRig> rig_;
};
std::unique_ptr<TestImage> MemoryUseTest::image_;
GOFS_AT_BOTH_WIDTHS(MemoryUseTest);

TEST_P(MemoryUseTest, open_files_count_and_come_back) {
  const MemoryUse before = use();
  EXPECT_EQ(part_of(before, MemoryPart::kDescriptors), 0u);
  EXPECT_EQ(part_of(before, MemoryPart::kCheckpoint), kBlockBytes);
  int fds[3]{};
  run_alone(width(), [&](const simt::Warp& warp) {
    // Two descriptors of one inode.
    const char* const paths[] = {"/set/f0", "/set/f1", "/set/f1"};
    for (uint32_t i = 0; i < 3; ++i) {
      const int fd = open(warp, fs(), paths[i], kOpenReadOnly);
      if (warp.thread_rank() == 0) fds[i] = fd;
    }
  });
  const MemoryUse open_now = use();
  EXPECT_EQ(part_of(open_now, MemoryPart::kDescriptors), 3 * sizeof(Descriptor));
  EXPECT_EQ(part_of(open_now, MemoryPart::kRangeLocks), 2 * sizeof(RangeLock));
  EXPECT_EQ(part_of(open_now, MemoryPart::kOpenInodes),
            2 * (sizeof(OpenInode) - sizeof(RangeLock)));
  // A word for each of the large file's blocks, to a power of two, and a unit of the small file.
  constexpr uint64_t kUnit = f2fs::MapArena::kUnitWords;
  constexpr uint64_t kUnits = 1 + std::bit_ceil(uint64_t{kLargeBlocks}) / kUnit;
  EXPECT_EQ(part_of(open_now, MemoryPart::kBlockMaps), kUnits * kUnit * sizeof(uint32_t));
  EXPECT_GE(part_of(open_now, MemoryPart::kNames), 4 * sizeof(DentryTable::Entry));
  // The inodes of the root, of /set and of the two files.
  EXPECT_GE(open_now.pages[static_cast<uint32_t>(f2fs::PageKind::kNode)].valid, 4 * kBlockBytes);
  EXPECT_GE(open_now.pages[static_cast<uint32_t>(f2fs::PageKind::kNat)].valid, kBlockBytes);
  uint64_t cached = 0;
  for (const MemoryUse::Pages& pages : open_now.pages) {
    cached += pages.valid;
    EXPECT_EQ(pages.dirty, 0u);
  }
  EXPECT_EQ(part_of(open_now, MemoryPart::kPageCache), cached);
  run_alone(width(), [&](const simt::Warp& warp) {
    for (const int fd : fds) EXPECT_EQ(close(warp, fs(), fd), 0);
  });
  const MemoryUse after = use();
  for (const MemoryPart part : {MemoryPart::kDescriptors, MemoryPart::kRangeLocks,
                                MemoryPart::kOpenInodes, MemoryPart::kBlockMaps}) {
    EXPECT_EQ(part_of(after, part), 0u);
  }
}

TEST_P(MemoryUseTest, a_batch_takes_its_files_and_nothing_of_open_ones) {
  int bd = 0;
  run_alone(width(), [&](const simt::Warp& warp) {
    const int mine = begin_batch(warp, fs(), *fs().batches, "/set", 40);
    if (warp.thread_rank() == 0) bd = mine;
  });
  ASSERT_GE(bd, 0);
  const MemoryUse open_now = use();
  EXPECT_EQ(part_of(open_now, MemoryPart::kBatches),
            sizeof(Batch) + kBatchPartsMax * sizeof(BatchPart) +
                40 * (sizeof(BatchEntry) + detail::kNameSlotsPerFile * sizeof(uint32_t)));
  EXPECT_EQ(part_of(open_now, MemoryPart::kDescriptors), 0u);
  run_alone(width(),
            [&](const simt::Warp& warp) { EXPECT_EQ(end_batch(warp, *fs().batches, bd), 0); });
  EXPECT_EQ(part_of(use(), MemoryPart::kBatches), 0u);
}

TEST_P(MemoryUseTest, what_is_taken_for_a_moment_counts) {
  run_alone(width(), [&](const simt::Warp& warp) {
    f2fs::SpareBlocks<3> spares;
    EXPECT_TRUE(f2fs::take_spares(warp, fs().pool, 1'000'000'000, spares));
    MemoryUse taken;
    count_memory(warp, fs(), taken);
    EXPECT_EQ(part_of(taken, MemoryPart::kSpareBlocks), 3 * kBlockBytes);
    f2fs::release_spares(warp, fs().pool, spares);
  });
  const MemoryUse after = use();
  EXPECT_EQ(part_of(after, MemoryPart::kSpareBlocks), 0u);
  EXPECT_EQ(part_of(after, MemoryPart::kOperations), 0u);
}

TEST_P(MemoryUseTest, others_go_on_while_it_is_counted) {
  constexpr int kRounds = 30;
  run_crowd({3, width()}, [&](const simt::Warp& warp, uint32_t index) {
    for (int round = 0; round < kRounds; ++round) {
      if (index == 0) {
        MemoryUse mine;
        count_memory(warp, fs(), mine);
        EXPECT_LE(part_of(mine, MemoryPart::kDescriptors), sizeof(Descriptor));
        EXPECT_LE(part_of(mine, MemoryPart::kBlockMaps), 2 * 4096u);
      } else if (index == 1) {
        const int fd = open(warp, fs(), "/set/f0", kOpenReadOnly);
        EXPECT_GE(fd, 0);
        uint8_t bytes[16];
        EXPECT_EQ(pread(warp, fs(), fd, bytes, sizeof(bytes), 4096), 16);
        EXPECT_EQ(close(warp, fs(), fd), 0);
      } else {
        BatchTable& table = *fs().batches;
        const int bd = begin_batch(warp, fs(), table, "/set", 100);
        EXPECT_GE(bd, 0);
        Batch& batch = table.batches[bd];
        survey_batch(warp, fs(), table, batch, 0, 1);
        warp.sync();
        EXPECT_EQ(list_batch(warp, fs(), table, batch, 0, 1), 0);
        warp.sync();
        load_batch(warp, fs(), table, batch, 0, 1);
        EXPECT_EQ(end_batch(warp, table, bd), 0);
      }
    }
  });
}

// The GoFS of SOSP'25 takes 278 MB for as many. Everything that was not in use before counts, with
// what the page cache has kept of the files' inodes, and nothing is allocated.
TEST(ManyOpenFiles, a_batch_of_65536_files_takes_at_most_16_mib) {
  constexpr uint32_t kFiles = 65'536;
  constexpr uint64_t kMostBytes = uint64_t{16} << 20;
  constexpr uint32_t kCachePages = 1024;
  TestImage image(
      [](image::ImageBuilder& builder) {
        image::Directory many;
        TestImage::must(builder.add_directory(builder.root(), "many", {}, {}, &many));
        for (uint32_t i = 0; i < kFiles; ++i) {
          const std::string name = "file-" + std::to_string(i);
          image::FileSpec file;
          file.name = name;
          file.size_bytes = i % 8 == 0 ? 5000 : 0;  // so that the image is not too large
          if (i % 8 == 0) file.content = image::pattern_content(i);
          TestImage::must(builder.add_file(many, file));
        }
      },
      0, uint64_t{512} << 20);
  VolumeRigOptions options;
  options.filesystem.cache_pages = kCachePages;
  options.filesystem.batch_files = kFiles;
  VolumeRig rig(image, options);
  rig.mount_ready();
  Filesystem& fs = rig.fs();
  BatchTable& table = *fs.batches;
  const uint64_t allocated = rig.arena().space().bytes_taken();
  const MemoryUse before = use_of(fs, 1);
  int bd = -1;
  run_alone(1, [&](const simt::Warp& warp) {
    bd = begin_batch(warp, fs, table, "/many", kFiles);
    ASSERT_GE(bd, 0);
    Batch& batch = table.batches[bd];
    survey_batch(warp, fs, table, batch, 0, 1);
    EXPECT_EQ(list_batch(warp, fs, table, batch, 0, 1), 0);
    load_batch(warp, fs, table, batch, 0, 1);
  });
  const Batch& batch = *find_batch_descriptor(table, bd);
  ASSERT_EQ(batch.count, kFiles);
  uint64_t bytes = 0;
  for (uint32_t i = 0; i < kFiles; ++i) {
    ASSERT_EQ(table.files[batch.first + i].error, 0) << i;
    bytes += table.files[batch.first + i].size_bytes;
  }
  EXPECT_EQ(bytes, uint64_t{kFiles / 8} * 5000);
  const MemoryUse open_now = use_of(fs, 1);
  const uint64_t taken = all_parts(open_now) - all_parts(before);
  const uint64_t cached =
      part_of(open_now, MemoryPart::kPageCache) - part_of(before, MemoryPart::kPageCache);
  std::printf("%u files open: %.2f MiB more in use, %.2f of these in the page cache\n", kFiles,
              static_cast<double>(taken) / (1 << 20), static_cast<double>(cached) / (1 << 20));
  EXPECT_LE(taken, kMostBytes);
  EXPECT_GE(taken - cached, uint64_t{kFiles} * sizeof(BatchEntry));
  EXPECT_EQ(rig.arena().space().bytes_taken(), allocated);
  for (const MemoryPart part : {MemoryPart::kDescriptors, MemoryPart::kRangeLocks,
                                MemoryPart::kOpenInodes, MemoryPart::kBlockMaps}) {
    EXPECT_EQ(part_of(open_now, part), 0u);
  }
  run_alone(1, [&](const simt::Warp& warp) { EXPECT_EQ(end_batch(warp, table, bd), 0); });
  EXPECT_EQ(part_of(use_of(fs, 1), MemoryPart::kBatches), 0u);
}

}  // namespace
}  // namespace gofs::vfs
