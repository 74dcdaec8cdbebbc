// SPDX-License-Identifier: Apache-2.0
//
// Physical Region Pages: how a command names its buffer. The first entry may point into a page, all
// others are page-aligned; from the third page on they stand in a list. (NVMe 1.4, section 4.3.)
#pragma once

#include "format/nvme.h"
#include "simt/platform.h"

namespace gofs::nvme {

/// Entries of the list that each submission slot owns; a command spans at most one page more.
inline constexpr uint32_t kPrpListEntries = 64;
/// The most bytes one command can move from a buffer of any alignment.
inline constexpr uint32_t kPrpBytesMax = kPrpListEntries * kBlockBytes;

struct alignas(kPrpListEntries * 8) PrpList {
  uint64_t entries[kPrpListEntries];
};

/// Describes `bytes` at `dma` in `entry`, using `list` (its own address as the device sees it is
/// `list_dma`) when more than two pages are touched. `dma` is a multiple of 4.
GOFS_HD inline void describe_buffer(format::nvme::SubmissionEntry& entry, uint64_t dma,
                                    uint32_t bytes, PrpList& list, uint64_t list_dma) {
  const uint32_t first = kBlockBytes - static_cast<uint32_t>(dma & (kBlockBytes - 1));
  entry.prp1 = dma;
  entry.prp2 = 0;
  if (bytes <= first) return;
  const uint64_t second = dma + first;
  const auto pages = static_cast<uint32_t>(simt::divide_up(bytes - first, kBlockBytes));
  if (pages == 1) {
    entry.prp2 = second;
    return;
  }
  GOFS_ASSERT(pages <= kPrpListEntries);
  for (uint32_t page = 0; page < pages; ++page) {
    list.entries[page] = second + uint64_t{page} * kBlockBytes;
  }
  entry.prp2 = list_dma;
}

}  // namespace gofs::nvme
