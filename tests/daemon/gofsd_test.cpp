// SPDX-License-Identifier: Apache-2.0
//
// The program gofsd: its keeper, workers that are killed, its ends, the commands of gofs at its
// socket, and what it refuses.
#include <sys/file.h>
#include <sys/ptrace.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include <filesystem>
#include <fstream>
#include <optional>
#include <string>
#include <thread>
#include <utility>

#include "daemon_for_test.hpp"
#include "ssd/descriptor.h"

namespace gofs::daemon_test {
namespace {

using cli_test::Answer;
using cli_test::run_gofs;

pid_t parent_of(pid_t process) {
  std::ifstream status("/proc/" + std::to_string(process) + "/status");
  for (std::string word; status >> word;) {
    pid_t parent = 0;
    if (word == "PPid:" && status >> parent) return parent;
  }
  return 0;
}

/// Whether signals have come to it that it has not taken yet.
bool has_signals(pid_t process) {
  std::ifstream status("/proc/" + std::to_string(process) + "/status");
  for (std::string word; status >> word;) {
    uint64_t signals = 0;
    if (word == "ShdPnd:" && status >> std::hex >> signals) return signals != 0;
  }
  return false;
}

TEST(Gofsd, commands_take_its_socket_for_a_volume) {
  Daemon daemon;
  daemon.start({"--mode", "640"});
  ASSERT_TRUE(daemon.has_said("is served at"));
  const std::string socket = daemon.socket();
  struct stat status {};
  ASSERT_EQ(::stat(socket.c_str(), &status), 0);
  EXPECT_EQ(status.st_mode & 0777, 0640u);
  const image::TemporaryPath file;
  { std::ofstream(file.path()) << "what is in it\n"; }
  const auto run = [&](std::vector<std::string> words) {
    const Answer answer = run_gofs(words);
    EXPECT_EQ(answer.status, 0) << words.front() << ": " << answer.err;
    return answer.out;
  };
  run({"mkdir", socket, "-p", "/a/b"});
  run({"put", socket, file.path(), "/a/b/file"});
  EXPECT_EQ(run({"cat", socket, "/a/b/file"}), "what is in it\n");
  run({"ln", socket, "-s", "b/file", "/a/link"});
  EXPECT_EQ(run({"ls", socket, "-R", "/"}), "/:\na\n\n/a:\nb\nlink\n\n/a/b:\nfile\n");
  EXPECT_NE(run({"ls", socket, "-l", "/a"}).find("link -> b/file"), std::string::npos);
  EXPECT_NE(run({"ls", socket, "--json", "-l", "/a/b"}).find("\"xattrs\""), std::string::npos);
  run({"chmod", socket, "-R", "u=rwX,go=", "/a"});
  run({"chown", socket, "-R", "7:8", "/a"});
  run({"touch", socket, "-R", "-t", "1700000000.5", "/a"});
  const std::string about = run({"stat", socket, "/a/b/file"});
  EXPECT_NE(about.find("0600"), std::string::npos) << about;
  EXPECT_NE(about.find("uid 7, gid 8"), std::string::npos) << about;
  EXPECT_EQ(run({"sum", socket, "-r", "/"}),
            "c9c18e299b9c70c98d7822e324408db924840446681800bd868c0436aac94154  /a/b/file\n");
  const image::TemporaryPath copy;
  run({"get", socket, "/a/b/file", copy.path()});
  EXPECT_EQ(cli_test::read_file(copy.path()), "what is in it\n");
  run({"truncate", socket, "/a/b/file", "4"});
  run({"mv", socket, "/a/b/file", "/moved"});
  EXPECT_EQ(run({"cat", socket, "/moved"}), "what");
  EXPECT_NE(run({"info", socket}).find("mounted by a server"), std::string::npos);
  EXPECT_NE(run({"stat", socket, "--watch", "0.01", "--count", "1", "--json"})
                .find("\"open\":{\"succeeded\":"),
            std::string::npos);
  run({"gc", socket});
  run({"rm", socket, "-r", "/a"});
  EXPECT_EQ(run({"ls", socket}), "moved\n");
  EXPECT_NE(run({"ctl", socket, "status"}).find("clients"), std::string::npos);
  for (const char* command : {"check", "mkfs"}) {
    const Answer answer = run_gofs({command, socket});
    EXPECT_EQ(answer.status, 1);
    EXPECT_NE(answer.err.find("a server has the volume mounted"), std::string::npos) << answer.err;
  }
  // Nobody else has the image meanwhile.
  EXPECT_EQ(run_gofs({"ls", daemon.image()}).status, 1);
  daemon.stop();
  EXPECT_EQ(run_gofs({"cat", daemon.image(), "/moved"}).out, "what");
}

TEST(Gofsd, another_worker_takes_over_what_was_durable) { kill_workers_under_load(8); }

TEST(Gofsd, nobody_gets_the_image_between_two_workers) {
  Daemon daemon;
  daemon.start();
  ASSERT_TRUE(daemon.has_said("is served at"));
  auto volume = Volume::attach(daemon.socket());
  ASSERT_TRUE(volume);
  std::atomic<bool> ending{false};
  std::atomic<uint64_t> tries{0};
  std::atomic<uint64_t> got{0};
  std::thread taker([&] {
    const ssd::Descriptor image = ssd::Descriptor::open(daemon.image(), O_RDWR);
    for (; !ending; ++tries) {
      if (::flock(image.get(), LOCK_EX | LOCK_NB) != 0) continue;
      ++got;
      (void)::flock(image.get(), LOCK_UN);
    }
  });
  for (uint32_t i = 0; i < 5; ++i) {
    daemon.kill_worker();
    EXPECT_TRUE(comes_true([&] { return bool(volume->stat("/")); }));
  }
  ending = true;
  taker.join();
  EXPECT_GT(tries.load(), 0u);
  EXPECT_EQ(got.load(), 0u);
  daemon.stop();
}

TEST(Gofsd, ends_by_a_signal_and_with_its_keeper) {
  Daemon daemon;
  daemon.start();
  ASSERT_TRUE(daemon.has_said("is served at"));
  auto volume = Volume::attach(daemon.socket(), {.attach_timeout_ns = 1'000'000});
  ASSERT_TRUE(volume);
  EXPECT_TRUE(volume->mkdir("/kept"));
  // What a keeper that is killed leaves: a worker, which ends as if it were asked to.
  daemon.keeper().kill();
  EXPECT_TRUE(comes_true([&] { return run_gofs({"ls", daemon.image()}).out == "kept\n"; }));
  daemon.expect_sound();
  EXPECT_EQ(volume->stat("/kept").error().code, ENOTCONN);
  // And a socket, which is replaced.
  daemon.start();
  ASSERT_TRUE(daemon.has_said("is served at"));
  EXPECT_TRUE(comes_true([&] { return bool(volume->stat("/kept")); })) << "the next one is found";
  daemon.stop();
}

TEST(Gofsd, a_worker_that_is_stopped_is_ended_and_another_takes_over) {
  Daemon daemon;
  daemon.start({"--hang", "5"});
  ASSERT_TRUE(daemon.has_said("is served at"));
  auto volume = Volume::attach(daemon.socket());
  ASSERT_TRUE(volume);
  const auto file = volume->open("/kept", O_RDWR | O_CREAT, 0600);
  ASSERT_TRUE(file && volume->fsync(*file));
  const int32_t stopped = daemon.status().pid;
  ASSERT_EQ(::kill(stopped, SIGSTOP), 0);
  EXPECT_TRUE(daemon.has_said("the worker has given no sign of life for 5 s, and is ended"));
  EXPECT_TRUE(daemon.has_said("is served again")) << daemon.said();
  EXPECT_TRUE(comes_true([&] { return bool(volume->stat("/kept")); })) << "it attaches again";
  EXPECT_EQ(volume->fsync(*file).error().code, ESTALE);
  EXPECT_NE(daemon.status().pid, stopped);
  daemon.stop();
}

TEST(Gofsd, a_worker_whose_threads_hang_is_ended_and_one_that_has_nothing_to_do_is_not) {
  Daemon daemon;
  const image::TemporaryPath hangs;
  daemon.start_as({Daemon::built("tests/daemon/hanging_gofsd"),
                   {daemon.image(), "--socket", daemon.socket(), "--hang", "5"},
                   {"GOFS_HANG_FILE=" + hangs.path()},
                   -1});
  ASSERT_TRUE(daemon.has_said("is served at"));
  auto volume = Volume::attach(daemon.socket());
  ASSERT_TRUE(volume);
  EXPECT_TRUE(volume->mkdir("/kept"));
  EXPECT_TRUE(volume->sync());
  const int32_t first = daemon.status().pid;
  std::this_thread::sleep_for(std::chrono::seconds(6));
  EXPECT_EQ(daemon.status().pid, first) << "it had nothing to do: " << daemon.said();
  { std::ofstream(hangs.path()) << first; }
  EXPECT_TRUE(daemon.has_said("the worker has given no sign of life for 5 s, and is ended"));
  EXPECT_TRUE(daemon.has_said("was ended by signal 9 (Killed); another is started"));
  EXPECT_TRUE(comes_true([&] { return bool(volume->stat("/kept")); })) << daemon.said();
  daemon.stop();
}

/// A daemon whose worker has been asked to end by a client, and hangs while it does.
class EndingDaemon {
 public:
  EndingDaemon() {
    daemon_.start_as({Daemon::built("tests/daemon/hanging_gofsd"),
                      {daemon_.image(), "--socket", daemon_.socket()},
                      {"GOFS_HANG_AT_END_FILE=" + hangs_.path()},
                      -1});
    EXPECT_TRUE(daemon_.has_said("is served at"));
    auto volume = Volume::attach(daemon_.socket());
    EXPECT_TRUE(volume);
    client_.emplace(std::move(*volume));
    EXPECT_TRUE(client_->mkdir("/kept"));
    const int32_t worker = daemon_.status().pid;
    keeper_ = parent_of(worker);
    { std::ofstream(hangs_.path()) << worker; }
    stop_ = std::thread([this] { stopped_ = run_gofs({"ctl", daemon_.socket(), "stop"}); });
    EXPECT_TRUE(comes_true([&] { return ::access(told().c_str(), F_OK) == 0; }));
    // The keeper has been told just before, and has time to hear it.
    std::this_thread::sleep_for(milliseconds(100));
  }
  ~EndingDaemon() {
    go_on();
    (void)::unlink(told().c_str());
  }
  /// To the keeper, which passes it on.
  void signal(int number) const {
    EXPECT_EQ(::kill(keeper_, number), 0);
    EXPECT_TRUE(comes_true([&] { return !has_signals(keeper_); }));
  }
  /// It hangs no longer. What is said to who has asked for the end.
  Answer go_on() {
    (void)::unlink(hangs_.path().c_str());
    if (stop_.joinable()) stop_.join();
    return stopped_;
  }
  /// How the keeper has ended.
  std::string end() {
    EXPECT_TRUE(comes_true([&] { return !daemon_.keeper().running(); })) << daemon_.said();
    return daemon_.keeper().state();
  }
  const Daemon& daemon() const { return daemon_; }

