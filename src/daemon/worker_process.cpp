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

#include "daemon/options.h"
#include "ssd/system_failure.h"

extern char** environ;

namespace gofs::daemon {

namespace {

/// A copy with a number that is none of those of options.h.
ssd::Descriptor high_copy(int one) {
  ssd::Descriptor copy(::fcntl(one, F_DUPFD_CLOEXEC, kKeeperDescriptor + 1));
  if (!copy.is_open()) ssd::fail_with(errno, "a descriptor");
  return copy;
}

/// How the worker begins: with no signal blocked or ignored, as this process began.
class Beginning {
 public:
  Beginning(int listening, int keeper) {
    posix_spawn_file_actions_init(&actions_);
    posix_spawn_file_actions_adddup2(&actions_, listening, kListeningDescriptor);
    posix_spawn_file_actions_adddup2(&actions_, keeper, kKeeperDescriptor);
    posix_spawnattr_init(&attributes_);
    sigset_t none;
    sigemptyset(&none);
    posix_spawnattr_setsigmask(&attributes_, &none);
    // Of its own group: the keeper decides what a Ctrl-C means.
    posix_spawnattr_setpgroup(&attributes_, 0);
    posix_spawnattr_setflags(&attributes_, POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETPGROUP);
  }
  ~Beginning() {
    posix_spawnattr_destroy(&attributes_);
    posix_spawn_file_actions_destroy(&actions_);
  }
  Beginning(const Beginning&) = delete;
  Beginning& operator=(const Beginning&) = delete;

  const posix_spawn_file_actions_t* actions() const { return &actions_; }
  const posix_spawnattr_t* attributes() const { return &attributes_; }

 private:
  posix_spawn_file_actions_t actions_;
  posix_spawnattr_t attributes_;
};

}  // namespace

WorkerProcess::WorkerProcess(const std::vector<std::string>& words,
                             const ssd::Descriptor& listening) {
  int ends[2];
  if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0) {
    ssd::fail_with(errno, "socketpair");
  }
  connection_ = ssd::Descriptor(ends[0]);
  const ssd::Descriptor theirs(ends[1]);
  const ssd::Descriptor high_listening = high_copy(listening.get());
  const ssd::Descriptor high_end = high_copy(theirs.get());
  std::vector<char*> arguments;
  for (const std::string& word : words) arguments.push_back(const_cast<char*>(word.c_str()));
  arguments.push_back(nullptr);
  const Beginning beginning(high_listening.get(), high_end.get());
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
