// SPDX-License-Identifier: Apache-2.0
//
// The command line of `gofs bench`.
#pragma once

namespace gofs::bench {

/// Reads the arguments and measures what they name. The exit status; what goes wrong is thrown.
int run_program(int argument_count, char** arguments);

}  // namespace gofs::bench
