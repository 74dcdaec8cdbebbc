// SPDX-License-Identifier: Apache-2.0
//
// The command `gofs`: runs what its arguments ask for (grammar.h) and turns what went wrong into
// the exit status.
#include <fmt/format.h>

#include <cerrno>
#include <csignal>
#include <cstdio>
#include <exception>
#include <new>

#include "cli/grammar.h"
#include "cli/output.h"
#include "cli/session.h"
#include "cli/text.h"
#include "host/messages.h"

int main(int argument_count, char** arguments) {
  using namespace gofs;
  std::signal(SIGPIPE, SIG_IGN);  // a closed pipe is an error of write(), as any other
  const auto fail = [](const std::string& message) {
    fmt::print(stderr, "gofs: {}\n", cli::escaped(message));
    return cli::kExitFailure;
  };
  try {
    return cli::run(argument_count, arguments);
  } catch (const cli::Failure& failure) {
    // What was found before the failure is still worth having.
    try {
      cli::flush_output();
    } catch (const cli::OutputError&) {
    }
    return fail(failure.message);
  } catch (const cli::OutputError& output) {
    if (output.error == EPIPE) return cli::kExitFailure;
    return fail("standard output: " + host::errno_words(output.error));
  } catch (const std::bad_alloc&) {
    return fail("not enough memory");
  } catch (const std::exception& problem) {
    return fail(problem.what());
  }
}
