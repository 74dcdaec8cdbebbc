// SPDX-License-Identifier: Apache-2.0
//
// Backends that take long, or refuse launches: what may not be done meanwhile.
#include <fcntl.h>
#include <gtest/gtest.h>

#include <atomic>
#include <cerrno>
#include <chrono>
#include <thread>

#include "gofs/volume.hpp"
#include "host/backend_for_test.h"
#include "host/image/fsck_for_test.h"
#include "host/image/mkfs.h"
#include "host/serve/channel_server.h"
#include "host/serve/serve_bodies.h"
#include "host/serve/served_volume.h"
#include "kernels/bodies.h"
#include "kernels/clean.h"
#include "kernels/serve.h"

namespace gofs::host {
namespace {

using namespace std::chrono_literals;

/// What a test and its backend tell each other.
struct Watchers {
  std::atomic<bool> cleaning{false};
  std::atomic<bool> go{false};
  std::atomic<bool> unmounted_meanwhile{false};
  std::atomic<int> turns{0};
  std::atomic<int> turns_over{0};
  std::atomic<bool> holds{false};
  std::atomic<bool> refuses{false};
};

class HoldingBackend final : public BackendForTest {
 public:
  explicit HoldingBackend(Watchers& watchers) : BackendForTest(4), watchers_(watchers) {}
  bool run(const kernels::Body& body, const kernels::Grid& grid, void* params) override {
    const bool round =
        &body == &kernels::bodies::kClean &&
        static_cast<kernels::CleanParams*>(params)->step == kernels::CleanStep::kRound;
    if (round) {
      watchers_.cleaning = true;
      while (!watchers_.go) std::this_thread::sleep_for(1ms);
      watchers_.cleaning = false;
    }
    if (watchers_.refuses && &body == &kernels::bodies::kChannel) return false;
    if (&body == &kernels::bodies::kUnmount && watchers_.cleaning)
      watchers_.unmounted_meanwhile = true;
    return BackendForTest::run(body, grid, params);
  }
  std::unique_ptr<kernels::Begun> begin_apart(const kernels::Body& body, const kernels::Grid& grid,
                                              void* params) override {
    auto begun = BackendForTest::begin_apart(body, grid, params);
    if (&body != &kernels::bodies::kServeTurn) return begun;
    ++watchers_.turns;
    return std::make_unique<Held>(std::move(begun), watchers_);
  }