 private:
  std::string told() const { return hangs_.path() + ".hangs"; }

  Daemon daemon_;
  const image::TemporaryPath hangs_;
  std::optional<Volume> client_;
  pid_t keeper_ = 0;
  Answer stopped_;
  std::thread stop_;
};

TEST(Gofsd, a_signal_lets_a_worker_end_that_is_being_stopped) {
  EndingDaemon ending;
  ending.signal(SIGTERM);
  const Answer stopped = ending.go_on();
  EXPECT_EQ(stopped.status, 0) << stopped.err;
  EXPECT_EQ(ending.end(), "ended with status 0") << ending.daemon().said();
  EXPECT_EQ(run_gofs({"ls", ending.daemon().image()}).out, "kept\n") << "it was not synced before";
  ending.daemon().expect_sound();
}

TEST(Gofsd, a_second_signal_kills_a_worker_that_does_not_end) {
  EndingDaemon ending;
  ending.signal(SIGTERM);
  ending.signal(SIGTERM);
  EXPECT_EQ(ending.end(), "ended with status 1") << "while the worker hangs";
  EXPECT_NE(ending.go_on().status, 0);
  EXPECT_EQ(run_gofs({"ls", ending.daemon().image()}).out, "") << "it was not synced";
  ending.daemon().expect_sound();
}

TEST(Gofsd, a_worker_that_a_debugger_has_stopped_is_left_alone) {
  Daemon daemon;
  daemon.start({"--hang", "5"});
  ASSERT_TRUE(daemon.has_said("is served at"));
  const int32_t worker = daemon.status().pid;
  std::vector<pid_t> threads;
  for (const auto& one :
       std::filesystem::directory_iterator("/proc/" + std::to_string(worker) + "/task")) {
    threads.push_back(std::stoi(one.path().filename()));
  }
  for (const pid_t thread : threads) {
    if (::ptrace(PTRACE_SEIZE, thread, 0, 0) != 0) GTEST_SKIP() << "ptrace() is not allowed here";
    ASSERT_EQ(::ptrace(PTRACE_INTERRUPT, thread, 0, 0), 0);
  }
  EXPECT_TRUE(daemon.has_said("a debugger has the worker"));
  for (const pid_t thread : threads) {
    ASSERT_EQ(::waitpid(thread, nullptr, __WALL), thread);
    ASSERT_EQ(::ptrace(PTRACE_DETACH, thread, 0, 0), 0);
  }
  EXPECT_EQ(daemon.status().pid, worker);
  daemon.stop();
}

TEST(Gofsd, goes_on_where_nobody_reads_what_it_says) {
  int ends[2] = {-1, -1};
  ASSERT_EQ(::pipe2(ends, O_CLOEXEC), 0);
  ssd::Descriptor reads(ends[0]);
  const ssd::Descriptor writes(ends[1]);
  // It is full.
  const std::string page(4096, '.');
  ASSERT_EQ(::fcntl(writes.get(), F_SETFL, O_NONBLOCK), 0);
  while (::write(writes.get(), page.data(), page.size()) > 0) {
  }
  ASSERT_EQ(::fcntl(writes.get(), F_SETFL, 0), 0);
  Daemon daemon;
  daemon.start_as({Daemon::built("src/daemon/gofsd"),
                   {daemon.image(), "--socket", daemon.socket()},
                   {},
                   writes.get()});
  ASSERT_TRUE(daemon.is_served_by_another(0));
  const int32_t first = daemon.status().pid;
  daemon.kill_worker();
  EXPECT_TRUE(daemon.is_served_by_another(first));
  reads = ssd::Descriptor();
  const int32_t second = daemon.status().pid;
  daemon.kill_worker();
  EXPECT_TRUE(daemon.is_served_by_another(second));
  daemon.stop();
}

TEST(Gofsd, tries_again_where_no_worker_can_be_started) {
  Daemon daemon;
  daemon.start();
  ASSERT_TRUE(daemon.has_said("is served at"));
  const int32_t first = daemon.status().pid;
  const pid_t keeper = parent_of(first);
  rlimit before{};
  ASSERT_EQ(::prlimit(keeper, RLIMIT_NOFILE, nullptr, &before), 0);
  const rlimit none{3, before.rlim_max};
  ASSERT_EQ(::prlimit(keeper, RLIMIT_NOFILE, &none, nullptr), 0);
  daemon.kill_worker();
  EXPECT_TRUE(daemon.has_said("no worker can be started, which is tried again"));
  ASSERT_EQ(::prlimit(keeper, RLIMIT_NOFILE, &before, nullptr), 0);
  EXPECT_TRUE(daemon.has_said("is served again")) << daemon.said();
  EXPECT_TRUE(daemon.is_served_by_another(first));
  daemon.stop();
}

TEST(Gofsd, takes_more_clients_than_a_session_has_descriptors_for) {
  rlimit before{};
  ASSERT_EQ(::getrlimit(RLIMIT_NOFILE, &before), 0);
  const rlimit few{256, before.rlim_max};
  ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &few), 0);
  Daemon daemon;
  daemon.start({"--clients", "200"});
  const rlimit many{before.rlim_max, before.rlim_max};
  ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &many), 0);
  ASSERT_TRUE(daemon.has_said("is served at"));
  std::vector<host::ChannelEnds> clients;
  for (int i = 0; i < 150; ++i) clients.push_back(host::attach_at(daemon.socket()));
  EXPECT_GE(daemon.status().clients.size(), 151u);
  clients.clear();
  daemon.stop();
  ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &before), 0);
}

