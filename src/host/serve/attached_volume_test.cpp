// SPDX-License-Identifier: Apache-2.0
//
// Volume::attach(): the calls of a program at a server's socket, what is left of them when the
// server ends and another comes, and what a child of fork() has of it.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstring>
#include <optional>
#include <span>
#include <string>
#include <thread>
#include <vector>

#include "gofs/volume.hpp"
#include "host/serve/control_desk.h"
#include "host/serve/message.h"
#include "host/serve/served_volume_for_test.h"
#include "host/serve/socket_server.h"

namespace gofs::host {
namespace {

constexpr uint64_t kMillisecond = 1'000'000;

class AttachedVolumeTest : public ServedVolumeTest {
 protected:
  AttachedVolumeTest() { serve(); }

  void serve() {
    channels_.emplace(served(*volume_), ChannelServerOptions{});
    desk_.emplace(*volume_, *channels_, [] {});
    listen();
  }
  void end() {
    server_.reset();
    desk_.reset();
    channels_.reset();
  }
  Volume attach(uint64_t timeout_ns = 10'000 * kMillisecond) {
    auto volume = Volume::attach(path_, {.attach_timeout_ns = timeout_ns});
    EXPECT_TRUE(volume) << volume.error().message;
    return std::move(*volume);
  }
  void listen() {
    server_.emplace(*channels_, listening_->descriptor(),
                    [this](const Question& question, const vfs::Credentials& who) {
                      std::this_thread::sleep_for(answers_after_.load());
                      return desk_->answer(question, who);
                    });
  }
  /// A client that has come while no server is at the socket.
  ssd::Descriptor take_connection() {
    pollfd waiting{listening_->descriptor().get(), POLLIN, 0};
    EXPECT_EQ(::poll(&waiting, 1, 10'000), 1);
    return ssd::Descriptor(
        ::accept4(listening_->descriptor().get(), nullptr, nullptr, SOCK_CLOEXEC));
  }
  /// Attaches to the channels without a server at the socket. Who closes the connection leaves what
  /// a server leaves that is killed: no word in the channel.
  Volume attach_alone(std::optional<ssd::Descriptor>& connection) {
    server_.reset();
    std::optional<Volume> volume;
    std::thread attaching([&] { volume.emplace(attach()); });
    connection.emplace(take_connection());
    const Peer peer = peer_of(*connection);
    const auto opened = channels_->open({peer.credentials, peer.pid});
    EXPECT_TRUE(opened);
    EXPECT_TRUE(greet(*connection, &opened->ends, 0));
    attaching.join();
    return std::move(*volume);
  }
  /// A server that is killed by its client's first call.
  void serve_and_be_killed(std::atomic<int>& killed) {
    constexpr uint32_t kDepth = 4;
    serve::RingHead head = serve::layout_of_ring(kDepth, kDepth * 65536);
    head.server_sleeps = 1;  // so its bell is rung
    const ChannelEnds ends{SharedMemory::make("gofs channel", head.bytes), make_bell(), {}};
    std::memcpy(ends.memory.data(), &head, sizeof(head));
    const ssd::Descriptor connection = take_connection();
    EXPECT_TRUE(greet(connection, &ends, 0));
    pollfd waiting{ends.bell.get(), POLLIN, 0};
    EXPECT_EQ(::poll(&waiting, 1, 10'000), 1);
    ++killed;
  }
  void expect_sound() {
    end();
    expect_sound_volume();
  }

  const std::string path_ = image_.path() + ".socket";
  std::optional<ListeningSocket> listening_{std::in_place, path_, 0600u};
  std::atomic<std::chrono::milliseconds> answers_after_{std::chrono::milliseconds(0)};
  std::optional<ChannelServer> channels_;
  std::optional<ControlDesk> desk_;
  std::optional<SocketServer> server_;
};

/// Signals for this thread, 100 a second, after which nothing goes on by itself.
class Interruptions {
 public:
  Interruptions() {
    struct sigaction action {};
    action.sa_handler = [](int) {};
    EXPECT_EQ(::sigaction(SIGALRM, &action, &before_), 0);
    set(10'000);
  }
  ~Interruptions() {
    set(0);
    (void)::sigaction(SIGALRM, &before_, nullptr);
  }
  Interruptions(const Interruptions&) = delete;
  Interruptions& operator=(const Interruptions&) = delete;

 private:
  static void set(suseconds_t every_us) {
    const itimerval timer{{0, every_us}, {0, every_us}};
    EXPECT_EQ(::setitimer(ITIMER_REAL, &timer, nullptr), 0);
  }
  struct sigaction before_ {};
};

int code_of(const Expected<void>& result) { return result ? 0 : result.error().code; }
template <typename T>
int code_of(const Expected<T>& result) {
  return result ? 0 : result.error().code;
}

TEST_F(AttachedVolumeTest, has_the_calls_of_a_volume_that_is_mounted_here) {
  Volume volume = attach();
  EXPECT_FALSE(volume.device());
  EXPECT_EQ(code_of(volume.mkdir("/d")), 0);
  EXPECT_EQ(code_of(volume.mkdir("/d")), EEXIST);
  const int fd = volume.open("/d/file", O_RDWR | O_CREAT, 0640).value();
  // More than goes through the channel at once.
  std::string bytes(3'000'000, '\0');
  for (size_t i = 0; i < bytes.size(); ++i) bytes[i] = static_cast<char>(i * 7 / 3);
  EXPECT_EQ(volume.pwrite(fd, bytes.data(), bytes.size(), 0).value(), bytes.size());
  std::string found(bytes.size() + 10, '\0');
  EXPECT_EQ(volume.pread(fd, found.data(), found.size(), 0).value(), bytes.size());
  std::string ranged(600'000, '\0');
  EXPECT_EQ(volume.read_ranges({{fd, ranged.data(), ranged.size(), 5}, {77, ranged.data(), 1, 0}})
                .value()
                .wait()
                .value(),
            (std::vector<int64_t>{600'000, -EBADF}));
  EXPECT_TRUE(ranged == bytes.substr(5, ranged.size()));
  found.resize(bytes.size());
  EXPECT_EQ(found, bytes);
  EXPECT_EQ(code_of(volume.fsync(fd)), 0);
  EXPECT_EQ(volume.fstat(fd)->size_bytes, bytes.size());
  const int copy = volume.open("/d/copy", O_RDWR | O_CREAT, 0640).value();
  EXPECT_EQ(volume.copy_file_range(fd, 7, copy, 5, bytes.size()).value(), bytes.size() - 7);
  EXPECT_EQ(volume.pread(copy, found.data(), found.size(), 5).value(), bytes.size() - 7);
  EXPECT_EQ(found.substr(0, bytes.size() - 7), bytes.substr(7));
  EXPECT_EQ(code_of(volume.copy_file_range(copy, 0, 99, 0, 1)), EBADF);
  EXPECT_EQ(code_of(volume.close(copy)), 0);
  EXPECT_EQ(code_of(volume.unlink("/d/copy")), 0);
  EXPECT_EQ(volume.stat("/d/file")->mode & 0777, 0640u);
  EXPECT_EQ(code_of(volume.setxattr("/d/file", "user.colour", "red")), 0);
  EXPECT_EQ(volume.getxattr("/d/file", "user.colour").value(), "red");
  EXPECT_EQ(volume.listxattr("/d/file")->size(), 1u);
  EXPECT_EQ(code_of(volume.rename("/d/file", "/d/other")), 0);
  EXPECT_EQ(code_of(volume.symlink("other", "/d/link")), 0);
  EXPECT_EQ(volume.readlink("/d/link").value(), "other");
  const int directory = volume.opendir("/d").value();
  auto names = volume.readdir(directory).value();
  EXPECT_EQ(names.size(), 2u);
  EXPECT_EQ(code_of(volume.close(directory)), 0);
  EXPECT_EQ(code_of(volume.close(fd)), 0);
  EXPECT_EQ(code_of(volume.close(fd)), EBADF);
  EXPECT_EQ(code_of(volume.fstat(-1)), EBADF);
  const auto made = volume.batch_create("/d", {{"one", "1", 1}, {"a/b", "", 0}, {"one", "2", 1}});
  EXPECT_EQ(made.value(), (std::vector<int>{0, EINVAL, EEXIST}));
  EXPECT_EQ(code_of(volume.batch_create("/none", {})), ENOENT);
  EXPECT_EQ(volume.info().uuid, volume_->info().uuid);
  EXPECT_GT(volume.memory()->filesystem_bytes, 0u);
  EXPECT_GT(volume.statfs()->blocks, 0u);
  const Statistics seen = volume.statistics().value();
  EXPECT_GT(seen.bytes_written, bytes.size());
  Statistics here{};
  EXPECT_EQ(volume_->call({.verb = request::Verb::kStatistics}, here).result, 0);
  EXPECT_EQ(seen.bytes_written, here.bytes_written);
  EXPECT_EQ(code_of(volume.collect_garbage()), 0);
  EXPECT_EQ(volume.open("/none").error().message, "/none: No such file or directory");
  EXPECT_EQ(code_of(volume.unmount()), 0);
  EXPECT_EQ(code_of(volume.stat("/d")), ENODEV);
  EXPECT_EQ(code_of(volume.unmount()), 0);
  expect_sound();
}

TEST_F(AttachedVolumeTest, many_files_are_made_and_looked_at_at_once) {
  constexpr size_t kFiles = 500;  // more than a channel has slots
  Volume volume = attach();
  std::vector<std::string> texts;
  for (size_t i = 0; i < kFiles; ++i)
    texts.push_back(std::string(i % 7 == 0 ? 300'000 : i, static_cast<char>('a' + i % 26)));
  std::vector<NewFile> files;
  for (size_t i = 0; i < kFiles; ++i) {
    files.push_back({"file" + std::to_string(i), texts[i].data(), texts[i].size()});
  }
  files[10].name = "..";
  files[11].name = files[9].name;
  const std::vector<int> made = volume.batch_create("/", files).value();
  ASSERT_EQ(made.size(), kFiles);
  for (size_t i = 0; i < kFiles; ++i) {
    EXPECT_EQ(made[i] != 0, i == 10 || i == 11) << i << ": " << made[i];
    if (made[i] != 0) continue;
    EXPECT_EQ(volume.stat("/" + files[i].name)->size_bytes, texts[i].size());
    const int fd = volume.open("/" + files[i].name).value();
    std::string found(texts[i].size(), '\0');
    EXPECT_EQ(volume.pread(fd, found.data(), found.size(), 0).value(), found.size());
    EXPECT_TRUE(found == texts[i]) << i;
    EXPECT_EQ(code_of(volume.close(fd)), 0);
  }
  EXPECT_EQ(made[11], EEXIST);
  expect_sound();
}

TEST_F(AttachedVolumeTest, files_are_opened_by_identity_by_root_of_this_server_and_the_next) {
  Volume volume = attach();
  const int fd = volume.open("/file", O_RDWR | O_CREAT).value();
  EXPECT_EQ(volume.pwrite(fd, "kept", 4, 0).value(), 4u);
  const Identity file = volume.identity(fd).value();
  EXPECT_EQ(file.ino, volume.fstat(fd)->ino);
  EXPECT_EQ(code_of(volume.identity(fd + 1)), EBADF);
  EXPECT_EQ(code_of(volume.rename("/file", "/other")), 0);
  EXPECT_EQ(code_of(volume.sync()), 0);
  const bool is_root = ::geteuid() == 0;
  for (const bool next : {false, true}) {
    if (next) {
      end();
      serve();
      EXPECT_EQ(code_of(volume.identity(fd)), ESTALE) << "of a server that has ended";
    }
    const auto opened = volume.open_inode(file);
    EXPECT_EQ(code_of(opened), is_root ? 0 : EPERM);
    if (!is_root) continue;
    char bytes[5] = {};
    EXPECT_EQ(volume.pread(*opened, bytes, 4, 0).value(), 4u);
    EXPECT_STREQ(bytes, "kept");
    EXPECT_EQ(code_of(volume.close(*opened)), 0);
  }
  if (is_root) {
    Identity wrong = file;
    wrong.uuid[0] ^= 1;
    EXPECT_EQ(code_of(volume.open_inode(wrong)), ESTALE);
    EXPECT_EQ(code_of(volume.open_inode(file, O_CREAT)), EINVAL);
    EXPECT_EQ(code_of(volume.unlink("/other")), 0);
    const Error gone = volume.open_inode(file).error();
    EXPECT_EQ(gone.code, ESTALE);
    EXPECT_NE(gone.message.find("the file has been removed"), std::string::npos) << gone.message;
  }
}

TEST_F(AttachedVolumeTest, no_server_is_an_error_that_says_so) {
  EXPECT_EQ(code_of(Volume::attach(path_ + "x")), ENOENT);
  const Error of_image = Volume::attach(image_.path()).error();
  EXPECT_EQ(of_image.code, ECONNREFUSED);
  EXPECT_NE(of_image.message.find("it is not a server's socket"), std::string::npos)
      << of_image.message;
  channels_->drain();
  const Error of_drained = Volume::attach(path_).error();
  EXPECT_EQ(of_drained.code, ECONNREFUSED);
  EXPECT_NE(of_drained.message.find("the server takes no clients any more"), std::string::npos)
      << of_drained.message;
  end();
  listening_.reset();
  EXPECT_EQ(Volume::attach(path_).error().message,
            path_ + ": no server can be attached to: No such file or directory");
}

TEST_F(AttachedVolumeTest, a_server_of_another_version_is_an_error_that_says_so) {
  server_.reset();
  std::optional<Error> error;
  std::thread attaching([&] { error = Volume::attach(path_).error(); });
  const ssd::Descriptor connection = take_connection();
  const Greeting greeting{kGreetingMagic, kGreetingVersion + 1, 0};
  EXPECT_TRUE(send_message(connection,
                           std::span(reinterpret_cast<const char*>(&greeting), sizeof(greeting))));
  attaching.join();
  EXPECT_EQ(error->code, EPROTO);
  EXPECT_NE(error->message.find("no server of this version of GoFS"), std::string::npos)
      << error->message;
}

TEST_F(AttachedVolumeTest, the_next_server_is_attached_to_and_what_was_open_is_stale) {
  Volume volume = attach();
  const int fd = volume.open("/file", O_RDWR | O_CREAT).value();
  EXPECT_EQ(volume.pwrite(fd, "kept", 4, 0).value(), 4u);
  EXPECT_EQ(code_of(volume.fsync(fd)), 0);
  const int other = volume.open("/other", O_RDWR | O_CREAT).value();
  end();
  serve();
  EXPECT_EQ(volume.stat("/file")->size_bytes, 4u);
  char byte = 0;
  EXPECT_EQ(code_of(volume.pread(fd, &byte, 1, 0)), ESTALE);
  EXPECT_EQ(code_of(volume.fsync(fd)), ESTALE);
  const int again = volume.open("/file").value();
  EXPECT_NE(again, fd) << "no number means another file than before";
  EXPECT_EQ(volume.pread(again, &byte, 1, 0).value(), 1u);
  EXPECT_EQ(code_of(volume.close(fd)), ESTALE);
  EXPECT_EQ(code_of(volume.close(again)), 0);
  EXPECT_EQ(code_of(volume.close(again)), EBADF);
  EXPECT_EQ(code_of(volume.close(other)), ESTALE);
  EXPECT_EQ(volume.warnings().size(), 1u);
  EXPECT_EQ(volume.warnings().size(), 0u);
  // /other was never synced.
  EXPECT_EQ(code_of(volume.sync()), ESTALE);
  EXPECT_EQ(code_of(volume.sync()), 0);
  end();
  serve();
  EXPECT_EQ(code_of(volume.stat("/file")), 0);
  EXPECT_EQ(code_of(volume.sync()), 0) << "nothing has changed since";
}

TEST_F(AttachedVolumeTest, sync_and_unmount_say_that_a_server_was_killed_while_nothing_was_asked) {
  for (const bool unmounts : {false, true}) {
    std::optional<ssd::Descriptor> connection;
    Volume volume = attach_alone(connection);
    const int fd = volume.open("/file", O_RDWR | O_CREAT).value();
    EXPECT_EQ(code_of(volume.sync()), 0);
    EXPECT_EQ(volume.pwrite(fd, "lost", 4, 0).value(), 4u);
    connection.reset();
    listen();
    EXPECT_EQ(code_of(unmounts ? volume.unmount() : volume.sync()), ESTALE);
    EXPECT_EQ(code_of(unmounts ? volume.unmount() : volume.sync()), 0);
  }
}

TEST_F(AttachedVolumeTest, a_server_that_is_killed_after_a_sync_has_lost_nothing) {
  std::optional<ssd::Descriptor> connection;
  Volume volume = attach_alone(connection);
  EXPECT_EQ(code_of(volume.mkdir("/d")), 0);
  EXPECT_EQ(code_of(volume.sync()), 0);
  EXPECT_EQ(code_of(volume.stat("/d")), 0);
  connection.reset();
  listen();
  EXPECT_EQ(code_of(volume.sync()), 0);
}

TEST_F(AttachedVolumeTest, a_call_that_may_end_servers_is_made_twice_at_most) {
  struct Case {
    bool changes;
    int killed;  // servers, of three
  };
  for (const Case& one : {Case{false, 2}, Case{true, 1}}) {
    Volume volume = attach();
    EXPECT_EQ(code_of(volume.stat("/")), 0);
    server_.reset();
    std::atomic<int> killed{0};
    std::thread servers([&] {
      while (killed < 3) serve_and_be_killed(killed);
    });
    const int error = one.changes ? code_of(volume.open("/file", O_RDWR | O_CREAT, 0600))
                                  : code_of(volume.stat("/"));
    EXPECT_EQ(error, ESTALE);
    EXPECT_EQ(killed, one.killed);
    while (killed < 3) {
      const ChannelEnds ends = attach_at(path_);
      ring_bell(ends.bell);
      pollfd waiting{ends.connection.get(), POLLRDHUP, 0};
      EXPECT_EQ(::poll(&waiting, 1, 10'000), 1);
    }
    servers.join();
    listen();
    EXPECT_EQ(code_of(volume.stat("/")), 0);
  }
}

TEST_F(AttachedVolumeTest, a_call_waits_for_the_next_server_and_not_for_ever) {
  Volume patient = attach();
  Volume hasty = attach(50 * kMillisecond);
  end();
  listening_.reset();
  const auto refused = hasty.stat("/");
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, ENOTCONN);
  EXPECT_NE(refused.error().message.find("no server is there"), std::string::npos);
  std::thread another([this] {
    std::this_thread::sleep_for(std::chrono::milliseconds(200));
    listening_.emplace(path_, 0600u);
    serve();
  });
  EXPECT_EQ(code_of(patient.mkdir("/waited")), 0);
  another.join();
  EXPECT_EQ(code_of(hasty.access("/waited", F_OK)) % ENOTCONN, 0) << "or a second later";
}

TEST_F(AttachedVolumeTest, signals_disturb_neither_questions_nor_another_attachment) {
  Volume volume = attach();
  answers_after_ = std::chrono::milliseconds(30);
  const Interruptions interruptions;
  for (int i = 0; i < 5; ++i) {
    EXPECT_EQ(volume.info().uuid, volume_->info().uuid);
    EXPECT_EQ(code_of(volume.collect_garbage()), 0);
  }
  for (int i = 0; i < 3; ++i) {
    end();
    // Meanwhile the client is in the queue.
    std::thread another([this] {
      std::this_thread::sleep_for(std::chrono::milliseconds(100));
      serve();
    });
    EXPECT_EQ(code_of(volume.stat("/")), 0);
    another.join();
    EXPECT_EQ(volume.info().uuid, volume_->info().uuid);
  }
}

TEST_F(AttachedVolumeTest, threads_go_on_while_servers_come_and_go) {
  Volume volume = attach();
  std::atomic<bool> ending{false};
  std::atomic<uint32_t> wrong{0};
  std::atomic<uint32_t> right{0};
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; ++i) {
    threads.emplace_back([&, i] {
      const std::string path = "/thread" + std::to_string(i);
      char bytes[4] = {};
      while (!ending) {
        const auto fd = volume.open(path, O_RDWR | O_CREAT);
        if (!fd) {
          wrong += fd.error().code != ESTALE;
          continue;
        }
        const auto written = volume.pwrite(*fd, path.data(), sizeof(bytes), 0);
        if (!written) wrong += written.error().code != ESTALE;
        const auto read = volume.pread(*fd, bytes, sizeof(bytes), 0);
        if (!read) wrong += read.error().code != ESTALE;
        if (written && read) wrong += std::string(bytes, 4) != path.substr(0, 4);
        right += written && read;
        (void)volume.close(*fd);
      }
    });
  }
  for (int turn = 0; turn < 10; ++turn) {
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
    end();
    serve();
  }
  const uint32_t before = right;
  while (right == before) std::this_thread::yield();
  ending = true;
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(wrong, 0u);
  expect_sound();
}

TEST_F(AttachedVolumeTest, a_child_of_fork_has_nothing_of_it) {
  Volume volume = attach();
  const int fd = volume.open("/file", O_RDWR | O_CREAT).value();
  const pid_t child = ::fork();
  if (child == 0) {
    int failures = 0;
    failures += code_of(volume.stat("/")) != ENODEV;
    failures += code_of(volume.sync()) != ENODEV;
    failures += code_of(volume.close(fd)) != ENODEV;
    failures += code_of(volume.unmount()) != ENODEV;
    failures += volume.warnings().size() != 1;
    { const Volume gone = std::move(volume); }
    ::_exit(failures);
  }
  int status = 0;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
  EXPECT_EQ(volume.pwrite(fd, "x", 1, 0).value(), 1u) << "the parent goes on";
}

/// Runs `part` in a child; whether it has ended with success. One that hangs is killed.
template <typename Part>
bool is_well_in_a_child(const Part& part) {
  const pid_t child = ::fork();
  if (child == 0) {
    ::alarm(30);
    ::_exit(part() ? 0 : 1);
  }
  int status = 0;
  return ::waitpid(child, &status, 0) == child && status == 0;
}

TEST_F(AttachedVolumeTest, a_client_goes_although_a_child_has_a_copy_of_its_connection) {
  for (const bool unmounts : {false, true}) {
    std::optional<Volume> volume(attach());
    int ends[2] = {-1, -1};
    ASSERT_EQ(::pipe(ends), 0);
    const pid_t child = ::fork();
    if (child == 0) {
      ::alarm(60);
      ::close(ends[1]);
      char byte = 0;
      (void)!::read(ends[0], &byte, 1);
      ::_exit(0);
    }
    ::close(ends[0]);
    if (unmounts) {
      EXPECT_EQ(code_of(volume->unmount()), 0);
    } else {
      volume.reset();
    }
    const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(20);
    while (channels_->open_channels() != 0 && std::chrono::steady_clock::now() < end) {
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
    EXPECT_EQ(channels_->open_channels(), 0u);
    ::close(ends[1]);
    EXPECT_EQ(::waitpid(child, nullptr, 0), child);
  }
}

TEST_F(AttachedVolumeTest, a_child_of_fork_waits_for_no_lock_of_its_parent) {
  Volume volume = attach();
  const int fd = volume.open("/file", O_RDWR | O_CREAT).value();
  server_.reset();
  // It has the lock until there is a server again.
  std::thread attaching([&] { EXPECT_EQ(code_of(volume.stat("/")), 0); });
  std::this_thread::sleep_for(std::chrono::milliseconds(200));
  EXPECT_TRUE(is_well_in_a_child([&] {
    std::string bytes(100, 'x');
    int wrong = code_of(volume.read_ranges({{fd, bytes.data(), bytes.size(), 0}})) != ENODEV;
    wrong += code_of(volume.pread(fd, bytes.data(), bytes.size(), 0)) != ENODEV;
    wrong += code_of(volume.pwrite(fd, bytes.data(), bytes.size(), 0)) != ENODEV;
    wrong += code_of(volume.batch_create("/", {{"one", "1", 1}})) != ENODEV;
    wrong += code_of(volume.collect_garbage()) != ENODEV;
    wrong += code_of(volume.memory()) != ENODEV;
    wrong += code_of(volume.unmount()) != ENODEV;
    wrong += bool(volume.device());
    (void)volume.info();
    (void)volume.warnings();
    { const Volume gone = std::move(volume); }
    return wrong == 0;
  }));
  listen();
  attaching.join();
}

}  // namespace
}  // namespace gofs::host