 private:
  struct Held final : kernels::Begun {
    Held(std::unique_ptr<kernels::Begun> its, Watchers& tells)
        : begun(std::move(its)), watchers(tells) {}
    bool is_over() override { return begun->is_over(); }
    bool wait() override {
      const bool ran = begun->wait();
      if (!told) ++watchers.turns_over;
      told = true;
      while (watchers.holds) std::this_thread::sleep_for(1ms);
      return ran;
    }
    std::unique_ptr<kernels::Begun> begun;
    Watchers& watchers;
    bool told = false;
  };
  Watchers& watchers_;
};

std::unique_ptr<VolumeState> mounted(const image::TemporaryPath& image, Watchers& watchers) {
  image::VolumeOptions options;
  options.flush = false;
  EXPECT_TRUE(image::make_volume(image.path(), uint64_t{128} << 20, options).ok());
  auto state = VolumeState::mount(
      image.path() + "?media=memory&descriptors=512", {.backend = "cpu", .read_only = false},
      MountKind::kVolume, [&watchers](const std::string&, std::string&) {
        return std::unique_ptr<kernels::Backend>(std::make_unique<HoldingBackend>(watchers));
      });
  EXPECT_TRUE(state);
  return std::move(*state);
}

TEST(HeldBackend, unmount_waits_for_collect_garbage) {
  Watchers watchers;
  const image::TemporaryPath image;
  auto volume = mounted(image, watchers);
  std::thread cleaner([&] {
    const auto report = volume->collect_garbage({});
    EXPECT_TRUE(report || report.error().code == ENODEV) << report.error().message;
  });
  while (!watchers.cleaning) std::this_thread::yield();
  std::atomic<bool> done{false};
  std::thread ender([&] {
    EXPECT_TRUE(volume->unmount());
    done = true;
  });
  std::this_thread::sleep_for(500ms);
  EXPECT_FALSE(done) << "unmount() has returned while cleaning is under way";
  EXPECT_FALSE(watchers.unmounted_meanwhile);
  watchers.go = true;
  cleaner.join();
  ender.join();
  const auto after = volume->collect_garbage({});
  EXPECT_EQ(after ? 0 : after.error().code, ENODEV);
}

TEST(HeldBackend, a_channel_for_kernels_comes_with_a_turn_that_goes_on) {
  Watchers watchers;
  const image::TemporaryPath image;
  auto volume = mounted(image, watchers);
  const auto served_volume = served(*volume);
  {
    ChannelServer channels(served_volume, {});
    auto first = channels.open({});
    ASSERT_TRUE(first);
    auto k = channels.open_for_kernels(first->number);
    ASSERT_TRUE(k);
    watchers.holds = true;  // the thread is slow to see the end of a turn
    (void)channels.begin_close(k->number, true);
    while (!channels.finish_close(k->number)) std::this_thread::sleep_for(1ms);
    while (watchers.turns_over != watchers.turns)
      std::this_thread::sleep_for(1ms);  // told to end, and has
    std::thread later([&] {
      std::this_thread::sleep_for(300ms);
      watchers.holds = false;
    });
    auto again = channels.open_for_kernels(first->number);
    ASSERT_TRUE(again);
    EXPECT_FALSE(watchers.holds) << "no turn has begun yet, and a client's kernels begin";
    later.join();
  }
  EXPECT_TRUE(volume->unmount());
}

TEST(HeldBackend, what_could_not_be_closed_is_no_other_clients) {
  Watchers watchers;
  const image::TemporaryPath image;
  auto volume = mounted(image, watchers);
  const std::string root = "/";
  EXPECT_EQ(volume->call({.verb = request::Verb::kChmod, .path = &root, .mode = 01777}).result, 0);
  const auto served_volume = served(*volume);
  {
    ChannelServer channels(served_volume, {});
    Newcomer one;
    one.credentials.uid = one.credentials.gid = 1000;
    auto first = channels.open(one);
    ASSERT_TRUE(first);
    const uint32_t number = first->number;
    int fd = -1;
    {
      ChannelClient client(std::move(first->ends));
      const std::string path = "/secret";
      fd = static_cast<int>(client
                                .call({.verb = request::Verb::kOpen,
                                       .path = &path,
                                       .flags = O_RDWR | O_CREAT,
                                       .mode = 0600})
                                .result);
      ASSERT_GE(fd, 0);
      const char text[] = "secret";
      EXPECT_EQ(
          client.call({.verb = request::Verb::kPwrite, .descriptor = fd, .input = text, .bytes = 6})
              .result,
          6);
    }
    watchers.refuses = true;
    (void)channels.begin_close(number, true);
    for (int tries = 0; tries < 11'000; ++tries) ASSERT_FALSE(channels.finish_close(number));
    watchers.refuses = false;
    Newcomer two;
    two.credentials.uid = two.credentials.gid = 2000;
    auto second = channels.open(two);
    ASSERT_TRUE(second);
    EXPECT_NE(second->number, number);
    ChannelClient client(std::move(second->ends));
    char found[8] = {};
    const int64_t got =
        client.call({.verb = request::Verb::kPread, .descriptor = fd, .buffer = found, .bytes = 6})
            .result;
    EXPECT_EQ(got, -EBADF) << "another user's file: " << found;
    EXPECT_TRUE(channels.finish_close(number));
  }
  EXPECT_TRUE(volume->unmount());
}

}  // namespace
}  // namespace gofs::host
