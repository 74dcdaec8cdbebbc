// SPDX-License-Identifier: Apache-2.0
//
// gofs bench is another program: where it is looked for, what it is told, and what is said where it
// is missing. What it measures is seen to in bench_command_test.cpp.
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <string>

#include "run_gofs.h"

namespace gofs::cli_test {
namespace {

namespace fs = std::filesystem;

constexpr const char* kMeasured = "bench ram:4M raw --operations 20 --backend cpu";

/// A folder in which the command is installed, and first of all nothing else.
class BenchProgram : public testing::Test {
 protected:
  BenchProgram() {
    fs::create_directories(bin());
    fs::copy_file(gofs_path(), bin() / "gofs");
  }
  ~BenchProgram() override { fs::remove_all(root_); }

  fs::path bin() const { return root_ / "a folder" / "bin"; }
  fs::path libexec() const { return root_ / "a folder" / "libexec" / "gofs"; }
  fs::path root() const { return root_; }

  /// Installs gofs-bench there.
  static void install(const fs::path& folder) {
    fs::create_directories(folder);
    fs::copy_file(fs::path(gofs_path()).parent_path() / "gofs-bench", folder / "gofs-bench");
  }
  /// Installs a program that prints its arguments, one a line.
  static void install_echo(const fs::path& folder) {
    fs::create_directories(folder);
    std::ofstream(folder / "gofs-bench") << "#!/bin/sh\nprintf '%s\\n' \"$@\"\n";
    fs::permissions(folder / "gofs-bench", fs::perms::owner_all);
  }
  image::ToolAnswer run(const std::string& words) const {
    return image::run_tool("cd '" + root_.string() + "'; '" + (bin() / "gofs").string() + "' " +
                           words);
  }
  void expect_told(const std::string& words, const std::string& told) const {
    const image::ToolAnswer answer = run(words);
    EXPECT_EQ(answer.exit_code, 0) << words;
    EXPECT_EQ(answer.output, told) << words;
  }
  void expect_one_line(const std::string& part) const {
    const image::ToolAnswer answer = run(kMeasured);
    EXPECT_EQ(answer.exit_code, 1);
    EXPECT_TRUE(answer.output.starts_with("gofs: ")) << answer.output;
    EXPECT_NE(answer.output.find(part), std::string::npos) << answer.output;
    EXPECT_EQ(std::count(answer.output.begin(), answer.output.end(), '\n'), 1) << answer.output;
  }

 private:
  const fs::path root_ =
      fs::path(testing::TempDir()) / ("gofs_bench_program_" + std::to_string(::getpid()));
};

TEST_F(BenchProgram, is_missed_in_one_line) {
  expect_one_line("gofs-bench is missing");
  install(root());  // where the user stands is no place for it
  expect_one_line("gofs-bench is missing");
  fs::create_directories(bin() / "gofs-bench");
  expect_one_line("gofs-bench is missing");
}

TEST_F(BenchProgram, that_cannot_be_executed_is_told_of_in_one_line) {
  install_echo(bin());
  fs::permissions(bin() / "gofs-bench", fs::perms::owner_read);
  expect_one_line("gofs-bench: Permission denied");
}

TEST_F(BenchProgram, measures_beside_the_command_and_in_libexec) {
  for (const fs::path& folder : {libexec(), bin()}) {
    install(folder);
    const image::ToolAnswer answer = run(kMeasured);
    EXPECT_EQ(answer.exit_code, 0) << answer.output;
    EXPECT_NE(answer.output.find("\nraw    random"), std::string::npos) << answer.output;
    fs::remove(folder / "gofs-bench");
  }
}

TEST_F(BenchProgram, beside_the_command_comes_before_libexec) {
  install(libexec());
  install_echo(bin());
  expect_told("bench one", "one\n");
}

TEST_F(BenchProgram, is_told_what_stands_behind_bench_as_it_is) {
  install_echo(bin());
  expect_told("bench", "\n");
  expect_told("bench 'a b' '' --file '*' -- bench --json", "a b\n\n--file\n*\n--\nbench\n--json\n");
}

TEST_F(BenchProgram, is_told_options_in_front_unless_they_are_given_behind) {
  install_echo(bin());
  expect_told("--json --backend cpu bench vol", "--json\n--backend\ncpu\nvol\n");
  expect_told("--backend=cpu bench vol", "--backend=cpu\nvol\n");
  expect_told("--backend cpu bench vol --backend cuda", "vol\n--backend\ncuda\n");
  expect_told("--json bench micro --json", "micro\n--json\n");
  expect_told("--json bench -- --json", "--json\n--\n--json\n");
  expect_told("--backend bench bench vol", "--backend\nbench\nvol\n");
}

TEST_F(BenchProgram, is_not_asked_where_bench_is_no_command) {
  install_echo(bin());
  for (const char* words : {"ls bench", "--sideways bench vol", "--backend bench"}) {
    const image::ToolAnswer answer = run(words);
    EXPECT_NE(answer.exit_code, 0) << words;
    EXPECT_TRUE(answer.output.starts_with("gofs: ")) << words << ": " << answer.output;
  }
  EXPECT_TRUE(run("--version bench").output.starts_with("gofs "));
}

}  // namespace
}  // namespace gofs::cli_test
