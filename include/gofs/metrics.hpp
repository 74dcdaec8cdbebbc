// SPDX-License-Identifier: Apache-2.0
//
// What a volume does, for Prometheus: the same that `gofsd --metrics` tells of one that is served.
#pragma once

#include <string>

#include "gofs/expected.hpp"
#include "gofs/export.h"
#include "gofs/volume.hpp"

namespace gofs {

/// All of Volume::statistics() and command_times(), in the text format of Prometheus, version
/// 0.0.4, to be answered to `GET /metrics` as text/plain. Of a volume that a server has mounted:
/// what all of its clients do. Errors: those of these calls.
GOFS_API Expected<std::string> metrics(Volume& volume);

}  // namespace gofs
