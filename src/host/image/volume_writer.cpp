// SPDX-License-Identifier: Apache-2.0
#include "host/image/volume_writer.h"

#include <sys/random.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <ctime>
#include <string_view>

namespace gofs::image {

using format::Checkpoint;
using format::Log;
using format::NodeBlock;
using format::SitBlock;
using format::SummaryBlock;

namespace {

constexpr uint32_t kLabelUnitsMax = format::kVolumeNameUnits - 1;  // readers expect a NUL
constexpr char kVersionText[] = "GoFS";

/// Files that are written once and kept go to the cold log of a kernel that mounts the volume,
/// databases to the hot one. Cold ones first.
constexpr std::string_view kColdExtensions[] = {"avi", "flac", "gif",  "iso",  "jpeg", "jpg",
                                                "m4a", "mkv",  "mov",  "mp3",  "mp4",  "ogg",
                                                "pdf", "png",  "webm", "webp", "zip",  "zst"};
constexpr std::string_view kHotExtensions[] = {"db"};

constexpr format::Log kLogOrder[] = {format::kHotNode, format::kWarmNode, format::kColdNode,
                                     format::kHotData, format::kWarmData, format::kColdData};

/// Decodes UTF-8 to at most `units_max` UTF-16 units. Returns their number, or -1.
int utf8_to_utf16(std::string_view text, format::le16* units, uint32_t units_max) {
  uint32_t count = 0;
  for (size_t i = 0; i < text.size();) {
    const auto lead = static_cast<uint8_t>(text[i++]);
    uint32_t point = lead;
    uint32_t more = 0;
    if (lead >= 0xf0 && lead < 0xf8) {
      point = lead & 0x07u;
      more = 3;
    } else if (lead >= 0xe0 && lead < 0xf0) {
      point = lead & 0x0fu;
      more = 2;
    } else if (lead >= 0xc2 && lead < 0xe0) {
      point = lead & 0x1fu;
      more = 1;
    } else if (lead >= 0x80) {
      return -1;
    }
    const uint32_t length = more;
    for (; more > 0; --more) {
      if (i >= text.size() || (static_cast<uint8_t>(text[i]) & 0xc0) != 0x80) return -1;
      point = point << 6 | (static_cast<uint8_t>(text[i++]) & 0x3fu);
    }
    const bool surrogate = point >= 0xd800 && point < 0xe000;
    const bool overlong = (length == 2 && point < 0x800) || (length == 3 && point < 0x10000);
    if (surrogate || overlong || point > 0x10ffff || point == 0) return -1;
    const uint32_t needed = point >= 0x10000 ? 2 : 1;
    if (count + needed > units_max) return -1;
    if (needed == 2) {
      units[count++] = static_cast<uint16_t>(0xd800 + ((point - 0x10000) >> 10));
      units[count++] = static_cast<uint16_t>(0xdc00 + ((point - 0x10000) & 0x3ff));
    } else {
      units[count++] = static_cast<uint16_t>(point);
    }
  }
  return static_cast<int>(count);
}

/// A stream of well mixed numbers: from the seed, or from the system.
class Randomness {
 public:
  explicit Randomness(std::optional<uint64_t> seed) {
    if (seed.has_value()) {
      state_ = *seed;
    } else if (getrandom(&state_, sizeof(state_), 0) != static_cast<ssize_t>(sizeof(state_))) {
      state_ = static_cast<uint64_t>(std::time(nullptr));
    }
  }
  uint64_t next() {
    state_ += 0x9e3779b97f4a7c15;
    uint64_t mixed = state_;
    mixed = (mixed ^ (mixed >> 30)) * 0xbf58476d1ce4e5b9;
    mixed = (mixed ^ (mixed >> 27)) * 0x94d049bb133111eb;
    return mixed ^ (mixed >> 31);
  }

