// SPDX-License-Identifier: Apache-2.0
//
// Clients as processes of several users, over a real socket: they are killed at any moment, the
// server goes, and others come who are no clients at all.
#include "host/serve/socket.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <sys/file.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <barrier>
#include <cerrno>
#include <chrono>
#include <cstddef>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <functional>
#include <memory>
#include <optional>
#include <random>
#include <string>
#include <system_error>
#include <thread>
#include <utility>
#include <vector>

#include "host/serve/control_desk.h"
#include "host/serve/serve_bodies.h"
#include "host/serve/served_volume_for_test.h"
#include "host/serve/socket_server.h"
#include "testing/comes_true.hpp"
#include "testing/in_child.hpp"

extern char** environ;

namespace gofs::host {
namespace {

using request::Verb;
using std::chrono::milliseconds;
using testing::comes_true;

constexpr const char* kForEver = "1000000000";

/// A process that runs channel_actor; killed with this object.
class Actor {
 public:
  Actor(const std::string& socket, uint32_t uid, uint32_t seed, const std::string& count) {
    const std::string program =
        std::string(std::getenv("GOFS_BUILD_DIR")) + "/src/host/serve/channel_actor";
    std::string words[] = {program, socket, std::to_string(uid), std::to_string(seed), count};
    char* arguments[] = {words[0].data(), words[1].data(), words[2].data(),
                         words[3].data(), words[4].data(), nullptr};
    EXPECT_EQ(::posix_spawn(&pid_, program.c_str(), nullptr, nullptr, arguments, environ), 0);
  }
  Actor(Actor&& other) noexcept : pid_(std::exchange(other.pid_, -1)) {}
  Actor& operator=(Actor&& other) noexcept {
    std::swap(pid_, other.pid_);
    return *this;
  }
  ~Actor() { kill(); }

  void kill() {
    if (pid_ <= 0) return;
    ::kill(pid_, SIGKILL);
    (void)status();
  }
  /// Waits for its end: the exit status, or -1 if it was killed.
  int status() {
    int word = 0;
    EXPECT_EQ(::waitpid(std::exchange(pid_, -1), &word, 0) > 0, true);
    return WIFEXITED(word) ? WEXITSTATUS(word) : -1;
  }

 private:
  pid_t pid_ = -1;
};

/// Both ends.
std::pair<ssd::Descriptor, ssd::Descriptor> connection() {
  int ends[2] = {-1, -1};
  EXPECT_EQ(::socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends), 0);
  return {ssd::Descriptor(ends[0]), ssd::Descriptor(ends[1])};
}

class SocketTest : public ServedVolumeTest {
 protected:
  SocketTest() { serve(); }
  void serve(uint32_t mode = 0666) {
    listening_.emplace(path_, mode);
    const auto answer = [this](const Question& question, const vfs::Credentials& who) {
      return desk_.answer(question, who);
    };
    server_.emplace(*channels_, listening_->descriptor(), answer);
  }
  void end() {
    server_.reset();
    listening_.reset();
  }
  /// Whether all clients but `others` go.
  bool are_gone(uint32_t others = 0) {
    return comes_true([&] { return channels_->open_channels() == others; });
  }
  /// Whether a client makes a call.
  bool has_called() {
    return comes_true([&] {
      const ServerStatus status = channels_->status();
      return std::any_of(status.clients.begin(), status.clients.end(),
                         [](const ClientStatus& client) { return client.calls != 0; });
    });
  }
  /// What a client has left open is not closed while it is held.
  void hold_what_closes(const std::atomic<bool>& held, std::atomic<bool>& closes) {
    ServedFilesystem slow = served(*volume_);
    slow.run = [&, run = slow.run](const kernels::Body& body, const kernels::Grid& grid,
                                   void* params) {
      if (&body == &kernels::bodies::kChannel &&
          static_cast<kernels::ChannelParams*>(params)->step ==
              kernels::ChannelStep::kFinishClose) {
        closes = true;
        while (held) std::this_thread::sleep_for(milliseconds(1));
      }
      return run(body, grid, params);
    };
    channels_.emplace(slow, ChannelServerOptions{.channels_max = 20});
  }
  int error_of_attaching(milliseconds timeout = kGreetingTimeout) {
    try {
      const ChannelEnds ends = attach_at(path_, timeout);
      return 0;
    } catch (const std::system_error& problem) {
      return problem.code().value();
    }
  }
  void expect_sound() {
    end();
    channels_.reset();
    expect_sound_volume();
  }

