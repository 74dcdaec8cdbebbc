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

}  // namespace gofs::ssd
