// SPDX-License-Identifier: Apache-2.0
//
// The group that all code below the API is written for. On the GPU a Warp is up to 32 lanes that
// run in step; on the CPU it is one thread, or in tests a team of up to 32 lanes that
// ThreadSanitizer takes for threads, so that code which forgets to synchronise is found out.
//
// Members are named as in cooperative_groups. All of them but size() and thread_rank() are
// collective: every lane of the group calls them together. Bit i of a ballot or a match belongs to
// rank i, also when the group is only some of a hardware warp's lanes. Collectives that exchange
// values order no memory; sync() does.
#pragma once

#include <concepts>

#include "simt/clock.h"
#include "simt/platform.h"
#include "simt/team.h"

namespace gofs::simt {

#if defined(__CUDACC__)
/// The mask of all lanes, which the compiler is not to know. Where a mask is a constant, ptxas 13.0
/// looks whether the lanes are together only where it believes that they may not be, and it is
/// wrong about that behind a call of a function that ends with a collective: lanes that went
/// another way in there may come back one after the other, and vote apart
/// (docs/design/decisions.md, 20).
[[maybe_unused]] static __constant__ uint32_t kAllLanes = 0xffffffffu;
#endif

#if defined(__CUDA_ARCH__)

/// Number of the calling lane in its hardware warp.
__device__ inline uint32_t lane_id() {
  uint32_t id;
  asm("mov.u32 %0, %%laneid;" : "=r"(id));
  return id;
}

/// A whole hardware warp.
class Warp {
 public:
  /// The caller knows that all 32 lanes are here.
  __device__ static Warp full() { return Warp(); }

  __device__ static constexpr uint32_t size() { return 32; }
  __device__ static uint32_t thread_rank() { return lane_id(); }
  __device__ static void sync() { __syncwarp(kAllLanes); }
  __device__ static bool any(bool predicate) { return __any_sync(kAllLanes, predicate); }
  __device__ static bool all(bool predicate) { return __all_sync(kAllLanes, predicate); }
  __device__ static uint32_t ballot(bool predicate) { return __ballot_sync(kAllLanes, predicate); }
  template <typename T>
  __device__ static T shfl(T value, uint32_t rank) {
    static_assert(sizeof(T) == 4 || sizeof(T) == 8);
    return __shfl_sync(kAllLanes, value, static_cast<int>(rank));
  }
  template <typename T>
  __device__ static uint32_t match_any(T value) {
    return __match_any_sync(kAllLanes, value);
  }
};

/// Some lanes of a hardware warp. Most often they follow each other: all of them, or one; then a
/// rank is a lane's number less the first one's.
class PartialWarp {
 public:
  /// The lanes that are here now. Each divergent part gets a group of its own.
  __device__ static PartialWarp current() { return PartialWarp(__activemask()); }
  /// This lane alone.
  __device__ static PartialWarp single() { return PartialWarp(1u << lane_id()); }
  /// `mask` has at least one lane.
  __device__ explicit PartialWarp(uint32_t mask)
      : mask_(mask),
        rank_(static_cast<uint32_t>(__popc(mask & ((1u << lane_id()) - 1)))),
        first_(first_of_row(mask)) {}

  __device__ uint32_t size() const { return static_cast<uint32_t>(__popc(mask_)); }
  __device__ uint32_t thread_rank() const { return rank_; }
  __device__ void sync() const { __syncwarp(mask_); }
  __device__ bool any(bool predicate) const { return __any_sync(mask_, predicate); }
  __device__ bool all(bool predicate) const { return __all_sync(mask_, predicate); }
  __device__ uint32_t ballot(bool predicate) const {
    return to_ranks(__ballot_sync(mask_, predicate));
  }
  template <typename T>
  __device__ T shfl(T value, uint32_t rank) const {
    static_assert(sizeof(T) == 4 || sizeof(T) == 8);
    return __shfl_sync(mask_, value, static_cast<int>(lane_of(rank)));
  }
  template <typename T>
  __device__ uint32_t match_any(T value) const {
    return to_ranks(__match_any_sync(mask_, value));
  }

 private:
  static constexpr uint32_t kScattered = 32;

