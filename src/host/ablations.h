// SPDX-License-Identifier: Apache-2.0
//
// The names of what a mount can do without (vfs/ablations.h).
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "vfs/ablations.h"

namespace gofs::host {

/// Of the bits that are known, in their order.
std::vector<std::string> ablation_names(uint32_t ablations);

/// Takes names with commas between them. Empty, or what is wrong with them.
std::string parse_ablations(std::string_view text, uint32_t& ablations);

}  // namespace gofs::host
