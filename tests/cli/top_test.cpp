// SPDX-License-Identifier: Apache-2.0
//
// gofs top: which program it becomes, and what it says where that is missing. What is shown,
// python/tests/test_top.py tests.
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "run_gofs.h"

namespace gofs::cli_test {
namespace {

/// A $PATH with one folder, in which there may be a python3.
class TopTest : public ::testing::Test {
 protected:
  TopTest() : folder_(image_.path() + ".folder"), before_(std::getenv("PATH")) {
    std::filesystem::create_directory(folder_);
    ::setenv("PATH", folder_.c_str(), 1);
  }
  ~TopTest() override {
    ::setenv("PATH", before_.c_str(), 1);
    std::filesystem::remove_all(folder_);
  }
  void have_python(const std::string& script) const {
    const std::string path = folder_ + "/python3";
    std::ofstream(path) << "#!/bin/sh\n" << script << "\n";
    ASSERT_EQ(::chmod(path.c_str(), 0755), 0);
  }

 private:
  const image::TemporaryPath image_;
  const std::string folder_;
  const std::string before_;
};

TEST_F(TopTest, what_is_missing_is_named) {
  Answer answer = run_gofs({"top", "/volume"});
  EXPECT_EQ(answer.status, 1);
  EXPECT_EQ(answer.err, "gofs: top: python3 is missing\n");
  have_python("exit 1");
  answer = run_gofs({"top", "/volume"});
  EXPECT_EQ(answer.status, 1);
  EXPECT_NE(answer.err.find("has no package gofs with textual: pip install"), std::string::npos)
      << answer.err;
  answer = run_gofs({"top", "/volume", "--web"});
  EXPECT_EQ(answer.status, 1);
  EXPECT_NE(answer.err.find("has no package gofs: pip install '.'"), std::string::npos)
      << answer.err;
}

TEST_F(TopTest, becomes_the_program_of_the_package) {
  have_python("shift 2; for word; do echo \"$word\"; done");
  EXPECT_EQ(run_gofs({"top", "/volume", "--seconds", "0.5"}).out,
            "top\n--seconds\n0.5\n--\n/volume\n");
  EXPECT_EQ(run_gofs({"top", "/volume"}).out, "top\n--seconds\n1\n--\n/volume\n");
  EXPECT_EQ(run_gofs({"top", "/volume", "--web"}).out, "top\n--seconds\n1\n--web\n--\n/volume\n");
  EXPECT_EQ(run_gofs({"top", "/volume", "--web", "[::1]:80"}).out,
            "top\n--seconds\n1\n--web=[::1]:80\n--\n/volume\n");
}

TEST_F(TopTest, wrong_words_end_with_2) {
  EXPECT_EQ(run_gofs({"top"}).status, 2);
  EXPECT_EQ(run_gofs({"top", "/volume", "--seconds", "0"}).status, 2);
  EXPECT_EQ(run_gofs({"top", "/volume", "/path"}).status, 2);
}

}  // namespace
}  // namespace gofs::cli_test
