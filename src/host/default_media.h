// SPDX-License-Identifier: Apache-2.0
//
// What stands for the SSD of an image or block device where the volume's name does not say it.
#pragma once

#include <vector>

#include "host/volume_spec.h"

namespace gofs::host {

/// Says it for all members of which nothing is said: a hosted SSD for block devices and images, but
/// a virtual one for an image of no more than half of the free memory: on a GPU for each of them,
/// for host programs (`on_host`) where it lies in memory already (tmpfs). Beside another that is
/// not virtual, none is.
void choose_media(std::vector<VolumeSpec>& members, bool on_host);

}  // namespace gofs::host
