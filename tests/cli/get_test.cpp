// SPDX-License-Identifier: Apache-2.0
//
// gofs get: what arrives on the host is what was on the volume.
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/xattr.h>

#include <cerrno>

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

}  // namespace
}  // namespace gofs::cli_test
