// SPDX-License-Identifier: Apache-2.0
//
// Mechanisms that a mounted volume can do without, to see what each of them brings, and to tell
// which one a fault hides in. All calls have the same results, and what is on the disk is as sound.
//
// Only the mount without it pays: each bit becomes another number in a table, or a word beside
// those that are loaded anyway.
#pragma once

#include "gofs/types.h"

namespace gofs::vfs {

using gofs::Ablation;
using gofs::kAblateBlockMaps;
using gofs::kAblateLevelWalks;
using gofs::kAblateMergedBlocks;
using gofs::kAblateOpenSegments;
using gofs::kAblateRangeLocks;
using gofs::kAblateSharedDoorbells;

inline constexpr uint32_t kAblations = 6;
inline constexpr uint32_t kAblationsKnown = (1u << kAblations) - 1;

}  // namespace gofs::vfs
