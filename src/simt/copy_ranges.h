// SPDX-License-Identifier: Apache-2.0
//
// Many copies by one warp at once. A round trip to host memory takes 1 to 2 us whatever its size,
// so a warp that moves one range after another waits most of the time; here the loads of many are
// under way before the first store, as many as 64 registers a thread allow and some more that need
// none (lane_stage.h).
#pragma once

#include "simt/copy.h"
#include "simt/lane_stage.h"
#include "simt/unit_numbers.h"

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

/// The range of rank `rank`, on every lane.
GOFS_HD inline CopyRange range_of(AnyWarp auto warp, const CopyRange& mine, uint32_t rank) {
  return {
      reinterpret_cast<uint8_t*>(warp.shfl(reinterpret_cast<uint64_t>(mine.target), rank)),
      reinterpret_cast<const uint8_t*>(warp.shfl(reinterpret_cast<uint64_t>(mine.source), rank)),
      warp.shfl(mine.bytes, rank)};
}

#if GOFS_ON_GPU

/// What a warp moves by one instruction: 16 bytes a lane.
constexpr uint32_t kRowBytes = 512;
/// Loads that a lane has under way in registers.
constexpr uint32_t kHeldRows = 8;

/// The place of this lane in what rank `rank` has at `base`.
template <typename T>
__device__ T* lane_part(Warp warp, T* base, uint32_t rank) {
  return reinterpret_cast<T*>(warp.shfl(reinterpret_cast<uint64_t>(base), rank)) +
         warp.thread_rank();
}

/// Copies what lanes have prepared, `kRows` rows each, those of ranks 0 .. count - 1.
template <uint32_t kRows>
GOFS_NOINLINE __device__ void copy_units(Warp warp, uint4* target, const uint4* source,
                                         uint32_t count) {
  constexpr uint32_t kHeldUnits = kHeldRows / kRows;
  constexpr uint32_t kRow = kRowBytes / sizeof(uint4);
  const LaneStage stage;
  const uint32_t staged_most = stage.places() / kRows;
  for (uint32_t from = 0; from < count;) {
    const uint32_t behind = from + kHeldUnits;
    const uint32_t staged = behind < count ? simt::min(staged_most, count - behind) : 0;
#pragma unroll 1
    for (uint32_t i = 0; i < staged; ++i) {
      const uint4* const part = lane_part(warp, source, behind + i);
#pragma unroll
      for (uint32_t k = 0; k < kRows; ++k) stage.load(i * kRows + k, part + k * kRow);
    }
    uint4 held[kHeldUnits][kRows];
#pragma unroll
    for (uint32_t i = 0; i < kHeldUnits; ++i) {
      if (from + i >= count) break;
      const uint4* const part = lane_part(warp, source, from + i);
#pragma unroll
      for (uint32_t k = 0; k < kRows; ++k) held[i][k] = __ldcv(part + k * kRow);
    }
#pragma unroll
    for (uint32_t i = 0; i < kHeldUnits; ++i) {
      if (from + i >= count) break;
      uint4* const part = lane_part(warp, target, from + i);
#pragma unroll
      for (uint32_t k = 0; k < kRows; ++k) __stcg(part + k * kRow, held[i][k]);
    }
    if (staged != 0) stage.wait();
#pragma unroll 1
    for (uint32_t i = 0; i < staged; ++i) {
      uint4* const part = lane_part(warp, target, behind + i);
#pragma unroll
      for (uint32_t k = 0; k < kRows; ++k) held[0][k] = stage.value(i * kRows + k);
#pragma unroll
      for (uint32_t k = 0; k < kRows; ++k) __stcg(part + k * kRow, held[0][k]);
    }
    from = behind + staged;
  }
}

/// The range of each lane in `lanes`: all are multiples of `kRows` rows. Others have no bytes.
template <uint32_t kRows>
__device__ void copy_rows(Warp warp, uint32_t lanes, const CopyRange& mine) {
  constexpr uint32_t kUnitBytes = kRows * kRowBytes;
  const UnitNumbers numbers(warp, lanes, mine.bytes / kUnitBytes);
  for (uint32_t window = 0; window < numbers.count(); window += 32) {
    const UnitPlace place = numbers.find(warp, window + warp.thread_rank());
    const CopyRange range = range_of(warp, mine, place.owner);
    const uint32_t offset = place.offset_units * kUnitBytes;
    copy_units<kRows>(warp, reinterpret_cast<uint4*>(range.target + offset),
                      reinterpret_cast<const uint4*>(range.source + offset),
                      simt::min(numbers.count() - window, 32u));
  }
}

