// SPDX-License-Identifier: Apache-2.0
//
// Launches whose results thousands of warps add to. What they are given and what they leave lies in
// the backend's own memory meanwhile: in the host's, each warp that adds to a result would keep the
// others waiting, 1 us each on a GPU.
#pragma once

#include <type_traits>

#include "host/volume_state.h"

namespace gofs::host {

/// Calls `run(Job*)`, which launches something and waits for it, with a copy of `job` in `memory`.
/// False where that does; else `job` is what the launch has left. Throws std::bad_alloc.
template <typename Job, typename Run>
bool run_in(simt::MemorySpace& memory, Job& job, Run run) {
  static_assert(std::is_trivially_copyable_v<Job>);
  const SharedArray<Job> placed(memory, 1);
  memory.write(placed.data(), &job, sizeof(Job));
  if (!run(placed.data())) return false;
  memory.read(&job, placed.data(), sizeof(Job));
  return true;
}

/// The same with `body`, as VolumeState::run(). False as well where the backend has failed for good
/// since, and what it left is not known.
template <typename Job>
bool run_job(VolumeState& volume, const kernels::Body& body, const kernels::Grid& grid, Job& job) {
  const bool ran = run_in(volume.backend().memory(), job,
                          [&](Job* placed) { return volume.run(body, grid, placed); });
  return ran && !volume.has_failed();
}

}  // namespace gofs::host