TEST(Gofsd, drains) {
  Daemon daemon;
  daemon.start();
  ASSERT_TRUE(daemon.has_said("is served at"));
  auto volume = Volume::attach(daemon.socket());
  ASSERT_TRUE(volume);
  EXPECT_EQ(run_gofs({"ctl", daemon.socket(), "drain"}).status, 0);
  EXPECT_EQ(Volume::attach(daemon.socket()).error().code, ECONNREFUSED);
  EXPECT_TRUE(volume->mkdir("/still")) << "who was there goes on";
  EXPECT_NE(run_gofs({"ctl", daemon.socket(), "status", "--json"}).out.find("\"draining\": true"),
            std::string::npos);
  daemon.stop();
}

TEST(Gofsd, lets_another_begin_in_its_place_when_it_has_been_stopped) {
  Daemon daemon;
  for (int round = 0; round < 5; ++round) {
    daemon.start();
    ASSERT_TRUE(daemon.has_said("is served at")) << daemon.said();
    EXPECT_EQ(run_gofs({"ctl", daemon.socket(), "stop"}).status, 0);
    EXPECT_NE(::access(daemon.socket().c_str(), F_OK), 0);
  }
}

TEST(Gofsd, says_of_a_file_that_another_client_makes_shorter_that_it_was_not_all_read) {
  constexpr uint64_t kBytes = uint64_t{16} << 20;
  constexpr uint64_t kLeft = uint64_t{9} << 20;  // more than is read at once
  Daemon daemon;
  daemon.start();
  ASSERT_TRUE(daemon.has_said("is served at"));
  auto volume = Volume::attach(daemon.socket());
  ASSERT_TRUE(volume);
  const auto fd = volume->open("/file", O_WRONLY | O_CREAT, 0600);
  ASSERT_TRUE(fd);
  const std::vector<char> ones(kBytes, 1);
  ASSERT_TRUE(volume->pwrite(*fd, ones.data(), kBytes, 0));
  const image::TemporaryPath pipe;
  ::unlink(pipe.path().c_str());
  ASSERT_EQ(::mkfifo(pipe.path().c_str(), 0600), 0);

  Answer answer;
  std::jthread get([&] { answer = run_gofs({"get", daemon.socket(), "/file", pipe.path()}); });
  std::ifstream reader(pipe.path(), std::ios::binary);
  EXPECT_EQ(reader.get(), 1);  // so get has looked at it, and waits for its reader
  ASSERT_TRUE(volume->ftruncate(*fd, kLeft));
  std::ostringstream rest;
  rest << reader.rdbuf();
  get.join();
  EXPECT_EQ(rest.str().size() + 1, kLeft);
  EXPECT_EQ(answer.err, "gofs: /file: has become shorter while it was read\n");
  EXPECT_EQ(answer.status, 1);
  ASSERT_TRUE(volume->close(*fd));
  daemon.stop();
}

