// SPDX-License-Identifier: Apache-2.0
#include "cli/guarded.h"

#include <cerrno>
#include <csignal>
#include <exception>
#include <new>
#include <string>

#include "cli/output.h"
#include "cli/session.h"
#include "cli/standard_descriptors.h"
#include "host/messages.h"

namespace gofs::cli {
namespace {

int fail(const std::string& message) {
  (void)tell(message);
  return kExitFailure;
}

int run_and_tell(int (*run)(int, char**), int argument_count, char** arguments) {
  try {
    return run(argument_count, arguments);
  } catch (const Failure& failure) {
    // What was found before the failure is still worth having.
    try {
      flush_output();
    } catch (const OutputError&) {
    }
    return fail(failure.message);
  } catch (const OutputError& output) {
    if (output.error == EPIPE) return kExitFailure;
    return fail("standard output: " + host::errno_words(output.error));
  } catch (const std::bad_alloc&) {
    return fail("not enough memory");
  } catch (const std::exception& problem) {
    return fail(problem.what());
  }
}

}  // namespace

int run_guarded(int (*run)(int, char**), int argument_count, char** arguments) {
  if (!fill_standard_descriptors()) return kExitFailure;
  std::signal(SIGPIPE, SIG_IGN);  // a closed pipe is an error of write(), as any other
  std::signal(SIGXFSZ, SIG_IGN);  // and so is the limit of a file's size (ulimit -f)
  try {
    return run_and_tell(run, argument_count, arguments);
  } catch (...) {  // no memory is left to say so
    return kExitFailure;
  }
}

}  // namespace gofs::cli
