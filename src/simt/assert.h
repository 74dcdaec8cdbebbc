// SPDX-License-Identifier: Apache-2.0
//
// What GOFS_ASSERT calls. Included by platform.h, which has the vocabulary.
#pragma once

#include <cstdio>
#include <cstdlib>

#include "simt/platform.h"

namespace gofs::simt {

/// Ends the program (host) or the kernel (GPU): a broken promise of ours, never bad input.
GOFS_NOINLINE GOFS_HD inline void fail_assert(const char* what, const char* file, int line) {
  printf("gofs: broken promise at %s:%d: %s\n", file, line, what);
#if GOFS_ON_GPU
  __trap();
#else
  std::abort();
#endif
}

}  // namespace gofs::simt
