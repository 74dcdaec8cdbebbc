// SPDX-License-Identifier: Apache-2.0
//
// Where the structures of a sound F2FS image lie, so that fuzzing hits them and not the emptiness
// between them. Made from the disk format alone, with nothing of the reader that is under test.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "format/f2fs.h"

namespace gofs::fuzz {

/// What a block of an image is. The numbers are part of the corpus: append only.
enum class Place : uint8_t {
  kAny,         // every block of the image
  kSuperblock,  // both copies
  kCheckpoint,  // first and last block of each pack, those of the current pack first
  kJournal,     // of the current pack: the blocks with the NAT and the SIT journal
  kNat,         // those in use, of the current version
  kSit,
  kInode,
  kDirect,
  kIndirect,
  kXattr,
  kDentries,  // blocks of directories
  kData,
};
inline constexpr uint32_t kPlaceCount = 12;

/// One node, as the NAT has it.
struct NodeSpot {
  uint32_t nid;
  uint32_t ino;
  uint32_t block;
  bool journaled;  // its NAT entry is in the journal: `nat_block` is the journal's block
  uint32_t nat_block;
  uint32_t nat_offset;  // of the 9 bytes of the entry in it
};

struct ImageMap {
  format::Geometry geometry;
  uint32_t pack;                // the current one
  uint32_t nat_journal_offset;  // in its block (0, or behind the summaries)
  std::array<std::vector<uint32_t>, kPlaceCount> blocks;  // kAny stays empty
  std::vector<NodeSpot> nodes;
  std::vector<uint32_t> directories;  // inode numbers
};

/// Throws std::runtime_error if the image is not sound.
ImageMap map_image(const uint8_t* image, uint64_t bytes);

/// Whether pack `pack` has two checkpoint blocks with good sums and one version.
bool pack_valid(const uint8_t* image, const format::Geometry& geometry, uint32_t pack);

inline const uint8_t* block_at(const uint8_t* image, uint64_t block) {
  return image + block * kBlockBytes;
}
inline const format::NodeBlock& node_at(const uint8_t* image, uint64_t block) {
  return *reinterpret_cast<const format::NodeBlock*>(block_at(image, block));
}
inline const format::Checkpoint& checkpoint_at(const uint8_t* image, uint64_t block) {
  return *reinterpret_cast<const format::Checkpoint*>(block_at(image, block));
}

}  // namespace gofs::fuzz
