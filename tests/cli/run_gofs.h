// SPDX-License-Identifier: Apache-2.0
//
// For tests only: runs the command under test and keeps what it said.
#pragma once

#include <fcntl.h>
#include <gtest/gtest.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <sstream>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "host/image/fsck_for_test.h"
#include "host/volume_for_test.h"

extern char** environ;

namespace gofs::cli_test {

struct Answer {
  int status = -1;  // 128 + n: ended by signal n
  std::string out;
  std::string err;
};

inline std::string read_file(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  std::ostringstream text;
  text << file.rdbuf();
  return text.str();
}

inline std::string gofs_path() {
  const char* const folder = std::getenv("GOFS_BUILD_DIR");
  return std::string(folder != nullptr ? folder : ".") + "/src/cli/gofs";
}

/// Runs gofs with standard output going to `out_descriptor`, or kept if that is -1.
inline Answer run_gofs(const std::vector<std::string>& words, int out_descriptor = -1) {
  const image::TemporaryPath out;
  const image::TemporaryPath err;
  const std::string program = gofs_path();
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
  if (out_descriptor < 0) {
    posix_spawn_file_actions_addopen(&actions, STDOUT_FILENO, out.path().c_str(),
                                     O_WRONLY | O_TRUNC, 0600);
  } else {
    posix_spawn_file_actions_adddup2(&actions, out_descriptor, STDOUT_FILENO);
  }
  posix_spawn_file_actions_addopen(&actions, STDERR_FILENO, err.path().c_str(), O_WRONLY | O_TRUNC,
                                   0600);
  std::vector<char*> arguments = {const_cast<char*>("gofs")};
  for (const std::string& word : words) arguments.push_back(const_cast<char*>(word.c_str()));
  arguments.push_back(nullptr);
  pid_t child = 0;
  Answer answer;
  const int error =
      ::posix_spawn(&child, program.c_str(), &actions, nullptr, arguments.data(), environ);
  posix_spawn_file_actions_destroy(&actions);
  if (error != 0) {
    ADD_FAILURE() << program << " cannot be run";
    return answer;
  }
  int status = 0;
  ::waitpid(child, &status, 0);
  answer.status = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  answer.out = read_file(out.path());
  answer.err = read_file(err.path());
  return answer;
}

/// Runs gofs by a shell: `after` comes behind its words, `before` comes before its path.
inline image::ToolAnswer run_in_shell(const std::string& before, const std::string& words,
                                      const std::string& after = "") {
  return image::run_tool(before + " '" + gofs_path() + "' " + words + " " + after);
}

/// Before a command line: has a user run it who owns nothing, where root does this.
inline std::string as_nobody() {
  const bool root = ::geteuid() == 0;
  return root ? "setpriv --reuid=65534 --regid=65534 --clear-groups" : "";
}

/// While it lives, two names of files or directories exchange what they name, again and again.
class Exchanging {
 public:
  Exchanging(std::string one, std::string other)
      : thread_([one = std::move(one), other = std::move(other)](const std::stop_token& stop) {
          while (!stop.stop_requested()) {
            ::renameat2(AT_FDCWD, one.c_str(), AT_FDCWD, other.c_str(), RENAME_EXCHANGE);
          }
        }) {}

 private:
  const std::jthread thread_;
};

/// An access list in the form of Linux's system calls: for the owner, a user that is named, the
/// group, the mask and others.
inline std::string access_list(int owner, int named, int group, int mask, int others) {
  std::string list("\x02\0\0\0", 4);
  const auto add = [&](int tag, int permissions, const char* id) {
    list += {static_cast<char>(tag), 0, static_cast<char>(permissions), 0};
    list.append(id, 4);
  };
  add(0x01, owner, "\xff\xff\xff\xff");
  add(0x02, named, "\x2a\0\0\0");
  add(0x04, group, "\xff\xff\xff\xff");
  add(0x10, mask, "\xff\xff\xff\xff");
  add(0x20, others, "\xff\xff\xff\xff");
  return list;
}

/// Runs gofs and expects it to do what it was told, without a word on standard error.
inline std::string gofs_says(const std::vector<std::string>& words) {
  const Answer answer = run_gofs(words);
  EXPECT_EQ(answer.status, 0) << testing::PrintToString(words) << ": " << answer.err;
  EXPECT_EQ(answer.err, "") << testing::PrintToString(words);
  return answer.out;
}

/// Expects status 1 and just this line on standard error.
inline void expect_failure(const std::vector<std::string>& words, const std::string& line) {
  const Answer answer = run_gofs(words);
  EXPECT_EQ(answer.status, 1) << testing::PrintToString(words);
  EXPECT_EQ(answer.err, "gofs: " + line + "\n") << testing::PrintToString(words);
  EXPECT_EQ(answer.out, "") << testing::PrintToString(words);
}

inline std::vector<std::string> lines_of(const std::string& text) {
  std::vector<std::string> lines;
  std::istringstream stream(text);
  for (std::string line; std::getline(stream, line);) lines.push_back(line);
  return lines;
}

/// Made once for all tests that only read it.
inline const host::SampleVolume& sample() {
  static const host::SampleVolume volume;
  return volume;
}

/// Expects fsck.f2fs to find nothing, where it is installed: a machine that is there for its GPU
/// may have none.
inline void expect_sound(const std::string& volume) {
  if (!image::tool_exists("fsck.f2fs")) return;
  EXPECT_TRUE(image::fsck_is_clean(volume));
}

/// Tests that change a copy of the sample volume, which fsck.f2fs looks at afterwards.
class CopyTest : public testing::Test {
 protected:
  CopyTest() {
    EXPECT_EQ(image::run_tool("cp " + host::sample_volume().path() + " " + copy_.path()).exit_code,
              0);
  }
  ~CopyTest() override { expect_sound(copy_.path()); }

  Answer run(const std::string& command, const std::vector<std::string>& words) {
    std::vector<std::string> all = {command, copy_.path()};
    all.insert(all.end(), words.begin(), words.end());
    return run_gofs(all);
  }
  /// What nobody complains about.
  void expect_fine(const std::string& command, const std::vector<std::string>& words) {
    const Answer answer = run(command, words);
    EXPECT_EQ(answer.status, 0) << answer.err;
    EXPECT_EQ(answer.out + answer.err, "");
  }

  const image::TemporaryPath copy_;
};

}  // namespace gofs::cli_test
