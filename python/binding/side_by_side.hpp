// SPDX-License-Identifier: Apache-2.0
//
// Calls that do not depend on each other, by several threads.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <system_error>
#include <thread>
#include <vector>

namespace gofs::python {

// Also where there are fewer processors: an SSD that is waited for serves several at a time.
inline constexpr size_t kThreadsMax = 8;

/// Calls `work(i)` for each i below `count`, by `threads` threads or fewer. Without the GIL; `work`
/// touches nothing of Python's, and throws nothing.
template <typename Work>
void run_side_by_side(size_t count, size_t threads, Work work) {
  std::atomic<size_t> next = 0;
  const auto work_off = [&] {
    for (size_t i = next++; i < count; i = next++) work(i);
  };
  const size_t wanted = std::min({threads, count, kThreadsMax});
  std::vector<std::thread> all;
  all.reserve(kThreadsMax);
  try {
    while (all.size() + 1 < wanted) all.emplace_back(work_off);
  } catch (const std::system_error&) {
    // Those that there are do all of it.
  }
  work_off();
  for (std::thread& thread : all) thread.join();
}

}  // namespace gofs::python
