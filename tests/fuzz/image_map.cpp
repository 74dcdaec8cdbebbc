// SPDX-License-Identifier: Apache-2.0
#include "image_map.h"

#include <stdexcept>

namespace gofs::fuzz {

namespace {

void require(bool condition, const char* what) {
  if (!condition) throw std::runtime_error(std::string("base image: ") + what);
}

bool checkpoint_sum_good(const uint8_t* block) {
  const uint32_t offset = reinterpret_cast<const format::Checkpoint*>(block)->checksum_offset;
  return format::checksum_offset_valid(offset) &&
         format::checkpoint_checksum(block, offset) == format::load_u32(block + offset);
}

bool is_indirect(uint32_t node_offset) {
  using namespace format;
  if (node_offset == kIndirect1Offset || node_offset == kIndirect2Offset) return true;
  if (node_offset < kDoubleIndirectOffset) return false;
  return node_offset == kDoubleIndirectOffset ||
         (node_offset - kDoubleIndirectOffset - 1) % (kNodeSlots + 1) == 0;
}

class Mapper {
 public:
  Mapper(const uint8_t* image, uint64_t bytes) : image_(image), bytes_(bytes) {}

  ImageMap run() {
    require(bytes_ >= 2 * kBlockBytes, "too small");
    const auto& super = *reinterpret_cast<const format::Superblock*>(image_ + format::kSuperOffset);
    require(super.magic == format::kSuperMagic, "no superblock");
    map_.geometry = format::geometry_of(super);
    require(map_.geometry.main_end() * kBlockBytes <= bytes_, "truncated");
    list(Place::kSuperblock) = {0, 1};
    map_packs();
    map_nat();
    map_sit();
    for (const NodeSpot& node : map_.nodes) map_node(node);
    return std::move(map_);
  }

 private:
  std::vector<uint32_t>& list(Place place) { return map_.blocks[static_cast<size_t>(place)]; }
  const format::Geometry& geometry() const { return map_.geometry; }

  void map_packs() {
    uint64_t version[2] = {};
    bool valid[2];
    for (uint32_t pack = 0; pack < 2; ++pack) {
      valid[pack] = pack_valid(image_, geometry(), pack);
      version[pack] = checkpoint_at(image_, geometry().pack_block(pack)).checkpoint_ver;
    }
    require(valid[0] || valid[1], "no checkpoint");
    map_.pack = !valid[0] || (valid[1] && version[1] > version[0]) ? 1 : 0;
    for (const uint32_t pack : {map_.pack, 1 - map_.pack}) {
      if (!valid[pack]) continue;
      const uint32_t base = geometry().pack_block(pack);
      list(Place::kCheckpoint).push_back(base);
      list(Place::kCheckpoint)
          .push_back(base + checkpoint_at(image_, base).cp_pack_total_block_count - 1);
    }
    const uint32_t base = geometry().pack_block(map_.pack);
    const format::Checkpoint& checkpoint = checkpoint_at(image_, base);
    if (checkpoint.has(format::kCheckpointCompactSummary)) {
      list(Place::kJournal) = {base + checkpoint.cp_pack_start_sum};
      map_.nat_journal_offset = 0;
    } else {
      list(Place::kJournal) = {base + format::summary_block_in_pack(checkpoint, format::kHotData),
                               base + format::summary_block_in_pack(checkpoint, format::kColdData)};
      map_.nat_journal_offset = offsetof(format::SummaryBlock, journal);
    }
  }

