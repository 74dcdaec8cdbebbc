// SPDX-License-Identifier: Apache-2.0
//
// What a launch runs: a body. It is one function that all warps of a launch call, written once and
// compiled twice; as an object it knows how a host thread runs it and how a GPU is given it. So a
// program may launch bodies of its own, with any backend, beside those of this folder (bodies.h).
#pragma once

#include <cstdint>

#include "simt/warp.h"

struct CUstream_st;  // what CUDA's cudaStream_t points to

/// The kernel of a body, in builds that have one.
#if defined(GOFS_WITH_CUDA)
#define GOFS_KERNEL(kernel) (&(kernel))
#else
#define GOFS_KERNEL(kernel) nullptr
#endif

namespace gofs::kernels {

/// How many threads work. A CPU takes fewer when it has fewer cores.
struct Grid {
  uint32_t blocks;
  uint32_t threads_per_block;  // a multiple of 32 on a GPU
  /// All of them run at the same time, so that they can wait for each other: a GPU takes fewer
  /// blocks when it has no room for all. On a CPU it is always so.
  bool cooperative = false;
};

/// The part of one warp, which is a host thread.
using CpuFunction = void (*)(const simt::Warp& warp, uint32_t warp_index, uint32_t warp_count,
                             void* params);

/// What nvcc has made of a body: gpu/launch_body.cuh, kernel_of(). Both answer with a cudaError_t.
struct GpuKernel {
  /// Launches it on `stream`; does not wait for it. `params` is the body's parameter struct, in
  /// memory that the GPU reaches; `grid` has whole warps.
  int (*launch)(const Grid& grid, void* params, CUstream_st* stream);
  /// Loads its code, which CUDA would do when it is first launched.
  int (*load)();
};

/// There is one object of each body, and its address says which it is.
struct Body {
  constexpr Body(const char* its_name, CpuFunction cpu_function, const GpuKernel* gpu_kernel)
      : name(its_name), on_cpu(cpu_function), on_gpu(gpu_kernel) {}
  Body(const Body&) = delete;
  Body& operator=(const Body&) = delete;

  const char* const name;  // for messages
  const CpuFunction on_cpu;
  const GpuKernel* const on_gpu;  // null where it was built without CUDA
};

/// The CpuFunction of a body.
template <typename Params, void (*kBody)(simt::Warp, uint32_t, uint32_t, Params&)>
void run_on_cpu(const simt::Warp& warp, uint32_t warp_index, uint32_t warp_count, void* params) {
  kBody(warp, warp_index, warp_count, *static_cast<Params*>(params));
}

}  // namespace gofs::kernels
