// SPDX-License-Identifier: Apache-2.0
//
// Integers, bit orders, checksums and the directory hash against known values.
#include <gtest/gtest.h>

#include <cstdint>
#include <cstring>
#include <random>
#include <string>
#include <vector>

#include "format/bitmap.h"
#include "format/crc32.h"
#include "format/little_endian.h"
#include "format/name_hash.h"
#include "format/superblock.h"

namespace gofs::format {
namespace {

TEST(LittleEndian, bytes_are_in_order_whatever_the_address) {
  alignas(8) uint8_t memory[16] = {0xaa, 0x01, 0x02, 0x03, 0x04, 0x05, 0x06, 0x07, 0x88};
  const auto* at = memory + 1;
  EXPECT_EQ(*reinterpret_cast<const le16*>(at), 0x0201u);
  EXPECT_EQ(*reinterpret_cast<const le32*>(at), 0x04030201u);
  EXPECT_EQ(*reinterpret_cast<const le64*>(at), 0x8807060504030201u);
  EXPECT_LT(*reinterpret_cast<const sle64*>(at), 0);

  *reinterpret_cast<le32*>(memory + 3) = 0xdeadbeef;
  const uint8_t expected[4] = {0xef, 0xbe, 0xad, 0xde};
  EXPECT_EQ(memcmp(memory + 3, expected, 4), 0);
}

TEST(LittleEndian, negative_times_survive) {
  sle64 time;
  time = -100;
  EXPECT_EQ(time.value(), -100);
  EXPECT_EQ(time.bytes[0], 0x9c);
  EXPECT_EQ(time.bytes[7], 0xff);
}

TEST(LittleEndian, aligned_loads_and_stores_agree_with_the_fields) {
  alignas(8) uint8_t memory[24] = {};
  store_u64(memory, 0x1122334455667788);
  store_u32(memory + 8, 0xa1b2c3d4);
  store_u16(memory + 12, 0xe5f6);
  EXPECT_EQ(load_u64(memory), reinterpret_cast<const le64*>(memory)->value());
  EXPECT_EQ(load_u32(memory + 8), reinterpret_cast<const le32*>(memory + 8)->value());
  EXPECT_EQ(load_u16(memory + 12), reinterpret_cast<const le16*>(memory + 12)->value());
  EXPECT_EQ(load_u64_words(memory + 4), reinterpret_cast<const le64*>(memory + 4)->value());
}

TEST(Bitmap, the_two_orders_differ) {
  uint8_t map[2] = {};
  set_msb_bit(map, 0, true);
  set_msb_bit(map, 9, true);
  EXPECT_EQ(map[0], 0x80);
  EXPECT_EQ(map[1], 0x40);
  EXPECT_TRUE(msb_bit(map, 9));
  EXPECT_FALSE(msb_bit(map, 1));
  EXPECT_TRUE(lsb_bit(map, 7));
  set_msb_bit(map, 9, false);
  set_lsb_bit(map, 9, true);
  EXPECT_EQ(map[1], 0x02);
  set_lsb_bit(map, 9, false);
  EXPECT_EQ(map[1], 0);
}

TEST(Crc32, known_values) {
  const std::vector<uint8_t> zeros(4092);
  EXPECT_EQ(crc32(kSuperMagic, "123456789", 9), 0x1657A0C3u);
  EXPECT_EQ(crc32(0xFFFFFFFF, "123456789", 9), 0x340BC6D9u);
  EXPECT_EQ(crc32(kSuperMagic, zeros.data(), zeros.size()), 0x169B1BA7u);
  EXPECT_EQ(crc32(kSuperMagic, "", 0), kSuperMagic);
}

/// One bit at a time, from the definition.
uint32_t crc32_bitwise(uint32_t crc, const std::vector<uint8_t>& data) {
  for (const uint8_t byte : data) {
    crc ^= byte;
    for (int bit = 0; bit < 8; ++bit) crc = (crc >> 1) ^ ((crc & 1) != 0 ? kCrc32Polynomial : 0);
  }
  return crc;
}

TEST(Crc32, any_length_and_alignment_agree_with_the_definition_and_parts_combine) {
  std::mt19937 random(7);
  for (size_t length = 0; length < 70; ++length) {
    std::vector<uint8_t> data(length);
    for (auto& byte : data) byte = static_cast<uint8_t>(random());
    const auto seed = static_cast<uint32_t>(random());
    const uint32_t whole = crc32_bitwise(seed, data);
    EXPECT_EQ(crc32(seed, data.data(), length), whole);
    for (size_t cut = 0; cut <= length; ++cut) {
      const uint32_t head = crc32(seed, data.data(), cut);
      const uint8_t* tail = data.data() + cut;
      EXPECT_EQ(crc32(head, tail, length - cut), whole);
      EXPECT_EQ(crc32_multiply(head, crc32_power(length - cut)) ^ crc32(0, tail, length - cut),
                whole);
    }
  }
}

TEST(NameHash, known_values) {
  const struct {
    std::string name;
    uint32_t hash;
  } cases[] = {
      {".", 0},
      {"..", 0},
      {"a", 0x6d0ea4c1},
      {"7", 0x42463e3e},
      {"hello", 0x6f5bb1a8},
      {"lost+found", 0x2dbf9e80},
      {"hello.txt", 0x5107c3f3},
      {"0000000007", 0x872db951},
      {std::string(18, '0') + "7", 0xb9a0311e},
      {std::string(27, '0') + "7", 0x6e56ddbd},
      {std::string(36, '0') + "7", 0x5d004291},
      {std::string(63, '0') + "7", 0xa91feca6},
      {std::string(99, '0') + "7", 0x659981dd},
      {std::string(252, '0') + "7", 0xf74e1c4c},
  };
  for (const auto& one : cases) {
    EXPECT_EQ(name_hash(one.name.data(), static_cast<uint32_t>(one.name.size())), one.hash)
        << one.name;
  }
}

TEST(NameHash, only_the_two_dot_names_are_special) {
  EXPECT_NE(name_hash("...", 3), 0u);
  EXPECT_NE(name_hash(".a", 2), 0u);
  EXPECT_NE(name_hash("a.", 2), 0u);
}

}  // namespace
}  // namespace gofs::format
