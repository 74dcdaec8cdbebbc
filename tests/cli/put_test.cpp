// SPDX-License-Identifier: Apache-2.0
//
// gofs put, mkdir, ln and truncate: what is on the volume afterwards is what was on the host.
#include <sys/stat.h>

#include <cerrno>
#include <fstream>

#include "run_gofs.h"

namespace gofs::cli_test {
namespace {

class PutTest : public testing::Test {
 protected:
  PutTest() {
    EXPECT_NE(::mkdtemp(folder_), nullptr);
    EXPECT_EQ(run_gofs({"mkfs", volume_.path(), "--size", "128M", "-f"}).status, 0);
  }
  ~PutTest() override {
    expect_sound(volume_.path());
    image::run_tool("chmod -R u+rwx " + at("") + "; rm -r " + at(""));
  }
  std::string at(const std::string& name) const { return std::string(folder_) + "/" + name; }
  void expect_fine(std::vector<std::string> words) {
    words.insert(words.begin() + 1, volume_.path());
    const Answer answer = run_gofs(words);
    EXPECT_EQ(answer.status, 0) << answer.err;
    EXPECT_EQ(answer.out + answer.err, "");
  }
  Volume mounted() { return Volume::mount(volume_.path(), {.backend = "cpu"}).value(); }

