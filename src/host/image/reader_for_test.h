// SPDX-License-Identifier: Apache-2.0
//
// For tests only: reads volumes that were just built, to compare what is in them with what was put
// in. It looks names up as a kernel does, by hash and level, and shares nothing with the builder
// but the format's headers. Version bits must all be 0 and journals empty, as in every new volume.
#pragma once

#include <gtest/gtest.h>

#include <cstring>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "format/f2fs.h"
#include "host/image/image_target.h"

namespace gofs::image {

class TestReader {
 public:
  struct File {
    uint32_t ino = 0;
    std::unique_ptr<format::NodeBlock> block = std::make_unique<format::NodeBlock>();
    const format::Inode& inode() const { return block->inode; }
  };

  explicit TestReader(ImageTarget& target) : target_(target) {
    alignas(8) uint8_t block[kBlockBytes];
    read(0, block);
    std::memcpy(&super_, block + format::kSuperOffset, sizeof(super_));
    EXPECT_EQ(super_.magic, format::kSuperMagic);
    geometry_ = format::geometry_of(super_);
    read(geometry_.cp_blkaddr, block);
    std::memcpy(&checkpoint_, block, sizeof(checkpoint_));
    EXPECT_EQ(format::load_u32(block + format::kCheckpointChecksumOffset),
              format::checkpoint_checksum(block, format::kCheckpointChecksumOffset));
  }

  const format::Superblock& super() const { return super_; }
  const format::Checkpoint& checkpoint() const { return checkpoint_; }
  const format::Geometry& geometry() const { return geometry_; }

  File file(uint32_t ino) {
    File result;
    result.ino = ino;
    read_node(ino, result.block.get());
    EXPECT_EQ(result.block->footer.nid, ino);
    EXPECT_EQ(result.block->footer.ino, ino);
    if ((geometry_.feature & format::kFeatureInodeChecksum) != 0) {
      EXPECT_EQ(format::extra_attr(result.inode()).i_inode_checksum,
                format::inode_checksum(format::inode_checksum_seed(super_.uuid), *result.block));
    }
    EXPECT_TRUE(layout(result).sane);
    return result;
  }

  format::InodeLayout layout(const File& file) const {
    return format::inode_layout(file.inode(), geometry_.feature);
  }

  /// Where a file block is; kNullAddr for a hole.
  uint32_t address(const File& file, uint64_t file_block) {
    const format::InodeLayout places = layout(file);
    uint32_t slots[4];
    uint32_t offsets[4];
    const int depth = format::node_path(file_block, places.slot_count, slots, offsets);
    if (depth < 0) return format::kNullAddr;
    if (depth == 0) return file.inode().i_addr[places.word_of_slot(slots[0])];
    uint32_t nid = file.inode().i_nid[slots[0]];
    for (int level = 1;; ++level) {
      if (nid == 0) return format::kNullAddr;
      const format::NodeBlock& node = cached_node(nid);
      EXPECT_EQ(node.footer.ino, file.ino);
      EXPECT_EQ(node.footer.node_offset(), offsets[level]);
      if (level == depth) return node.direct.addr[slots[level]];
      nid = node.indirect.nid[slots[level]];
    }
  }

  /// All bytes of a small file.
  std::string content(const File& file) {
    std::string bytes(file.inode().i_size, '\0');
    if ((file.inode().i_inline & format::kInlineData) != 0) {
      const auto* block = reinterpret_cast<const char*>(file.block.get());
      bytes.assign(block + layout(file).inline_offset, bytes.size());
      return bytes;
    }
    alignas(8) uint8_t block[kBlockBytes];
    for (uint64_t at = 0; at < bytes.size(); at += kBlockBytes) {
      const uint32_t place = address(file, at / kBlockBytes);
      if (place == format::kNullAddr || place == format::kNewAddr) continue;
      EXPECT_TRUE(geometry_.in_main(place));
      read(place, block);
      std::memcpy(bytes.data() + at, block, std::min<uint64_t>(kBlockBytes, bytes.size() - at));
    }
    return bytes;
  }

