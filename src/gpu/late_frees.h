// SPDX-License-Identifier: Apache-2.0
//
// Memory that was released while launches of ours were under way. CUDA frees memory when no kernel
// runs, and begins none until then; a turn of a server that waits for the next one would wait for
// ever. So such memory is given again to who wants as much, or freed when the last launch has
// ended. Host only.
#pragma once

#include <atomic>
#include <cstdint>
#include <map>
#include <mutex>
#include <utility>

namespace gofs::gpu {

/// Launches of a backend that are under way.
class LaunchCount {
 public:
  void add() { count_.fetch_add(1, std::memory_order_relaxed); }
  /// Whether it was the last one.
  bool remove() { return count_.fetch_sub(1, std::memory_order_relaxed) == 1; }
  bool any() const { return count_.load(std::memory_order_relaxed) != 0; }

 private:
  std::atomic<uint32_t> count_{0};
};

/// By any thread.
class LateFrees {
 public:
  using Free = void (*)(void* memory);

  LateFrees(const LaunchCount& launches, Free how) : launches_(launches), free_(how) {}
  ~LateFrees() { free_all(); }
  LateFrees(const LateFrees&) = delete;
  LateFrees& operator=(const LateFrees&) = delete;

  /// Now, or later.
  void free(void* memory, uint64_t bytes) {
    if (!launches_.any()) return free_(memory);
    {
      const std::lock_guard lock(mutex_);
      late_.emplace(bytes, memory);
    }
    if (!launches_.any()) free_all();  // the last one has ended meanwhile, and has not seen it
  }
  /// Memory of so many bytes that is not freed yet, with any contents, or null.
  void* take_back(uint64_t bytes) {
    const std::lock_guard lock(mutex_);
    const auto found = late_.find(bytes);
    if (found == late_.end()) return nullptr;
    void* const memory = found->second;
    late_.erase(found);
    return memory;
  }
  void free_all() {
    std::multimap<uint64_t, void*> late;
    {
      const std::lock_guard lock(mutex_);
      late.swap(late_);
    }
    for (const auto& [bytes, memory] : late) free_(memory);
  }

 private:
  const LaunchCount& launches_;
  const Free free_;
  std::mutex mutex_;
  std::multimap<uint64_t, void*> late_;  // by size
};

}  // namespace gofs::gpu
