// SPDX-License-Identifier: Apache-2.0
//
// Baselines that take turns, point by point.
#pragma once

#include <vector>

#include "suite.hpp"

namespace gofs::bench {

/// Measures a group at all points of the options. Who could not give as many outstanding as a point
/// asks for has been at his maximum, and is left out of the points that ask for more.
Expected<void> run_points(const Options& options, const std::string& model,
                          const std::vector<Baseline*>& group, const Sinks& sinks);

}  // namespace gofs::bench
