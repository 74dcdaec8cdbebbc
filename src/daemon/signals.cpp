// SPDX-License-Identifier: Apache-2.0
#include "daemon/signals.h"

#include <signal.h>
#include <sys/signalfd.h>

#include <cerrno>

#include "ssd/system_failure.h"

namespace gofs::daemon {

ssd::Descriptor ending_signals() {
  sigset_t signals;
  sigemptyset(&signals);
  sigaddset(&signals, SIGTERM);
  sigaddset(&signals, SIGINT);
  // Who has started this process may have ignored it, and then nobody learns how a worker ends.
  (void)::signal(SIGCHLD, SIG_DFL);
  if (::pthread_sigmask(SIG_BLOCK, &signals, nullptr) != 0) ssd::fail_with(errno, "signals");
  ssd::Descriptor descriptor(::signalfd(-1, &signals, SFD_CLOEXEC | SFD_NONBLOCK));
  if (!descriptor.is_open()) ssd::fail_with(errno, "signalfd");
  return descriptor;
}

}  // namespace gofs::daemon
