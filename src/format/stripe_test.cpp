// SPDX-License-Identifier: Apache-2.0
//
// The mapping of a striped volume against one that deals chunk by chunk, and md's checksum against
// a superblock as mdadm writes it.
#include "format/stripe.h"

#include <gtest/gtest.h>

#include <cstring>
#include <memory>
#include <vector>

#include "format/md.h"

namespace gofs::format {
namespace {

constexpr uint64_t kPart = 512;

Stripe stripe_of(uint32_t disks, uint32_t chunk_shift, uint64_t chunks_each) {
  Stripe stripe{disks, chunk_shift, chunks_each << chunk_shift, {}};
  for (uint32_t disk = 0; disk < disks; ++disk) stripe.start_bytes[disk] = 4096 * (disk + 3);
  return stripe;
}

TEST(StripeTest, chunks_go_to_one_disk_after_the_other) {
  for (const uint32_t disks : {1u, 2u, 3u, 8u}) {
    for (const uint32_t chunk_shift : {12u, 13u, 16u}) {
      const Stripe stripe = stripe_of(disks, chunk_shift, 7);
      std::vector<uint64_t> dealt(disks, 0);  // bytes that each disk has so far
      for (uint64_t offset = 0; offset < stripe_bytes(stripe); offset += kPart) {
        const auto turn = static_cast<uint32_t>((offset >> chunk_shift) % disks);
        for (uint32_t disk = 0; disk < disks; ++disk) {
          ASSERT_EQ(bytes_on_disk(stripe, disk, offset), dealt[disk]) << disk << ", " << offset;
        }
        const StripePlace place = place_in_stripe(stripe, offset);
        ASSERT_EQ(place.disk, turn);
        ASSERT_EQ(place.offset, stripe.start_bytes[turn] + dealt[turn]);
        dealt[turn] += kPart;
      }
      for (const uint64_t bytes : dealt) EXPECT_EQ(bytes, stripe.disk_bytes);
    }
  }
}

TEST(StripeTest, the_largest_volume_has_its_last_byte) {
  // 16 TiB in chunks of a block.
  const Stripe stripe{8, 12, uint64_t{2} << 40, {}};
  const StripePlace place = place_in_stripe(stripe, stripe_bytes(stripe) - 1);
  EXPECT_EQ(place.disk, 7u);
  EXPECT_EQ(place.offset, stripe.disk_bytes - 1);
}

TEST(MdSuperblockTest, the_checksum_adds_up_words_and_what_is_above_them) {
  const auto super = std::make_unique<MdSuperblock>();
  std::memset(static_cast<void*>(super.get()), 0, sizeof(MdSuperblock));
  EXPECT_EQ(md_checksum(*super), 0u);
  super->magic = 0xffffffff;
  super->major_version = 2;
  EXPECT_EQ(md_checksum(*super), 2u);  // 1 in the lower half, and the carry
  super->sb_csum = 77;
  EXPECT_EQ(md_checksum(*super), 2u);
  super->max_dev = 1;  // half a word
  super->dev_roles[0] = 5;
  super->dev_roles[1] = 6;  // not of this array
  EXPECT_EQ(md_checksum(*super), 2u + 1u + 5u);
}

}  // namespace
}  // namespace gofs::format