 private:
  uint64_t state_ = 0;
};

std::string hex(uint32_t value) {
  char text[16];
  std::snprintf(text, sizeof(text), "0x%x", value);
  return text;
}

}  // namespace

Status check_request(uint64_t size_bytes, const VolumeOptions& options) {
  const uint32_t unknown = options.feature & ~kFeaturesOffered;
  if (unknown != 0) {
    return Status::failure(-EOPNOTSUPP, "features " + hex(unknown) + " cannot be made");
  }
  constexpr uint32_t kNeedExtraAttr = format::kFeatureInodeChecksum |
                                      format::kFeatureFlexibleInlineXattr |
                                      format::kFeatureInodeCrtime;
  if ((options.feature & kNeedExtraAttr) != 0 &&
      (options.feature & format::kFeatureExtraAttr) == 0) {
    return Status::failure(
        -EINVAL, "inode_checksum, flexible_inline_xattr and inode_crtime need extra_attr");
  }
  format::le16 units[kLabelUnitsMax];
  if (utf8_to_utf16(options.label, units, kLabelUnitsMax) < 0) {
    return Status::failure(-EINVAL, "the label is not UTF-8, or longer than 511 UTF-16 units");
  }
  const int error = format::plan_volume(size_bytes / kBlockBytes, options.feature).error;
  if (error == -ENOSPC) return Status::failure(error, "too small: volumes have 64 MiB or more");
  if (error == -EFBIG) return Status::failure(error, "too large: volumes have 16 TiB or less");
  return error == 0 ? Status{} : Status::system_failure(error, "size");
}

Status refuse_existing_volume(ImageTarget& target) {
  for (uint32_t copy = 0; copy < format::kSuperCopies; ++copy) {
    format::le32 magic{};
    const uint64_t at = uint64_t{copy} * kBlockBytes + format::kSuperOffset;
    if (at + sizeof(magic) > target.size_bytes()) return {};
    GOFS_RETURN_IF_FAILED(target.read(at, &magic, sizeof(magic)));
    if (magic == format::kSuperMagic) {
      return Status::failure(-EEXIST, "it already holds an F2FS volume");
    }
  }
  return {};
}

Status VolumeWriter::begin(const VolumeOptions& options) {
  GOFS_RETURN_IF_FAILED(check_request(target_.size_bytes(), options));
  if (!options.overwrite) GOFS_RETURN_IF_FAILED(refuse_existing_volume(target_));
  plan_ = format::plan_volume(target_.size_bytes() / kBlockBytes, options.feature).value;

  flush_ = options.flush;
  time_s_ = options.time_s.value_or(static_cast<int64_t>(std::time(nullptr)));
  fill_superblock(options);
  checksum_seed_ = format::inode_checksum_seed(superblock_.uuid);
  GOFS_RETURN_IF_FAILED(clear_tables());

  nodes_.assign(format::kRootIno, Node{0, 0});
  nodes_[format::kNodeIno] = Node{format::kNodeIno, 1};  // these two have no block of their own
  nodes_[format::kMetaIno] = Node{format::kMetaIno, 1};
  for (const Log log : kLogOrder) open_segment(log);
  return {};
}

void VolumeWriter::fill_superblock(const VolumeOptions& options) {
  const format::Geometry& geometry = plan_.geometry;
  format::Superblock& super = superblock_;
  super = format::Superblock{};
  super.magic = format::kSuperMagic;
  super.major_ver = 1;
  super.minor_ver = 15;
  super.log_sectorsize = 9;
  super.log_sectors_per_block = kBlockShift - 9;
  super.log_blocksize = kBlockShift;
  super.log_blocks_per_seg = format::kBlocksPerSegmentShift;
  super.segs_per_sec = 1;
  super.secs_per_zone = 1;
  super.block_count = geometry.block_count;
  super.section_count = geometry.main_segments;
  super.segment_count = geometry.segment_count;
  super.segment_count_ckpt = format::kCheckpointSegments;
  super.segment_count_sit = 2 * geometry.sit_segments;
  super.segment_count_nat = 2 * geometry.nat_segments;
  super.segment_count_ssa = geometry.ssa_segments;
  super.segment_count_main = geometry.main_segments;
  super.segment0_blkaddr = geometry.segment0_blkaddr;
  super.cp_blkaddr = geometry.cp_blkaddr;
  super.sit_blkaddr = geometry.sit_blkaddr;
  super.nat_blkaddr = geometry.nat_blkaddr;
  super.ssa_blkaddr = geometry.ssa_blkaddr;
  super.main_blkaddr = geometry.main_blkaddr;
  super.root_ino = format::kRootIno;
  super.node_ino = format::kNodeIno;
  super.meta_ino = format::kMetaIno;
  utf8_to_utf16(options.label, super.volume_name, kLabelUnitsMax);
  super.cp_payload = geometry.cp_payload;
  super.feature = geometry.feature;
  std::memcpy(super.version, kVersionText, sizeof(kVersionText));
  std::memcpy(super.init_version, kVersionText, sizeof(kVersionText));

  uint32_t extension = 0;
  for (const std::string_view name : kColdExtensions) {
    std::memcpy(super.extension_list[extension++], name.data(), name.size());
  }
  super.extension_count = extension;
  for (const std::string_view name : kHotExtensions) {
    std::memcpy(super.extension_list[extension++], name.data(), name.size());
  }
  super.hot_ext_count = static_cast<uint8_t>(extension - super.extension_count);

  Randomness random(options.seed);
  const uint64_t uuid_words[2] = {random.next(), random.next()};
  std::memcpy(super.uuid, uuid_words, sizeof(super.uuid));
  super.uuid[6] = static_cast<uint8_t>((super.uuid[6] & 0x0f) | 0x40);  // random uuid, version 4
  super.uuid[8] = static_cast<uint8_t>((super.uuid[8] & 0x3f) | 0x80);
  if (options.uuid.has_value()) std::memcpy(super.uuid, options.uuid->data(), sizeof(super.uuid));
  // Node blocks of a volume that was here before carry its versions: a random one keeps recovery
  // from taking them for ours.
  checkpoint_ver_ = (random.next() & 0x3fffffff) | 1;

  if ((geometry.feature & format::kFeatureSuperChecksum) != 0) {
    super.checksum_offset = format::kSuperChecksumOffset;
    super.crc = format::crc32(format::kSuperMagic, &super, format::kSuperChecksumOffset);
  }
}

/// Of both tables only the first copy is ever read while the version bits are 0.
Status VolumeWriter::clear_tables() {
  const format::Geometry& geometry = plan_.geometry;
  const auto clear = [this](uint64_t block, uint64_t count) {
    return target_.write_zeros(block * kBlockBytes, count * kBlockBytes);
  };
  GOFS_RETURN_IF_FAILED(clear(0, format::kSuperCopies));
  GOFS_RETURN_IF_FAILED(
      clear(geometry.cp_blkaddr, format::kCheckpointSegments * format::kBlocksPerSegment));
  GOFS_RETURN_IF_FAILED(
      clear(geometry.sit_blkaddr, uint64_t{geometry.sit_segments} * format::kBlocksPerSegment));
  for (uint32_t segment = 0; segment < geometry.nat_segments; ++segment) {
    const uint32_t first = geometry.nat_block(segment * format::kBlocksPerSegment, false);
    GOFS_RETURN_IF_FAILED(clear(first, format::kBlocksPerSegment));
  }
  return {};
}

Status VolumeWriter::write_block(uint64_t block, const void* data) {
  return target_.write(block * kBlockBytes, data, kBlockBytes);
}

uint32_t VolumeWriter::allocate_nid() {
  if (nodes_.size() >= plan_.geometry.nid_count()) return 0;
  nodes_.push_back(Node{0, 0});
  return static_cast<uint32_t>(nodes_.size() - 1);
}

void VolumeWriter::open_segment(uint32_t log) {
  OpenLog& open = logs_[log];
  open.segno = static_cast<uint32_t>(segments_.size());
  open.used = 0;
  open.summary = SummaryBlock{};
  open.summary.footer.entry_type =
      format::is_node_log(log) ? format::kSummaryNode : format::kSummaryData;
  segments_.push_back(Segment{0, static_cast<uint16_t>(log)});
}

VolumeWriter::Space VolumeWriter::reserve(Log log, uint32_t count_max) {
  OpenLog& open = logs_[log];
  if (open.blocks.empty()) open.blocks.resize(format::kSegmentBytes);
  return Space{plan_.geometry.block_of(open.segno, open.used),
               simt::min(count_max, format::kBlocksPerSegment - open.used),
               open.blocks.data() + uint64_t{open.used} * kBlockBytes,
               open.summary.entries + open.used};
}

Status VolumeWriter::write_segment(const OpenLog& log) {
  if (log.used == 0) return {};
  const uint64_t first = plan_.geometry.block_of(log.segno, 0);
  return target_.write(first * kBlockBytes, log.blocks.data(), uint64_t{log.used} * kBlockBytes);
}

Status VolumeWriter::commit(Log log, uint32_t count) {
  OpenLog& open = logs_[log];
  GOFS_ASSERT(count <= format::kBlocksPerSegment - open.used);
  if (count > free_block_count()) {
    return Status::failure(-ENOSPC, "the volume is full");
  }
  valid_block_count_ += count;
  open.used += count;
  segments_[open.segno].valid_count = static_cast<uint16_t>(open.used);
  if (open.used < format::kBlocksPerSegment) return {};

  GOFS_RETURN_IF_FAILED(write_segment(open));
  GOFS_RETURN_IF_FAILED(write_block(plan_.geometry.summary_block(open.segno), &open.summary));
  // A log always has a segment to go on in, even after the last block that it writes. The reserve
  // is larger than the six segments that this may leave open.
  if (segments_.size() >= plan_.geometry.main_segments) {
    return Status::failure(-ENOSPC, "the volume has no free segment");
  }
  open_segment(log);
  return {};
}

Status VolumeWriter::write_node(const NodeIdentity& identity, NodeBlock* block) {
  Log log = format::kWarmNode;
  if (identity.indirect) {
    log = format::kColdNode;
  } else if (identity.of_directory) {
    log = format::kHotNode;
  }
  Space space = reserve(log, 1);
  const OpenLog& open = logs_[log];
  const bool last = open.used + 1 == format::kBlocksPerSegment;
  const auto next_segno = static_cast<uint32_t>(segments_.size());

  format::NodeFooter& footer = block->footer;
  footer.nid = identity.nid;
  footer.ino = identity.ino;
  footer.flag = identity.node_offset << format::kNodeOffsetShift |
                (identity.of_directory ? 0u : format::kNodeCold);
  footer.cp_ver = 0;  // no checkpoint came before
  footer.next_blkaddr = last ? plan_.geometry.block_of(next_segno, 0) : space.address + 1;

  if (identity.nid == identity.ino) {
    ++valid_inode_count_;
    if ((feature() & format::kFeatureInodeChecksum) != 0) {
      format::extra_attr(block->inode).i_inode_checksum =
          format::inode_checksum(checksum_seed_, *block);
    }
  }
  std::memcpy(space.memory, block, kBlockBytes);
  space.summaries[0] = format::SummaryEntry{};
  space.summaries[0].nid = identity.nid;
  GOFS_ASSERT(identity.nid < nodes_.size() && nodes_[identity.nid].address == 0);
  nodes_[identity.nid] = Node{identity.ino, space.address};
  ++valid_node_count_;
  return commit(log, 1);
}

Status VolumeWriter::add_links(uint32_t ino, uint32_t count) {
  GOFS_ASSERT(ino < nodes_.size() && nodes_[ino].ino == ino && nodes_[ino].address > 1);
  const uint32_t address = nodes_[ino].address;
  const uint64_t at = uint64_t{address} * kBlockBytes;
  uint8_t* in_log = nullptr;
  for (OpenLog& open : logs_) {
    if (plan_.geometry.segno_of(address) == open.segno) {
      in_log =
          open.blocks.data() + uint64_t{plan_.geometry.offset_in_segment(address)} * kBlockBytes;
    }
  }
  NodeBlock block;
  if (in_log != nullptr) {
    std::memcpy(&block, in_log, sizeof(block));
  } else {
    GOFS_RETURN_IF_FAILED(target_.read(at, &block, sizeof(block)));
  }
  block.inode.i_links = block.inode.i_links + count;
  // Of several names the inode can hold only one, so recovery must not rely on it.
  block.inode.i_advise = static_cast<uint8_t>(block.inode.i_advise | format::kAdviseLostPino);
  if ((feature() & format::kFeatureInodeChecksum) != 0) {
    format::extra_attr(block.inode).i_inode_checksum =
        format::inode_checksum(checksum_seed_, block);
  }
  if (in_log != nullptr) {
    std::memcpy(in_log, &block, sizeof(block));
    return {};
  }
  return target_.write(at, &block, sizeof(block));
}

Status VolumeWriter::count_reserved(uint64_t count) {
  if (count > free_block_count()) return Status::failure(-ENOSPC, "the volume is full");
  valid_block_count_ += count;
  return {};
}

Status VolumeWriter::write_sit() {
  SitBlock block;
  const auto used = static_cast<uint32_t>(segments_.size());
  for (uint32_t first = 0; first < used; first += format::kSitEntriesPerBlock) {
    std::memset(&block, 0, sizeof(block));
    const uint32_t end = simt::min(used, first + format::kSitEntriesPerBlock);
    for (uint32_t segno = first; segno < end; ++segno) {
      format::SitEntry& entry = block.entries[segno - first];
      const Segment& segment = segments_[segno];
      entry.set_vblocks(segment.valid_count, segment.type);
      for (uint32_t i = 0; i < segment.valid_count; ++i) {
        format::set_msb_bit(entry.valid_map, i, true);
      }
    }
    const uint32_t index = first / format::kSitEntriesPerBlock;
    GOFS_RETURN_IF_FAILED(write_block(plan_.geometry.sit_block(index, false), &block));
  }
  return {};
}

Status VolumeWriter::write_nat() {
  format::NatBlock block;
  const auto used = static_cast<uint32_t>(nodes_.size());
  for (uint32_t first = 0; first < used; first += format::kNatEntriesPerBlock) {
    std::memset(&block, 0, sizeof(block));
    const uint32_t end = simt::min(used, first + format::kNatEntriesPerBlock);
    for (uint32_t nid = first; nid < end; ++nid) {
      block.entries[nid - first].ino = nodes_[nid].ino;
      block.entries[nid - first].block_addr = nodes_[nid].address;
    }
    const uint32_t index = first / format::kNatEntriesPerBlock;
    GOFS_RETURN_IF_FAILED(write_block(plan_.geometry.nat_block(index, false), &block));
  }
  return {};
}

void VolumeWriter::fill_checkpoint(uint64_t version, uint8_t* block) const {
  const format::Geometry& geometry = plan_.geometry;
  std::memset(block, 0, kBlockBytes);  // version bitmaps: all first copies
  Checkpoint& checkpoint = *reinterpret_cast<Checkpoint*>(block);
  checkpoint.checkpoint_ver = version;
  checkpoint.user_block_count = plan_.user_block_count;
  checkpoint.valid_block_count = valid_block_count_;
  checkpoint.rsvd_segment_count = plan_.rsvd_segment_count;
  checkpoint.overprov_segment_count = plan_.overprov_segment_count;
  checkpoint.free_segment_count = geometry.main_segments - static_cast<uint32_t>(segments_.size());
  for (uint32_t i = 0; i < 8; ++i) {
    checkpoint.cur_node_segno[i] = format::kNullSegno;
    checkpoint.cur_data_segno[i] = format::kNullSegno;
  }
  for (uint32_t i = 0; i < format::kDataLogCount; ++i) {
    const OpenLog& node = logs_[format::kHotNode + i];
    const OpenLog& data = logs_[format::kHotData + i];
    checkpoint.cur_node_segno[i] = node.segno;
    checkpoint.cur_node_blkoff[i] = static_cast<uint16_t>(node.used);
    checkpoint.cur_data_segno[i] = data.segno;
    checkpoint.cur_data_blkoff[i] = static_cast<uint16_t>(data.used);
  }
  checkpoint.ckpt_flags = format::kCheckpointUmount | format::kCheckpointCrcRecovery;
  checkpoint.cp_pack_total_block_count = 2 + geometry.cp_payload + format::kLogCount;
  checkpoint.cp_pack_start_sum = 1 + geometry.cp_payload;
  checkpoint.valid_node_count = valid_node_count_;
  checkpoint.valid_inode_count = valid_inode_count_;
  checkpoint.next_free_nid = static_cast<uint32_t>(nodes_.size());
  checkpoint.sit_ver_bitmap_bytesize = geometry.sit_bitmap_bytes();
  checkpoint.nat_ver_bitmap_bytesize = geometry.nat_bitmap_bytes();
  checkpoint.checksum_offset = format::kCheckpointChecksumOffset;
  format::store_u32(block + format::kCheckpointChecksumOffset,
                    format::checkpoint_checksum(block, format::kCheckpointChecksumOffset));
}

Status VolumeWriter::write_pack(uint32_t pack, uint64_t version) {
  alignas(8) uint8_t checkpoint[kBlockBytes];
  fill_checkpoint(version, checkpoint);
  uint64_t block = plan_.geometry.pack_block(pack);
  GOFS_RETURN_IF_FAILED(write_block(block, checkpoint));
  block += 1 + plan_.geometry.cp_payload;  // payload blocks stay zero: version bits again
  for (const OpenLog& log : logs_) {
    GOFS_RETURN_IF_FAILED(write_block(block++, &log.summary));
  }
  return write_block(block, checkpoint);
}

Status VolumeWriter::write_superblocks() {
  uint8_t block[kBlockBytes] = {};
  std::memcpy(block + format::kSuperOffset, &superblock_, sizeof(superblock_));
  for (uint32_t copy = 0; copy < format::kSuperCopies; ++copy) {
    GOFS_RETURN_IF_FAILED(write_block(copy, block));
  }
  return {};
}

Status VolumeWriter::finish() {
  for (const OpenLog& log : logs_) GOFS_RETURN_IF_FAILED(write_segment(log));
  // Roll-forward recovery starts reading here.
  const OpenLog& warm = logs_[format::kWarmNode];
  const uint64_t head = plan_.geometry.block_of(warm.segno, warm.used);
  GOFS_RETURN_IF_FAILED(target_.write_zeros(head * kBlockBytes, kBlockBytes));
  GOFS_RETURN_IF_FAILED(write_sit());
  GOFS_RETURN_IF_FAILED(write_nat());
  // The second pack is valid too, and older: the first checkpoint of whoever mounts the volume
  // replaces it.
  GOFS_RETURN_IF_FAILED(write_pack(0, checkpoint_ver_));
  GOFS_RETURN_IF_FAILED(write_pack(1, 0));
  if (flush_) GOFS_RETURN_IF_FAILED(target_.flush());
  GOFS_RETURN_IF_FAILED(write_superblocks());
  return flush_ ? target_.flush() : Status{};
}

}  // namespace gofs::image
