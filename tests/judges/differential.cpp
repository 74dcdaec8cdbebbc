// SPDX-License-Identifier: Apache-2.0
#include "differential.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <memory>
#include <mutex>
#include <random>

#include "common_ground.h"
#include "host_calls.h"
#include "simt/workers.h"
#include "walker.h"

namespace gofs::judges {

namespace {

constexpr uint64_t kSharedEvery = 8;  // steps of a thread: one of the common directory

void count(const Walker& walker, DifferentialResult& result) {
  result.operations += walker.operations();
  result.refused += walker.refused();
  result.full += walker.full();
  result.counts.resize(walker.counts().size());
  for (size_t i = 0; i < result.counts.size(); ++i) result.counts[i] += walker.counts()[i];
}

/// Small and large of each, by a seed.
Variation some_variation(uint64_t seed) {
  constexpr uint64_t kMebibytes[] = {64, 64, 100, 160, 160, 512, 3000};
  constexpr const char* kMkfs[] = {
      "",
      "",
      "-O extra_attr,inode_checksum",
      "-O extra_attr,inode_checksum,flexible_inline_xattr,inode_crtime,sb_checksum",
      "-O extra_attr,flexible_inline_xattr -O inode_crtime",
      "-O lost_found,sb_checksum",
      "-i",
      "-O extra_attr,inode_crtime,inode_checksum",
  };
  constexpr uint32_t kThreads[] = {1, 1, 1, 2, 3, 5};
  constexpr uint32_t kWidths[] = {1, 1, 1, 1, 2, 3, 8};
  constexpr uint32_t kCachePages[] = {96, 128, 256, 512, 4096};
  constexpr uint32_t kDepths[] = {4, 16, 64};
  constexpr uint32_t kDisks[] = {1, 1, 1, 1, 1, 1, 2, 3, 5, 8};
  constexpr uint64_t kChunks[] = {4096, 4096, 8192, 65536, 1 << 20};
  constexpr int64_t kGranularities[] = {1, 1, 1'000'000, 1'000'000'000};
  constexpr uint64_t kParts[] = {2 << 20, 128 << 10, 64 << 10};
  std::mt19937_64 random(seed * 7919 + 1);
  const auto one_of = [&](const auto& choices) { return choices[random() % std::size(choices)]; };
  Variation one;
  one.volume_bytes = one_of(kMebibytes) << 20;
  one.mkfs_options = one_of(kMkfs);
  one.threads = one_of(kThreads);
  one.width = one_of(kWidths);
  one.cache_pages = one_of(kCachePages);
  one.lba_shift = random() % 3 == 0 ? 12 : 9;
  one.queue_depth = one_of(kDepths);
  one.time_granularity_ns = one_of(kGranularities);
  one.striping.disks = one_of(kDisks);
  one.striping.chunk_bytes = one_of(kChunks);
  one.kernel_part_bytes = one_of(kParts);
  return one;
}

/// What the threads do on one volume, from mkfs.f2fs on.
class Volume {
 public:
  Volume(const DifferentialOptions& options, const Variation& variation, uint64_t seed)
      : options_(options),
        variation_(variation),
        disks_(make_empty_volume(variation.volume_bytes, variation.mkfs_options),
               variation.striping),
        common_(variation.threads) {
    for (uint32_t i = 0; i < variation.threads; ++i) {
      walkers_.push_back(std::make_unique<Walker>(seed, i, variation.strangers));
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
      session = mount(false);
      for (auto& walker : walkers_) {
        walker->enter(*session);
        walker->check();
        walker->check_read_only();
      }
      common_.check(*session);
      unmount(*session);
      ++result.mounts;
    }
  }

  void count(DifferentialResult& result) const {
    for (const auto& walker : walkers_) judges::count(*walker, result);
  }

 private:
  std::unique_ptr<Session> mount(bool writable = true) {
    SessionOptions mounting;
    mounting.writable = writable;
    mounting.served = variation_.served;
    mounting.kernel_part_bytes = variation_.kernel_part_bytes;
    mounting.one_user = !variation_.strangers;
    mounting.width = variation_.width;
    mounting.cache_pages = variation_.cache_pages;
    mounting.lba_shift = variation_.lba_shift;
    mounting.queue_depth = variation_.queue_depth;
    mounting.time_granularity_ns = variation_.time_granularity_ns;
    auto session = std::make_unique<Session>(disks_, mounting);
    if (session->mounted() != 0 || session->begun().error != 0) {
      throw Difference(fmt::format("the volume cannot be mounted: {}, {}", session->mounted(),
                                   session->begun().error));
    }
    return session;
  }

  void unmount(Session& session) {
    const std::string damage = session.damage();
    if (!damage.empty()) throw Difference("damage was found: " + damage);
    const int left = session.unmount();
    if (left != 0) throw Difference(fmt::format("unmounting answers {}", left));
    const std::string complaints = complaints_of(disks_);
    if (!complaints.empty()) throw Difference(complaints);
  }

  void run_threads(Session& session, uint64_t operations) {
    std::mutex mutex;
    std::string first;
    std::atomic<bool> over{false};
    simt::run_workers(variation_.threads, [&](const simt::Warp&, uint32_t thread) {
      try {
        run_thread(session, thread, operations, over);
      } catch (const std::exception& problem) {
        over = true;
        const std::lock_guard lock(mutex);
        if (first.empty()) first = fmt::format("thread {}: {}", thread, problem.what());
      }
    });
    if (first.empty()) return;
    const std::string damage = session.damage();
    throw Difference(damage.empty() ? first : first + "; damage was found: " + damage);
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
  const Variation variation_;
  Disks disks_;
  CommonGround common_;
  std::vector<std::unique_ptr<Walker>> walkers_;
  std::vector<std::mt19937_64> luck_;
};

void report(const DifferentialOptions& options, const DifferentialResult& result, uint64_t seed,
            const std::string& words) {
  if (!options.progress) return;
  fmt::print("{} (seed {}: {}): {} operations, {} refused, {} without room, {} mounts\n",
             result.volumes, seed, words, result.operations, result.refused, result.full,
             result.mounts);
  std::fflush(stdout);
}

}  // namespace

std::string Variation::words() const {
  return fmt::format(
      "--threads {} --width {} --cache-pages {} --queue-depth {} --granularity {} --lba {} "
      "--mebibytes {}{}{}{}",
      threads, width, cache_pages, queue_depth, time_granularity_ns, 1u << lba_shift,
      volume_bytes >> 20, mkfs_options.empty() ? "" : " --mkfs='" + mkfs_options + "'",
      striping.options(),
      (served ? fmt::format(" --served --kernel-part {}", kernel_part_bytes) : "") +
          (strangers ? "" : " --one-user"));
}

DifferentialResult run_differential(const DifferentialOptions& options) {
  DifferentialResult result;
  const uint64_t per_thread =
      uint64_t{options.check_every} * options.checks_per_mount * options.mounts_per_volume;
  // Each volume's seed is the one that begins with it.
  for (uint64_t seed = options.seed; result.operations < options.operations; ++seed) {
    Variation variation = options.variation;
    if (options.vary) {
      variation = some_variation(seed);
      variation.served = options.variation.served;
      variation.strangers = options.variation.strangers;
    }
    const uint64_t left = (options.operations - result.operations - 1) / variation.threads + 1;
    Volume volume(options, variation, seed);
    try {
      volume.run(std::min(per_thread, left), result);
      volume.count(result);
    } catch (const Difference& difference) {
      volume.count(result);
      result.difference =
          fmt::format("{}\nreplay: gofs_differential --seed {} --operations {} {}{}",
                      difference.what(), seed, per_thread * variation.threads, variation.words(),
                      variation.threads > 1 ? "  (threads take turns as they like)" : "");
      return result;
    }
    ++result.volumes;
    report(options, result, seed, variation.words());
  }
  return result;
}

DifferentialResult judge_model(const DifferentialOptions& options) {
  constexpr uint64_t kPerDirectory = 6000;
  DifferentialResult result;
  HostCalls calls;
  for (uint64_t seed = options.seed; result.operations < options.operations; ++seed) {
    Walker walker(seed, 0, options.variation.strangers);
    try {
      walker.enter(calls);
      const uint64_t left = options.operations - result.operations;
      for (uint64_t i = 1; i <= std::min(kPerDirectory, left); ++i) {
        walker.step();
        if (i % options.check_every == 0) walker.check();
      }
      walker.leave();
      walker.check();
      count(walker, result);
    } catch (const Difference& difference) {
      count(walker, result);
      result.difference =
          fmt::format("{}\nreplay: gofs_differential --model --seed {}", difference.what(), seed);
      return result;
    }
    std::filesystem::remove_all("/thread0");
    ++result.volumes;
    report(options, result, seed, "tmpfs");
  }
  return result;
}

}  // namespace gofs::judges
