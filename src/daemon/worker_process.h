// SPDX-License-Identifier: Apache-2.0
//
// A worker as its keeper sees it: a process that runs this program once more.
#pragma once

#include <sys/types.h>

#include <string>
#include <vector>

#include "ssd/descriptor.h"

namespace gofs::daemon {

class WorkerProcess {
 public:
  /// Runs `gofsd` with these words. It gets copies of the socket, of one end of a connection, and
  /// of the claims (options.h). Throws std::system_error.
  WorkerProcess(const std::vector<std::string>& words, const ssd::Descriptor& listening,
                const std::vector<int>& claims);
  /// Kills it, if it is there still.
  ~WorkerProcess();
  WorkerProcess(const WorkerProcess&) = delete;
  WorkerProcess& operator=(const WorkerProcess&) = delete;

  /// What it says (keeper_line.h); hangs up when it has gone.
  const ssd::Descriptor& connection() const { return connection_; }
  /// Asks it to end, or ends it at once.
  void signal(int number);
  /// Whether a debugger has it, which may have stopped it.
  bool is_traced() const;
  /// Waits for its end, which it has come to: a status as of wait(2).
  int reap();

 private:
  ssd::Descriptor connection_;
  pid_t pid_ = -1;
};

/// "ended with status 3", "was ended by signal 9 (Killed)".
std::string words_of_end(int status);

}  // namespace gofs::daemon
