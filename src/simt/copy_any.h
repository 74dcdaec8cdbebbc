// SPDX-License-Identifier: Apache-2.0
//
// Copies between places of global memory whose addresses need not be aligned, nor alike: by words
// of the target, which a GPU puts together from two of the source, several under way at a time.
#pragma once

#include <cstring>

#include "simt/copy_near.h"

namespace gofs::simt {

namespace detail {

#if GOFS_ON_GPU
/// The share of `count` words, of which target and source are aligned, and the bytes of the first
/// begin `shift` bytes behind the source.
__device__ inline void copy_shifted(const CopyShare& share, uint32_t* to, const uint32_t* from,
                                    uint32_t shift, uint64_t count) {
  constexpr uint32_t kInFlight = 8;
  const uint64_t step = share.size;
  for (uint64_t first = share.rank; first < count; first += kInFlight * step) {
    uint32_t low[kInFlight];
    uint32_t high[kInFlight];
#pragma unroll
    for (uint32_t k = 0; k < kInFlight; ++k) {
      // The last one again, rather than nothing: then no load waits for a branch. Nothing is loaded
      // of which no byte is wanted.
      const uint64_t index = min(first + k * step, count - 1);
      low[k] = __ldcv(from + index);
      high[k] = __ldcv(from + index + (shift != 0 ? 1 : 0));
    }
#pragma unroll
    for (uint32_t k = 0; k < kInFlight; ++k) {
      const uint64_t index = first + k * step;
      if (index < count) __stcg(to + index, __funnelshift_r(low[k], high[k], 8 * shift));
    }
  }
}
#endif

}  // namespace detail

/// Copies the calling lane's share of `bytes`; the ranges do not overlap, and all lanes reach both.
/// Each lane's part is visible to that lane only: sync() before others read it. Lanes may diverge.
GOFS_NOINLINE GOFS_HD inline void copy_any(const CopyShare& share, uint8_t* target,
                                           const uint8_t* source, uint64_t bytes) {
#if GOFS_ON_GPU
  const uint64_t head = min((0 - reinterpret_cast<uintptr_t>(target)) & 3, bytes);
  const uint64_t words = (bytes - head) / 4;
  if (share.rank < head) target[share.rank] = source[share.rank];
  for (uint64_t i = share.rank + share.size; i < head; i += share.size) target[i] = source[i];
  if (words != 0) {
    const uintptr_t from = reinterpret_cast<uintptr_t>(source) + head;
    detail::copy_shifted(share, reinterpret_cast<uint32_t*>(target + head),
                         reinterpret_cast<const uint32_t*>(from & ~uintptr_t{3}),
                         static_cast<uint32_t>(from & 3), words);
  }
  for (uint64_t i = head + 4 * words + share.rank; i < bytes; i += share.size) {
    target[i] = source[i];
  }
#else
  if (share.rank == 0) std::memcpy(target, source, bytes);
#endif
}

}  // namespace gofs::simt
