// SPDX-License-Identifier: Apache-2.0
//
// Statistics in the text format of Prometheus, version 0.0.4.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "gofs/command_times.hpp"
#include "gofs/types.h"

namespace gofs::host {

/// All metrics, each with its kind and a sentence. Counters are since the volume was mounted. What
/// is not known is left out. `clients`: how many processes are attached, of a server.
std::string metrics_text(const Statistics& statistics, const CommandTimes& times,
                         std::optional<uint64_t> clients = std::nullopt);

}  // namespace gofs::host
