// SPDX-License-Identifier: Apache-2.0
#include "edit.h"

#include <algorithm>
#include <cstring>

namespace gofs::fuzz {

namespace {

constexpr uint8_t kFixSumsBit = 0x80;

/// Takes numbers from the front; zeros when nothing is left.
class Reader {
 public:
  explicit Reader(std::span<const uint8_t> bytes) : bytes_(bytes) {}
  bool empty() const { return bytes_.empty(); }
  template <typename T>
  T take() {
    uint64_t value = 0;
    for (size_t i = 0; i < sizeof(T); ++i) {
      if (bytes_.empty()) break;
      value |= uint64_t{bytes_[0]} << (8 * i);
      bytes_ = bytes_.subspan(1);
    }
    return static_cast<T>(value);
  }
  std::vector<uint8_t> take_bytes(size_t count) {
    const auto taken = bytes_.first(std::min(count, bytes_.size()));
    bytes_ = bytes_.subspan(taken.size());
    return {taken.begin(), taken.end()};
  }

 private:
  std::span<const uint8_t> bytes_;
};

template <typename T>
void put(std::vector<uint8_t>& bytes, T value) {
  for (size_t i = 0; i < sizeof(T); ++i) {
    bytes.push_back(static_cast<uint8_t>(static_cast<uint64_t>(value) >> (8 * i)));
  }
}

BlockRef take_ref(Reader& reader) {
  BlockRef ref;
  ref.place = static_cast<Place>(reader.take<uint8_t>() % kPlaceCount);
  ref.index = reader.take<uint16_t>();
  return ref;
}

void put_ref(std::vector<uint8_t>& bytes, const BlockRef& ref) {
  put(bytes, static_cast<uint8_t>(ref.place));
  put(bytes, ref.index);
}

}  // namespace

Program decode(std::span<const uint8_t> bytes) {
  Reader reader(bytes);
  Program program;
  const auto head = reader.take<uint8_t>();
  program.base = head & static_cast<uint8_t>(~kFixSumsBit);
  program.fix_sums = (head & kFixSumsBit) != 0;
  program.late = reader.take<uint16_t>();
  while (!reader.empty() && program.edits.size() < kEditsMax) {
    Edit edit;
    edit.verb = static_cast<Verb>(reader.take<uint8_t>() % kVerbCount);
    if (edit.verb == Verb::kTruncate) {
      edit.device_bytes = reader.take<uint64_t>();
    } else {
      edit.block = take_ref(reader);
      edit.offset = reader.take<uint16_t>() % kBlockBytes;
      if (edit.verb == Verb::kFill || edit.verb == Verb::kCopy) {
        edit.length = reader.take<uint16_t>();
      }
      if (edit.verb == Verb::kFill) edit.value = reader.take<uint8_t>();
      if (edit.verb == Verb::kCopy) edit.source = take_ref(reader);
      if (edit.verb == Verb::kBytes || edit.verb == Verb::kFlip) {
        edit.bytes = reader.take_bytes(reader.take<uint8_t>());
      }
    }
    program.edits.push_back(std::move(edit));
  }
  return program;
}

std::vector<uint8_t> encode(const Program& program) {
  std::vector<uint8_t> bytes;
  put(bytes, static_cast<uint8_t>(program.base | (program.fix_sums ? kFixSumsBit : 0)));
  put(bytes, program.late);
  for (const Edit& edit : program.edits) {
    put(bytes, static_cast<uint8_t>(edit.verb));
    if (edit.verb == Verb::kTruncate) {
      put(bytes, edit.device_bytes);
      continue;
    }
    put_ref(bytes, edit.block);
    put(bytes, edit.offset);
    if (edit.verb == Verb::kFill || edit.verb == Verb::kCopy) put(bytes, edit.length);
    if (edit.verb == Verb::kFill) put(bytes, edit.value);
    if (edit.verb == Verb::kCopy) put_ref(bytes, edit.source);
    if (edit.verb == Verb::kBytes || edit.verb == Verb::kFlip) {
      put(bytes, static_cast<uint8_t>(edit.bytes.size()));
      bytes.insert(bytes.end(), edit.bytes.begin(), edit.bytes.end());
    }
  }
  return bytes;
}

EditableImage::EditableImage(uint8_t* image, uint64_t bytes)
    : image_(image), bytes_(bytes), map_(map_image(image, bytes)), device_bytes_(bytes) {}

uint32_t EditableImage::block_of(const BlockRef& ref) const {
  const auto& blocks = map_.blocks[static_cast<size_t>(ref.place)];
  if (blocks.empty()) return static_cast<uint32_t>(ref.index % (bytes_ / kBlockBytes));
  return blocks[ref.index % blocks.size()];
}

/// Keeps what is there, to be put back, and notes the block.
uint8_t* EditableImage::open(uint32_t block, uint32_t offset, uint32_t bytes) {
  const uint64_t at = uint64_t{block} * kBlockBytes + offset;
  saved_.push_back({at, std::vector<uint8_t>(image_ + at, image_ + at + bytes)});
  if (std::find(touched_.begin(), touched_.end(), block) == touched_.end()) {
    touched_.push_back(block);
  }
  return image_ + at;
}

void EditableImage::apply(const Edit& edit) {
  if (edit.verb == Verb::kTruncate) {
    device_bytes_ = std::min(device_bytes_, edit.device_bytes);
    return;
  }
  const uint32_t room = kBlockBytes - edit.offset;
  const uint32_t block = block_of(edit.block);
  switch (edit.verb) {
    case Verb::kBytes:
    case Verb::kFlip: {
      const uint32_t count = std::min(room, static_cast<uint32_t>(edit.bytes.size()));
      uint8_t* const to = open(block, edit.offset, count);
      for (uint32_t i = 0; i < count; ++i) {
        to[i] =
            static_cast<uint8_t>(edit.verb == Verb::kFlip ? to[i] ^ edit.bytes[i] : edit.bytes[i]);
      }
      break;
    }
    case Verb::kFill: {
      const uint32_t count = std::min<uint32_t>(room, edit.length);
      std::memset(open(block, edit.offset, count), edit.value, count);
      break;
    }
    case Verb::kCopy: {
      const uint32_t count = edit.length == 0 ? room : std::min<uint32_t>(room, edit.length);
      const uint64_t from = uint64_t{block_of(edit.source)} * kBlockBytes + edit.offset;
      std::memmove(open(block, edit.offset, count), image_ + from, count);
      break;
    }
    case Verb::kTruncate:
      break;
  }
}

/// Gives a pack that was touched a good sum and a last block that agrees with its first.
void EditableImage::fix_pack(uint32_t pack) {
  const uint32_t base = map_.geometry.pack_block(pack);
  const uint32_t offset = checkpoint_at(image_, base).checksum_offset;
  if (!format::checksum_offset_valid(offset)) return;
  uint8_t* const head = open(base, 0, kBlockBytes);
  format::store_u32(head + offset, format::checkpoint_checksum(head, offset));
  const uint32_t total = checkpoint_at(image_, base).cp_pack_total_block_count;
  if (total < 2 || total > format::kBlocksPerSegment) return;
  std::memcpy(open(base + total - 1, 0, kBlockBytes), image_ + uint64_t{base} * kBlockBytes,
              kBlockBytes);
}

void EditableImage::fix_block(uint32_t block) {
  uint8_t* const bytes = image_ + uint64_t{block} * kBlockBytes;
  if (block < format::kSuperCopies) {
    auto& super = *reinterpret_cast<format::Superblock*>(bytes + format::kSuperOffset);
    if ((super.feature & format::kFeatureSuperChecksum) == 0) return;
    const uint32_t sum = format::crc32(format::kSuperMagic, &super, format::kSuperChecksumOffset);
    open(block, format::kSuperOffset + format::kSuperChecksumOffset, 4);
    super.crc = sum;
    return;
  }
  for (uint32_t pack = 0; pack < 2; ++pack) {
    // Only of the first block: the last one is a copy of it.
    if (block == map_.geometry.pack_block(pack)) return fix_pack(pack);
  }
  const auto& super = *reinterpret_cast<const format::Superblock*>(image_ + format::kSuperOffset);
  auto& node = *reinterpret_cast<format::NodeBlock*>(bytes);
  if ((super.feature & format::kFeatureInodeChecksum) == 0 || node.footer.nid != node.footer.ino ||
      !map_.geometry.in_main(block) ||
      !format::has_extra_field(node.inode, format::kExtraChecksumEnd)) {
    return;
  }
  const uint32_t sum = format::inode_checksum(format::inode_checksum_seed(super.uuid), node);
  open(block, format::kInodeAddrOffset + offsetof(format::ExtraAttr, i_inode_checksum), 4);
  format::extra_attr(node.inode).i_inode_checksum = sum;
}

void EditableImage::apply(const Program& program) {
  for (const Edit& edit : program.edits) apply(edit);
  if (!program.fix_sums) return;
  const std::vector<uint32_t> touched = touched_;  // which grows meanwhile
  for (const uint32_t block : touched) fix_block(block);
}

void EditableImage::restore() {
  for (; !saved_.empty(); saved_.pop_back()) {
    const Saved& saved = saved_.back();
    std::copy(saved.bytes.begin(), saved.bytes.end(), image_ + saved.offset);
  }
  touched_.clear();
  device_bytes_ = bytes_;
}

}  // namespace gofs::fuzz
