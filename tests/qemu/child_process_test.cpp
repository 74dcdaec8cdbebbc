// SPDX-License-Identifier: Apache-2.0
//
// Programs beside this one: what they are given, how they end, and what cannot be started.
#include "child_process.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <cerrno>
#include <chrono>
#include <csignal>
#include <fstream>
#include <sstream>
#include <thread>

#include "errors_for_test.h"
#include "scratch_folder.h"
#include "ssd/descriptor.h"

namespace gofs::ssd {
namespace {

class ChildProcessTest : public ::testing::Test {
 protected:
  static void wait_for_end(ChildProcess& child) {
    for (int i = 0; i < 10000 && child.running(); ++i) {
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
  }
  static std::string content(const std::string& path) {
    std::ostringstream text;
    text << std::ifstream(path).rdbuf();
    return text.str();
  }
  ScratchFolder folder_{::testing::TempDir()};
};

TEST_F(ChildProcessTest, gets_arguments_and_environment_and_prints_into_a_file) {
  const std::string path = folder_.file("output");
  const Descriptor output(::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600));
  ChildProcess child({"sh",
                      {"-c", "echo \"$1 $GOFS_WORD\"; echo trouble >&2; exit 3", "sh", "a  b"},
                      {"GOFS_WORD=word"},
                      output.get()});
  wait_for_end(child);
  EXPECT_EQ(child.state(), "ended with status 3");
  EXPECT_EQ(content(path), "a  b word\ntrouble\n");
}

TEST_F(ChildProcessTest, an_environment_of_its_own_takes_the_place_of_ours) {
  const std::string path = folder_.file("output");
  const Descriptor output(::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600));
  ChildProcess child({"/bin/sh", {"-c", "echo $PATH; echo $PATHS"}, {"PATH=/x"}, output.get()});
  wait_for_end(child);
  EXPECT_EQ(content(path), "/x\n\n");
}

TEST_F(ChildProcessTest, kill_ends_it_once_and_for_all) {
  ChildProcess child({"sleep", {"1000"}, {}, -1});
  EXPECT_TRUE(child.running());
  EXPECT_EQ(child.state(), "is running");
  child.kill();
  EXPECT_FALSE(child.running());
  EXPECT_EQ(child.state(), "was ended by signal " + std::to_string(SIGKILL));
  child.kill();
}

TEST_F(ChildProcessTest, a_program_that_is_missing_is_named) {
  const Trouble named = trouble_of([] { ChildProcess({"gofs-no-such-program", {}, {}, -1}); });
  EXPECT_EQ(named.error, ENOENT);
  EXPECT_TRUE(named.says("gofs-no-such-program: no such program in PATH")) << named.text;
  const Trouble at_path = trouble_of([] { ChildProcess({"/no/such", {}, {}, -1}); });
  EXPECT_EQ(at_path.error, ENOENT);
  EXPECT_TRUE(at_path.says("/no/such: no such file")) << at_path.text;
}

TEST_F(ChildProcessTest, a_file_that_is_no_program_is_refused) {
  const std::string path = folder_.file("program");
  std::ofstream(path) << "neither a script nor a binary";
  ASSERT_EQ(::chmod(path.c_str(), 0700), 0);
  const Trouble trouble = trouble_of([&] { ChildProcess({path, {}, {}, -1}); });
  EXPECT_EQ(trouble.error, ENOEXEC);
  EXPECT_TRUE(trouble.says(path)) << trouble.text;
}

TEST_F(ChildProcessTest, ends_with_the_thread_that_made_it) {
  std::unique_ptr<ChildProcess> child;
  std::thread([&] {
    child = std::make_unique<ChildProcess>(ChildCommand{"sleep", {"1000"}, {}, -1});
  }).join();
  wait_for_end(*child);
  EXPECT_FALSE(child->running());
}

}  // namespace
}  // namespace gofs::ssd
