// SPDX-License-Identifier: Apache-2.0
//
// Copies between global memory and memory that only some threads reach (address_space.h), by these:
// one lane by itself, or some that share the bytes. The global side goes by 16 bytes, several under
// way at a time; the other one, which is near, in units that its alignment allows.
#pragma once

#include <cstring>

#include "simt/address_space.h"
#include "simt/warp.h"

namespace gofs::simt {

/// Who copies: one of `size` threads, that of rank `rank` among them.
struct CopyShare {
  uint32_t rank;
  uint32_t size;
};

namespace detail {

#if GOFS_ON_GPU
__device__ inline bool is_aligned(const void* pointer, uint32_t unit) {
  return (reinterpret_cast<uintptr_t>(pointer) & (unit - 1)) == 0;
}

__device__ inline void store_near(uint8_t* to, const uint4& value) {
  const uint32_t words[4] = {value.x, value.y, value.z, value.w};
  if (is_aligned(to, 16)) {
    *reinterpret_cast<uint4*>(to) = value;
  } else if (is_aligned(to, 4)) {
#pragma unroll
    for (uint32_t i = 0; i < 4; ++i) reinterpret_cast<uint32_t*>(to)[i] = words[i];
  } else {
#pragma unroll
    for (uint32_t i = 0; i < 16; ++i) to[i] = static_cast<uint8_t>(words[i / 4] >> 8 * (i % 4));
  }
}

__device__ inline uint4 load_near(const uint8_t* from) {
  if (is_aligned(from, 16)) return *reinterpret_cast<const uint4*>(from);
  uint32_t words[4] = {};
  if (is_aligned(from, 4)) {
#pragma unroll
    for (uint32_t i = 0; i < 4; ++i) words[i] = reinterpret_cast<const uint32_t*>(from)[i];
  } else {
#pragma unroll
    for (uint32_t i = 0; i < 16; ++i) words[i / 4] |= uint32_t{from[i]} << 8 * (i % 4);
  }
  return {words[0], words[1], words[2], words[3]};
}

/// Moves the lane's share of `count` chunks, several under way at a time.
template <typename Load, typename Store>
__device__ inline void move_chunks(const CopyShare& share, uint64_t count, Load load, Store store) {
  constexpr uint32_t kInFlight = 8;
  const uint64_t step = share.size;
  for (uint64_t first = share.rank; first < count; first += kInFlight * step) {
    uint4 held[kInFlight];
#pragma unroll
    for (uint32_t k = 0; k < kInFlight; ++k) {
      // The last one again, rather than nothing: then no load waits for a branch.
      held[k] = load(min(first + k * step, count - 1));
    }
#pragma unroll
    for (uint32_t k = 0; k < kInFlight; ++k) {
      if (first + k * step < count) store(first + k * step, held[k]);
    }
  }
}
#endif

/// The lane's share of [0, bytes), 16 at a time. (On a GPU move_chunks() does that.)
template <typename Copy>
GOFS_HD void for_each_chunk(const CopyShare& share, uint64_t bytes, Copy copy) {
  constexpr uint64_t kChunk = 16;
  for (uint64_t at = share.rank * kChunk; at < bytes; at += share.size * kChunk) {
    copy(at, simt::min(kChunk, bytes - at));
  }
}

}  // namespace detail

/// Copies `bytes` from global memory to `target`, which the calling lanes reach. `source` is
/// aligned to 16 bytes. Each lane's part is visible to that lane only: sync() before others read
/// it. Lanes may diverge.
GOFS_NOINLINE GOFS_HD inline void copy_to_near(AnyWarp auto warp, const CopyShare& share,
                                               void* target, const uint8_t* source,
                                               uint64_t bytes) {
#if GOFS_ON_GPU
  auto* const to = static_cast<uint8_t*>(target);
  const auto* const from = reinterpret_cast<const uint4*>(source);
  const uint64_t count = bytes / sizeof(uint4);
  detail::move_chunks(
      share, count, [&](uint64_t index) { return __ldcg(from + index); },
      [&](uint64_t index, const uint4& chunk) {
        detail::store_near(to + index * sizeof(uint4), chunk);
      });
  for (uint64_t i = count * sizeof(uint4) + share.rank; i < bytes; i += share.size) {
    to[i] = source[i];
  }
#else
  uint8_t* const to = reach(warp.thread_rank(), static_cast<uint8_t*>(target));
  detail::for_each_chunk(
      share, bytes, [&](uint64_t at, uint64_t count) { std::memcpy(to + at, source + at, count); });
#endif
}

/// Copies `bytes` from `source`, which the calling lanes reach, to global memory, best aligned to
/// 16 bytes. As copy_to_near().
GOFS_NOINLINE GOFS_HD inline void copy_from_near(AnyWarp auto warp, const CopyShare& share,
                                                 uint8_t* target, const void* source,
                                                 uint64_t bytes) {
#if GOFS_ON_GPU
  const auto* const from = static_cast<const uint8_t*>(source);
  auto* const to = reinterpret_cast<uint4*>(target);
  const uint64_t count = detail::is_aligned(target, sizeof(uint4)) ? bytes / sizeof(uint4) : 0;
  detail::move_chunks(
      share, count, [&](uint64_t index) { return detail::load_near(from + index * sizeof(uint4)); },
      [&](uint64_t index, const uint4& chunk) { to[index] = chunk; });
  for (uint64_t i = count * sizeof(uint4) + share.rank; i < bytes; i += share.size) {
    target[i] = from[i];
  }
#else
  const uint8_t* const from = reach(warp.thread_rank(), static_cast<const uint8_t*>(source));
  detail::for_each_chunk(share, bytes, [&](uint64_t at, uint64_t count) {
    std::memcpy(target + at, from + at, count);
  });
#endif
}

}  // namespace gofs::simt
