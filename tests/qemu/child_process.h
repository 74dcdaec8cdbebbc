// SPDX-License-Identifier: Apache-2.0
//
// A program that runs beside this process and not longer than it. Host only; any thread may call
// any function at any time.
#pragma once

#include <sys/types.h>

#include <mutex>
#include <string>
#include <vector>

namespace gofs::ssd {

struct ChildCommand {
  std::string program;                   // path, or a name that PATH knows
  std::vector<std::string> arguments;    // without the name of the program
  std::vector<std::string> environment;  // "NAME=value": added to this process's, or in its place
  int output = -1;                       // descriptor of a file for what it prints and complains of
};

/// The path of an executable file, looked for in PATH unless it has a '/'; empty if there is none.
std::string find_program(const std::string& program);

/// Linux kills the program when the thread that made this one ends, so that is a thread that lives
/// as long.
class ChildProcess {
 public:
  /// Throws std::system_error if the program cannot be started.
  explicit ChildProcess(const ChildCommand& command);
  ~ChildProcess();
  ChildProcess(const ChildProcess&) = delete;
  ChildProcess& operator=(const ChildProcess&) = delete;

  bool running();
  /// By SIGKILL, and waits until it is gone.
  void kill();
  /// "ended with status 1", "was ended by signal 9" or "is running".
  std::string state();

 private:
  /// Whether it has ended. Called under the lock.
  bool reap();

  std::mutex mutex_;
  pid_t id_ = -1;
  bool ended_ = false;
  int status_ = 0;
};

}  // namespace gofs::ssd
