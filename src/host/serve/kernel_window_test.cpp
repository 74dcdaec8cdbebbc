// SPDX-License-Identifier: Apache-2.0
//
// Windows: memory of a client's own, which calls of its kernels and of its host name and the server
// reaches by itself, and what becomes of them.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstring>
#include <memory>
#include <string>
#include <system_error>
#include <thread>

#include "host/backend_for_test.h"
#include "host/serve/kernel_channel_for_test.h"
#include "testing/in_child.hpp"

namespace gofs::host {
namespace {

constexpr uint64_t kMemoryBytes = 256 * 1024;
constexpr uint64_t kOffset = 4096 + 8;  // of a window in that
constexpr uint64_t kWindowBytes = 100'000;

class KernelWindowTest : public KernelChannelTest {
 protected:
  static Question asks_for(uint64_t whole, uint64_t offset, uint64_t bytes) {
    Question question{.ask = Ask::kOpenWindow};
    question.memory = {{}, whole, offset, bytes};
    return question;
  }
  /// The number that the server has given to a window of memory of the program's.
  static uint32_t open_window(Program& program, const SharedMemory& memory) {
    const Question question = asks_for(kMemoryBytes, kOffset, kWindowBytes);
    return unpacked<uint32_t>(program.line.ask(question, nullptr, memory.descriptor()));
  }
  /// The same, and its kernels and its host know of it.
  static uint32_t use_window(Program& program, const SharedMemory& memory) {
    const WindowOfClient window{open_window(program, memory), memory.data() + kOffset,
                                kWindowBytes};
    program.end->add_window(window);
    program.host.add_window(window);
    return window.number;
  }
  static void close_window(Program& program, uint32_t number) {
    (void)program.line.ask({.ask = Ask::kCloseWindow, .window = number});
  }
  template <typename Work>
  static int error_of(Work work) {
    try {
      work();
      return 0;
    } catch (const std::system_error& problem) {
      return problem.code().value();
    }
  }
  /// Of others that the server reaches.
  int foreign() { return dynamic_cast<const BackendForTest&>(volume_->backend()).foreign(); }
  static void fill_rings_buffer(Program& program) {
    const serve::Ring& ring = program.channel().ring;
    std::memset(ring.buffer, 'z', ring.buffer_bytes);
  }
  static bool is_rings_buffer_used(Program& program) {
    const serve::Ring& ring = program.channel().ring;
    return std::any_of(ring.buffer, ring.buffer + ring.buffer_bytes,
                       [](uint8_t byte) { return byte != 'z'; });
  }
  int64_t move_by_host(Program& program, Verb verb, int fd, uint8_t* memory, uint64_t bytes,
                       bool is_direct = true) {
    CallRequest call{.verb = verb, .descriptor = fd - Program::kBase, .bytes = bytes};
    call.is_direct = is_direct;
    if (verb == Verb::kPwrite) {
      call.input = memory;
    } else {
      call.buffer = memory;
    }
    return program.host.call(call).result;
  }

