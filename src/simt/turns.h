// SPDX-License-Identifier: Apache-2.0
//
// Where one host thread plays all lanes of a warp, as in tests, one lane runs at a time, up to
// where it has to wait. This is how it then lets the others run. Elsewhere a thread is one lane,
// and there is no other to let run.
#pragma once

#include "simt/platform.h"

#if !defined(__CUDA_ARCH__)

namespace gofs::simt {

/// Called by the lane that runs. Nothing here orders memory.
class LaneTurns {
 public:
  /// Lets other lanes run. False without having done so when each that can go on has paused and
  /// none got any further: then the thread itself has to wait.
  virtual bool pause() = 0;
  /// Lets other lanes run until one of them has called release_all().
  virtual void wait() = 0;
  /// Lets all lanes go on that wait, maybe some of them before the calling one.
  virtual void release_all() = 0;

 protected:
  ~LaneTurns() = default;
};

/// Set while the calling thread plays several lanes, else null.
inline thread_local LaneTurns* host_turns = nullptr;

}  // namespace gofs::simt

#endif  // !__CUDA_ARCH__
