// SPDX-License-Identifier: Apache-2.0
//
// gofs put, mkdir, ln and truncate: what is on the volume afterwards is what was on the host.
#include <fcntl.h>
#include <sys/inotify.h>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <csignal>
#include <fstream>
#include <functional>
#include <thread>
#include <utility>

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

/// Tests of what is read on the host, and of where it goes.
class PutWithCareTest : public PutTest {
 protected:
  void shell(const std::string& command) const {
    const auto answer = image::run_tool("cd " + at("") + " && " + command);
    EXPECT_EQ(answer.exit_code, 0) << command << ": " << answer.output;
  }
  std::string contents(const std::string& path) const {
    return run_gofs({"cat", volume_.path(), path}).out;
  }
  std::string put_words(const std::string& words) const {
    return "put " + volume_.path() + " " + words;
  }
  void expect_refused(const std::vector<std::string>& words, const std::string& line) const {
    std::vector<std::string> all = {"put", volume_.path()};
    all.insert(all.end(), words.begin(), words.end());
    expect_failure(all, line);
  }
};

TEST_F(PutWithCareTest, what_read_gives_is_the_file_whatever_its_size_is_said_to_be) {
  shell("mkfifo pipe && printf text > file && ln -s file latest");
  expect_fine({"put", "/proc/version", "/version"});
  EXPECT_EQ(contents("/version"), read_file("/proc/version"));
  expect_fine({"put", "/proc/sys/kernel/ostype", "/ostype"});
  EXPECT_EQ(contents("/ostype"), "Linux\n");
  const std::string of_sysfs = "/sys/kernel/mm/transparent_hugepage/enabled";
  if (::access(of_sysfs.c_str(), R_OK) == 0) {
    expect_fine({"put", of_sysfs, "/enabled"});
    EXPECT_EQ(contents("/enabled"), read_file(of_sysfs));
  }
  EXPECT_EQ(run_in_shell("printf piped |", put_words("/dev/stdin /piped")).output, "");
  EXPECT_EQ(contents("/piped"), "piped");
  shell("{ printf through > pipe & } && '" + gofs_path() + "' " +
        put_words(at("pipe") + " /tube; wait"));
  EXPECT_EQ(contents("/tube"), "through");
  EXPECT_TRUE(S_ISREG(mounted().stat("/tube").value().mode));
  expect_fine({"put", "/dev/null", at("latest"), "/"});
  EXPECT_EQ(mounted().stat("/null").value().size_bytes, 0u);
  EXPECT_TRUE(S_ISREG(mounted().lstat("/null").value().mode));
  EXPECT_EQ(contents("/latest"), "text");
  // What was read of it before is not read again.
  shell("(read line; '" + gofs_path() + "' " + put_words("/dev/stdin /rest") +
        ") < /dev/null; printf 'one\\ntwo\\n' > lines && (read line; '" + gofs_path() + "' " +
        put_words("/dev/stdin /rest") + ") < lines");
  EXPECT_LE(contents("/rest").size(), 4u);
}

/// Runs `change` as soon as a file has been read from.
class AtFirstRead {
 public:
  AtFirstRead(const std::string& path, std::function<void()> change)
      : events_(::inotify_init1(IN_CLOEXEC)),
        watch_(::inotify_add_watch(events_, path.c_str(), IN_ACCESS)) {
    EXPECT_GE(watch_, 0);
    thread_ = std::thread([this, change = std::move(change)] {
      inotify_event event{};
      if (::read(events_, &event, sizeof(event)) > 0 && (event.mask & IN_ACCESS) != 0) change();
    });
  }
  ~AtFirstRead() {
    ::inotify_rm_watch(events_, watch_);  // which is an event as well
    thread_.join();
    ::close(events_);
  }

 private:
  const int events_;
  const int watch_;
  std::thread thread_;
};

