// SPDX-License-Identifier: Apache-2.0
//
// The scenes: each makes one family of things on the file system under test, in the current
// directory, from a seed. A scene that cannot do what it says ends the program with an error.
#pragma once

#include <cstdint>

namespace gofs::judge {

struct Scene {
  uint64_t seed;
  /// How much: what it counts is said beside each scene.
  int64_t scale;
};

// scenes_names.cpp
void names_scene(const Scene& scene);  ///< Every byte, every length, equal hashes. No scale.
void directories_scene(
    const Scene& scene);  ///< Huge, emptied, deep. scale: entries of the huge one.

// scenes_types.cpp
void types_scene(const Scene& scene);   ///< Every file type, mode, owner, link. No scale.
void times_scene(const Scene& scene);   ///< Time stamps far from today. No scale.
void xattrs_scene(const Scene& scene);  ///< Inline, straddling and external; ACLs. No scale.

// scenes_data.cpp
void edges_scene(const Scene& scene);   ///< Sizes around each border. scale 0: below 64 KiB only.
void sparse_scene(const Scene& scene);  ///< Up to the largest offset. scale: blocks scattered.
void media_scene(const Scene& scene);   ///< Larger files, fragmented. scale: KiB of each.

// scenes_churn.cpp
void churn_scene(const Scene& scene);  ///< Random operations on a population. scale: operations.
void full_scene(const Scene& scene);   ///< Fill up, delete, again. scale: how often.
void nudge_scene(const Scene& scene);  ///< A few changes, so that journals stay in use. No scale.

// scenes_features.cpp
void flags_scene(const Scene& scene);    ///< Inode flags, pinned files, garbage collection.
void verity_scene(const Scene& scene);   ///< fs-verity files (feature verity).
void project_scene(const Scene& scene);  ///< Project ids (feature project_quota).
void refused_scene(const Scene& scene);  ///< Compressed files and case-folded directories.

// scenes_crash.cpp
/// To be run before the last checkpoint: files that crash_scene() will work on, and files unlinked
/// while a process of this program keeps them open. scale: number of each.
void orphans_scene(const Scene& scene);
/// Work after the last checkpoint, with fsync but without a checkpoint. scale: files.
void crash_scene(const Scene& scene);

}  // namespace gofs::judge
