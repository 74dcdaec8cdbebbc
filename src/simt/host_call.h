// SPDX-License-Identifier: Apache-2.0
//
// The way out of single-source code to something that only the host has, such as fdatasync.
#pragma once

#include "simt/platform.h"

namespace gofs::simt {

/// Returns 0 or a negative errno.
using HostFunction = int (*)(void* context);

/// Whether there is a function, and it is called: never on the GPU.
GOFS_HD inline bool can_call_host(HostFunction function) {
#if GOFS_ON_GPU
  (void)function;
  return false;
#else
  return function != nullptr;
#endif
}

/// Calls `function`; on the GPU it answers 0 without calling, and the owner on the host does the
/// work when the kernel has ended.
GOFS_HD inline int call_host(HostFunction function, void* context) {
#if GOFS_ON_GPU
  (void)function;
  (void)context;
  return 0;
#else
  return function(context);
#endif
}

}  // namespace gofs::simt
