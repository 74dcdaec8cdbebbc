// SPDX-License-Identifier: Apache-2.0
//
// Makes programs that know what they break: single fields of each structure set to what is extreme,
// cyclic, or true of some other structure; names, lists and counts that do not add up; structures
// in each other's place; flipped bits; cut devices.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "edit.h"

namespace gofs::fuzz {

/// splitmix64: the same everywhere.
class Random {
 public:
  explicit Random(uint64_t seed) : state_(seed) {}
  uint64_t next() {
    uint64_t x = state_ += 0x9E3779B97F4A7C15ull;
    x = (x ^ x >> 30) * 0xBF58476D1CE4E5B9ull;
    x = (x ^ x >> 27) * 0x94D049BB133111EBull;
    return x ^ x >> 31;
  }
  /// 0 to `bound` - 1; `bound` is not 0.
  uint64_t below(uint64_t bound) { return next() % bound; }
  bool chance(uint32_t of_hundred) { return below(100) < of_hundred; }
  template <typename T>
  const T& pick(const std::vector<T>& from) {
    return from[below(from.size())];
  }

 private:
  uint64_t state_;
};

/// A field of a structure, or `count` like it, `stride` bytes apart.
struct Field {
  const char* name;
  uint32_t offset;  // in the block
  uint32_t bytes;   // 1, 2, 4 or 8
  uint32_t count = 1;
  uint32_t stride = 0;
};

/// The fields of a block that is a `place`. Those of kAny, kDentries and kData are none.
const std::vector<Field>& fields_of(Place place);

class Mutator {
 public:
  /// `image` is unchanged between calls.
  explicit Mutator(const EditableImage& image) : image_(image), map_(image.map()) {}

  /// A program that depends on nothing but the image and `seed`. Its base is left 0.
  Program random_program(uint64_t seed) const;

  /// All programs that set one field of one structure of each kind to one extreme value.
  std::vector<Program> sweep() const;

  /// One line for people: what `program` does.
  std::string describe(const Program& program) const;

 private:
  enum class Aim { kField, kReference, kEntry, kJournal, kType, kExchange, kBits, kFill };

  BlockRef any_block_of(Place place, Random& random) const;
  uint64_t block_of(const BlockRef& ref) const;
  std::vector<uint64_t> extremes(uint32_t bytes, uint64_t now) const;
  uint64_t reference(Random& random) const;
  uint64_t value_now(const BlockRef& block, uint32_t offset, uint32_t bytes) const;
  void set(Program& program, const BlockRef& block, uint32_t offset, uint32_t bytes,
           uint64_t value) const;
  void add(Program& program, Aim aim, Random& random) const;
  void change_field(Program& program, Random& random) const;
  void change_reference(Program& program, Random& random) const;
  void change_entry(Program& program, Random& random) const;
  void change_journal(Program& program, Random& random) const;
  void change_type(Program& program, Random& random) const;
  void exchange(Program& program, Random& random) const;
  void flip_bits(Program& program, Random& random) const;
  void fill(Program& program, Random& random) const;

  const EditableImage& image_;
  const ImageMap& map_;
};

}  // namespace gofs::fuzz
