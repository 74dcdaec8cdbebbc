// SPDX-License-Identifier: Apache-2.0
//
// The channels of kernels, whose warps are played by threads of this process: the calls, data in
// pieces, more calls than slots, what host and kernels share, and the end of either side.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/socket.h>

#include <atomic>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <string>
#include <thread>
#include <vector>

#include "host/serve/hostile_client_for_test.h"
#include "host/serve/kernel_channel_for_test.h"

namespace gofs::host {
namespace {

TEST_P(KernelChannelTest, kernels_make_calls) {
  Program program(path_);
  KernelCall mkdir = about(Verb::kMkdir, "/d");
  mkdir.request.mode = 0755;
  EXPECT_EQ(ask(program, mkdir), 0);
  EXPECT_EQ(ask(program, mkdir), -EEXIST);
  EXPECT_EQ(open(program, "/no/such", 0), -ENOENT);
  EXPECT_EQ(open(program, std::string(kPathBytesMax - 1, 'x'), 0), -ENAMETOOLONG);
  EXPECT_EQ(open(program, std::string(2 * kPathBytesMax, 'x'), 0), -ENAMETOOLONG);
  const int fd = open(program, "/d/file");
  EXPECT_GE(fd, Program::kBase);

  const std::string from = "/d/file";
  const std::string to = "/d/renamed";
  KernelCall rename = about(Verb::kRename, to.c_str());
  rename.other = from.c_str();
  EXPECT_EQ(ask(program, rename), 0);
  Stat stat{};
  KernelCall look = about(Verb::kStat, to.c_str());
  look.output = &stat;
  look.request.bytes = sizeof(stat);
  EXPECT_EQ(ask(program, look), 0);
  EXPECT_EQ(stat.mode & 07777, 0600u);
  KernelCall resize = about(Verb::kFtruncate, fd);
  resize.request.bytes = 10'000'000'000;  // no size of a buffer
  EXPECT_EQ(ask(program, resize), 0);
  EXPECT_EQ(ask(program, look), 0);
  EXPECT_EQ(stat.size_bytes, 10'000'000'000u);

  const char* const name = "user.colour";
  KernelCall set = about(Verb::kFsetxattr, fd);
  set.name = name;
  set.input = "green";
  set.request.bytes = 5;
  EXPECT_EQ(ask(program, set), 0);
  char value[16] = {};
  KernelCall get = about(Verb::kGetxattr, to.c_str());
  get.name = name;
  EXPECT_EQ(ask(program, get), 5) << "without a buffer: how many there are";
  get.output = value;
  get.request.bytes = sizeof(value);
  EXPECT_EQ(ask(program, get), 5);
  EXPECT_STREQ(value, "green");

  EXPECT_EQ(ask(program, about(Verb::kFsync, fd)), 0);
  EXPECT_EQ(ask(program, about(Verb::kClose, fd)), 0);
  EXPECT_EQ(ask(program, about(Verb::kClose, fd)), -EBADF);
  EXPECT_EQ(ask(program, about(Verb::kClose, 5)), -ESTALE) << "of a server before";
  EXPECT_EQ(ask(program, about(Verb::kClose, -1)), -EBADF);
}

TEST_P(KernelChannelTest, data_goes_in_pieces_and_every_warp_has_its_share) {
  Program program(path_);
  const int fd = open(program, "/file");
  std::string bytes = bytes_of(1'000'003, 1);
  const serve::MovedRange whole{Verb::kPwrite, fd, data_of(bytes), bytes.size(), 0};
  EXPECT_EQ(move(program, whole, 3), static_cast<int64_t>(bytes.size()));
  std::string found(bytes.size() + 100'000, '\0');
  const serve::MovedRange more{Verb::kPread, fd, data_of(found), found.size(), 0};
  EXPECT_EQ(move(program, more, 5), static_cast<int64_t>(bytes.size())) << "the file ends";
  EXPECT_EQ(found.compare(0, bytes.size(), bytes), 0);
  std::string part(70'000, '\0');
  EXPECT_EQ(move(program, {Verb::kPread, fd, data_of(part), part.size(), 930'000}, 1), 70'000);
  EXPECT_EQ(part, bytes.substr(930'000, 70'000));
  EXPECT_EQ(move(program, {Verb::kPread, fd, data_of(part), 1, 2'000'000}, 2), 0);
  EXPECT_EQ(move(program, {Verb::kPread, fd, data_of(part), 0, 0}, 2), 0);
  EXPECT_EQ(move(program, {Verb::kPread, fd + 1, data_of(part), 0, 0}, 2), -EBADF);
  EXPECT_EQ(move(program, {Verb::kPread, fd + 1, data_of(part), 70'000, 0}, 2), -EBADF);

  std::atomic<int64_t> wrote = 0;
  launch(1, [&](const simt::Warp& warp, uint32_t) {
    const int64_t result = serve::write_on(warp, program.channel(), fd, bytes.data(), 200'000);
    if (warp.thread_rank() == 0) wrote = result;
  });
  EXPECT_EQ(wrote, 200'000);
  KernelCall where = about(Verb::kLseek, fd);
  where.request.flags = SEEK_CUR;
  EXPECT_EQ(ask(program, where), 200'000);
}

TEST_P(KernelChannelTest, what_a_group_appends_is_one_range) {
  Program program(path_);
  const int fd = open(program, "/log", O_WRONLY | O_CREAT | O_APPEND);
  // A record, and what is longer than any: two warps share both, so that a half could come first.
  constexpr uint64_t kSizes[] = {64 * 1024, 200'003};
  std::string wanted;
  for (uint32_t turn = 0; turn < 20; ++turn) {
    std::string bytes = bytes_of(kSizes[turn % 2], turn);
    EXPECT_EQ(move(program, {Verb::kPwrite, fd, data_of(bytes), bytes.size(), 0}, 2),
              static_cast<int64_t>(bytes.size()));
    wanted += bytes;
  }
  const int reader = open(program, "/log", O_RDONLY);
  std::string found(wanted.size() + 1, '\0');
  EXPECT_EQ(move(program, {Verb::kPread, reader, data_of(found), found.size(), 0}, 2),
            static_cast<int64_t>(wanted.size()));
  found.resize(wanted.size());
  EXPECT_TRUE(found == wanted);
}

TEST_P(KernelChannelTest, records_of_several_groups_are_whole) {
  Program program(path_);
  const int fd = open(program, "/log", O_RDWR | O_CREAT | O_APPEND);
  constexpr uint32_t kGroups = 3;
  constexpr uint64_t kRecord = 64 * 1024;
  std::vector<std::thread> groups;
  for (uint32_t group = 0; group < kGroups; ++group) {
    groups.emplace_back([&, group] {
      std::string record(kRecord, static_cast<char>('a' + group));
      for (int i = 0; i < 4; ++i) {
        EXPECT_EQ(move(program, {Verb::kPwrite, fd, data_of(record), record.size(), 0}, 2),
                  static_cast<int64_t>(kRecord));
      }
    });
  }
  for (std::thread& group : groups) group.join();
  std::string log(4 * kGroups * kRecord, '\0');
  EXPECT_EQ(move(program, {Verb::kPread, fd, data_of(log), log.size(), 0}, 1),
            static_cast<int64_t>(log.size()));
  for (uint64_t at = 0; at < log.size(); at += kRecord) {
    EXPECT_TRUE(log.compare(at, kRecord, std::string(kRecord, log[at])) == 0) << at;
  }
}

TEST_P(KernelChannelTest, parts_of_a_vector_are_one_write) {
  Program program(path_);
  const int fd = open(program, "/log", O_RDWR | O_CREAT | O_APPEND);
  constexpr uint32_t kWriters = 3;
  constexpr uint32_t kRecords = 30;
  const std::string record = bytes_of(5000, 3);
  launch(kWriters, [&](const simt::Warp& warp, uint32_t) {
    auto* const bytes = const_cast<char*>(record.data());
    const IoVector parts[] = {{bytes, 1}, {nullptr, 0}, {bytes + 1, 2999}, {bytes + 3000, 2000}};
    for (uint32_t i = 0; i < kRecords; ++i) {
      const Verb verb = i % 2 == 0 ? Verb::kWrite : Verb::kPwrite;
      EXPECT_EQ(serve::write_parts(warp, program.channel(), {verb, fd, parts, 4, 5000, 0}), 5000);
    }
  });
  std::string wanted;
  for (uint32_t i = 0; i < kWriters * kRecords; ++i) wanted += record;
  std::string found(wanted.size() + 1, '\0');
  EXPECT_EQ(move(program, {Verb::kPread, fd, data_of(found), found.size(), 0}, 2),
            static_cast<int64_t>(wanted.size()));
  found.resize(wanted.size());
  EXPECT_TRUE(found == wanted) << "others' parts are between";
  EXPECT_TRUE(serve::is_one_write(program.channel(), 2, 64 * 1024));
  EXPECT_FALSE(serve::is_one_write(program.channel(), 2, 64 * 1024 + 1));
}

TEST_P(KernelChannelTest, more_warps_than_slots_wait_for_their_turn) {
  Program program(path_);
  constexpr uint32_t kWarps = 12;
  constexpr uint32_t kCalls = 40;
  std::atomic<uint32_t> wrong = 0;
  launch(kWarps, [&](const simt::Warp& warp, uint32_t index) {
    const std::string path = "/file-" + std::to_string(index);
    KernelCall call = about(Verb::kOpen, path.c_str());
    call.request.flags = O_RDWR | O_CREAT;
    call.request.mode = 0600;
    const auto fd = static_cast<int>(serve::ask(warp, program.channel(), call));
    for (uint32_t i = 0; i < kCalls; ++i) {
      const uint64_t word = uint64_t{index} << 32 | i;
      KernelCall put = about(Verb::kPwrite, fd);
      put.input = &word;
      put.request.bytes = sizeof(word);
      put.request.offset = i * 8;
      bool right = serve::ask(warp, program.channel(), put) == 8;
      // The lanes of a warp share what it reads; here that is where the first one has it.
      uint64_t back = 0;
      KernelCall get = about(Verb::kPread, fd);
      get.output = warp.thread_rank() == 0 ? &back : nullptr;
      get.request.bytes = sizeof(back);
      get.request.offset = i * 8;
      right = serve::ask(warp, program.channel(), get) == 8 && right;
      if (warp.thread_rank() == 0 && lanes() == 1) right = right && back == word;
      if (!right) ++wrong;
    }
  });
  EXPECT_EQ(wrong, 0u);
}

TEST_P(KernelChannelTest, what_is_begun_is_ended_later) {
  Program program(path_);
  const int fd = open(program, "/file");
  std::string bytes = bytes_of(3 * 4096, 2);
  std::string found(bytes.size(), '\0');
  launch(1, [&](const simt::Warp& warp, uint32_t) {
    serve::RingPlace places[3];
    for (int i = 0; i < 3; ++i) {
      KernelCall put = about(Verb::kPwrite, fd);
      put.input = bytes.data() + i * 4096;
      put.request.bytes = 4096;
      put.request.offset = i * 4096;
      EXPECT_EQ(serve::begin_call(warp, program.channel(), put, true, places[i]), 0);
    }
    for (const serve::RingPlace& place : places) {
      EXPECT_EQ(serve::end_call(warp, program.channel(), place), 4096);
    }
    KernelCall get = about(Verb::kPread, fd);
    get.output = found.data();
    get.request.bytes = found.size();
    serve::RingPlace place{};
    EXPECT_EQ(serve::begin_call(warp, program.channel(), get, true, place), 0);
    while (!serve::has_ended(warp, program.channel(), place)) {
    }
    EXPECT_EQ(serve::end_call(warp, program.channel(), place), static_cast<int64_t>(found.size()));
  });
  EXPECT_EQ(found, bytes);
}

TEST_P(KernelChannelTest, calls_for_later_leave_slots_to_the_others) {
  Program program(path_);
  const uint32_t most = serve::detail::slots_for_later(program.channel().ring.depth);
  launch(1, [&](const simt::Warp& warp, uint32_t) {
    std::vector<serve::RingPlace> places(most + 1);
    for (uint32_t i = 0; i <= most; ++i) {
      KernelCall look = about(Verb::kAccess, "/");
      EXPECT_EQ(serve::begin_call(warp, program.channel(), look, true, places[i]),
                i < most ? 0 : -EAGAIN);
    }
    KernelCall other = about(Verb::kAccess, "/");
    EXPECT_EQ(serve::ask(warp, program.channel(), other), 0);
    EXPECT_EQ(serve::end_call(warp, program.channel(), places[0]), 0);
    KernelCall look = about(Verb::kAccess, "/");
    EXPECT_EQ(serve::begin_call(warp, program.channel(), look, true, places[0]), 0);
    for (uint32_t i = 0; i < most; ++i) {
      EXPECT_EQ(serve::end_call(warp, program.channel(), places[i]), 0);
    }
  });
}

TEST_P(KernelChannelTest, host_and_kernels_are_one_client) {
  Program program(path_);
  const std::string path = "/file";
  const int64_t fd =
      program.host
          .call({.verb = Verb::kOpen, .path = &path, .flags = O_RDWR | O_CREAT, .mode = 0600})
          .result;
  KernelCall put = about(Verb::kPwrite, Program::kBase + static_cast<int>(fd));
  put.input = "shared";
  put.request.bytes = 6;
  EXPECT_EQ(ask(program, put), 6);
  char found[6] = {};
  EXPECT_EQ(program.host
                .call({.verb = Verb::kPread,
                       .descriptor = static_cast<int>(fd),
                       .buffer = found,
                       .bytes = 6})
                .result,
            6);
  EXPECT_EQ(std::memcmp(found, "shared", 6), 0);
  Program stranger(path_);
  EXPECT_EQ(ask(stranger, about(Verb::kClose, Program::kBase + static_cast<int>(fd))), -EBADF);
}

TEST_P(KernelChannelTest, who_could_not_use_its_channel_gets_another_in_its_place) {
  Program program(path_);
  const int fd = open(program, "/file");
  for (int i = 0; i < 10; ++i) (void)program.line.ask({Ask::kForKernels, {}});
  EXPECT_EQ(channels_->open_channels(), 2u) << "one of the host, and one of its kernels";
  program.end.emplace(std::make_unique<BackendForTest>(), program.line, Program::kBase);
  EXPECT_EQ(channels_->open_channels(), 2u);
  EXPECT_EQ(ask(program, about(Verb::kClose, fd)), 0) << "the client is the same";
}

/// Turns of a grid keep their place while kernels are served.
class GridChannelTest : public KernelChannelTest {};

TEST_P(GridChannelTest, while_kernels_are_served_rings_are_given_to_the_next_of_the_same_user) {
  const auto& backend = dynamic_cast<const BackendForTest&>(volume_->backend());
  const auto are_open = [this](uint32_t count) {
    return comes_true([&] { return channels_->open_channels() == count; });
  };
  // The backend reaches each ring that there is, and the one that is ready for who comes next.
  const auto rings = [&] {
    channels_->prepare_ring();
    return backend.reached() - 1;
  };
  const std::string root = "/";
  EXPECT_EQ(rings(), 0);
  std::optional<Program> program(path_);
  EXPECT_EQ(rings(), 1);
  // A turn that has begun before a client was gone may look at its ring until it ends.
  const auto are_over = [&] {
    if (!are_open(2)) return false;
    const uint64_t before = channels_->progress();
    return comes_true([&] { return channels_->progress() >= before + 2; });
  };
  for (int i = 0; i < 3; ++i) {
    ASSERT_TRUE(are_over());
    ChannelClient other(attach_at(path_));
    EXPECT_EQ(other.call({.verb = Verb::kAccess, .path = &root}).result, 0);
    EXPECT_EQ(ask(*program, about(Verb::kAccess, "/")), 0);
    if (i == 0) continue;
    Program third(path_);
    EXPECT_EQ(third.host.call({.verb = Verb::kAccess, .path = &root}).result, 0);
  }
  EXPECT_EQ(rings(), 3);
  ASSERT_TRUE(are_over());
  {
    // The server ends this one, whose threads may wait for answers still.
    const ChannelEnds bad = attach_at(path_);
    EXPECT_TRUE(send_control(bad.connection, "x"));
    EXPECT_TRUE(are_over());
  }
  // So may those of one that only says nothing more.
  const ChannelEnds leaves = attach_at(path_);
  EXPECT_EQ(rings(), 3);
  EXPECT_EQ(::shutdown(leaves.connection.get(), SHUT_WR), 0);
  EXPECT_TRUE(are_over());
  const ChannelEnds one = attach_at(path_);
  const ChannelEnds two = attach_at(path_);
  EXPECT_EQ(rings(), 5);
  EXPECT_TRUE(are_open(4));
  program.reset();
  EXPECT_TRUE(comes_true([&] { return rings() == 2; }));
}

TEST_P(KernelChannelTest, hostile_rings_of_kernels_harm_nobody_else) {
  Program honest(path_);
  KernelCall mkdir = about(Verb::kMkdir, "/mine");
  mkdir.request.mode = 0777;
  EXPECT_EQ(ask(honest, mkdir), 0);
  const int fd = open(honest, "/file");
  ASSERT_GE(fd, 0);
  vfs::Credentials enemy{};
  enemy.uid = enemy.gid = 66;
  const uint32_t owner = channels_->open({enemy})->number;
  auto opened = std::move(channels_->open_for_kernels(owner).value());
  const SharedMemory memory = SharedMemory::map(std::move(opened.memory));
  std::atomic<bool> is_hostile{true};
  std::thread hostile([&] {
    be_hostile(memory.data(), nullptr, 3);
    is_hostile = false;
  });
  for (uint32_t turn = 0; is_hostile; ++turn) {
    std::string bytes = bytes_of(150'000, turn);
    const uint64_t offset = uint64_t{1000} * (turn % 60);
    const auto all = static_cast<int64_t>(bytes.size());
    const int64_t wrote =
        move(honest, {Verb::kPwrite, fd, data_of(bytes), bytes.size(), offset}, 2);
    if (wrote == -ENOSPC) continue;  // all users may fill the volume
    EXPECT_EQ(wrote, all);
    std::string found(bytes.size(), '\0');
    EXPECT_EQ(move(honest, {Verb::kPread, fd, data_of(found), found.size(), offset}, 2), all);
    EXPECT_TRUE(found == bytes) << turn;
  }
  hostile.join();
  (void)channels_->close(opened.number);
  (void)channels_->close(owner);
  EXPECT_EQ(ask(honest, about(Verb::kFsync, fd)), 0);
  honest.end.reset();
  end_server();
  expect_sound_volume();
}

/// How many entries a folder has, or lines a file.
size_t entries_of(const std::string& folder) {
  size_t count = 0;
  for ([[maybe_unused]] const auto& entry : std::filesystem::directory_iterator(folder)) ++count;
  return count;
}
size_t lines_of(const std::string& file) {
  std::ifstream text(file);
  size_t count = 0;
  for (std::string line; std::getline(text, line);) ++count;
  return count;
}

TEST_P(KernelChannelTest, who_comes_and_goes_leaves_nothing) {
  const auto come_and_go = [this](uint32_t times) {
    for (uint32_t i = 0; i < times; ++i) {
      Program program(path_);
      const std::string path = "/left" + std::to_string(i % 4);
      EXPECT_GE(
          program.host
              .call({.verb = Verb::kOpen, .path = &path, .flags = O_RDWR | O_CREAT, .mode = 0600})
              .result,
          0);
      EXPECT_GE(open(program, path), 0);
    }
    return comes_true([this] { return channels_->open_channels() == 0; });
  };
  // What of the file system is in use, and the process's descriptors.
  const auto left = [this] {
    channels_->prepare_ring();  // which the server does as well, a little later
    std::vector<uint64_t> counts = {entries_of("/proc/self/fd")};
    const auto report = volume_->memory();
    for (const MemoryPartReport& part : report->parts) {
      if (part.name == "descriptors" || part.name == "open_inodes" || part.name == "operations") {
        counts.push_back(part.in_use.value_or(~uint64_t{0}));
      }
    }
    return counts;
  };
  constexpr size_t kMappings = 20;  // as many as stacks and heaps of threads may come and go
  const std::vector<uint64_t> before = left();
  const size_t mappings = lines_of("/proc/self/maps");
  ASSERT_EQ(before.size(), 4u);
  ASSERT_TRUE(come_and_go(100));
  EXPECT_TRUE(comes_true([&] { return left() == before; })) << ::testing::PrintToString(left());
  EXPECT_TRUE(comes_true([&] { return lines_of("/proc/self/maps") < mappings + kMappings; }));
}

TEST_P(KernelChannelTest, kernels_that_wait_learn_that_the_server_has_ended) {
  Program program(path_);
  std::atomic<uint32_t> calls = 0;
  std::atomic<int64_t> last[3] = {};
  std::thread kernel([&] {
    launch(3, [&](const simt::Warp& warp, uint32_t index) {
      const std::string path = "/";
      int64_t answer = 0;
      while (answer == 0) {
        KernelCall call = about(Verb::kAccess, path.c_str());
        answer = serve::ask(warp, program.channel(), call);
        if (warp.thread_rank() == 0) ++calls;
      }
      if (warp.thread_rank() == 0) last[index] = answer;
    });
  });
  while (calls < 20) std::this_thread::yield();
  end_server();
  kernel.join();
  for (const auto& answer : last) EXPECT_EQ(answer, -ESTALE);
}

TEST_P(KernelChannelTest, a_client_that_goes_takes_what_its_kernels_have_open) {
  {
    Program program(path_);
    EXPECT_GE(open(program, "/left"), 0);
    EXPECT_EQ(channels_->open_channels(), 2u);
    EXPECT_EQ(channels_->status().clients.size(), 2u);
  }
  while (channels_->open_channels() != 0) std::this_thread::yield();
  // Other clients have room again, and the file is nobody's.
  for (int i = 0; i < 20; ++i) {
    Program program(path_);
    EXPECT_GE(open(program, "/left"), 0);
    EXPECT_EQ(ask(program, about(Verb::kUnlink, "/left")), 0);
  }
  while (channels_->open_channels() != 0) std::this_thread::yield();
  end_server();
  expect_sound_volume();
}

INSTANTIATE_TEST_SUITE_P(servers, KernelChannelTest, KernelChannelTest::all());
INSTANTIATE_TEST_SUITE_P(servers, GridChannelTest,
                         ::testing::Combine(::testing::Values(Server::kGrid),
                                            ::testing::Values(1u, 8u)));

}  // namespace
}  // namespace gofs::host
