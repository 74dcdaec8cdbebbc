// SPDX-License-Identifier: Apache-2.0
//
// What a volume does without: that it does, and that it writes and reads as before.
#include "vfs/ablations.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "f2fs/writing_for_test.hpp"
#include "vfs/async.h"
#include "vfs/open.h"
#include "vfs/vfs_for_test.hpp"
#include "vfs/write_lanes.h"

namespace gofs::vfs {
namespace {

constexpr uint64_t kCommonBlocks = 96;
constexpr uint32_t kDeepBlocks = 40;  // of a file with a hole of some levels before the last ones

/// Mounted for writing, by warps of one width.
class AblatedVolume {
 public:
  AblatedVolume(TestImage& image, uint32_t ablations, uint32_t width) : width_(width) {
    VolumeRigOptions options;
    options.filesystem.ablations = ablations;
    options.device.single_doorbells = (ablations & kAblateSharedDoorbells) != 0;
    f2fs::WriterOptions writing;
    if ((ablations & kAblateOpenSegments) != 0) writing.open_segments = 0;
    writing_ = std::make_unique<f2fs::WritingRig>(image, width, options, writing);
    EXPECT_EQ(writing_->begin().error, 0);
    fs().writer = &writing_->writer();
    fs().clock = {{{simt::now_ns(), 2'000'000'000'000'000'000, 0}, {}}, 0};
  }
  ~AblatedVolume() { EXPECT_EQ(writing_->checkpoint(true), 0); }
  AblatedVolume(const AblatedVolume&) = delete;
  AblatedVolume& operator=(const AblatedVolume&) = delete;

  uint32_t width() const { return width_; }
  Filesystem& fs() { return writing_->rig().fs(); }
  ssd::VirtualSsdCounters counters() { return writing_->rig().counters(); }
  int open_file(const char* path, uint32_t flags) {
    int fd = -1;
    run_alone(width_, [&](const simt::Warp& warp) {
      const int mine = open(warp, fs(), path, flags, 0644);
      if (warp.thread_rank() == 0) fd = mine;
    });
    EXPECT_GE(fd, 0) << path;
    return fd;
  }
  std::string contents(const char* path, uint64_t bytes) {
    const int fd = open_file(path, kOpenReadOnly);
    std::string found(bytes, '\0');
    run_alone(width_, [&](const simt::Warp& warp) {
      EXPECT_EQ(pread(warp, fs(), fd, found.data(), bytes, 0), static_cast<int64_t>(bytes));
      EXPECT_EQ(close(warp, fs(), fd), 0);
    });
    return found;
  }
  /// Commands and doorbells of all I/O queues so far.
  std::pair<uint64_t, uint64_t> rung() {
    const nvme::Device& device = writing_->rig().device();
    std::pair<uint64_t, uint64_t> sums{0, 0};
    for (uint32_t i = 0; i < device.io_queue_count; ++i) {
      sums.first += device.io[i].tail;
      sums.second += device.io[i].doorbells;
    }
    return sums;
  }

 private:
  const uint32_t width_;
  std::unique_ptr<f2fs::WritingRig> writing_;
};

/// Parameter: what the volume does without.
class AblationsTest : public ::testing::TestWithParam<uint32_t> {
 protected:
  AblationsTest()
      : image_([](image::ImageBuilder& builder) {
          image::FileSpec spec;
          spec.name = "common";
          spec.size_bytes = kCommonBlocks * kBlockBytes;
          spec.content = image::pattern_content(5);
          TestImage::must(builder.add_file(builder.root(), spec));
          spec.name = "deep";
          spec.sparse = true;
          spec.size_bytes = uint64_t{1} << 32;
          spec.ranges = {{10, 5}, {2000, 2}, {(1u << 20) - kDeepBlocks, kDeepBlocks}};
          TestImage::must(builder.add_file(builder.root(), spec));
        }) {}
  bool without(Ablation ablation) const { return (GetParam() & ablation) != 0; }

  TestImage image_;
};
INSTANTIATE_TEST_SUITE_P(mask, AblationsTest,
                         ::testing::Values(0u, 1u, 2u, 4u, 8u, 16u, 32u, 48u, kAblationsKnown),
                         ::testing::PrintToStringParamName());

/// A warp that reads and writes in a part of a common file, whose ends lie within blocks that
/// others write to as well, and compares with what it has written.
class Walker {
 public:
  Walker(Filesystem& fs, int fd, std::string& model, uint64_t first, uint64_t bytes)
      : fs_(fs), fd_(fd), model_(model), first_(first), bytes_(bytes) {}

  /// Collective; all lanes have the same luck.
  void step(const simt::Warp& warp, std::mt19937_64& luck) {
    const uint64_t offset = first_ + luck() % bytes_;
    const uint64_t count = 1 + luck() % std::min<uint64_t>(first_ + bytes_ - offset, 9000);
    const auto letter = static_cast<char>('a' + luck() % 26);
    switch (luck() % 5) {
      case 0:
        return write(warp, offset, count, letter);
      case 1:
        return write_by_lanes(warp, offset, count, letter);
      case 2:
        return write_while_under_way(warp, offset, letter);
      default:
        return read(warp, offset, count);
    }
  }

