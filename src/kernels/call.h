// SPDX-License-Identifier: Apache-2.0
//
// One call of the file system on behalf of a host program, in memory that both sides see. By one
// warp; others help where it makes a checkpoint.
#pragma once

#include "kernels/help.h"
#include "request/perform.h"

namespace gofs::kernels {

struct CallParams {
  vfs::Filesystem* fs;
  request::Arguments call;
  int64_t answer;  // as the verb says, or a negative errno
  uint32_t ended;  // 0 before; not 0: no checkpoint is made any more
};

GOFS_HD inline void call_body(simt::AnyWarp auto warp, uint32_t warp_index, uint32_t,
                              CallParams& params) {
  if (warp_index != 0) return help_until(warp, *params.fs, params.ended);
  const int64_t answer = request::perform(warp, *params.fs, params.call);
  warp.sync();
  if (warp.thread_rank() == 0) {
    params.answer = answer;
    simt::store_relaxed(params.ended, 1u);
  }
}

}  // namespace gofs::kernels
