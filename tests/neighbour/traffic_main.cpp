// SPDX-License-Identifier: Apache-2.0
//
// Has several threads work on a volume for a while, mounts it again every few seconds, in both
// modes in turn, and looks at all that is there each time. The first thing that is wrong ends it.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <exception>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "ssd/refused_uring_for_test.h"
#include "traffic.hpp"

namespace gofs::neighbour {
namespace {

using Clock = std::chrono::steady_clock;

struct TrafficOptions {
  std::string device;
  double seconds = 10;
  double mounted_seconds = 5;  // until it is mounted again
  uint32_t threads = 4;
  uint32_t pause_us = 1000;  // between two calls of a thread
  uint64_t seed = 1;
  bool no_uring = false;
};

/// Has each thread do `work`. Throws what the first that failed has thrown.
template <typename Work>
void side_by_side(std::vector<Traffic>& all, const Work& work) {
  std::exception_ptr failed;
  std::mutex mutex;
  std::vector<std::thread> threads;
  for (Traffic& one : all) {
    threads.emplace_back([&] {
      try {
        work(one);
      } catch (...) {
        const std::lock_guard lock(mutex);
        if (failed == nullptr) failed = std::current_exception();
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  if (failed != nullptr) std::rethrow_exception(failed);
}

Clock::duration in_seconds(double seconds) {
  return std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(seconds));
}

Volume mount(const TrafficOptions& options, uint32_t round) {
  const char* const mode = round % 2 == 0 ? "adaptive" : "lfs";
  MountOptions mounting;
  mounting.backend = "cpu";
  mounting.read_only = false;
  return Volume::mount(fmt::format("{}?media=hosted&mode={}", options.device, mode), mounting)
      .value();
}

void run(const TrafficOptions& options) {
  std::vector<Traffic> all;
  for (uint32_t thread = 0; thread < options.threads; ++thread) {
    all.emplace_back(thread, options.seed);
  }
  const auto end = Clock::now() + in_seconds(options.seconds);
  uint32_t mounts = 0;
  for (bool goes_on = true; goes_on; ++mounts) {
    Volume volume = mount(options, mounts);
    if (mounts == 0) fmt::print("{}\n", volume.info().ssd);
    side_by_side(all,
                 [&](Traffic& one) { mounts == 0 ? one.begin(volume) : one.check_all(volume); });
    goes_on = Clock::now() < end;
    const auto pause = Clock::now() + in_seconds(goes_on ? options.mounted_seconds : 0);
    side_by_side(all, [&](Traffic& one) {
      while (Clock::now() < std::min(pause, end)) {
        one.step(volume);
        std::this_thread::sleep_for(std::chrono::microseconds(options.pause_us));
      }
    });
    volume.unmount().value();
  }
  TrafficCounts sum;
  for (const Traffic& one : all) {
    sum.calls += one.counts().calls;
    sum.bytes_written += one.counts().bytes_written;
    sum.bytes_read += one.counts().bytes_read;
  }
  fmt::print("{} calls, {} MiB written, {} MiB read, {} mounts\n", sum.calls,
             sum.bytes_written >> 20, sum.bytes_read >> 20, mounts);
}

int main_of(int argc, char** argv) {
  TrafficOptions options;
  CLI::App app("Works on a volume for a while, and checks all that it reads.");
  app.add_option("device", options.device, "with an empty volume")->required();
  app.add_option("--seconds", options.seconds)->capture_default_str();
  app.add_option("--mounted", options.mounted_seconds, "seconds until it is mounted again")
      ->capture_default_str();
  app.add_option("--threads", options.threads)->capture_default_str();
  app.add_option("--pause", options.pause_us, "microseconds between two calls of a thread")
      ->capture_default_str();
  app.add_option("--seed", options.seed)->capture_default_str();
  app.add_flag("--no-uring", options.no_uring, "io_uring is refused, as in many containers");
  CLI11_PARSE(app, argc, argv);
  if (options.no_uring && !ssd::refuse_io_uring()) {
    std::fprintf(stderr, "io_uring cannot be refused here\n");
    return 1;
  }
  try {
    run(options);
  } catch (const std::exception& problem) {
    std::fprintf(stderr, "%s: %s\n", options.device.c_str(), problem.what());
    return 1;
  }
  return 0;
}

}  // namespace
}  // namespace gofs::neighbour

int main(int argc, char** argv) { return gofs::neighbour::main_of(argc, argv); }
