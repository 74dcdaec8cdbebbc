// SPDX-License-Identifier: Apache-2.0
//
// Which memory a program has registered (Volume::register_buffer). From any thread.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <mutex>
#include <vector>

#include "gofs/volume.hpp"
#include "host/messages.h"

namespace gofs::host {

class RegisteredBuffers {
 public:
  /// Calls `map()`, and the memory is registered from then on. EINVAL, EEXIST.
  template <typename Map>
  Expected<BufferHandle> add(void* memory, uint64_t bytes, Map map) {
    const auto begin = reinterpret_cast<uintptr_t>(memory);
    if (memory == nullptr || bytes == 0 || begin + bytes < begin) {
      return make_error(EINVAL, "register_buffer");
    }
    const std::lock_guard lock(mutex_);
    for (const Buffer& other : buffers_) {
      if (begin < other.end && other.begin < begin + bytes) {
        return make_error(EEXIST, "register_buffer", "overlaps a buffer that is registered");
      }
    }
    buffers_.push_back({next_id_, begin, begin + bytes});  // before: there may be no memory for it
    try {
      map();
    } catch (...) {
      buffers_.pop_back();
      throw;
    }
    added_.fetch_add(1, std::memory_order_relaxed);
    return BufferHandle{next_id_++};
  }
  /// Calls `unmap(memory)`, and it is no longer. EINVAL.
  template <typename Unmap>
  Expected<void> remove(BufferHandle buffer, Unmap unmap) {
    const std::lock_guard lock(mutex_);
    const auto found = std::find_if(buffers_.begin(), buffers_.end(),
                                    [&](const Buffer& other) { return other.id == buffer.id; });
    if (found == buffers_.end()) return make_error(EINVAL, "unregister_buffer", "no such buffer");
    unmap(reinterpret_cast<void*>(found->begin));
    buffers_.erase(found);
    return {};
  }

  struct Buffer {
    uint64_t id;
    uintptr_t begin;
    uintptr_t end;
  };
  std::vector<Buffer> all() const {
    const std::lock_guard lock(mutex_);
    return buffers_;
  }
  /// How many there have been. Who sees that late has data copied.
  uint64_t added() const { return added_.load(std::memory_order_relaxed); }

 private:
  mutable std::mutex mutex_;
  std::vector<Buffer> buffers_;
  uint64_t next_id_ = 1;
  std::atomic<uint64_t> added_{0};
};

}  // namespace gofs::host