  void map_nat() {
    const uint32_t base = geometry().pack_block(map_.pack);
    const format::Checkpoint& checkpoint = checkpoint_at(image_, base);
    const auto places = format::version_bitmap_places(checkpoint, geometry().cp_payload);
    require(places.fit, "version bitmaps");
    const uint8_t* const versions = block_at(image_, base) + places.nat_offset;

    const uint32_t journal_block = list(Place::kJournal)[0];
    const auto& journal = *reinterpret_cast<const format::NatJournal*>(
        block_at(image_, journal_block) + map_.nat_journal_offset);
    const uint32_t journal_count = journal.count;
    require(journal_count <= format::kNatJournalEntries, "NAT journal");
    const auto journal_entry = [&](uint32_t nid) {
      for (uint32_t i = 0; i < journal_count; ++i) {
        if (journal.entries[i].nid == nid) return static_cast<int>(i);
      }
      return -1;
    };

    for (uint32_t index = 0; index < geometry().nat_blocks(); ++index) {
      const uint32_t block = geometry().nat_block(index, format::msb_bit(versions, index));
      const auto& nat = *reinterpret_cast<const format::NatBlock*>(block_at(image_, block));
      bool used = false;
      for (uint32_t i = 0; i < format::kNatEntriesPerBlock; ++i) {
        NodeSpot node{};
        node.nid = index * format::kNatEntriesPerBlock + i;
        const int journaled = journal_entry(node.nid);
        const format::NatEntry& entry =
            journaled >= 0 ? journal.entries[journaled].ne : nat.entries[i];
        used = used || nat.entries[i].block_addr != 0;
        node.ino = entry.ino;
        node.block = entry.block_addr;
        if (!geometry().in_main(node.block)) continue;
        node.journaled = journaled >= 0;
        node.nat_block = node.journaled ? journal_block : block;
        node.nat_offset = static_cast<uint32_t>(reinterpret_cast<const uint8_t*>(&entry) -
                                                block_at(image_, node.nat_block));
        map_.nodes.push_back(node);
      }
      if (used) list(Place::kNat).push_back(block);
    }
    require(!map_.nodes.empty(), "no nodes");
  }

  void map_sit() {
    for (uint32_t i = 0; i < geometry().sit_blocks_used(); ++i) {
      list(Place::kSit).push_back(geometry().sit_block(i, false));
    }
  }

  /// By the inode itself, which may come later in the NAT than its other nodes.
  bool belongs_to_directory(const NodeSpot& node) const {
    for (const NodeSpot& other : map_.nodes) {
      if (other.nid != node.ino) continue;
      const uint32_t mode = node_at(image_, other.block).inode.i_mode;
      return (mode & format::kModeTypeMask) == format::kModeDirectory;
    }
    return false;
  }

  void add_addresses(const format::le32* addresses, uint32_t count, bool directory) {
    for (uint32_t i = 0; i < count; ++i) {
      const uint32_t block = addresses[i];
      if (geometry().in_main(block)) {
        list(directory ? Place::kDentries : Place::kData).push_back(block);
      }
    }
  }

  void map_node(const NodeSpot& node) {
    const format::NodeBlock& block = node_at(image_, node.block);
    require(block.footer.nid == node.nid && block.footer.ino == node.ino, "a node's footer");
    if (node.nid == node.ino) {
      list(Place::kInode).push_back(node.block);
      const uint32_t type = block.inode.i_mode & format::kModeTypeMask;
      const bool directory = type == format::kModeDirectory;
      if (directory) map_.directories.push_back(node.ino);
      const bool has_blocks =
          (block.inode.i_inline & (format::kInlineData | format::kInlineDentry)) == 0 &&
          (directory || type == format::kModeRegular || type == format::kModeSymlink);
      const auto layout = format::inode_layout(block.inode, geometry().feature);
      if (has_blocks) {
        add_addresses(&block.inode.i_addr[layout.word_of_slot(0)], layout.slot_count, directory);
      }
      return;
    }
    const uint32_t offset = block.footer.node_offset();
    if (offset == format::kXattrNodeOffset) {
      list(Place::kXattr).push_back(node.block);
    } else if (is_indirect(offset)) {
      list(Place::kIndirect).push_back(node.block);
    } else {
      list(Place::kDirect).push_back(node.block);
      add_addresses(block.direct.addr, format::kNodeSlots, belongs_to_directory(node));
    }
  }

  const uint8_t* const image_;
  const uint64_t bytes_;
  ImageMap map_{};
};

}  // namespace

bool pack_valid(const uint8_t* image, const format::Geometry& geometry, uint32_t pack) {
  const uint32_t base = geometry.pack_block(pack);
  const format::Checkpoint& head = checkpoint_at(image, base);
  const uint32_t total = head.cp_pack_total_block_count;
  if (!checkpoint_sum_good(block_at(image, base)) || total < format::kPackBlocksMin ||
      total > format::kBlocksPerSegment) {
    return false;
  }
  const uint32_t tail = base + total - 1;
  return checkpoint_sum_good(block_at(image, tail)) &&
         checkpoint_at(image, tail).checkpoint_ver == head.checkpoint_ver;
}

ImageMap map_image(const uint8_t* image, uint64_t bytes) { return Mapper(image, bytes).run(); }

}  // namespace gofs::fuzz
