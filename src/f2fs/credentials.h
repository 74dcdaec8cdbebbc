// SPDX-License-Identifier: Apache-2.0
//
// Who is asking. What a mode lets him do: vfs/credentials.h.
#pragma once

#include "gofs/types.h"

namespace gofs::f2fs {

struct Credentials {
  uint32_t uid;
  uint32_t gid;
  uint32_t group_count;
  uint32_t groups[kGroupsMax];  // supplementary

  GOFS_HD bool in_group(uint32_t group) const {
    if (gid == group) return true;
    for (uint32_t i = 0; i < group_count; ++i) {
      if (groups[i] == group) return true;
    }
    return false;
  }
};

}  // namespace gofs::f2fs
