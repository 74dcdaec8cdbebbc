// SPDX-License-Identifier: Apache-2.0
//
// For tests only: what the tests of this folder use of testing/, and have in common.
#pragma once

#include <algorithm>
#include <vector>

#include "simt/warp_group.h"
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

/// What `call(group)` says to all of `warps` that are a group, which is the same.
template <typename Call>
int64_t answer_of_group(uint32_t warps, uint32_t width, simt::Barrier& point, Call call) {
  std::vector<int64_t> got(warps);
  run_crowd({warps, width}, [&](const simt::Warp& warp, uint32_t index) {
    const simt::GridGroup group(warp, index, warps, point);
    const int64_t mine = call(group);
    if (warp.thread_rank() == 0) got[index] = mine;
  });
  EXPECT_EQ(std::count(got.begin(), got.end(), got[0]), warps);
  return got[0];
}

}  // namespace gofs::vfs
