// SPDX-License-Identifier: Apache-2.0
//
// Memory that was released while launches of ours were under way. CUDA frees memory when no kernel
// runs, and begins none until then; a turn of a server that waits for the next one would wait for
// ever. So such memory is given again to who wants as much, or freed when the last launch has
// ended. Host only.
#pragma once

#include <cstdint>
#include <map>
#include <mutex>
#include <utility>

namespace gofs::gpu {

/// Launches of a backend that are under way. By any thread.
class LaunchCount {
 public:
  /// Waits while memory is freed.
  void add() {
    const std::lock_guard lock(mutex_);
    ++count_;
  }
  /// Whether it was the last one.
  bool remove() {
    const std::lock_guard lock(mutex_);
    return --count_ == 0;
  }
  /// Calls `body` where there is none; none begins meanwhile. False: there is one.
  template <typename Body>
  bool while_none(Body body) {
    const std::lock_guard lock(mutex_);
    if (count_ != 0) return false;
    body();
    return true;
  }

 private:
  std::mutex mutex_;
  uint32_t count_ = 0;
};

/// By any thread.
class LateFrees {
 public:
  using Free = void (*)(void* memory);

  LateFrees(LaunchCount& launches, Free how) : launches_(launches), free_(how) {}
  ~LateFrees() { free_late(); }
  LateFrees(const LateFrees&) = delete;
  LateFrees& operator=(const LateFrees&) = delete;

  /// Now, or later.
  void free(void* memory, uint64_t bytes) {
    if (launches_.while_none([&] { free_(memory); })) return;
    {
      const std::lock_guard lock(mutex_);
      late_.emplace(bytes, memory);
    }
    free_all();  // the last one may have ended meanwhile, and not have seen it
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
  /// Unless there are launches, after whose end this is called again.
  void free_all() {
    (void)launches_.while_none([&] { free_late(); });
  }

 private:
  void free_late() {
    std::multimap<uint64_t, void*> late;
    {
      const std::lock_guard lock(mutex_);
      late.swap(late_);
    }
    for (const auto& [bytes, memory] : late) free_(memory);
  }

  LaunchCount& launches_;
  const Free free_;
  std::mutex mutex_;
  std::multimap<uint64_t, void*> late_;  // by size
};

}  // namespace gofs::gpu
