// SPDX-License-Identifier: Apache-2.0
//
// For tests only: what summaries say, against what the nodes say.
#pragma once

#include <cstring>
#include <vector>

#include "f2fs/file_model_for_test.hpp"
#include "f2fs/locate_blocks.h"
#include "f2fs/move_blocks.h"
#include "f2fs/move_nodes.h"

namespace gofs::f2fs {

/// The open segment of processor 0, or of another one.
inline uint32_t open_segment(const Writer& writer, uint32_t index = 0) {
  return detail::segment_of_place(writer.open[index].place);
}

/// The summary of a segment that is written to, or null.
inline const format::SummaryBlock* summary_in_memory(const Writer& writer, uint32_t segno) {
  for (uint32_t log = 0; log < format::kLogCount; ++log) {
    if (writer.logs[log].segno == segno) return &writer.summaries[log];
  }
  for (uint32_t i = 0; i < writer.open_count; ++i) {
    const OpenSegment& open = writer.open[i];
    if (open_segment(writer, i) == segno) {
      return &detail::open_summary(writer, i, detail::summary_of_place(open.place));
    }
    if (open.full == segno) return &detail::open_summary(writer, i, open.full_summary);
  }
  return nullptr;
}

/// Calls `look(warp, lanes, owner)` collectively with the owners of all blocks that are in use in a
/// segment, of the SSA's summary or, of one that is written to, the one in memory.
template <typename Look>
void for_owners(const simt::Warp& warp, WritingRig& writing, uint32_t segno, Look look) {
  SpareBlocks<1> spare{};
  ASSERT_TRUE(take_spares(warp, writing.rig().fs().pool, kFrameTimeoutNs, spare));
  uint8_t* const page = spare.blocks[0];
  const format::SummaryBlock* const newer = summary_in_memory(writing.writer(), segno);
  if (newer != nullptr) {
    if (warp.thread_rank() == 0) std::memcpy(page, newer, kBlockBytes);
    warp.sync();
  } else {
    ASSERT_EQ(load_owners(warp, writing.volume(), writing.writer(), segno, page), 0) << segno;
  }
  for (uint32_t first = 0; first < format::kBlocksPerSegment; first += warp.size()) {
    BlockOwner owner{};
    int error = 0;
    const bool used = owner_of(writing.volume(), writing.writer(), segno,
                               first + warp.thread_rank(), page, owner, error);
    EXPECT_EQ(error, 0) << segno << ' ' << first + warp.thread_rank();
    const uint32_t lanes = warp.ballot(used);
    if (lanes != 0) look(warp, lanes, owner);
  }
  release_spares(warp, writing.rig().fs().pool, spare);
}

/// Whether each block that is in use is where its summary's node says, and how many there are.
inline uint64_t expect_right_owners(WritingRig& writing, uint32_t width) {
  std::atomic<uint64_t> count{0};
  testing::run_alone(width, [&](const simt::Warp& warp) {
    for (uint32_t segno = 0; segno < writing.volume().geometry.main_segments; ++segno) {
      const SegmentInfo& segment = writing.writer().segments.segments[segno];
      if (segment.valid_count == 0) continue;
      for_owners(warp, writing, segno,
                 [&](const simt::Warp& lanes_of, uint32_t lanes, const BlockOwner& owner) {
                   const bool mine = (lanes >> lanes_of.thread_rank() & 1u) != 0;
                   if (mine) ++count;
                   if (format::is_node_log(segment.type)) {
                     NatRecord record{};
                     EXPECT_EQ(look_up_nat(lanes_of, writing.volume(), lanes, owner.nid, record),
                               0);
                     if (mine) {
                       EXPECT_EQ(record.block, owner.block) << "nid " << owner.nid;
                     }
                     return;
                   }
                   FileBlock found{};
                   const int error = locate_blocks(lanes_of, writing.volume(), lanes, owner, found);
                   if (mine) {
                     EXPECT_EQ(error, 0) << "block " << owner.block << " of nid " << owner.nid
                                         << " in segment " << segno;
                   }
                 });
    }
  });
  EXPECT_EQ(count_findings(*writing.volume().corruptions), 0u);
  return count;
}

}  // namespace gofs::f2fs
