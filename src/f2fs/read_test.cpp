// SPDX-License-Identifier: Apache-2.0
//
// File data by pieces: every alignment of place, length and buffer, with LBAs of 512 and of 4096
// bytes, from scattered blocks, holes, reserved blocks and inline data. All content is a pattern of
// the file's own, so that a byte from anywhere else is seen; buffers have guards on both sides.
#include "f2fs/read.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <memory>
#include <vector>

#include "f2fs/mount.h"
#include "host/image/reader_for_test.h"
#include "testing/volume_rig.hpp"

namespace gofs::f2fs {
namespace {

using gofs::testing::all_lanes;
using gofs::testing::printed_seed;
using gofs::testing::run_alone;
using gofs::testing::run_crowd;
using gofs::testing::TestImage;
using gofs::testing::VolumeRig;
using gofs::testing::VolumeRigOptions;

enum FileKind { kInlineFile, kWhole, kFragmented, kSparse, kFiles };

struct SharedFiles {
  static constexpr uint64_t kSizes[kFiles] = {700, 40 * 4096 + 123, 50 * 4096, 60 * 4096 + 1};

  SharedFiles() : image([this](image::ImageBuilder& builder) { fill(builder); }) {}

  /// What a read of the file must give at `offset`.
  static uint8_t byte(int kind, uint64_t offset) {
    if (kind == kSparse) {
      const uint64_t block = offset / kBlockBytes;
      const bool stored = block == 0 || (block >= 7 && block < 12) || block == 60;
      if (!stored) return 0;
    }
    return image::pattern_byte(static_cast<uint64_t>(kind) + 100, offset);
  }

  image::FileHandle files[kFiles];
  TestImage image;

 private:
  void fill(image::ImageBuilder& builder) {
    const char* const names[kFiles] = {"inline", "whole", "fragmented", "sparse"};
    for (int kind = 0; kind < kFiles; ++kind) {
      image::FileSpec file;
      file.name = names[kind];
      file.size_bytes = kSizes[kind];
      file.content = image::pattern_content(static_cast<uint64_t>(kind) + 100);
      file.inline_data = kind == kInlineFile;
      image::FileLayout layout;
      if (kind == kFragmented) {
        layout.run_blocks = 1;
        layout.shuffle = true;
      }
      if (kind == kSparse) {
        file.sparse = true;
        file.ranges = {{0, 1}, {7, 5}, {20, 4, true}, {60, 1}};
      }
      TestImage::must(builder.add_file(builder.root(), file, layout, &files[kind]));
    }
  }
};

/// A block's worth of room with guards, at any address.
class GuardedRoom {
 public:
  static constexpr uint32_t kGuard = 64;
  explicit GuardedRoom(uint32_t bytes_max) : bytes_(kGuard + 64 + bytes_max + kGuard) {}
  /// Everything to the guard byte; where a target of alignment `shift` (below 64) begins.
  uint8_t* prepare(uint32_t shift) {
    std::fill(bytes_.begin(), bytes_.end(), uint8_t{0x5c});
    const uintptr_t base =
        simt::align_up(reinterpret_cast<uintptr_t>(bytes_.data()) + kGuard - 64, 64);
    return reinterpret_cast<uint8_t*>(base) + 64 + shift % 64;
  }
  bool only_between(const uint8_t* begin, uint64_t count) const {
    const auto untouched = [](uint8_t byte) { return byte == 0x5c; };
    const uint8_t* const first = bytes_.data();
    const uint8_t* const last = first + bytes_.size();
    return std::all_of(first, begin, untouched) && std::all_of(begin + count, last, untouched);
  }

 private:
  std::vector<uint8_t> bytes_;
};

bool right(int kind, uint64_t offset, const uint8_t* data, uint64_t bytes) {
  for (uint64_t i = 0; i < bytes; ++i) {
    if (data[i] != SharedFiles::byte(kind, offset + i)) return false;
  }
  return true;
}

/// (width, LBA shift)
class ReadPiecesTest : public ::testing::TestWithParam<std::tuple<uint32_t, uint32_t>> {
 protected:
  static void SetUpTestSuite() { shared_ = std::make_unique<SharedFiles>(); }
  static void TearDownTestSuite() { shared_.reset(); }

  uint32_t width() const { return std::get<0>(GetParam()); }
  uint32_t lba_shift() const { return std::get<1>(GetParam()); }

  void mount(VolumeRigOptions options = {}) {
    options.ssd.lba_shift = lba_shift();
    options.ssd.fault_capacity = 4;
    rig_ = std::make_unique<VolumeRig>(shared_->image, options);
    rig_->mount_ready();
  }
  VolumeRig& rig() { return *rig_; }
  Volume& volume() { return rig_->volume(); }
  const PagePool& pool() { return rig_->fs().pool; }