TEST(Gofsd, refuses_what_it_cannot_serve) {
  const auto refusal = [](Daemon& daemon) {
    EXPECT_TRUE(comes_true([&] { return !daemon.keeper().running(); }));
    EXPECT_EQ(daemon.keeper().state(), "ended with status 1");
    return daemon.said();
  };
  Daemon daemon;
  daemon.start({}, "/none");
  EXPECT_NE(refusal(daemon).find("/none: No such file"), std::string::npos) << daemon.said();
  daemon.start({}, daemon.image() + "?media=memory");
  EXPECT_NE(refusal(daemon).find("media=hosted"), std::string::npos);
  { std::ofstream(daemon.socket()) << "a file"; }
  daemon.start();
  EXPECT_NE(refusal(daemon).find("File exists"), std::string::npos);
  ::unlink(daemon.socket().c_str());
  daemon.start();
  ASSERT_TRUE(daemon.has_said("is served at"));
  Daemon second;
  second.start({}, daemon.image());
  EXPECT_NE(refusal(second).find("in use"), std::string::npos) << second.said();
  daemon.stop();
}

/// A folder with a nvidia-cuda-mps-control of ours, which notes what it is asked. It runs where a
/// file "runs" is there.
class FakeMps {
 public:
  explicit FakeMps(const std::string& starting) : path_before_(std::getenv("PATH")) {
    const std::string program = folder() + "/nvidia-cuda-mps-control";
    std::filesystem::create_directory(folder());
    std::ofstream(program) << "#!/bin/sh\ncd " << folder() << "\n"
                           << "if [ \"$1\" = -d ]; then echo start >> asked\n"
                           << starting
                           << "\nfi\n"
                              "read -r word\necho \"$word\" >> asked\n[ -e runs ] || exit 1\n"
                              "[ \"$word\" != quit ] || rm runs\n"
                              "[ \"$word\" != get_server_list ] || echo 17\n"
                              "[ \"$word\" != 'get_client_list 17' ] || cat clients 2> no\n"
                              "exit 0\n";
    std::filesystem::permissions(program, std::filesystem::perms::owner_all);
    EXPECT_EQ(::setenv("PATH", (folder() + ":" + path_before_).c_str(), 1), 0);
  }
  ~FakeMps() {
    (void)::setenv("PATH", path_before_.c_str(), 1);
    std::filesystem::remove_all(folder());
  }
  std::string folder() const { return beside_.path() + ".mps"; }
  std::string file(const std::string& name) const { return folder() + "/" + name; }
  std::string asked() const { return cli_test::read_file(file("asked")); }
  bool runs() const { return ::access(file("runs").c_str(), F_OK) == 0; }

