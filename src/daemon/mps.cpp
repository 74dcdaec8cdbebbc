// SPDX-License-Identifier: Apache-2.0
#include "daemon/mps.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cstdlib>
#include <exception>
#include <string>
#include <vector>

#include "ssd/descriptor.h"
#include "ssd/system_failure.h"

extern char** environ;

namespace gofs::daemon {

namespace {

constexpr const char* kProgram = "nvidia-cuda-mps-control";
constexpr std::chrono::seconds kCommandTimeout{20};
// An end that takes longer waits for other programs.
constexpr std::chrono::seconds kQuitTimeout{5};
constexpr int kPollMs = 2;
constexpr size_t kWordsMax = 1000;

/// A file in memory, which begins with `bytes`.
ssd::Descriptor memory_file(const std::string& bytes) {
  ssd::Descriptor file(::memfd_create(kProgram, MFD_CLOEXEC));
  if (!file.is_open() ||
      ::pwrite(file.get(), bytes.data(), bytes.size(), 0) != static_cast<ssize_t>(bytes.size())) {
    ssd::fail_with(errno, kProgram);
  }
  return file;
}

/// What was written to it, in one line.
std::string words_of(const ssd::Descriptor& file) {
  std::string words(kWordsMax, '\0');
  const ssize_t got = ::pread(file.get(), words.data(), words.size(), 0);
  words.resize(got > 0 ? static_cast<size_t>(got) : 0);
  while (!words.empty() && words.back() == '\n') words.pop_back();
  for (char& one : words) one = one == '\n' ? ' ' : one;
  return words;
}

/// Its environment: this process's, and logs that every user may write.
std::vector<std::string> environment() {
  std::vector<std::string> all;
  for (char** one = environ; *one != nullptr; ++one) all.emplace_back(*one);
  if (std::getenv("CUDA_MPS_LOG_DIRECTORY") == nullptr) {
    const char* const pipes = std::getenv("CUDA_MPS_PIPE_DIRECTORY");
    all.push_back(std::string("CUDA_MPS_LOG_DIRECTORY=") +
                  (pipes != nullptr ? pipes : "/tmp/nvidia-mps"));
  }
  return all;
}

std::vector<char*> pointers(std::vector<std::string>& texts) {
  std::vector<char*> all;
  for (std::string& text : texts) all.push_back(text.data());
  all.push_back(nullptr);
  return all;
}

/// Starts NVIDIA's program, with signals as they were before this process has changed them.
pid_t start(std::vector<std::string> words, const ssd::Descriptor& input,
            const ssd::Descriptor& output) {
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_adddup2(&actions, input.get(), STDIN_FILENO);
  posix_spawn_file_actions_adddup2(&actions, output.get(), STDOUT_FILENO);
  posix_spawn_file_actions_adddup2(&actions, output.get(), STDERR_FILENO);
  posix_spawnattr_t attributes;
  posix_spawnattr_init(&attributes);
  sigset_t none;
  sigemptyset(&none);
  posix_spawnattr_setsigmask(&attributes, &none);
  // Of its own group: it outlives a Ctrl-C.
  posix_spawnattr_setpgroup(&attributes, 0);
  posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETPGROUP);
  std::vector<std::string> variables = environment();
  pid_t pid = -1;
  const int error = ::posix_spawnp(&pid, kProgram, &actions, &attributes, pointers(words).data(),
                                   pointers(variables).data());
  posix_spawnattr_destroy(&attributes);
  posix_spawn_file_actions_destroy(&actions);
  if (error != 0) ssd::fail_with(error, kProgram);
  return pid;
}

/// Whether it has ended with status 0; one that has not ended by then is killed.
bool has_succeeded(pid_t pid, std::chrono::seconds timeout) {
  const auto deadline = std::chrono::steady_clock::now() + timeout;
  int status = 0;
  for (;;) {
    const pid_t ended = ::waitpid(pid, &status, WNOHANG);
    if (ended == pid) return WIFEXITED(status) && WEXITSTATUS(status) == 0;
    if (ended < 0 && errno != EINTR) return false;
    if (std::chrono::steady_clock::now() > deadline) break;
    (void)::poll(nullptr, 0, kPollMs);
  }
  (void)::kill(pid, SIGKILL);
  (void)::waitpid(pid, &status, 0);
  return false;
}

/// Runs it. Whether it has succeeded; `said`: what it wrote.
bool run(const std::vector<std::string>& options, const std::string& input,
         std::chrono::seconds timeout, std::string& said) {
  std::vector<std::string> words{kProgram};
  words.insert(words.end(), options.begin(), options.end());
  const ssd::Descriptor asked = memory_file(input);
  const ssd::Descriptor answered = memory_file({});
  const bool succeeded = has_succeeded(start(words, asked, answered), timeout);
  said = words_of(answered);
  return succeeded;
}

}  // namespace

Mps::Mps() {
  std::string said;
  is_ours_ = run({"-d"}, {}, kCommandTimeout, said);
  std::string list;
  if (is_ours_ || run({}, "get_server_list\n", kCommandTimeout, list)) return;
  ssd::fail_with(EIO, std::string(kProgram) +
                          " -d does not start MPS: " + (said.empty() ? "it says nothing" : said));
}

Mps::~Mps() {
  if (!is_ours_) return;
  try {
    std::string said;
    (void)run({}, "quit\n", kQuitTimeout, said);
  } catch (const std::exception&) {  // it goes on, and does no harm
  }
}

}  // namespace gofs::daemon
