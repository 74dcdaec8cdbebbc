// SPDX-License-Identifier: Apache-2.0
//
// Many files made by the backend's warps at once (kernels/batch.h), from the host's side.
#pragma once

#include <string>
#include <vector>

#include "host/volume_state.h"

namespace gofs::host {

/// Makes `files` in the directory `path`, in portions that are calls of their own. For each 0 or an
/// errno. Errors: those of the directory, for the first portion; ENOMEM, ENODEV, EIO when the
/// backend fails.
Expected<std::vector<int>> create_files(VolumeState& volume, const std::string& path,
                                        const std::vector<NewFile>& files, uint32_t permissions);

}  // namespace gofs::host
