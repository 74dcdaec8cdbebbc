// SPDX-License-Identifier: Apache-2.0
//
// What several runs of one measurement came to.
#pragma once

#include <algorithm>
#include <vector>

namespace gofs::bench {

/// Rates of the runs, a second.
struct Spread {
  double median = 0;
  double least = 0;
  double most = 0;
};

/// Of at least one run.
inline Spread spread_of(std::vector<double> rates) {
  std::sort(rates.begin(), rates.end());
  return {rates[rates.size() / 2], rates.front(), rates.back()};
}

}  // namespace gofs::bench
