// SPDX-License-Identifier: Apache-2.0
//
// What libblkid recognises on a file or device.
#pragma once

#include <cstdint>
#include <string>

namespace gofs::image {

/// Whether GoFS was built with libblkid.
bool knows_signatures();

/// "ext4", "linux_raid_member", "a partition table (gpt)" of `bytes` from `offset` on; empty where
/// nothing is found, or GoFS was built without libblkid.
std::string find_signature(int fd, uint64_t offset, uint64_t bytes);

}  // namespace gofs::image