 private:
  void note(const simt::Warp& warp, uint64_t offset, uint64_t count, char letter) {
    warp.sync();
    if (warp.thread_rank() == 0) std::fill_n(&model_[offset], count, letter);
    warp.sync();
  }
  /// What a whole warp writes from, one for all of its lanes.
  const std::string& source(const simt::Warp& warp, uint64_t count, char letter) {
    warp.sync();
    if (warp.thread_rank() == 0) source_.assign(count, letter);
    warp.sync();
    return source_;
  }
  void write(const simt::Warp& warp, uint64_t offset, uint64_t count, char letter) {
    const std::string& bytes = source(warp, count, letter);
    EXPECT_EQ(pwrite(warp, fs_, fd_, bytes.data(), count, offset), static_cast<int64_t>(count));
    note(warp, offset, count, letter);
  }
  void write_by_lanes(const simt::Warp& warp, uint64_t offset, uint64_t count, char letter) {
    const uint64_t each = count / warp.size();
    const std::string& bytes = source(warp, count, letter);
    const uint64_t at = warp.thread_rank() * each;
    EXPECT_EQ(pwrite_lanes(warp, fs_, {fd_, bytes.data() + at, each, offset + at}),
              static_cast<int64_t>(each));
    note(warp, offset, each * warp.size(), letter);
  }
  /// Who has a write under way goes on elsewhere in the file before he ends it.
  void write_while_under_way(const simt::Warp& warp, uint64_t offset, char letter) {
    const uint64_t block = simt::align_up(offset, kBlockBytes);
    if (block + kBlockBytes > first_ + bytes_ || offset == first_) return;
    warp.sync();
    if (warp.thread_rank() == 0) std::fill_n(page_, kBlockBytes, letter);
    warp.sync();
    const Ticket ticket = pwrite_async(warp, fs_, fd_, page_, kBlockBytes, block);
    write(warp, first_, 1, letter);
    EXPECT_EQ(wait(warp, fs_, ticket), int64_t{kBlockBytes});
    note(warp, block, kBlockBytes, letter);
  }
  void read(const simt::Warp& warp, uint64_t offset, uint64_t count) {
    warp.sync();
    if (warp.thread_rank() == 0) found_.assign(count, '\0');
    warp.sync();
    EXPECT_EQ(pread(warp, fs_, fd_, found_.data(), count, offset), static_cast<int64_t>(count));
    warp.sync();
    if (warp.thread_rank() == 0) {
      EXPECT_TRUE(model_.compare(offset, count, found_) == 0) << offset << " " << count;
    }
    warp.sync();
  }

