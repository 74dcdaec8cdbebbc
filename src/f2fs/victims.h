// SPDX-License-Identifier: Apache-2.0
//
// Victims: segments whose blocks in use are to be moved elsewhere, so that the whole segment can be
// written from its beginning to its end again. Which ones are worth it (choose_victims), and who
// points to the blocks of one (load_owners, owner_of), as its summary has it. A summary is a hint
// that was true when the block was written: who uses it asks the NAT and the node whether it still
// is.
//
// A victim belongs to the warp that has chosen it until release_victim(). Nothing is written to its
// holes meanwhile, nor afterwards, until a checkpoint that meets no address readers
// (address_readers.h).
#pragma once

#include "f2fs/address_readers.h"
#include "f2fs/allocate.h"

namespace gofs::f2fs {

enum class VictimPolicy : uint32_t {
  kGreedy,       // fewest blocks to move: for who needs room now
  kCostBenefit,  // old ones too, which are not likely to lose more blocks by themselves
};

struct VictimWish {
  VictimPolicy policy;
  uint32_t most_valid;  // blocks in use; above 0, below kBlocksPerSegment
};

/// What a look at all segments has found, the same on all lanes.
struct SegmentCensus {
  uint32_t pending;  // empty ones that only a checkpoint makes free
  uint32_t lanes;    // that have got a victim
};

namespace detail {

/// What emptying a segment is worth; more is better, 0 is nothing.
GOFS_HD inline uint64_t victim_worth(const SegmentInfo& segment, uint32_t valid,
                                     VictimPolicy policy, uint64_t now_seconds) {
  const uint64_t gain = format::kBlocksPerSegment - valid;
  if (policy == VictimPolicy::kGreedy) return gain;
  const uint64_t mtime = simt::load_relaxed(segment.mtime);
  const uint64_t age = mtime < now_seconds ? now_seconds - mtime : 0;
  // Room gained by the cost of reading the segment and writing what is left, times the time for
  // which it is likely to last (the cost-benefit rule of log-structured file systems).
  constexpr uint64_t kScale = 1024;
  return gain * kScale * (age + 1) / (format::kBlocksPerSegment + valid);
}

/// Makes a segment the caller's victim. Under a lock, which no thread holds for long: a log must
/// not choose it at the same time. One lane.
GOFS_HD inline bool claim_victim(Writer& writer, uint32_t segno) {
  simt::Backoff backoff;
  while (!simt::try_lock(writer.choice_lock)) backoff.pause();
  const bool mine = !segment_bit(writer.cleaning.victims, segno) && has_been_left(writer, segno);
  if (mine) set_segment_bit(writer.cleaning.victims, segno);
  simt::unlock(writer.choice_lock);
  return mine;
}

/// Whether a segment with `valid` blocks in use is one that `wish` means.
GOFS_HD inline bool may_be_victim(const Writer& writer, uint32_t segno, uint32_t valid,
                                  const VictimWish& wish) {
  return valid != 0 && valid <= wish.most_valid && !segment_bit(writer.cleaning.victims, segno) &&
         !segment_bit(writer.cleaning.stuck, segno) && !is_withheld(writer, segno) &&
         !is_written_to(writer, segno);
}

}  // namespace detail

/// Releases a victim from which nothing was moved. One lane.
GOFS_HD inline void spare_victim(Writer& writer, uint32_t segno) {
  detail::clear_segment_bit(writer.cleaning.victims, segno);
}

/// Releases a victim that was emptied. `left`: it has blocks that cannot be moved, so that there is
/// no sense in choosing it again. One lane.
GOFS_HD inline void release_victim(Writer& writer, uint32_t segno, bool left) {
  // First, so that it is always one or the other.
  detail::set_segment_bit(writer.cleaning.held, segno);
  if (left) detail::set_segment_bit(writer.cleaning.stuck, segno);
  detail::clear_segment_bit(writer.cleaning.victims, segno);
}

/// Looks at all segments and chooses victims for the caller, at most one a lane: each lane the best
/// of its share, so the best of all is among them. Collective, uniform; outside operations. A lane
/// of `census.lanes` has got `segno`. 0 or -EBUSY, as lock_op().
GOFS_NOINLINE GOFS_HD inline int choose_victims(simt::AnyWarp auto warp, const Volume& volume,
                                                Writer& writer, const VictimWish& wish,
                                                SegmentCensus& census, uint32_t& segno) {
  // A checkpoint makes segments free. One that became so between the look and the choice could be a
  // log's by then, with a summary in the SSA that is not its own.
  OpHold hold{};
  const int error = lock_op(warp, writer.checkpoint_lock, hold);
  if (error < 0) return error;
  const uint64_t now = detail::elapsed_seconds(volume, writer);
  uint64_t best = 0;
  uint32_t pending = 0;
  segno = format::kNullSegno;
  for (uint32_t i = warp.thread_rank(); i < volume.geometry.main_segments; i += warp.size()) {
    const SegmentInfo& segment = writer.segments.segments[i];
    const uint32_t valid = simt::load_relaxed(segment.valid_count);
    if (valid == 0 && !detail::is_withheld(writer, i) && !detail::segment_bit(writer.free_map, i)) {
      pending += detail::is_written_to(writer, i) ? 0 : 1;
    }
    if (!detail::may_be_victim(writer, i, valid, wish)) continue;
    const uint64_t worth = detail::victim_worth(segment, valid, wish.policy, now);
    if (worth > best) {
      best = worth;
      segno = i;
    }
  }
  bool mine = false;
  for (uint32_t rank = 0; rank < warp.size(); ++rank) {
    // One after the other: lanes of a warp that want the same lock must not wait for each other.
    if (rank == warp.thread_rank() && segno != format::kNullSegno) {
      mine = detail::claim_victim(writer, segno);
    }
    warp.sync();
  }
  unlock_op(warp, writer.checkpoint_lock, hold);
  census = {simt::reduce_add(warp, pending), warp.ballot(mine)};
  return 0;
}

/// Who points to a block, as the summary of its segment has it.
struct BlockOwner {
  uint32_t block;
  uint32_t nid;  // of the node that holds the address; of a node, its own
  uint32_t slot;
  uint8_t version;  // of the nid
};

/// Reads the summary of a victim to `page`. Collective, uniform. 0 or a negative errno: -EUCLEAN
/// (reported) where it is that of a segment of the other kind.
GOFS_NOINLINE GOFS_HD inline int load_owners(simt::AnyWarp auto warp, Volume& volume,
                                             const Writer& writer, uint32_t segno, uint8_t* page) {
  const uint32_t block = volume.geometry.summary_block(segno);
  const int read = detail::read_uniform(warp, volume, block, page);
  if (read < 0) return read;
  const auto& summary = *reinterpret_cast<const format::SummaryBlock*>(page);
  const uint32_t type = simt::load_relaxed(writer.segments.segments[segno].type);
  const uint8_t expected = format::is_node_log(type) ? format::kSummaryNode : format::kSummaryData;
  if (summary.footer.entry_type == expected) return 0;
  return report_once(warp, *volume.corruptions,
                     {Structure::kSummary, block, segno, summary.footer.entry_type});
}

/// Whether block `offset` of a victim is in use, and then who points to it; `page` is the summary.
/// `error` is -EUCLEAN (reported) where that is not known. One lane.
GOFS_HD inline bool owner_of(Volume& volume, const Writer& writer, uint32_t segno, uint32_t offset,
                             const uint8_t* page, BlockOwner& owner, int& error) {
  if (offset >= format::kBlocksPerSegment) return false;
  const SegmentInfo& segment = writer.segments.segments[segno];
  if ((simt::load_relaxed(segment.valid[offset / 32]) >> offset % 32 & 1u) == 0) return false;
  const format::SummaryEntry& entry =
      reinterpret_cast<const format::SummaryBlock*>(page)->entries[offset];
  owner = {volume.geometry.block_of(segno, offset), entry.nid, entry.ofs_in_node, entry.version};
  const bool is_nid = owner.nid >= format::kRootIno && owner.nid < volume.geometry.nid_count();
  if (is_nid && owner.slot < format::kNodeSlots) return true;
  error = report(*volume.corruptions, {Structure::kSummary, volume.geometry.summary_block(segno),
                                       segno, uint64_t{owner.nid} << 32 | offset});
  return false;
}

}  // namespace gofs::f2fs
