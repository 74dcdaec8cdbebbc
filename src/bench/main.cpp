// SPDX-License-Identifier: Apache-2.0
//
// The program gofs-bench, which `gofs bench` executes.
#include "bench/grammar.hpp"
#include "cli/guarded.h"

int main(int argument_count, char** arguments) {
  return gofs::cli::run_guarded(gofs::bench::run_program, argument_count, arguments);
}
