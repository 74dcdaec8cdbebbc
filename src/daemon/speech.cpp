// SPDX-License-Identifier: Apache-2.0
#include "daemon/speech.h"

#include <poll.h>
#include <unistd.h>

#include "cli/output.h"
#include "cli/session.h"

namespace gofs::daemon {

namespace {

/// Of a pipe: there is room for PIPE_BUF bytes, more than a line has.
bool has_room(int descriptor) {
  pollfd look{descriptor, POLLOUT, 0};
  return ::poll(&look, 1, 0) == 1 && (look.revents & POLLOUT) != 0;
}

}  // namespace

void say(const std::string& line) {
  if (!has_room(STDOUT_FILENO)) return;
  try {
    cli::print(line + "\n");
    cli::flush_output();
  } catch (const cli::OutputError&) {
  }
}

void complain(const std::string& message) {
  if (has_room(STDERR_FILENO)) (void)cli::tell(message);
}

}  // namespace gofs::daemon
