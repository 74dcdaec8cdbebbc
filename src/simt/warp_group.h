// SPDX-License-Identifier: Apache-2.0
//
// Warps that do one thing together: those of a block, or those of a grid. All of them hold a group
// alike; index() says which of its count() warps is asking. sync() is the barrier that CUDA has for
// the group; it orders memory. On the CPU a block is one warp, and a grid is all warps of a launch.
#pragma once

#include "simt/atomic.h"
#include "simt/warp.h"

#if defined(__CUDACC__)
#include <cooperative_groups.h>
#endif

/// Declares a variable that all threads of a block share; on the CPU a block is one thread.
#if GOFS_ON_GPU
#define GOFS_BLOCK_SHARED __shared__
#else
#define GOFS_BLOCK_SHARED
#endif

namespace gofs::simt {

template <AnyWarp Lanes>
class BlockGroup {
 public:
  /// Called by all threads of the block. `warp` is the calling one; in a block of at least 32
  /// threads it is a Warp also where a last one is not whole, since that one is never asked to
  /// work.
  GOFS_HD static BlockGroup current(Lanes warp) {
#if GOFS_ON_GPU
    const uint32_t threads = blockDim.x * blockDim.y * blockDim.z;
    const uint32_t thread = threadIdx.x + blockDim.x * (threadIdx.y + blockDim.y * threadIdx.z);
    return {warp, thread / 32, max(threads / 32, 1u)};
#else
    return {warp, 0, 1};
#endif
  }

  GOFS_HD Lanes warp() const { return warp_; }
  /// Not below count() for the last warp of a block that is no multiple of 32: it has no share of
  /// the work, but comes to sync() like the others.
  GOFS_HD uint32_t index() const { return index_; }
  GOFS_HD uint32_t count() const { return count_; }
  GOFS_HD void sync() const {
#if GOFS_ON_GPU
    __syncthreads();
#else
    warp_.sync();
#endif
  }

 private:
  GOFS_HD BlockGroup(Lanes warp, uint32_t index, uint32_t count)
      : warp_(warp), index_(index), count_(count) {}

  Lanes warp_;
  uint32_t index_;
  uint32_t count_;
};

/// A warp that is a group by itself.
template <AnyWarp Lanes>
class SingleWarpGroup {
 public:
  GOFS_HD explicit SingleWarpGroup(Lanes warp) : warp_(warp) {}

  GOFS_HD Lanes warp() const { return warp_; }
  GOFS_HD static constexpr uint32_t index() { return 0; }
  GOFS_HD static constexpr uint32_t count() { return 1; }
  GOFS_HD void sync() const { warp_.sync(); }

 private:
  Lanes warp_;
};

/// Where warps on host threads wait for each other; a GPU has its own place. Zero at the start, and
/// fit for the next launch after each.
struct Barrier {
  uint32_t arrived;
  uint32_t round;
};

class GridGroup {
 public:
  /// Called by all threads of a launch whose threads run at the same time (a cooperative one),
  /// blocks of whole warps; `index` and `count` are those of the launch.
  GOFS_HD GridGroup(Warp warp, uint32_t index, uint32_t count, Barrier& barrier)
      : warp_(warp), index_(index), count_(count), barrier_(&barrier) {}

#if defined(__CUDACC__)
  __device__ static GridGroup current() {
    const auto grid = cooperative_groups::this_grid();
    return {Warp::full(), static_cast<uint32_t>(grid.thread_rank() / 32),
            static_cast<uint32_t>(grid.size() / 32)};
  }
#endif

  GOFS_HD Warp warp() const { return warp_; }
  GOFS_HD uint32_t index() const { return index_; }
  GOFS_HD uint32_t count() const { return count_; }
  GOFS_HD void sync() const {
#if GOFS_ON_GPU
    cooperative_groups::this_grid().sync();
#else
    warp_.sync();
    if (warp_.thread_rank() == 0) arrive_and_wait();
    warp_.sync();
#endif
  }

  /// Tells the launch from all others that run at the same time: a GPU's driver gives each its own
  /// memory for the barrier.
  GOFS_HD uint64_t launch() const {
#if GOFS_ON_GPU
    return reinterpret_cast<uint64_t>(cooperative_groups::details::get_grid_workspace());
#else
    return reinterpret_cast<uint64_t>(barrier_);
#endif
  }
  /// On the CPU each warp is a block.
  GOFS_HD uint32_t blocks() const {
#if GOFS_ON_GPU
    return gridDim.x * gridDim.y * gridDim.z;
#else
    return count_;
#endif
  }
  /// Waits for the caller's block. True on one lane of it.
  GOFS_HD bool block_is_here() const {
#if GOFS_ON_GPU
    __syncthreads();
    return threadIdx.x + threadIdx.y + threadIdx.z == 0;
#else
    warp_.sync();
    return warp_.thread_rank() == 0;
#endif
  }

 private:
#if defined(__CUDACC__)
  __device__ GridGroup(Warp warp, uint32_t index, uint32_t count)
      : warp_(warp), index_(index), count_(count), barrier_(nullptr) {}
#endif
#if !GOFS_ON_GPU
  /// Ends when the last warp has come: what they do before has deadlines of its own.
  GOFS_HD void arrive_and_wait() const {
    const uint32_t round = load_relaxed(barrier_->round);
    const uint32_t before =
        AtomicRef<uint32_t>(barrier_->arrived).fetch_add(1, memory_order_acq_rel);  // [T1]
    if (before + 1 == count_) {
      store_relaxed(barrier_->arrived, 0u);
      store_release(barrier_->round, round + 1);  // [T1]
      return;
    }
    Backoff backoff;
    while (load_acquire(barrier_->round) == round) backoff.pause();  // [T1]
  }
#endif

  Warp warp_;
  uint32_t index_;
  uint32_t count_;
  Barrier* barrier_;  // of the host
};

}  // namespace gofs::simt