/// One range, by some lanes of a warp; its bytes are not 0.
GOFS_NOINLINE __device__ inline void copy_by_some(PartialWarp warp, CopyRange range) {
  const LaneStage stage;
  const uint32_t step = warp.size();
  const uint32_t rank = warp.thread_rank();
  const auto* source = reinterpret_cast<const uint4*>(range.source) + rank;
  auto* target = reinterpret_cast<uint4*>(range.target) + rank;
  uint32_t left = (range.bytes / sizeof(uint4) + step - 1 - rank) / step;
  while (left != 0) {
    const uint32_t whole = left / kHeldRows;
    const uint32_t staged = whole > 1 ? simt::min(stage.places() / kHeldRows, whole - 1) : 0;
#pragma unroll 1
    for (uint32_t i = 0; i < staged; ++i) {
      const uint4* const part = source + uint64_t{kHeldRows + i * kHeldRows} * step;
#pragma unroll
      for (uint32_t k = 0; k < kHeldRows; ++k) stage.load(i * kHeldRows + k, part + k * step);
    }
    uint4 held[kHeldRows];
#pragma unroll
    for (uint32_t k = 0; k < kHeldRows; ++k) {
      if (k < left) held[k] = __ldcv(source + k * step);
    }
#pragma unroll
    for (uint32_t k = 0; k < kHeldRows; ++k) {
      if (k < left) __stcg(target + k * step, held[k]);
    }
    if (staged != 0) stage.wait();
#pragma unroll 1
    for (uint32_t i = 0; i < staged; ++i) {
      uint4* const part = target + uint64_t{kHeldRows + i * kHeldRows} * step;
#pragma unroll
      for (uint32_t k = 0; k < kHeldRows; ++k) held[k] = stage.value(i * kHeldRows + k);
#pragma unroll
      for (uint32_t k = 0; k < kHeldRows; ++k) __stcg(part + k * step, held[k]);
    }
    const uint32_t done = simt::min(left, kHeldRows + staged * kHeldRows);
    source += uint64_t{done} * step;
    target += uint64_t{done} * step;
    left -= done;
  }
}

/// The ranges of `lanes`, several, whose addresses and bytes are multiples of 16 and not 0.
__device__ inline void copy_aligned(Warp warp, uint32_t lanes, const CopyRange& mine) {
  const bool is_one = (lanes >> warp.thread_rank() & 1) != 0;
  const CopyRange range{mine.target, mine.source, is_one ? mine.bytes : 0};
  const uint32_t places = LaneStage().places();
  const bool by_four = places >= 4 && places < 8;
  if (!by_four && warp.all(range.bytes % (8 * kRowBytes) == 0))
    return copy_rows<8>(warp, lanes, range);
  if (warp.all(range.bytes % (4 * kRowBytes) == 0)) return copy_rows<4>(warp, lanes, range);
  if (warp.all(range.bytes % kRowBytes == 0)) return copy_rows<1>(warp, lanes, range);
  for (; lanes != 0; lanes &= lanes - 1) copy_one(warp, range_of(warp, mine, lowest_bit(lanes)));
}
__device__ inline void copy_aligned(PartialWarp warp, uint32_t lanes, const CopyRange& mine) {
  for (; lanes != 0; lanes &= lanes - 1) {
    copy_by_some(warp, range_of(warp, mine, lowest_bit(lanes)));
  }
}

#endif

}  // namespace detail

/// Copies the range of each lane in `lanes`, but those of no bytes; no target overlaps a source or
/// another target. Collective. Who copies what is not said: sync() before, for what lanes have
/// prepared, and before others than the lanes themselves read it. Memory as for copy_bytes().
GOFS_HD inline void copy_ranges(AnyWarp auto warp, uint32_t lanes, const CopyRange& mine) {
  lanes = warp.ballot((lanes >> warp.thread_rank() & 1) != 0 && mine.bytes != 0);
#if GOFS_ON_GPU
  const bool aligned = (lanes >> warp.thread_rank() & 1) != 0 && mine.source != nullptr &&
                       detail::aligned16(mine.target, mine.source, mine.bytes);
  const uint32_t plain = warp.ballot(aligned);
  // One alone is sooner where it should be by eight loads of each lane, if there are 32 of these.
  if (popcount(plain) > (warp.size() == 32 ? 1u : 0u)) {
    detail::copy_aligned(warp, plain, mine);
    lanes &= ~plain;
  }
#endif
  for (; lanes != 0; lanes &= lanes - 1) {
    detail::copy_one(warp, detail::range_of(warp, mine, lowest_bit(lanes)));
  }
}

}  // namespace gofs::simt
