// SPDX-License-Identifier: Apache-2.0
//
// What stands for the SSD of an image or block device where the volume's name does not say it.
#pragma once

#include <vector>

#include "host/volume_spec.h"

namespace gofs::host {

/// When what was flushed has to last.
enum class Lasting { kOnSync, kAlways };

/// Says it for all members of which nothing is said: a hosted SSD for block devices and images, but
/// a virtual one for an image that lies in memory (tmpfs), has no more than half of what is free
/// and no more holes than such an SSD fills, unless what is flushed always has to last. Beside
/// another that is not virtual, none is.
void choose_media(std::vector<VolumeSpec>& members, Lasting lasting);

}  // namespace gofs::host
