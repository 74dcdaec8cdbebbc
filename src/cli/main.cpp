// SPDX-License-Identifier: Apache-2.0
//
// The command `gofs`: reads its arguments, runs one command, and turns what went wrong into the
// exit status. The commands are in files of their own; see command.h.
#include <fmt/format.h>

#include <cerrno>
#include <csignal>
#include <cstdio>
#include <exception>
#include <new>

#include "cli/command.h"
#include "cli/output.h"
#include "cli/text.h"
#include "host/messages.h"

namespace gofs::cli {
namespace {

int run(int argument_count, char** arguments) {
  Session session;
  CLI::App app("A file system that runs on the GPU: reads F2FS volumes.", "gofs");
  app.set_version_flag("--version", "gofs " GOFS_VERSION);
  app.require_subcommand(1);
  app.get_formatter()->column_width(34);
  app.footer(
      "VOL is an image, a block device or ram:SIZE, with options after a question mark:\n"
      "  vol.img?model=990pro&queues=16&depth=1024&lba=512&cache=256M&timeout=5s\n"
      "Exit status: 0, 1 when something failed, 2 for wrong usage.");
  add_info(app, session);
  add_ls(app, session);
  add_stat(app, session);
  add_cat(app, session);
  add_get(app, session);
  add_sum(app, session);
  add_check(app, session);
  add_mkfs(app, session);
  add_bench(app, session);
  add_doctor(app, session);
  try {
    app.parse(argument_count, arguments);
  } catch (const CLI::Success& request) {  // --help, --version
    return app.exit(request);
  } catch (const CLI::ParseError& problem) {
    fmt::print(stderr, "gofs: {}\nTry 'gofs --help' or 'gofs COMMAND --help'.\n",
               escaped(problem.what()));
    return kExitUsage;
  }
  flush_output();
  return session.exit_status;
}

}  // namespace
}  // namespace gofs::cli

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
