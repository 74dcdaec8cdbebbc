// SPDX-License-Identifier: Apache-2.0
//
// PRPs: how a command names the driver's memory. The first entry may start anywhere in its page;
// the second is the second page, or, when there are more, a list whose pages are chained by their
// last entry while more entries are needed.
#pragma once

#include "format/nvme.h"
#include "simt/platform.h"

namespace gofs::ssd {

inline constexpr uint64_t kPageMask = kBlockBytes - 1;

struct PrpEntry {
  uint64_t address;
  format::nvme::Status status;
};

/// Pages that `bytes` from `prp1` on touch.
GOFS_HD inline uint32_t prp_page_count(uint64_t prp1, uint32_t bytes) {
  return static_cast<uint32_t>(((prp1 & kPageMask) + bytes + kPageMask) >> kBlockShift);
}

/// Checks what needs no load.
GOFS_HD inline format::nvme::Status check_prps(uint64_t prp1, uint64_t prp2, uint32_t page_count) {
  using namespace format::nvme;
  if ((prp1 & 3) != 0) return kInvalidPrpOffset;
  if (prp1 == 0) return kDataTransferError;
  if (page_count <= 1) return kSuccess;
  if ((prp2 & (page_count == 2 ? kPageMask : 7)) != 0) return kInvalidPrpOffset;
  return prp2 == 0 ? kDataTransferError : kSuccess;
}

/// The address of page `index` of a command that touches `page_count`; check_prps() passed.
GOFS_HD inline PrpEntry prp_page(uint64_t prp1, uint64_t prp2, uint32_t page_count,
                                 uint32_t index) {
  using namespace format::nvme;
  constexpr uint32_t kEntriesPerPage = kBlockBytes / sizeof(uint64_t);
  if (index == 0) return {prp1, kSuccess};
  if (page_count == 2) return {prp2, kSuccess};
  uint64_t list = prp2;
  uint32_t room = kEntriesPerPage - static_cast<uint32_t>((prp2 & kPageMask) / sizeof(uint64_t));
  uint32_t left = page_count - 1;  // entries from here on
  uint32_t skip = index - 1;
  // Ends: each round either answers or takes off at least the entries of one list page; the first
  // page may hold nothing but the pointer to the next.
  for (;;) {
    const auto* entries = reinterpret_cast<const uint64_t*>(list);
    const bool chained = left > room;
    if (!chained || skip < room - 1) {
      const uint64_t address = entries[skip];
      if ((address & kPageMask) != 0) return {0, kInvalidPrpOffset};
      return {address, address == 0 ? kDataTransferError : kSuccess};
    }
    list = entries[room - 1];
    if ((list & kPageMask) != 0) return {0, kInvalidPrpOffset};
    if (list == 0) return {0, kDataTransferError};
    left -= room - 1;
    skip -= room - 1;
    room = kEntriesPerPage;
  }
}

/// Range `index` of the `range_count` of a Dataset Management command; check_prps() passed. It may
/// lie across the two pages, in quarters, since addresses are multiples of four bytes.
GOFS_HD inline format::nvme::DatasetRange load_range(uint64_t prp1, uint64_t prp2,
                                                     uint32_t range_count, uint32_t index) {
  constexpr auto kRangeBytes = static_cast<uint32_t>(sizeof(format::nvme::DatasetRange));
  const uint32_t page_count = prp_page_count(prp1, range_count * kRangeBytes);
  const auto in_first = static_cast<uint32_t>(kBlockBytes - (prp1 & kPageMask));
  uint32_t words[4];
  for (uint32_t k = 0; k < 4; ++k) {
    const uint32_t at = index * kRangeBytes + 4 * k;
    const uint32_t page = at < in_first ? 0 : 1;
    const uint64_t start = prp_page(prp1, prp2, page_count, page).address;
    words[k] = *reinterpret_cast<const uint32_t*>(start + (page == 0 ? at : at - in_first));
  }
  return {words[0], words[1], uint64_t{words[3]} << 32 | words[2]};
}

}  // namespace gofs::ssd
