// SPDX-License-Identifier: Apache-2.0
//
// For tests only: what the tests of this folder use of testing/.
#pragma once

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

}  // namespace gofs::vfs
