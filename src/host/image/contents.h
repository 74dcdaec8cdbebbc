// SPDX-License-Identifier: Apache-2.0
//
// Whether a file or device holds something that a new volume would write over.
#pragma once

#include <cstdint>
#include <string>

#include "host/image/image_target.h"

namespace gofs::image {

/// What lies in `bytes` from `offset` on: what libblkid calls it ("ext4"), or "data". Of a file any
/// byte that is not zero counts, of a device those of its first and last MiB, and what libblkid
/// finds. Empty: nothing.
Status find_contents(int fd, uint64_t offset, uint64_t bytes, std::string* found);

/// EEXIST where a target has an F2FS volume or, if it is a file or a device, holds anything else.
Status refuse_contents(ImageTarget& target);
/// The same of a part, whatever an F2FS volume would look like there.
Status refuse_contents(ImageTarget& target, uint64_t offset, uint64_t bytes);

}  // namespace gofs::image
