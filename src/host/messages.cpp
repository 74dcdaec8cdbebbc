// SPDX-License-Identifier: Apache-2.0
#include "host/messages.h"

#include <fmt/format.h>

#include <cstddef>
#include <cstdlib>
#include <system_error>

namespace gofs::host {

namespace {

struct BitName {
  uint32_t bit;
  const char* name;
};

std::vector<std::string> bit_names(uint32_t bits, const std::vector<BitName>& names) {
  std::vector<std::string> found;
  for (const BitName& entry : names) {
    if ((bits & entry.bit) != 0) found.emplace_back(entry.name);
    bits &= ~entry.bit;
  }
  for (; bits != 0; bits &= bits - 1) found.push_back(fmt::format("{:#x}", bits & -bits));
  return found;
}

/// Two to the power of `log`, as bytes.
std::string bytes_of_log(uint64_t log) {
  if (log < 10) return fmt::format("{} bytes", 1u << log);
  if (log < 20) return fmt::format("{} KiB", 1u << (log - 10));
  return fmt::format("2^{} bytes", log);
}

/// The field of the superblock at a byte offset.
std::string superblock_field(uint64_t offset) {
  using format::Superblock;
  switch (offset) {
    case offsetof(Superblock, log_sectorsize):
      return "log_sectorsize";
    case offsetof(Superblock, log_blocksize):
      return "log_blocksize";
    case offsetof(Superblock, log_blocks_per_seg):
      return "log_blocks_per_seg";
    case offsetof(Superblock, checksum_offset):
      return "checksum_offset";
    case offsetof(Superblock, block_count):
      return "block_count";
    case offsetof(Superblock, section_count):
      return "section_count";
    case offsetof(Superblock, segment_count):
      return "segment_count";
    case offsetof(Superblock, segment_count_ckpt):
      return "segment_count_ckpt";
    case offsetof(Superblock, segment_count_sit):
      return "segment_count_sit";
    case offsetof(Superblock, segment_count_nat):
      return "segment_count_nat";
    case offsetof(Superblock, segment_count_ssa):
      return "segment_count_ssa";
    case offsetof(Superblock, segment_count_main):
      return "segment_count_main";
    case offsetof(Superblock, segment0_blkaddr):
      return "segment0_blkaddr";
    case offsetof(Superblock, cp_blkaddr):
      return "cp_blkaddr";
    case offsetof(Superblock, sit_blkaddr):
      return "sit_blkaddr";
    case offsetof(Superblock, nat_blkaddr):
      return "nat_blkaddr";
    case offsetof(Superblock, ssa_blkaddr):
      return "ssa_blkaddr";
    case offsetof(Superblock, main_blkaddr):
      return "main_blkaddr";
    case offsetof(Superblock, root_ino):
      return "root_ino";
    case offsetof(Superblock, node_ino):
      return "node_ino";
    case offsetof(Superblock, meta_ino):
      return "meta_ino";
    case offsetof(Superblock, cp_payload):
      return "cp_payload";
    default:
      return fmt::format("the field at byte {}", offset);
  }
}

std::string checkpoint_field(uint64_t offset) {
  using format::Checkpoint;
  switch (offset) {
    case offsetof(Checkpoint, user_block_count):
      return "user_block_count";
    case offsetof(Checkpoint, cur_node_segno):
      return "a current segment";
    case offsetof(Checkpoint, cur_node_blkoff):
      return "the offset in a current segment";
    case offsetof(Checkpoint, cp_pack_total_block_count):
      return "cp_pack_total_block_count";
    case offsetof(Checkpoint, cp_pack_start_sum):
      return "cp_pack_start_sum";
    case offsetof(Checkpoint, sit_ver_bitmap_bytesize):
      return "sit_ver_bitmap_bytesize";
    case offsetof(Checkpoint, nat_ver_bitmap_bytesize):
      return "nat_ver_bitmap_bytesize";
    default:
      return fmt::format("the field at byte {}", offset);
  }
}

}  // namespace

std::string errno_words(int error) { return std::generic_category().message(std::abs(error)); }

std::string describe(nvme::CommandStatus status) {
  const char* const name = nvme::status_name(status);
  if (status == 0 || nvme::is_verdict(status)) return name;
  return fmt::format("{} (status {:#x})", name, status & format::nvme::kStatusCodeMask);
}

std::string describe(const nvme::FailedCommand& failed) {
  using format::nvme::IoOpcode;
  const std::string status = describe(failed.status);
  switch (failed.opcode) {
    case IoOpcode::kFlush:
      return status + " of a Flush";
    case IoOpcode::kDatasetManagement:
      return status + " of a Dataset Management";
    case IoOpcode::kWrite:
      return fmt::format("{} of a Write at LBA {}", status, failed.lba);
    case IoOpcode::kRead:
      return fmt::format("{} of a Read at LBA {}", status, failed.lba);
    default:
      return fmt::format("{} at LBA {}", status, failed.lba);
  }
}

std::string describe(const nvme::BringUpResult& result) {
  if (result.status == 0)
    return fmt::format("the SSD did not come up: {}", nvme::step_name(result.step));
  return fmt::format("the SSD did not come up: {}: {}", nvme::step_name(result.step),
                     describe(result.status));
}

std::string describe(const f2fs::Corruption& corruption) {
  using f2fs::Structure;
  const uint64_t id = corruption.id;
  const uint64_t value = corruption.value;
  const std::string at =
      corruption.block == 0 ? std::string() : fmt::format(" (block {})", corruption.block);
  switch (corruption.structure) {
    case Structure::kNone:
      return "unknown damage";
    case Structure::kSuperblock:
      return fmt::format("superblock {}{}: bad value {}", id, at, value);
    case Structure::kCheckpoint:
      return fmt::format("checkpoint {}{}: bad value {}", id, at, value);
    case Structure::kSummary:
      return fmt::format("summary of segment {}{}: bad value {}", id, at, value);
    case Structure::kNatEntry:
      if (id == value) return fmt::format("node {} lies past the end of the NAT", id);
      return fmt::format("NAT entry of node {}{}: bad value {}", id, at, value);
    case Structure::kNode:
      return fmt::format("node {}{}: bad value {}", id, at, value);
    case Structure::kNodeFooter:
      return fmt::format("footer of node {}{} belongs elsewhere: found {}", id, at, value);
    case Structure::kInode:
      return fmt::format("inode {}{} contradicts itself (mode {:#o})", id, at, value);
    case Structure::kInodeChecksum:
      return fmt::format("inode {}{} has a wrong checksum: {:#010x} is stored", id, at, value);
    case Structure::kBlockAddress:
      return fmt::format("inode {}: block {} of the file points to {}, outside the main area", id,
                         value, corruption.block);
    case Structure::kDentry:
      return fmt::format("directory {}{}: the entry in slot {} has the impossible inode number {}",
                         id, at, value >> 32, value & UINT32_MAX);
    case Structure::kDentryName:
      return fmt::format("directory {}{}: the entry in slot {} has an impossible name of {} bytes",
                         id, at, value >> 32, value & UINT32_MAX);
    case Structure::kDentryType:
      return fmt::format("directory {}{}: the entry in slot {} has the impossible file type {}", id,
                         at, value >> 32, value & UINT32_MAX);
    case Structure::kDirectory:
      return fmt::format("directory {}{}: bad value {}", id, at, value);
    case Structure::kSymlink:
      return fmt::format("symbolic link {}{} has an impossible length of {}", id, at, value);
    case Structure::kSymlinkTarget:
      return fmt::format("the target of symbolic link {}{} has a NUL at byte {}", id, at, value);
    case Structure::kXattr:
      return fmt::format("extended attributes of inode {}{} are damaged at byte {}", id, at, value);
    case Structure::kSitEntry:
      return fmt::format("SIT entry of segment {}{}: bad value {}", id, at, value);
    case Structure::kOrphan:
      return fmt::format("inode {} is listed as an orphan{} and cannot be one ({})", id, at, value);
  }
  return fmt::format("unknown structure {}", static_cast<uint32_t>(corruption.structure));
}

std::string describe(const f2fs::MountResult& result) {
  using f2fs::MountProblem;
  switch (result.problem) {
    case MountProblem::kNone:
      return "mounted";
    case MountProblem::kDevice:
      return fmt::format("block {} cannot be read: {}", result.value, errno_words(result.error));
    case MountProblem::kNoSuperblock:
      return "not an F2FS volume (no superblock)";
    case MountProblem::kSuperblockField:
      return fmt::format("the superblock is damaged: {} makes no sense",
                         superblock_field(result.value));
    case MountProblem::kSuperblockChecksum:
      return "the superblock is damaged: its checksum is wrong";
    case MountProblem::kFeature:
      return fmt::format("the volume uses what is not supported: {}",
                         joined(feature_names(static_cast<uint32_t>(result.value)), ", "));
    case MountProblem::kBlockSize:
      return "the volume has blocks of " + bytes_of_log(result.value) +
             ", which are not supported, only those of 4 KiB";
    case MountProblem::kMultiDevice:
      return "the volume lies on several devices, which is not supported";
    case MountProblem::kNoCheckpoint:
      return "neither checkpoint is valid";
    case MountProblem::kCheckpointField:
      return fmt::format("the checkpoint is damaged: {} makes no sense",
                         checkpoint_field(result.value));
    case MountProblem::kCheckpointDisabled:
      return "the volume was in use with checkpoint=disable, which is not supported";
    case MountProblem::kJournal:
      return fmt::format("the checkpoint is damaged: a journal of {} entries", result.value);
    case MountProblem::kDeviceTooSmall:
      return fmt::format("cut off: the volume needs {} blocks of 4 KiB", result.value);
    case MountProblem::kRootDirectory:
      return fmt::format("the root directory (inode {}) cannot be read: {}", result.value,
                         errno_words(result.error));
  }
  return fmt::format("unknown problem {}", static_cast<uint32_t>(result.problem));
}

std::string describe(const f2fs::WriteResult& result) {
  using f2fs::WriteProblem;
  switch (result.problem) {
    case WriteProblem::kNone:
      return "ready for writing";
    case WriteProblem::kDevice:
      return fmt::format("what writing needs cannot be read: {}", errno_words(result.error));
    case WriteProblem::kFeature:
      return fmt::format("the volume uses what can only be read: {}",
                         joined(feature_names(static_cast<uint32_t>(result.value)), ", "));
    case WriteProblem::kSections:
      return fmt::format(
          "the volume has sections of {} segments (mkfs.f2fs -s): it can only be read",
          result.value);
    case WriteProblem::kSegments:
      return "the segment information table is damaged: the volume can only be read";
    case WriteProblem::kCurrentLog:
      return fmt::format("the checkpoint is damaged: log {} has no segment of its own",
                         result.value);
    case WriteProblem::kNat:
      return "the NAT's journal is damaged: the volume can only be read";
    case WriteProblem::kOrphans:
      return "the checkpoint's list of orphans is damaged: the volume can only be read";
    case WriteProblem::kRecovery:
      return fmt::format("{} unlinked files could not be freed: {}", result.value,
                         errno_words(result.error));
    case WriteProblem::kFsyncLog:
      return fmt::format("what fsync has written since the last checkpoint cannot be recovered: {}",
                         errno_words(result.error));
  }
  return fmt::format("unknown problem {}", static_cast<uint32_t>(result.problem));
}

std::vector<std::string> feature_names(uint32_t features) {
  using namespace format;
  static const std::vector<BitName> kNames = {
      {kFeatureEncrypt, "encrypt"},
      {kFeatureZoned, "zoned"},
      {kFeatureAtomicWrite, "atomic_write"},
      {kFeatureExtraAttr, "extra_attr"},
      {kFeatureProjectQuota, "project_quota"},
      {kFeatureInodeChecksum, "inode_checksum"},
      {kFeatureFlexibleInlineXattr, "flexible_inline_xattr"},
      {kFeatureQuota, "quota"},
      {kFeatureInodeCrtime, "inode_crtime"},
      {kFeatureLostFound, "lost_found"},
      {kFeatureVerity, "verity"},
      {kFeatureSuperChecksum, "sb_checksum"},
      {kFeatureCasefold, "casefold"},
      {kFeatureCompression, "compression"},
      {kFeatureReadOnly, "ro"},
      {kFeatureDeviceAlias, "device_alias"},
      {kFeaturePackedSsa, "packed_ssa"},
  };
  return bit_names(features, kNames);
}

std::vector<std::string> checkpoint_flag_names(uint32_t flags) {
  using namespace format;
  static const std::vector<BitName> kNames = {
      {kCheckpointUmount, "umount"},
      {kCheckpointOrphan, "orphan"},
      {kCheckpointCompactSummary, "compact_summary"},
      {kCheckpointError, "error"},
      {kCheckpointFsck, "fsck"},
      {kCheckpointFastboot, "fastboot"},
      {kCheckpointCrcRecovery, "crc_recovery"},
      {kCheckpointNatBits, "nat_bits"},
      {kCheckpointTrimmed, "trimmed"},
      {kCheckpointNoCrcRecovery, "nocrc_recovery"},
      {kCheckpointLargeNatBitmap, "large_nat_bitmap"},
      {kCheckpointQuotaNeedFsck, "quota_need_fsck"},
      {kCheckpointDisabled, "disabled"},
      {kCheckpointDisabledQuick, "disabled_quick"},
      {kCheckpointResize, "resizefs"},
  };
  return bit_names(flags, kNames);
}

std::string joined(const std::vector<std::string>& words, const char* between) {
  std::string text;
  for (const std::string& word : words) {
    if (&word != &words.front()) text += between;
    text += word;
  }
  return text;
}

std::string shown_path(const std::string& path) { return path.empty() ? "\"\"" : path; }

Error make_error(int error, const std::string& subject) {
  return make_error(error, subject, errno_words(error));
}

Error make_error(int error, const std::string& subject, const std::string& words) {
  return Error{std::abs(error), shown_path(subject) + ": " + words};
}

}  // namespace gofs::host
