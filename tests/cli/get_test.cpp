// SPDX-License-Identifier: Apache-2.0
//
// gofs get: what arrives on the host is what was on the volume.
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/xattr.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <filesystem>

#include "format/name_hash.h"
#include "run_gofs.h"

namespace gofs::cli_test {
namespace {

class GetTest : public testing::Test {
 protected:
  GetTest() { EXPECT_NE(::mkdtemp(folder_), nullptr); }
  ~GetTest() override { image::run_tool("chmod -R u+rwx " + at("") + "; rm -r " + at("")); }

  std::string at(const std::string& name) const { return std::string(folder_) + "/" + name; }
  struct stat host_stat(const std::string& path) const {
    struct stat status {};
    EXPECT_EQ(::lstat(path.c_str(), &status), 0) << path;
    return status;
  }
  /// The file at `host_path` is the sample's `file`, in content, mode and time.
  void expect_file(const std::string& host_path, const std::string& file) const {
    const std::string bytes = read_file(host_path);
    EXPECT_EQ(bytes.size(), sample().files().at(file).size_bytes) << host_path;
    EXPECT_TRUE(sample().has(file, bytes.data(), bytes.size(), 0));
    EXPECT_EQ(host_stat(host_path).st_mtim.tv_sec, 1'700'000'000) << host_path;
  }

  char folder_[32] = "/tmp/gofs-get-XXXXXX";
};

TEST_F(GetTest, a_file_goes_to_a_name_or_into_a_directory) {
  EXPECT_EQ(gofs_says({"get", sample().path(), "/odd", at("new")}), "");
  expect_file(at("new"), "/odd");
  EXPECT_EQ(host_stat(at("new")).st_mode, mode_t{S_IFREG | 0644});
  gofs_says({"get", sample().path(), "/odd", at("")});
  expect_file(at("odd"), "/odd");
  gofs_says({"get", sample().path(), "/large", at("odd")});
  expect_file(at("odd"), "/large");
}

TEST_F(GetTest, a_link_gives_what_it_leads_to) {
  expect_failure({"get", sample().path(), "/link", at("x")}, "/link: is a directory (use -r)");
  expect_failure({"get", sample().path(), "/dangling", at("x")},
                 "/dangling: No such file or directory");
  expect_failure({"get", sample().path(), "/odd", at("no/such/x")},
                 at("no/such/x") + ": No such file or directory");
}

TEST_F(GetTest, a_tree_keeps_its_kinds_modes_times_links_and_holes) {
  const Answer answer = run_gofs({"get", sample().path(), "/", at("out"), "-r"});
  if (::geteuid() == 0) {
    EXPECT_EQ(answer.status, 0) << answer.err;
    const struct stat device = host_stat(at("out/device"));
    EXPECT_EQ(device.st_mode, mode_t{S_IFBLK | 0640});
    EXPECT_EQ(device.st_rdev, ::makedev(8, 1));
    EXPECT_EQ(host_stat(at("out/locked/secret")).st_uid, 7u);
  } else {
    EXPECT_EQ(answer.status, 1);
    EXPECT_NE(answer.err.find("gofs: " + at("out/device") + ": Operation not permitted\n"),
              std::string::npos);
  }
  for (const auto& [path, file] : sample().files()) {
    if (path != "/holes") expect_file(at("out" + path), path);
  }
  EXPECT_EQ(host_stat(at("out/locked")).st_mode, mode_t{S_IFDIR | 0700});
  EXPECT_EQ(host_stat(at("out/locked/secret")).st_mode, mode_t{S_IFREG | 0600});
  EXPECT_EQ(host_stat(at("out/data")).st_mtim.tv_sec, 1'700'000'000);
  EXPECT_EQ(host_stat(at("out/odd")).st_ino, host_stat(at("out/again")).st_ino);
  EXPECT_TRUE(S_ISFIFO(host_stat(at("out/fifo")).st_mode));
  char target[64] = {};
  EXPECT_EQ(::readlink(at("out/link").c_str(), target, sizeof(target)), 4);
  EXPECT_STREQ(target, "data");
  EXPECT_EQ(host_stat(at("out/link")).st_mtim.tv_sec, 1'700'000'000);

  const struct stat holes = host_stat(at("out/holes"));
  EXPECT_EQ(static_cast<uint64_t>(holes.st_size), host::SampleVolume::kHolesBytes);
  EXPECT_LT(holes.st_blocks, (1 << 20) / 512);
  std::ifstream file(at("out/holes"), std::ios::binary);
  std::string bytes(4096, '\0');
  for (const uint64_t offset : {uint64_t{0}, uint64_t{3 * 4096}, uint64_t{4 * 4096},
                                host::SampleVolume::kHolesBytes - 4096}) {
    file.seekg(static_cast<std::streamoff>(offset));
    file.read(bytes.data(), 4096);
    EXPECT_TRUE(sample().has("/holes", bytes.data(), 4096, offset));
  }
}

TEST_F(GetTest, a_second_time_replaces_all_but_directories) {
  run_gofs({"get", sample().path(), "/", at("out"), "-r"});
  const Answer first = run_gofs({"get", sample().path(), "/", at("out"), "-r"});
  EXPECT_EQ(first.err.find("File exists"), std::string::npos) << first.err;
  const std::string spoil = "cd " + at("out") +
                            " && rm again link fifo loop && printf x > again && printf x > link"
                            " && printf x > fifo && mkdir loop";
  ASSERT_EQ(image::run_tool(spoil).exit_code, 0);
  const Answer answer = run_gofs({"get", sample().path(), "/", at("out"), "-r"});
  EXPECT_NE(answer.err.find("gofs: " + at("out/loop") + ": Is a directory\n"), std::string::npos)
      << answer.err;
  EXPECT_EQ(host_stat(at("out/odd")).st_ino, host_stat(at("out/again")).st_ino);
  EXPECT_EQ(host_stat(at("out/odd")).st_nlink, 2u);
  EXPECT_TRUE(S_ISLNK(host_stat(at("out/link")).st_mode));
  EXPECT_TRUE(S_ISFIFO(host_stat(at("out/fifo")).st_mode));
  EXPECT_TRUE(S_ISDIR(host_stat(at("out/loop")).st_mode));
  EXPECT_EQ(image::run_tool("ls -A " + at("out") + " | grep -c gofs").output, "0\n");
}

// Where the host keeps none, the file comes without, and that is told once and is no failure.
TEST_F(GetTest, attributes_are_restored_as_far_as_the_host_takes_them) {
  gofs_says({"get", sample().path(), "/odd", at("plain")});
  const auto host_takes = [&](const char* name, const std::string& value) {
    return ::lsetxattr(at("plain").c_str(), name, value.data(), value.size(), 0) == 0;
  };
  const auto host_value = [&](const std::string& path, const char* name) {
    char value[4096];
    const ssize_t size = ::lgetxattr(at(path).c_str(), name, value, sizeof(value));
    return size < 0 ? std::string("none") : std::string(value, static_cast<size_t>(size));
  };
  const bool takes_user = host_takes("user.colour", "x");
  const Answer answer = run_gofs({"get", sample().path(), "/block", at("marked")});
  EXPECT_EQ(answer.status, 0) << answer.err;
  expect_file(at("marked"), "/block");
  EXPECT_EQ(host_stat(at("marked")).st_mode, mode_t{S_IFREG | 0644});
  if (takes_user) {
    EXPECT_EQ(host_value("marked", "user.colour"), "green");
    EXPECT_EQ(host_value("marked", "user.long"), host::SampleVolume::long_value());
    EXPECT_EQ(answer.err.find(" user."), std::string::npos) << answer.err;
  } else {
    EXPECT_NE(answer.err.find("warning: user.colour: "), std::string::npos) << answer.err;
  }
  const bool root = ::geteuid() == 0;
  if (root && host_takes("trusted.mark", "x")) {
    EXPECT_EQ(host_value("marked", "trusted.mark"), std::string("\0\xff", 2));
  } else {
    EXPECT_EQ(host_value("marked", "trusted.mark"), "none");
    EXPECT_EQ(answer.err.find("trusted.mark") != std::string::npos, root) << answer.err;
  }
  run_gofs({"get", sample().path(), "/data", at("folder"), "-r"});
  EXPECT_EQ(host_value("folder", "user.colour"), takes_user ? "red" : "none");
}

TEST_F(GetTest, a_directory_goes_into_a_directory_that_exists) {
  gofs_says({"get", sample().path(), "/data", at(""), "-r"});
  expect_file(at("data/file0007"), "/data/file0007");
  gofs_says({"get", sample().path(), "/data", at("other"), "-r"});
  expect_file(at("other/file0299"), "/data/file0299");
  expect_failure({"get", sample().path(), "/data", at("x")}, "/data: is a directory (use -r)");
}

// What stands in the way of one object is told, and the others are copied.
TEST_F(GetTest, one_failure_does_not_stop_the_rest) {
  ASSERT_EQ(::mkdir(at("data").c_str(), 0700), 0);
  ASSERT_EQ(::mkdir(at("data/file0003").c_str(), 0700), 0);
  ASSERT_EQ(::symlink("/tmp/gofs-must-not-be-written", at("data/file0004").c_str()), 0);
  const Answer answer = run_gofs({"get", sample().path(), "/data", at(""), "-r"});
  EXPECT_EQ(answer.status, 1);
  EXPECT_EQ(answer.err, "gofs: " + at("data/file0003") + ": Is a directory\n" + "gofs: " +
                            at("data/file0004") + ": Too many levels of symbolic links\n");
  expect_file(at("data/file0002"), "/data/file0002");
  expect_file(at("data/file0005"), "/data/file0005");
  struct stat unused;
  EXPECT_NE(::stat("/tmp/gofs-must-not-be-written", &unused), 0);
}

/// Gives the entry `from`, a name that is nowhere else in the image, the name `to` of as many
/// bytes.
void rename_in_image(const std::string& image, const std::string& from, const std::string& to) {
  const auto hash = [](const std::string& name) {
    const uint32_t number = format::name_hash(name.data(), static_cast<uint32_t>(name.size()));
    return std::string(reinterpret_cast<const char*>(&number), sizeof(number));
  };
  const int file = ::open(image.c_str(), O_RDWR | O_CLOEXEC);
  const off_t end = ::lseek(file, 0, SEEK_END);
  for (off_t at = ::lseek(file, 0, SEEK_DATA); at >= 0 && at < end;) {
    const off_t hole = ::lseek(file, at, SEEK_HOLE);
    std::string bytes(static_cast<size_t>(hole - at), '\0');
    EXPECT_EQ(::pread(file, bytes.data(), bytes.size(), at), hole - at);
    for (const auto& [old, now] : {std::pair(from, to), std::pair(hash(from), hash(to))}) {
      for (size_t found = 0; (found = bytes.find(old, found)) != std::string::npos;) {
        EXPECT_EQ(::pwrite(file, now.data(), now.size(), at + static_cast<off_t>(found)),
                  static_cast<ssize_t>(now.size()));
        found += old.size();
      }
    }
    at = ::lseek(file, hole, SEEK_DATA);
  }
  ::close(file);
}

/// Tests with a volume of their own, and a folder "outside" that nothing may come to.
class GetWithCareTest : public GetTest {
 protected:
  GetWithCareTest() {
    EXPECT_EQ(run_gofs({"mkfs", volume(), "--size", "64M", "-f"}).status, 0);
    shell("mkdir outside out && printf safe > outside/victim && chmod 777 . out");
  }
  std::string volume() const { return at("volume.img"); }
  void shell(const std::string& command) const {
    const auto answer = image::run_tool("cd " + at("") + " && " + command);
    EXPECT_EQ(answer.exit_code, 0) << command << ": " << answer.output;
  }
  /// Makes the volume hold what is in the folder "tree".
  void put_tree() const {
    const Answer answer = run_gofs({"put", volume(), "-r", at("tree/."), "/"});
    EXPECT_EQ(answer.status, 0) << answer.err;
  }
  Answer get(const std::string& from, const std::string& to) const {
    return run_gofs({"get", "-r", volume(), from, at(to)});
  }
  void expect_outside_safe(const std::string& what) const {
    EXPECT_EQ(image::run_tool("ls -A " + at("outside")).output, "victim\n") << what;
    EXPECT_EQ(read_file(at("outside/victim")), "safe") << what;
  }
};

TEST_F(GetWithCareTest, a_name_that_is_there_twice_leads_nowhere_else) {
  const std::vector<std::string> kinds = {
      "ln -s " + at("outside") + " $n", "ln -s " + at("outside/victim") + " $n",
      "mkdir $n && printf x > $n/payload && mkdir $n/below && printf x > $n/below/payload",
      "printf x > $n", "mkfifo $n"};
  shell("mkdir -p tree/a/b");
  std::vector<std::string> firsts;
  for (size_t i = 0; i < kinds.size() * kinds.size(); ++i) {
    const std::string folder = i % 2 == 0 ? "tree/" : "tree/a/b/";
    const std::string number = std::to_string(10 + i);
    shell("cd " + folder + " && n=one-" + number + " && " + kinds[i / kinds.size()] + " && n=two-" +
          number + " && " + kinds[i % kinds.size()]);
    firsts.push_back(number);
  }
  put_tree();
  for (const auto& number : firsts) rename_in_image(volume(), "two-" + number, "one-" + number);
  for (int time = 0; time < 2; ++time) {
    const Answer answer = get("/", "out");
    EXPECT_EQ(answer.status, 1);
    expect_outside_safe(answer.err);
    const auto lines = lines_of(answer.err);
    for (const auto& number : firsts) {
      EXPECT_TRUE(std::any_of(lines.begin(), lines.end(),
                              [&](const std::string& line) {
                                return line.find("one-" + number + ": ") != std::string::npos;
                              }))
          << number << ": " << answer.err;
    }
  }
}

TEST_F(GetWithCareTest, a_name_with_a_slash_or_two_dots_is_not_made) {
  shell(
      "mkdir tree && printf x > tree/kept && printf x > tree/name-with-slash"
      " && mkdir tree/na tree/na/abc && printf x > tree/na/abc/payload");
  put_tree();
  rename_in_image(volume(), "name-with-slash", "../outside/name");
  rename_in_image(volume(), "na", "..");
  rename_in_image(volume(), "abc", "../");
  const Answer answer = get("/", "out");
  expect_outside_safe(answer.err);
  EXPECT_EQ(image::run_tool("cd " + at("") + " && find out | sort").output, "out\nout/kept\n");
  EXPECT_EQ(image::run_tool("ls -A " + at("")).output, "out\noutside\ntree\nvolume.img\n");
}

TEST_F(GetWithCareTest, links_of_the_destination_are_not_followed_at_any_depth) {
  shell("mkdir -p tree/a/b/c && for d in a a/b a/b/c; do printf new > tree/$d/file; done");
  put_tree();
  for (const std::string place : {"a", "a/b", "a/b/c"}) {
    shell("rm -rf out && mkdir -p out/" + place + " && rmdir out/" + place + " && ln -s " +
          at("outside") + " out/" + place);
    const Answer answer = get("/", "out");
    EXPECT_EQ(answer.err, "gofs: " + at("out/" + place) + ": exists and is not a directory\n");
    EXPECT_EQ(answer.status, 1);
    expect_outside_safe(place);
    // A file that has a name outside as well gets another inode.
    shell("rm -rf out && mkdir -p out/" + place + " && ln outside/victim out/" + place + "/file");
    EXPECT_EQ(get("/", "out").status, 0);
    EXPECT_EQ(read_file(at("out/" + place + "/file")), "new");
    expect_outside_safe(place);
    shell("rm -rf out && mkdir -p out/" + place + " && mkfifo out/" + place + "/file");
    EXPECT_EQ(get("/", "out").err,
              "gofs: " + at("out/" + place + "/file") + ": exists and is not a regular file\n");
  }
}

TEST_F(GetWithCareTest, directories_that_become_links_meanwhile_lead_nowhere) {
  shell(
      "mkdir -p tree/a && for i in $(seq 150); do mkdir -p tree/a/$i && printf x > tree/a/$i/new"
      " && printf x > tree/a/victim; done; chmod 700 outside && mkdir outside/77");
  put_tree();
  for (int time = 0; time < 3; ++time) {
    shell("rm -rf out && mkdir -p out/a && ln -s " + at("outside") + " out/link");
    {
      const Exchanging exchanging(at("out/a"), at("out/link"));
      (void)get("/", "out");
    }
    EXPECT_EQ(image::run_tool("cd " + at("outside") + " && find . | sort").output,
              ".\n./77\n./victim\n");
    EXPECT_EQ(read_file(at("outside/victim")), "safe");
    EXPECT_EQ(host_stat(at("outside")).st_mode & 07777, mode_t{0700});
  }
}

TEST_F(GetWithCareTest, trees_deeper_than_a_path_may_be_long_arrive) {
  const std::string name(200, 'd');
  shell("mkdir tree && printf x > tree/file");
  put_tree();
  std::string path;
  {
    Volume mounted = Volume::mount(volume(), {.backend = "cpu", .read_only = false}).value();
    for (int i = 0; i < 19; ++i) ASSERT_TRUE(mounted.mkdir(path += "/" + name));
    ASSERT_TRUE(mounted.link("/file", path + "/file"));
    // Longer still: the upper half goes below another one.
    for (int i = 0; i < 5; ++i) {
      ASSERT_TRUE(mounted.mkdir("/top"));
      ASSERT_TRUE(mounted.rename("/" + name, "/top/" + name));
      ASSERT_TRUE(mounted.rename("/top", "/" + name));
    }
    ASSERT_TRUE(mounted.unmount());
  }
  const Answer answer = get("/", "out");
  EXPECT_EQ(answer.status, 0) << answer.err;
  EXPECT_EQ(
      image::run_tool("cd " + at("out") + " && find . -name file -printf '%d\n' | sort -n").output,
      "1\n25\n");
  shell("find out -delete");
}

TEST_F(GetWithCareTest, what_ends_with_dots_goes_into_the_destination_itself) {
  shell("mkdir -p tree/a/b && printf x > tree/a/file");
  put_tree();
  for (const std::string path : {"/a/b/..", "/a/.", "/a/b/../"}) {
    shell("rm -rf out && mkdir -p out/in");
    EXPECT_EQ(get(path, "out/in").err, "");
    EXPECT_EQ(image::run_tool("cd " + at("") + " && find out | sort").output,
              "out\nout/in\nout/in/b\nout/in/file\n")
        << path;
  }
  EXPECT_EQ(get("/a", "out/in/..").err, "");
  EXPECT_EQ(read_file(at("out/a/file")), "x");
}

TEST_F(GetWithCareTest, links_that_the_user_names_are_followed) {
  shell(
      "mkdir tree && printf new > tree/file && printf old > other && ln -s other latest"
      " && ln -s latest link && ln -s out folder && ln -s nowhere dangling");
  put_tree();
  EXPECT_EQ(run_gofs({"get", volume(), "/file", at("link")}).err, "");
  EXPECT_EQ(read_file(at("other")), "new");
  EXPECT_TRUE(S_ISLNK(host_stat(at("link")).st_mode) && S_ISLNK(host_stat(at("latest")).st_mode));
  EXPECT_EQ(get("/", "folder").err, "");
  EXPECT_EQ(read_file(at("out/file")), "new");
  expect_failure({"get", volume(), "/file", at("dangling")},
                 at("dangling") + ": is a symbolic link that leads to nothing");
  expect_failure({"get", volume(), "/file", at("new/")}, at("new/") + ": Not a directory");
}

TEST_F(GetWithCareTest, a_file_that_the_user_may_not_write_to_is_not_replaced) {
  shell(
      "mkdir tree && printf new > tree/file && chmod 755 . && chmod 777 out && chmod 644 volume.img"
      " && printf old > out/file && chmod 444 out/file && ln -s file out/link");
  put_tree();
  for (const char* name : {"out", "out/file", "out/link"}) {
    const auto answer = run_in_shell(as_nobody(), "get " + volume() + " /file " + at(name));
    EXPECT_EQ(answer.exit_code, 1) << name;
    EXPECT_NE(answer.output.find(": Permission denied\n"), std::string::npos) << answer.output;
    EXPECT_EQ(image::run_tool("cd " + at("out") + " && ls -A && cat file").output,
              "file\nlink\nold");
  }
  const auto tree = run_in_shell(as_nobody(), "get -r " + volume() + " /. " + at("out"), "2>&1");
  EXPECT_NE(tree.output.find(at("out/file") + ": Permission denied\n"), std::string::npos);
  shell("chmod 666 out/file");
  EXPECT_EQ(run_in_shell(as_nobody(), "get " + volume() + " /file " + at("out/link")).output, "");
  EXPECT_EQ(read_file(at("out/file")), "new");
}

TEST_F(GetWithCareTest, pipes_devices_and_descriptors_are_written_to_in_place) {
  shell(
      "mkdir tree && printf text > tree/file && truncate -s 100000 tree/holes"
      " && printf end >> tree/holes && mkfifo tree/fifo pipe");
  put_tree();
  const std::string file = "get " + volume() + " /file ";
  EXPECT_EQ(run_in_shell("", file + "/dev/stdout", "| cat").output, "text");
  EXPECT_EQ(
      run_in_shell("", "get " + volume() + " /holes /dev/stdout", "| cmp - " + at("tree/holes"))
          .exit_code,
      0);
  // The descriptor's position, and what others have written to it, stay.
  shell("(echo head; '" + gofs_path() + "' " + file + "/dev/fd/1; echo tail) > log");
  EXPECT_EQ(read_file(at("log")), "head\ntexttail\n");
  shell("{ cat pipe > log & } && '" + gofs_path() + "' " + file + "pipe; wait");
  EXPECT_EQ(read_file(at("log")), "text");
  const struct stat before = host_stat("/dev/null");
  EXPECT_EQ(run_gofs({"get", volume(), "/file", "/dev/null"}).err, "");
  expect_failure({"get", "-r", volume(), "/fifo", "/dev/null"},
                 "/dev/null: exists and is a device or a descriptor");
  EXPECT_EQ(host_stat("/dev/null").st_mode, before.st_mode);
  EXPECT_EQ(host_stat("/dev/null").st_ino, before.st_ino);
  expect_failure({"get", volume(), "/file", "/dev/full"}, "/dev/full: No space left on device");
}

TEST_F(GetWithCareTest, a_file_whose_directory_is_closed_is_written_over) {
  if (::geteuid() != 0) GTEST_SKIP() << "needs a directory of another user";
  shell(
      "mkdir -m 755 closed tree && printf text > tree/file && printf 'old and longer' > closed/file"
      " && chmod 666 closed/file");
  put_tree();
  const struct stat before = host_stat(at("closed/file"));
  const auto answer =
      run_in_shell(as_nobody(), "get " + volume() + " /file " + at("closed/file"), "2>&1");
  EXPECT_EQ(answer.output, "");
  EXPECT_EQ(read_file(at("closed/file")), "text");
  EXPECT_EQ(host_stat(at("closed/file")).st_ino, before.st_ino);
  EXPECT_EQ(host_stat(at("closed/file")).st_mode, before.st_mode);
}

TEST_F(GetWithCareTest, nothing_goes_over_the_image) {
  shell(
      "mkdir tree tree/links tree/tubes && printf x > tree/volume.img && printf x > tree/keep"
      " && ln -s keep tree/links/volume.img && mkfifo tree/tubes/volume.img"
      " && ln -s volume.img other-name");
  put_tree();
  shell("ln volume.img out/keep");
  const auto expect_refused = [&](const std::string& from, const std::string& to,
                                  const std::string& named) {
    const Answer answer = get(from, to);
    EXPECT_EQ(answer.status, 1) << from;
    EXPECT_NE(answer.err.find("gofs: " + at(named) + ": the volume lies on it\n"),
              std::string::npos)
        << answer.err;
    EXPECT_EQ(run_gofs({"cat", volume(), "/keep"}).out, "x");
    EXPECT_EQ(host_stat(volume()).st_nlink, 2u);
  };
  expect_refused("/.", ".", "./volume.img");
  expect_refused("/links/.", "", "volume.img");
  expect_refused("/tubes/.", "", "volume.img");
  expect_refused("/keep", "volume.img", "volume.img");
  expect_refused("/keep", "other-name", "other-name");
  expect_refused("/", "out", "out/keep");
}

TEST_F(GetWithCareTest, nothing_goes_over_a_member_of_a_striped_volume) {
  const std::string spec = at("a.img") + "+" + at("b.img");
  shell("printf x > file");
  ASSERT_EQ(run_gofs({"mkfs", spec, "--size", "64M", "-f"}).status, 0);
  ASSERT_EQ(run_gofs({"put", spec, at("file"), "/b.img"}).status, 0);
  for (const char* name : {"", "a.img", "b.img"}) {
    EXPECT_EQ(run_gofs({"get", spec, "/b.img", at(name)}).status, 1);
  }
  EXPECT_EQ(run_gofs({"cat", spec, "/b.img"}).out, "x");
}

TEST_F(GetWithCareTest, a_loop_device_is_the_image_that_it_has) {
  shell("mkdir tree && printf x > tree/volume.img");
  put_tree();
  const auto attached = image::run_tool("losetup --find --show " + volume());
  if (attached.exit_code != 0) GTEST_SKIP() << "no loop devices here";
  const std::string loop = attached.output.substr(0, attached.output.find('\n'));
  expect_failure({"get", volume(), "/volume.img", loop}, loop + ": the volume lies on it");
  EXPECT_EQ(run_gofs({"get", loop, "/volume.img", at("")}).status, 1);
  image::run_tool("losetup -d " + loop);
  EXPECT_EQ(run_gofs({"cat", volume(), "/volume.img"}).out, "x");
}

TEST_F(GetWithCareTest, set_user_id_is_kept_with_the_owner_only) {
  shell("mkdir tree && printf x > tree/user && printf x > tree/group && mkdir tree/folder");
  put_tree();
  ASSERT_EQ(run_gofs({"chown", volume(), "33:33", "/user", "/group", "/folder"}).status, 0);
  for (const char* words : {"4755 /user", "2755 /group", "2755 /folder"}) {
    ASSERT_EQ(run_in_shell("", "chmod " + volume() + " " + words).exit_code, 0);
  }
  const auto answer =
      run_in_shell(as_nobody(), "get -r " + volume() + " / " + at("out/theirs"), "2>&1");
  EXPECT_EQ(answer.output, "");
  for (const char* name : {"user", "group", "folder"}) {
    EXPECT_EQ(host_stat(at("out/theirs/") + name).st_mode & 07777, mode_t{0755}) << name;
  }
  if (::geteuid() != 0) return;
  EXPECT_EQ(get("/", "out").err, "");
  EXPECT_EQ(host_stat(at("out/user")).st_mode & 07777, mode_t{04755});
  EXPECT_EQ(host_stat(at("out/folder")).st_mode & 07777, mode_t{02755});
}

TEST_F(GetWithCareTest, without_its_access_list_a_file_gives_its_group_no_more) {
  shell("mkdir tree && printf x > tree/file && chmod 644 volume.img");
  put_tree();
  {
    Volume mounted = Volume::mount(volume(), {.backend = "cpu", .read_only = false}).value();
    ASSERT_TRUE(mounted.setxattr("/file", "system.posix_acl_access", access_list(6, 7, 4, 6, 0)));
    ASSERT_EQ(mounted.stat("/file").value().mode & 0777, 0660u);
    ASSERT_TRUE(mounted.unmount());
  }
  run_in_shell(as_nobody(), "get " + volume() + " /file " + at("out/theirs"), "2>&1");
  EXPECT_EQ(host_stat(at("out/theirs")).st_mode & 0777, mode_t{0640});
}

TEST_F(GetWithCareTest, what_is_made_has_no_access_list_of_the_directory) {
  shell("mkdir -p tree/folder && printf x > tree/file && mkfifo tree/tube && mkdir out/folder");
  shell("chmod 640 tree/file && cp tree/file tree/folder && chmod 750 tree/folder");
  put_tree();
  const std::string list = access_list(7, 7, 7, 7, 0);
  const char* const kDefault = "system.posix_acl_default";
  for (const char* name : {"out", "out/folder"}) {
    if (::setxattr(at(name).c_str(), kDefault, list.data(), list.size(), 0) != 0) {
      GTEST_SKIP() << "no lists here";
    }
  }
  EXPECT_EQ(get("/", "out/new").err, "");
  EXPECT_EQ(get("/.", "out").err, "");
  EXPECT_EQ(get("/file", "out/file").err, "");
  const auto has = [&](const std::string& name, const char* attribute) {
    return ::getxattr(at(name).c_str(), attribute, nullptr, 0) >= 0;
  };
  for (const char* name : {"out/new", "out/new/folder", "out/new/file", "out/new/folder/file",
                           "out/new/tube", "out/file", "out/folder/file"}) {
    EXPECT_FALSE(has(name, "system.posix_acl_access")) << name;
    EXPECT_FALSE(has(name, kDefault)) << name;
  }
  EXPECT_EQ(host_stat(at("out/new/folder/file")).st_mode & 0777, mode_t{0640});
  EXPECT_EQ(host_stat(at("out/new/folder")).st_mode & 0777, mode_t{0750});
  EXPECT_TRUE(has("out/folder", kDefault)) << "it was there";
}

TEST_F(GetWithCareTest, many_folders_arrive_with_few_descriptors) {
  shell("for i in $(seq 40); do mkdir -p tree/$i/a/b && echo $i > tree/$i/a/b/file; done");
  shell("ln tree/1/a/b/file tree/40/a/b/link");
  // By the CPU: a driver of GPUs takes more of them; and so do many threads.
  const auto few = [](const std::string& command) {
    return run_in_shell("ulimit -n 16;", "--backend cpu " + command).output;
  };
  EXPECT_EQ(few("put " + volume() + "?threads=1 -r " + at("tree/* ") + "/"), "");
  EXPECT_EQ(few("get -r " + volume() + "?threads=1 / " + at("out/new")), "");
  const auto differences = image::run_tool("diff -r " + at("tree") + " " + at("out/new"));
  EXPECT_EQ(differences.output, "");
  EXPECT_EQ(host_stat(at("out/new/1/a/b/file")).st_nlink, 2u);
}

TEST_F(GetWithCareTest, an_interrupted_copy_leaves_what_was_there) {
  ASSERT_EQ(run_gofs({"mkfs", volume(), "--size", "256M", "-f"}).status, 0);
  shell("mkdir tree && head -c 40000000 /dev/urandom > tree/file && printf old > out/file");
  put_tree();
  const auto is_hidden = [](const auto& entry) {
    return entry.path().filename().string().starts_with(".gofs-");
  };
  // Ctrl-C comes as soon as the copy can be seen.
  const pid_t child = ::fork();
  if (child == 0) {
    ::execl(gofs_path().c_str(), "gofs", "get", volume().c_str(), "/file", at("out").c_str(),
            nullptr);
    ::_exit(127);
  }
  int status = 0;
  pid_t ended = 0;
  while ((ended = ::waitpid(child, &status, WNOHANG)) == 0) {
    const std::filesystem::directory_iterator out(at("out"));
    if (std::any_of(begin(out), end(out), is_hidden)) break;
  }
  if (ended == 0) {
    ::kill(child, SIGINT);
    ::waitpid(child, &status, 0);
  }
  ASSERT_TRUE(WIFEXITED(status));
  EXPECT_EQ(image::run_tool("ls -A " + at("out")).output, "file\n");
  if (WEXITSTATUS(status) == 0) return;  // it was faster
  EXPECT_EQ(WEXITSTATUS(status), 130);
  EXPECT_EQ(read_file(at("out/file")), "old");
}

TEST_F(GetWithCareTest, one_that_waits_for_a_reader_can_be_interrupted) {
  shell("mkdir tree && printf x > tree/file && mkfifo pipe");
  put_tree();
  const auto answer = run_in_shell("timeout --preserve-status -s INT 0.3",
                                   "get --backend cpu " + volume() + " /file " + at("pipe"));
  EXPECT_EQ(answer.exit_code, 130) << answer.output;
}

TEST_F(GetWithCareTest, times_before_1970_come_back_with_their_fractions) {
  shell(
      "mkdir tree && printf x > tree/file && touch -d @-1.25 tree/file && touch -h -d @-0.75 tree");
  put_tree();
  EXPECT_EQ(get("/file", "out/file").err, "");
  EXPECT_EQ(host_stat(at("out/file")).st_mtim.tv_sec, -2);
  EXPECT_EQ(host_stat(at("out/file")).st_mtim.tv_nsec, 750'000'000);
}

}  // namespace
}  // namespace gofs::cli_test
