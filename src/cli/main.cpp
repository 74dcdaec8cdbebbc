// SPDX-License-Identifier: Apache-2.0
//
// The command `gofs`: does what its arguments ask for (grammar.h).
#include "cli/grammar.h"
#include "cli/guarded.h"

int main(int argument_count, char** arguments) {
  return gofs::cli::run_guarded(gofs::cli::run, argument_count, arguments);
}
