// SPDX-License-Identifier: Apache-2.0
#include "daemon/worker_process.h"

#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <fstream>

#include "daemon/beginning.h"
#include "daemon/options.h"
#include "ssd/system_failure.h"

extern char** environ;

namespace gofs::daemon {

namespace {

/// A copy with a number of at least `least`.
ssd::Descriptor high_copy(int one, int least) {
  ssd::Descriptor copy(::fcntl(one, F_DUPFD_CLOEXEC, least));
  if (!copy.is_open()) ssd::fail_with(errno, "a descriptor");
  return copy;
}

}  // namespace

WorkerProcess::WorkerProcess(const std::vector<std::string>& words,
                             const ssd::Descriptor& listening, const std::vector<int>& claims) {
  int ends[2];
  if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0) {
    ssd::fail_with(errno, "socketpair");
  }
  connection_ = ssd::Descriptor(ends[0]);
  const ssd::Descriptor theirs(ends[1]);
  // None of them has the number that another one gets.
  static_assert(kKeeperDescriptor == kListeningDescriptor + 1 &&
                kFirstClaim == kKeeperDescriptor + 1);
  std::vector<int> given{listening.get(), theirs.get()};
  given.insert(given.end(), claims.begin(), claims.end());
  std::vector<ssd::Descriptor> descriptors;
  for (const int one : given) {
    descriptors.push_back(high_copy(one, kListeningDescriptor + static_cast<int>(given.size())));
  }
  std::vector<char*> arguments;
  for (const std::string& word : words) arguments.push_back(const_cast<char*>(word.c_str()));
  arguments.push_back(nullptr);
  Beginning beginning;
  int number = kListeningDescriptor;
  for (const ssd::Descriptor& one : descriptors) beginning.give(one, number++);
  const int error = ::posix_spawn(&pid_, "/proc/self/exe", beginning.actions(),
                                  beginning.attributes(), arguments.data(), environ);
  if (error != 0) ssd::fail_with(error, "starting the worker");
}

WorkerProcess::~WorkerProcess() {
  if (pid_ < 0) return;
  signal(SIGKILL);
  (void)reap();
}

void WorkerProcess::signal(int number) {
  if (pid_ > 0) (void)::kill(pid_, number);
}

bool WorkerProcess::is_traced() const {
  std::ifstream status("/proc/" + std::to_string(pid_) + "/status");
  for (std::string word; status >> word;) {
    if (word != "TracerPid:") continue;
    pid_t tracer = 0;
    status >> tracer;
    return tracer != 0;
  }
  return false;
}

int WorkerProcess::reap() {
  int status = 0;
  while (::waitpid(pid_, &status, 0) < 0 && errno == EINTR) {
  }
  pid_ = -1;
  return status;
}

std::string words_of_end(int status) {
  if (WIFEXITED(status)) return "ended with status " + std::to_string(WEXITSTATUS(status));
  const int number = WTERMSIG(status);
  return "was ended by signal " + std::to_string(number) + " (" + ::strsignal(number) + ")";
}

}  // namespace gofs::daemon
