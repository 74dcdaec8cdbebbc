// SPDX-License-Identifier: Apache-2.0
//
// The program gofsd: its keeper, workers that are killed, its ends, the commands of gofs at its
// socket, and what it refuses.
#include <sys/file.h>
#include <sys/stat.h>

#include "daemon_for_test.hpp"
#include "ssd/descriptor.h"

namespace gofs::daemon_test {
namespace {

using cli_test::Answer;
using cli_test::run_gofs;

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

}  // namespace
}  // namespace gofs::daemon_test
