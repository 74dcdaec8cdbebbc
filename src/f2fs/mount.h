// SPDX-License-Identifier: Apache-2.0
//
// Mounting for reading: superblock, checkpoint pack, version bitmaps, journals. One warp does it;
// the sums of a few blocks are not worth more. What is refused, and why, goes into a MountResult.
#pragma once

#include "f2fs/load_inode.h"

namespace gofs::f2fs {

enum class MountProblem : uint32_t {
  kNone,
  kDevice,           // value: errno of a read
  kNoSuperblock,     // neither copy has the magic
  kSuperblockField,  // value: SuperblockField of copy 0
  kSuperblockChecksum,
  kFeature,    // value: unsupported feature bits
  kBlockSize,  // value: log2 of its bytes
  kMultiDevice,
  kNoCheckpoint,        // neither pack is valid
  kCheckpointField,     // value: byte offset of the field
  kCheckpointDisabled,  // mounted by its kernel with checkpoint=disable
  kJournal,             // value: entry count found
  kDeviceTooSmall,      // value: blocks that the volume needs
  kRootDirectory,       // value: ino
};

struct MountResult {
  MountProblem problem;
  int error;  // 0 or a negative errno
  uint64_t value;
};

namespace detail {

GOFS_HD constexpr MountResult refused(MountProblem problem, int error, uint64_t value) {
  return MountResult{problem, error, value};
}

/// Reads `count` consecutive blocks, the same for all lanes. Collective, uniform.
GOFS_NOINLINE GOFS_HD inline int read_uniform(simt::AnyWarp auto warp, Volume& volume,
                                              uint32_t block, uint8_t* to) {
  const int error = read_blocks(warp, volume, 1u, block, to);
  warp.sync();
  return warp.shfl(error, 0);
}

inline constexpr uint32_t kFeaturesUnsupported = format::kFeatureZoned | format::kFeatureReadOnly;

/// 0 if the superblock is sane, else the byte offset of the field that is not.
GOFS_HD inline uint32_t insane_field(const format::Superblock& super) {
  using format::Superblock;
  const uint64_t block_count = super.block_count;
  const uint64_t segments = super.segment_count;
  const uint64_t main_segments = super.segment_count_main;
  const uint64_t segment0 = super.segment0_blkaddr;
  if (super.log_blocks_per_seg != 9) return offsetof(Superblock, log_blocks_per_seg);
  if (super.log_sectorsize < 9 || super.log_sectorsize > 12 ||
      super.log_sectorsize + super.log_sectors_per_block != 12) {
    return offsetof(Superblock, log_sectorsize);
  }
  if (segments < 9 || segments > 8388608 || segments > block_count / format::kBlocksPerSegment) {
    return offsetof(Superblock, segment_count);
  }
  if (super.segment_count_ckpt != 2) return offsetof(Superblock, segment_count_ckpt);
  if (super.segment_count_sit < 2 || super.segment_count_sit % 2 != 0) {
    return offsetof(Superblock, segment_count_sit);
  }
  if (super.segment_count_nat < 2 || super.segment_count_nat % 2 != 0) {
    return offsetof(Superblock, segment_count_nat);
  }
  // Each area begins where the one before it ends.
  const auto area_end = [](uint64_t start, uint64_t count) {
    return start + count * format::kBlocksPerSegment;
  };
  if (super.cp_blkaddr != segment0) return offsetof(Superblock, cp_blkaddr);
  if (super.sit_blkaddr != area_end(super.cp_blkaddr, super.segment_count_ckpt)) {
    return offsetof(Superblock, sit_blkaddr);
  }
  if (super.nat_blkaddr != area_end(super.sit_blkaddr, super.segment_count_sit)) {
    return offsetof(Superblock, nat_blkaddr);
  }
  if (super.ssa_blkaddr != area_end(super.nat_blkaddr, super.segment_count_nat)) {
    return offsetof(Superblock, ssa_blkaddr);
  }
  if (super.main_blkaddr != area_end(super.ssa_blkaddr, super.segment_count_ssa)) {
    return offsetof(Superblock, main_blkaddr);
  }
  if (main_segments == 0 ||
      area_end(super.main_blkaddr, main_segments) > area_end(segment0, segments)) {
    return offsetof(Superblock, segment_count_main);
  }
  if (super.segs_per_sec == 0 || super.secs_per_zone == 0 ||
      uint64_t{super.section_count} * super.segs_per_sec > main_segments) {
    return offsetof(Superblock, section_count);
  }
  if (super.cp_payload >= format::kBlocksPerSegment - 2 - format::kLogCount) {
    return offsetof(Superblock, cp_payload);
  }
  // The version bitmaps and the entries must reach every nid and segment.
  if (uint64_t{super.segment_count_sit} / 2 * format::kBlocksPerSegment *
          format::kSitEntriesPerBlock <
      main_segments) {
    return offsetof(Superblock, segment_count_sit);
  }
  if (uint64_t{super.segment_count_nat} / 2 * format::kBlocksPerSegment *
          format::kNatEntriesPerBlock >
      0xffffffffull) {
    return offsetof(Superblock, segment_count_nat);
  }
  if (super.root_ino != format::kRootIno) return offsetof(Superblock, root_ino);
  if (super.node_ino != format::kNodeIno) return offsetof(Superblock, node_ino);
  if (super.meta_ino != format::kMetaIno) return offsetof(Superblock, meta_ino);
  return 0;
}

GOFS_HD inline MountResult check_superblock(const uint8_t* block) {
  const auto& super = *reinterpret_cast<const format::Superblock*>(block + format::kSuperOffset);
  if (super.magic != format::kSuperMagic) {
    return refused(MountProblem::kNoSuperblock, -EINVAL, super.magic);
  }
  uint32_t sum = super.crc;
  if ((super.feature & format::kFeatureSuperChecksum) != 0) {
    sum = super.checksum_offset == format::kSuperChecksumOffset
              ? format::crc32(format::kSuperMagic, &super, format::kSuperChecksumOffset)
              : ~sum;
  }
  const bool intact = super.crc == sum;
  // Kernels with larger pages make larger blocks, which change what the other fields may be.
  const uint32_t log_blocksize = super.log_blocksize;
  if (log_blocksize != kBlockShift && intact) {
    return refused(MountProblem::kBlockSize, -EOPNOTSUPP, log_blocksize);
  }
  const uint32_t field = insane_field(super);
  if (field != 0) return refused(MountProblem::kSuperblockField, -EUCLEAN, field);
  return intact ? refused(MountProblem::kNone, 0, 0)
                : refused(MountProblem::kSuperblockChecksum, -EUCLEAN, sum);
}

/// Copies what the volume needs of a sane superblock; refuses what this reader cannot do. One lane.
GOFS_HD inline MountResult take_superblock(Volume& volume, const uint8_t* block) {
  const auto& super = *reinterpret_cast<const format::Superblock*>(block + format::kSuperOffset);
  const uint32_t feature = super.feature;
  const uint32_t unsupported = feature & (~uint32_t{format::kFeaturesKnown} | kFeaturesUnsupported);
  if (unsupported != 0) return refused(MountProblem::kFeature, -EOPNOTSUPP, unsupported);
  if (super.devs[0].path[0] != 0) return refused(MountProblem::kMultiDevice, -EOPNOTSUPP, 0);
  volume.geometry = format::geometry_of(super);
  const nvme::Array& array = volume.array;
  const uint64_t device_blocks = array.lba_count >> (kBlockShift - array.lba_shift);
  if (volume.geometry.main_end() > device_blocks) {
    return refused(MountProblem::kDeviceTooSmall, -EINVAL, volume.geometry.main_end());
  }
  for (uint32_t i = 0; i < sizeof(volume.uuid); ++i) volume.uuid[i] = super.uuid[i];
  for (uint32_t i = 0; i < format::kVolumeNameUnits; ++i) volume.label[i] = super.volume_name[i];
  for (uint32_t i = 0; i < sizeof(volume.writer); ++i) volume.writer[i] = super.version[i];
  volume.checksum_seed = format::inode_checksum_seed(super.uuid);
  return refused(MountProblem::kNone, 0, 0);
}

/// The version of pack `pack` if both of its checkpoint blocks agree; `valid` tells. The first
/// block is left at `to`. Collective, uniform.
GOFS_NOINLINE GOFS_HD inline int check_pack(simt::AnyWarp auto warp, Volume& volume, uint32_t pack,
                                            uint8_t* to, uint8_t* other, bool& valid,
                                            uint64_t& version) {
  valid = false;
  const uint32_t base = volume.geometry.pack_block(pack);
  int error = read_uniform(warp, volume, base, to);
  if (error < 0) return error;
  const auto& head = *reinterpret_cast<const format::Checkpoint*>(to);
  const uint32_t offset = head.checksum_offset;
  const uint32_t total = head.cp_pack_total_block_count;
  if (!format::checksum_offset_valid(offset) || total < format::kPackBlocksMin ||
      total > format::kBlocksPerSegment) {
    return 0;
  }
  if (format::checkpoint_checksum(to, offset) != format::load_u32(to + offset)) return 0;
  error = read_uniform(warp, volume, base + total - 1, other);
  if (error < 0) return error;
  const auto& tail = *reinterpret_cast<const format::Checkpoint*>(other);
  const uint32_t tail_offset = tail.checksum_offset;
  if (!format::checksum_offset_valid(tail_offset) ||
      format::checkpoint_checksum(other, tail_offset) != format::load_u32(other + tail_offset) ||
      tail.checkpoint_ver != head.checkpoint_ver) {
    return 0;
  }
  version = head.checkpoint_ver;
  valid = true;
  return 0;
}

/// Byte offset of a checkpoint field that contradicts the superblock, or 0.
GOFS_HD inline uint32_t insane_checkpoint_field(const format::Geometry& geometry,
                                                const format::Checkpoint& checkpoint) {
  using format::Checkpoint;
  const auto& at = checkpoint;
  if (at.sit_ver_bitmap_bytesize != geometry.sit_bitmap_bytes()) {
    return offsetof(Checkpoint, sit_ver_bitmap_bytesize);
  }
  if (at.nat_ver_bitmap_bytesize != geometry.nat_bitmap_bytes()) {
    return offsetof(Checkpoint, nat_ver_bitmap_bytesize);
  }
  if (!format::version_bitmap_places(at, geometry.cp_payload).fit) {
    return offsetof(Checkpoint, sit_ver_bitmap_bytesize);
  }
  const uint64_t user_blocks = at.user_block_count;
  if (user_blocks == 0 ||
      user_blocks >= uint64_t{geometry.main_segments} * format::kBlocksPerSegment) {
    return offsetof(Checkpoint, user_block_count);
  }
  const uint32_t total = at.cp_pack_total_block_count;
  if (at.cp_pack_start_sum < 1 + geometry.cp_payload || at.cp_pack_start_sum >= total) {
    return offsetof(Checkpoint, cp_pack_start_sum);
  }
  const uint32_t summaries = at.has(format::kCheckpointCompactSummary) ? 1
                             : format::has_node_summaries(at)          ? format::kLogCount
                                                                       : format::kDataLogCount;
  if (total < 2 + geometry.cp_payload + summaries) {
    return offsetof(Checkpoint, cp_pack_total_block_count);
  }
  for (uint32_t log = 0; log < format::kLogCount; ++log) {
    if (at.cur_segno(log) >= geometry.main_segments) return offsetof(Checkpoint, cur_node_segno);
    if (at.cur_blkoff(log) >= format::kBlocksPerSegment) {
      return offsetof(Checkpoint, cur_node_blkoff);
    }
  }
  return 0;
}

/// Copies the two journals; one lane. `nat` and `sit` are where they begin in their blocks.
GOFS_HD inline MountResult take_journals(Volume& volume, const format::NatJournal& nat,
                                         const format::SitJournal& sit) {
  const uint32_t nat_count = nat.count;
  const uint32_t sit_count = sit.count;
  if (nat_count > format::kNatJournalEntries) {
    return refused(MountProblem::kJournal, -EUCLEAN, nat_count);
  }
  if (sit_count > format::kSitJournalEntries) {
    return refused(MountProblem::kJournal, -EUCLEAN, sit_count);
  }
  for (uint32_t i = 0; i < nat_count; ++i) {
    const format::NatJournalEntry& entry = nat.entries[i];
    volume.nat_journal[i] =
        JournaledNat{entry.nid, NatRecord{entry.ne.ino, entry.ne.block_addr, entry.ne.version}};
  }
  for (uint32_t i = 0; i < sit_count; ++i) {
    volume.sit_journal[i] = JournaledSit{sit.entries[i].segno, sit.entries[i].se};
  }
  volume.nat_journal_count = nat_count;
  volume.sit_journal_count = sit_count;
  return refused(MountProblem::kNone, 0, 0);
}

}  // namespace detail

/// Mounts the volume on `volume.array`, which has been brought up. Collective, by one warp, before
/// any other use. Uniform answer. A volume that was not unmounted cleanly is mounted at its last
/// checkpoint; cleanly_unmounted() tells.
GOFS_NOINLINE GOFS_HD inline MountResult mount(simt::AnyWarp auto warp, Volume& volume) {
  using detail::refused;
  const bool leader = warp.thread_rank() == 0;
  uint8_t* first = volume.scratch;
  uint8_t* second = volume.scratch + kBlockBytes;

  // Superblock: copy 0 if it is sane, else copy 1.
  MountResult found = refused(MountProblem::kNoSuperblock, -EINVAL, 0);
  const uint8_t* chosen = nullptr;
  for (uint32_t copy = 0; copy < format::kSuperCopies && chosen == nullptr; ++copy) {
    const int error = detail::read_uniform(warp, volume, copy, first);
    const MountResult result =
        error < 0 ? refused(MountProblem::kDevice, error, copy) : detail::check_superblock(first);
    if (result.error == 0) {
      chosen = first;
    } else if (copy == 0 || found.problem == MountProblem::kNoSuperblock) {
      found = result;
    }
  }
  if (chosen == nullptr) return found;
  found = refused(MountProblem::kNone, 0, 0);
  if (leader) found = detail::take_superblock(volume, chosen);
  found.problem = static_cast<MountProblem>(warp.shfl(static_cast<uint32_t>(found.problem), 0));
  found.error = warp.shfl(found.error, 0);
  found.value = warp.shfl(found.value, 0);
  warp.sync();
  if (found.error < 0) return found;

  // Checkpoint: the valid pack with the higher version, pack 0 if they are equal.
  bool valid[2];
  uint64_t version[2] = {0, 0};
  int unreadable = 0;
  for (uint32_t pack = 0; pack < 2; ++pack) {
    const int error =
        detail::check_pack(warp, volume, pack, first, second, valid[pack], version[pack]);
    if (error < 0) unreadable = error;  // and not valid: as good as torn
  }
  if (!valid[0] && !valid[1]) {
    return unreadable < 0 ? refused(MountProblem::kDevice, unreadable, 0)
                          : refused(MountProblem::kNoCheckpoint, -EUCLEAN, 0);
  }
  const uint32_t pack = !valid[0] || (valid[1] && version[1] > version[0]) ? 1 : 0;
  const uint32_t base = volume.geometry.pack_block(pack);
  for (uint32_t i = 0; i <= volume.geometry.cp_payload; ++i) {
    const int error = detail::read_uniform(warp, volume, base + i,
                                           volume.checkpoint_blocks + uint64_t{i} * kBlockBytes);
    if (error < 0) return refused(MountProblem::kDevice, error, base + i);
  }
  const auto& checkpoint = *reinterpret_cast<const format::Checkpoint*>(volume.checkpoint_blocks);
  const uint32_t field = detail::insane_checkpoint_field(volume.geometry, checkpoint);
  if (field != 0) return refused(MountProblem::kCheckpointField, -EUCLEAN, field);
  if (checkpoint.has(format::kCheckpointDisabled)) {
    return refused(MountProblem::kCheckpointDisabled, -EOPNOTSUPP, 0);
  }

  // Journals: at the head of compact summaries, or in the hot and the cold data summary.
  const bool compact = checkpoint.has(format::kCheckpointCompactSummary);
  const uint32_t hot = compact ? uint32_t{checkpoint.cp_pack_start_sum}
                               : format::summary_block_in_pack(checkpoint, format::kHotData);
  const uint32_t cold = format::summary_block_in_pack(checkpoint, format::kColdData);
  int error = detail::read_uniform(warp, volume, base + hot, first);
  if (error == 0 && !compact) error = detail::read_uniform(warp, volume, base + cold, second);
  if (error < 0) return refused(MountProblem::kDevice, error, base + hot);
  if (leader) {
    const auto& head = *reinterpret_cast<const format::CompactSummaryHead*>(first);
    found = compact ? detail::take_journals(volume, head.nat_journal, head.sit_journal)
                    : detail::take_journals(
                          volume, reinterpret_cast<const format::SummaryBlock*>(first)->nat_journal,
                          reinterpret_cast<const format::SummaryBlock*>(second)->sit_journal);
    const format::VersionBitmapPlaces places =
        format::version_bitmap_places(checkpoint, volume.geometry.cp_payload);
    volume.sit_bitmap = volume.checkpoint_blocks + places.sit_offset;
    volume.nat_bitmap = volume.checkpoint_blocks + places.nat_offset;
    volume.checkpoint_version = checkpoint.checkpoint_ver;
    volume.checkpoint_pack = pack;
    volume.checkpoint_flags = checkpoint.ckpt_flags;
    volume.user_block_count = checkpoint.user_block_count;
    volume.valid_block_count = checkpoint.valid_block_count;
    volume.reserved_segments = checkpoint.rsvd_segment_count;
    volume.overprovision_segments = checkpoint.overprov_segment_count;
    volume.free_segments = checkpoint.free_segment_count;
    volume.valid_node_count = checkpoint.valid_node_count;
    volume.valid_inode_count = checkpoint.valid_inode_count;
    volume.elapsed_seconds = checkpoint.elapsed_time;
  }
  found.problem = static_cast<MountProblem>(warp.shfl(static_cast<uint32_t>(found.problem), 0));
  found.error = warp.shfl(found.error, 0);
  found.value = warp.shfl(found.value, 0);
  warp.sync();
  if (found.error < 0) return found;

  Inode root{};
  error = simt::first_error(
      warp, load_inodes(warp, volume, warp.ballot(true), volume.geometry.root_ino, root));
  if (error == 0 && (!root.is_directory() || root.links == 0)) error = -EUCLEAN;
  if (error < 0) return refused(MountProblem::kRootDirectory, error, volume.geometry.root_ino);
  return refused(MountProblem::kNone, 0, 0);
}

}  // namespace gofs::f2fs
