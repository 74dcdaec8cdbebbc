// SPDX-License-Identifier: Apache-2.0
//
// The frame of a program's main(): what went wrong becomes a line on standard error and the exit
// status.
#pragma once

namespace gofs::cli {

/// Calls `run`, which answers with the exit status, or throws: Failure, OutputError, anything.
int run_guarded(int (*run)(int, char**), int argument_count, char** arguments);

}  // namespace gofs::cli
