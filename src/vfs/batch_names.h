// SPDX-License-Identifier: Apache-2.0
//
// Names that come more than once in a batch of new files (batch_create.h): the lane that claims one
// first makes it, and where it cannot, the next one. The batch holds the directory exclusively, so
// no other thread enters any of them, and its warps need not wait for each other: each batch has a
// table of its names, by their hashes, with open addressing.
#pragma once

#include "vfs/batch.h"

namespace gofs::vfs::detail {

/// Places of a batch's table for each of its files.
inline constexpr uint32_t kNameSlotsPerFile = 2;

/// How many of the names are where not all warps reach them, which all warps look at. Collective,
/// uniform; warps 0 to `warp_count` - 1 do it together, each its share.
GOFS_HD inline uint32_t count_hidden_names(simt::AnyWarp auto warp, const char* const* names,
                                           uint32_t count, uint32_t warp_index,
                                           uint32_t warp_count) {
  uint32_t hidden = 0;
  for (uint64_t i = uint64_t{warp_index} * warp.size() + warp.thread_rank(); i < count;
       i += uint64_t{warp_count} * warp.size()) {
    hidden += simt::is_common_source(names[i]) ? 0 : 1;
  }
  return simt::reduce_add(warp, hidden);
}

/// Begins with no name claimed. Collective; warps 0 to `warp_count` - 1 do it together, before any
/// of them claims one.
GOFS_HD inline void clear_names(simt::AnyWarp auto warp, const BatchTable& table,
                                const Batch& batch, uint32_t warp_index, uint32_t warp_count) {
  uint32_t* const slots = table.name_slots + uint64_t{kNameSlotsPerFile} * batch.first;
  for (uint32_t i = warp_index * warp.size() + warp.thread_rank();
       i < kNameSlotsPerFile * batch.count; i += warp_count * warp.size()) {
    simt::store_relaxed(slots[i], 0u);
  }
  warp.sync();
}

/// Whether `text`, which ends with a NUL, is `name`.
GOFS_HD inline bool is_name(const char* text, const f2fs::EntryName& name) {
  for (uint32_t i = 0; i < name.length; ++i) {
    if (text[i] != name.bytes[i]) return false;
  }
  return text[name.length] == '\0';
}

/// What a place of the table says: the number of a file, one more than its index, and what has
/// become of its name.
inline constexpr uint32_t kNameMade = 1u << 31;  // the directory has it
inline constexpr uint32_t kNameFailed = ~0u;     // its file could not be made; any name may follow

/// Where a name has its place in the table of a batch, and whose it is.
struct NameClaim {
  uint32_t* slot;
  uint32_t seen;  // what was there; 0: the caller has claimed it
};

/// Claims the name of file `index` of the batch, one of `names`, unless another file has. One lane.
GOFS_HD inline NameClaim claim_name(const BatchTable& table, const Batch& batch,
                                    const char* const* names, uint32_t index,
                                    const f2fs::EntryName& name, uint32_t hash) {
  uint32_t* const slots = table.name_slots + uint64_t{kNameSlotsPerFile} * batch.first;
  const uint32_t count = kNameSlotsPerFile * batch.count;
  // There are more places than claims: who fails does not claim again.
  for (uint32_t slot = hash % count;; slot = slot + 1 < count ? slot + 1 : 0) {
    uint32_t seen = 0;
    // Nothing is passed on but the number: the names were there before.
    if (simt::AtomicRef<uint32_t>(slots[slot])
            .compare_exchange_strong(seen, index + 1, simt::memory_order_relaxed,
                                     simt::memory_order_relaxed)) {
      return {&slots[slot], 0};
    }
    if (seen != kNameFailed && is_name(names[(seen & ~kNameMade) - 1], name)) {
      return {&slots[slot], seen};
    }
  }
}

/// Lets others know what has become of a name that the caller has claimed. One lane.
GOFS_HD inline void settle_name(uint32_t* slot, uint32_t index, bool made) {
  simt::store_relaxed(*slot, made ? (index + 1) | kNameMade : kNameFailed);
}

}  // namespace gofs::vfs::detail
