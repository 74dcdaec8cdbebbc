// SPDX-License-Identifier: Apache-2.0
//
// The token of a file's blocks for tests that call f2fs/ without an open file, or that no other
// thread disturbs: it stands for all of the file, whatever is locked.
#pragma once

#include "f2fs/file_hold.h"

namespace gofs::testing {

inline f2fs::FileHold hold_alone(f2fs::Inode& inode) {
  return f2fs::FileHold::of_unreachable(inode);
}

}  // namespace gofs::testing
