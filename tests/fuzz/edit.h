// SPDX-License-Identifier: Apache-2.0
//
// What is done to a base image: a short list of edits, each aimed at a structure and not at an
// address, so that a few bytes say something. The bytes of a program are what the fuzzer mutates,
// what the corpus holds, and what the random mutations of mutate_test are written down as: any
// finding of one is an input of the other. Every byte string decodes to some program.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "image_map.h"

namespace gofs::fuzz {

/// The numbers are part of the corpus: append only.
enum class Verb : uint8_t {
  kBytes,     // `bytes` at `offset`
  kFlip,      // the same, exclusive or
  kFill,      // `length` times `value` at `offset`
  kCopy,      // `length` bytes of `source`'s block at the same offset; 0: all of it
  kTruncate,  // the device ends after `device_bytes`
};
inline constexpr uint32_t kVerbCount = 5;

/// Block number `index` of those that are a `place`, in the order of the ImageMap, modulo their
/// number.
struct BlockRef {
  Place place = Place::kAny;
  uint16_t index = 0;
};

struct Edit {
  Verb verb = Verb::kBytes;
  BlockRef block{};
  uint16_t offset = 0;  // in the block; what goes beyond the block is cut
  uint16_t length = 0;
  uint8_t value = 0;
  BlockRef source{};
  uint64_t device_bytes = 0;
  std::vector<uint8_t> bytes{};  // at most 255
};

inline constexpr uint32_t kEditsMax = 64;

struct Program {
  uint8_t base = 0;      // which base image, modulo their number
  bool fix_sums = true;  // checksums of touched blocks are made right again
  /// 0: done before mounting. Else the image changes under the mounted volume, when the walk over
  /// it begins its operation of this number.
  uint16_t late = 0;
  std::vector<Edit> edits{};
};

Program decode(std::span<const uint8_t> bytes);
std::vector<uint8_t> encode(const Program& program);

/// A base image that programs are applied to and taken back from, in place: an image costs what its
/// program touches.
class EditableImage {
 public:
  /// `image` outlives this object. Throws std::runtime_error if it is not sound.
  EditableImage(uint8_t* image, uint64_t bytes);

  const ImageMap& map() const { return map_; }
  const uint8_t* image() const { return image_; }
  uint64_t bytes() const { return bytes_; }
  /// What is left of the device after a kTruncate.
  uint64_t device_bytes() const { return device_bytes_; }

  void apply(const Program& program);
  /// Takes everything back.
  void restore();

 private:
  struct Saved {
    uint64_t offset;
    std::vector<uint8_t> bytes;
  };

  uint32_t block_of(const BlockRef& ref) const;
  uint8_t* open(uint32_t block, uint32_t offset, uint32_t bytes);
  void apply(const Edit& edit);
  void fix_block(uint32_t block);
  void fix_pack(uint32_t pack);

  uint8_t* const image_;
  const uint64_t bytes_;
  ImageMap map_;
  uint64_t device_bytes_;
  std::vector<Saved> saved_;
  std::vector<uint32_t> touched_;
};

}  // namespace gofs::fuzz