TEST_F(PutWithCareTest, a_file_that_grows_or_shrinks_meanwhile_is_put_as_far_as_it_was_read) {
  const std::string file = at("file");
  constexpr uint64_t kBytes = 24 << 20;
  const auto put_while = [&](const std::function<void()>& change) {
    std::ofstream(file) << std::string(kBytes, 'x');
    const AtFirstRead reaction(file, change);
    return run_gofs({"put", volume_.path(), file, "/file"});
  };
  const Answer shrunk = put_while([&] { EXPECT_EQ(::truncate(file.c_str(), 1000), 0); });
  if (shrunk.status != 0) {  // else it was faster
    EXPECT_EQ(shrunk.err, "gofs: " + file + ": has become shorter while it was read\n");
    EXPECT_LE(mounted().stat("/file").value().size_bytes, kBytes);
  }
  const Answer grown = put_while([&] { std::ofstream(file, std::ios::app) << "more"; });
  EXPECT_EQ(grown.status, 0) << grown.err;
  const std::string there = contents("/file");
  EXPECT_EQ(there.substr(0, kBytes), std::string(kBytes, 'x'));
  EXPECT_TRUE(there.size() == kBytes || there.substr(kBytes) == "more") << there.size();
}

TEST_F(PutWithCareTest, directories_that_become_links_meanwhile_are_not_followed) {
  shell(
      "mkdir -p tree/a secret/77 && printf secret > secret/file && cp secret/file secret/77/file"
      " && for i in $(seq 150); do mkdir -p tree/a/$i && printf x > tree/a/$i/file; done"
      " && printf x > tree/a/file && ln -s " +
      at("secret") + " tree/link");
  for (int time = 0; time < 3; ++time) {
    expect_fine({"rm", "-rf", "/tree"});
    {
      const Exchanging exchanging(at("tree/a"), at("tree/link"));
      (void)run_gofs({"put", "-r", volume_.path(), at("tree"), "/"});
    }
    const std::string sums = run_gofs({"sum", "-r", volume_.path(), "/"}).out;
    EXPECT_EQ(sums.find(image::run_tool("sha256sum < " + at("secret/file")).output.substr(0, 64)),
              std::string::npos)
        << sums;
  }
}

TEST_F(PutWithCareTest, the_image_is_no_source) {
  const std::string refusal = ": the volume lies on it";
  shell("mkdir folder && ln -s " + volume_.path() + " link && printf x > folder/file");
  expect_refused({volume_.path(), "/x"}, volume_.path() + refusal);
  expect_refused({at("link"), "/x"}, at("link") + refusal);
  if (::link(volume_.path().c_str(), at("folder/image").c_str()) != 0) GTEST_SKIP();
  expect_refused({at("folder/image"), "/x"}, at("folder/image") + refusal);
  expect_refused({"-r", at("folder"), "/"}, at("folder/image") + refusal);
  EXPECT_EQ(run_gofs({"ls", volume_.path(), "/folder"}).out, "file\n");
}

TEST_F(PutWithCareTest, links_of_the_volume_are_followed_where_they_are_named) {
  shell("mkdir -p tree/a/b && printf new > tree/a/b/file && printf new > file");
  expect_fine({"mkdir", "-p", "/outside", "/in/tree/a"});
  expect_fine({"put", "/dev/null", "/outside/victim"});
  expect_fine({"ln", "-s", "/outside", "/in/tree/a/b"});
  expect_refused({"-r", at("tree"), "/in"}, "/in/tree/a/b: exists and is not a directory");
  EXPECT_EQ(run_gofs({"ls", volume_.path(), "/outside"}).out, "victim\n");
  expect_fine({"ln", "-s", "outside/victim", "/latest"});
  expect_fine({"ln", "-s", "../latest", "/in/file"});
  expect_fine({"ln", "-s", "nowhere", "/dangling"});
  // A name that the user has not written himself.
  expect_refused({at("file"), "/in"}, "/in/file: Too many levels of symbolic links");
  EXPECT_EQ(contents("/outside/victim"), "");
  expect_fine({"put", at("file"), "/in/file"});
  EXPECT_EQ(contents("/outside/victim"), "new");
  EXPECT_EQ(mounted().readlink("/in/file").value(), "../latest");
  expect_refused({at("file"), "/dangling"}, "/dangling: is a symbolic link that leads to nothing");
  expect_refused({at("file"), "/new/"}, "/new/: Not a directory");
  expect_fine({"ln", "-s", "in", "/folder"});
  expect_fine({"put", "-r", at("tree/."), "/folder"});
  EXPECT_EQ(contents("/in/a/b/file"), "new");
  expect_fine({"put", "-r", at("tree/a/.."), "/folder"});
  EXPECT_EQ(run_gofs({"ls", volume_.path(), "/in"}).out, "a\nfile\ntree\n");
}

