// SPDX-License-Identifier: Apache-2.0
//
// Statistics of a volume for people and programs: how fast things went between two looks, as a line
// of columns, and all of it as JSON.
#pragma once

#include <string>

#include "cli/command_delays.h"
#include "gofs/command_times.hpp"
#include "gofs/types.h"

namespace gofs::cli {

/// What went on between two looks. A second, if not said otherwise; MB are of 1,000,000 bytes.
struct Rates {
  double seconds;  // between the two
  double reads;
  double read_mb;
  double writes;
  double written_mb;
  double opens;
  double others;  // calls that neither read, write nor open
  double failed;  // calls of any kind
  double commands;
  double ssd_read_mb;
  double ssd_written_mb;
  double hit_percent;  // of what was looked up; 100 where nothing was
};

/// Where any count has gone back, the volume was mounted anew in between: then what all are now.
Rates rates_between(const Statistics& before, const Statistics& now, double seconds);

/// The names of the columns, and a line of them: what went on, and how the volume is now.
std::string rates_header();
std::string rates_line(const Rates& rates, const Statistics& now, const CommandDelays& delays);
/// The same with all counts, as JSON in a line. `times`: null where they are not known.
std::string rates_json(const Rates& rates, const Statistics& now, const CommandDelays& delays,
                       const CommandTimes& times);

}  // namespace gofs::cli
