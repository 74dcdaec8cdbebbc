// SPDX-License-Identifier: Apache-2.0
//
// For tests only: what the tests of this folder use of testing/, and have in common.
#pragma once

#include <vector>

#include "testing/volume_rig.hpp"

namespace gofs::vfs {

using gofs::testing::printed_seed;
using gofs::testing::run_alone;
using gofs::testing::run_crowd;
using gofs::testing::small_tables;
using gofs::testing::TestArena;
using gofs::testing::TestImage;
using gofs::testing::VolumeRig;
using gofs::testing::VolumeRigOptions;

inline Credentials who(uint32_t uid, uint32_t gid, const std::vector<uint32_t>& groups = {}) {
  Credentials credentials{};
  credentials.uid = uid;
  credentials.gid = gid;
  credentials.group_count = static_cast<uint32_t>(groups.size());
  for (size_t i = 0; i < groups.size(); ++i) credentials.groups[i] = groups[i];
  return credentials;
}

}  // namespace gofs::vfs