  /// The lane of rank 0, if all lanes of `mask` follow each other, else kScattered.
  __device__ static uint32_t first_of_row(uint32_t mask) {
    const auto first = static_cast<uint32_t>(__ffs(static_cast<int>(mask)) - 1);
    const uint32_t row = mask >> first;
    return (row & (row + 1)) == 0 ? first : kScattered;
  }
  __device__ uint32_t lane_of(uint32_t rank) const {
    return first_ != kScattered ? first_ + rank : scattered_lane(mask_, rank);
  }
  __device__ uint32_t to_ranks(uint32_t lanes) const {
    return first_ != kScattered ? lanes >> first_ : scattered_ranks(mask_, lanes);
  }

  // Not inlined: collectives are everywhere, and their code is to stay small.
  GOFS_NOINLINE __device__ static uint32_t scattered_lane(uint32_t mask, uint32_t rank) {
    return __fns(mask, 0, static_cast<int>(rank) + 1);
  }
  GOFS_NOINLINE __device__ static uint32_t scattered_ranks(uint32_t mask, uint32_t lanes) {
    uint32_t ranks = 0;
    for (uint32_t rank = 0; mask != 0; ++rank, mask &= mask - 1) {
      ranks |= ((lanes >> (__ffs(static_cast<int>(mask)) - 1)) & 1u) << rank;
    }
    return ranks;
  }

  uint32_t mask_;
  uint32_t rank_;
  uint32_t first_;
};

#else

class Warp {
 public:
  Warp() = default;
  Warp(Team* team, uint32_t rank) : team_(team), rank_(rank) {}
  GOFS_HD static Warp full() { return Warp(); }

  uint32_t size() const { return team_ == nullptr ? 1 : team_->size(); }
  uint32_t thread_rank() const { return rank_; }
  void sync() const {
    if (team_ != nullptr) team_->sync();
  }
  bool any(bool predicate) const { return ballot(predicate) != 0; }
  bool all(bool predicate) const { return ballot(!predicate) == 0; }
  uint32_t ballot(bool predicate) const {
    if (team_ == nullptr) return predicate ? 1 : 0;
    return team_->vote(rank_, predicate);
  }
  template <typename T>
  T shfl(T value, uint32_t rank) const {
    static_assert(sizeof(T) == 4 || sizeof(T) == 8);
    if (team_ == nullptr) return value;
    return from_word<T>(team_->read_from(rank_, to_word(value), rank));
  }
  template <typename T>
  uint32_t match_any(T value) const {
    if (team_ == nullptr) return 1;
    return team_->match(rank_, to_word(value));
  }

 private:
  template <typename T>
  static uint64_t to_word(T value) {
    uint64_t word = 0;
    __builtin_memcpy(&word, &value, sizeof(T));
    return word;
  }
  template <typename T>
  static T from_word(uint64_t word) {
    T value;
    __builtin_memcpy(&value, &word, sizeof(T));
    return value;
  }

