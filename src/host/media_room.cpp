// SPDX-License-Identifier: Apache-2.0
#include "host/media_room.h"

#include <algorithm>

#include "ssd/media.h"

namespace gofs::host {

namespace {

/// For segments that nothing is in hold of here, but which are written to all the same: those of
/// the logs as the checkpoint has them, and partly used ones whose blocks are zeros.
constexpr uint64_t kSlackChunks = 16;
constexpr uint64_t kSlackShare = 64;  // one of so many

/// The chunks of one SSD, as they are dealt out.
class Chunks {
 public:
  explicit Chunks(const kernels::MediaRoom* room) : limited_(room != nullptr) {
    if (!limited_) return;
    there_ = room->there;
    const uint64_t slack = std::min(kSlackChunks + room->spares / kSlackShare, room->spares);
    spares_ = room->spares - slack;
  }

  /// How many chunks are missing of the `bytes` at `offset`.
  uint64_t missing(uint64_t offset, uint64_t bytes) const {
    uint64_t count = 0;
    for_missing(offset, bytes, [&](size_t) { ++count; });
    return count;
  }
  bool can_have(uint64_t chunks) const { return !limited_ || chunks <= spares_; }
  /// What is wanted beyond what can be had counts as lacking.
  void take(uint64_t offset, uint64_t bytes) {
    for_missing(offset, bytes, [&](size_t chunk) {
      there_[chunk] = true;
      spares_ != 0 ? --spares_ : ++lacking_;
    });
  }
  uint64_t lacking() const { return lacking_; }

 private:
  template <typename Visit>
  void for_missing(uint64_t offset, uint64_t bytes, Visit visit) const {
    if (!limited_ || bytes == 0) return;
    const uint64_t end =
        std::min<uint64_t>((offset + bytes - 1) / ssd::kChunkBytes + 1, there_.size());
    for (uint64_t chunk = offset / ssd::kChunkBytes; chunk < end; ++chunk) {
      if (!there_[chunk]) visit(chunk);
    }
  }

  const bool limited_;
  std::vector<bool> there_;
  uint64_t spares_ = 0;
  uint64_t lacking_ = 0;
};

class Plan {
 public:
  Plan(const format::Stripe& stripe, const std::vector<const kernels::MediaRoom*>& rooms)
      : stripe_(stripe), disks_(rooms.begin(), rooms.end()) {}

  /// Deals out what a range of the volume's blocks lacks.
  void take(uint64_t first_block, uint64_t blocks) {
    for (size_t disk = 0; disk < disks_.size(); ++disk) {
      const Part part = part_of(disk, first_block, blocks);
      disks_[disk].take(part.offset, part.bytes);
    }
  }
  /// The same of a segment and the block that says whose it is, if all of it can be had.
  bool try_to_take(uint64_t segment_block, uint64_t summary_block) {
    for (size_t disk = 0; disk < disks_.size(); ++disk) {
      const Part segment = part_of(disk, segment_block, format::kBlocksPerSegment);
      const Part summary = part_of(disk, summary_block, 1);
      const uint64_t missing = disks_[disk].missing(segment.offset, segment.bytes);
      // What is there needs nothing of which there may be too little.
      if (missing != 0 &&
          !disks_[disk].can_have(missing + disks_[disk].missing(summary.offset, summary.bytes))) {
        return false;
      }
    }
    take(segment_block, format::kBlocksPerSegment);
    take(summary_block, 1);
    return true;
  }
  uint64_t lacking() const {
    uint64_t most = 0;
    for (const Chunks& disk : disks_) most = std::max(most, disk.lacking());
    return most;
  }

 private:
  struct Part {
    uint64_t offset;
    uint64_t bytes;
  };
  /// The part of a range that lies on a disk, in one piece.
  Part part_of(size_t disk, uint64_t first_block, uint64_t blocks) const {
    const uint64_t begin = first_block * kBlockBytes;
    const uint64_t end = begin + blocks * kBlockBytes;
    if (disks_.size() == 1) return {begin, end - begin};
    const auto number = static_cast<uint32_t>(disk);
    const uint64_t first = format::bytes_on_disk(stripe_, number, begin);
    return {stripe_.start_bytes[disk] + first, format::bytes_on_disk(stripe_, number, end) - first};
  }

  const format::Stripe& stripe_;
  std::vector<Chunks> disks_;
};

}  // namespace

RoomPlan plan_room(const format::Geometry& geometry, const format::Stripe& stripe,
                   const std::vector<const kernels::MediaRoom*>& rooms) {
  RoomPlan result;
  const bool limited =
      std::any_of(rooms.begin(), rooms.end(), [](const auto* room) { return room != nullptr; });
  if (!limited) return result;
  Plan plan(stripe, rooms);
  plan.take(0, geometry.ssa_blkaddr);  // the superblocks, checkpoints, SIT and NAT
  result.withheld.assign(simt::divide_up(geometry.main_segments, 32), 0);
  for (uint32_t segno = 0; segno < geometry.main_segments; ++segno) {
    if (plan.try_to_take(geometry.block_of(segno, 0), geometry.summary_block(segno))) continue;
    result.withheld[segno / 32] |= 1u << segno % 32;
    ++result.withheld_segments;
  }
  result.lacking_bytes = plan.lacking() * ssd::kChunkBytes;
  if (result.withheld_segments == 0) result.withheld.clear();
  return result;
}

}  // namespace gofs::host
