// SPDX-License-Identifier: Apache-2.0
//
// gofs rm, rmdir and mv: what is there afterwards, and what they say of what cannot be.
#include <gtest/gtest.h>

#include <set>
#include <string>
#include <vector>

#include "run_gofs.h"

namespace gofs::cli_test {
namespace {

class NamesTest : public CopyTest {
 protected:
  bool is_there(const std::string& path) {
    return Volume::mount(copy_.path(), {.backend = "cpu"}).value().lstat(path).has_value();
  }
  uint64_t ino_of(const std::string& path) {
    return Volume::mount(copy_.path(), {.backend = "cpu"}).value().lstat(path).value().ino;
  }
};

TEST_F(NamesTest, rm_removes_files_and_with_r_whole_trees) {
  expect_fine("rm", {"/odd", "/link"});
  EXPECT_FALSE(is_there("/odd"));
  EXPECT_TRUE(is_there("/data"));
  const Answer refused = run("rm", {"/data", "/none"});
  EXPECT_EQ(refused.status, 1);
  EXPECT_NE(refused.err.find("/data: Is a directory"), std::string::npos) << refused.err;
  EXPECT_NE(refused.err.find("/none: No such file or directory"), std::string::npos) << refused.err;
  expect_fine("rm", {"-f", "/none", "/odd/x"});
  expect_fine("mkdir", {"-p", "/data/a/b/c"});
  expect_fine("rm", {"-r", "/data", "/tiny"});
  EXPECT_FALSE(is_there("/data"));
  EXPECT_EQ(run("ls", {"/data"}).status, 1);
}

TEST_F(NamesTest, rm_leaves_the_root_and_what_ends_with_dots) {
  const std::string before = run("ls", {"-R", "-l", "/"}).out;
  const std::string root = ": rm does not remove the root directory\n";
  const std::string dots = ": rm takes no path that ends with . or ..\n";
  for (const char* path : {"/", "//"}) {
    EXPECT_EQ(run("rm", {"-r", "-f", path}).err, "gofs: " + std::string(path) + root);
  }
  for (const char* path : {".", "..", "/data/.", "/data/./", "/data/..", "data/file0000/../.."}) {
    const Answer answer = run("rm", {"-r", "-f", path});
    EXPECT_EQ(answer.status, 1) << path;
    EXPECT_EQ(answer.err, "gofs: " + std::string(path) + dots);
  }
  EXPECT_EQ(run("ls", {"-R", "-l", "/"}).out, before);
  expect_fine("ln", {"-s", "/", "/up"});
  const Answer some = run("rm", {"-r", "/up/", "/", "/odd", "/data/."});
  EXPECT_EQ(some.status, 1);
  EXPECT_EQ(some.err, "gofs: /up/" + root + "gofs: /" + root + "gofs: /data/." + dots);
  EXPECT_TRUE(is_there("/data/file0000"));
  EXPECT_FALSE(is_there("/odd")) << "the others are removed";
}

// As a shell has it where a variable is not set.
TEST_F(NamesTest, an_empty_path_names_nothing) {
  // Were it the host's root, this file would meet a directory there, and nothing would be written.
  expect_fine("mkdir", {"/into"});
  expect_fine("touch", {"/into/tmp"});
  const std::string before = run("ls", {"-R", "-l", "/"}).out;
  const std::vector<std::vector<std::string>> cases = {{"get", "/into", "", "-r"},
                                                       {"get", "", "/tmp/gofs-none", "-r"},
                                                       {"rm", "", "-r"},
                                                       {"rmdir", ""},
                                                       {"stat", ""},
                                                       {"ls", ""},
                                                       {"ls", "", "-R"},
                                                       {"cat", ""},
                                                       {"sum", "", "-r"},
                                                       {"truncate", "", "0"},
                                                       {"chmod", "-R", "0", ""},
                                                       {"touch", ""},
                                                       {"chown", "-R", "7:7", ""},
                                                       {"mkdir", "-p", ""}};
  for (const auto& words : cases) {
    const Answer answer = run(words.front(), {words.begin() + 1, words.end()});
    EXPECT_EQ(answer.status, 1) << testing::PrintToString(words);
    EXPECT_EQ(answer.out, "") << testing::PrintToString(words);
    EXPECT_EQ(answer.err, "gofs: \"\": No such file or directory\n")
        << testing::PrintToString(words);
  }
  expect_fine("rm", {"-r", "-f", ""});
  EXPECT_EQ(run("ls", {"-R", "-l", "/"}).out, before);
  EXPECT_EQ(run("ls", {}).out, run("ls", {"/"}).out);
}

TEST_F(NamesTest, rmdir_removes_empty_directories_only) {
  expect_fine("mkdir", {"-p", "/new/sub"});
  const Answer refused = run("rmdir", {"/new", "/odd"});
  EXPECT_EQ(refused.status, 1);
  EXPECT_NE(refused.err.find("/new: Directory not empty"), std::string::npos) << refused.err;
  EXPECT_NE(refused.err.find("/odd: Not a directory"), std::string::npos) << refused.err;
  expect_fine("rmdir", {"/new/sub", "/new"});
  EXPECT_FALSE(is_there("/new"));
}

TEST_F(NamesTest, mv_renames_and_moves_into_directories) {
  const uint64_t odd = ino_of("/odd");
  const uint64_t tiny = ino_of("/tiny");
  expect_fine("mkdir", {"/to"});
  expect_fine("mv", {"/odd", "/even"});
  EXPECT_EQ(ino_of("/even"), odd);
  expect_fine("mv", {"/even", "/tiny", "/to"});
  EXPECT_EQ(ino_of("/to/even"), odd);
  EXPECT_EQ(ino_of("/to/tiny"), tiny);
  const Answer kept = run("mv", {"-n", "/to/even", "/to/tiny"});
  EXPECT_EQ(kept.status, 1);
  EXPECT_NE(kept.err.find("File exists"), std::string::npos) << kept.err;
  expect_fine("mv", {"--exchange", "/to/even", "/to/tiny"});
  EXPECT_EQ(ino_of("/to/even"), tiny);
  expect_fine("mv", {"/to/even", "/to/tiny"});
  EXPECT_FALSE(is_there("/to/even"));
  EXPECT_EQ(ino_of("/to/tiny"), tiny);
  EXPECT_EQ(run("mv", {"/data", "/data/inside"}).status, 1);
  EXPECT_EQ(run("mv", {"/to/tiny", "/data", "/none"}).status, 1);
  EXPECT_EQ(run("mv", {"/to"}).status, 2);
  EXPECT_EQ(run("mv", {"-n", "--exchange", "/a", "/b"}).status, 2);
  EXPECT_TRUE(is_there("/data"));
}

TEST_F(NamesTest, errors_of_mv_and_ln_name_both_paths) {
  const std::string missing = ": No such file or directory\n";
  EXPECT_EQ(run("mv", {"/none", "/b"}).err, "gofs: /none -> /b" + missing);
  EXPECT_EQ(run("mv", {"/odd", "/none/b"}).err, "gofs: /odd -> /none/b" + missing);
  EXPECT_EQ(run("mv", {"", "/b"}).err, "gofs: \"\" -> /b" + missing);
  EXPECT_EQ(run("mv", {"/data", "/data/in"}).err, "gofs: /data -> /data/in: Invalid argument\n");
  EXPECT_EQ(run("mv", {"/none", "/data"}).err, "gofs: /none -> /data/none" + missing);
  EXPECT_EQ(run("ln", {"/none", "/b"}).err, "gofs: /none -> /b" + missing);
  EXPECT_EQ(run("ln", {"/odd", "/tiny"}).err, "gofs: /odd -> /tiny: File exists\n");
  EXPECT_EQ(run("ln", {"/odd", ""}).err, "gofs: /odd -> \"\"" + missing);
  // What a symbolic link leads to need not be there.
  EXPECT_EQ(run("ln", {"-s", "/none", "/tiny"}).err, "gofs: /tiny: File exists\n");
  EXPECT_EQ(run("ln", {"-s", "", "/b"}).err, "gofs: /b: the link's target is empty\n");
  EXPECT_FALSE(is_there("/b"));
}

TEST_F(NamesTest, mv_does_not_replace_what_it_has_just_moved) {
  expect_fine("mkdir", {"-p", "/a", "/b", "/keep"});
  expect_fine("touch", {"/a/f", "/b/f", "/keep/g", "/b/g", "/b/other"});
  const uint64_t first = ino_of("/a/f");
  const uint64_t kept = ino_of("/keep/g");
  const Answer answer =
      run("mv", {"/none/f", "/a/f", "/b/f", "/keep/g", "/b/g", "/b/other", "/keep"});
  EXPECT_EQ(answer.status, 1);
  EXPECT_NE(answer.err.find("/keep/f: just created; will not overwrite it with /b/f\n"),
            std::string::npos)
      << answer.err;
  EXPECT_NE(answer.err.find("/keep/g: just created; will not overwrite it with /b/g\n"),
            std::string::npos)
      << answer.err;
  EXPECT_EQ(ino_of("/keep/f"), first) << "what could not be moved takes no place";
  EXPECT_EQ(ino_of("/keep/g"), kept);
  EXPECT_TRUE(is_there("/b/f"));
  EXPECT_TRUE(is_there("/b/g"));
  EXPECT_TRUE(is_there("/keep/other"));
  expect_fine("mv", {"/b/f", "/keep"});
}

}  // namespace
}  // namespace gofs::cli_test
