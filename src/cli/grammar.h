// SPDX-License-Identifier: Apache-2.0
//
// The command line of `gofs`: all its commands, arguments and options.
#pragma once

#include "cli/session.h"

namespace gofs::cli {

/// Reads the arguments and runs the command that they name. The exit status; what a command throws
/// is passed on.
int run(int argument_count, char** arguments);

}  // namespace gofs::cli