  /// The inode number behind a name; 0 if there is none.
  uint32_t lookup(const File& directory, std::string_view name) {
    const format::Inode& inode = directory.inode();
    const auto bytes = static_cast<uint32_t>(name.size());
    const uint32_t hash = format::name_hash(name.data(), bytes);
    if ((inode.i_inline & format::kInlineDentry) != 0) {
      const format::InodeLayout places = layout(directory);
      return find_in_area(
          reinterpret_cast<const uint8_t*>(directory.block.get()) + places.inline_offset,
          format::inline_dentry_area(places.inline_bytes), name, hash);
    }
    alignas(8) uint8_t block[kBlockBytes];
    for (uint32_t level = 0; level < inode.i_current_depth; ++level) {
      const uint64_t first = format::dir_bucket_start(level, inode.i_dir_level, hash);
      for (uint32_t i = 0; i < format::dir_bucket_blocks(level); ++i) {
        const uint32_t place = address(directory, first + i);
        if (place == format::kNullAddr) continue;
        EXPECT_LT((first + i) * kBlockBytes, inode.i_size);
        read(place, block);
        const uint32_t found = find_in_area(block, format::dentry_block_area(), name, hash);
        if (found != 0) return found;
      }
    }
    return 0;
  }

  /// The file at an absolute path, which must exist.
  File at(std::string_view path) {
    File current = file(super_.root_ino);
    for (size_t begin = 1; begin < path.size();) {
      const size_t end = std::min(path.find('/', begin), path.size());
      const uint32_t ino = lookup(current, path.substr(begin, end - begin));
      EXPECT_NE(ino, 0u) << path;
      if (ino == 0) return current;
      current = file(ino);
      begin = end + 1;
    }
    return current;
  }

  /// Extended attributes, names with their index in front: "1name".
  std::map<std::string, std::string> xattrs(const File& file) {
    std::string bytes;
    const auto* block = reinterpret_cast<const char*>(file.block.get());
    const format::InodeLayout places = layout(file);
    if ((file.inode().i_inline & format::kInlineXattr) != 0) {
      bytes.assign(block + places.xattr_offset, places.xattr_bytes);
    }
    if (file.inode().i_xattr_nid != 0) {
      const format::NodeBlock& node = cached_node(file.inode().i_xattr_nid);
      EXPECT_EQ(node.footer.node_offset(), format::kXattrNodeOffset);
      bytes.append(reinterpret_cast<const char*>(node.xattrs), sizeof(node.xattrs));
    }
    std::map<std::string, std::string> found;
    for (size_t i = sizeof(format::XattrHeader); i + sizeof(format::XattrEntry) <= bytes.size();) {
      format::XattrEntry entry;
      std::memcpy(&entry, bytes.data() + i, sizeof(entry));
      if (entry.e_name_index == 0) break;
      const size_t name = i + sizeof(entry);
      found[std::to_string(entry.e_name_index) + bytes.substr(name, entry.e_name_len)] =
          bytes.substr(name + entry.e_name_len, entry.e_value_size);
      i += entry.padded_bytes();
    }
    return found;
  }

 private:
  void read(uint64_t block, void* memory) {
    const Status status = target_.read(block * kBlockBytes, memory, kBlockBytes);
    EXPECT_TRUE(status.ok()) << status.message;
  }

  void read_node(uint32_t nid, format::NodeBlock* node) {
    format::NatBlock nat;
    read(geometry_.nat_block(nid / format::kNatEntriesPerBlock, false), &nat);
    const uint32_t place = nat.entries[nid % format::kNatEntriesPerBlock].block_addr;
    EXPECT_TRUE(geometry_.in_main(place)) << "nid " << nid;
    read(place, node);
  }

  const format::NodeBlock& cached_node(uint32_t nid) {
    auto& node = nodes_[nid];
    if (node == nullptr) {
      node = std::make_unique<format::NodeBlock>();
      read_node(nid, node.get());
    }
    return *node;
  }

  static uint32_t find_in_area(const uint8_t* memory, const format::DentryArea& area,
                               std::string_view name, uint32_t hash) {
    for (uint32_t slot = 0; slot < area.slot_count; ++slot) {
      if (!format::lsb_bit(memory, slot)) continue;
      const auto& dentry = *reinterpret_cast<const format::Dentry*>(memory + area.dentry_at(slot));
      if (dentry.hash_code == hash && dentry.name_len == name.size() &&
          area.name_fits(slot, dentry.name_len) &&
          std::memcmp(memory + area.name_at(slot), name.data(), name.size()) == 0) {
        return dentry.ino;
      }
    }
    return 0;
  }

  ImageTarget& target_;
  format::Superblock super_{};
  format::Checkpoint checkpoint_{};
  format::Geometry geometry_{};
  std::map<uint32_t, std::unique_ptr<format::NodeBlock>> nodes_;
};

}  // namespace gofs::image
