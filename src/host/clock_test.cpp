// SPDX-License-Identifier: Apache-2.0
//
// The clock of time stamps: lines that go on as clocks do that drift apart, looks that are not
// exact, a clock that is set, and the clock of a mounted volume.
#include <gtest/gtest.h>

#include <chrono>
#include <cmath>
#include <cstdlib>
#include <random>

#include "host/clock_estimate.h"
#include "host/clock_keeper.h"
#include "host/volume_state.h"
#include "vfs/real_clock.h"

namespace gofs::host {
namespace {

constexpr int64_t kSecondNs = 1'000'000'000;
constexpr int64_t kStartNs = 1'800'000'000 * kSecondNs;
constexpr uint64_t kDeviceStartNs = 77 * static_cast<uint64_t>(kSecondNs);

/// Two clocks, one of which goes `ppm` faster, and looks at them.
class TwoClocks {
 public:
  TwoClocks(double ppm, uint64_t error_ns, uint32_t seed)
      : ppm_(ppm), error_ns_(error_ns), random_(seed) {}
  int64_t realtime_ns(double seconds) const {
    return kStartNs + std::llround(seconds * (1 + ppm_ * 1e-6) * kSecondNs);
  }
  static uint64_t device_ns(double seconds) {
    return kDeviceStartNs + static_cast<uint64_t>(std::llround(seconds * kSecondNs));
  }
  ClockSample look(double seconds) {
    const auto error = static_cast<int64_t>(error_ns_);
    std::uniform_int_distribution<int64_t> any(-error, error);
    return {device_ns(seconds), realtime_ns(seconds) + any(random_), error_ns_};
  }
  int64_t late_ns(const vfs::ClockLine& line, double seconds) const {
    return realtime_ns(seconds) - vfs::realtime_at(line, device_ns(seconds));
  }

