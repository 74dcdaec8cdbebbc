// SPDX-License-Identifier: Apache-2.0
//
// Changing a volume through the host API: what is there after a new mount, what fsck.f2fs thinks of
// it, and who may mount it meanwhile.
#include <fcntl.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <cstdio>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "gofs/volume.hpp"
#include "host/image/fsck_for_test.h"
#include "host/volume_for_test.h"

namespace gofs {
namespace {

const MountOptions kReading{.backend = "cpu"};
const MountOptions kWriting{.backend = "cpu", .read_only = false};

template <typename T>
int error_of(const Expected<T>& result) {
  return result ? 0 : result.error().code;
}

std::string data_path(uint32_t index) {
  char path[32];
  std::snprintf(path, sizeof(path), "/data/file%04u", index);
  return path;
}

class CopiedVolumeTest : public ::testing::Test {
 protected:
  explicit CopiedVolumeTest(const std::string& options = "") : options_(options) {
    const auto copied = image::run_tool("cp " + host::sample_volume().path() + " " + copy_.path());
    EXPECT_EQ(copied.exit_code, 0) << copied.output;
  }
  std::string spec() const { return copy_.path() + options_; }
  Volume mount(const MountOptions& options) { return Volume::mount(spec(), options).value(); }
  void expect_sound() const { EXPECT_TRUE(image::fsck_is_clean(copy_.path())); }

  const image::TemporaryPath copy_;

