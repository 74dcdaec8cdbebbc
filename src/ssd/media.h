// SPDX-License-Identifier: Apache-2.0
//
// What a virtual SSD keeps its data in: one contiguous range of memory; or a table of 2 MiB chunks
// of which only those that were written exist, so that a 1 TiB image fits in a few hundred MiB; or
// something that the host alone reaches, a file, which it is asked to move data from and to.
// Media is trivially copyable and owns nothing; media_host.h makes them.
//
// A chunk that exists is never moved or taken away, so a pointer into it stays good.
#pragma once

#include "format/nvme.h"
#include "simt/atomic.h"
#include "simt/host_call.h"
#include "simt/warp.h"

namespace gofs::ssd {

inline constexpr uint32_t kChunkShift = 21;
inline constexpr uint64_t kChunkBytes = uint64_t{1} << kChunkShift;

/// What a table of chunks has where there is none, and for a moment, while one is taken there. Else
/// it is an address.
inline constexpr uint64_t kNoChunk = 0;
inline constexpr uint64_t kChunkIsTaken = 1;
GOFS_HD constexpr bool has_memory(uint64_t chunk) { return chunk > kChunkIsTaken; }

/// Zeroed chunks that no block needs yet: a stack of indices, of which none comes back. The upper
/// half of `head` changes with every operation, so that a stale compare-and-swap fails; the lower
/// half is an index + 1.
struct ChunkPool {
  struct Entry {
    uint64_t memory;
    uint32_t next;
    uint32_t reserved;
  };
  uint64_t head;
  Entry* entries;

  /// Index + 1 of the chunk taken, 0 when there is none.
  GOFS_HD uint32_t take() {
    for (uint32_t attempt = 0; attempt < kAttemptsMax; ++attempt) {
      uint64_t seen = simt::load_acquire(head);
      const auto top = static_cast<uint32_t>(seen);
      if (top == 0) return 0;
      const uint32_t next = simt::load_relaxed(entries[top - 1].next);
      if (swap(seen, next)) return top;
    }
    return 0;
  }

 private:
  static constexpr uint32_t kAttemptsMax = 1u << 16;

  GOFS_HD bool swap(uint64_t seen, uint32_t top) {
    const uint64_t wanted = ((seen >> 32) + 1) << 32 | top;
    return simt::AtomicRef<uint64_t>(head).compare_exchange_strong(
        seen, wanted, simt::memory_order_acq_rel, simt::memory_order_relaxed);
  }
};

/// A mark says how often a unit of 1 << kMarkShift bytes was written (modulo 2^32), for who brings
/// what has changed to where it shall last.
inline constexpr uint32_t kMarkShift = 18;

/// What the host is asked to do with a part of media that it alone reaches.
struct MediaTransfer {
  enum class Kind : uint32_t { kRead, kWrite, kZero };
  void* media = nullptr;  // Media::transfer_context
  Kind kind = Kind::kRead;
  uint64_t offset = 0;
  uint64_t bytes = 0;
  uint64_t prp1 = 0;  // the driver's memory, for kRead and kWrite
  uint64_t prp2 = 0;
  uint32_t page_count = 0;
  format::nvme::Status status = format::nvme::kSuccess;  // the answer
};

struct Media {
  uint8_t* base = nullptr;                // contiguous, or
  uint64_t* chunks = nullptr;             // addresses; 0: reads zeros; or
  simt::HostFunction transfer = nullptr;  // moves data; its context is a MediaTransfer
  void* transfer_context = nullptr;
  ChunkPool* pool = nullptr;  // null: a missing chunk cannot be written
  uint64_t bytes = 0;
  bool read_only = false;
  simt::HostFunction sync = nullptr;  // makes all earlier writes durable; null: nothing to do
  void* sync_context = nullptr;
  uint32_t* marks = nullptr;  // of each unit; null: it is not asked

  /// True if there are no pointers to the data; never on a GPU.
  GOFS_HD bool is_apart() const { return simt::can_call_host(transfer); }

  /// True if the bytes from `offset` on, to the end of its block of 2 MiB, lie apart from the rest.
  GOFS_HD bool is_chunked() const { return base == nullptr; }

  /// How many of the `bytes` at `offset` lie together.
  GOFS_HD uint64_t contiguous_bytes(uint64_t offset, uint64_t wanted) const {
    if (!is_chunked()) return wanted;
    return simt::min(wanted, kChunkBytes - (offset & (kChunkBytes - 1)));
  }

  /// Marks that some of the `bytes` (not 0) at `offset` have changed: after it, so that who sees
  /// the mark sees the data, and before the command is completed. By one lane; what others have
  /// moved is synchronised with it.
  GOFS_HD void mark_changed(uint64_t offset, uint64_t changed_bytes) const {
    if (marks == nullptr) return;
    const simt::Release release;
    const uint64_t last = (offset + changed_bytes - 1) >> kMarkShift;
    for (uint64_t unit = offset >> kMarkShift; unit <= last; ++unit) {
      release.add(marks[unit], 1u);  // [S9]
    }
  }

  /// Where the byte at `offset` is, or null where nothing was ever written.
  GOFS_HD uint8_t* find(uint64_t offset) const {
    if (!is_chunked()) return base + offset;
    const uint64_t chunk = simt::load_acquire(chunks[offset >> kChunkShift]);  // [S6]
    return has_memory(chunk) ? reinterpret_cast<uint8_t*>(chunk) + (offset & (kChunkBytes - 1))
                             : nullptr;
  }

  /// The same for writing: a missing chunk is taken from the pool, one for all that meet there.
  /// Null when the pool is empty.
  GOFS_HD uint8_t* find_or_allocate(uint64_t offset) const {
    uint8_t* const found = find(offset);
    if (found != nullptr || pool == nullptr) return found;
    simt::AtomicRef<uint64_t> entry(chunks[offset >> kChunkShift]);
    // Who has taken the place needs a few steps and waits for nothing, so the others may wait.
    for (;;) {
      uint64_t seen = entry.load(simt::memory_order_acquire);  // [S6]
      if (has_memory(seen)) return find(offset);
      if (seen == kNoChunk &&
          entry.compare_exchange_strong(seen, kChunkIsTaken, simt::memory_order_relaxed,
                                        simt::memory_order_relaxed)) {
        const uint32_t spare = pool->take();
        entry.store(spare == 0 ? kNoChunk : pool->entries[spare - 1].memory,
                    simt::memory_order_release);  // [S6]
        return find(offset);
      }
    }
  }
};

}  // namespace gofs::ssd
