// SPDX-License-Identifier: Apache-2.0
//
// What those share that add entries to one directory, or remove some, at the same time.
#pragma once

#include "simt/platform.h"

namespace gofs::f2fs {

/// Locks of warps (simt/warp_lock.h); other directories may have the same. Who has `growth` may
/// wait for `times`.
struct DirectoryLocks {
  uint32_t growth;  // of who makes blocks of the directory, or changes entries in its inode
  uint32_t times;   // of who sets its times
};

}  // namespace gofs::f2fs
