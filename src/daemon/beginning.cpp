// SPDX-License-Identifier: Apache-2.0
#include "daemon/beginning.h"

#include <signal.h>

#include "ssd/system_failure.h"

namespace gofs::daemon {

Beginning::Beginning() {
  posix_spawn_file_actions_init(&actions_);
  posix_spawnattr_init(&attributes_);
  sigset_t none;
  sigemptyset(&none);
  posix_spawnattr_setsigmask(&attributes_, &none);
  posix_spawnattr_setpgroup(&attributes_, 0);
  posix_spawnattr_setflags(&attributes_, POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETPGROUP);
}

Beginning::~Beginning() {
  posix_spawnattr_destroy(&attributes_);
  posix_spawn_file_actions_destroy(&actions_);
}

void Beginning::give(const ssd::Descriptor& one, int number) {
  const int error = posix_spawn_file_actions_adddup2(&actions_, one.get(), number);
  if (error != 0) ssd::fail_with(error, "a descriptor of another program");
}

}  // namespace gofs::daemon
