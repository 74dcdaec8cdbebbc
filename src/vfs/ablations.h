// SPDX-License-Identifier: Apache-2.0
//
// Mechanisms that a mounted volume can do without, to see what each of them brings, and to tell
// which one a fault hides in. All calls have the same results, and what is on the disk is as sound.
//
// Who does without pays for it, nobody else: each bit becomes another number in a table, or a word
// beside those that are loaded anyway.
#pragma once

#include <cstdint>

namespace gofs::vfs {

/// Bits of MountOptions::ablations; a spec has them by name (`?ablate=inode-lock,one-log`).
enum Ablation : uint32_t {
  /// `inode-lock`: who reads or writes a file has all of it, readers together, writers alone, by
  /// the ring of its range lock; nobody reads or writes single blocks outside of that.
  kAblateRangeLocks = 1u << 0,
  /// `one-log`: data of files goes to the log for it, as of all processors, instead of a segment of
  /// each.
  kAblateOpenSegments = 1u << 1,
  /// `single-blocks`: a command for each block of file data, also where neighbours lie in a row.
  kAblateMergedBlocks = 1u << 2,
  /// `single-doorbells`: a doorbell for each command, where it is one for all that stand in a row.
  kAblateSharedDoorbells = 1u << 3,
  /// `single-walks`: the lanes of a warp go down the tree of nodes one after the other, instead of
  /// level by level together.
  kAblateLevelWalks = 1u << 4,
  /// `no-maps`: open files have no block maps, so each block is found through the nodes.
  kAblateBlockMaps = 1u << 5,
};
inline constexpr uint32_t kAblations = 6;
inline constexpr uint32_t kAblationsKnown = (1u << kAblations) - 1;

}  // namespace gofs::vfs