  const std::string path_ = image_.path() + ".socket";
  std::optional<ChannelServer> channels_{std::in_place, served(*volume_),
                                         ChannelServerOptions{.channels_max = 20}};
  std::atomic<bool> asked_to_stop_{false};
  ControlDesk desk_{*volume_, *channels_, [this] { asked_to_stop_ = true; }};
  std::optional<ListeningSocket> listening_;
  std::optional<SocketServer> server_;
};

TEST_F(SocketTest, processes_of_several_users_work_side_by_side) {
  std::vector<Actor> actors;
  for (uint32_t i = 0; i < 8; ++i) actors.emplace_back(path_, 1000 + i % 3, i, "40");
  for (Actor& actor : actors) EXPECT_EQ(actor.status(), 0);
  EXPECT_TRUE(are_gone());
  expect_sound();
}

TEST_F(SocketTest, clients_are_killed_at_any_moment_and_others_see_nothing_of_it) {
  std::mt19937 random(5);
  Actor honest(path_, 1000, 99, "300");
  std::vector<Actor> actors;
  for (uint32_t i = 0; i < 6; ++i) actors.emplace_back(path_, 1000 + i % 3, i, kForEver);
  for (uint32_t turn = 0; turn < 40; ++turn) {
    std::this_thread::sleep_for(milliseconds(random() % 30));
    actors[turn % 6] = Actor(path_, 1000 + turn % 3, 100 + turn, kForEver);
  }
  EXPECT_EQ(honest.status(), 0);
  actors.clear();
  EXPECT_TRUE(are_gone());
  expect_sound();
}

TEST_F(SocketTest, whoever_has_attached_is_told_when_the_server_goes) {
  Actor actor(path_, 1000, 1, kForEver);
  EXPECT_TRUE(has_called());
  end();
  EXPECT_EQ(actor.status(), 4);
  EXPECT_EQ(error_of_attaching(), ENOENT);
  serve();
  Actor another(path_, 1000, 1, "3");
  EXPECT_EQ(another.status(), 0);
}

TEST_F(SocketTest, the_mode_of_the_socket_says_who_may_come) {
  end();
  serve(0600);
  struct stat status {};
  ASSERT_EQ(::stat(path_.c_str(), &status), 0);
  EXPECT_EQ(status.st_mode & 07777, 0600u);
  Actor refused(path_, 1000, 1, "1");
  EXPECT_EQ(refused.status(), 5);
  EXPECT_EQ(error_of_attaching(), 0);
}

TEST_F(SocketTest, who_is_one_too_many_is_told) {
  std::vector<ChannelEnds> all;
  for (uint32_t i = 0; i < 20; ++i) all.push_back(attach_at(path_));
  EXPECT_EQ(error_of_attaching(), EAGAIN);
  all.pop_back();
  EXPECT_TRUE(are_gone(19));
  EXPECT_EQ(error_of_attaching(), 0);
}

TEST_F(SocketTest, a_name_that_is_taken_is_left_alone) {
  EXPECT_THROW(ListeningSocket(path_, 0600), std::system_error);
  EXPECT_EQ(error_of_attaching(), 0) << "the first server is still there";
  EXPECT_THROW(ListeningSocket(image_.path(), 0600), std::system_error);
  EXPECT_THROW(ListeningSocket(std::string(200, 'x'), 0600), std::system_error);
  // Not so what a server has left that was killed.
  end();
  const pid_t child = ::fork();
  if (child == 0) {
    const ListeningSocket left(path_, 0600);
    ::_exit(0);
  }
  int status = 0;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_EQ(error_of_attaching(), ECONNREFUSED);
  serve();
  EXPECT_EQ(error_of_attaching(), 0);
}

TEST_F(SocketTest, whoever_has_attached_may_ask_and_only_the_trusted_may_stop_it) {
  const ChannelEnds ends = attach_at(path_);
  const auto status = unpacked<ServerStatus>(ask_server(ends.connection, {Ask::kStatus, {}}));
  ASSERT_EQ(status.clients.size(), 1u);
  EXPECT_EQ(status.clients[0].pid, ::getpid());
  EXPECT_EQ(status.clients[0].uid, ::geteuid());
  const auto info = unpacked<ServedInfo>(ask_server(ends.connection, {Ask::kInfo, {}}));
  EXPECT_EQ(info.volume.uuid, volume_->info().uuid);
  EXPECT_EQ(info.volume.features, volume_->info().features);
  EXPECT_EQ(info.memory.filesystem_bytes, volume_->memory()->filesystem_bytes);
  vfs::Credentials nobody{};
  nobody.uid = nobody.gid = 65534;
  EXPECT_EQ(desk_.answer({Ask::kInfo, {}}, nobody).error, 0);
  EXPECT_EQ(desk_.answer({Ask::kCommandTimes, {}}, nobody).error, 0);
  for (const Ask ask : {Ask::kStop, Ask::kDrain, Ask::kCollectGarbage}) {
    EXPECT_EQ(desk_.answer({ask, {}}, nobody).error, EPERM);
  }
  EXPECT_EQ(desk_.answer({static_cast<Ask>(77), {}}, {}).error, EINVAL);
  EXPECT_FALSE(asked_to_stop_);
}

TEST_F(SocketTest, who_asks_for_the_end_is_answered_when_all_is_over) {
  const ssd::Descriptor connection = connect_at(path_);
  ASSERT_TRUE(send_control(connection, packed(Question{Ask::kStop, {}})));
  EXPECT_TRUE(comes_true([&] { return asked_to_stop_.load(); }));
  const std::vector<ssd::Descriptor> waiting = server_->end();
  ASSERT_EQ(waiting.size(), 1u);
  pollfd look{connection.get(), POLLIN | POLLRDHUP, 0};
  EXPECT_EQ(::poll(&look, 1, 0), 0) << "the volume is not unmounted yet";
  ASSERT_TRUE(send_control(waiting[0], packed(Answer{EIO, "it was not", {}})));
  EXPECT_EQ(unpacked<Answer>(receive_control(connection)).error, EIO);
}

TEST_F(SocketTest, any_number_of_clients_is_told_of_in_parts) {
  constexpr uint32_t kClients = 2'700;  // more than a message has room for
  rlimit limit{};
  ASSERT_EQ(::getrlimit(RLIMIT_NOFILE, &limit), 0);
  if (limit.rlim_max < 3 * kClients) GTEST_SKIP() << "there are too few descriptors";
  limit.rlim_cur = limit.rlim_max;
  ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &limit), 0);
  end();
  channels_.emplace(served(*volume_), ChannelServerOptions{.channels_max = kClients + 1,
                                                           .depth = serve::kRingDepthMin,
                                                           .part_bytes = 4096});
  serve();
  for (uint32_t i = 0; i < kClients; ++i) ASSERT_TRUE(channels_->open({{}, 1}));
  const ServerStatus status = status_of(connect_at(path_));
  ASSERT_EQ(status.clients.size(), kClients + 1);
  for (uint32_t i = 0; i <= kClients; ++i) EXPECT_EQ(status.clients[i].channel, i);
}