 private:
  const std::string options_;
};

/// By what stands for the SSD.
class VolumeWritingTest : public CopiedVolumeTest,
                          public ::testing::WithParamInterface<const char*> {
 protected:
  VolumeWritingTest() : CopiedVolumeTest(GetParam()) {}
};

INSTANTIATE_TEST_SUITE_P(Media, VolumeWritingTest,
                         ::testing::Values("?media=memory", "?media=hosted"),
                         [](const auto& test) { return std::string(test.param).substr(7); });

TEST_P(VolumeWritingTest, changes_are_there_after_unmounting) {
  Volume volume = mount(kWriting);
  EXPECT_TRUE(volume.chmod("/odd", 04711));
  EXPECT_TRUE(volume.chown("/odd", 5, kKeepId));
  EXPECT_TRUE(volume.lchown("/link", 6, 7));
  EXPECT_TRUE(volume.utimens("/tiny", {1, 2}, {3, 4}));
  EXPECT_TRUE(volume.lutimens("/link", {5, 6}, {0, kTimeOmit}));
  EXPECT_TRUE(volume.setxattr("/large", "user.note", std::string(3000, 'n'), kXattrCreate));
  EXPECT_TRUE(volume.setxattr("/large", "user.empty", ""));
  EXPECT_EQ(error_of(volume.setxattr("/large", "user.note", "", kXattrCreate)), EEXIST);
  EXPECT_EQ(error_of(volume.setxattr("/large", "user.x", std::string(70'000, 'x'))), E2BIG);
  EXPECT_EQ(error_of(volume.lsetxattr("/link", "user.x", "y")), EPERM);
  EXPECT_TRUE(volume.removexattr("/block", "user.long"));
  const int fd = volume.open("/empty").value();
  EXPECT_TRUE(volume.fchmod(fd, 0600));
  EXPECT_TRUE(volume.fchown(fd, 8, 9));
  EXPECT_TRUE(volume.futimens(fd, {0, kTimeNow}, {0, kTimeNow}));
  EXPECT_TRUE(volume.fsetxattr(fd, "user.k", "v"));
  EXPECT_EQ(volume.fgetxattr(fd, "user.k").value(), "v");
  EXPECT_TRUE(volume.fremovexattr(fd, "user.k"));
  EXPECT_EQ(error_of(volume.fremovexattr(fd, "user.k")), ENODATA);
  EXPECT_TRUE(volume.access("/odd", 2));
  EXPECT_EQ(volume.chmod("/nosuch", 0).error().message, "/nosuch: No such file or directory");
  EXPECT_TRUE(volume.unmount());
  EXPECT_TRUE(volume.unmount()) << "a second time there is nothing to do";
  EXPECT_EQ(error_of(volume.stat("/odd")), ENODEV);
  expect_sound();

  volume = mount(kReading);
  EXPECT_TRUE(volume.info().clean);
  EXPECT_EQ(volume.stat("/odd").value().mode & 07777, 0711u) << "chown takes the set-user-ID bit";
  EXPECT_EQ(volume.stat("/again").value().uid, 5u);
  EXPECT_EQ(volume.lstat("/link").value().gid, 7u);
  EXPECT_EQ(volume.lstat("/link").value().accessed.seconds, 5);
  EXPECT_EQ(volume.stat("/tiny").value().modified.nanoseconds, 4u);
  EXPECT_EQ(volume.getxattr("/large", "user.note").value(), std::string(3000, 'n'));
  EXPECT_EQ(volume.getxattr("/large", "user.empty").value(), "");
  EXPECT_EQ(error_of(volume.getxattr("/block", "user.long")), ENODATA);
  EXPECT_EQ(volume.getxattr("/block", "user.colour").value(), "green");
  const Stat empty = volume.stat("/empty").value();
  EXPECT_EQ(empty.mode & 07777, 0600u);
  EXPECT_EQ(empty.modified.seconds, empty.changed.seconds);
  EXPECT_GT(empty.modified.seconds, 1'700'000'000) << "the host's clock";
  EXPECT_EQ(error_of(volume.chmod("/odd", 0)), EROFS);
  EXPECT_EQ(error_of(volume.setxattr("/odd", "user.a", "")), EROFS);
}

TEST_P(VolumeWritingTest, a_file_is_found_by_its_identity_until_it_is_removed) {
  std::optional<Volume> volume = mount(kWriting);
  const Identity odd = volume->identity(volume->open("/odd", O_PATH).value()).value();
  const Identity made = volume->identity(volume->open("/made", O_RDWR | O_CREAT).value()).value();
  EXPECT_TRUE(volume->rename("/made", "/renamed"));
  ASSERT_TRUE(volume->unmount());
  volume.emplace(mount(kReading));
  const int reader = volume->open_inode(made).value();
  EXPECT_EQ(volume->identity(reader).value().generation, made.generation);
  EXPECT_EQ(error_of(volume->open_inode(made, O_RDWR)), EROFS);
  ASSERT_TRUE(volume->unmount());
  volume.emplace(mount(kWriting));
  for (const Identity& file : {odd, made}) {
    const int fd = volume->open_inode(file).value();
    const Stat stat = volume->fstat(fd).value();
    EXPECT_EQ(stat.ino, file.ino);
    EXPECT_EQ(stat.generation, file.generation);
    EXPECT_TRUE(volume->close(fd));
    Identity other = file;
    ++other.generation;
    EXPECT_EQ(error_of(volume->open_inode(other)), ESTALE);
    other = file;
    other.uuid[15] ^= 1;
    EXPECT_EQ(error_of(volume->open_inode(other)), ESTALE);
  }
  EXPECT_EQ(error_of(volume->open_inode(made, O_TRUNC)), EINVAL);
  EXPECT_EQ(error_of(volume->open_inode({})), ESTALE);
  EXPECT_EQ(error_of(volume->identity(1000)), EBADF);
  EXPECT_TRUE(volume->unlink("/renamed"));
  const auto gone = volume->open_inode(made);
  ASSERT_FALSE(gone);
  EXPECT_EQ(gone.error().code, ESTALE);
  EXPECT_EQ(gone.error().message, "inode " + std::to_string(made.ino) +
                                      ": the file has been removed, or is another volume's");
  EXPECT_TRUE(volume->warnings().empty());
  EXPECT_TRUE(volume->unmount());
  EXPECT_EQ(error_of(volume->open_inode(odd)), ENODEV);
  expect_sound();
  MountOptions user = kReading;
  user.uid = 7;
  volume.emplace(mount(user));
  EXPECT_EQ(error_of(volume->open_inode(odd)), EPERM);
}

TEST_P(VolumeWritingTest, a_write_that_finds_no_room_goes_on_nowhere_else) {
  constexpr uint64_t kHole = 256 << 10;
  Volume volume = mount(kWriting);
  const int fd = volume.open("/holed", O_RDWR | O_CREAT, 0644).value();
  const std::string before(kHole, 'b');
  ASSERT_EQ(volume.pwrite(fd, before.data(), kHole, kHole).value(), kHole);
  const int filler = volume.open("/filler", O_RDWR | O_CREAT, 0644).value();
  const std::string block(4096, 'x');
  uint64_t end = 0;
  while (volume.pwrite(filler, block.data(), block.size(), end)) end += block.size();
  ASSERT_GT(end, kHole);
  ASSERT_TRUE(volume.ftruncate(filler, end - kHole / 2));
  ASSERT_TRUE(volume.sync());  // makes room of it: a part of the hole can be filled
  const std::string after(kHole, 'a');
  const uint64_t written = volume.write(fd, after.data(), after.size()).value();
  ASSERT_LT(written, kHole);
  std::string found(2 * kHole, '\0');
  ASSERT_EQ(volume.pread(fd, found.data(), found.size(), 0).value(), found.size());
  EXPECT_EQ(found.substr(0, written), after.substr(0, written));
  EXPECT_EQ(found.substr(kHole), before) << "what lies behind the hole is none of it";
  EXPECT_TRUE(volume.unmount());
  expect_sound();
}

TEST_P(VolumeWritingTest, who_writes_has_the_image_alone) {
  {
    const Volume reading = mount(kReading);
    EXPECT_EQ(error_of(Volume::mount(spec(), kWriting)), EBUSY);
    EXPECT_EQ(error_of(Volume::mount(spec(), kReading)), 0);
  }
  const Volume writing = mount(kWriting);
  for (const MountOptions& other : {kReading, kWriting}) {
    const auto refused = Volume::mount(spec(), other);
    EXPECT_EQ(error_of(refused), EBUSY);
  }
}

TEST_P(VolumeWritingTest, unmounting_waits_for_calls_and_later_ones_find_nothing) {
  struct Writer {
    std::string path;
    std::atomic<uint64_t> written = 0;  // the last number
    std::optional<Error> end;
  };
  Volume volume = mount(kWriting);
  std::vector<Writer> writers(3);
  std::vector<std::jthread> threads;
  for (Writer& writer : writers) {
    writer.path = "/writer" + std::to_string(threads.size());
    const int fd = volume.open(writer.path, O_CREAT | O_RDWR).value();
    threads.emplace_back([&, fd] {
      for (uint64_t next = 1; !writer.end; ++next) {
        const auto done = volume.pwrite(fd, &next, sizeof(next), 0);
        if (done) {
          writer.written = next;
        } else {
          writer.end = done.error();
        }
      }
    });
  }
  for (const Writer& writer : writers) {
    while (writer.written < 3) std::this_thread::yield();
  }
  EXPECT_TRUE(volume.unmount());
  threads.clear();
  expect_sound();
  volume = mount(kReading);
  for (const Writer& writer : writers) {
    EXPECT_EQ(writer.end->code, ENODEV) << writer.end->message;
    uint64_t found = 0;
    const int fd = volume.open(writer.path).value();
    EXPECT_EQ(volume.pread(fd, &found, sizeof(found), 0).value(), sizeof(found));
    EXPECT_EQ(found, writer.written);
  }
}

TEST_P(VolumeWritingTest, what_was_synced_is_there_without_unmounting) {
  Volume volume = mount(kWriting);
  EXPECT_TRUE(volume.chmod("/odd", 0700));
  EXPECT_TRUE(volume.sync());
  EXPECT_TRUE(volume.chmod("/odd", 0000));
  // As after a crash: another one looks at what the image holds now.
  const image::TemporaryPath crashed;
  ASSERT_EQ(image::run_tool("cp " + copy_.path() + " " + crashed.path()).exit_code, 0);
  Volume after = Volume::mount(crashed.path(), kReading).value();
  EXPECT_EQ(after.stat("/odd").value().mode & 07777, 0700u);
  EXPECT_FALSE(after.info().clean);
  const auto refused = Volume::mount(crashed.path(), kWriting);
  EXPECT_EQ(error_of(refused), EBUSY) << "read by another mount";
}

TEST_P(VolumeWritingTest, mounting_changes_nothing_by_itself) {
  const std::string before = image::run_tool("sha256sum < " + copy_.path()).output;
  EXPECT_TRUE(mount(kWriting).unmount());
  EXPECT_EQ(image::run_tool("sha256sum < " + copy_.path()).output, before);
}

TEST_P(VolumeWritingTest, many_threads_change_many_files) {
  Volume volume = mount(kWriting);
  std::vector<std::thread> threads;
  for (uint32_t index = 0; index < 4; ++index) {
    threads.emplace_back([&, index] {
      for (uint32_t i = index; i < host::SampleVolume::kDataFiles; i += 4) {
        const std::string path = data_path(i);
        EXPECT_TRUE(volume.chmod(path, 0400 + i % 8));
        if (i % 2 != 0) continue;  // the volume has room for 256 more nodes
        const auto set = volume.setxattr(path, "user.index", std::to_string(i));
        EXPECT_TRUE(set) << set.error().message;
        if (i % 50 == 0) {
          EXPECT_TRUE(volume.sync());
        }
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_TRUE(volume.unmount());
  expect_sound();
  volume = mount(kReading);
  for (uint32_t i = 0; i < host::SampleVolume::kDataFiles; ++i) {
    EXPECT_EQ(volume.stat(data_path(i)).value().mode & 07777, 0400 + i % 8);
    const auto value = volume.getxattr(data_path(i), "user.index");
    EXPECT_EQ(value ? *value : "none", i % 2 == 0 ? std::to_string(i) : "none");
  }
}

TEST_P(VolumeWritingTest, room_and_holes) {
  Volume volume = mount(kWriting);
  const int fd = volume.open("/large", 2 /* O_RDWR */).value();
  const uint64_t size = volume.stat("/large").value().size_bytes;
  EXPECT_TRUE(volume.fallocate(fd, 1, size, 100'000));
  EXPECT_EQ(volume.stat("/large").value().size_bytes, size);
  EXPECT_TRUE(volume.fallocate(fd, 0, size, 100'000));
  EXPECT_EQ(volume.stat("/large").value().size_bytes, size + 100'000);
  EXPECT_TRUE(volume.fallocate(fd, 3, 4096, 8192));
  EXPECT_EQ(volume.lseek(fd, 0, 4 /* SEEK_HOLE */).value(), 4096u);
  EXPECT_TRUE(volume.fallocate(fd, 0x10, 5000, 100));
  std::vector<uint8_t> bytes(20'000);
  EXPECT_EQ(volume.pread(fd, bytes.data(), bytes.size(), 0).value(), bytes.size());
  std::vector<uint8_t> wanted = host::sample_volume().content("/large", 0, bytes.size());
  std::fill_n(wanted.begin() + 4096, 8192, uint8_t{0});
  EXPECT_EQ(bytes, wanted);
  EXPECT_EQ(error_of(volume.fallocate(fd, 8, 0, 4096)), EOPNOTSUPP);
  EXPECT_EQ(error_of(volume.fallocate(fd, 0, 0, uint64_t{1} << 40)), ENOSPC);
  EXPECT_EQ(error_of(volume.fallocate(fd, 0, 0, 0)), EINVAL);
  EXPECT_TRUE(volume.unmount());
  expect_sound();
}

TEST_P(VolumeWritingTest, nothing_is_written_from_a_buffer_that_is_null) {
  Volume volume = mount(kWriting);
  const int fd = volume.open("/odd", O_RDWR).value();
  const uint64_t size = volume.fstat(fd).value().size_bytes;
  EXPECT_EQ(error_of(volume.pwrite(fd, nullptr, 10, size)), EFAULT);
  EXPECT_EQ(error_of(volume.write(fd, nullptr, 10)), EFAULT);
  EXPECT_EQ(error_of(volume.batch_create("/data", {{"fresh", "x", 1}, {"null", nullptr, 1}})),
            EFAULT);
  EXPECT_EQ(error_of(volume.stat("/data/fresh")), ENOENT);
  EXPECT_EQ(volume.fstat(fd).value().size_bytes, size);
  EXPECT_EQ(volume.write(fd, nullptr, 0).value(), 0u);
}

TEST_P(VolumeWritingTest, many_files_made_at_once) {
  constexpr size_t kFiles = 60;  // the volume has room for 256 more blocks
  Volume volume = mount(kWriting);
  std::vector<NewFile> files;
  const std::string data(50'000, 'x');
  for (size_t i = 0; i < kFiles; ++i) {
    files.push_back({"new-" + std::to_string(i), data.data() + i, i % 3 * 5000 + i});
  }
  files.push_back({"file0007", nullptr, 0});
  files.push_back({std::string("n\0l", 3), nullptr, 0});
  const auto made = volume.batch_create("/data", files, 0600);
  ASSERT_TRUE(made) << made.error().message;
  std::vector<int> expected(kFiles, 0);
  expected.push_back(EEXIST);
  expected.push_back(EINVAL);
  EXPECT_EQ(*made, expected);
  EXPECT_EQ(error_of(volume.batch_create("/odd", files)), ENOTDIR);
  EXPECT_TRUE(volume.unmount());
  EXPECT_EQ(error_of(volume.batch_create("/data", files)), ENODEV);
  expect_sound();

  volume = mount(kReading);
  EXPECT_EQ(error_of(volume.batch_create("/data", files)), EROFS);
  for (size_t i = 0; i < kFiles; ++i) {
    const std::string path = "/data/" + files[i].name;
    std::string bytes(data.size(), '\0');
    const int fd = volume.open(path).value();
    bytes.resize(volume.pread(fd, bytes.data(), bytes.size(), 0).value());
    EXPECT_EQ(bytes, data.substr(i, files[i].bytes)) << path;
    EXPECT_TRUE(volume.close(fd));
  }
}

TEST_P(VolumeWritingTest, collecting_garbage_leaves_files_as_they_are) {
  Volume volume = mount(kReading);
  EXPECT_EQ(error_of(volume.collect_garbage()), EROFS);
  EXPECT_TRUE(volume.unmount());
  volume = mount(kWriting);
  const int fd = volume.open("/large", 2).value();
  std::string model(volume.fstat(fd).value().size_bytes, '\0');
  EXPECT_EQ(volume.pread(fd, model.data(), model.size(), 0).value(), model.size());
  uint64_t offset = 0;
  for (uint32_t turn = 0; turn < 150; ++turn) {
    offset = (offset + 1'234'567) % (model.size() - 40'000);
    const std::string bytes(40'000, static_cast<char>('a' + turn % 26));
    ASSERT_EQ(volume.pwrite(fd, bytes.data(), bytes.size(), offset).value(), bytes.size());
    std::copy(bytes.begin(), bytes.end(), model.begin() + static_cast<ptrdiff_t>(offset));
    if (turn == 100) {
      EXPECT_TRUE(volume.sync());
    }
  }
  const auto report = volume.collect_garbage({.emptiest_first = true});
  ASSERT_TRUE(report) << report.error().message;
  // How much is left to do depends on what those who wrote have cleaned already.
  const uint64_t moved = report->data_blocks + report->directory_blocks + report->node_blocks;
  EXPECT_TRUE(report->segments == 0 || moved != 0);
  EXPECT_NE(report->free_segments, 0u);
  std::string found(model.size(), '\0');
  EXPECT_EQ(volume.pread(fd, found.data(), found.size(), 0).value(), model.size());
  EXPECT_TRUE(found == model);
  EXPECT_TRUE(volume.unmount());
  expect_sound();
  volume = mount(kReading);
  const int again = volume.open("/large").value();
  EXPECT_EQ(volume.pread(again, found.data(), found.size(), 0).value(), model.size());
  EXPECT_TRUE(found == model);
}

// Copies of the image are what a power cut would leave.
class MaintenanceTest : public CopiedVolumeTest {
 protected:
  /// Until what `look` wants to see is in a copy of the image, mounted.
  template <typename Look>
  bool comes_to_be(Look look) {
    for (uint32_t turn = 0; turn < 1000; ++turn) {
      const image::TemporaryPath cut;
      const auto copied = image::run_tool("cp " + copy_.path() + " " + cut.path());
      EXPECT_EQ(copied.exit_code, 0) << copied.output;
      auto volume = Volume::mount(cut.path(), kReading);
      if (volume && look(*volume)) return true;
      std::this_thread::sleep_for(std::chrono::milliseconds(50));
    }
    return false;
  }
};

TEST_F(MaintenanceTest, what_has_changed_is_durable_after_a_while) {
  MountOptions options = kWriting;
  options.checkpoint_period_ns = 50'000'000;
  Volume volume = mount(options);
  EXPECT_TRUE(volume.mkdir("/new", 0700));
  EXPECT_TRUE(comes_to_be([](Volume& cut) { return cut.stat("/new").has_value(); }));
  EXPECT_TRUE(volume.mkdir("/newer", 0700));
  EXPECT_TRUE(comes_to_be([](Volume& cut) { return cut.stat("/newer").has_value(); }));
  EXPECT_TRUE(volume.unmount());
  expect_sound();
}

TEST_F(MaintenanceTest, segments_are_cleaned_while_nothing_happens) {
  const auto made = image::run_tool("truncate -s 0 " + copy_.path() + " && truncate -s 200M " +
                                    copy_.path() + " && mkfs.f2fs -q -f " + copy_.path());
  ASSERT_EQ(made.exit_code, 0) << made.output;
  MountOptions options = kWriting;
  uint32_t free_segments = 0;
  {
    Volume volume = mount(options);
    // Blocks of two files in turn, and then one of the two goes: its segments are half empty.
    const int staying = volume.open("/staying", O_WRONLY | O_CREAT, 0600).value();
    const int going = volume.open("/going", O_WRONLY | O_CREAT, 0600).value();
    const std::string bytes(4096, 'a');
    for (uint64_t offset = 0; offset < uint64_t{5} << 20; offset += bytes.size()) {
      ASSERT_EQ(error_of(volume.pwrite(staying, bytes.data(), bytes.size(), offset)), 0);
      ASSERT_EQ(error_of(volume.pwrite(going, bytes.data(), bytes.size(), offset)), 0);
    }
    EXPECT_TRUE(volume.close(going));
    EXPECT_TRUE(volume.unlink("/going"));
    EXPECT_TRUE(volume.unmount());
    free_segments = mount(kReading).info().free_segments;
  }
  options.checkpoint_period_ns = 50'000'000;
  options.idle_clean_percent = 100;
  Volume volume = mount(options);
  EXPECT_TRUE(comes_to_be([&](Volume& cut) { return cut.info().free_segments > free_segments; }));
  EXPECT_TRUE(volume.unmount());
  expect_sound();
}

}  // namespace
}  // namespace gofs
