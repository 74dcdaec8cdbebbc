// SPDX-License-Identifier: Apache-2.0
//
// Node address table: node id -> block address. A free nid has address 0. Block places are in
// geometry.h; entries in the NAT journal (summary.h) override these.
#pragma once

#include <cstddef>
#include <cstdint>

#include "format/little_endian.h"

namespace gofs::format {

struct NatEntry {
  uint8_t version;  // goes up by one when the node is deleted, so that old summaries are stale
  le32 ino;
  le32 block_addr;
};
static_assert(sizeof(NatEntry) == 9 && offsetof(NatEntry, block_addr) == 5);

inline constexpr uint32_t kNatEntriesPerBlock = 455;

struct NatBlock {
  NatEntry entries[kNatEntriesPerBlock];
  uint8_t unused;
};
static_assert(sizeof(NatBlock) == kBlockBytes);

}  // namespace gofs::format