  SharedMemory memory_ = SharedMemory::make("memory of a program", kMemoryBytes);
  uint8_t* const data_ = memory_.data() + kOffset;
};

TEST_P(KernelWindowTest, what_lies_there_is_moved_directly) {
  Program program(path_);
  (void)use_window(program, memory_);
  const int fd = open(program, "/file");
  const std::string bytes = bytes_of(kWindowBytes, 1);
  std::memcpy(data_, bytes.data(), bytes.size());
  fill_rings_buffer(program);
  const auto all = static_cast<int64_t>(kWindowBytes);
  EXPECT_EQ(move(program, {Verb::kPwrite, fd, data_, kWindowBytes, 0}, 3), all);
  std::memset(data_, 0, kWindowBytes);
  EXPECT_EQ(move(program, {Verb::kPread, fd, data_ + 10, kWindowBytes - 10, 10}, 2), all - 10);
  EXPECT_EQ(std::memcmp(data_ + 10, bytes.data() + 10, kWindowBytes - 10), 0);
  EXPECT_EQ(std::string(data_, data_ + 10), std::string(10, '\0'));
  EXPECT_FALSE(is_rings_buffer_used(program));
  // The host of the same program.
  std::memset(data_, 'h', 5000);
  EXPECT_EQ(move_by_host(program, Verb::kPwrite, fd, data_, 5000), 5000);
  std::memset(data_, 0, 5000);
  EXPECT_EQ(move_by_host(program, Verb::kPread, fd, data_ + 1000, 5000), 5000);
  EXPECT_EQ(std::string(data_ + 1000, data_ + 6000), std::string(5000, 'h'));
  // What is not all there goes another way, as does what holds structs, wherever it lies.
  EXPECT_EQ(move(program, {Verb::kPread, fd, data_ + kWindowBytes - 10, 20, 0}, 1), 20);
  EXPECT_TRUE(is_rings_buffer_used(program));
  EXPECT_EQ(std::string(data_ + kWindowBytes - 10, data_ + kWindowBytes + 10),
            std::string(20, 'h'));
  EXPECT_EQ(move_by_host(program, Verb::kPread, fd, data_ + kWindowBytes - 10, 20), -EFAULT);
  EXPECT_EQ(move_by_host(program, Verb::kPread, fd, data_ + kWindowBytes - 10, 20, false), 20);
  fill_rings_buffer(program);
  const std::string path = "/file";
  KernelCall look = about(Verb::kStat, path.c_str());
  look.output = data_ + 3;  // nothing that a struct could lie at
  look.request.bytes = sizeof(Stat);
  EXPECT_EQ(ask(program, look), 0);
  Stat stat{};
  std::memcpy(&stat, data_ + 3, sizeof(stat));
  EXPECT_EQ(stat.size_bytes, kWindowBytes);
  EXPECT_TRUE(is_rings_buffer_used(program));
}

TEST_P(KernelWindowTest, a_channel_that_is_opened_later_has_them_too) {
  Program program(path_);
  const uint32_t number = use_window(program, memory_);
  const int fd = open(program, "/file");
  program.end.emplace(std::make_unique<BackendForTest>(), program.line, Program::kBase);
  program.end->add_window({number, data_, kWindowBytes});
  fill_rings_buffer(program);
  std::memset(data_, 'x', 100);
  EXPECT_EQ(move(program, {Verb::kPwrite, fd, data_, 100, 0}, 1), 100);
  EXPECT_FALSE(is_rings_buffer_used(program));
  char found = 0;
  EXPECT_EQ(move(program, {Verb::kPread, fd, reinterpret_cast<uint8_t*>(&found), 1, 99}, 1), 1);
  EXPECT_EQ(found, 'x');
}

TEST_P(KernelWindowTest, what_is_wrong_with_one_is_said) {
  Program program(path_);
  const int fd = open(program, "/file");
  // Numbers and places that the server knows nothing of.
  program.end->add_window({7, data_, kWindowBytes});
  EXPECT_EQ(move(program, {Verb::kPwrite, fd, data_, 100, 0}, 1), -EFAULT);
  program.end->remove_window(7);
  const uint32_t number = open_window(program, memory_);
  program.end->add_window({number, data_ - 100, kWindowBytes + 200});
  EXPECT_EQ(move(program, {Verb::kPwrite, fd, data_ + kWindowBytes, 100, 0}, 1), -EFAULT);
  EXPECT_EQ(move(program, {Verb::kPwrite, fd, data_ + kWindowBytes - 200, 100, 0}, 1), 100);

  EXPECT_EQ(error_of([&] { close_window(program, 0); }), EINVAL);
  EXPECT_EQ(error_of([&] { close_window(program, number + 1); }), EINVAL);
  close_window(program, number);
  EXPECT_EQ(error_of([&] { close_window(program, number); }), EINVAL);
  EXPECT_EQ(move(program, {Verb::kPwrite, fd, data_, 100, 0}, 1), -EFAULT);

  const auto refused = [&](const Question& question, const ssd::Descriptor& with) {
    return error_of([&] { (void)program.line.ask(question, nullptr, with); });
  };
  const ssd::Descriptor& good = memory_.descriptor();
  EXPECT_EQ(refused(asks_for(kMemoryBytes, 0, 0), good), EINVAL);
  EXPECT_EQ(refused(asks_for(kMemoryBytes, kMemoryBytes, 1), good), EINVAL);
  EXPECT_EQ(refused(asks_for(kMemoryBytes, 1, ~uint64_t{0}), good), EINVAL);
  EXPECT_EQ(refused(asks_for(kMemoryBytes, ~uint64_t{0}, 2), good), EINVAL);
  EXPECT_EQ(refused(asks_for(kMemoryBytes, 0, 10), {}), ENOTSUP);
  EXPECT_EQ(refused(asks_for(kMemoryBytes, 0, 10), ssd::Descriptor::open("/dev/null", O_RDWR)),
            EINVAL);
  EXPECT_EQ(foreign(), 0);
  for (uint32_t i = 1; i < serve::kWindowsMax; ++i) EXPECT_EQ(open_window(program, memory_), i);
  EXPECT_EQ(refused(asks_for(kMemoryBytes, 0, 10), good), EMFILE);
  close_window(program, 9);
  EXPECT_EQ(open_window(program, memory_), 9u);
  const auto clients = channels_->status().clients;
  ASSERT_EQ(clients.size(), 2u);
  EXPECT_EQ(clients[0].window_bytes, (serve::kWindowsMax - 1) * kWindowBytes);
  EXPECT_EQ(clients[1].window_bytes, 0u);
}

TEST_P(KernelWindowTest, only_who_could_reach_the_memory_anyway_may_have_one) {
  if (::geteuid() != 0) GTEST_SKIP() << "needs root";
  const ListeningSocket open_to_all(path_ + ".all", 0666u);
  SocketServer server(*channels_, open_to_all.descriptor(),
                      [](const Question&, const vfs::Credentials&) { return Answer{}; });
  const auto error_as = [&](uid_t user, const ssd::Descriptor& with) {
    return testing::in_child([&] {
      if (::setresuid(user, user, user) != 0) return -1;
      const ChannelClient client(attach_at(path_ + ".all"));
      ControlLine line(client.connection());
      return error_of([&] { (void)line.ask(asks_for(kMemoryBytes, 0, 10), nullptr, with); });
    });
  };
  EXPECT_EQ(error_as(12'345, memory_.descriptor()), EPERM);
  EXPECT_EQ(error_as(12'345, {}), EPERM) << "a handle";
  EXPECT_EQ(error_as(0, memory_.descriptor()), 0);
  EXPECT_EQ(error_as(0, {}), ENOTSUP);
}

TEST_P(KernelWindowTest, one_that_is_closed_lasts_as_long_as_a_call_is_about_it) {
  Program program(path_);
  const int fd = open(program, "/file");
  std::atomic<bool> ends = false;
  std::atomic<uint32_t> done = 0;
  std::atomic<uint32_t> wrong = 0;
  // It goes on, whatever the program has closed.
  program.end->add_window({1, data_, kWindowBytes});
  std::thread kernel([&] {
    launch(3, [&](const simt::Warp& warp, uint32_t index) {
      while (!ends) {
        KernelCall call = about(index == 0 ? Verb::kPwrite : Verb::kPread, fd);
        if (index == 0) {
          call.input = data_;
        } else {
          call.output = data_ + index * 20'000;
        }
        call.request.bytes = 20'000;
        const int64_t answer = serve::ask(warp, program.channel(), call);
        if (warp.thread_rank() != 0) continue;
        if (answer < 0 && answer != -EFAULT) ++wrong;
        if (answer > 0) ++done;
      }
    });
  });
  for (int i = 0; i < 30; ++i) {
    ASSERT_EQ(open_window(program, memory_), 1u);
    const uint32_t before = done;
    ASSERT_TRUE(comes_true([&] { return done > before; }));
    close_window(program, 1);
    // Calls may still be about it, and then it is the next one that lets it go.
    while (foreign() != 0) {
      const uint32_t next = open_window(program, memory_);
      close_window(program, next);
    }
  }
  ends = true;
  kernel.join();
  EXPECT_EQ(wrong, 0u);
  EXPECT_EQ(foreign(), 0);
}

TEST_P(KernelWindowTest, a_client_that_goes_lets_its_memory_go) {
  for (int i = 0; i < 3; ++i) {
    Program program(path_);
    (void)use_window(program, memory_);
    (void)use_window(program, memory_);
    EXPECT_TRUE(comes_true([&] { return foreign() == 2; })) << "and those of the one before";
    const int fd = open(program, "/file");
    EXPECT_EQ(move(program, {Verb::kPwrite, fd, data_, 100, 0}, 1), 100);
  }
  EXPECT_TRUE(comes_true([&] { return foreign() == 0; }));
}

INSTANTIATE_TEST_SUITE_P(grids, KernelWindowTest,
                         ::testing::Combine(::testing::Values(Server::kGrid),
                                            ::testing::Values(1u, 8u)));

class ThreadsWindowTest : public KernelWindowTest {};

TEST_P(ThreadsWindowTest, a_servers_threads_reach_nothing_of_others) {
  Program program(path_);
  EXPECT_EQ(error_of([&] { (void)open_window(program, memory_); }), ENOTSUP);
}

INSTANTIATE_TEST_SUITE_P(threads, ThreadsWindowTest,
                         ::testing::Combine(::testing::Values(Server::kThreads),
                                            ::testing::Values(1u)));

}  // namespace
}  // namespace gofs::host
