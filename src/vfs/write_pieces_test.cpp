// SPDX-License-Identifier: Apache-2.0
//
// How writes are cut into pieces: all bytes once, in order, each piece one that a lane can store.
#include "vfs/write_pieces.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>

#include "testing/crowd.hpp"

namespace gofs::vfs {
namespace {

using detail::PieceCut;
using gofs::testing::printed_seed;

constexpr uint64_t kBlock = kBlockBytes;
constexpr uint32_t kInodeSlots = 20;

f2fs::Inode inode_with(uint32_t slots) {
  f2fs::Inode inode{};
  inode.slot_count = static_cast<decltype(inode.slot_count)>(slots);
  return inode;
}

void expect_sound(const f2fs::Inode& inode, uint64_t offset, uint64_t end, const uint8_t* source,
                  uint32_t most) {
  const PieceCut cut(inode, offset, end, source, most);
  const bool aligned = (reinterpret_cast<uint64_t>(source) - offset) % 4 == 0;
  uint64_t at = offset;
  for (uint32_t i = 0; i < cut.count(); ++i) {
    const f2fs::WritePiece piece = cut.piece(i);
    ASSERT_EQ(piece.offset, at);
    ASSERT_NE(piece.bytes, 0u);
    ASSERT_EQ(piece.source, source + (at - offset));
    at += piece.bytes;
    const uint64_t first = piece.offset / kBlock;
    const uint64_t last = (at - 1) / kBlock;
    if (first == last) continue;
    ASSERT_TRUE(aligned);
    ASSERT_EQ((piece.offset | piece.bytes) % kBlock, 0u);
    ASSERT_LE(last - first + 1, most);
    ASSERT_EQ(f2fs::dnode_number(first, inode.slot_count),
              f2fs::dnode_number(last, inode.slot_count));
  }
  ASSERT_EQ(at, end);
  // One more where a node ends, and one for each part of a block.
  const uint64_t blocks = (end + kBlock - 1) / kBlock - offset / kBlock;
  if (aligned) {
    ASSERT_LE(cut.count(), blocks / most + 4);
  } else {
    ASSERT_EQ(cut.count(), blocks);
  }
}

TEST(WritePiecesTest, cover_a_write_and_stay_within_blocks_and_nodes) {
  std::mt19937 random(static_cast<uint32_t>(printed_seed()));
  const f2fs::Inode inode = inode_with(kInodeSlots);
  // Nothing is read there.
  const auto* const memory = reinterpret_cast<const uint8_t*>(uint64_t{1} << 32);
  const uint64_t starts[] = {0, kInodeSlots, kInodeSlots + format::kNodeSlots};
  for (uint32_t step = 0; step < 20000; ++step) {
    const uint64_t around = starts[random() % 3] * kBlock;
    uint64_t offset = around + random() % (40 * kBlock);
    offset -= std::min<uint64_t>(offset, 20 * kBlock);
    uint64_t end = offset + 1 + random() % (60 * kBlock);
    if (step % 2 == 0) offset &= ~(kBlock - 1);
    if (step % 3 == 0) end = (end + kBlock - 1) & ~(kBlock - 1);
    const uint8_t* const source = memory + (step % 7 == 0 ? 1 : 0) + offset % 4;
    const auto most = static_cast<uint32_t>(1 + random() % 17);
    expect_sound(inode, offset, end, source, most);
    if (HasFatalFailure()) return;
  }
}

TEST(WritePiecesTest, have_rows_as_short_as_they_can_be) {
  for (const uint32_t width : {4u, 32u}) {
    gofs::testing::run_alone(width, [&](const simt::Warp& warp) {
      const auto picked = [&](uint64_t blocks, uint32_t pieces_more) {
        return detail::pick_row(warp, blocks, [&](uint32_t most) {
          return static_cast<uint32_t>(simt::divide_up(blocks, most)) + pieces_more;
        });
      };
      EXPECT_EQ(picked(1, 0), 1u);
      EXPECT_EQ(picked(width, 0), 1u);
      EXPECT_EQ(picked(width + 1, 0), 2u);
      EXPECT_EQ(picked(width, 1), 2u) << "one piece too many";
      EXPECT_EQ(picked(8 * width, 0), 8u);
      EXPECT_EQ(picked(1000 * width, 0), f2fs::row_blocks_max(warp));
    });
  }
}

}  // namespace
}  // namespace gofs::vfs
