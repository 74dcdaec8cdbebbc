// SPDX-License-Identifier: Apache-2.0
#include "cli/standard_descriptors.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>

namespace gofs::cli {

bool fill_standard_descriptors() {
  for (int wanted = STDIN_FILENO; wanted <= STDERR_FILENO; ++wanted) {
    if (::fcntl(wanted, F_GETFD) >= 0 || errno != EBADF) continue;
    // The other way round than it is used, and that it stays open in programs that are run.
    int opened = ::open("/dev/null", wanted == STDIN_FILENO ? O_WRONLY : O_RDONLY);
    if (opened < 0) opened = ::open("/", O_PATH | O_DIRECTORY);  // there may be no /dev
    // Lower ones are open, so this is the lowest number that is free.
    if (opened != wanted) return false;
  }
  return true;
}

}  // namespace gofs::cli