TEST_F(SocketTest, a_server_that_goes_leaves_the_name_to_one_that_has_it_by_now) {
  ASSERT_EQ(::unlink(path_.c_str()), 0);
  const ListeningSocket another(path_, 0600);
  end();
  EXPECT_EQ(::access(path_.c_str(), F_OK), 0);
}

TEST_F(SocketTest, who_comes_does_not_wait_while_what_another_has_left_open_is_closed) {
  end();
  std::atomic<bool> held{true};
  std::atomic<bool> closes{false};
  hold_what_closes(held, closes);
  serve();
  { const ChannelEnds leaves = attach_at(path_); }
  EXPECT_TRUE(comes_true([&] { return closes.load(); }));
  EXPECT_EQ(error_of_attaching(milliseconds(5'000)), 0);
  held = false;
  EXPECT_TRUE(are_gone());
  expect_sound();
}

TEST_F(SocketTest, what_is_quick_is_answered_while_another_question_takes_long) {
  end();
  listening_.emplace(path_, 0600);
  std::atomic<bool> held{true};
  std::atomic<bool> takes_long{false};
  server_.emplace(*channels_, listening_->descriptor(),
                  [&](const Question& question, const vfs::Credentials& who) {
                    if (question.ask != Ask::kCollectGarbage) return desk_.answer(question, who);
                    takes_long = true;
                    while (held) std::this_thread::sleep_for(milliseconds(1));
                    return Answer{};
                  });
  const ChannelEnds cleans = attach_at(path_);
  std::thread cleaning([&] { (void)ask_server(cleans.connection, {Ask::kCollectGarbage, {}}); });
  EXPECT_TRUE(comes_true([&] { return takes_long.load(); }));
  const ChannelEnds looks = attach_at(path_);
  ControlLine line(looks.connection, milliseconds(10'000));
  EXPECT_EQ(unpacked<CommandTimes>(line.ask({Ask::kCommandTimes, {}})).ssds, 0u);
  EXPECT_EQ(unpacked<ServerStatus>(line.ask({Ask::kStatus, {}})).clients.size(), 2u);
  held = false;
  cleaning.join();
  end();
}

TEST_F(SocketTest, a_server_s_path_may_be_nearly_as_long_as_a_client_s) {
  const std::string longest = path_ + std::string(103 - path_.size(), 'x');
  const std::string apart = longest + ".new";
  { std::ofstream(apart) << "somebody's"; }
  EXPECT_THROW(ListeningSocket(longest, 0600), std::system_error);
  EXPECT_EQ(::unlink(apart.c_str()), 0) << "it is left alone";
  {  // As one that was killed leaves it.
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    apart.copy(address.sun_path, sizeof(address.sun_path) - 1);
    const ssd::Descriptor left(::socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0));
    EXPECT_EQ(::bind(left.get(), reinterpret_cast<const sockaddr*>(&address), sizeof(address)), 0);
  }
  {
    const ListeningSocket listening(longest, 0600);
    EXPECT_NE(::access(apart.c_str(), F_OK), 0);
    EXPECT_EQ(::access(longest.c_str(), F_OK), 0);
  }
  EXPECT_NE(::access(longest.c_str(), F_OK), 0);
  try {
    const ListeningSocket listening(longest + "x", 0600);
    ADD_FAILURE() << "it listens";
  } catch (const std::system_error& problem) {
    EXPECT_EQ(problem.code().value(), ENAMETOOLONG);
    EXPECT_NE(std::string(problem.what()).find("1 to 103 bytes: " + longest), std::string::npos)
        << problem.what();
  }
}

TEST_F(SocketTest, an_answer_that_is_too_long_is_an_error_and_kept_from_nobody) {
  end();
  listening_.emplace(path_, 0600);
  std::atomic<size_t> bytes{100'000};
  server_.emplace(*channels_, listening_->descriptor(),
                  [&](const Question&, const vfs::Credentials&) {
                    return Answer{0, {}, std::string(bytes, 'x')};
                  });
  const ChannelEnds ends = attach_at(path_);
  ControlLine line(ends.connection, milliseconds(10'000));
  try {
    (void)line.ask({Ask::kStatus, {}});
    ADD_FAILURE() << "an answer";
  } catch (const std::system_error& problem) {
    EXPECT_EQ(problem.code().value(), EMSGSIZE);
  }
  bytes = 60'000;
  EXPECT_EQ(line.ask({Ask::kStatus, {}}).size(), 60'000u);
  end();
}

TEST_F(SocketTest, who_takes_no_answers_is_told_of_his_end_when_his_calls_have_ended) {
  end();
  std::atomic<bool> held{true};
  std::atomic<bool> closes{false};
  hold_what_closes(held, closes);
  listening_.emplace(path_, 0600);
  std::atomic<int> answered{0};
  server_.emplace(*channels_, listening_->descriptor(),
                  [&](const Question&, const vfs::Credentials&) {
                    ++answered;
                    return Answer{0, {}, std::string(60'000, 'x')};
                  });
  const ChannelEnds ends = attach_at(path_);
  // Until there is no room for more of them.
  for (int asked = 1; !closes && asked < 1000; ++asked) {
    if (!send_control(ends.connection, packed(Question{Ask::kInfo, {}}))) break;
    EXPECT_TRUE(comes_true([&] { return answered >= asked || closes; }));
    std::this_thread::sleep_for(milliseconds(5));  // and it is sent
  }
  EXPECT_TRUE(comes_true([&] { return closes.load(); }));
  pollfd look{ends.connection.get(), POLLRDHUP, 0};
  EXPECT_EQ(::poll(&look, 1, 0), 0) << "calls may be under way";
  held = false;
  EXPECT_EQ(::poll(&look, 1, 10'000), 1);
  EXPECT_TRUE(are_gone());
  expect_sound();
}

TEST_F(SocketTest, a_server_that_drains_answers_questions_and_takes_nobody) {
  const ChannelEnds ends = attach_at(path_);
  (void)ask_server(ends.connection, {Ask::kDrain, {}});
  EXPECT_EQ(error_of_attaching(), ECONNREFUSED);
  const ssd::Descriptor another = connect_at(path_);
  EXPECT_TRUE(unpacked<ServerStatus>(ask_server(another, {Ask::kStatus, {}})).draining);
  EXPECT_EQ(channels_->open_channels(), 1u);
}

TEST_F(SocketTest, who_says_what_makes_no_sense_is_ended_alone) {
  const ChannelEnds good = attach_at(path_);
  for (const std::string& bytes : {std::string("x"), std::string(4000, '\xff'),
                                   packed(Question{Ask::kInfo, {}}).substr(0, 5)}) {
    ChannelEnds bad = attach_at(path_);
    EXPECT_TRUE(send_control(bad.connection, bytes));
    EXPECT_TRUE(are_gone(1));
  }
  EXPECT_EQ(unpacked<ServerStatus>(ask_server(good.connection, {Ask::kStatus, {}})).clients.size(),
            1u);
}

TEST_F(SocketTest, descriptors_that_nobody_wants_are_dropped_and_never_closed) {
  // To close one ends the locks that this process has of the file.
  const image::TemporaryPath path;
  const ssd::Descriptor file = ssd::Descriptor::open(path.path(), O_RDWR | O_CREAT, 0600);
  struct flock lock {};
  lock.l_type = F_WRLCK;
  ASSERT_EQ(::fcntl(file.get(), F_SETLK, &lock), 0);
  const auto [here, there] = connection();
  const int with[] = {file.get()};
  ASSERT_TRUE(send_control(here, "a message", with));
  EXPECT_EQ(receive_control(there), "a message");
  const pid_t child = ::fork();
  if (child == 0) {
    ::_exit(::fcntl(file.get(), F_GETLK, &lock) == 0 && lock.l_type == F_WRLCK ? 0 : 1);
  }
  int status = 0;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
}

TEST_F(SocketTest, descriptors_that_come_with_a_question_change_nothing) {
  const ChannelEnds ends = attach_at(path_);
  const int with[] = {ends.bell.get()};
  const std::string question = packed(Question{Ask::kInfo, {}});
  // A newer Linux refuses to send them.
  if (!send_control(ends.connection, question, with)) {
    EXPECT_EQ(errno, EPERM);
    ASSERT_TRUE(send_control(ends.connection, question));
  }
  pollfd waiting{ends.connection.get(), POLLIN, 0};
  ASSERT_EQ(::poll(&waiting, 1, 60'000), 1);
  EXPECT_EQ(unpacked<Answer>(receive_control(ends.connection)).error, 0);
}

TEST_F(SocketTest, who_finds_the_queue_full_waits_for_his_time_and_no_longer) {
  end();
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  std::strncpy(address.sun_path, path_.c_str(), sizeof(address.sun_path) - 1);
  const auto* const there = reinterpret_cast<const sockaddr*>(&address);
  constexpr int kKind = SOCK_SEQPACKET | SOCK_NONBLOCK | SOCK_CLOEXEC;
  const ssd::Descriptor listening(::socket(AF_UNIX, kKind, 0));
  ASSERT_EQ(::bind(listening.get(), there, sizeof(address)), 0);
  ASSERT_EQ(::listen(listening.get(), 1), 0);
  std::vector<ssd::Descriptor> queue;
  do {
    queue.emplace_back(::socket(AF_UNIX, kKind, 0));
  } while (::connect(queue.back().get(), there, sizeof(address)) == 0);
  ASSERT_EQ(errno, EAGAIN);
  const auto began = std::chrono::steady_clock::now();
  EXPECT_EQ(error_of_attaching(milliseconds(100)), ETIMEDOUT);
  EXPECT_LT(std::chrono::steady_clock::now() - began, std::chrono::seconds(30));
  EXPECT_THROW(ListeningSocket(path_, 0600), std::system_error) << "the name is taken";
  ::unlink(path_.c_str());
}

/// What `count` servers have that begin at one name at the same time; null for those that are told
/// that it is taken.
std::vector<std::unique_ptr<ListeningSocket>> listeners_at_once(const std::string& path,
                                                                size_t count) {
  std::vector<std::unique_ptr<ListeningSocket>> all(count);
  std::barrier begins(static_cast<ptrdiff_t>(count));
  std::vector<std::jthread> threads;
  for (std::unique_ptr<ListeningSocket>& one : all) {
    threads.emplace_back([&] {
      begins.arrive_and_wait();
      try {
        one = std::make_unique<ListeningSocket>(path, 0600u);
      } catch (const std::system_error& problem) {
        EXPECT_EQ(problem.code().value(), EADDRINUSE) << problem.what();
      }
    });
  }
  threads.clear();
  return all;
}

/// All names in the folder of a path that begin with it.
std::vector<std::string> names_from(const std::string& path) {
  std::vector<std::string> names;
  for (const auto& one :
       std::filesystem::directory_iterator(std::filesystem::path(path).parent_path())) {
    if (one.path().string().starts_with(path)) names.push_back(one.path());
  }
  return names;
}

/// Leaves what a server leaves that was killed.
void leave_socket(const std::string& path) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  std::strncpy(address.sun_path, path.c_str(), sizeof(address.sun_path) - 1);
  const ssd::Descriptor left(::socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0));
  EXPECT_EQ(::bind(left.get(), reinterpret_cast<const sockaddr*>(&address), sizeof(address)), 0);
}

TEST(ListeningSocketTest, of_servers_that_begin_at_once_one_gets_the_name) {
  const image::TemporaryPath beside;
  const std::string path = beside.path() + ".socket";
  for (int round = 0; round < 500; ++round) {
    if (round % 2 == 1) leave_socket(path);
    auto all = listeners_at_once(path, 8);
    const auto has_name = [](const auto& one) { return one != nullptr; };
    ASSERT_EQ(std::ranges::count_if(all, has_name), 1) << "round " << round;
    const auto winner = std::ranges::find_if(all, has_name);
    pollfd comes{(*winner)->descriptor().get(), POLLIN, 0};
    while (::poll(&comes, 1, 0) > 0) {  // those that looked whether a server is there
      (void)ssd::Descriptor(::accept4(comes.fd, nullptr, nullptr, SOCK_CLOEXEC));
    }
    std::jthread client([&] { EXPECT_THROW(attach_at(path), std::system_error); });
    ASSERT_EQ(::poll(&comes, 1, 10'000), 1) << "the name is its own, round " << round;
    (void)ssd::Descriptor(::accept4(comes.fd, nullptr, nullptr, SOCK_CLOEXEC));
    client.join();
    all.clear();
    ASSERT_EQ(names_from(path), std::vector<std::string>()) << "round " << round;
  }
}

TEST(ListeningSocketTest, who_goes_while_another_comes_leaves_it_its_name) {
  const image::TemporaryPath beside;
  const std::string path = beside.path() + ".socket";
  auto now = std::make_unique<ListeningSocket>(path, 0600u);
  for (int round = 0; round < 200; ++round) {
    std::unique_ptr<ListeningSocket> next;
    std::jthread coming([&] {
      while (next == nullptr) {
        try {
          next = std::make_unique<ListeningSocket>(path, 0600u);
        } catch (const std::system_error& problem) {
          EXPECT_EQ(problem.code().value(), EADDRINUSE) << problem.what();
          std::this_thread::sleep_for(milliseconds(1));
        }
      }
    });
    now.reset();
    coming.join();
    ASSERT_EQ(names_from(path), std::vector<std::string>{path}) << "round " << round;
    now = std::move(next);
  }
}

TEST(ListeningSocketTest, a_lock_is_waited_for_and_one_that_was_left_is_taken_over) {
  const image::TemporaryPath beside;
  const std::string path = beside.path() + ".socket";
  ssd::Descriptor held = ssd::Descriptor::open(path + ".gofs-lock", O_RDWR | O_CREAT, 0600);
  ASSERT_EQ(::flock(held.get(), LOCK_EX), 0);
  try {
    const ListeningSocket one(path, 0600);
    ADD_FAILURE() << "it does not wait";
  } catch (const std::system_error& problem) {
    EXPECT_EQ(problem.code().value(), ETIMEDOUT);
    EXPECT_NE(std::string(problem.what()).find("another server has locked"), std::string::npos);
  }
  EXPECT_EQ(names_from(path), std::vector<std::string>{path + ".gofs-lock"});
  held = ssd::Descriptor();
  {
    const ListeningSocket one(path, 0600);
    EXPECT_EQ(names_from(path), std::vector<std::string>{path});
  }
  EXPECT_EQ(names_from(path), std::vector<std::string>());
}

TEST(ListeningSocketTest, a_lock_that_another_user_has_left_is_named) {
  if (::geteuid() != 0) GTEST_SKIP() << "only root can be another user";
  const image::TemporaryPath beside;
  const std::string path = beside.path() + ".socket";
  { (void)ssd::Descriptor::open(path + ".gofs-lock", O_RDWR | O_CREAT, 0600); }
  EXPECT_EQ(testing::in_child([&] {
              constexpr uid_t kNobody = 65'534;
              if (::setresuid(kNobody, kNobody, kNobody) != 0) return 1;
              try {
                const ListeningSocket one(path, 0600);
                return 2;
              } catch (const std::system_error& problem) {
                if (problem.code().value() != EACCES) return 3;
                return std::string(problem.what()).find("remove it") != std::string::npos ? 0 : 4;
              }
            }),
            0);
  EXPECT_EQ(::unlink((path + ".gofs-lock").c_str()), 0);
}

TEST(ControlLineTest, an_answer_that_comes_late_is_nobody_elses) {
  const auto [here, there] = connection();
  ControlLine line(here, milliseconds(20));
  const auto error_of_asking = [&] {
    try {
      (void)line.ask({Ask::kInfo, {}});
      return 0;
    } catch (const std::system_error& problem) {
      return problem.code().value();
    }
  };
  ASSERT_TRUE(send_control(there, packed(Answer{EPERM, "no", {}})));
  EXPECT_EQ(error_of_asking(), EPERM);
  ASSERT_TRUE(send_control(there, packed(Answer{0, {}, "yes"})));
  EXPECT_EQ(error_of_asking(), 0);
  EXPECT_EQ(error_of_asking(), ETIMEDOUT);
  ASSERT_TRUE(send_control(there, packed(Answer{0, {}, "late"})));
  EXPECT_EQ(error_of_asking(), ETIMEDOUT);
}

}  // namespace
}  // namespace gofs::host
