// SPDX-License-Identifier: Apache-2.0
//
// What a host program asks of volumes, as profilers show it beside its kernels: NVTX ranges of the
// domain "gofs" (Nsight Systems; https://nvidia.github.io/NVTX). Without a profiler each costs a
// look at a pointer, and nothing where GoFS was compiled without the headers of NVTX.
#pragma once

#include <cstdint>

namespace gofs::host {

/// From its construction to its destruction, in the same thread.
class Profiled {
 public:
  /// `what` is the call's name, `amount` what there is of it: bytes of one, calls or ranges of
  /// several.
  Profiled(const char* what, uint64_t amount);
  ~Profiled();
  Profiled(const Profiled&) = delete;
  Profiled& operator=(const Profiled&) = delete;
};

}  // namespace gofs::host
