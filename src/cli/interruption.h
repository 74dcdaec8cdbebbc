// SPDX-License-Identifier: Apache-2.0
//
// Ctrl-C in the middle of a copy: what is half done is taken away before the command ends. Only the
// commands that need this ask for it; the library has no signal handlers.
#pragma once

#include <signal.h>

namespace gofs::cli {

/// Ends a copy; the command exits with 128 + `signal`, as a shell has it.
struct Interrupted {
  int signal;

  int exit_status() const { return 128 + signal; }
};

/// While it lives, SIGHUP, SIGINT and SIGTERM end nothing but are kept for stop_if_interrupted(),
/// and system calls that wait return EINTR. A signal that was ignored before stays so. There is one
/// at a time.
class InterruptionScope {
 public:
  InterruptionScope();
  ~InterruptionScope();
  InterruptionScope(const InterruptionScope&) = delete;
  InterruptionScope& operator=(const InterruptionScope&) = delete;

 private:
  static constexpr int kSignals[] = {SIGHUP, SIGINT, SIGTERM};

  struct sigaction before_[3];
};

/// Throws Interrupted if one of the signals has come.
void stop_if_interrupted();

}  // namespace gofs::cli
