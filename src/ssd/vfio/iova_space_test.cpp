// SPDX-License-Identifier: Apache-2.0
#include "ssd/vfio/iova_space.h"

#include <gtest/gtest.h>
#include <linux/vfio.h>

#include <cstring>
#include <map>
#include <random>
#include <vector>

#include "ssd/vfio/vfio_container.h"

namespace gofs::ssd::vfio {
namespace {

constexpr uint64_t kMiB = uint64_t{1} << 20;

TEST(IovaSpace, gives_the_lowest_address_but_never_the_first) {
  IovaSpace space({{0, 64 * kMiB - 1}});
  EXPECT_EQ(space.take(4096), IovaSpace::kFirst);
  EXPECT_EQ(space.take(8192), IovaSpace::kFirst + 4096);
}

TEST(IovaSpace, large_ranges_start_where_huge_pages_do) {
  IovaSpace space({{0, 64 * kMiB - 1}});
  EXPECT_EQ(space.take(4096), 2 * kMiB);
  EXPECT_EQ(space.take(3 * kMiB), 4 * kMiB);
  EXPECT_EQ(space.take(4096), 2 * kMiB + 4096);  // the gap before it is used
}

TEST(IovaSpace, what_is_not_allowed_is_left_out) {
  IovaSpace space({{8 * kMiB, 9 * kMiB - 1}, {0, 3 * kMiB - 1}});
  EXPECT_EQ(space.take(kMiB), 2 * kMiB);
  EXPECT_EQ(space.take(kMiB), 8 * kMiB);
  EXPECT_FALSE(space.take(4096).has_value());
}

TEST(IovaSpace, a_range_ends_with_its_last_byte) {
  IovaSpace space({{2 * kMiB, 2 * kMiB + 8191}});
  EXPECT_FALSE(space.take(12288).has_value());
  EXPECT_TRUE(space.take(8192).has_value());
}

TEST(IovaSpace, what_is_no_whole_number_of_pages_is_refused) {
  IovaSpace space(IovaSpace::cautious_ranges());
  for (const uint64_t bytes : {uint64_t{0}, uint64_t{1}, uint64_t{4097}, ~uint64_t{4095}}) {
    EXPECT_FALSE(space.take(bytes).has_value()) << bytes;
  }
}

TEST(IovaSpace, only_what_was_taken_is_given_back) {
  IovaSpace space({{2 * kMiB, 4 * kMiB - 1}});
  const uint64_t first = space.take(2 * kMiB).value();
  EXPECT_FALSE(space.release(first, 4096));
  EXPECT_FALSE(space.release(first + 4096, 4096));
  EXPECT_TRUE(space.release(first, 2 * kMiB));
  EXPECT_FALSE(space.release(first, 2 * kMiB));
  EXPECT_EQ(space.take(2 * kMiB), first);
}

TEST(IovaSpace, the_window_of_interrupts_is_never_given) {
  IovaSpace space(IovaSpace::cautious_ranges());
  uint64_t last = 0;
  while (const auto address = space.take(256 * kMiB)) {
    EXPECT_TRUE(*address + 256 * kMiB <= 0xfee00000 || *address > 0xfeefffff);
    last = *address + 256 * kMiB;
  }
  EXPECT_GT(last, uint64_t{1} << 38);
  EXPECT_LE(last, uint64_t{1} << 39);
}

TEST(IovaSpace, random_takes_never_overlap) {
  const uint64_t seed = std::random_device{}();
  SCOPED_TRACE("seed " + std::to_string(seed));
  std::mt19937_64 random(seed);
  IovaSpace space({{0, 16 * kMiB - 1}, {32 * kMiB, 40 * kMiB - 1}});
  std::map<uint64_t, uint64_t> mine;
  for (int i = 0; i < 20000; ++i) {
    if (random() % 2 == 0 && !mine.empty()) {
      auto one = mine.begin();
      std::advance(one, static_cast<long>(random() % mine.size()));
      ASSERT_TRUE(space.release(one->first, one->second));
      mine.erase(one);
      continue;
    }
    const uint64_t bytes = (1 + random() % 700) * 4096;
    const auto address = space.take(bytes);
    if (!address) continue;
    const auto next = mine.lower_bound(*address);
    if (next != mine.end()) {
      ASSERT_LE(*address + bytes, next->first);
    }
    if (next != mine.begin()) {
      ASSERT_LE(std::prev(next)->first + std::prev(next)->second, *address);
    }
    const uint64_t last = *address + bytes - 1;
    ASSERT_TRUE(last < 16 * kMiB || (*address >= 32 * kMiB && last < 40 * kMiB));
    mine[*address] = bytes;
  }
}

/// What VFIO_IOMMU_GET_INFO answers: a capability of another kind, then the list of ranges.
std::vector<uint8_t> iommu_info(const std::vector<IovaRange>& ranges) {
  vfio_iommu_type1_info head{};
  head.flags = VFIO_IOMMU_INFO_CAPS;
  head.cap_offset = sizeof head;
  vfio_info_cap_header other{};
  other.id = VFIO_IOMMU_TYPE1_INFO_DMA_AVAIL;
  other.next = sizeof head + sizeof other;
  vfio_info_cap_header list{};
  list.id = VFIO_IOMMU_TYPE1_INFO_CAP_IOVA_RANGE;
  const uint32_t count_and_padding[2] = {static_cast<uint32_t>(ranges.size()), 0};
  std::vector<uint8_t> info;
  const auto append = [&info](const void* data, size_t bytes) {
    const auto* const from = static_cast<const uint8_t*>(data);
    info.insert(info.end(), from, from + bytes);
  };
  append(&head, sizeof head);
  append(&other, sizeof other);
  append(&list, sizeof list);
  append(count_and_padding, sizeof count_and_padding);
  for (const IovaRange& range : ranges) append(&range, sizeof range);
  return info;
}

TEST(IommuInfo, ranges_are_found_behind_other_capabilities) {
  const auto ranges = ranges_in_iommu_info(iommu_info({{0, 0xfedfffff}, {0xfef00000, 0xffffffff}}));
  ASSERT_EQ(ranges.size(), 2u);
  EXPECT_EQ(ranges[0].last, 0xfedfffffu);
  EXPECT_EQ(ranges[1].first, 0xfef00000u);
}

TEST(IommuInfo, without_the_list_the_cautious_ranges_are_taken) {
  std::vector<uint8_t> info = iommu_info({{0, 0xffff}});
  vfio_iommu_type1_info head{};
  std::memcpy(info.data(), &head, sizeof head);  // no capabilities
  EXPECT_EQ(ranges_in_iommu_info(info).size(), IovaSpace::cautious_ranges().size());
  EXPECT_EQ(ranges_in_iommu_info({}).size(), IovaSpace::cautious_ranges().size());
}

TEST(IommuInfo, an_answer_that_was_cut_off_is_read_as_far_as_it_goes) {
  const std::vector<uint8_t> whole = iommu_info({{0, 0xffff}, {0x20000, 0x2ffff}});
  for (size_t bytes = 0; bytes <= whole.size(); ++bytes) {
    const auto ranges =
        ranges_in_iommu_info(std::vector<uint8_t>(whole.begin(), whole.begin() + long(bytes)));
    EXPECT_LE(ranges.size(), 2u);
  }
}

TEST(IommuInfo, capabilities_that_go_in_circles_end) {
  std::vector<uint8_t> info = iommu_info({});
  vfio_info_cap_header other{};
  other.next = sizeof(vfio_iommu_type1_info);  // itself
  std::memcpy(info.data() + sizeof(vfio_iommu_type1_info), &other, sizeof other);
  EXPECT_EQ(ranges_in_iommu_info(info).size(), IovaSpace::cautious_ranges().size());
}

}  // namespace
}  // namespace gofs::ssd::vfio
