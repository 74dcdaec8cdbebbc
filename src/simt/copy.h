// SPDX-License-Identifier: Apache-2.0
//
// Moving bytes with a whole warp. On the GPU each lane keeps eight 16-byte loads in flight, so that
// one warp has a 4 KiB block under way: the round trip to host memory is 1 to 2 us whatever its
// size.
//
// Only memory that all warps reach (is_common_target(), is_common_source()): the instructions are
// those of global memory, and one in shared or local memory by them ends the kernel. What only the
// caller reaches is copied as copy_near.h does.
#pragma once

#include <cstring>

#include "simt/warp.h"

namespace gofs::simt {

namespace detail {

struct alignas(16) Vector16 {
  uint32_t words[4];
};

GOFS_HD inline bool aligned16(const void* a, const void* b, uint64_t bytes) {
  return ((reinterpret_cast<uintptr_t>(a) | reinterpret_cast<uintptr_t>(b) | bytes) & 15) == 0;
}

}  // namespace detail

/// Copies `bytes` from `source` to `target`; the ranges do not overlap. Collective, all arguments
/// uniform. Each lane's part is visible to that lane only: sync() before others read it.
GOFS_HD inline void copy_bytes(AnyWarp auto warp, void* target, const void* source,
                               uint64_t bytes) {
#if GOFS_ON_GPU
  using detail::Vector16;
  auto* to = static_cast<uint8_t*>(target);
  const auto* from = static_cast<const uint8_t*>(source);
  const uint32_t rank = warp.thread_rank();
  const uint32_t size = warp.size();
  if (detail::aligned16(target, source, bytes)) {
    constexpr uint32_t kInFlight = 8;
    const uint64_t count = bytes / sizeof(Vector16);
    const auto* from16 = reinterpret_cast<const uint4*>(from);
    auto* to16 = reinterpret_cast<uint4*>(to);
    uint64_t index = rank;
    for (; index + uint64_t{kInFlight - 1} * size < count; index += uint64_t{kInFlight} * size) {
      uint4 held[kInFlight];
#pragma unroll
      for (uint32_t k = 0; k < kInFlight; ++k)
        held[k] = __ldcv(from16 + index + uint64_t{k} * size);
#pragma unroll
      for (uint32_t k = 0; k < kInFlight; ++k) __stcg(to16 + index + uint64_t{k} * size, held[k]);
    }
    for (; index < count; index += size) __stcg(to16 + index, __ldcv(from16 + index));
    return;
  }
  for (uint64_t index = rank; index < bytes; index += size) to[index] = from[index];
#else
  if (warp.thread_rank() == 0) std::memcpy(target, source, bytes);
#endif
}

/// Sets `bytes` to zero. Collective, all arguments uniform.
GOFS_HD inline void zero_bytes(AnyWarp auto warp, void* target, uint64_t bytes) {
#if GOFS_ON_GPU
  auto* to = static_cast<uint8_t*>(target);
  const uint32_t size = warp.size();
  if (detail::aligned16(target, target, bytes)) {
    auto* to16 = reinterpret_cast<uint4*>(to);
    for (uint64_t index = warp.thread_rank(); index < bytes / 16; index += size) {
      __stcg(to16 + index, uint4{0, 0, 0, 0});
    }
    return;
  }
  for (uint64_t index = warp.thread_rank(); index < bytes; index += size) to[index] = 0;
#else
  if (warp.thread_rank() == 0) std::memset(target, 0, bytes);
#endif
}

}  // namespace gofs::simt
