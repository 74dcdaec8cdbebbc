// SPDX-License-Identifier: Apache-2.0
//
// Who may have an image: one who writes, or many who read; and nothing is written to what Linux or
// a loop device uses.
#include "ssd/claimed_image.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/sysmacros.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <system_error>

#include "ssd/device_use.h"
#include "ssd/loop_device_for_test.h"
#include "ssd/vfio/fake_system_for_test.h"

namespace gofs::ssd {
namespace {

constexpr auto kForReading = FileAccess::kReadOnly;
constexpr auto kForWriting = FileAccess::kReadWrite;

class TemporaryImage {
 public:
  TemporaryImage() {
    const int file = ::mkstemp(path_.data());
    EXPECT_EQ(::ftruncate(file, 1 << 20), 0);
    ::close(file);
  }
  ~TemporaryImage() { ::unlink(path_.c_str()); }
  const std::string& path() const { return path_; }

 private:
  std::string path_ = ::testing::TempDir() + "gofs_claim_XXXXXX";
};

struct Refusal {
  int error = 0;
  std::string words;
};

Refusal refusal_of(const std::string& path, FileAccess access) {
  try {
    const ClaimedImage image(path, access);
  } catch (const std::system_error& problem) {
    return {problem.code().value(), problem.what()};
  }
  return {};
}

TEST(ClaimedImage, is_for_one_who_writes_or_many_who_read) {
  const TemporaryImage file;
  {
    const ClaimedImage one(file.path(), kForReading);
    EXPECT_EQ(refusal_of(file.path(), kForReading).error, 0);
    EXPECT_EQ(refusal_of(file.path(), kForWriting).error, EBUSY);
  }
  {
    const ClaimedImage one(file.path(), kForWriting);
    EXPECT_EQ(one.bytes(), 1u << 20);
    EXPECT_FALSE(one.is_device());
    EXPECT_EQ(refusal_of(file.path(), kForReading).words,
              file.path() + ": mounted for writing: Device or resource busy");
    EXPECT_EQ(refusal_of(file.path(), kForWriting).words,
              file.path() + ": in use: Device or resource busy");
  }
  EXPECT_EQ(refusal_of(file.path(), kForWriting).error, 0);
}

TEST(ClaimedImage, is_no_pipe_and_makes_a_file_only_where_it_shall) {
  const std::string pipe = ::testing::TempDir() + "gofs_claim_pipe";
  ::unlink(pipe.c_str());
  ASSERT_EQ(::mkfifo(pipe.c_str(), 0600), 0);
  EXPECT_EQ(refusal_of(pipe, kForReading).error, ENODEV) << "and nobody waits for a writer";
  ::unlink(pipe.c_str());
  EXPECT_EQ(refusal_of(pipe, kForWriting).error, ENOENT);
  { const ClaimedImage made(pipe, kForWriting, IfMissing::kMake); }
  EXPECT_EQ(refusal_of(pipe, kForReading).error, 0);
  ::unlink(pipe.c_str());
}

TEST(ClaimedImage, ends_although_a_child_has_the_descriptor) {
  const TemporaryImage file;
  std::optional<ClaimedImage> image;
  image.emplace(file.path(), kForWriting);
  const pid_t child = ::fork();
  if (child == 0) {
    ::pause();
    ::_exit(0);
  }
  EXPECT_EQ(refusal_of(file.path(), kForReading).error, EBUSY);
  image.reset();
  EXPECT_EQ(refusal_of(file.path(), kForWriting).error, 0);
  ::kill(child, SIGKILL);
  ::waitpid(child, nullptr, 0);
}

TEST(ClaimedImage, is_not_written_to_while_a_loop_device_has_it) {
  const TemporaryImage file;
  const LoopDevice loop(file.path());
  if (!loop.is_there()) GTEST_SKIP() << "no loop devices here";
  const Refusal refusal = refusal_of(file.path(), kForWriting);
  EXPECT_EQ(refusal.error, EBUSY);
  EXPECT_NE(refusal.words.find("in use: " + loop.path() + " has it"), std::string::npos)
      << refusal.words;
  EXPECT_EQ(refusal_of(file.path(), kForReading).error, 0);
  const TemporaryImage other;
  EXPECT_EQ(refusal_of(other.path(), kForWriting).error, 0);
}

TEST(ClaimedImage, is_no_loop_device_whose_file_is_claimed_already) {
  const TemporaryImage file;
  std::optional<ClaimedImage> image;
  image.emplace(file.path(), kForWriting);
  const LoopDevice loop(file.path());
  if (!loop.is_there()) GTEST_SKIP() << "no loop devices here";
  EXPECT_EQ(refusal_of(loop.path(), kForWriting).words,
            loop.path() + ": in use: Device or resource busy");
  EXPECT_EQ(refusal_of(loop.path(), kForReading).words,
            loop.path() + ": mounted for writing: Device or resource busy");
  image.reset();
  EXPECT_EQ(refusal_of(loop.path(), kForWriting).error, 0);
  image.emplace(file.path(), kForReading);
  EXPECT_EQ(refusal_of(loop.path(), kForWriting).error, EBUSY);
  EXPECT_EQ(refusal_of(loop.path(), kForReading).error, 0);
}

TEST(ClaimedImage, is_no_device_that_somebody_has_for_himself) {
  const TemporaryImage file;
  const LoopDevice loop(file.path());
  if (!loop.is_there()) GTEST_SKIP() << "no loop devices here";
  {
    const ClaimedImage device(loop.path(), kForWriting);
    EXPECT_TRUE(device.is_device());
    EXPECT_EQ(device.bytes(), 1u << 20);
  }
  const Descriptor mounted = Descriptor::open(loop.path(), O_RDWR | O_EXCL);  // as a mount has it
  ASSERT_TRUE(mounted.is_open());
  EXPECT_EQ(refusal_of(loop.path(), kForWriting).error, EBUSY);
  EXPECT_EQ(refusal_of(loop.path(), kForReading).error, 0);
}

TEST(ClaimedImage, was_cut_when_the_file_of_a_loop_device_has_become_shorter) {
  const TemporaryImage file;
  const LoopDevice whole(file.path());
  if (!whole.is_there()) GTEST_SKIP() << "no loop devices here";
  const LoopDevice part(file.path(), 262144, 262144);
  ASSERT_TRUE(part.is_there());
  const ClaimedImage all(whole.path(), kForReading);
  const ClaimedImage some(part.path(), kForReading);
  EXPECT_EQ(some.bytes(), 262144u);
  EXPECT_FALSE(all.was_cut());
  ASSERT_EQ(::truncate(file.path().c_str(), 524288), 0);
  EXPECT_TRUE(all.was_cut());
  EXPECT_FALSE(some.was_cut()) << "its part is there still";
  ASSERT_EQ(::truncate(file.path().c_str(), 524287), 0);
  EXPECT_TRUE(some.was_cut());
  ASSERT_EQ(::truncate(file.path().c_str(), 1 << 20), 0);
  EXPECT_FALSE(all.was_cut());
}

TEST(Descriptor, is_none_of_the_standard_streams) {
  const TemporaryImage file;
  const int kept = ::fcntl(STDIN_FILENO, F_DUPFD_CLOEXEC, 100);
  ASSERT_GE(kept, 0);
  ::close(STDIN_FILENO);
  {
    const ClaimedImage image(file.path(), kForWriting);
    EXPECT_GT(image.get(), STDERR_FILENO);
    EXPECT_EQ(::fcntl(image.get(), F_GETFD), FD_CLOEXEC);
    const Descriptor other(::open(file.path().c_str(), O_RDONLY | O_CLOEXEC));
    EXPECT_GT(other.get(), STDERR_FILENO);
    EXPECT_LT(::fcntl(STDIN_FILENO, F_GETFD), 0) << "it was given back";
  }
  ::dup2(kept, STDIN_FILENO);
  ::close(kept);
}

class DeviceUseTest : public ::testing::Test {
 protected:
  DeviceUseTest() {
    add("sda", "8:0");
    add("sda2", "8:2");
    system_.write("/sys/class/block/sda/sda2/partition", "2\n");
  }
  void add(const std::string& name, const std::string& number) {
    system_.write("/sys/class/block/" + name + "/dev", number + "\n");
    system_.link("/sys/dev/block/" + number, "/sys/class/block/" + name);
  }
  std::string holder() const { return holder_of_device(system_.root(), makedev(8, 0)); }

