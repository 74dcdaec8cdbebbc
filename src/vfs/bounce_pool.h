// SPDX-License-Identifier: Apache-2.0
//
// Spare memory for requests whose buffers the SSD does not reach (near_lanes.h, near_group.h):
// pieces of three sizes, so that many small requests and few large ones each find their own. A
// piece is taken before anything else, and nothing is waited for with one in hand but the request
// itself; so who waits for a piece gets one when others are done, whatever they wait for.
#pragma once

#include "simt/atomic.h"
#include "simt/clock.h"
#include "simt/warp.h"

namespace gofs::vfs {

/// What one request of a lane, a warp or a block moves at most in one go: it then is as whole as
/// one of global memory.
using gofs::kBounceBytesMax;
/// What the requests of a warp's lanes move together: two pieces of the largest size, side by side.
inline constexpr uint64_t kBounceBytesOfLanes = 2 * kBounceBytesMax;

/// Pieces of one size.
struct BouncePieces {
  uint8_t* memory;
  uint32_t* taken;  // a bit each
  uint32_t count;
  uint32_t shift;  // of a piece's bytes

  GOFS_HD uint32_t words() const { return (count + 31) / 32; }
  /// The bits of a word that stand for pieces.
  GOFS_HD uint32_t bits_of(uint32_t word) const {
    const uint32_t left = count - 32 * word;
    return left >= 32 ? ~0u : (1u << left) - 1;
  }
};

inline constexpr uint32_t kBounceSizes = 3;

/// 4, 16 and 64 KiB.
GOFS_HD constexpr uint32_t bounce_shift(uint32_t size) { return 12 + 2 * size; }

struct BouncePool {
  BouncePieces sizes[kBounceSizes];
};

/// Memory taken from the pool. `bytes` 0: none.
struct Bounce {
  uint8_t* memory;
  uint64_t bytes;
  uint32_t* word;
  uint32_t bits;
};

namespace detail {

/// Takes a piece, or two side by side; null memory: there is none. By one lane.
GOFS_HD inline Bounce try_take_of(const BouncePieces& pieces, bool two) {
  const uint32_t start = simt::processor_id();
  for (uint32_t probe = 0; probe < pieces.words(); ++probe) {
    const uint32_t index = (start + probe) % pieces.words();
    const uint32_t usable = pieces.bits_of(index);
    uint32_t& word = pieces.taken[index];
    for (uint32_t taken = simt::load_relaxed(word);;) {
      const uint32_t free = usable & ~taken;
      const uint32_t fit = two ? free & free >> 1 & 0x55555555u : free;
      if (fit == 0) break;
      const uint32_t bit = simt::lowest_bit(fit);
      const uint32_t bits = (two ? 3u : 1u) << bit;
      // [V22]
      if (simt::AtomicRef<uint32_t>(word).compare_exchange_weak(
              taken, taken | bits, simt::memory_order_acquire, simt::memory_order_relaxed)) {
        const uint64_t number = uint64_t{index} * 32 + bit;
        return {pieces.memory + (number << pieces.shift), (two ? 2ull : 1ull) << pieces.shift,
                &word, bits};
      }
    }
  }
  return {};
}

}  // namespace detail

/// The smallest that has `wanted` bytes, or, where all such are taken, less, but `least`. `bytes` 0
/// in the answer: none. By one lane; least <= kBounceBytesMax.
GOFS_HD inline Bounce try_take_bounce(const BouncePool& pool, uint64_t least, uint64_t wanted) {
  if (wanted > kBounceBytesMax) {
    const Bounce two = detail::try_take_of(pool.sizes[kBounceSizes - 1], true);
    if (two.bytes != 0) return two;
  }
  for (uint32_t size = kBounceSizes; size-- > 0;) {
    const uint64_t smaller = size == 0 ? 0 : uint64_t{1} << bounce_shift(size - 1);
    if (smaller >= wanted) continue;  // which will do
    if (uint64_t{1} << bounce_shift(size) < least) break;
    const Bounce taken = detail::try_take_of(pool.sizes[size], false);
    if (taken.bytes != 0) return taken;
  }
  return {};
}

/// The same of `bytes`, at most kBounceBytesMax; `bytes` 0 in the answer: others had it all for
/// `timeout_ns`. By one lane, which holds nothing yet.
GOFS_HD inline Bounce take_bounce(const BouncePool& pool, uint64_t bytes, uint64_t timeout_ns) {
  const simt::Deadline deadline = simt::Deadline::after_ns(timeout_ns);
  simt::Backoff backoff;
  for (;;) {
    const Bounce bounce = try_take_bounce(pool, bytes, bytes);
    if (bounce.bytes != 0 || deadline.passed()) return bounce;
    backoff.pause();
  }
}

/// By the lane that took it; no other uses the memory any more.
GOFS_HD inline void release_bounce(const Bounce& bounce) {
  simt::AtomicRef<uint32_t>(*bounce.word)
      .fetch_and(~bounce.bits, simt::memory_order_release);  // [V22]
}

/// Bytes that are taken now, of those that the calling lane looks at.
GOFS_HD inline uint64_t bounce_bytes_used(simt::AnyWarp auto warp, const BouncePool& pool) {
  uint64_t bytes = 0;
  for (const BouncePieces& pieces : pool.sizes) {
    for (uint32_t i = warp.thread_rank(); i < pieces.words(); i += warp.size()) {
      bytes += uint64_t{simt::popcount(simt::load_relaxed(pieces.taken[i]))} << pieces.shift;
    }
  }
  return bytes;
}

}  // namespace gofs::vfs
