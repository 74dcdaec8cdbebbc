// SPDX-License-Identifier: Apache-2.0
#include "daemon/short_program.h"

#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstddef>

#include "daemon/beginning.h"
#include "ssd/descriptor.h"
#include "ssd/system_failure.h"

extern char** environ;

namespace gofs::daemon {

namespace {

using Clock = std::chrono::steady_clock;

constexpr int kPollMs = 2;
constexpr size_t kWordsMax = 1000;

/// A file in memory, which begins with `bytes`. A pipe could be full, or left open by who outlives
/// the program.
ssd::Descriptor memory_file(const std::string& bytes) {
  ssd::Descriptor file(::memfd_create("gofsd", MFD_CLOEXEC));
  if (!file.is_open() ||
      ::pwrite(file.get(), bytes.data(), bytes.size(), 0) != static_cast<ssize_t>(bytes.size())) {
    ssd::fail_with(errno, "a file in memory");
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

std::vector<char*> pointers(std::vector<std::string>& texts) {
  std::vector<char*> all;
  for (std::string& text : texts) all.push_back(text.data());
  all.push_back(nullptr);
  return all;
}

pid_t start(const ShortProgram& program, const ssd::Descriptor& input,
            const ssd::Descriptor& output) {
  Beginning beginning;
  beginning.give(input, STDIN_FILENO);
  beginning.give(output, STDOUT_FILENO);
  beginning.give(output, STDERR_FILENO);
  std::vector<std::string> words = program.words;
  std::vector<std::string> variables = program.variables;
  for (char** one = environ; *one != nullptr; ++one) variables.emplace_back(*one);
  pid_t pid = -1;
  const int error =
      ::posix_spawnp(&pid, words.front().c_str(), beginning.actions(), beginning.attributes(),
                     pointers(words).data(), pointers(variables).data());
  if (error != 0) ssd::fail_with(error, words.front());
  return pid;
}

/// Whether it has ended with status 0; one that has not ended by then is killed.
bool has_succeeded(pid_t pid, Clock::time_point deadline) {
  int status = 0;
  for (;;) {
    const pid_t ended = ::waitpid(pid, &status, WNOHANG);
    if (ended == pid) return WIFEXITED(status) && WEXITSTATUS(status) == 0;
    if (ended < 0 && errno != EINTR) return false;
    if (Clock::now() > deadline) break;
    (void)::poll(nullptr, 0, kPollMs);
  }
  (void)::kill(pid, SIGKILL);
  while (::waitpid(pid, &status, 0) < 0 && errno == EINTR) {
  }
  return false;
}

}  // namespace

bool run_to_end(const ShortProgram& program, std::string& said) {
  const ssd::Descriptor input = memory_file(program.input);
  const ssd::Descriptor output = memory_file({});
  const bool succeeded =
      has_succeeded(start(program, input, output), Clock::now() + program.timeout);
  said = words_of(output);
  return succeeded;
}

}  // namespace gofs::daemon
