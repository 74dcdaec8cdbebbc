// SPDX-License-Identifier: Apache-2.0
//
// Images on a host whose storage fails or is somebody else's: what the user reads, and what is
// left.
#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <csignal>

#include "run_gofs.h"

namespace gofs::cli_test {
namespace {

/// Runs `script` where the folder $at is a file system of 8 MiB in memory, which others do not see.
/// $gofs is the command.
image::ToolAnswer on_small_disk(const std::string& script) {
  return image::run_tool("gofs=" + gofs_path() +
                         " unshare -rm sh -c 'at=$(mktemp -d) || exit 9\n"
                         "mount -t tmpfs -o size=8m none $at || exit 9\n" +
                         script + "\numount -l $at; rmdir $at'");
}

bool has_namespaces() { return image::run_tool("unshare -rm true").exit_code == 0; }

TEST(HostStorage, a_full_disk_is_told_and_what_was_there_stays_there) {
  if (!has_namespaces()) GTEST_SKIP() << "no user namespaces here";
  const auto answer = on_small_disk(
      "$gofs mkfs $at/v --size 100M; head -c 1000000 /dev/urandom > $at/one\n"
      "$gofs put $at/v $at/one /one; rm $at/one\n"
      "head -c 20000000 /dev/zero | tr \"\\0\" x > /tmp/gofs-two-$$\n"
      "$gofs put $at/v /tmp/gofs-two-$$ /two; echo status $?; rm /tmp/gofs-two-$$\n"
      "$gofs ls $at/v; mount -o remount,size=64m $at\n"
      "$gofs mkdir $at/v /room; echo status $?; $gofs ls $at/v; $gofs check $at/v");
  const std::string& said = answer.output;
  const size_t failed = said.find("status 1");
  ASSERT_NE(failed, std::string::npos) << said;
  EXPECT_LT(said.find("No space left on device"), failed) << said;
  EXPECT_NE(said.find("one", failed), std::string::npos) << said;
  EXPECT_NE(said.find("status 0\none\nroom", failed), std::string::npos) << said;
  EXPECT_NE(said.find("finds nothing wrong"), std::string::npos) << said;
}

TEST(HostStorage, the_limit_of_a_files_size_is_an_error_and_ends_no_command) {
  const image::TemporaryPath out;
  const image::TemporaryPath copy;
  image::run_tool("cp " + host::sample_volume().path() + " " + copy.path());
  const auto says = [&](const std::string& words, const std::string& message) {
    const auto answer = image::run_tool("ulimit -f 64; " + gofs_path() + " " + words);
    EXPECT_EQ(answer.exit_code, 1) << words << ": " << answer.output;
    EXPECT_NE(answer.output.find(message), std::string::npos) << words << ": " << answer.output;
  };
  const std::string folder = out.path() + ".d";
  image::run_tool("mkdir " + folder + "; printf old > " + folder + "/large");
  says("get " + copy.path() + " /large " + folder, folder + "/large: File too large");
  EXPECT_EQ(image::run_tool("ls -A " + folder + "; cat " + folder + "/large").output, "large\nold");
  says("cat " + copy.path() + " /large > " + folder + "/large", "standard output: File too large");
  says("mkfs " + folder + "/new --size 64M", folder + "/new: File too large");
  EXPECT_NE(::access((folder + "/new").c_str(), F_OK), 0);
  says("mkdir " + copy.path() + " /new", "File too large");
  image::run_tool("rm -r " + folder);
  expect_sound(copy.path());
}

TEST(HostStorage, mkfs_that_fails_leaves_the_link_by_which_it_was_named) {
  const image::TemporaryPath path;
  const std::string link = path.path() + ".link";
  image::run_tool("rm " + path.path() + "; ln -s " + path.path() + " " + link);
  for (const std::string& words : {"mkfs " + link, "mkfs --size 1M " + link + "+" + link + "2"}) {
    EXPECT_EQ(run_in_shell("", words).exit_code, 1);
    EXPECT_EQ(image::run_tool("readlink " + link).output, path.path() + "\n") << words;
    EXPECT_NE(::access(path.path().c_str(), F_OK), 0) << words;
    EXPECT_NE(::access((link + "2").c_str(), F_OK), 0) << words;
  }
  EXPECT_EQ(run_gofs({"mkfs", link, "--size", "64M"}).status, 0);
  EXPECT_EQ(::access(path.path().c_str(), F_OK), 0);
  image::run_tool("rm " + link);
}

TEST(HostStorage, mkfs_goes_over_nothing_by_mistake_and_over_what_is_in_use_by_no_means) {
  const image::TemporaryPath path;
  image::run_tool("truncate -s 64M " + path.path() +
                  "; printf text | dd conv=notrunc bs=1 of=" + path.path() + " seek=50000000");
  const auto says = [&](const std::vector<std::string>& words, const std::string& message) {
    const Answer answer = run_gofs(words);
    EXPECT_EQ(answer.status, 1);
    EXPECT_EQ(answer.err, "gofs: " + path.path() + ": " + message + "\n");
  };
  says({"mkfs", path.path()}, "it already holds data");
  EXPECT_EQ(run_gofs({"mkfs", path.path(), "-f"}).status, 0);
  const int held = ::open(path.path().c_str(), O_RDONLY | O_CLOEXEC);
  ASSERT_EQ(::flock(held, LOCK_SH), 0);  // as who reads it
  for (const std::vector<std::string>& words : {std::vector<std::string>{"mkfs", path.path(), "-f"},
                                                {"mkdir", path.path(), "/d"},
                                                {"rm", path.path(), "/d"},
                                                {"truncate", path.path(), "/d", "0"},
                                                {"gc", path.path()}}) {
    says(words, "in use: Device or resource busy");
  }
  ::close(held);
}

TEST(HostStorage, an_image_that_is_cut_while_it_is_mounted_ends_no_program) {
  const image::TemporaryPath image;
  ASSERT_EQ(run_gofs({"mkfs", image.path(), "--size", "64M", "-f"}).status, 0);
  auto volume = Volume::mount(image.path(), {.backend = "cpu", .read_only = false}).value();
  ASSERT_TRUE(volume.mkdir("/kept"));
  ASSERT_TRUE(volume.sync());
  ASSERT_EQ(::truncate(image.path().c_str(), 1 << 20), 0);
  const std::string bytes(100'000, 'x');
  const auto fd = volume.open("/new", O_RDWR | O_CREAT);
  const auto written = volume.pwrite(fd ? *fd : 0, bytes.data(), bytes.size(), 0);
  const auto synced = volume.sync();
  EXPECT_FALSE(written);
  ASSERT_FALSE(synced);
  EXPECT_NE(synced.error().message.find("shorter than it was"), std::string::npos)
      << synced.error().message;
  const auto unmounted = volume.unmount();
  ASSERT_FALSE(unmounted);
  EXPECT_NE(unmounted.error().message.find("shorter than it was"), std::string::npos)
      << unmounted.error().message;
  struct stat status {};
  ASSERT_EQ(::stat(image.path().c_str(), &status), 0);
  EXPECT_EQ(status.st_size, 1 << 20) << "it was made longer again, with zeros";
}

}  // namespace
}  // namespace gofs::cli_test
