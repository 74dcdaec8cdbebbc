// SPDX-License-Identifier: Apache-2.0
//
// A volume after trouble: it is mounted for writing, compared with what it may hold, and goes on.
#pragma once

#include <functional>
#include <string>

#include "found_tree.h"
#include "session.h"

namespace gofs::judges {

/// How much an SSD keeps of what is written to it, in a scenario and afterwards.
inline constexpr uint64_t kScenarioLogBytes = uint64_t{48} << 20;
inline constexpr uint64_t kRecoveryLogBytes = uint64_t{6} << 20;

/// What is wrong with a tree, or nothing.
using Compare = std::function<std::string(const FoundTree& tree)>;

/// What is wrong with what a session shows, or nothing.
std::string look_at(Session& session, const Compare& compare);

/// Makes a directory, which is not among what is compared. 0, also where there is no room for it or
/// it is there, or a negative errno.
int make_something(Session& session);

/// Whether the volume can be changed and unmounted, where `syncs` with a file that is made durable
/// before; what this made before may be there. What is wrong, or nothing.
std::string go_on(Session& session, bool syncs);

/// Mounts the volume for writing, does both of the above, and unmounts; `trace`, if the options ask
/// for a log, hears what was written.
std::string mount_and_look(Disks& disks, const SessionOptions& options, const Compare& compare,
                           bool syncs, ssd::WriteTrace* trace);

}  // namespace gofs::judges
