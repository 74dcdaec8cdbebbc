// SPDX-License-Identifier: Apache-2.0
//
// Many calls of the file system on behalf of a host program, which do not depend on each other: a
// warp makes one after the other.
#pragma once

#include "request/perform.h"

namespace gofs::kernels {

struct CallsParams {
  vfs::Filesystem* fs;
  // In memory that both sides see:
  const request::Arguments* calls;
  int64_t* answers;  // of each, as its verb says, or a negative errno
  uint32_t count;
};

GOFS_HD inline void calls_body(simt::AnyWarp auto warp, uint32_t warp_index, uint32_t warp_count,
                               CallsParams& params) {
  for (uint32_t i = warp_index; i < params.count; i += warp_count) {
    // Once for all: across PCIe each look takes a microsecond.
    const request::Arguments call = params.calls[i];
    const int64_t answer = request::perform(warp, *params.fs, call);
    warp.sync();
    if (warp.thread_rank() == 0) params.answers[i] = answer;
  }
}

}  // namespace gofs::kernels