 private:
  const std::string path_before_;
  const image::TemporaryPath beside_;
};

/// What gofsd says where it is to serve by a GPU that is not there, and MPS is to be started.
std::string with_mps() {
  Daemon daemon;
  daemon.start({"--backend", "cuda", "--mps"});
  EXPECT_TRUE(comes_true([&] { return !daemon.keeper().running(); }));
  EXPECT_EQ(daemon.keeper().state(), "ended with status 1");
  return daemon.said();
}

TEST(Gofsd, starts_mps_where_it_does_not_run) {
  if (::access("/dev/nvidiactl", F_OK) == 0) GTEST_SKIP() << "there is a GPU";
  {
    const FakeMps mps("touch runs; exit 0");
    EXPECT_EQ(with_mps().find("mps"), std::string::npos);
    EXPECT_EQ(mps.asked(), "start\nget_server_list\nget_client_list 17\nquit\n")
        << "it ends with gofsd";
    EXPECT_FALSE(mps.runs());
  }
  {
    const FakeMps mps("touch runs; exit 0");
    std::ofstream(mps.file("clients")) << "4711\n";
    EXPECT_EQ(with_mps().find("mps"), std::string::npos);
    EXPECT_EQ(mps.asked(), "start\nget_server_list\nget_client_list 17\n")
        << "another program uses it";
    EXPECT_TRUE(mps.runs());
  }
  {
    const FakeMps mps("echo An instance of this daemon is already running; exit 1");
    std::ofstream(mps.file("runs")) << "";
    EXPECT_EQ(with_mps().find("mps"), std::string::npos);
    EXPECT_EQ(mps.asked(), "start\nget_server_list\n") << "one that was found goes on";
    EXPECT_TRUE(mps.runs());
  }
  {
    const FakeMps mps("echo no room; echo for pipes >&2; exit 1");
    const std::string said = with_mps();
    EXPECT_NE(said.find("nvidia-cuda-mps-control -d does not start MPS: no room for pipes"),
              std::string::npos)
        << said;
  }
  {
    const FakeMps mps("");
    EXPECT_EQ(::unlink(mps.file("nvidia-cuda-mps-control").c_str()), 0);
    const std::string said = with_mps();
    EXPECT_NE(said.find("nvidia-cuda-mps-control: No such file"), std::string::npos) << said;
  }
}

}  // namespace
}  // namespace gofs::daemon_test
