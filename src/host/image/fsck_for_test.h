// SPDX-License-Identifier: Apache-2.0
//
// For tests only: what fsck.f2fs says of an image, and temporary files to show it. A test that
// needs a judge begins with GOFS_NEED_TOOL("fsck.f2fs").
#pragma once

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <string>
#include <string_view>

namespace gofs::image {

/// A path in the temporary folder that is removed with this object.
class TemporaryPath {
 public:
  TemporaryPath() {
    const char* folder = std::getenv("TMPDIR");
    path_ = std::string(folder != nullptr ? folder : "/tmp") + "/gofs-image-XXXXXX";
    const int fd = mkstemp(path_.data());
    if (fd >= 0) ::close(fd);
  }
  TemporaryPath(const TemporaryPath&) = delete;
  TemporaryPath& operator=(const TemporaryPath&) = delete;
  ~TemporaryPath() { ::unlink(path_.c_str()); }
  const std::string& path() const { return path_; }

 private:
  std::string path_;
};

struct ToolAnswer {
  int exit_code;
  std::string output;
};

/// Runs a shell command with no input; the sbin folders are searched too.
inline ToolAnswer run_tool(const std::string& command) {
  const std::string line =
      "PATH=$PATH:/usr/sbin:/sbin; export PATH; { " + command + "; } </dev/null 2>&1";
  ToolAnswer answer{-1, {}};
  FILE* pipe = popen(line.c_str(), "r");
  if (pipe == nullptr) return answer;
  char buffer[4096];
  for (size_t bytes; (bytes = fread(buffer, 1, sizeof(buffer), pipe)) > 0;) {
    answer.output.append(buffer, bytes);
  }
  const int status = pclose(pipe);
  answer.exit_code = WIFEXITED(status) ? WEXITSTATUS(status) : -1;
  return answer;
}

inline bool tool_exists(const std::string& name) {
  return run_tool("command -v " + name).exit_code == 0;
}

/// Success if fsck.f2fs finds nothing. It reports some faults with exit code 0, so its words count,
/// but for lines with `expected` in them.
inline ::testing::AssertionResult fsck_is_clean(const std::string& image,
                                                const std::string& expected = "") {
  ToolAnswer answer = run_tool("fsck.f2fs --dry-run '" + image + "'");
  for (size_t at = 0;
       !expected.empty() && (at = answer.output.find(expected)) != std::string::npos;) {
    answer.output.erase(at, answer.output.find('\n', at) - at);
  }
  if (answer.exit_code != 0) {
    return ::testing::AssertionFailure() << "fsck.f2fs exits with " << answer.exit_code << ":\n"
                                         << answer.output;
  }
  constexpr std::string_view kComplaints[] = {"[ASSERT]", "[FIX]", "[Fail]",      "Invalid",
                                              "Error",    "Wrong", "unreachable", "Mismatch"};
  for (const std::string_view complaint : kComplaints) {
    if (answer.output.find(complaint) != std::string::npos) {
      return ::testing::AssertionFailure() << "fsck.f2fs says " << complaint << ":\n"
                                           << answer.output;
    }
  }
  if (answer.output.find("[FSCK]") == std::string::npos) {
    return ::testing::AssertionFailure() << "fsck.f2fs did not check:\n" << answer.output;
  }
  return ::testing::AssertionSuccess();
}

}  // namespace gofs::image

#define GOFS_NEED_TOOL(name)                                      \
  if (!::gofs::image::tool_exists(name)) {                        \
    GTEST_SKIP() << "SKIPPED: " << (name) << " is not installed"; \
  }                                                               \
  static_assert(true)
