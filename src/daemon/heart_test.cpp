// SPDX-License-Identifier: Apache-2.0
//
// What a keeper hears of a worker that works, that has hung, and that has a reason to be slow.
#include "daemon/heart.h"

#include <gtest/gtest.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <optional>
#include <string>
#include <thread>

#include "daemon/keeper_line.h"

namespace gofs::daemon {
namespace {

using std::chrono::milliseconds;

constexpr milliseconds kPeriod{1};
// In which a heart that beats is heard, and one that does not would have beaten many times.
constexpr int kHeardWithinMs = 60'000;
constexpr milliseconds kLong = 50 * kPeriod;

class HeartTest : public ::testing::Test {
 protected:
  HeartTest() {
    int ends[2] = {-1, -1};
    EXPECT_EQ(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends), 0);
    keeper_ = ssd::Descriptor(ends[0]);
    worker_ = ssd::Descriptor(ends[1]);
    heart_.emplace(worker_, kPeriod);
  }
  /// Whether it beats from now on.
  bool beats() {
    forget();
    pollfd look{keeper_.get(), POLLIN, 0};
    Word word{};
    return ::poll(&look, 1, kHeardWithinMs) == 1 && ::read(keeper_.get(), &word, 1) == 1 &&
           word == Word::kAlive;
  }
  bool is_silent() {
    std::this_thread::sleep_for(kLong);  // it may be about to beat
    forget();
    std::this_thread::sleep_for(kLong);
    pollfd look{keeper_.get(), POLLIN, 0};
    return ::poll(&look, 1, 0) == 0;
  }
  Heart::Sign sign(milliseconds patience) {
    return {[this] { return progress_.load(); }, patience};
  }

  ssd::Descriptor keeper_;
  ssd::Descriptor worker_;
  std::atomic<uint64_t> progress_{0};
  std::optional<Heart> heart_;

 private:
  void forget() {
    char bytes[4096];
    while (::recv(keeper_.get(), bytes, sizeof(bytes), MSG_DONTWAIT) > 0) {
    }
  }
};

TEST_F(HeartTest, it_beats_while_nobody_judges) { EXPECT_TRUE(beats()); }

TEST_F(HeartTest, it_is_silent_where_nothing_goes_on) {
  {
    const Heart::Judged judged(*heart_, sign({}));
    EXPECT_TRUE(is_silent());
    ++progress_;
    pollfd look{keeper_.get(), POLLIN, 0};
    EXPECT_EQ(::poll(&look, 1, kHeardWithinMs), 1) << "something goes on";
    EXPECT_TRUE(is_silent());
  }
  EXPECT_TRUE(beats()) << "nobody judges any more";
}

TEST_F(HeartTest, it_has_patience_for_what_takes_long) {
  const Heart::Judged judged(*heart_, sign(std::chrono::hours(1)));
  EXPECT_TRUE(beats());
}

TEST_F(HeartTest, it_waits_for_no_keeper) {
  const std::string page(4096, '.');
  while (::send(worker_.get(), page.data(), page.size(), MSG_DONTWAIT) > 0) {
  }
  heart_.reset();
  EXPECT_FALSE(tell_keeper(worker_, Word::kAlive)) << "the keeper does not read";
  keeper_ = ssd::Descriptor();
  heart_.emplace(worker_, kPeriod);
  std::this_thread::sleep_for(kLong);  // no signal ends this process
}

}  // namespace
}  // namespace gofs::daemon