  Filesystem& fs_;
  const int fd_;
  std::string& model_;
  const uint64_t first_;
  const uint64_t bytes_;
  // Of the whole warp.
  std::string source_;
  std::string found_;
  alignas(8) char page_[kBlockBytes];
};

TEST_P(AblationsTest, warps_that_share_a_file_find_what_they_wrote) {
  const uint64_t seed = printed_seed();
  std::string model;
  for (const uint32_t width : {1, 4}) {
    {
      AblatedVolume volume(image_, GetParam(), width);
      const uint64_t bytes = kCommonBlocks * kBlockBytes;
      if (model.empty()) model = volume.contents("/common", bytes);
      const int fd = volume.open_file("/common", kOpenReadWrite);
      const uint32_t warps = width == 1 ? 6 : 3;
      const uint64_t each = bytes / warps / 100 * 99;
      std::vector<std::unique_ptr<Walker>> walkers;
      for (uint32_t i = 0; i < warps; ++i) {
        walkers.push_back(std::make_unique<Walker>(volume.fs(), fd, model, i * each, each));
      }
      testing::run_crowd({warps, width}, [&](const simt::Warp& warp, uint32_t index) {
        std::mt19937_64 luck(seed + index);
        for (uint32_t i = 0; i < 60; ++i) walkers[index]->step(warp, luck);
      });
      EXPECT_TRUE(volume.contents("/common", bytes) == model) << width;
    }
    EXPECT_TRUE(f2fs::fsck_likes(image_));
    AblatedVolume again(image_, 0, width);
    EXPECT_TRUE(again.contents("/common", model.size()) == model) << width;
  }
}

TEST_P(AblationsTest, lanes_read_several_files_whatever_their_order) {
  AblatedVolume volume(image_, GetParam(), 4);
  Filesystem& fs = volume.fs();
  const int files[] = {volume.open_file("/common", kOpenReadOnly),
                       volume.open_file("/deep", kOpenReadOnly)};
  const std::string wanted[] = {volume.contents("/common", kBlockBytes),
                                volume.contents("/deep", kBlockBytes)};
  constexpr uint32_t kWarps = 40;
  testing::run_crowd({kWarps, 4}, [&](const simt::Warp& warp, uint32_t index) {
    const uint32_t which = (warp.thread_rank() + index) % 2;
    std::string found(kBlockBytes, '\1');
    for (uint32_t turn = 0; turn < 4; ++turn) {
      EXPECT_EQ(pread_lanes(warp, fs, {files[which], found.data(), kBlockBytes, 0}),
                int64_t{kBlockBytes});
      EXPECT_TRUE(found == wanted[which]) << which;
    }
  });
}

TEST_P(AblationsTest, the_volume_does_without) {
  AblatedVolume volume(image_, GetParam(), 4);
  Filesystem& fs = volume.fs();
  const int fd = volume.open_file("/common", kOpenReadWrite);
  OpenInode& open = fs.open_inodes[fs.descriptors[fd].open_inode];
  EXPECT_EQ(!f2fs::MapArena::is_home(open.maps.blocks[0]), without(kAblateBlockMaps));
  EXPECT_EQ(fs.writer->open_count == 0, without(kAblateOpenSegments));
  const std::string bytes(4 * kBlockBytes, 'n');
  const auto write_and_read = [&] {
    std::string found(bytes.size(), '\0');
    run_alone(4, [&](const simt::Warp& warp) {
      EXPECT_EQ(pwrite(warp, fs, fd, bytes.data(), bytes.size(), 0),
                static_cast<int64_t>(bytes.size()));
      EXPECT_EQ(pread(warp, fs, fd, found.data(), bytes.size(), 0),
                static_cast<int64_t>(bytes.size()));
    });
    EXPECT_EQ(found, bytes);
  };
  write_and_read();  // whatever is done once
  const ssd::VirtualSsdCounters before = volume.counters();
  // Whoever stands in the line takes a ticket where there is a ring.
  run_alone(4, [&](const simt::Warp& warp) {
    RangeHold first{};
    RangeHold second{};
    EXPECT_EQ(lock_exclusive(warp, open.lock, {0, 1}, simt::Deadline::after_ns(0), first), 0);
    EXPECT_EQ(lock_exclusive(warp, open.lock, {0, 1}, simt::Deadline::after_ns(0), second),
              -ETIMEDOUT);
    unlock_exclusive(warp, open.lock, first);
  });
  const uint64_t tickets = detail::ticket_of(open.lock.turns);
  write_and_read();
  const ssd::VirtualSsdCounters after = volume.counters();
  const uint64_t commands = without(kAblateMergedBlocks) ? 4 : 1;
  EXPECT_EQ(after.write_commands - before.write_commands, commands);
  EXPECT_EQ(after.read_commands - before.read_commands, commands);
  EXPECT_EQ(detail::ticket_of(open.lock.turns) - tickets, without(kAblateRangeLocks) ? 2u : 0u);
  // Blocks that do not follow each other, so that a warp has several commands whatever is merged.
  std::vector<std::string> found(4, std::string(kBlockBytes, '\0'));
  run_alone(4, [&](const simt::Warp& warp) {
    const uint32_t rank = warp.thread_rank();
    EXPECT_EQ(pread_lanes(warp, fs, {fd, found[rank].data(), kBlockBytes, rank * 2 * kBlockBytes}),
              int64_t{kBlockBytes});
  });
  const auto [rung_commands, doorbells] = volume.rung();
  if (without(kAblateSharedDoorbells)) {
    EXPECT_EQ(doorbells, rung_commands);
  } else {
    EXPECT_LT(doorbells, rung_commands);
  }
}

TEST_P(AblationsTest, a_walk_finds_the_same) {
  AblatedVolume volume(image_, GetParam(), 4);
  Filesystem& fs = volume.fs();
  const int fd = volume.open_file("/deep", kOpenReadOnly);
  const f2fs::Inode& inode = fs.open_inodes[fs.descriptors[fd].open_inode].inode;
  EXPECT_EQ(fs.volume.cache.single_walks != 0, without(kAblateLevelWalks));
  const uint64_t last = (uint64_t{1} << 20) - kDeepBlocks;
  const uint64_t indices[] = {10, 2000, last, last + 39, 5, 11, 900'000, last - 1, 2001, 2002};
  run_alone(4, [&](const simt::Warp& warp) {
    for (uint32_t first = 0; first < std::size(indices); first += 2) {
      const uint64_t index = indices[(first + warp.thread_rank()) % std::size(indices)];
      const uint32_t lanes = first % 4 == 0 ? 0xfu : 0xau;
      f2fs::BlockPlace found{};
      f2fs::BlockPlace wanted{};
      f2fs::detail::LastNode holder{};
      f2fs::detail::LastNode wanted_holder{};
      const int error = f2fs::detail::walk_nodes(warp, fs.volume, lanes, inode, index, found,
                                                 holder, f2fs::detail::SupplyNothing{});
      const int right = f2fs::detail::walk_together(warp, fs.volume, lanes, inode, index, wanted,
                                                    wanted_holder, f2fs::detail::SupplyNothing{});
      EXPECT_EQ(error, right);
      EXPECT_EQ(found.block, wanted.block) << index;
      EXPECT_EQ(found.span, wanted.span) << index;
      EXPECT_EQ(holder.nid, wanted_holder.nid) << index;
      EXPECT_EQ(holder.first_index, wanted_holder.first_index) << index;
    }
  });
}

}  // namespace
}  // namespace gofs::vfs
