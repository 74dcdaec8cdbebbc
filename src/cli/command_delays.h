// SPDX-License-Identifier: Apache-2.0
//
// What iostat says of a disk, of the SSDs whose commands are timed: how long those took that ended
// between two looks, how many were under way, and for how much of the time any was.
#pragma once

#include <optional>

#include "gofs/command_times.hpp"

namespace gofs::cli {

/// Without a value: the volume's SSDs are not timed, or no such command has ended.
struct CommandDelays {
  std::optional<double> read_await_ms;  // of a read, on average
  std::optional<double> write_await_ms;
  std::optional<double> p50_ms;  // so long or less took 50 % of all commands: estimated
  std::optional<double> p99_ms;
  std::optional<double> queue;         // commands under way, on average over time
  std::optional<double> busy_percent;  // of the time, and of the SSDs that are timed
};

/// Where a count has gone back, the volume was mounted anew in between: then of all since.
CommandDelays delays_between(const CommandTimes& before, const CommandTimes& now, double seconds);

}  // namespace gofs::cli
