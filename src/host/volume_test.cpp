// SPDX-License-Identifier: Apache-2.0
//
// The public host API on a volume whose contents are known: every operation, what each refuses, and
// what mounting refuses. Images are made by host/image, and once by sload.f2fs.
#include "gofs/volume.hpp"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <fstream>
#include <set>
#include <thread>
#include <vector>

#include "host/volume_for_test.h"
#include "host/volume_state.h"

namespace gofs {
namespace {

using host::SampleVolume;

const MountOptions kOnCpu{.backend = "cpu"};

class VolumeTest : public ::testing::Test {
 protected:
  VolumeTest() : volume_(Volume::mount(host::sample_volume().path(), kOnCpu).value()) {}
  Volume volume_;
};

template <typename T>
int code_of(const Expected<T>& result) {
  return result ? 0 : result.error().code;
}

std::vector<std::string> names_in(Volume& volume, const std::string& path) {
  const int fd = volume.opendir(path).value();
  std::vector<std::string> names;
  for (;;) {
    const auto entries = volume.readdir(fd).value();
    if (entries.empty()) break;
    for (const DirectoryEntry& entry : entries) names.push_back(entry.name);
  }
  volume.close(fd).value();
  std::sort(names.begin(), names.end());
  return names;
}

TEST_F(VolumeTest, entries_go_to_memory_of_the_caller) {
  std::vector<NamedEntry> room(kReaddirEntriesMin);
  const int fd = volume_.opendir("/data").value();
  EXPECT_EQ(code_of(volume_.readdir(fd, room.data(), kReaddirEntriesMin - 1)), EINVAL);
  EXPECT_EQ(code_of(volume_.readdir(fd, nullptr, kReaddirEntriesMin)), EFAULT);
  EXPECT_EQ(code_of(volume_.readdir(12345, nullptr, kReaddirEntriesMin)), EBADF);
  std::vector<std::string> names;
  while (const uint64_t count = volume_.readdir(fd, room.data(), room.size()).value()) {
    ASSERT_LE(count, room.size());
    for (uint64_t i = 0; i < count; ++i) {
      EXPECT_EQ(room[i].type, kTypeRegular);
      names.emplace_back(room[i].name, room[i].name_length);
    }
  }
  std::sort(names.begin(), names.end());
  EXPECT_EQ(names, names_in(volume_, "/data"));
}

TEST_F(VolumeTest, info_tells_what_the_superblock_says) {
  const VolumeInfo info = volume_.info();
  EXPECT_EQ(info.label, "sämple");
  EXPECT_EQ(info.uuid.size(), 36u);
  EXPECT_TRUE(info.features.empty());
  EXPECT_TRUE(info.clean);
  EXPECT_EQ(info.backend, "cpu");
  EXPECT_EQ(info.ssd_bytes, 64u << 20);
  EXPECT_EQ(info.block_count, 16384u);
  EXPECT_EQ(info.queues, 16u);
  EXPECT_EQ(info.queue_depth, 1024u);
  EXPECT_TRUE(volume_.warnings().empty());
}

TEST_F(VolumeTest, every_file_reads_back) {
  std::vector<uint8_t> buffer(10 << 20);
  for (const auto& [path, file] : host::sample_volume().files()) {
    if (path == "/holes") continue;
    const auto fd = volume_.open(path);
    ASSERT_TRUE(fd) << fd.error().message;
    const auto got = volume_.pread(*fd, buffer.data(), buffer.size(), 0);
    ASSERT_TRUE(got) << got.error().message;
    EXPECT_EQ(*got, file.size_bytes) << path;
    EXPECT_TRUE(host::sample_volume().has(path, buffer.data(), *got, 0));
    EXPECT_TRUE(volume_.close(*fd));
  }
}

TEST_F(VolumeTest, parts_of_a_file_read_at_any_offset_and_length) {
  const int fd = volume_.open("/large").value();
  const uint64_t size = host::sample_volume().files().at("/large").size_bytes;
  std::vector<uint8_t> buffer(200'000);
  for (const uint64_t offset : {uint64_t{0}, uint64_t{1}, uint64_t{511}, uint64_t{4095},
                                uint64_t{4096}, uint64_t{1'000'003}, size - 1, size, size + 5}) {
    for (const uint64_t bytes : {0u, 1u, 3u, 512u, 4096u, 4097u, 131'072u, 200'000u}) {
      // An odd address, which the device cannot write to by itself.
      const auto got = volume_.pread(fd, buffer.data() + (bytes == 3 ? 1 : 0), bytes, offset);
      ASSERT_TRUE(got) << got.error().message;
      EXPECT_EQ(*got, offset >= size ? 0 : std::min(bytes, size - offset));
      EXPECT_TRUE(
          host::sample_volume().has("/large", buffer.data() + (bytes == 3 ? 1 : 0), *got, offset));
    }
  }
}

TEST_F(VolumeTest, read_goes_on_where_the_last_one_ended) {
  const uint64_t size = host::sample_volume().files().at("/odd").size_bytes;
  const int fd = volume_.open("/odd").value();
  std::vector<uint8_t> buffer(size + 1000);
  uint64_t position = 0;
  while (position < size) {
    const uint64_t wanted = 1 + position / 2;
    const uint64_t got = volume_.read(fd, buffer.data(), wanted).value();
    ASSERT_EQ(got, std::min(wanted, size - position));
    EXPECT_TRUE(host::sample_volume().has("/odd", buffer.data(), got, position));
    position += got;
  }
  EXPECT_EQ(volume_.read(fd, buffer.data(), 10).value(), 0u);
  EXPECT_EQ(volume_.lseek(fd, 0, SEEK_CUR).value(), size);
  EXPECT_EQ(volume_.lseek(fd, -5, SEEK_END).value(), size - 5);
  EXPECT_EQ(volume_.read(fd, buffer.data(), buffer.size()).value(), 5u);
  EXPECT_TRUE(host::sample_volume().has("/odd", buffer.data(), 5, size - 5));
  EXPECT_EQ(volume_.lseek(fd, 7, SEEK_END).value(), size + 7);
  EXPECT_EQ(volume_.read(fd, buffer.data(), 10).value(), 0u);
  EXPECT_EQ(code_of(volume_.read(12345, buffer.data(), 10)), EBADF);
  EXPECT_EQ(code_of(volume_.read(fd, buffer.data(), ~uint64_t{0})), EINVAL);
  const int directory = volume_.opendir("/").value();
  EXPECT_EQ(code_of(volume_.read(directory, buffer.data(), 10)), EISDIR);
}

TEST_F(VolumeTest, a_buffer_that_is_null_is_refused_before_the_position_moves) {
  const int fd = volume_.open("/odd").value();
  EXPECT_EQ(code_of(volume_.pread(fd, nullptr, 10, 0)), EFAULT);
  const auto read = volume_.read(fd, nullptr, 10);
  EXPECT_EQ(code_of(read), EFAULT);
  EXPECT_EQ(read.error().message, "/odd: the buffer is null");
  EXPECT_EQ(volume_.lseek(fd, 0, SEEK_CUR).value(), 0u);
  EXPECT_EQ(volume_.pread(fd, nullptr, 0, 0).value(), 0u);
  EXPECT_EQ(volume_.read(fd, nullptr, 0).value(), 0u);
  // What is wrong with the descriptor comes first.
  EXPECT_EQ(code_of(volume_.pread(12345, nullptr, 10, 0)), EBADF);
  EXPECT_EQ(code_of(volume_.read(volume_.opendir("/").value(), nullptr, 10)), EISDIR);
}

TEST_F(VolumeTest, holes_read_as_zeros_and_are_found) {
  const int fd = volume_.open("/holes").value();
  std::vector<uint8_t> buffer(5 * 4096);
  const uint64_t got = volume_.pread(fd, buffer.data(), buffer.size(), 4096).value();
  EXPECT_EQ(got, buffer.size());
  EXPECT_TRUE(host::sample_volume().has("/holes", buffer.data(), got, 4096));
  const uint64_t last = SampleVolume::kHolesBytes - 4096;
  EXPECT_EQ(volume_.lseek(fd, 0, SEEK_DATA).value(), 0u);
  EXPECT_EQ(volume_.lseek(fd, 0, SEEK_HOLE).value(), SampleVolume::kHoleAt);
  EXPECT_EQ(volume_.lseek(fd, SampleVolume::kHoleAt, SEEK_DATA).value(),
            SampleVolume::kHoleAt + 4096);
  EXPECT_EQ(volume_.lseek(fd, 5 * 4096, SEEK_DATA).value(), last);
  EXPECT_EQ(volume_.lseek(fd, static_cast<int64_t>(last), SEEK_HOLE).value(),
            SampleVolume::kHolesBytes);
  EXPECT_EQ(code_of(volume_.lseek(fd, SampleVolume::kHolesBytes, SEEK_DATA)), ENXIO);
}

TEST_F(VolumeTest, lseek_moves_and_refuses) {
  const int fd = volume_.open("/odd").value();
  EXPECT_EQ(volume_.lseek(fd, 5, SEEK_SET).value(), 5u);
  EXPECT_EQ(volume_.lseek(fd, 6, SEEK_CUR).value(), 11u);
  EXPECT_EQ(volume_.lseek(fd, -7, SEEK_END).value(), 10'000u);
  EXPECT_EQ(code_of(volume_.lseek(fd, -1, SEEK_SET)), EINVAL);
  EXPECT_EQ(code_of(volume_.lseek(fd, 0, 99)), EINVAL);
  EXPECT_EQ(volume_.lseek(fd, 0, SEEK_CUR).value(), 10'000u);
}

TEST_F(VolumeTest, stat_follows_links_and_lstat_does_not) {
  const Stat file = volume_.stat("/odd").value();
  EXPECT_EQ(file.size_bytes, 10'007u);
  EXPECT_EQ(file.mode, uint32_t{S_IFREG | 0644});
  EXPECT_EQ(file.links, 2u);
  EXPECT_EQ(file.modified.seconds, 1'700'000'000);
  EXPECT_EQ(volume_.stat("/again").value().ino, file.ino);
  EXPECT_EQ(volume_.fstat(volume_.open("/again").value()).value().ino, file.ino);
  EXPECT_TRUE(S_ISDIR(volume_.stat("/link").value().mode));
  EXPECT_TRUE(S_ISLNK(volume_.lstat("/link").value().mode));
  EXPECT_TRUE(S_ISDIR(volume_.lstat("/link/").value().mode));
  const Stat device = volume_.stat("/device").value();
  EXPECT_TRUE(S_ISBLK(device.mode));
  EXPECT_EQ(device.device_major, 8u);
  EXPECT_EQ(device.device_minor, 1u);
  EXPECT_TRUE(S_ISFIFO(volume_.stat("/fifo").value().mode));
  EXPECT_EQ(volume_.readlink("/link").value(), "data");
  EXPECT_EQ(volume_.readlink("/dangling").value(), "nowhere");
}

TEST_F(VolumeTest, extended_attributes_are_listed_and_read) {
  using Names = std::vector<std::string>;
  const Names names = {"user.colour", "trusted.mark", "user.long", "system.posix_acl_access"};
  EXPECT_EQ(volume_.listxattr("/block").value(), names);
  EXPECT_EQ(volume_.listxattr("/odd").value(), Names());
  EXPECT_EQ(volume_.getxattr("/block", "user.colour").value(), "green");
  EXPECT_EQ(volume_.getxattr("/block", "user.long").value(), SampleVolume::long_value());
  EXPECT_EQ(volume_.getxattr("/block", "trusted.mark").value(), std::string("\0\xff", 2));
  EXPECT_EQ(volume_.getxattr("/block", "system.posix_acl_access").value().size(), 4u + 5 * 8);
  EXPECT_EQ(volume_.getxattr("/link", "user.colour").value(), "red");
  EXPECT_EQ(code_of(volume_.lgetxattr("/link", "user.colour")), ENODATA);
  EXPECT_EQ(volume_.listxattr("/link").value(), Names{"user.colour"});
  EXPECT_EQ(volume_.llistxattr("/link").value(), Names());
  const int fd = volume_.open("/block").value();
  EXPECT_EQ(volume_.flistxattr(fd).value(), names);
  EXPECT_EQ(volume_.fgetxattr(fd, "user.colour").value(), "green");
  EXPECT_EQ(code_of(volume_.fgetxattr(fd, "user.nosuch")), ENODATA);
  EXPECT_EQ(code_of(volume_.fgetxattr(4000, "user.colour")), EBADF);
  EXPECT_EQ(code_of(volume_.flistxattr(4000)), EBADF);
  EXPECT_EQ(code_of(volume_.getxattr("/block", std::string("user.\0x", 7))), EINVAL);
  EXPECT_EQ(code_of(volume_.getxattr("/block", "user." + std::string(251, 'x'))), ERANGE);
  EXPECT_EQ(code_of(volume_.getxattr("/block", "")), ERANGE);
  EXPECT_EQ(code_of(volume_.getxattr("/block", "colour")), EOPNOTSUPP);
  EXPECT_EQ(volume_.getxattr("/nosuch", "user.colour").error().message,
            "/nosuch: No such file or directory");
}

TEST_F(VolumeTest, directories_list_every_name) {
  std::set<std::string> expected;
  for (const auto& [path, file] : host::sample_volume().files()) {
    if (path.starts_with("/data/")) expected.insert(path.substr(6));
  }
  const auto names = names_in(volume_, "/data");
  EXPECT_EQ(std::set<std::string>(names.begin(), names.end()), expected);
  EXPECT_EQ(names.size(), expected.size());
  EXPECT_EQ(names_in(volume_, "/").size(), 16u);
  EXPECT_EQ(names_in(volume_, "/link"), names);
}

TEST_F(VolumeTest, statfs_counts) {
  const FilesystemStat stat = volume_.statfs().value();
  EXPECT_EQ(stat.block_bytes, 4096u);
  EXPECT_EQ(stat.name_bytes_max, 255u);
  // Files, three directories with the root, three links, two special files.
  EXPECT_EQ(stat.files_used, host::sample_volume().files().size() + 3 + 3 + 2);
  EXPECT_LT(stat.blocks_free, stat.blocks);
}

TEST_F(VolumeTest, errors_name_the_path_and_the_reason) {
  const struct {
    Error error;
    int code;
    const char* message;
  } cases[] = {
      {volume_.open("/nosuch").error(), ENOENT, "/nosuch: No such file or directory"},
      {volume_.open("").error(), ENOENT, "\"\": No such file or directory"},
      {volume_.open("/odd/below").error(), ENOTDIR, "/odd/below: Not a directory"},
      {volume_.open("/loop").error(), ELOOP, "/loop: Too many levels of symbolic links"},
      {volume_.open("/dangling").error(), ENOENT, "/dangling: No such file or directory"},
      {volume_.open("/odd", O_WRONLY).error(), EROFS, "/odd: Read-only file system"},
      {volume_.open("/new", O_RDWR | O_CREAT).error(), EROFS, "/new: Read-only file system"},
      {volume_.open("/fifo").error(), ENXIO, "/fifo: No such device or address"},
      {volume_.opendir("/odd").error(), ENOTDIR, "/odd: Not a directory"},
      {volume_.readlink("/odd").error(), EINVAL, "/odd: Invalid argument"},
      {volume_.access("/odd", W_OK).error(), EROFS, "/odd: Read-only file system"},
      {volume_.stat("/" + std::string(256, 'n')).error(), ENAMETOOLONG, "File name too long"},
      {volume_.stat("/" + std::string(5000, '/')).error(), ENAMETOOLONG, "File name too long"},
      {volume_.stat(std::string("/a\0b", 4)).error(), ENOENT, "No such file or directory"},
      {volume_.fstat(12345).error(), EBADF, "descriptor 12345: Bad file descriptor"},
      {volume_.close(-1).error(), EBADF, "descriptor -1: Bad file descriptor"},
      {volume_.pread(volume_.opendir("/data").value(), nullptr, 1, 0).error(), EISDIR,
       "/data: Is a directory"},
      {volume_.readdir(volume_.open("/odd").value()).error(), ENOTDIR, "/odd: Not a directory"},
  };
  for (const auto& one : cases) {
    EXPECT_EQ(one.error.code, one.code) << one.error.message;
    EXPECT_NE(one.error.message.find(one.message), std::string::npos)
        << one.error.message << " instead of " << one.message;
  }
}

// A model, since only a controller that has one looks at faults.
TEST(VolumeErrors, a_read_that_the_ssd_fails_tells_what_the_ssd_said) {
  Volume volume = Volume::mount(host::sample_volume().path() + "?model=p5800x", kOnCpu).value();
  const int fd = volume.open("/odd").value();
  char byte = 0;
  ASSERT_EQ(volume.pread(fd, &byte, 1, 0).value(), 1u);

  ssd::VirtualController& controller =
      *(*volume.device()).volume.array.devices[0]->controller.controller;
  ssd::FaultTable::Entry entry{};
  ssd::FaultTable faults{1, 1, &entry};
  for (const auto& [status, words] :
       {std::pair{
            format::nvme::kUnrecoveredReadError,
            "/odd: Input/output error: Unrecovered Read Error (status 0x281) of a Read at LBA "},
        std::pair{format::nvme::kNamespaceNotReady,
                  "/odd: Resource temporarily unavailable: Namespace Not Ready (status 0x82) of "
                  "a Read at LBA "}}) {
    entry.rule.status = status;
    controller.faults = &faults;
    const auto failed = volume.pread(fd, &byte, 1, 4096);
    controller.faults = nullptr;
    ASSERT_FALSE(failed);
    EXPECT_EQ(failed.error().message.rfind(words, 0), 0u) << failed.error().message;
  }
  // What has nothing to do with it does not mention it.
  EXPECT_EQ(volume.open("/none").error().message, "/none: No such file or directory");
  EXPECT_TRUE(volume.pread(fd, &byte, 1, 4096));
}

TEST_F(VolumeTest, descriptors_are_closed_once_and_come_back) {
  const int fd = volume_.open("/odd").value();
  EXPECT_TRUE(volume_.close(fd));
  EXPECT_EQ(code_of(volume_.close(fd)), EBADF);
  EXPECT_EQ(volume_.open("/odd").value(), fd);
}

TEST_F(VolumeTest, a_volume_moves) {
  const int fd = volume_.open("/odd").value();
  Volume other = std::move(volume_);
  const VolumeHandle device = other.device();
  EXPECT_TRUE(device);
  EXPECT_EQ(other.fstat(fd).value().size_bytes, 10'007u);
  volume_ = std::move(other);
  EXPECT_EQ(volume_.device(), device);
  EXPECT_EQ(volume_.fstat(fd).value().size_bytes, 10'007u);
}

TEST_F(VolumeTest, buffers_are_registered_once) {
  std::vector<uint8_t> memory(8192);
  const auto first = volume_.register_buffer(memory.data(), 4096);
  ASSERT_TRUE(first);
  EXPECT_EQ(code_of(volume_.register_buffer(memory.data() + 4095, 4096)), EEXIST);
  const auto second = volume_.register_buffer(memory.data() + 4096, 4096);
  ASSERT_TRUE(second);
  EXPECT_NE(first->id, second->id);
  EXPECT_EQ(code_of(volume_.register_buffer(nullptr, 4096)), EINVAL);
  EXPECT_EQ(code_of(volume_.register_buffer(memory.data(), 0)), EINVAL);
  EXPECT_EQ(code_of(volume_.register_buffer(memory.data() + 1, ~uint64_t{0})), EINVAL);
  EXPECT_TRUE(volume_.unregister_buffer(*first));
  EXPECT_EQ(code_of(volume_.unregister_buffer(*first)), EINVAL);
  EXPECT_TRUE(volume_.register_buffer(memory.data(), 4096));
}

TEST_F(VolumeTest, many_threads_read_at_once) {
  constexpr int kThreads = 4;
  std::vector<std::thread> threads;
  std::vector<int> wrong(kThreads, 0);
  for (int t = 0; t < kThreads; ++t) {
    threads.emplace_back([&, t] {
      std::vector<uint8_t> buffer(40'000);
      for (uint32_t i = 0; i < SampleVolume::kDataFiles; ++i) {
        char path[32];
        std::snprintf(path, sizeof(path), "/data/file%04u",
                      (i + 70 * t) % SampleVolume::kDataFiles);
        const auto fd = volume_.open(path);
        const auto got = volume_.pread(fd.value_or(-1), buffer.data(), buffer.size(), 0);
        if (!got || *got != host::sample_volume().files().at(path).size_bytes ||
            !host::sample_volume().has(path, buffer.data(), *got, 0) || !volume_.close(*fd)) {
          ++wrong[t];
        }
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(wrong, std::vector<int>(kThreads, 0));
}

TEST(VolumePermissions, others_do_not_get_in) {
  MountOptions options = kOnCpu;
  options.uid = options.gid = 1000;
  Volume volume = Volume::mount(host::sample_volume().path(), options).value();
  EXPECT_EQ(code_of(volume.open("/locked/secret")), EACCES);
  EXPECT_EQ(code_of(volume.opendir("/locked")), EACCES);
  EXPECT_EQ(code_of(volume.access("/locked", X_OK)), EACCES);
  EXPECT_TRUE(volume.access("/odd", R_OK));
  EXPECT_EQ(code_of(volume.getxattr("/block", "trusted.mark")), ENODATA);
  EXPECT_EQ(volume.listxattr("/block").value(),
            (std::vector<std::string>{"user.colour", "user.long", "system.posix_acl_access"}));
  EXPECT_EQ(code_of(volume.open("/device")), EACCES);  // mode 0640, before it is found no file
  options.uid = 7;
  Volume owner = Volume::mount(host::sample_volume().path(), options).value();
  EXPECT_TRUE(owner.open("/locked/secret"));
  options.uid = 1000;
  options.groups = {1, 7};
  EXPECT_EQ(
      code_of(Volume::mount(host::sample_volume().path(), options).value().opendir("/locked")),
      EACCES);
  options.groups.assign(65, 1);
  EXPECT_EQ(code_of(Volume::mount(host::sample_volume().path(), options)), EINVAL);
}

TEST(VolumeOptions, the_spec_wins_over_the_options) {
  MountOptions options = kOnCpu;
  options.queues = 3;
  options.queue_depth = 7;
  const auto at = [&](const std::string& suffix) {
    return Volume::mount(host::sample_volume().path() + suffix, options).value().info();
  };
  EXPECT_EQ(at("").queues, 3u);
  EXPECT_EQ(at("").queue_depth, 7u);
  EXPECT_EQ(at("?queues=1&depth=2").queues, 1u);
  EXPECT_EQ(at("?queues=1&depth=2").queue_depth, 2u);
  EXPECT_EQ(at("?lba=4096").lba_bytes, 4096u);
  EXPECT_EQ(at("?mdts=8K").transfer_bytes_max, 8192u);
}

TEST(VolumeOptions, queues_that_no_ssd_has_are_refused) {
  const auto words = [](uint32_t queues, uint32_t depth) {
    MountOptions options = kOnCpu;
    options.queues = queues;
    options.queue_depth = depth;
    const auto volume = Volume::mount(host::sample_volume().path(), options);
    const std::string begin = host::sample_volume().path() + ": ";
    return volume ? "" : volume.error().message.substr(begin.size());
  };
  EXPECT_EQ(words(128, 2), "");
  EXPECT_EQ(words(129, 0), "more than 128 queues");
  EXPECT_EQ(words(~0u, 0), "more than 128 queues");
  for (const uint32_t depth : {1u, 65536u, ~0u}) {
    EXPECT_EQ(words(0, depth), "a queue has 2 to 65535 entries");
  }
}

TEST(VolumeOptions, odd_geometries_read_the_same) {
  for (const char* suffix : {"?queues=1&depth=2", "?lba=4096&mdts=4K", "?cache=256K&queues=2",
                             "?model=p5800x,iops=0&depth=3", "?model=units=4,unit_ns=2000"}) {
    Volume volume = Volume::mount(host::sample_volume().path() + suffix, kOnCpu).value();
    const int fd = volume.open("/large").value();
    std::vector<uint8_t> buffer(1 << 20);
    const auto got = volume.pread(fd, buffer.data(), buffer.size(), 12'345);
    ASSERT_TRUE(got) << suffix << ": " << got.error().message;
    EXPECT_EQ(*got, buffer.size());
    EXPECT_TRUE(host::sample_volume().has("/large", buffer.data(), *got, 12'345)) << suffix;
    EXPECT_EQ(names_in(volume, "/data").size(), SampleVolume::kDataFiles) << suffix;
  }
}

// --- What cannot be mounted. ---------------------------------------------------------------------

class BadImage : public ::testing::Test {
 protected:
  /// A copy of the sample that a test may spoil.
  void copy_sample() {
    std::ifstream from(host::sample_volume().path(), std::ios::binary);
    std::ofstream(path_.path(), std::ios::binary) << from.rdbuf();
  }
  void overwrite(uint64_t offset, const std::string& bytes) {
    const int fd = ::open(path_.path().c_str(), O_WRONLY);
    ASSERT_EQ(::pwrite(fd, bytes.data(), bytes.size(), static_cast<off_t>(offset)),
              static_cast<ssize_t>(bytes.size()));
    ::close(fd);
  }
  Error mount_error(const std::string& suffix = "") {
    const auto volume = Volume::mount(path_.path() + suffix, kOnCpu);
    if (volume) {
      ADD_FAILURE() << "it was mounted";
      return {};
    }
    EXPECT_TRUE(volume.error().message.starts_with(path_.path() + suffix + ": "))
        << volume.error().message;
    return volume.error();
  }
  /// A copy of the sample whose /odd has an inode that says it is another one.
  void copy_sample_with_odd_damaged() {
    copy_sample();
    uint64_t node = 0;
    {
      Volume whole = Volume::mount(path_.path(), kOnCpu).value();
      // The inode of /odd: where a node says that it is that of its inode number.
      const uint64_t ino = whole.stat("/odd").value().ino;
      std::ifstream image(path_.path(), std::ios::binary);
      std::string block(4096, '\0');
      for (uint64_t at = 0; image.read(block.data(), 4096); at += 4096) {
        uint32_t footer[2];
        std::memcpy(footer, block.data() + 4096 - 24, sizeof(footer));
        if (footer[0] == ino && footer[1] == ino) node = at;
      }
    }
    ASSERT_NE(node, 0u);
    overwrite(node + 4096 - 24, std::string("\x01\x02\x03\x04", 4));
  }
  static bool says(const Error& error, const std::string& words) {
    if (error.message.find(words) != std::string::npos) return true;
    ADD_FAILURE() << "'" << error.message << "' does not say '" << words << "'";
    return false;
  }

  image::TemporaryPath path_;
};

TEST_F(BadImage, what_is_no_file) {
  const auto code = [](const std::string& spec) { return code_of(Volume::mount(spec, kOnCpu)); };
  EXPECT_EQ(code("/no/such/image"), ENOENT);
  EXPECT_EQ(code("/tmp"), EISDIR);
  EXPECT_EQ(code("/dev/null"), EINVAL);
  EXPECT_EQ(code(path_.path() + "/below"), ENOTDIR);
  EXPECT_EQ(code(""), EINVAL);
  if (::geteuid() != 0) {
    ::chmod(path_.path().c_str(), 0);
    EXPECT_EQ(code(path_.path()), EACCES);
  }
}

TEST_F(BadImage, what_is_no_volume) {
  EXPECT_TRUE(says(mount_error(), "not an F2FS volume (0 bytes)"));
  std::ofstream(path_.path()) << "a text file of some bytes\n";
  EXPECT_TRUE(says(mount_error(), "not an F2FS volume (26 bytes)"));
  std::ofstream(path_.path()) << std::string(100'000, 'x');
  EXPECT_TRUE(says(mount_error(), "not an F2FS volume (no superblock)"));
  ASSERT_EQ(::truncate(path_.path().c_str(), 64 << 20), 0);
  EXPECT_EQ(mount_error().code, EINVAL);
}

TEST_F(BadImage, a_volume_that_was_cut_off) {
  copy_sample();
  ASSERT_EQ(::truncate(path_.path().c_str(), 32 << 20), 0);
  EXPECT_TRUE(says(mount_error(), "cut off: the volume needs"));
  ASSERT_EQ(::truncate(path_.path().c_str(), 9000), 0);
  EXPECT_TRUE(says(mount_error(), "cut off"));
}

TEST_F(BadImage, either_superblock_will_do) {
  copy_sample();
  overwrite(1024, std::string(3072, '\0'));
  EXPECT_TRUE(Volume::mount(path_.path(), kOnCpu));
  overwrite(4096 + 1024, std::string(3072, '\x5a'));
  EXPECT_TRUE(says(mount_error(), "no superblock"));
}

TEST_F(BadImage, a_superblock_that_makes_no_sense) {
  copy_sample();
  const uint64_t field = offsetof(format::Superblock, segment_count_main);
  for (const uint64_t copy : {0, 4096}) {
    overwrite(copy + 1024 + field, std::string("\xff\xff\xff\x7f", 4));
  }
  EXPECT_TRUE(says(mount_error(), "segment_count_main makes no sense"));
}

// As kernels with larger pages make them.
TEST_F(BadImage, blocks_of_another_size_are_not_supported_rather_than_damage) {
  copy_sample();
  const uint64_t field = offsetof(format::Superblock, log_blocksize);
  for (const uint64_t copy : {0, 4096})
    overwrite(copy + 1024 + field, std::string("\x0e\0\0\0", 4));
  const Error error = mount_error();
  EXPECT_EQ(error.code, EOPNOTSUPP);
  EXPECT_TRUE(says(error, "the volume has blocks of 16 KiB, which are not supported"));
}

TEST_F(BadImage, features_that_are_not_supported_are_named) {
  copy_sample();
  const uint64_t field = offsetof(format::Superblock, feature);
  for (const uint64_t copy : {0, 4096}) {
    overwrite(copy + 1024 + field, std::string("\x02\xc0\x01\x40", 4));
  }
  const Error error = mount_error();
  EXPECT_EQ(error.code, EOPNOTSUPP);
  EXPECT_TRUE(says(error, "zoned, ro, device_alias, packed_ssa, 0x40000000"));
}

TEST_F(BadImage, no_checkpoint) {
  copy_sample();
  for (const uint64_t block : {512, 1024}) overwrite(block * 4096, std::string(4096, '\x11'));
  const Error error = mount_error();
  EXPECT_EQ(error.code, EUCLEAN);
  EXPECT_TRUE(says(error, "neither checkpoint is valid"));
}

TEST_F(BadImage, damaged_nodes_are_named) {
  copy_sample();
  // Every NAT block: the first copies of the NAT begin behind those of the SIT.
  const vfs::Filesystem* fs = nullptr;
  uint64_t nat = 0;
  {
    Volume whole = Volume::mount(path_.path(), kOnCpu).value();
    fs = &*whole.device();
    nat = uint64_t{fs->volume.geometry.nat_blkaddr} * 4096;
  }
  overwrite(nat, std::string(4096, '\x77'));
  const Error error = mount_error();
  EXPECT_EQ(error.code, EUCLEAN);
  EXPECT_TRUE(says(error, "root directory (inode 3)"));
  EXPECT_TRUE(says(error, "NAT entry of node 3"));
}

TEST_F(BadImage, damage_met_later_is_told_with_the_call) {
  copy_sample_with_odd_damaged();
  Volume volume = Volume::mount(path_.path(), kOnCpu).value();
  const Error error = volume.open("/odd").error();
  EXPECT_EQ(error.code, EUCLEAN);
  EXPECT_TRUE(says(error, "/odd: damaged: footer of node"));
  EXPECT_TRUE(volume.open("/block"));
  EXPECT_TRUE(volume.warnings().empty());  // it was reported
}

TEST_F(BadImage, damage_may_be_told_while_others_meet_it) {
  copy_sample_with_odd_damaged();
  Volume volume = Volume::mount(path_.path(), kOnCpu).value();
  {
    std::vector<std::jthread> threads;
    for (int i = 0; i < 3; ++i) {
      threads.emplace_back([&] {
        for (int round = 0; round < 50; ++round) EXPECT_EQ(code_of(volume.open("/odd")), EUCLEAN);
      });
    }
    for (int round = 0; round < 50; ++round) {
      for (const std::string& warning : volume.warnings()) {
        EXPECT_NE(warning.find("damaged: footer of node"), std::string::npos) << warning;
      }
    }
  }
  EXPECT_LE(volume.warnings().size(), 1u) << "the same damage twice";
  EXPECT_TRUE(says(volume.open("/odd").error(), "/odd: damaged: footer of node"));
}

TEST_F(BadImage, an_unclean_volume_mounts_with_a_warning) {
  copy_sample();
  // Without the flag of an unmount, under a checksum that is right.
  const uint64_t block = uint64_t{512} * 4096;
  std::string head(4096, '\0');
  {
    std::ifstream image(path_.path(), std::ios::binary);
    image.seekg(static_cast<std::streamoff>(block));
    image.read(head.data(), 4096);
  }
  auto& checkpoint = *reinterpret_cast<format::Checkpoint*>(head.data());
  checkpoint.ckpt_flags = checkpoint.ckpt_flags & ~uint32_t{format::kCheckpointUmount};
  auto* const bytes = reinterpret_cast<uint8_t*>(head.data());
  const uint32_t at = checkpoint.checksum_offset;
  format::store_u32(bytes + at, format::checkpoint_checksum(bytes, at));
  overwrite(block, head);
  overwrite(block + (uint64_t{checkpoint.cp_pack_total_block_count} - 1) * 4096, head);
  Volume volume = Volume::mount(path_.path(), kOnCpu).value();
  EXPECT_FALSE(volume.info().clean);
  const auto warnings = volume.warnings();
  ASSERT_EQ(warnings.size(), 1u);
  EXPECT_NE(warnings[0].find("not cleanly unmounted"), std::string::npos);
  EXPECT_TRUE(volume.warnings().empty());
}

TEST_F(BadImage, requests_that_cannot_be_met) {
  const std::string image = host::sample_volume().path();
  EXPECT_EQ(code_of(Volume::mount(image + "+" + image, kOnCpu)), EINVAL);
  EXPECT_EQ(code_of(Volume::mount(image + "?media=hbm", kOnCpu)), EIO);
  EXPECT_EQ(code_of(Volume::mount(image + "?queues=9999", kOnCpu)), EINVAL);
  EXPECT_EQ(code_of(Volume::mount("ram:1M", kOnCpu)), EINVAL);
  EXPECT_EQ(code_of(Volume::mount(image, {.backend = "abacus"})), ENODEV);
}

TEST(Sload, a_tree_that_sload_put_there_reads_back) {
  GOFS_NEED_TOOL("mkfs.f2fs");
  GOFS_NEED_TOOL("sload.f2fs");
  const image::TemporaryPath path;
  char folder[] = "/tmp/gofs-sload-XXXXXX";
  ASSERT_NE(::mkdtemp(folder), nullptr);
  const std::string tree = folder;
  std::string content;
  for (int i = 0; i < 200'000; ++i) content += std::to_string(i);
  ASSERT_EQ(::mkdir((tree + "/sub").c_str(), 0750), 0);
  std::ofstream(tree + "/sub/long") << content;
  std::ofstream(tree + "/short") << "short";
  ASSERT_EQ(::symlink("sub/long", (tree + "/to_long").c_str()), 0);
  const auto made = image::run_tool("truncate -s 128M " + path.path() + " && mkfs.f2fs -f -q " +
                                    path.path() + " && sload.f2fs -f " + tree + " " + path.path());
  EXPECT_EQ(made.exit_code, 0) << made.output;
  image::run_tool("rm -r " + tree);

  Volume volume = Volume::mount(path.path(), kOnCpu).value();
  std::string got(content.size() + 10, '\0');
  for (const char* name : {"/sub/long", "/to_long"}) {
    const int fd = volume.open(name).value();
    ASSERT_EQ(volume.pread(fd, got.data(), got.size(), 0).value(), content.size());
    EXPECT_EQ(got.substr(0, content.size()), content);
  }
  EXPECT_EQ(volume.stat("/sub").value().mode & 07777, 0750u);
  EXPECT_EQ(volume.stat("/short").value().size_bytes, 5u);
}

}  // namespace
}  // namespace gofs
