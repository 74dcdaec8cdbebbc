// SPDX-License-Identifier: Apache-2.0
//
// gofs chmod, chown, touch and gc: what they understand, and what is there afterwards.
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "run_gofs.h"

namespace gofs::cli_test {
namespace {

class ChangesTest : public CopyTest {
 protected:
  Stat stat_of(const std::string& path) {
    return Volume::mount(copy_.path(), {.backend = "cpu"}).value().lstat(path).value();
  }
  uint32_t mode_of(const std::string& path) { return stat_of(path).mode & 07777; }
};

TEST_F(ChangesTest, chmod_understands_what_chmod_does) {
  const struct {
    const char* words;
    uint32_t mode;
  } cases[] = {
      {"0600", 0600},  {"u+x", 0700},      {"go=u", 0},        {"a=r,u+w", 0644}, {"g+ws", 02664},
      {"o+X", 02664},  {"u+x,o+X", 02765}, {"-x", 02664},      {"=", 0},          {"+t", 01000},
      {"7777", 07777}, {"a-st", 0777},     {"ug=rw,o=", 0660},
  };
  for (const auto& one : cases) {
    if (std::string(one.words) == "go=u") {
      EXPECT_EQ(run("chmod", {one.words, "/odd"}).status, 2);
      continue;
    }
    expect_fine("chmod", {"--", one.words, "/odd"});
    EXPECT_EQ(mode_of("/odd"), one.mode) << one.words;
  }
  for (const char* words : {"8", "u", "u*r", "77777", "r", "u+q", "u+x,"}) {
    EXPECT_EQ(run("chmod", {words, "/odd"}).status, 2) << words;
  }
}

TEST_F(ChangesTest, chmod_goes_through_directories) {
  expect_fine("chmod", {"-R", "u=rwX,go=", "/data"});
  EXPECT_EQ(mode_of("/data"), 0700u);
  EXPECT_EQ(mode_of("/data/file0299"), 0600u);
  const uint32_t of_link = mode_of("/link");
  expect_fine("chmod", {"711", "/link"});
  EXPECT_EQ(mode_of("/data"), 0711u);
  EXPECT_EQ(mode_of("/link"), of_link);
}

TEST_F(ChangesTest, chown_takes_numbers_and_names) {
  expect_fine("chown", {"12:34", "/odd", "/tiny"});
  EXPECT_EQ(stat_of("/odd").uid, 12u);
  EXPECT_EQ(stat_of("/tiny").gid, 34u);
  expect_fine("chown", {"root", "/odd"});
  EXPECT_EQ(stat_of("/odd").uid, 0u);
  EXPECT_EQ(stat_of("/odd").gid, 34u);
  expect_fine("chown", {":7", "/link"});
  EXPECT_EQ(stat_of("/data").gid, 7u);
  expect_fine("chown", {"-h", "8", "/link"});
  EXPECT_EQ(stat_of("/link").uid, 8u);
  expect_fine("chown", {"-R", "9:9", "/"});
  EXPECT_EQ(stat_of("/data/file0000").uid, 9u);
  EXPECT_EQ(stat_of("/locked/secret").gid, 9u);
  for (const char* words : {":", "no such user", "4294967295", "1:2:3"}) {
    EXPECT_EQ(run("chown", {words, "/odd"}).status, 2) << words;
  }
}

TEST_F(ChangesTest, touch_sets_times) {
  expect_fine("touch", {"-t", "1234567890.5", "/odd", "/link"});
  EXPECT_EQ(stat_of("/odd").modified.seconds, 1234567890);
  EXPECT_EQ(stat_of("/odd").accessed.nanoseconds, 500'000'000u);
  EXPECT_EQ(stat_of("/data").modified.seconds, 1234567890);
  expect_fine("touch", {"-m", "-t", "5", "/odd"});
  EXPECT_EQ(stat_of("/odd").modified.seconds, 5);
  EXPECT_EQ(stat_of("/odd").accessed.seconds, 1234567890);
  expect_fine("touch", {"-a", "/odd"});
  EXPECT_GT(stat_of("/odd").accessed.seconds, 1'700'000'000);
  EXPECT_EQ(stat_of("/odd").modified.seconds, 5);
  expect_fine("touch", {"-h", "-t", "-7", "/link"});
  EXPECT_EQ(stat_of("/link").modified.seconds, -7);
  EXPECT_EQ(run("touch", {"-t", "yesterday", "/odd"}).status, 2);
}

TEST_F(ChangesTest, touch_takes_fractions_before_1970_as_they_are_written) {
  const auto modified = [&](const std::string& time) {
    expect_fine("touch", {"-t", time, "/odd"});
    const std::string lines = run("stat", {"/odd"}).out;
    const size_t at = lines.find("modified  ");
    return at == std::string::npos ? lines : lines.substr(at + 10, lines.find('\n', at) - at - 10);
  };
  EXPECT_EQ(modified("-0.25"), "1969-12-31 23:59:59.750000000 +0000");
  EXPECT_EQ(modified("-1.5"), "1969-12-31 23:59:58.500000000 +0000");
  EXPECT_EQ(modified("-2"), "1969-12-31 23:59:58.000000000 +0000");
  EXPECT_EQ(modified("-0.000000001"), "1969-12-31 23:59:59.999999999 +0000");
  EXPECT_EQ(modified("-0"), "1970-01-01 00:00:00.000000000 +0000");
  EXPECT_EQ(modified("0.25"), "1970-01-01 00:00:00.250000000 +0000");
  EXPECT_EQ(modified("-9000000000000000000.25"), "-9000000000000000000.250000000 s");
  EXPECT_EQ(modified("9000000000000000000.25"), "9000000000000000000.250000000 s");
  EXPECT_EQ(run("touch", {"-t", "-9223372036854775808.5", "/odd"}).status, 2);
}

TEST_F(ChangesTest, touch_makes_what_is_missing) {
  expect_fine("touch", {"-t", "77", "/new", "/odd"});
  EXPECT_EQ(stat_of("/new").size_bytes, 0u);
  EXPECT_EQ(stat_of("/new").mode, 0100644u);
  EXPECT_EQ(stat_of("/new").modified.seconds, 77);
  expect_fine("ln", {"-s", "made", "/leads"});
  for (const char* option : {"-h", "-R"}) {
    EXPECT_EQ(run("touch", {option, "/none"}).err, "gofs: /none: No such file or directory\n");
  }
  expect_fine("touch", {"-c", "/leads", "/none"});
  EXPECT_EQ(run_gofs({"stat", copy_.path(), "/none"}).status, 1);
  EXPECT_EQ(run_gofs({"stat", copy_.path(), "/made"}).status, 1);
  expect_fine("touch", {"/leads", "/"});
  EXPECT_EQ(stat_of("/made").mode, 0100644u);
  EXPECT_EQ(run("touch", {"/none/new"}).err, "gofs: /none/new: No such file or directory\n");
  EXPECT_EQ(run("touch", {"/new/"}).err, "gofs: /new/: Not a directory\n");
}

TEST_F(ChangesTest, gc_says_what_it_has_done) {
  // Each leaves nodes behind that were written elsewhere since.
  expect_fine("chmod", {"-R", "u+rw", "/data"});
  expect_fine("touch", {"/odd"});
  const std::string before = run_gofs({"sum", copy_.path(), "/data", "-r"}).out;
  const Answer answer = run("gc", {"--emptiest-first"});
  EXPECT_EQ(answer.status, 0) << answer.err;
  EXPECT_TRUE(answer.out.starts_with("emptied ")) << answer.out;
  EXPECT_NE(answer.out.find("free segments: "), std::string::npos) << answer.out;
  EXPECT_EQ(answer.err, "");
  EXPECT_EQ(run_gofs({"sum", copy_.path(), "/data", "-r"}).out, before);
  const Answer json = run("gc", {"--json", "--segments", "1"});
  EXPECT_NE(json.out.find("\"write_amplification\""), std::string::npos) << json.out;
  EXPECT_EQ(run("gc", {"--segments", "none"}).status, 2);
}

TEST_F(ChangesTest, what_fails_is_told_and_the_rest_is_done) {
  const Answer answer = run("chmod", {"600", "/nosuch", "/odd", "/tiny/x"});
  EXPECT_EQ(answer.status, 1);
  EXPECT_EQ(answer.err,
            "gofs: /nosuch: No such file or directory\ngofs: /tiny/x: Not a directory\n");
  EXPECT_EQ(mode_of("/odd"), 0600u);
  EXPECT_EQ(run_gofs({"chmod", copy_.path(), "600"}).status, 2);
}

}  // namespace
}  // namespace gofs::cli_test
