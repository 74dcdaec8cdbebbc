// SPDX-License-Identifier: Apache-2.0
//
// The body of fail_assert, apart so that platform.h stays a page of vocabulary.
#pragma once

#include <cstdio>
#include <cstdlib>

#include "simt/platform.h"

namespace gofs::simt {

GOFS_NOINLINE GOFS_HD inline void fail_assert(const char* what, const char* file, int line) {
  printf("gofs: broken promise at %s:%d: %s\n", file, line, what);
#if GOFS_ON_GPU
  __trap();
#else
  std::abort();
#endif
}

}  // namespace gofs::simt