  vfio::FakeSystem system_;
};

TEST_F(DeviceUseTest, is_told_of_a_disk_and_of_its_partitions) {
  EXPECT_EQ(holder(), "");
  system_.write("/proc/swaps", "Filename Type Size Used Priority\n/dev/sda2 partition 1 0 -2\n");
  EXPECT_EQ(holder(), "sda2 is swap");
  system_.write("/proc/self/mountinfo", "27 1 8:2 / /with\\040blank rw - ext4 /dev/sda2 rw\n");
  EXPECT_EQ(holder(), "sda2 is mounted at /with blank");
  system_.write("/sys/class/block/sda/holders/dm-0/none", "");
  EXPECT_EQ(holder(), "part of dm-0");
  system_.write("/sys/class/block/dm-0/dm/name", "home\n");
  EXPECT_EQ(holder(), "part of dm-0 (home)");
  EXPECT_EQ(holder_of_device(system_.root(), makedev(9, 9)), "") << "sysfs does not know it";
}

TEST_F(DeviceUseTest, a_partition_of_a_loop_device_begins_within_its_file) {
  const TemporaryImage file;
  const LoopDevice loop(file.path(), 4096, 0);
  if (!loop.is_there()) GTEST_SKIP() << "no loop devices here";
  struct stat status {};
  ASSERT_EQ(::stat(loop.path().c_str(), &status), 0);
  const std::string name = loop.path().substr(5);
  const std::string number =
      std::to_string(major(status.st_rdev)) + ":" + std::to_string(minor(status.st_rdev));
  add(name, number);
  system_.write("/sys/class/block/" + name + "/loop/backing_file", file.path() + "\n");
  // By its name in the tree: the driver is asked.
  std::filesystem::create_directory(system_.root() + "/dev");
  std::filesystem::create_symlink(loop.path(), system_.root() + "/dev/" + name);
  LoopFile found = file_of_loop_device(system_.root(), status.st_rdev);
  EXPECT_EQ(found.path, file.path());
  EXPECT_EQ(found.offset, 4096u);
  EXPECT_FALSE(found.whole);
  system_.write("/sys/class/block/" + name + "/" + name + "p1/partition", "1\n");
  system_.write("/sys/class/block/" + name + "/" + name + "p1/start", "2048\n");
  system_.link("/sys/dev/block/259:77", "/sys/class/block/" + name + "/" + name + "p1");
  found = file_of_loop_device(system_.root(), makedev(259, 77));
  EXPECT_EQ(found.path, file.path());
  EXPECT_EQ(found.offset, 4096u + 2048 * 512);
}

TEST_F(DeviceUseTest, a_loop_device_is_found_by_the_name_of_its_file) {
  const TemporaryImage file;
  struct stat status {};
  ASSERT_EQ(::stat(file.path().c_str(), &status), 0);
  add("loop0", "7:0");
  system_.write("/sys/class/block/loop1/loop/backing_file", "/no/such/file (deleted)\n");
  EXPECT_EQ(loop_device_of(system_.root(), status), "");
  system_.write("/sys/class/block/loop2/loop/backing_file", file.path() + "\n");
  EXPECT_EQ(loop_device_of(system_.root(), status), "/dev/loop2");
}

}  // namespace
}  // namespace gofs::ssd
