// SPDX-License-Identifier: Apache-2.0
//
// What the two compilers call things. The only place, with its neighbours in simt/, where the code
// may ask which of them is at work: everything above is written once.
#pragma once

#include <cassert>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>

#include "gofs/types.h"  // GOFS_HD

#if defined(__CUDACC__)
#define GOFS_DEVICE __device__
/// Keeps one copy of a large function per translation unit instead of one per call site.
#define GOFS_NOINLINE __noinline__
#else
#define GOFS_DEVICE
#define GOFS_NOINLINE __attribute__((noinline))
#endif

/// Whether what costs time is checked too (GOFS_DEBUG_CHECKS of cmake/GofsSettings.cmake).
#ifndef GOFS_DEBUG_CHECKS
#define GOFS_DEBUG_CHECKS 0
#endif

/// True in code that runs on the GPU. `if constexpr` cannot see it; simt/ hides its uses.
#if defined(__CUDA_ARCH__)
#define GOFS_ON_GPU 1
#else
#define GOFS_ON_GPU 0
#endif

/// Which sanitizer watches, where one does: g++ says it in one way, clang in another.
#if defined(__SANITIZE_ADDRESS__)
#define GOFS_ADDRESS_SANITIZER 1
#elif defined(__SANITIZE_THREAD__)
#define GOFS_THREAD_SANITIZER 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define GOFS_ADDRESS_SANITIZER 1
#elif __has_feature(thread_sanitizer)
#define GOFS_THREAD_SANITIZER 1
#endif
#endif

namespace gofs {

/// An F2FS block (kBlockBytes) is an NVMe memory page too: the unit of every address in this
/// project that is not said to be in bytes or in LBAs.
inline constexpr uint32_t kBlockShift = 12;
static_assert(kBlockBytes == 1u << kBlockShift);

namespace simt {

inline constexpr bool kDebugChecks = GOFS_DEBUG_CHECKS != 0;

/// Ends the program (host) or the kernel (GPU): a broken promise of ours, never bad input.
GOFS_NOINLINE GOFS_HD inline void fail_assert(const char* what, const char* file, int line) {
#if GOFS_ON_GPU
  // As CUDA's assert() ends: the host prints it even though the kernel's own output is lost.
  __assert_fail(what, file, static_cast<unsigned int>(line), "gofs: broken promise");
#else
  printf("gofs: broken promise at %s:%d: %s\n", file, line, what);
  std::fflush(stdout);  // a pipe's reader is to learn it as well
  std::abort();
#endif
}

/// Rounds `value` up to a multiple of `unit`, which is a power of two.
GOFS_HD constexpr uint64_t align_up(uint64_t value, uint64_t unit) {
  return (value + unit - 1) & ~(unit - 1);
}

GOFS_HD constexpr uint64_t divide_up(uint64_t value, uint64_t unit) {
  return (value + unit - 1) / unit;
}

template <typename T>
GOFS_HD constexpr T min(T a, T b) {
  return b < a ? b : a;
}

template <typename T>
GOFS_HD constexpr T max(T a, T b) {
  return a < b ? b : a;
}

}  // namespace simt
}  // namespace gofs

/// Stays on in release builds: cheap conditions only.
#define GOFS_ASSERT(condition) \
  ((condition) ? (void)0 : ::gofs::simt::fail_assert(#condition, __FILE__, __LINE__))

/// Of debug builds alone (simt::kDebugChecks): what is on fast paths, or not that cheap.
#define GOFS_DEBUG_ASSERT(condition)          \
  (!::gofs::simt::kDebugChecks || (condition) \
       ? (void)0                              \
       : ::gofs::simt::fail_assert(#condition, __FILE__, __LINE__))
