// SPDX-License-Identifier: Apache-2.0
//
// Entries in one dentry area, which the calling lane holds exclusively: where there is room for
// one, putting it there, taking it away. Nothing here is collective.
#pragma once

#include "f2fs/directory.h"

namespace gofs::f2fs {

/// A name: 1 to 255 bytes, no slash, no NUL.
struct EntryName {
  const char* bytes;
  uint32_t length;
};

namespace detail {

inline constexpr uint32_t kNoSlot = 0xffffffffu;

/// A dentry area that may be changed.
struct DentrySpace {
  uint8_t* base;
  format::DentryArea area;

  GOFS_HD format::Dentry& dentry(uint32_t slot) const {
    return *reinterpret_cast<format::Dentry*>(base + area.dentry_at(slot));
  }
};

GOFS_HD inline DentrySpace block_space(uint8_t* page) {
  return {page, format::dentry_block_area()};
}

GOFS_HD inline DentrySpace inline_space(format::NodeBlock& node, const Inode& inode) {
  return {reinterpret_cast<uint8_t*>(&node) + inode.inline_offset,
          format::inline_dentry_area(inode.inline_bytes)};
}

/// The first of `count` (at most 32) contiguous unused slots, or kNoSlot.
GOFS_HD inline uint32_t find_free_slots(const DentryView& view, uint32_t count) {
  uint32_t run = 0;
  for (uint32_t first = 0; first < view.area.slot_count; first += 32) {
    const uint32_t used = used_slots(view, first / 32);
    if (used == ~0u) {
      run = 0;
      continue;
    }
    for (uint32_t bit = 0; bit < 32; ++bit) {
      run = (used >> bit & 1u) != 0 ? 0 : run + 1;
      if (run == count) return first + bit + 1 - count;
    }
  }
  return kNoSlot;
}

/// Whether a slot from `from` on is used.
GOFS_HD inline bool any_used_slot(const DentryView& view, uint32_t from) {
  for (uint32_t first = 0; first < view.area.slot_count; first += 32) {
    const uint32_t rest = view.area.slot_count - first;
    uint32_t used = used_slots(view, first / 32) & (rest < 32 ? (1u << rest) - 1 : ~0u);
    if (from > first) used &= from - first < 32 ? ~0u << (from - first) : 0u;
    if (used != 0) return true;
  }
  return false;
}

/// Puts an entry into unused slots from `slot` on.
GOFS_HD inline void put_entry(const DentrySpace& space, uint32_t slot, const EntryName& name,
                              const DirectoryEntry& entry) {
  const uint32_t slots = format::name_slots(name.length);
  GOFS_ASSERT(space.area.name_fits(slot, name.length) && name.length != 0);
  uint8_t* const bytes = space.base + space.area.name_at(slot);
  for (uint32_t i = 0; i < slots * format::kNameSlotBytes; ++i) {
    bytes[i] = i < name.length ? static_cast<uint8_t>(name.bytes[i]) : uint8_t{0};
  }
  for (uint32_t i = 0; i < slots; ++i) {
    format::Dentry& dentry = space.dentry(slot + i);
    dentry = format::Dentry{};
    format::set_lsb_bit(space.base, slot + i, true);
  }
  format::Dentry& first = space.dentry(slot);
  first.hash_code = format::name_hash(name.bytes, name.length);
  first.ino = entry.ino;
  first.name_len = static_cast<uint16_t>(name.length);
  first.file_type = entry.type;
}

/// Takes the entry in `slot` away, whose name has `length` bytes.
GOFS_HD inline void clear_entry(const DentrySpace& space, uint32_t slot, uint32_t length) {
  const uint32_t slots = format::name_slots(length);
  for (uint32_t i = 0; i < slots; ++i) format::set_lsb_bit(space.base, slot + i, false);
}

}  // namespace detail

}  // namespace gofs::f2fs
