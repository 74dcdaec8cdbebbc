// SPDX-License-Identifier: Apache-2.0
//
// What several runs came to (spread.hpp), as tables and JSON show it.
#pragma once

#include <fmt/format.h>

#include <nlohmann/json.hpp>
#include <string>

#include "bench/spread.hpp"

namespace gofs::bench {

/// Times `factor`.
inline nlohmann::ordered_json spread_json(const Spread& spread, double factor = 1) {
  return {{"median", spread.median * factor},
          {"least", spread.least * factor},
          {"most", spread.most * factor}};
}

/// In such units.
inline std::string spread_text(const Spread& spread, double unit) {
  return fmt::format("{:.4g} ({:.4g} to {:.4g})", spread.median / unit, spread.least / unit,
                     spread.most / unit);
}

}  // namespace gofs::bench
