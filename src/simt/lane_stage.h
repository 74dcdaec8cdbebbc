// SPDX-License-Identifier: Apache-2.0
//
// Loads without registers: each thread of a block has a few places of 16 bytes in shared memory
// that only it uses, in divergent code too, and that asynchronous copies (cp.async) fill. How much
// a warp has under way is then not bound by its registers: a round trip to host memory takes 2 us,
// whatever its size. Blocks of many threads have few places for each, or none: they have other
// warps instead.
#pragma once

#include "simt/platform.h"

namespace gofs::simt {

#if GOFS_ON_GPU

/// Of the calling thread.
class LaneStage {
 public:
  /// Shared memory that each block of a kernel has for this.
  static constexpr uint32_t kBlockBytes = 16384;

  __device__ LaneStage() {
    const uint32_t threads = blockDim.x * blockDim.y * blockDim.z;
    const uint32_t thread = threadIdx.x + blockDim.x * (threadIdx.y + blockDim.y * threadIdx.z);
    stride_ = threads * 16;
    // Of the next power of two: a division would take as long as a row does.
    places_ = kBlockBytes / 16 >> (32 - __clz(static_cast<int>(threads - 1)));
    first_ = static_cast<uint32_t>(__cvta_generic_to_shared(memory())) + thread * 16;
  }

  /// How many places it has.
  __device__ uint32_t places() const { return places_; }
  /// Begins to load 16 bytes of global memory.
  __device__ void load(uint32_t place, const void* source) const {
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" ::"r"(first_ + place * stride_),
                 "l"(source)
                 : "memory");
  }
  /// Waits for all that was begun.
  __device__ void wait() const { asm volatile("cp.async.wait_all;" ::: "memory"); }
  __device__ uint4 value(uint32_t place) const {
    uint4 value;
    asm volatile("ld.shared.v4.u32 {%0, %1, %2, %3}, [%4];"
                 : "=r"(value.x), "=r"(value.y), "=r"(value.z), "=r"(value.w)
                 : "r"(first_ + place * stride_)
                 : "memory");
    return value;
  }

 private:
  __device__ static uint8_t* memory() {
    __shared__ __align__(16) uint8_t bytes[kBlockBytes];
    return bytes;
  }

  uint32_t first_;
  uint32_t stride_;
  uint32_t places_;
};

#endif

}  // namespace gofs::simt
