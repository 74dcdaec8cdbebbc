// SPDX-License-Identifier: Apache-2.0
//
// Buffers of every alignment and length, read back from the command as the standard says (NVMe 1.4,
// section 4.3), and ring positions compared with plain division.
#include "nvme/prp.h"

#include <gtest/gtest.h>

#include <memory>
#include <vector>

#include "nvme/ring_index.h"

namespace gofs::nvme {
namespace {

/// Walks the pages of a command; true if they are exactly `bytes` at `dma`, in order, and nothing
/// but the first begins inside a page.
bool describes(const format::nvme::SubmissionEntry& entry, const PrpList& list, uint64_t list_dma,
               uint64_t dma, uint32_t bytes) {
  if (entry.prp1 != dma) return false;
  const uint32_t in_first = kBlockBytes - static_cast<uint32_t>(dma % kBlockBytes);
  if (bytes <= in_first) return entry.prp2 == 0;
  uint64_t next = dma + in_first;
  uint32_t left = bytes - in_first;
  if (left <= kBlockBytes) return entry.prp2 == next;
  if (entry.prp2 != list_dma) return false;
  for (uint32_t i = 0; left != 0; ++i) {
    if (i == kPrpListEntries || list.entries[i] != next || next % kBlockBytes != 0) return false;
    next += kBlockBytes;
    left -= simt::min(left, kBlockBytes);
  }
  return true;
}

TEST(PrpTest, names_1_to_65_pages_at_any_dword) {
  const auto list = std::make_unique<PrpList>();
  constexpr uint64_t kListDma = 0x7000;
  uint64_t shapes = 0;
  for (uint32_t offset = 0; offset < kBlockBytes; offset += 4) {
    for (uint32_t pages = 1; pages <= kPrpListEntries + 1; ++pages) {
      // The least and the most that touch so many pages.
      const uint32_t most = pages * kBlockBytes - offset;
      const uint32_t least = pages == 1 ? 4 : most - kBlockBytes + 4;
      for (const uint32_t bytes : {least, most}) {
        const uint64_t dma = 0x123456000 + offset;
        format::nvme::SubmissionEntry entry{};
        entry.prp2 = ~uint64_t{0};
        for (uint64_t& word : list->entries) word = 1;
        describe_buffer(entry, dma, bytes, *list, kListDma);
        ASSERT_TRUE(describes(entry, *list, kListDma, dma, bytes)) << offset << " " << bytes;
        ++shapes;
      }
    }
  }
  EXPECT_EQ(shapes, 1024u * 65 * 2);
}

TEST(PrpTest, the_longest_command_fits_from_any_address) {
  const auto list = std::make_unique<PrpList>();
  for (uint32_t offset = 0; offset < kBlockBytes; offset += 4) {
    format::nvme::SubmissionEntry entry{};
    const uint64_t dma = 0x40000000 + offset;
    describe_buffer(entry, dma, kPrpBytesMax, *list, 0x7000);
    ASSERT_TRUE(describes(entry, *list, 0x7000, dma, kPrpBytesMax)) << offset;
  }
}

TEST(PrpTest, a_list_lies_in_one_page) {
  std::vector<PrpList> lists(2);
  EXPECT_EQ(kBlockBytes % sizeof(PrpList), 0u);
  EXPECT_EQ(reinterpret_cast<uintptr_t>(lists.data()) % sizeof(PrpList), 0u);
}

constexpr uint32_t kRingDepths[] = {2, 3, 4, 7, 13, 64, 100, 1000, 1024, 65535, 65536};

TEST(RingIndexTest, positions_are_remainder_and_quotient) {
  for (const uint32_t depth : kRingDepths) {
    const RingShape shape = RingShape::of(depth);
    // Around 0, around the end of 32 bits of tickets, and of 32 bits of laps.
    for (const uint64_t start :
         {uint64_t{0}, (uint64_t{1} << 32) - 2 * depth, (uint64_t{depth} << 32) - depth - 1}) {
      for (uint64_t ticket = start; ticket < start + 3 * uint64_t{depth};
           ticket += depth / 50 + 1) {
        const RingPosition position = shape.position(ticket);
        ASSERT_EQ(position.index, ticket % depth) << depth << " " << ticket;
        ASSERT_EQ(position.lap, static_cast<uint32_t>(ticket / depth)) << depth << " " << ticket;
      }
    }
  }
}

TEST(RingIndexTest, plus_is_the_position_of_the_later_ticket) {
  for (const uint32_t depth : kRingDepths) {
    const RingShape shape = RingShape::of(depth);
    for (const uint64_t start : {uint64_t{0}, (uint64_t{depth} << 32) - 5}) {
      for (uint64_t ticket = start; ticket < start + 10; ++ticket) {
        for (const uint32_t distance : {0u, 1u, 3u, 31u, 32u}) {
          const RingPosition there = shape.position(ticket).plus(distance, depth);
          const RingPosition wanted = shape.position(ticket + distance);
          ASSERT_EQ(there.index, wanted.index) << depth << " " << ticket << " " << distance;
          ASSERT_EQ(there.lap, wanted.lap) << depth << " " << ticket << " " << distance;
        }
      }
    }
  }
}

}  // namespace
}  // namespace gofs::nvme