 private:
  double ppm_;
  uint64_t error_ns_;
  std::mt19937 random_;
};

TEST(ClockEstimateTest, the_first_line_goes_with_the_backends_clock) {
  TwoClocks clocks(50, 0, 1);
  ClockEstimate estimate;
  EXPECT_EQ(estimate.add(clocks.look(0)), 0);
  EXPECT_EQ(estimate.line().gain, 0);
  EXPECT_EQ(clocks.late_ns(estimate.line(), 0), 0);
  EXPECT_EQ(clocks.late_ns(estimate.line(), 100), 5'000'000);  // 50 ppm of 100 s
}

TEST(ClockEstimateTest, what_was_gained_between_two_looks_goes_on) {
  uint32_t seed = 0;
  for (const double ppm : {-150.0, -2.3, 0.0, 0.01, 7.0, 150.0}) {
    TwoClocks clocks(ppm, 1'500, ++seed);
    ClockEstimate estimate;
    estimate.add(clocks.look(0));
    // 10 s behind the line without a gain is what was gained, but for what the look is off.
    EXPECT_NEAR(static_cast<double>(estimate.add(clocks.look(10))), ppm * 1e4, 3'001);
    // Looks that are 1.5 us off, 10 s apart, tell the gain to 0.3 ppm: 18 us in a minute.
    EXPECT_LE(std::abs(clocks.late_ns(estimate.line(), 70)), 18'000 + 1'501);
    EXPECT_LE(std::abs(estimate.add(clocks.look(70))), 18'000 + 3'001);
    // And a minute apart to 0.05 ppm: 30 us in ten minutes.
    EXPECT_LE(std::abs(estimate.add(clocks.look(670))), 30'000 + 3'001);
  }
}

TEST(ClockEstimateTest, years_and_the_largest_gain_fit) {
  vfs::ClockLine line{kDeviceStartNs, kStartNs, vfs::kClockGainMax};
  constexpr int64_t kDayNs = 86'400 * kSecondNs;
  for (const int64_t days : {-30, -1, 1, 1'500}) {
    const int64_t at =
        vfs::realtime_at(line, kDeviceStartNs + static_cast<uint64_t>(days * kDayNs));
    const double gained = std::ldexp(static_cast<double>(days * kDayNs) * vfs::kClockGainMax,
                                     -static_cast<int>(vfs::kClockGainShift));
    EXPECT_NEAR(static_cast<double>(at - kStartNs - days * kDayNs), gained, 100);
  }
}

TEST(ClockEstimateTest, looks_too_close_to_tell_leave_the_gain_as_it_is) {
  TwoClocks clocks(20, 10'000, 3);
  ClockEstimate estimate;
  estimate.add(clocks.look(0));
  estimate.add(clocks.look(1e-3));
  EXPECT_EQ(estimate.line().gain, 0);
  estimate.add(clocks.look(100));
  const int64_t gain = estimate.line().gain;
  EXPECT_NE(gain, 0);
  estimate.add(clocks.look(100.001));
  EXPECT_EQ(estimate.line().gain, gain);
}

TEST(ClockEstimateTest, a_clock_that_was_set_is_followed_and_its_gain_kept) {
  TwoClocks clocks(5, 0, 4);
  ClockEstimate estimate;
  estimate.add(clocks.look(0));
  estimate.add(clocks.look(10));
  const int64_t gain = estimate.line().gain;
  for (const int64_t step_ns : {3'600 * kSecondNs, -7'200 * kSecondNs}) {
    ClockSample sample = clocks.look(20);
    sample.now_ns += static_cast<uint64_t>(std::abs(step_ns)) / 360;  // 10 or 20 s later
    sample.realtime_ns += step_ns;
    const int64_t late_ns = estimate.add(sample);
    EXPECT_NEAR(static_cast<double>(late_ns), static_cast<double>(step_ns),
                static_cast<double>(30 * kSecondNs) + std::abs(static_cast<double>(step_ns)));
    EXPECT_EQ(estimate.line().gain, gain);
    EXPECT_EQ(vfs::realtime_at(estimate.line(), sample.now_ns), sample.realtime_ns);
  }
}

int64_t host_time_ns() {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(
             std::chrono::system_clock::now().time_since_epoch())
      .count();
}

TEST(ClockKeeperTest, a_look_is_as_exact_as_it_says) {
  const auto volume = VolumeState::mount("ram:16M", {.backend = "cpu"}, MountKind::kDeviceOnly);
  ASSERT_TRUE(volume) << volume.error().message;
  const int64_t before = host_time_ns();
  const auto sample = sample_clocks(**volume);
  ASSERT_TRUE(sample) << sample.error().message;
  EXPECT_GE(sample->realtime_ns, before);
  EXPECT_LE(sample->realtime_ns, host_time_ns());
  // Both clocks are this machine's, so what they differ by now is what they differed by then.
  const int64_t host_first = host_time_ns();
  const auto now = static_cast<int64_t>(simt::now_ns());
  const int64_t host_last = host_time_ns();
  const int64_t apart = sample->realtime_ns - static_cast<int64_t>(sample->now_ns);
  constexpr int64_t kDriftNs = 10'000;  // within these moments, should the clock be adjusted
  const auto error = static_cast<int64_t>(sample->error_ns) + kDriftNs;
  EXPECT_GE(apart, host_first - now - error);
  EXPECT_LE(apart, host_last - now + error);
}

TEST(ClockKeeperTest, lines_are_drawn_beside_who_looks_at_the_clock) {
  const auto volume = VolumeState::mount("ram:16M", {.backend = "cpu"}, MountKind::kDeviceOnly);
  ASSERT_TRUE(volume) << volume.error().message;
  ClockKeeper keeper(**volume, 20'000'000);
  ASSERT_TRUE(keeper.beginning()) << keeper.beginning().error().message;
  EXPECT_GE(keeper.report().looks, 1u);
  const vfs::RealClock& clock = (*volume)->filesystem()->clock;
  constexpr int64_t kNearNs = kSecondNs;  // a machine may take its time between two looks
  while (keeper.report().looks < 5) {
    EXPECT_NEAR(static_cast<double>(vfs::realtime_now(clock)), static_cast<double>(host_time_ns()),
                static_cast<double>(kNearNs));
  }
}

}  // namespace
}  // namespace gofs::host