TEST_F(PutWithCareTest, a_second_name_is_that_of_the_same_file_or_a_copy) {
  shell("mkdir one two && printf first > one/a && ln one/a two/b && printf second > two/a");
  expect_fine({"mkdir", "/x"});
  expect_fine({"put", "-r", at("one/."), at("two/."), "/x"});
  EXPECT_EQ(contents("/x/a"), "second");
  EXPECT_EQ(contents("/x/b"), "first") << "its first name is another file's by now";
}

TEST_F(PutWithCareTest, set_user_id_is_kept_with_the_owner_only) {
  shell(
      "printf x > user && cp user group && chmod 4755 user && chmod 2755 group"
      " && chmod 755 . && mkdir folder && chmod 2755 folder");
  ASSERT_EQ(::chmod(volume_.path().c_str(), 0666), 0);
  if (::geteuid() == 0) {
    shell("chown 33:33 user group folder && chmod 4755 user && chmod 2755 group folder");
    expect_fine({"mkdir", "/ours"});
    expect_fine({"put", "-r", at("user"), at("group"), at("folder"), "/ours"});
    EXPECT_EQ(mounted().stat("/ours/user").value().mode & 07777, 04755u);
    EXPECT_EQ(mounted().stat("/ours/folder").value().mode & 07777, 02755u);
  }
  expect_fine({"mkdir", "/theirs"});
  const auto answer = run_in_shell(
      as_nobody(), put_words("-r " + at("user ") + at("group ") + at("folder ") + "/theirs"));
  EXPECT_EQ(answer.output, "");
  for (const char* path : {"/theirs/user", "/theirs/group", "/theirs/folder"}) {
    EXPECT_EQ(mounted().stat(path).value().mode & 07777, 0755u) << path;
  }
}

TEST_F(PutWithCareTest, without_its_access_list_a_file_gives_its_group_no_more) {
  shell("mkdir -p tree/folder && printf x > tree/file && mkfifo tree/tube");
  const auto set_list = [&](const std::string& name, const std::string& list) {
    return ::setxattr(at(name).c_str(), "system.posix_acl_access", list.data(), list.size(), 0);
  };
  if (set_list("tree/file", access_list(6, 7, 4, 6, 0)) != 0) GTEST_SKIP() << "no lists here";
  ASSERT_EQ(set_list("tree/folder", access_list(7, 7, 0, 7, 5)), 0);
  ASSERT_EQ(set_list("tree/tube", access_list(6, 6, 6, 2, 4)), 0);
  expect_fine({"put", "-r", at("tree"), "/"});
  expect_fine({"put", at("tree/file"), "/named"});
  Volume volume = mounted();
  EXPECT_EQ(volume.stat("/tree/file").value().mode & 07777, 0640u);
  EXPECT_EQ(volume.stat("/named").value().mode & 07777, 0640u);
  EXPECT_EQ(volume.stat("/tree/folder").value().mode & 07777, 0705u);
  EXPECT_EQ(volume.lstat("/tree/tube").value().mode & 07777, 0624u);
}

