// SPDX-License-Identifier: Apache-2.0
//
// Two copies by one warp at once. A round trip to host memory takes 1 to 2 us whatever its size, so
// a warp that moves one block after another waits most of the time; here the loads of both are
// under way before the first store.
#pragma once

#include "simt/copy.h"

namespace gofs::simt {

/// `source` null: the target is set to zero.
struct CopyRange {
  uint8_t* target;
  const uint8_t* source;
  uint32_t bytes;
};

namespace detail {

GOFS_HD inline void copy_one(AnyWarp auto warp, const CopyRange& range) {
  if (range.source == nullptr) {
    zero_bytes(warp, range.target, range.bytes);
  } else {
    copy_bytes(warp, range.target, range.source, range.bytes);
  }
}

}  // namespace detail

/// Copies both ranges; no target overlaps a source or the other target. Collective, all arguments
/// uniform; a range of no bytes is left out. Visibility as for copy_bytes().
GOFS_HD inline void copy_two(AnyWarp auto warp, const CopyRange& a, const CopyRange& b) {
#if GOFS_ON_GPU
  const bool alike = a.bytes == b.bytes && a.source != nullptr && b.source != nullptr;
  if (alike && detail::aligned16(a.target, a.source, a.bytes) &&
      detail::aligned16(b.target, b.source, b.bytes)) {
    constexpr uint32_t kInFlight = 8;
    const auto* from_a = reinterpret_cast<const uint4*>(a.source);
    const auto* from_b = reinterpret_cast<const uint4*>(b.source);
    auto* to_a = reinterpret_cast<uint4*>(a.target);
    auto* to_b = reinterpret_cast<uint4*>(b.target);
    const uint32_t count = a.bytes / 16;
    const uint32_t size = warp.size();
    uint32_t index = warp.thread_rank();
    for (; index + (kInFlight - 1) * size < count; index += kInFlight * size) {
      uint4 held_a[kInFlight];
      uint4 held_b[kInFlight];
#pragma unroll
      for (uint32_t k = 0; k < kInFlight; ++k) held_a[k] = __ldcv(from_a + index + k * size);
#pragma unroll
      for (uint32_t k = 0; k < kInFlight; ++k) held_b[k] = __ldcv(from_b + index + k * size);
#pragma unroll
      for (uint32_t k = 0; k < kInFlight; ++k) __stcg(to_a + index + k * size, held_a[k]);
#pragma unroll
      for (uint32_t k = 0; k < kInFlight; ++k) __stcg(to_b + index + k * size, held_b[k]);
    }
    for (; index < count; index += size) {
      const uint4 held_a = __ldcv(from_a + index);
      const uint4 held_b = __ldcv(from_b + index);
      __stcg(to_a + index, held_a);
      __stcg(to_b + index, held_b);
    }
    return;
  }
#endif
  if (a.bytes != 0) detail::copy_one(warp, a);
  if (b.bytes != 0) detail::copy_one(warp, b);
}

}  // namespace gofs::simt