  const image::TemporaryPath volume_;
  char folder_[32] = "/tmp/gofs-put-XXXXXX";
};

TEST_F(PutTest, a_tree_comes_back_as_it_was) {
  std::string content;
  for (int i = 0; i < 300'000; ++i) content += std::to_string(i);
  const std::string made =
      "cd " + at("") +
      " && mkdir -p tree/a/b tree/empty && chmod 750 tree/a && touch -d @1600000000.25 tree/a/b"
      " && printf small > tree/small && : > tree/nothing && ln tree/small tree/a/hard"
      " && ln -s ../small tree/a/soft && mkfifo -m 640 tree/fifo"
      " && truncate -s 3M tree/holes && printf end >> tree/holes && chmod 4711 tree/nothing"
      " && touch -h -d @1500000000 tree/small tree/a/soft"
      " && for i in $(seq 400); do echo $i > tree/a/b/file$i; done";
  ASSERT_EQ(image::run_tool(made).exit_code, 0);
  std::ofstream(at("tree/large")) << content;
  expect_fine({"put", at("tree"), "/", "-r"});
  EXPECT_EQ(run_gofs({"get", volume_.path(), "/tree", at("back"), "-r"}).status, 0);
  const auto differences = image::run_tool("cd " + at("") +
                                           " && diff -r --no-dereference tree/a back/a && "
                                           "cmp tree/large back/large && cmp tree/holes back/holes "
                                           "&& cmp tree/small back/small");
  EXPECT_EQ(differences.exit_code, 0) << differences.output;
  for (const char* name : {"", "/a", "/a/b", "/small", "/nothing", "/fifo", "/a/soft", "/holes"}) {
    struct stat there {};
    struct stat back {};
    EXPECT_EQ(::lstat((at("tree") + name).c_str(), &there), 0) << name;
    EXPECT_EQ(::lstat((at("back") + name).c_str(), &back), 0) << name;
    EXPECT_EQ(there.st_mode, back.st_mode) << name;
    EXPECT_EQ(there.st_nlink, back.st_nlink) << name;
    EXPECT_EQ(there.st_mtim.tv_sec, back.st_mtim.tv_sec) << name;
    EXPECT_EQ(there.st_mtim.tv_nsec, back.st_mtim.tv_nsec) << name;
  }
  EXPECT_LT(mounted().stat("/tree/holes").value().blocks_512, 64u) << "holes stay holes";
}

TEST_F(PutTest, a_second_time_replaces_all_but_directories) {
  ASSERT_EQ(image::run_tool("cd " + at("") +
                            " && mkdir tree && printf small > tree/a"
                            " && ln tree/a tree/b && ln -s a tree/soft && mkfifo tree/tube")
                .exit_code,
            0);
  expect_fine({"put", at("tree"), "/", "-r"});
  expect_fine({"put", at("tree"), "/", "-r"});
  expect_fine({"rm", "/tree/b", "/tree/soft", "/tree/tube"});
  expect_fine({"put", at("tree/a"), "/tree/b"});
  expect_fine({"put", at("tree/a"), "/tree/soft"});
  expect_fine({"ln", "-s", "nowhere", "/tree/tube"});
  expect_fine({"put", at("tree"), "/", "-r"});
  {
    Volume volume = mounted();
    EXPECT_EQ(volume.lstat("/tree/b").value().ino, volume.lstat("/tree/a").value().ino);
    EXPECT_EQ(volume.lstat("/tree/a").value().links, 2u);
    EXPECT_EQ(volume.readlink("/tree/soft").value(), "a");
    EXPECT_TRUE(S_ISFIFO(volume.lstat("/tree/tube").value().mode));
  }
  EXPECT_EQ(run_gofs({"ls", volume_.path(), "/tree"}).out, "a\nb\nsoft\ntube\n");
  expect_fine({"rm", "/tree/soft"});
  expect_fine({"mkdir", "/tree/soft"});
  const Answer answer = run_gofs({"put", volume_.path(), at("tree"), "/", "-r"});
  EXPECT_EQ(answer.status, 1);
  EXPECT_EQ(answer.err, "gofs: /tree/soft: Is a directory\n");
  EXPECT_EQ(run_gofs({"ls", volume_.path(), "/tree"}).out, "a\nb\nsoft\ntube\n");
}

TEST_F(PutTest, files_go_to_a_name_or_into_a_directory) {
  std::ofstream(at("one")) << "1";
  std::ofstream(at("two")) << "22";
  expect_fine({"mkdir", "-p", "-m", "700", "/x/y"});
  expect_fine({"mkdir", "-p", "-m", "700", "/x/z//"});
  expect_fine({"mkdir", "-p", "//"});
  expect_fine({"put", at("one"), "/x/first"});
  expect_fine({"put", at("one"), at("two"), "/x/y"});
  expect_fine({"put", at("two"), "/x/first"});
  Volume volume = mounted();
  EXPECT_EQ(volume.stat("/x/first").value().size_bytes, 2u);
  EXPECT_EQ(volume.stat("/x/y/one").value().size_bytes, 1u);
  EXPECT_EQ(volume.stat("/x/y/two").value().size_bytes, 2u);
  EXPECT_EQ(volume.stat("/x").value().mode & 07777, 0755u);
  EXPECT_EQ(volume.stat("/x/y").value().mode & 07777, 0700u);
  EXPECT_EQ(volume.stat("/x/z").value().mode & 07777, 0700u) << "a slash at the end";
}

TEST_F(PutTest, what_was_just_put_is_not_replaced) {
  ASSERT_EQ(image::run_tool("cd " + at("") +
                            " && mkdir -p a/d b/d && printf 1 > a/f"
                            " && printf 22 > b/f && printf 1 > a/d/one && printf 22 > b/d/two"
                            " && printf 4444 > b/other")
                .exit_code,
            0);
  expect_fine({"mkdir", "/x"});
  const Answer answer = run_gofs({"put", volume_.path(), "-r", at("a/f"), at("a/d"), at("b/f"),
                                  at("b/d"), at("b/other"), "/x"});
  EXPECT_EQ(answer.status, 1);
  EXPECT_EQ(answer.err, "gofs: /x/f: just created; will not overwrite it with " + at("b/f") + "\n");
  EXPECT_EQ(mounted().stat("/x/f").value().size_bytes, 1u);
  EXPECT_EQ(mounted().stat("/x/other").value().size_bytes, 4u);
  EXPECT_EQ(mounted().stat("/x/d/one").value().size_bytes, 1u);
  EXPECT_EQ(mounted().stat("/x/d/two").value().size_bytes, 2u) << "directories become one";
  expect_fine({"put", at("b/f"), "/x"});
  EXPECT_EQ(mounted().stat("/x/f").value().size_bytes, 2u);
}

TEST_F(PutTest, what_fails_is_told_and_the_rest_is_done) {
  std::ofstream(at("one")) << "1";
  expect_fine({"mkdir", "/x"});
  const Answer answer = run_gofs({"put", volume_.path(), at("none"), at("one"), "/x"});
  EXPECT_EQ(answer.status, 1);
  EXPECT_EQ(answer.err, "gofs: " + at("none") + ": No such file or directory\n");
  EXPECT_EQ(mounted().stat("/x/one").value().size_bytes, 1u);
  EXPECT_EQ(run_gofs({"put", volume_.path(), at("")}).status, 2);
  EXPECT_EQ(run_gofs({"put", volume_.path(), at(""), "/x"}).status, 1) << "a directory, no -r";
  EXPECT_EQ(run_gofs({"put", volume_.path(), at("one"), at("one"), "/x/one"}).status, 1);
  for (const std::string path : {"/x/one/", "/x/one/more"}) {
    EXPECT_EQ(run_gofs({"put", volume_.path(), at("one"), path}).err,
              "gofs: " + path + ": Not a directory\n");
  }
  EXPECT_EQ(run_gofs({"mkdir", volume_.path(), "/x"}).err, "gofs: /x: File exists\n");
  EXPECT_EQ(run_gofs({"mkdir", volume_.path(), "/none/y"}).status, 1);
}

TEST_F(PutTest, an_empty_path_is_not_the_root) {
  ASSERT_EQ(image::run_tool("mkdir " + at("tree") + " && touch " + at("tree/file")).exit_code, 0);
  for (const char* name : {"tree", "tree/file"}) {
    const Answer answer = run_gofs({"put", volume_.path(), at(name), "", "-r"});
    EXPECT_EQ(answer.status, 1);
    EXPECT_EQ(answer.err, "gofs: \"\": No such file or directory\n");
  }
  EXPECT_EQ(run_gofs({"ls", volume_.path()}).out, "");
}

TEST_F(PutTest, links_and_sizes) {
  std::ofstream(at("one")) << "1234567890";
  expect_fine({"put", at("one"), "/one"});
  expect_fine({"ln", "/one", "/two"});
  expect_fine({"ln", "-s", "one", "/three"});
  expect_fine({"truncate", "/one", "4"});
  EXPECT_EQ(run_gofs({"cat", volume_.path(), "/three"}).out, "1234");
  expect_fine({"truncate", "/two", "1G"});
  EXPECT_EQ(mounted().stat("/one").value().size_bytes, uint64_t{1} << 30);
  EXPECT_EQ(mounted().stat("/one").value().links, 2u);
  EXPECT_EQ(run_gofs({"truncate", volume_.path(), "/one"}).status, 2);
  EXPECT_EQ(run_gofs({"truncate", volume_.path(), "/one", "large"}).status, 2);
  EXPECT_EQ(run_gofs({"truncate", volume_.path(), "/one", "16T"}).err,
            "gofs: /one: File too large\n");
  EXPECT_EQ(run_gofs({"truncate", volume_.path(), "/none", "1"}).status, 1);
  EXPECT_EQ(run_gofs({"ln", volume_.path(), "/none", "/x"}).status, 1);
}

TEST_F(PutTest, sums_go_into_the_volume) {
  std::ofstream(at("one")) << "1";
  expect_fine({"put", at("one"), "/one"});
  const std::string sums = run_gofs({"sum", volume_.path(), "/one"}).out;
  expect_fine({"sum", "-r", "--into", "/sums"});
  EXPECT_EQ(run_gofs({"cat", volume_.path(), "/sums"}).out, sums);
  expect_fine({"sum", "/one", "--into", "/sums"});
  EXPECT_EQ(run_gofs({"cat", volume_.path(), "/sums"}).out, sums) << "in place of the first";
  EXPECT_EQ(run_gofs({"sum", volume_.path(), "-r", "--into", "/none/sums"}).status, 1);
}

}  // namespace
}  // namespace gofs::cli_test