TEST_F(PutWithCareTest, an_attribute_that_does_not_fit_is_told_and_all_else_is_put) {
  shell("mkdir -p -m 750 tree && printf x > tree/file");
  const std::string large(30'000, 'v');
  const auto answer = image::run_tool(
      "cd " + at("") +
      "; unshare -rm sh -c 'mkdir m; mount -t tmpfs none m && cp -a tree m/ && cd m/tree || exit 9"
      "\nfor f in . file; do setfattr -n user.large -v " +
      large + " $f && setfattr -n user.small -v s $f || exit 9; done\n" + gofs_path() + " " +
      put_words("-r . /tree; exit $?'"));
  if (answer.exit_code == 9) GTEST_SKIP() << "nothing here takes large attributes";
  EXPECT_EQ(answer.exit_code, 1);
  EXPECT_EQ(answer.output,
            "gofs: /tree/file: user.large: Argument list too long\n"
            "gofs: /tree: user.large: Argument list too long\n");
  EXPECT_EQ(contents("/tree/file"), "x");
  EXPECT_EQ(mounted().stat("/tree").value().mode & 07777, 0750u);
  for (const char* path : {"/tree", "/tree/file"}) {
    EXPECT_EQ(mounted().getxattr(path, "user.small").value(), "s") << path;
    EXPECT_FALSE(mounted().getxattr(path, "user.large")) << path;
  }
}

TEST_F(PutWithCareTest, an_interrupted_copy_leaves_what_was_there) {
  shell("printf old > file && mkfifo pipe");
  expect_fine({"put", at("file"), "/file"});
  expect_fine({"put", at("file"), "/before"});
  // The pipe gives some and then waits. A GPU would take longer to be there than that takes.
  const std::string copy = put_words("--backend cpu " + at("pipe") + " /file");
  const auto answer =
      run_in_shell("timeout 20 sh -c '{ head -c 9000000 /dev/zero; sleep 0.6; } > " + at("pipe") +
                       "' & timeout --preserve-status -s INT 0.4",
                   copy);
  EXPECT_EQ(answer.exit_code, 130) << answer.output;
  EXPECT_EQ(contents("/file"), "old");
  EXPECT_EQ(run_gofs({"ls", volume_.path(), "/"}).out, "before\nfile\n");
}

TEST_F(PutWithCareTest, a_directory_that_cannot_be_made_gets_nothing) {
  shell("mkdir -p tree/a/b && printf x > tree/a/b/file && printf x > tree/last");
  expect_fine({"mkdir", "/tree"});
  expect_fine({"put", "/dev/null", "/tree/a"});
  expect_refused({"-r", at("tree"), "/"}, "/tree/a: exists and is not a directory");
  EXPECT_EQ(contents("/tree/last"), "x");
}

TEST_F(PutWithCareTest, many_folders_are_put_with_few_descriptors) {
  shell("for i in $(seq 100); do mkdir -p tree/$i/a && echo $i > tree/$i/a/file; done");
  const auto answer =
      run_in_shell("ulimit -n 100;", put_words("--backend cpu -r " + at("tree/* ") + "/"));
  EXPECT_EQ(answer.output, "");
  EXPECT_EQ(contents("/77/a/file"), "77\n");
}

TEST_F(PutWithCareTest, a_hole_at_the_end_counts) {
  shell(
      "mkdir tree && cd tree && truncate -s 3000001 hole && printf data > tail"
      " && truncate -s 3000001 tail && printf data > short && truncate -s 5000 short"
      " && truncate -s 1M both && printf data >> both && truncate -s 3M both");
  const auto there = [&](const std::string& name) { return at("tree/" + name); };
  expect_fine({"put", "-r", at("tree"), "/"});
  expect_fine({"mkdir", "/named"});
  expect_fine({"put", there("hole"), there("tail"), there("short"), there("both"), "/named"});
  EXPECT_EQ(run_in_shell("", put_words("/dev/stdin /piped < " + there("tail"))).output, "");
  EXPECT_EQ(run_gofs({"get", "-r", volume_.path(), "/", at("back")}).err, "");
  shell("diff -r tree back/tree && diff -r tree back/named && cmp tree/tail back/piped");
  const auto stream = run_in_shell("", "get " + volume_.path() + " /named/tail /dev/stdout",
                                   "| cmp - " + there("tail"));
  EXPECT_EQ(stream.output, "");
  Volume volume = mounted();
  for (const char* name : {"hole", "tail", "short", "both"}) {
    EXPECT_LT(volume.stat(std::string("/named/") + name).value().blocks_512, 64u)
        << name << ": holes stay holes";
  }
}

/// Makes a change when a file is about to be opened: a lease has the kernel hold up who opens it.
class BeforeOpen {
 public:
  BeforeOpen(const std::string& path, std::function<void()> change)
      : file_(::open(path.c_str(), O_RDWR | O_CLOEXEC)) {
    // What tells of who opens it is a signal, else one that ends the program.
    leased_ = ::fcntl(file_, F_SETSIG, SIGURG) == 0 && ::fcntl(file_, F_SETLEASE, F_WRLCK) == 0;
    if (!leased_) return;
    thread_ = std::jthread([this, change = std::move(change)](const std::stop_token& stop) {
      while (::fcntl(file_, F_GETLEASE) == F_WRLCK) {
        if (stop.stop_requested()) return;
        std::this_thread::sleep_for(std::chrono::milliseconds(1));
      }
      change();
      ::fcntl(file_, F_SETLEASE, F_UNLCK);
      was_opened_ = true;
    });
  }
  ~BeforeOpen() {
    if (thread_.joinable()) (void)was_opened();
    ::close(file_);
  }
  /// Not where the file system has no leases.
  bool is_leased() const { return leased_; }
  /// Ends it.
  bool was_opened() {
    thread_.request_stop();
    thread_.join();
    return was_opened_;
  }

 private:
  const int file_;
  bool leased_ = false;
  bool was_opened_ = false;
  std::jthread thread_;
};

TEST_F(PutWithCareTest, what_has_taken_the_place_of_a_source_is_not_read) {
  // As many directories as are open at once come between.
  shell(
      "printf first > first && printf secret > secret && mkdir elsewhere other tree"
      " && printf secret > elsewhere/file && printf secret > other/file && cd tree"
      " && mkdir a b && printf x > a/file && printf x > b/file && mkdir $(seq -f last%g 70)"
      " && printf x > link && printf x > pipe && printf x > stays && mkfifo tube");
  const auto swap = [&] {
    shell(
        "mv tree/a gone && ln -s ../elsewhere tree/a && mv tree/b gone2 && mv other tree/b"
        " && ln -sf ../secret tree/link && rm tree/pipe && mkfifo tree/pipe"
        " && ln -sf ../secret tree/tube");
  };
  expect_fine({"mkdir", "/x"});
  BeforeOpen lease(at("first"), swap);
  if (!lease.is_leased()) GTEST_SKIP() << "no leases here";
  const Answer answer = run_gofs({"put", "-r", volume_.path(), at("first"), at("tree"), "/x"});
  EXPECT_TRUE(lease.was_opened());
  EXPECT_EQ(answer.status, 1);
  const std::string a = "gofs: " + at("tree/a") + ": exists and is not a directory";
  const std::string b = "gofs: " + at("tree/b") + ": another directory has taken its place";
  const std::vector<std::string> lines = {
      a,
      b,
      "gofs: " + at("tree/link") + ": Too many levels of symbolic links",
      "gofs: " + at("tree/pipe") + ": is another file than it was",
      "gofs: " + at("tree/tube") + ": is another file than it was",
      b,
      a};
  EXPECT_EQ(lines_of(answer.err), lines);
  EXPECT_EQ(contents("/x/first"), "first");
  EXPECT_EQ(contents("/x/tree/stays"), "x");
  const std::string all = run_gofs({"sum", "-r", volume_.path(), "/"}).out;
  EXPECT_EQ(lines_of(all).size(), 2u) << all;
}

}  // namespace
}  // namespace gofs::cli_test