  /// The inodes of all files, loaded by this warp.
  void load(const simt::Warp& warp, Inode (&inodes)[kFiles]) {
    for (int kind = 0; kind < kFiles; ++kind) {
      ASSERT_EQ(
          load_inodes(warp, volume(), warp.ballot(true), shared_->files[kind].ino, inodes[kind]),
          0);
    }
  }

  /// Each lane reads something else, again and again.
  void read_random(uint32_t warps, uint32_t turns, uint64_t seed) {
    std::atomic<uint32_t> wrong{0};
    run_crowd({warps, width()}, [&](const simt::Warp& warp, uint32_t index) {
      Inode inodes[kFiles] = {};
      load(warp, inodes);
      GuardedRoom room(kBlockBytes);
      const uint64_t own_seed = seed + index * width() + warp.thread_rank();
      for (uint32_t turn = 0; turn < turns; ++turn) {
        const uint64_t random = image::pattern_word(own_seed, turn);
        const int kind = static_cast<int>(random % kFiles);
        const uint64_t size = SharedFiles::kSizes[kind];
        uint64_t offset = (random >> 8) % size;
        // Aligned ones as well, and whole blocks.
        if (turn % 3 == 0) offset &= ~uint64_t{511};
        if (turn % 5 == 0) offset &= ~uint64_t{4095};
        const uint64_t room_left = kBlockBytes - offset % kBlockBytes;
        uint64_t bytes = (random >> 40) % room_left + 1;
        if (turn % 4 == 0) bytes = room_left;
        if (turn % 7 == 0) bytes = simt::max<uint64_t>(bytes & ~uint64_t{511}, 1);
        bytes = simt::min(bytes, size - offset);
        uint8_t* const target =
            room.prepare(turn % 6 == 0 ? 0 : static_cast<uint32_t>(random >> 32));
        const int error = read_pieces(warp, volume(), pool(), all_lanes(warp), inodes[kind],
                                      Piece{offset, static_cast<uint32_t>(bytes), target});
        if (error != 0 || !right(kind, offset, target, bytes) ||
            !room.only_between(target, bytes)) {
          ++wrong;
          ADD_FAILURE() << "file " << kind << ", " << bytes << " bytes at " << offset << " to ..."
                        << reinterpret_cast<uintptr_t>(target) % 64 << ": " << error;
        }
      }
    });
    EXPECT_EQ(wrong, 0u);
  }

  static std::unique_ptr<SharedFiles> shared_;

