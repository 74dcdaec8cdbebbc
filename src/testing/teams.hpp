// SPDX-License-Identifier: Apache-2.0
//
// Launches of wide warps on the CPU, for tests only: each warp is a thread, and its lanes are
// fibers that take turns on it. So a collective costs a few switches between fibers and no system
// call.
#pragma once

#include <cstdint>
#include <functional>

#include "simt/workers.h"

namespace gofs::testing {

using TeamWork = std::function<void(const simt::Warp& warp, uint32_t index)>;

/// As run_workers, but each index is a warp of `width` lanes. One warp is played by the caller's
/// thread. Lanes do not launch any.
void run_teams(uint32_t count, uint32_t width, const TeamWork& work);

}  // namespace gofs::testing
