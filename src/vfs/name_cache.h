// SPDX-License-Identifier: Apache-2.0
//
// Names that were looked up lately: a table of (directory, name) -> inode, and one of whole paths
// for the hot ones (the dentry cache and the direct look-up table of GoFS, SOSP'25, section 3.3).
// Entries have a fixed size; longer names are simply not kept.
//
// An entry is read without a lock: its sequence number is odd while it is being written, and a
// reader whose two looks at it differ has seen nothing. The lanes of a warp compare one word each.
//
// What was found on disk may have gone since. So a look-up remembers the sequence number from
// before it asked the disk, and enters what it found only where it still is that one; a call that
// removes a name or lets it lead elsewhere does that first and erases the entry then.
#pragma once

#include "format/dentry.h"
#include "simt/atomic.h"
#include "simt/clock.h"
#include "simt/warp.h"

namespace gofs::vfs {

/// What a name leads to. ino 0: nothing known.
struct NameTarget {
  uint32_t ino;
  uint32_t type;  // format::FileType
};

/// `kKeyWords` 64-bit words of key: the first holds `scope` (56 bits: a directory's ino,
/// or of a path, what it is known for) and the length, the others the bytes, zero-padded.
template <uint32_t kKeyWords>
struct alignas(64) NameEntry {
  uint64_t sequence;
  uint64_t value;
  uint64_t key[kKeyWords];

  static constexpr uint32_t kBytesMax = (kKeyWords - 1) * 8;
};

namespace detail {

GOFS_HD inline uint64_t key_word(uint32_t index, uint64_t scope, const char* name,
                                 uint32_t length) {
  if (index == 0) return uint64_t{length} << 56 | scope;
  uint64_t word = 0;
  const uint32_t first = (index - 1) * 8;
  for (uint32_t i = 0; i < 8 && first + i < length; ++i) {
    word |= uint64_t{static_cast<uint8_t>(name[first + i])} << (8 * i);
  }
  return word;
}

}  // namespace detail

template <uint32_t kKeyWords>
struct NameTable {
  using Entry = NameEntry<kKeyWords>;
  Entry* entries;
  uint32_t mask;  // number of entries - 1; a power of two

  GOFS_HD Entry& entry_of(uint64_t scope, uint32_t hash) const {
    const uint64_t mixed = (uint64_t{hash} << 32 ^ scope) * 0x9E3779B97F4A7C15ull;
    return entries[static_cast<uint32_t>(mixed >> 32) & mask];
  }

  /// `seen` is for insert(), where nothing is found. Collective, uniform.
  GOFS_HD bool find(simt::AnyWarp auto warp, uint64_t scope, uint32_t hash, const char* name,
                    uint32_t length, NameTarget& target, uint64_t& seen) const {
    seen = 1;
    if (length > Entry::kBytesMax) return false;
    Entry& entry = entry_of(scope, hash);
    // Each lane makes sure for the words that it compares. [V1]
    const uint64_t before = simt::load_acquire(entry.sequence);
    bool same = (before & 1) == 0;
    const uint32_t words = 1 + (length + 7) / 8;
    for (uint32_t i = warp.thread_rank(); i < words && same; i += warp.size()) {
      same = simt::AtomicRef<uint64_t>(entry.key[i]).load(simt::memory_order_acquire) ==
             detail::key_word(i, scope, name, length);
    }
    const uint64_t value = simt::AtomicRef<uint64_t>(entry.value).load(simt::memory_order_acquire);
    seen = warp.shfl(before, 0);
    same = same && seen == before && simt::load_relaxed(entry.sequence) == before;
    target = NameTarget{static_cast<uint32_t>(value), static_cast<uint32_t>(value >> 32)};
    return warp.all(same) && target.ino != 0;
  }

  /// Enters what was found after find() had said `seen`; does nothing if the entry was written
  /// since. Collective, uniform.
  GOFS_HD void insert(simt::AnyWarp auto warp, uint64_t scope, uint32_t hash, const char* name,
                      uint32_t length, const NameTarget& target, uint64_t seen) const {
    if (length > Entry::kBytesMax || (seen & 1) != 0) return;
    Entry& entry = entry_of(scope, hash);
    uint32_t writing = 0;
    if (warp.thread_rank() == 0) {
      uint64_t before = seen;
      writing = simt::AtomicRef<uint64_t>(entry.sequence)
                    .compare_exchange_strong(before, seen + 1, simt::memory_order_acquire,
                                             simt::memory_order_relaxed);
    }
    if (warp.shfl(writing, 0) == 0) return;
    warp.sync();
    const uint32_t words = 1 + (length + 7) / 8;
    for (uint32_t i = warp.thread_rank(); i < words; i += warp.size()) {
      simt::store_release(entry.key[i], detail::key_word(i, scope, name, length));
    }
    if (warp.thread_rank() == 0) {
      simt::store_release(entry.value, uint64_t{target.type} << 32 | target.ino);
    }
    warp.sync();
    if (warp.thread_rank() == 0) simt::store_release(entry.sequence, seen + 2);  // [V1]
    warp.sync();  // what a warp has entered, each of its lanes finds
  }

  /// Invalidates a name, and keeps what was found before from being entered. By one lane, after the
  /// change, which every look-up from now on sees.
  GOFS_HD void erase(uint64_t scope, uint32_t hash, uint32_t length) const {
    if (length > Entry::kBytesMax) return;
    Entry& entry = entry_of(scope, hash);
    simt::AtomicRef<uint64_t> sequence(entry.sequence);
    simt::Backoff backoff;
    // Who writes the entry waits for nothing: the wait is bounded by that.
    for (;;) {
      uint64_t before = sequence.load(simt::memory_order_relaxed);
      if ((before & 1) == 0 &&
          sequence.compare_exchange_strong(before, before + 1, simt::memory_order_acquire,
                                           simt::memory_order_relaxed)) {
        simt::store_release(entry.value, uint64_t{0});
        simt::store_release(entry.sequence, before + 2);  // [V1]
        return;
      }
      backoff.pause();
    }
  }
};

/// A name of up to 40 bytes in its directory; a path of up to 232 bytes.
using DentryTable = NameTable<6>;
using PathTable = NameTable<30>;
static_assert(sizeof(NameEntry<6>) == 64 && sizeof(NameEntry<30>) == 256);

/// Hash of a path, for PathTable.
GOFS_HD inline uint32_t path_hash(const char* path, uint32_t length) {
  uint32_t hash = 2166136261u;
  for (uint32_t i = 0; i < length; ++i) hash = (hash ^ static_cast<uint8_t>(path[i])) * 16777619u;
  return hash;
}

}  // namespace gofs::vfs