 private:
  std::unique_ptr<VolumeRig> rig_;
};
std::unique_ptr<SharedFiles> ReadPiecesTest::shared_;

INSTANTIATE_TEST_SUITE_P(width, ReadPiecesTest,
                         ::testing::Combine(::testing::ValuesIn(gofs::testing::widths({1, 4})),
                                            ::testing::Values(9u, 12u)),
                         [](const auto& test) {
                           return std::to_string(std::get<0>(test.param)) + "_lba_" +
                                  std::to_string(1u << std::get<1>(test.param));
                         });

TEST_P(ReadPiecesTest, any_piece_of_any_file_to_any_address) {
  mount();
  read_random(1, width() == 1 ? 1500 : 60, printed_seed());
}

TEST_P(ReadPiecesTest, many_warps_share_few_spare_blocks) {
  VolumeRigOptions options;
  options.filesystem.pool_pages = 32;
  options.filesystem.cache_pages = 64;
  mount(options);
  read_random(width() == 1 ? 16 : 3, width() == 1 ? 40 : 12, printed_seed());
  for (uint32_t i = 0; i < pool().count; ++i) EXPECT_EQ(pool().locks[i], 0u) << "kept";
}

// What each place costs: only the LBAs that are asked for are moved.
TEST_P(ReadPiecesTest, a_piece_moves_no_more_than_its_lbas) {
  mount();
  GuardedRoom room(kBlockBytes);
  Inode inodes[kFiles] = {};
  load(simt::Warp(), inodes);
  struct Case {
    uint64_t offset;
    uint32_t bytes;
    uint32_t lbas_of_512;
  };
  const Case cases[] = {{0, 512, 1},  {512, 1024, 2}, {1, 1, 1},      {511, 2, 2},
                        {0, 4096, 8}, {3, 4090, 8},   {4096, 513, 2}, {4095, 1, 1}};
  BlockPlace place{};  // the node is in memory before it is counted
  ASSERT_EQ(map_blocks(simt::Warp(), volume(), 1u, inodes[kWhole], 0, place), 0);
  for (const Case& one : cases) {
    for (const uint32_t shift : {0u, 1u}) {
      uint8_t* const target = room.prepare(shift);
      const uint64_t before = rig().counters().blocks_read;
      ASSERT_EQ(read_pieces(simt::Warp(), volume(), pool(), 1u, inodes[kWhole],
                            Piece{one.offset, one.bytes, target}),
                0);
      EXPECT_TRUE(right(kWhole, one.offset, target, one.bytes));
      EXPECT_EQ(rig().counters().blocks_read - before, lba_shift() == 9 ? one.lbas_of_512 : 1u)
          << one.bytes << " at " << one.offset;
    }
  }
}

TEST_P(ReadPiecesTest, neighbours_travel_in_one_command) {
  if (width() == 1) return;  // one lane has no neighbours
  struct Case {
    FileKind kind;
    uint64_t first_block;
    uint32_t mdts;
    uint64_t commands;
  };
  // 4 lanes; a file in one piece, one in single blocks, one that begins with a hole's edge.
  for (const Case& one : {Case{kWhole, 2, 7, 1}, Case{kWhole, 2, 1, 2}, Case{kWhole, 2, 0, 1},
                          Case{kSparse, 6, 7, 1}, Case{kSparse, 10, 7, 1}}) {
    VolumeRigOptions options;
    options.ssd.mdts = one.mdts;
    mount(options);
    uint8_t* const buffer = rig().arena().bytes(4 * kBlockBytes);
    for (uint32_t turn = 0; turn < 2; ++turn) {
      const uint64_t before = rig().counters().read_commands;
      run_alone(4, [&](const simt::Warp& warp) {
        Inode inodes[kFiles] = {};
        load(warp, inodes);
        const uint64_t offset = (one.first_block + warp.thread_rank()) * kBlockBytes;
        EXPECT_EQ(
            read_pieces(warp, volume(), pool(), all_lanes(warp), inodes[one.kind],
                        Piece{offset, kBlockBytes, buffer + warp.thread_rank() * kBlockBytes}),
            0);
      });
      if (turn == 1) {  // with all nodes in memory
        EXPECT_EQ(rig().counters().read_commands - before, one.commands)
            << "file " << one.kind << ", mdts " << one.mdts;
      }
      EXPECT_TRUE(right(one.kind, one.first_block * kBlockBytes, buffer, 4 * kBlockBytes));
    }
  }
}

TEST_P(ReadPiecesTest, neighbours_whose_buffers_are_apart_or_reversed_are_not_merged) {
  mount();
  const uint32_t lanes = width();
  uint8_t* const buffer = rig().arena().bytes(8 * kBlockBytes);
  for (const bool reversed : {false, true}) {
    run_alone(lanes, [&](const simt::Warp& warp) {
      Inode inodes[kFiles] = {};
      load(warp, inodes);
      const uint32_t rank = warp.thread_rank();
      const uint32_t place = reversed ? lanes - 1 - rank : 2 * rank;
      EXPECT_EQ(read_pieces(warp, volume(), pool(), all_lanes(warp), inodes[kWhole],
                            Piece{(3 + rank) * uint64_t{kBlockBytes}, kBlockBytes,
                                  buffer + place * kBlockBytes}),
                0);
      warp.sync();
      EXPECT_TRUE(right(kWhole, (3 + rank) * uint64_t{kBlockBytes}, buffer + place * kBlockBytes,
                        kBlockBytes));
    });
  }
}

// Everything is visible to the whole warp at return.
TEST_P(ReadPiecesTest, lanes_may_look_at_each_others_bytes) {
  mount();
  const uint32_t lanes = width();
  for (int kind = 0; kind < kFiles; ++kind) {
    for (const uint32_t shift : {0u, 1u}) {
      uint8_t* const buffer = rig().arena().bytes(lanes * 200 + 4) + shift;
      run_alone(lanes, [&](const simt::Warp& warp) {
        Inode inodes[kFiles] = {};
        load(warp, inodes);
        const uint32_t rank = warp.thread_rank();
        EXPECT_EQ(read_pieces(warp, volume(), pool(), all_lanes(warp), inodes[kind],
                              Piece{rank * 100u, 100, buffer + rank * 100}),
                  0);
        const uint32_t other = (rank + 1) % lanes;
        EXPECT_TRUE(right(kind, other * 100, buffer + other * 100, 100)) << kind;
      });
    }
  }
}

TEST_P(ReadPiecesTest, an_unreadable_block_fails_the_pieces_in_it) {
  mount();
  const auto target = shared_->image.target();
  image::TestReader reader(*target);
  const auto file = reader.file(shared_->files[kFragmented].ino);
  // By a place of its own each, so that nothing is merged with it.
  rig().add_fault(
      VolumeRig::reads_of_block(reader.address(file, 1), lba_shift(), ssd::FaultAction::kStatus));
  const uint32_t lanes = width();
  uint8_t* const buffer = rig().arena().bytes(lanes * 2 * kBlockBytes);
  for (const uint32_t shift : {0u, 3u}) {
    run_alone(lanes, [&](const simt::Warp& warp) {
      Inode inodes[kFiles] = {};
      load(warp, inodes);
      const uint32_t rank = warp.thread_rank();
      const uint32_t block = (rank + (lanes == 1 ? 1 : 0)) % 3;
      uint8_t* const mine = buffer + rank * 2 * kBlockBytes + shift;
      const int error = read_pieces(warp, volume(), pool(), all_lanes(warp), inodes[kFragmented],
                                    Piece{block * uint64_t{kBlockBytes}, kBlockBytes, mine});
      EXPECT_EQ(error, block == 1 ? -EIO : 0);
      if (block != 1) {
        EXPECT_TRUE(right(kFragmented, block * uint64_t{kBlockBytes}, mine, kBlockBytes));
      }
    });
  }
  for (uint32_t i = 0; i < pool().count; ++i) EXPECT_EQ(pool().locks[i], 0u) << "kept";
}

TEST_P(ReadPiecesTest, pieces_are_started_and_waited_for_by_a_mailbox) {
  mount();
  const uint32_t lanes = width();
  uint8_t* const buffer = rig().arena().bytes(lanes * 3 * kBlockBytes + 8);
  for (int kind = 0; kind < kFiles; ++kind) {
    const uint32_t bytes = kind == kInlineFile ? 48 : kBlockBytes;  // 12 of them fit
    nvme::Mailbox mailbox{};
    run_alone(lanes, [&](const simt::Warp& warp) {
      Inode inodes[kFiles] = {};
      load(warp, inodes);
      const uint32_t rank = warp.thread_rank();
      for (uint32_t i = 0; i < 3; ++i) {
        const uint32_t piece = i * lanes + rank;
        EXPECT_EQ(
            read_pieces(warp, volume(), pool(), all_lanes(warp), inodes[kind],
                        Piece{uint64_t{piece} * bytes, bytes, buffer + piece * bytes}, &mailbox),
            0);
      }
      // Everything was submitted to the queue of this processor.
      while (!warp.all(simt::load_acquire(mailbox.remaining) == 0)) {
        nvme::progress(warp, rig().device(), nvme::pick_queue(rig().device()));
      }
      EXPECT_EQ(simt::load_relaxed(mailbox.status), 0u);
      EXPECT_TRUE(right(kind, 0, buffer, 3 * lanes * bytes)) << kind;
    });
  }
}

/// The flat map of an open file's blocks must give what the nodes give.
TEST_P(ReadPiecesTest, a_kept_block_map_answers_as_the_nodes_do) {
  mount();
  for (const int kind : {kWhole, kFragmented, kSparse}) {
    const uint64_t blocks = simt::divide_up(SharedFiles::kSizes[kind], kBlockBytes);
    FileMaps maps{};
    open_block_map(volume(), maps, blocks);
    run_alone(width(), [&](const simt::Warp& warp) {
      Inode inodes[kFiles] = {};
      load(warp, inodes);
      Inode kept = inodes[kind];
      kept.maps = &maps;
      for (uint32_t turn = 0; turn < 2; ++turn) {
        for (uint64_t first = 0; first < blocks; first += warp.size()) {
          const uint64_t index = first + warp.thread_rank();
          const uint32_t lanes = warp.ballot(index < blocks);
          BlockPlace by_map{};
          BlockPlace by_nodes{};
          EXPECT_EQ(map_blocks(warp, volume(), lanes, kept, index, by_map), 0);
          EXPECT_EQ(map_blocks(warp, volume(), lanes, inodes[kind], index, by_nodes), 0);
          if (index < blocks) {
            EXPECT_EQ(by_map.block, by_nodes.block) << kind << " " << index;
            EXPECT_GE(by_nodes.span, by_map.span);
          }
        }
      }
    });
    Inode kept{};
    kept.maps = &maps;
    for (uint64_t i = 0; i < blocks; ++i) {
      EXPECT_NE(*detail::find_block_word(volume(), kept, i), 0u) << kind << " " << i;
    }
  }
}

}  // namespace
}  // namespace gofs::f2fs
