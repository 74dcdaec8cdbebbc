// SPDX-License-Identifier: Apache-2.0
//
// Volumes on files behind a controller of host threads: what is read, what info() says, stripes,
// and what becomes of calls when the file goes away beneath. volume_writing_test.cpp has changes.
#include <gtest/gtest.h>
#include <unistd.h>

#include <cerrno>
#include <string>
#include <vector>

#include "gofs/command_times.hpp"
#include "gofs/volume.hpp"
#include "host/image/fsck_for_test.h"
#include "host/striped_for_test.h"
#include "host/volume_for_test.h"

namespace gofs::host {
namespace {

const MountOptions kReading{.backend = "cpu"};
const MountOptions kWriting{.backend = "cpu", .read_only = false};

template <typename T>
int code_of(const Expected<T>& result) {
  return result ? 0 : result.error().code;
}

void expect_sample(Volume& volume) {
  const SampleVolume& sample = sample_volume();
  for (const auto& [path, file] : sample.files()) {
    if (path == "/holes") continue;
    const int fd = volume.open(path).value();
    std::vector<uint8_t> bytes(file.size_bytes + 1);
    ASSERT_EQ(volume.pread(fd, bytes.data(), bytes.size(), 0).value(), file.size_bytes) << path;
    EXPECT_TRUE(sample.has(path, bytes.data(), file.size_bytes, 0));
    EXPECT_TRUE(volume.close(fd));
  }
}

TEST(HostedVolume, files_read_as_they_were_written) {
  auto volume = Volume::mount(sample_volume().path() + "?media=hosted", kReading);
  ASSERT_TRUE(volume) << volume.error().message;
  expect_sample(*volume);
  EXPECT_EQ(code_of(volume->mkdir("/no", 0755)), EROFS);
}

TEST(HostedVolume, info_says_what_carries_commands_out) {
  auto volume = Volume::mount(sample_volume().path() + "?threads=3&poll=always&queues=5", kReading);
  ASSERT_TRUE(volume) << volume.error().message;
  const VolumeInfo info = volume->info();
  EXPECT_TRUE(info.ssd.starts_with("hosted NVMe SSD, ")) << info.ssd;
  EXPECT_NE(info.ssd.find(", 3 threads"), std::string::npos) << info.ssd;
  EXPECT_EQ(info.queues, 5u);
  EXPECT_EQ(info.mode, "adaptive") << "small writes go in place, as they do on Linux";
}

uint64_t count_of(const TimedCommands& timed) {
  uint64_t sum = 0;
  for (const uint64_t count : timed.counts) sum += count;
  return sum;
}

void expect_all_timed(Volume& volume, uint32_t ssds) {
  const auto commands_in = [](const Statistics& seen) {
    uint64_t sum = 0;
    for (const OutcomeCounts& kind : seen.commands) sum += kind.succeeded + kind.failed;
    return sum;
  };
  Statistics seen = volume.statistics().value();
  CommandTimes times{};
  // What is done in idle time may come in between.
  for (int look = 0; look < 100; ++look) {
    const uint64_t before = commands_in(seen);
    times = command_times(volume).value();
    seen = volume.statistics().value();
    if (commands_in(seen) == before) break;
  }
  EXPECT_EQ(times.ssds, ssds);
  EXPECT_EQ(times.under_way, 0u);
  for (uint32_t kind = 0; kind < kCommandKinds; ++kind) {
    const OutcomeCounts& ended = seen.commands[kind];
    EXPECT_EQ(count_of(times.kinds[kind]), ended.succeeded + ended.failed)
        << kCommandKindNames[kind];
  }
}

TEST(HostedVolume, each_of_its_commands_is_timed) {
  const image::TemporaryPath copy;
  ASSERT_EQ(image::run_tool("cp " + sample_volume().path() + " " + copy.path()).exit_code, 0);
  auto volume = Volume::mount(copy.path() + "?media=hosted&threads=2", kWriting);
  ASSERT_TRUE(volume) << volume.error().message;
  expect_all_timed(*volume, 1);
  for (int i = 0; i < 5; ++i) {
    const int fd =
        volume->open("/new" + std::to_string(i), kOpenWriteOnly | kOpenCreate, 0644).value();
    const std::string bytes(10'000, 'x');
    EXPECT_EQ(volume->pwrite(fd, bytes.data(), bytes.size(), 0).value(), bytes.size());
    EXPECT_TRUE(volume->fsync(fd));
    EXPECT_TRUE(volume->close(fd));
  }
  expect_all_timed(*volume, 1);
  EXPECT_GT(count_of(command_times(*volume)->kinds[static_cast<uint32_t>(CommandKind::kFlush)]),
            0u);
  ASSERT_TRUE(volume->unmount());
  EXPECT_EQ(code_of(command_times(*volume)), ENODEV);
}

TEST(HostedVolume, several_ssds_are_timed_together_and_virtual_ones_not_at_all) {
  const Striped striped(2, 16, true);
  auto volume = Volume::mount(striped.spec({0, 1}, "?media=hosted"), kReading);
  ASSERT_TRUE(volume) << volume.error().message;
  expect_all_timed(*volume, 2);
  auto plain = Volume::mount(sample_volume().path() + "?media=memory", kReading);
  ASSERT_TRUE(plain) << plain.error().message;
  const CommandTimes none = command_times(*plain).value();
  EXPECT_EQ(none.ssds, 0u);
  EXPECT_EQ(none.busy_ns, 0u);
  for (const TimedCommands& kind : none.kinds) EXPECT_EQ(count_of(kind), 0u);
}

TEST(HostedVolume, several_files_are_one_volume) {
  for (const uint32_t disks : {2u, 5u}) {
    const Striped striped(disks, 16, true);
    std::vector<uint32_t> order;
    for (uint32_t disk = 0; disk < disks; ++disk) order.push_back(disk);
    auto volume = Volume::mount(striped.spec(order, "?media=hosted"), kReading);
    ASSERT_TRUE(volume) << volume.error().message;
    expect_sample(*volume);
  }
}

TEST(HostedVolume, a_file_that_is_not_there_or_in_use_is_named) {
  const image::TemporaryPath copy;
  const auto missing = Volume::mount(copy.path() + ".not?media=hosted", kReading);
  ASSERT_FALSE(missing);
  EXPECT_EQ(missing.error().code, ENOENT);
  EXPECT_NE(missing.error().message.find(copy.path() + ".not: "), std::string::npos);
  ASSERT_EQ(image::run_tool("cp " + sample_volume().path() + " " + copy.path()).exit_code, 0);
  const auto first = Volume::mount(copy.path() + "?media=hosted", kWriting);
  ASSERT_TRUE(first) << first.error().message;
  const auto second = Volume::mount(copy.path() + "?media=hosted", kWriting);
  ASSERT_FALSE(second);
  EXPECT_EQ(second.error().code, EBUSY) << second.error().message;
}

TEST(HostedVolume, a_file_that_is_cut_beneath_it_gives_errors_and_is_not_made_longer) {
  const image::TemporaryPath copy;
  ASSERT_EQ(image::run_tool("cp " + sample_volume().path() + " " + copy.path()).exit_code, 0);
  auto volume = Volume::mount(copy.path() + "?media=hosted", kWriting);
  ASSERT_TRUE(volume) << volume.error().message;
  const int fd = volume->open("/new", kOpenReadWrite | kOpenCreate, 0644).value();
  const std::vector<char> bytes(1 << 16, 'n');
  ASSERT_EQ(volume->pwrite(fd, bytes.data(), bytes.size(), 0).value(), bytes.size());
  ASSERT_EQ(::truncate(copy.path().c_str(), 65536), 0);
  EXPECT_NE(code_of(volume->fsync(fd)), 0);
  EXPECT_NE(code_of(volume->pwrite(fd, bytes.data(), bytes.size(), 0)), 0);
  const auto ended = volume->unmount();
  ASSERT_FALSE(ended);
  EXPECT_NE(ended.error().message.find("shorter than it was"), std::string::npos)
      << ended.error().message;
}

}  // namespace
}  // namespace gofs::host
