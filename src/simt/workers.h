// SPDX-License-Identifier: Apache-2.0
//
// The CPU's launch: a kernel is a function run by N threads, each of them a warp of one lane. (In
// tests also by threads that play a wider warp each: testing/teams.hpp.)
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <thread>
#include <vector>

#include "simt/warp.h"

// The CPU's Warp is what these hand out; where nvcc compiles for the device there is none.
#if !defined(__CUDA_ARCH__)

namespace gofs::simt {

/// Runs `work(warp, index)` for every index below `count`, each on a thread of its own; returns
/// when all are done. They begin when all threads have been started, so that they may wait for each
/// other; if one cannot be (std::system_error), none begins.
inline void run_workers(uint32_t count, const std::function<void(const Warp&, uint32_t)>& work) {
  enum Start : uint32_t { kNotYet, kGo, kGiveUp };
  std::atomic<uint32_t> start{kNotYet};
  const auto tell = [&start](Start verdict) {
    start.store(verdict, std::memory_order_release);
    start.notify_all();
  };
  std::vector<std::jthread> threads;  // joined here, whatever happens
  threads.reserve(count);
  try {
    for (uint32_t index = 0; index < count; ++index) {
      threads.emplace_back([&work, &start, index] {
        start.wait(kNotYet, std::memory_order_acquire);
        if (start.load(std::memory_order_acquire) == kGiveUp) return;
        host_worker = index;
        work(Warp(), index);
      });
    }
  } catch (...) {
    tell(kGiveUp);
    throw;
  }
  tell(kGo);
}

}  // namespace gofs::simt

#endif  // !__CUDA_ARCH__
