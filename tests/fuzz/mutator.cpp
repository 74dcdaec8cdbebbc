// SPDX-License-Identifier: Apache-2.0
#include "mutator.h"

#include <algorithm>
#include <cstdio>
#include <cstring>

namespace gofs::fuzz {

namespace {

#define GOFS_FIELD(type, field)                                                   \
  Field {                                                                         \
    #field, static_cast<uint32_t>(offsetof(format::type, field)),                 \
        static_cast<uint32_t>(sizeof(static_cast<format::type*>(nullptr)->field)) \
  }

std::vector<Field> shifted(std::vector<Field> fields, uint32_t by) {
  for (Field& field : fields) field.offset += by;
  return fields;
}

std::vector<Field> superblock_fields() {
  using format::Superblock;
  std::vector<Field> fields = {
      GOFS_FIELD(Superblock, magic),
      GOFS_FIELD(Superblock, major_ver),
      GOFS_FIELD(Superblock, minor_ver),
      GOFS_FIELD(Superblock, log_sectorsize),
      GOFS_FIELD(Superblock, log_sectors_per_block),
      GOFS_FIELD(Superblock, log_blocksize),
      GOFS_FIELD(Superblock, log_blocks_per_seg),
      GOFS_FIELD(Superblock, segs_per_sec),
      GOFS_FIELD(Superblock, secs_per_zone),
      GOFS_FIELD(Superblock, checksum_offset),
      GOFS_FIELD(Superblock, block_count),
      GOFS_FIELD(Superblock, section_count),
      GOFS_FIELD(Superblock, segment_count),
      GOFS_FIELD(Superblock, segment_count_ckpt),
      GOFS_FIELD(Superblock, segment_count_sit),
      GOFS_FIELD(Superblock, segment_count_nat),
      GOFS_FIELD(Superblock, segment_count_ssa),
      GOFS_FIELD(Superblock, segment_count_main),
      GOFS_FIELD(Superblock, segment0_blkaddr),
      GOFS_FIELD(Superblock, cp_blkaddr),
      GOFS_FIELD(Superblock, sit_blkaddr),
      GOFS_FIELD(Superblock, nat_blkaddr),
      GOFS_FIELD(Superblock, ssa_blkaddr),
      GOFS_FIELD(Superblock, main_blkaddr),
      GOFS_FIELD(Superblock, root_ino),
      GOFS_FIELD(Superblock, node_ino),
      GOFS_FIELD(Superblock, meta_ino),
      {"uuid", offsetof(Superblock, uuid), 4},
      {"volume_name", offsetof(Superblock, volume_name), 2, format::kVolumeNameUnits, 2},
      GOFS_FIELD(Superblock, extension_count),
      GOFS_FIELD(Superblock, cp_payload),
      {"version", offsetof(Superblock, version), 4, 64, 4},
      GOFS_FIELD(Superblock, feature),
      GOFS_FIELD(Superblock, encryption_level),
      {"devs", offsetof(Superblock, devs), 1, 8, sizeof(format::DeviceEntry)},
      {"qf_ino", offsetof(Superblock, qf_ino), 4, 3, 4},
      GOFS_FIELD(Superblock, hot_ext_count),
      GOFS_FIELD(Superblock, s_encoding),
      GOFS_FIELD(Superblock, crc)};
  return shifted(std::move(fields), format::kSuperOffset);
}

std::vector<Field> checkpoint_fields() {
  using format::Checkpoint;
  return {GOFS_FIELD(Checkpoint, checkpoint_ver),
          GOFS_FIELD(Checkpoint, user_block_count),
          GOFS_FIELD(Checkpoint, valid_block_count),
          GOFS_FIELD(Checkpoint, rsvd_segment_count),
          GOFS_FIELD(Checkpoint, overprov_segment_count),
          GOFS_FIELD(Checkpoint, free_segment_count),
          {"cur_node_segno", offsetof(Checkpoint, cur_node_segno), 4, 8, 4},
          {"cur_node_blkoff", offsetof(Checkpoint, cur_node_blkoff), 2, 8, 2},
          {"cur_data_segno", offsetof(Checkpoint, cur_data_segno), 4, 8, 4},
          {"cur_data_blkoff", offsetof(Checkpoint, cur_data_blkoff), 2, 8, 2},
          GOFS_FIELD(Checkpoint, ckpt_flags),
          GOFS_FIELD(Checkpoint, cp_pack_total_block_count),
          GOFS_FIELD(Checkpoint, cp_pack_start_sum),
          GOFS_FIELD(Checkpoint, valid_node_count),
          GOFS_FIELD(Checkpoint, valid_inode_count),
          GOFS_FIELD(Checkpoint, next_free_nid),
          GOFS_FIELD(Checkpoint, sit_ver_bitmap_bytesize),
          GOFS_FIELD(Checkpoint, nat_ver_bitmap_bytesize),
          GOFS_FIELD(Checkpoint, checksum_offset),
          GOFS_FIELD(Checkpoint, elapsed_time),
          {"alloc_type", offsetof(Checkpoint, alloc_type), 1, 16, 1},
          {"bitmaps", format::kCheckpointBitmapOffset, 1, 128, 1},
          {"checksum", format::kCheckpointChecksumOffset, 4}};
}

std::vector<Field> footer_fields() {
  using format::NodeFooter;
  return shifted(
      {GOFS_FIELD(NodeFooter, nid), GOFS_FIELD(NodeFooter, ino), GOFS_FIELD(NodeFooter, flag),
       GOFS_FIELD(NodeFooter, cp_ver), GOFS_FIELD(NodeFooter, next_blkaddr)},
      format::kNodeFooterOffset);
}

std::vector<Field> with_footer(std::vector<Field> fields) {
  for (const Field& field : footer_fields()) fields.push_back(field);
  return fields;
}

std::vector<Field> inode_fields() {
  using format::ExtraAttr;
  using format::Inode;
  std::vector<Field> fields = {GOFS_FIELD(Inode, i_mode),
                               GOFS_FIELD(Inode, i_advise),
                               GOFS_FIELD(Inode, i_inline),
                               GOFS_FIELD(Inode, i_uid),
                               GOFS_FIELD(Inode, i_gid),
                               GOFS_FIELD(Inode, i_links),
                               GOFS_FIELD(Inode, i_size),
                               GOFS_FIELD(Inode, i_blocks),
                               GOFS_FIELD(Inode, i_atime),
                               GOFS_FIELD(Inode, i_mtime),
                               GOFS_FIELD(Inode, i_mtime_nsec),
                               GOFS_FIELD(Inode, i_generation),
                               GOFS_FIELD(Inode, i_current_depth),
                               GOFS_FIELD(Inode, i_xattr_nid),
                               GOFS_FIELD(Inode, i_flags),
                               GOFS_FIELD(Inode, i_pino),
                               GOFS_FIELD(Inode, i_namelen),
                               GOFS_FIELD(Inode, i_dir_level),
                               {"i_ext", offsetof(Inode, i_ext), 4, 3, 4},
                               {"i_addr", offsetof(Inode, i_addr), 4, format::kInodeSlots, 4},
                               {"i_nid", offsetof(Inode, i_nid), 4, format::kInodeNids, 4}};
  const std::vector<Field> extra = {
      GOFS_FIELD(ExtraAttr, i_extra_isize),  GOFS_FIELD(ExtraAttr, i_inline_xattr_size),
      GOFS_FIELD(ExtraAttr, i_projid),       GOFS_FIELD(ExtraAttr, i_inode_checksum),
      GOFS_FIELD(ExtraAttr, i_crtime),       GOFS_FIELD(ExtraAttr, i_crtime_nsec),
      GOFS_FIELD(ExtraAttr, i_compr_blocks), GOFS_FIELD(ExtraAttr, i_log_cluster_size)};
  for (const Field& field : shifted(extra, format::kInodeAddrOffset)) fields.push_back(field);
  return with_footer(std::move(fields));
}

std::vector<Field> journal_fields() {
  // The compact form begins at 0, the normal one behind the summaries.
  std::vector<Field> fields;
  for (const uint32_t base : {0u, static_cast<uint32_t>(sizeof(format::NatJournal)),
                              static_cast<uint32_t>(offsetof(format::SummaryBlock, journal))}) {
    constexpr uint32_t kStride = sizeof(format::NatJournalEntry);
    constexpr uint32_t kSitStride = sizeof(format::SitJournalEntry);
    fields.push_back({"count", base, 2});
    fields.push_back({"nat nid", base + 2, 4, format::kNatJournalEntries, kStride});
    fields.push_back({"nat ino", base + 7, 4, format::kNatJournalEntries, kStride});
    fields.push_back({"nat block", base + 11, 4, format::kNatJournalEntries, kStride});
    fields.push_back({"sit segno", base + 2, 4, format::kSitJournalEntries, kSitStride});
    fields.push_back({"sit vblocks", base + 6, 2, format::kSitJournalEntries, kSitStride});
  }
  return fields;
}

std::vector<Field> nat_fields() {
  constexpr uint32_t kStride = sizeof(format::NatEntry);
  // Those of the first 64 nids: the base images have few more.
  return {{"version", 0, 1, 64, kStride},
          {"ino", 1, 4, 64, kStride},
          {"block_addr", 5, 4, 64, kStride}};
}

std::vector<Field> sit_fields() {
  constexpr uint32_t kStride = sizeof(format::SitEntry);
  return {{"vblocks", 0, 2, 24, kStride}, {"valid_map", 2, 8, 24, kStride}};
}

std::vector<Field> xattr_fields() {
  std::vector<Field> fields = {{"h_magic", 0, 4}, {"h_refcount", 4, 4}};
  fields.push_back({"entries", sizeof(format::XattrHeader), 2, 300, 4});
  return with_footer(std::move(fields));
}

std::vector<Field> words(const char* name) {
  return with_footer({{name, 0, 4, format::kNodeSlots, 4}});
}

const char* place_name(Place place) {
  constexpr const char* kNames[kPlaceCount] = {
      "block", "superblock",  "checkpoint",    "journal",    "NAT",          "SIT",
      "inode", "direct node", "indirect node", "xattr node", "dentry block", "data"};
  return kNames[static_cast<size_t>(place)];
}

}  // namespace

const std::vector<Field>& fields_of(Place place) {
  static const std::array<std::vector<Field>, kPlaceCount> kFields = [] {
    std::array<std::vector<Field>, kPlaceCount> all;
    const auto at = [&](Place which) -> std::vector<Field>& {
      return all[static_cast<size_t>(which)];
    };
    at(Place::kSuperblock) = superblock_fields();
    at(Place::kCheckpoint) = checkpoint_fields();
    at(Place::kJournal) = journal_fields();
    at(Place::kNat) = nat_fields();
    at(Place::kSit) = sit_fields();
    at(Place::kInode) = inode_fields();
    at(Place::kDirect) = words("addr");
    at(Place::kIndirect) = words("nid");
    at(Place::kXattr) = xattr_fields();
    return all;
  }();
  return kFields[static_cast<size_t>(place)];
}

BlockRef Mutator::any_block_of(Place place, Random& random) const {
  const auto& blocks = map_.blocks[static_cast<size_t>(place)];
  const uint64_t count = blocks.empty() ? image_.bytes() / kBlockBytes : blocks.size();
  return {place, static_cast<uint16_t>(random.below(count))};
}

uint64_t Mutator::block_of(const BlockRef& ref) const {
  const auto& blocks = map_.blocks[static_cast<size_t>(ref.place)];
  return blocks.empty() ? ref.index % (image_.bytes() / kBlockBytes)
                        : blocks[ref.index % blocks.size()];
}

uint64_t Mutator::value_now(const BlockRef& block, uint32_t offset, uint32_t bytes) const {
  uint64_t value = 0;
  std::memcpy(&value, block_at(image_.image(), block_of(block)) + offset, bytes);
  return value;
}

/// What a field of so many bytes is set to, whatever it means.
std::vector<uint64_t> Mutator::extremes(uint32_t bytes, uint64_t now) const {
  const uint64_t ones = bytes == 8 ? ~uint64_t{0} : (uint64_t{1} << (8 * bytes)) - 1;
  const uint64_t sign = (ones >> 1) + 1;
  const format::Geometry& geometry = map_.geometry;
  std::vector<uint64_t> values = {0,
                                  1,
                                  2,
                                  ones,
                                  ones - 1,
                                  sign,
                                  sign - 1,
                                  now + 1,
                                  now - 1,
                                  now * 2,
                                  now ^ sign,
                                  255,
                                  256,
                                  511,
                                  512,
                                  4095,
                                  4096,
                                  format::kNodeSlots,
                                  geometry.nid_count(),
                                  geometry.nid_count() - 1u,
                                  geometry.main_blkaddr,
                                  geometry.main_blkaddr - 1u,
                                  geometry.main_end() - 1,
                                  geometry.main_end(),
                                  geometry.nat_blkaddr,
                                  geometry.cp_blkaddr,
                                  (uint64_t{1} << 32) - 4096,
                                  uint64_t{1} << 42,
                                  format::file_blocks_max(format::kInodeSlots) * kBlockBytes};
  for (uint64_t& value : values) value &= ones;
  std::erase(values, now);
  std::sort(values.begin(), values.end());
  values.erase(std::unique(values.begin(), values.end()), values.end());
  return values;
}

/// A nid, ino or block address that is right somewhere else.
uint64_t Mutator::reference(Random& random) const {
  const NodeSpot& node = random.pick(map_.nodes);
  switch (random.below(6)) {
    case 0:
      return node.nid;
    case 1:
      return node.ino;
    case 2:
      return node.block;
    case 3:
      return random.pick(map_.directories);
    case 4:
      return format::kRootIno;
    default:
      return block_of(any_block_of(static_cast<Place>(1 + random.below(kPlaceCount - 1)), random));
  }
}

void Mutator::set(Program& program, const BlockRef& block, uint32_t offset, uint32_t bytes,
                  uint64_t value) const {
  Edit edit;
  edit.verb = Verb::kBytes;
  edit.block = block;
  edit.offset = static_cast<uint16_t>(offset);
  for (uint32_t i = 0; i < bytes; ++i) edit.bytes.push_back(static_cast<uint8_t>(value >> (8 * i)));
  program.edits.push_back(edit);
  // The other superblock would be taken instead.
  if (block.place == Place::kSuperblock) {
    edit.block.index ^= 1u;
    program.edits.push_back(std::move(edit));
  }
}

void Mutator::change_field(Program& program, Random& random) const {
  constexpr Place kPlaces[] = {Place::kSuperblock, Place::kCheckpoint, Place::kJournal,
                               Place::kNat,        Place::kInode,      Place::kInode,
                               Place::kInode,      Place::kInode,      Place::kDirect,
                               Place::kIndirect,   Place::kXattr,      Place::kSit};
  const Place place = kPlaces[random.below(std::size(kPlaces))];
  BlockRef block = any_block_of(place, random);
  // The current pack's first block is the one that is believed.
  if (place == Place::kCheckpoint && random.chance(80)) block.index = 0;
  const Field& field = random.pick(fields_of(place));
  // The first of many are those in use.
  const uint64_t among = random.chance(70) ? std::min(field.count, 8u) : field.count;
  const auto offset = field.offset + static_cast<uint32_t>(random.below(among)) * field.stride;
  const uint64_t now = value_now(block, offset, field.bytes);
  uint64_t value = 0;
  const uint64_t kind = random.below(10);
  if (kind < 5) {
    value = random.pick(extremes(field.bytes, now));
  } else if (kind < 8) {
    value = reference(random);
  } else {
    value = random.next() >> random.below(64);
  }
  set(program, block, offset, field.bytes, value);
}

/// Makes something point to something else of a kind that might be expected there.
void Mutator::change_reference(Program& program, Random& random) const {
  const NodeSpot& node = random.pick(map_.nodes);
  const NodeSpot& other = random.pick(map_.nodes);
  const auto ref_of = [&](Place place, uint32_t block) {
    const auto& blocks = map_.blocks[static_cast<size_t>(place)];
    const auto at = std::find(blocks.begin(), blocks.end(), block);
    return at == blocks.end() ? BlockRef{Place::kAny, static_cast<uint16_t>(block)}
                              : BlockRef{place, static_cast<uint16_t>(at - blocks.begin())};
  };
  switch (random.below(5)) {
    case 0: {  // an entry of the NAT leads to another node, or belongs to another file
      const Place place = node.journaled ? Place::kJournal : Place::kNat;
      const BlockRef nat = ref_of(place, node.nat_block);
      set(program, nat, node.nat_offset + 5, 4, other.block);
      if (random.chance(50)) set(program, nat, node.nat_offset + 1, 4, other.ino);
      break;
    }
    case 1: {  // a tree of nodes leads back or across
      const bool inode = random.chance(50);
      const BlockRef block = any_block_of(inode ? Place::kInode : Place::kIndirect, random);
      const uint64_t slot = random.below(inode ? format::kInodeNids : 12);
      const uint64_t self = value_now(block, format::kNodeFooterOffset, 4);
      const uint64_t to = random.chance(40) ? self : random.chance(50) ? node.nid : node.ino;
      set(program, block, (inode ? format::kInodeAddrEnd : 0u) + static_cast<uint32_t>(slot) * 4, 4,
          to);
      break;
    }
    case 2: {  // a node poses as another
      const BlockRef block = ref_of(Place::kAny, node.block);
      set(program, block, format::kNodeFooterOffset, 4, other.nid);
      if (random.chance(50)) set(program, block, format::kNodeFooterOffset + 4, 4, other.ino);
      if (random.chance(30)) {
        set(program, block, format::kNodeFooterOffset + 8, 4, random.below(3000) << 3);
      }
      break;
    }
    case 3: {  // data of one file, or anything else, as blocks of another
      const bool inode = random.chance(60);
      const BlockRef block = any_block_of(inode ? Place::kInode : Place::kDirect, random);
      const uint64_t slot = random.below(inode ? 12 : 40);
      set(program, block, (inode ? format::kInodeAddrOffset : 0u) + static_cast<uint32_t>(slot) * 4,
          4, reference(random));
      break;
    }
    default: {  // the whole of a structure at another's place, under its name
      const BlockRef block = ref_of(Place::kInode, node.block);
      Edit edit;
      edit.verb = Verb::kCopy;
      edit.block = block;
      edit.length = format::kNodeFooterOffset;
      edit.source = any_block_of(random.chance(60) ? Place::kInode : Place::kIndirect, random);
      program.edits.push_back(std::move(edit));
      break;
    }
  }
}

/// One directory entry, in a block or in an inode.
void Mutator::change_entry(Program& program, Random& random) const {
  const bool in_block = random.chance(50);
  BlockRef block = any_block_of(in_block ? Place::kDentries : Place::kInode, random);
  format::DentryArea area = format::dentry_block_area();
  uint32_t base = 0;
  if (!in_block) {
    const format::NodeBlock& node = node_at(image_.image(), block_of(block));
    const auto layout = format::inode_layout(node.inode, map_.geometry.feature);
    area = format::inline_dentry_area(layout.inline_bytes);
    base = layout.inline_offset;
    if (area.slot_count == 0) return;
  }
  const auto slots = random.chance(80) ? std::min(area.slot_count, 12u) : area.slot_count;
  const auto slot = static_cast<uint32_t>(random.below(slots));
  const uint32_t dentry = base + area.dentry_at(slot);
  const uint64_t now = value_now(block, dentry + 8, 2);
  switch (random.below(6)) {
    case 0:
      set(program, block, dentry, 4, random.next());
      break;
    case 1:
      set(program, block, dentry + 4, 4, reference(random));
      break;
    case 2:
      set(program, block, dentry + 8, 2, random.pick(extremes(2, now)));
      break;
    case 3:
      set(program, block, dentry + 10, 1, random.below(10));
      break;
    case 4: {
      constexpr uint64_t kBytes[] = {'/', '\0', '.', 0x2e2e, 0xff, '\n'};
      set(program, block, base + area.name_at(slot), random.chance(50) ? 2 : 1,
          kBytes[random.below(std::size(kBytes))]);
      break;
    }
    default:  // slots that are used and say nothing, or the other way round
      set(program, block, base + static_cast<uint32_t>(random.below(area.bitmap_bytes)), 1,
          random.chance(50) ? 0xff : random.next());
      break;
  }
}

void Mutator::change_journal(Program& program, Random& random) const {
  const BlockRef block{Place::kJournal, 0};
  const uint32_t base = map_.nat_journal_offset;
  const auto count = static_cast<uint32_t>(value_now(block, base, 2));
  if (random.chance(40)) {
    constexpr uint64_t kCounts[] = {0, 37, 38, 39, 40, 255, 256, 32767, 32768, 65535};
    set(program, block, base, 2, kCounts[random.below(std::size(kCounts))]);
    return;
  }
  // A further entry, or another version of one that is there.
  const uint32_t index = static_cast<uint32_t>(random.below(uint64_t{count} + 1));
  if (index >= format::kNatJournalEntries) return;
  if (index == count) set(program, block, base, 2, uint64_t{count} + 1);
  const uint32_t entry = base + 2 + index * static_cast<uint32_t>(sizeof(format::NatJournalEntry));
  const NodeSpot& node = random.pick(map_.nodes);
  const NodeSpot& other = random.pick(map_.nodes);
  set(program, block, entry, 4, random.chance(90) ? node.nid : random.next());
  set(program, block, entry + 5, 4, random.chance(60) ? node.ino : reference(random));
  set(program, block, entry + 9, 4, random.chance(60) ? other.block : reference(random));
}

/// An inode becomes one of another kind.
void Mutator::change_type(Program& program, Random& random) const {
  const BlockRef block = any_block_of(Place::kInode, random);
  if (random.chance(20)) {
    // Sound by itself, but not what it was: its contents move into the inode, or out of it.
    const bool inside = random.chance(50);
    set(program, block, offsetof(format::Inode, i_inline), 1,
        (value_now(block, offsetof(format::Inode, i_inline), 1) & 0x21) |
            (inside ? uint64_t{format::kInlineData} : 0u));
    set(program, block, offsetof(format::Inode, i_size), 8,
        random.below(inside ? 3400 : uint64_t{1} << 20));
    return;
  }
  constexpr uint64_t kTypes[] = {0040000, 0100000, 0120000, 0020000, 0060000,
                                 0010000, 0140000, 0,       0170000, 0150000};
  if (random.chance(70)) {
    set(program, block, offsetof(format::Inode, i_mode), 2,
        kTypes[random.below(std::size(kTypes))] | 0755);
  }
  if (random.chance(60)) {
    set(program, block, offsetof(format::Inode, i_inline), 1, random.below(256));
  }
  if (random.chance(40)) {
    constexpr uint64_t kSizes[] = {1,
                                   255,
                                   256,
                                   3451,
                                   3488,
                                   3689,
                                   4095,
                                   4096,
                                   4097,
                                   uint64_t{1} << 31,
                                   12288,
                                   40960,
                                   uint64_t{1} << 32,
                                   uint64_t{4327} * 1000000000,
                                   uint64_t{1} << 63};
    set(program, block, offsetof(format::Inode, i_size), 8,
        kSizes[random.below(std::size(kSizes))]);
  }
  if (random.chance(40)) {
    set(program, block, format::kInodeAddrOffset, 4,
        random.below(48) | random.below(1000) << 16);  // i_extra_isize, i_inline_xattr_size
  }
  if (random.chance(30)) {
    set(program, block, offsetof(format::Inode, i_current_depth), 4,
        random.chance(50) ? random.below(70) : random.next());
  }
  if (random.chance(30)) {
    set(program, block, offsetof(format::Inode, i_dir_level), 1, random.below(256));
  }
}

void Mutator::exchange(Program& program, Random& random) const {
  Edit edit;
  edit.verb = Verb::kCopy;
  const auto any_place = [&] { return static_cast<Place>(1 + random.below(kPlaceCount - 1)); };
  edit.block = any_block_of(any_place(), random);
  edit.source = any_block_of(random.chance(50) ? edit.block.place : any_place(), random);
  if (random.chance(50)) {
    edit.offset = static_cast<uint16_t>(random.below(kBlockBytes));
    edit.length = static_cast<uint16_t>(1 + random.below(1024));
  }
  program.edits.push_back(std::move(edit));
}

void Mutator::flip_bits(Program& program, Random& random) const {
  const uint64_t flips = uint64_t{1} << random.below(6);
  const bool one_block = random.chance(50);
  const auto place = [&] {
    return random.chance(90) ? static_cast<Place>(1 + random.below(kPlaceCount - 1)) : Place::kAny;
  };
  BlockRef block = any_block_of(place(), random);
  for (uint64_t i = 0; i < flips && program.edits.size() < kEditsMax; ++i) {
    if (!one_block) block = any_block_of(place(), random);
    Edit edit;
    edit.verb = Verb::kFlip;
    edit.block = block;
    edit.offset = static_cast<uint16_t>(random.below(kBlockBytes));
    edit.bytes = {static_cast<uint8_t>(1u << random.below(8))};
    program.edits.push_back(std::move(edit));
  }
}

void Mutator::fill(Program& program, Random& random) const {
  Edit edit;
  edit.verb = Verb::kFill;
  edit.block = any_block_of(static_cast<Place>(random.below(kPlaceCount)), random);
  edit.offset = static_cast<uint16_t>(random.chance(50) ? 0 : random.below(kBlockBytes));
  edit.length = static_cast<uint16_t>(1 + random.below(kBlockBytes));
  edit.value = static_cast<uint8_t>(random.chance(50) ? 0xff * random.below(2) : random.next());
  program.edits.push_back(std::move(edit));
}

void Mutator::add(Program& program, Aim aim, Random& random) const {
  switch (aim) {
    case Aim::kField:
      return change_field(program, random);
    case Aim::kReference:
      return change_reference(program, random);
    case Aim::kEntry:
      return change_entry(program, random);
    case Aim::kJournal:
      return change_journal(program, random);
    case Aim::kType:
      return change_type(program, random);
    case Aim::kExchange:
      return exchange(program, random);
    case Aim::kBits:
      return flip_bits(program, random);
    case Aim::kFill:
      return fill(program, random);
  }
}

Program Mutator::random_program(uint64_t seed) const {
  Random random(seed);
  Program program;
  program.fix_sums = random.chance(90);
  if (random.chance(10)) program.late = static_cast<uint16_t>(1 + random.below(900));
  if (random.chance(1)) {
    Edit edit;
    edit.verb = Verb::kTruncate;
    const uint64_t end = map_.geometry.main_end() * kBlockBytes;
    edit.device_bytes =
        random.chance(50) ? random.below(image_.bytes()) : end - 4096 + random.below(8192);
    program.edits.push_back(std::move(edit));
  }
  // Mostly one change: two at once hide each other more often than they help each other.
  const uint64_t changes = random.chance(70) ? 1 : 2 + random.below(4);
  constexpr Aim kAims[] = {Aim::kField,     Aim::kField, Aim::kField,     Aim::kField,
                           Aim::kReference, Aim::kEntry, Aim::kReference, Aim::kEntry,
                           Aim::kJournal,   Aim::kType,  Aim::kType,      Aim::kExchange,
                           Aim::kBits,      Aim::kBits,  Aim::kFill};
  for (uint64_t i = 0; i < changes && program.edits.size() < kEditsMax - 8; ++i) {
    add(program, kAims[random.below(std::size(kAims))], random);
  }
  return program;
}

std::vector<Program> Mutator::sweep() const {
  std::vector<Program> programs;
  for (uint32_t p = 1; p < kPlaceCount; ++p) {
    const auto place = static_cast<Place>(p);
    const auto& blocks = map_.blocks[p];
    // Of inodes, which differ in kind, all; of the others the first, which is in use.
    const size_t instances =
        place == Place::kInode ? blocks.size() : std::min<size_t>(1, blocks.size());
    for (size_t index = 0; index < instances; ++index) {
      const BlockRef block{place, static_cast<uint16_t>(index)};
      for (const Field& field : fields_of(place)) {
        // The first, the second and the last of many.
        for (const uint32_t which : {0u, 1u, field.count - 1}) {
          if (which >= field.count || (which == 1 && field.count == 2)) continue;
          const uint32_t offset = field.offset + which * field.stride;
          for (const uint64_t value :
               extremes(field.bytes, value_now(block, offset, field.bytes))) {
            Program program;
            set(program, block, offset, field.bytes, value);
            programs.push_back(std::move(program));
          }
          if (field.count == 1) break;
        }
      }
    }
  }
  return programs;
}

std::string Mutator::describe(const Program& program) const {
  std::string text = program.fix_sums ? "" : "sums left wrong; ";
  if (program.late != 0)
    text += "while mounted, before operation " + std::to_string(program.late) + "; ";
  for (const Edit& edit : program.edits) {
    char line[160];
    if (edit.verb == Verb::kTruncate) {
      std::snprintf(line, sizeof(line), "device ends after %llu bytes",
                    static_cast<unsigned long long>(edit.device_bytes));
    } else {
      constexpr const char* kVerbs[kVerbCount] = {"=", "^=", "filled", "copied from", ""};
      std::snprintf(line, sizeof(line), "%s %u (block %llu) + %u %s", place_name(edit.block.place),
                    edit.block.index, static_cast<unsigned long long>(block_of(edit.block)),
                    edit.offset, kVerbs[static_cast<size_t>(edit.verb)]);
    }
    text += line;
    for (const Field& field : fields_of(edit.block.place)) {
      const bool inside = edit.offset >= field.offset &&
                          edit.offset < field.offset + std::max(field.stride, 1u) * field.count;
      if (edit.verb == Verb::kBytes && inside &&
          (edit.offset - field.offset) % std::max(field.stride, 1u) == 0) {
        text += std::string(" [") + field.name + "]";
        break;
      }
    }
    for (const uint8_t byte : edit.bytes) {
      std::snprintf(line, sizeof(line), " %02x", byte);
      text += line;
    }
    if (edit.verb == Verb::kFill || edit.verb == Verb::kCopy) {
      std::snprintf(line, sizeof(line), " %u bytes, 0x%02x, %s %u", edit.length, edit.value,
                    place_name(edit.source.place), edit.source.index);
      text += line;
    }
    text += "; ";
  }
  return text;
}

}  // namespace gofs::fuzz
