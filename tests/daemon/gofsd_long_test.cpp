// SPDX-License-Identifier: Apache-2.0
#include <random>

#include "daemon_for_test.hpp"

namespace gofs::daemon_test {
namespace {

TEST(Gofsd, a_hundred_workers_are_killed_under_load) { kill_workers_under_load(100); }

TEST(Gofsd, a_thousand_clients_of_three_users_are_killed) {
  Daemon daemon;
  daemon.start({"--mode", "666"});
  ASSERT_TRUE(daemon.has_said("is served at"));
  auto volume = Volume::attach(daemon.socket());
  ASSERT_TRUE(volume) << volume.error().message;
  ASSERT_TRUE(volume->chmod("/", 01777));
  const auto actor = [&](uint32_t number) {
    const std::string program =
        std::string(std::getenv("GOFS_BUILD_DIR")) + "/src/host/serve/channel_actor";
    const ssd::ChildCommand command{
        program,
        {daemon.socket(), std::to_string(1000 + number % 3), std::to_string(number), "1000000000"},
        {},
        -1};
    return std::make_unique<ssd::ChildProcess>(command);
  };
  std::mt19937 random(7);
  std::vector<std::unique_ptr<ssd::ChildProcess>> actors(8);
  for (uint32_t turn = 0; turn < 1000; ++turn) {
    auto& one = actors[turn % actors.size()];
    if (one != nullptr) {
      ASSERT_TRUE(one->running()) << one->state();
    }
    one = actor(turn);
    std::this_thread::sleep_for(milliseconds(random() % 20));
  }
  actors.clear();
  // This process has two connections: one is for the question.
  EXPECT_TRUE(comes_true([&] { return daemon.status().clients.size() == 2; }));
  EXPECT_TRUE(volume->mkdir("/others_go_on"));
  daemon.stop();
}

}  // namespace
}  // namespace gofs::daemon_test
