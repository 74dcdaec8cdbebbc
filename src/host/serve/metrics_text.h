// SPDX-License-Identifier: Apache-2.0
//
// Statistics in the text format of Prometheus, version 0.0.4.
#pragma once

#include <string>

#include "gofs/command_times.hpp"
#include "gofs/types.h"
#include "host/serve/control.h"

namespace gofs::host {

/// All metrics, each with its kind and a sentence. Counters are since the volume was mounted. What
/// is not known is left out.
std::string metrics_text(const Statistics& statistics, const CommandTimes& times,
                         const ServerStatus& server);

}  // namespace gofs::host
