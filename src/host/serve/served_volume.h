// SPDX-License-Identifier: Apache-2.0
//
// A mounted volume as a server has it.
#pragma once

#include "host/serve/channel_server.h"
#include "host/volume_state.h"

namespace gofs::host {

inline ServedFilesystem served(VolumeState& volume) {
  const auto run = [&volume](const kernels::Body& body, const kernels::Grid& grid, void* params) {
    return volume.run(body, grid, params);
  };
  const auto begin = [&volume](const kernels::Body& body, const kernels::Grid& grid, void* params) {
    return volume.begin(body, grid, params);
  };
  return {volume.name(), volume.filesystem(), &volume.backend(), run, begin};
}

}  // namespace gofs::host
