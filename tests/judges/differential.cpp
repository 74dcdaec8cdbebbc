// SPDX-License-Identifier: Apache-2.0
#include "differential.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <memory>
#include <mutex>
#include <random>

#include "common_ground.h"
#include "disk.h"
#include "simt/workers.h"
#include "walker.h"

namespace gofs::judges {

namespace {

constexpr uint64_t kVolumeBytes = uint64_t{160} << 20;
constexpr uint64_t kSharedEvery = 8;  // steps of a thread: one of the common directory

/// What the threads do on one volume, from mkfs.f2fs on.
class Volume {
 public:
  Volume(const DifferentialOptions& options, const std::vector<uint8_t>& empty, uint64_t seed)
      : options_(options), disk_(empty), common_(options.threads) {
    for (uint32_t i = 0; i < options.threads; ++i) {
      walkers_.push_back(std::make_unique<Walker>(seed, i));
      luck_.emplace_back(seed * 77 + i);
    }
  }

  /// As many mounts as it takes for `operations` of each thread. Throws a Difference.
  void run(uint64_t operations, DifferentialResult& result) {
    const uint64_t per_mount = uint64_t{options_.check_every} * options_.checks_per_mount;
    for (uint64_t done = 0; done < operations; done += per_mount) {
      auto session = mount();
      if (done == 0) common_.make(*session);
      for (auto& walker : walkers_) walker->enter(*session);
      run_threads(*session, std::min(per_mount, operations - done));
      common_.check(*session);
      unmount(*session);
      // What is on the disk, without what was in memory.
      session = mount();
      for (auto& walker : walkers_) {
        walker->enter(*session);
        walker->check();
      }
      common_.check(*session);
      unmount(*session);
      ++result.mounts;
    }
  }

  void count(DifferentialResult& result) const {
    for (const auto& walker : walkers_) {
      result.operations += walker->operations();
      result.refused += walker->refused();
      result.full += walker->full();
    }
  }

 private:
  std::unique_ptr<Session> mount() {
    SessionOptions mounting;
    mounting.width = options_.width;
    mounting.cache_pages = options_.cache_pages;
    auto session = std::make_unique<Session>(disk_.data(), disk_.bytes(), mounting);
    if (session->mounted() != 0 || session->begun().error != 0) {
      throw Difference(fmt::format("the volume cannot be mounted: {}, {}", session->mounted(),
                                   session->begun().error));
    }
    return session;
  }

  void unmount(Session& session) {
    if (session.findings() != 0) throw Difference("damage was found");
    const int left = session.unmount();
    if (left != 0) throw Difference(fmt::format("unmounting answers {}", left));
    const std::string complaints = disk_.complaints(false);
    if (!complaints.empty()) throw Difference(complaints);
  }

  void run_threads(Session& session, uint64_t operations) {
    std::mutex mutex;
    std::string first;
    std::atomic<bool> over{false};
    simt::run_workers(options_.threads, [&](const simt::Warp&, uint32_t thread) {
      try {
        run_thread(session, thread, operations, over);
      } catch (const std::exception& problem) {
        over = true;
        const std::lock_guard lock(mutex);
        if (first.empty()) first = fmt::format("thread {}: {}", thread, problem.what());
      }
    });
    if (!first.empty()) throw Difference(first);
  }

  void run_thread(Session& session, uint32_t thread, uint64_t operations,
                  const std::atomic<bool>& over) {
    Walker& walker = *walkers_[thread];
    for (uint64_t i = 0; i < operations && !over; ++i) {
      walker.step();
      if (i % kSharedEvery == 0) common_.step(session, thread, luck_[thread]());
      if ((i + 1) % options_.check_every == 0) walker.check();
    }
    walker.leave();
  }

  const DifferentialOptions& options_;
  Disk disk_;
  CommonGround common_;
  std::vector<std::unique_ptr<Walker>> walkers_;
  std::vector<std::mt19937_64> luck_;
};

}  // namespace

DifferentialResult run_differential(const DifferentialOptions& options) {
  DifferentialResult result;
  const std::vector<uint8_t> empty = make_empty_volume(kVolumeBytes);
  const uint64_t per_thread =
      uint64_t{options.check_every} * options.checks_per_mount * options.mounts_per_volume;
  // Each volume's seed is the one that begins with it.
  for (uint64_t seed = options.seed; result.operations < options.operations; ++seed) {
    const uint64_t left = (options.operations - result.operations - 1) / options.threads + 1;
    Volume volume(options, empty, seed);
    try {
      volume.run(std::min(per_thread, left), result);
      volume.count(result);
    } catch (const Difference& difference) {
      volume.count(result);
      result.difference = fmt::format(
          "{}\nreplay: gofs_differential --seed {} --threads {} --width {} --operations {} "
          "--cache-pages {}{}",
          difference.what(), seed, options.threads, options.width, per_thread * options.threads,
          options.cache_pages, options.threads > 1 ? "  (threads take turns as they like)" : "");
      return result;
    }
    ++result.volumes;
    if (options.progress) {
      fmt::print("volume {} (seed {}): {} operations, {} refused, {} without room, {} mounts\n",
                 result.volumes, seed, result.operations, result.refused, result.full,
                 result.mounts);
      std::fflush(stdout);
    }
  }
  return result;
}

}  // namespace gofs::judges
