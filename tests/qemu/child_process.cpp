// SPDX-License-Identifier: Apache-2.0
#include "child_process.h"

#include <fcntl.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstdlib>
#include <string_view>
#include <thread>

#include "ssd/descriptor.h"
#include "ssd/system_failure.h"

namespace gofs::ssd {

namespace {

// A killed process ends when the reads and writes that the kernel does for it are done.
constexpr std::chrono::seconds kEndTimeout{30};

bool is_program(const std::string& path) { return ::access(path.c_str(), X_OK) == 0; }

/// "NAME=".
std::string_view name_in(std::string_view variable) {
  return variable.substr(0, variable.find('=') + 1);
}

std::vector<std::string> merged_environment(const std::vector<std::string>& added) {
  std::vector<std::string> all = added;
  for (char** variable = ::environ; *variable != nullptr; ++variable) {
    const bool replaced = std::any_of(added.begin(), added.end(), [&](const std::string& other) {
      return name_in(other) == name_in(*variable);
    });
    if (!replaced) all.emplace_back(*variable);
  }
  return all;
}

std::vector<char*> pointers_to(std::vector<std::string>& texts) {
  std::vector<char*> pointers;
  pointers.reserve(texts.size() + 1);
  for (std::string& text : texts) pointers.push_back(text.data());
  pointers.push_back(nullptr);
  return pointers;
}

/// What the child needs, made before it is: between fork and exec nothing may be allocated.
struct Launch {
  const char* program;
  char** arguments;
  char** environment;
  int input;
  int output;
  int complaint;  // takes the errno of what failed
  pid_t parent;
};

[[noreturn]] void become_program(const Launch& launch) {
  // A parent that ended before it could be watched would never be missed.
  const bool watched = ::prctl(PR_SET_PDEATHSIG, SIGKILL) == 0 && ::getppid() == launch.parent;
  if (watched && ::dup2(launch.input, STDIN_FILENO) >= 0 &&
      ::dup2(launch.output, STDOUT_FILENO) >= 0 && ::dup2(launch.output, STDERR_FILENO) >= 0) {
    ::execve(launch.program, launch.arguments, launch.environment);
  }
  const int error = errno;
  const ssize_t ignored = ::write(launch.complaint, &error, sizeof(error));
  ::_exit(ignored < 0 ? 126 : 127);
}

}  // namespace

std::string find_program(const std::string& program) {
  if (program.find('/') != std::string::npos) return is_program(program) ? program : "";
  const char* const path = std::getenv("PATH");
  std::string_view rest = path == nullptr ? "/usr/bin:/bin" : path;
  while (!rest.empty()) {
    const size_t length = std::min(rest.find(':'), rest.size());
    std::string candidate = std::string(rest.substr(0, length)) + '/' + program;
    if (length != 0 && is_program(candidate)) return candidate;
    rest.remove_prefix(std::min(length + 1, rest.size()));
  }
  return "";
}

ChildProcess::ChildProcess(const ChildCommand& command) {
  const std::string program = find_program(command.program);
  if (program.empty()) {
    const bool named = command.program.find('/') == std::string::npos;
    fail_with(ENOENT, command.program + (named ? ": no such program in PATH"
                                               : ": no such file that may be executed"));
  }
  const Descriptor nothing = Descriptor::open("/dev/null", O_RDWR);
  if (!nothing.is_open()) fail_with(errno, "/dev/null");
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC) != 0) fail_with(errno, "cannot make a pipe");
  const Descriptor complaint(ends[0]);
  Descriptor complaint_writer(ends[1]);

  std::vector<std::string> arguments = command.arguments;
  arguments.insert(arguments.begin(), program);
  std::vector<std::string> environment = merged_environment(command.environment);
  const std::vector<char*> argument_pointers = pointers_to(arguments);
  const std::vector<char*> environment_pointers = pointers_to(environment);
  const Launch launch{program.c_str(),
                      const_cast<char**>(argument_pointers.data()),
                      const_cast<char**>(environment_pointers.data()),
                      nothing.get(),
                      command.output >= 0 ? command.output : nothing.get(),
                      complaint_writer.get(),
                      ::getpid()};
  id_ = ::fork();
  if (id_ == 0) become_program(launch);
  if (id_ < 0) fail_with(errno, program + ": cannot fork");
  complaint_writer = Descriptor();
  // exec closes the other end, and only then is there an end to read.
  int error = 0;
  ssize_t count = 0;
  do {
    count = ::read(complaint.get(), &error, sizeof(error));
  } while (count < 0 && errno == EINTR);
  if (count != 0) {
    kill();
    fail_with(count < 0 ? errno : error, program + ": cannot start it");
  }
}

ChildProcess::~ChildProcess() { kill(); }

bool ChildProcess::reap() {
  if (ended_) return true;
  const pid_t id = ::waitpid(id_, &status_, WNOHANG);
  ended_ = id == id_ || (id < 0 && errno == ECHILD);
  return ended_;
}

bool ChildProcess::running() {
  const std::lock_guard lock(mutex_);
  return !reap();
}

void ChildProcess::kill() {
  const std::lock_guard lock(mutex_);
  if (reap()) return;
  ::kill(id_, SIGKILL);
  const auto deadline = std::chrono::steady_clock::now() + kEndTimeout;
  while (!reap() && std::chrono::steady_clock::now() < deadline) {
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
}

std::string ChildProcess::state() {
  const std::lock_guard lock(mutex_);
  if (!reap()) return "is running";
  if (WIFSIGNALED(status_)) return "was ended by signal " + std::to_string(WTERMSIG(status_));
  return "ended with status " + std::to_string(WEXITSTATUS(status_));
}

}  // namespace gofs::ssd
