// SPDX-License-Identifier: Apache-2.0
//
// What the backend's warps do with many files at once where the volume is mounted here, done by
// calls that any program could make: for volumes of servers.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "host/any_volume.h"
#include "kernels/sha256.h"

namespace gofs::host {

/// As Volume::batch_create(), but that a file which a crash interrupts may be there with less than
/// it should hold.
Expected<std::vector<int>> create_by_calls(AnyVolume& volume, const std::string& directory,
                                           const std::vector<NewFile>& files, uint32_t permissions);

/// The SHA-256 of the open file `descriptor`, all of which is read. 0, or what explain() takes.
/// `progress(bytes)` is told of each portion.
int64_t hash_by_calls(AnyVolume& volume, int descriptor,
                      uint8_t (&digest)[kernels::kSha256DigestBytes],
                      const std::function<void(uint64_t bytes)>& progress);

}  // namespace gofs::host