  Team* team_ = nullptr;
  uint32_t rank_ = 0;
};

/// A CPU has no lanes: this one is there so that device code compiles in both of nvcc's passes.
class PartialWarp : public Warp {
 public:
  GOFS_HD static PartialWarp current() { return PartialWarp(1); }
  GOFS_HD static PartialWarp single() { return PartialWarp(1); }
  GOFS_HD explicit PartialWarp(uint32_t) {}
};

#endif

/// Lanes of a warp that runs programs: those of tests on a CPU may have others.
inline constexpr uint32_t kUsualLanes = GOFS_ON_GPU ? 32 : 1;

/// Either of them, or what is one and knows more (vfs/caller.h).
template <typename T>
concept AnyWarp = std::derived_from<T, Warp> || std::derived_from<T, PartialWarp>;

GOFS_HD inline uint32_t popcount(uint32_t bits) {
#if GOFS_ON_GPU
  return static_cast<uint32_t>(__popc(bits));
#else
  return static_cast<uint32_t>(__builtin_popcount(bits));
#endif
}

/// Index of the lowest set bit; `bits` is not zero.
GOFS_HD inline uint32_t lowest_bit(uint32_t bits) {
#if GOFS_ON_GPU
  return static_cast<uint32_t>(__ffs(static_cast<int>(bits)) - 1);
#else
  return static_cast<uint32_t>(__builtin_ctz(bits));
#endif
}

/// Index of the `n`-th set bit of `bits`, counted from 0; it has more than n.
GOFS_HD inline uint32_t nth_bit(uint32_t bits, uint32_t n) {
  for (; n != 0; --n) bits &= bits - 1;
  return lowest_bit(bits);
}

/// Number of zero bits above the highest set bit; `bits` is not zero.
GOFS_HD inline uint32_t leading_zeros(uint32_t bits) {
#if GOFS_ON_GPU
  return static_cast<uint32_t>(__clz(static_cast<int>(bits)));
#else
  return static_cast<uint32_t>(__builtin_clz(bits));
#endif
}

/// The bits of ranks below `rank`.
GOFS_HD constexpr uint32_t ranks_below(uint32_t rank) { return (1u << rank) - 1; }

/// The values of the group put together by `both(T, T)`, in any order, on every lane. Collective;
/// `both` is not.
template <typename T, typename Both>
GOFS_HD T reduce(AnyWarp auto warp, T value, Both both) {
  const uint32_t size = warp.size();
  if ((size & (size - 1)) == 0) {
    for (uint32_t k = 1; k < size; k *= 2) {
      value = both(value, warp.shfl(value, warp.thread_rank() ^ k));
    }
    return value;
  }
  T all = warp.shfl(value, 0);
  for (uint32_t rank = 1; rank < size; ++rank) all = both(all, warp.shfl(value, rank));
  return all;
}

/// Sum over the group, on every lane. Collective.
template <typename T>
GOFS_HD T reduce_add(AnyWarp auto warp, T value) {
  return reduce(warp, value, [](T a, T b) { return a + b; });
}

/// The largest value of the group, and the smallest, on every lane. Collective.
template <typename T>
GOFS_HD T reduce_max(AnyWarp auto warp, T value) {
  return reduce(warp, value, [](T a, T b) { return simt::max(a, b); });
}
template <typename T>
GOFS_HD T reduce_min(AnyWarp auto warp, T value) {
  return reduce(warp, value, [](T a, T b) { return simt::min(a, b); });
}

/// Sum over the lanes of lower rank; `total` becomes that of all lanes. Collective.
template <typename T>
GOFS_HD T sum_before(AnyWarp auto warp, T value, T& total) {
  const uint32_t rank = warp.thread_rank();
  T sum = value;  // of this lane and the 2k - 1 before it, after round k
  for (uint32_t k = 1; k < warp.size(); k *= 2) {
    const T theirs = warp.shfl(sum, rank >= k ? rank - k : rank);
    if (rank >= k) sum += theirs;
  }
  total = warp.shfl(sum, warp.size() - 1);
  return sum - value;
}

/// Of the numbers that the lanes count up to, of which none is less than that of the lane before
/// it, which lane has the `number`-th. Collective; where there is none, any lane.
GOFS_HD inline uint32_t lane_that_has(AnyWarp auto warp, uint32_t counted, uint32_t number) {
  uint32_t lane = 0;
  for (uint32_t step = 16; step != 0; step /= 2) {
    const uint32_t next = lane + step;
    const bool exists = next < warp.size();
    const uint32_t before = warp.shfl(counted, exists ? next - 1 : 0);
    if (exists && before <= number) lane = next;
  }
  return lane;
}

/// First failure (a negative number) over the group, or 0, on every lane. Collective.
GOFS_HD inline int first_error(AnyWarp auto warp, int error) {
  const uint32_t failed = warp.ballot(error < 0);
  return failed == 0 ? 0 : warp.shfl(error, lowest_bit(failed));
}

/// Which of several parallel resources (queue pairs, page lists) this warp should use: neighbours
/// on one SM share, different SMs do not.
GOFS_HD inline uint32_t processor_id() {
#if GOFS_ON_GPU
  uint32_t id;
  asm volatile("mov.u32 %0, %%smid;" : "=r"(id));
  return id;
#else
  return host_worker_index();
#endif
}

}  // namespace gofs::simt
