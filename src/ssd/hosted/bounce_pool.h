// SPDX-License-Identifier: Apache-2.0
//
// Memory as O_DIRECT wants it, for commands whose own is aligned otherwise. What was used is kept
// for the next one: new memory would have to be cleared by the kernel each time. Of one thread.
#pragma once

#include <cstdint>
#include <cstdlib>
#include <memory>
#include <utility>
#include <vector>

#include "simt/platform.h"

namespace gofs::ssd {

class BouncePool {
 public:
  struct Free {
    void operator()(uint8_t* memory) const { std::free(memory); }
  };
  struct Bounce {
    std::unique_ptr<uint8_t, Free> memory;  // aligned to a block; null: none
    uint64_t bytes = 0;
  };

  /// Of at least `bytes`; null where there is no memory.
  Bounce take(uint64_t bytes) {
    for (Bounce& kept : kept_) {
      if (kept.bytes < bytes) continue;
      Bounce taken = std::exchange(kept, std::move(kept_.back()));
      kept_.pop_back();
      kept_bytes_ -= taken.bytes;
      return taken;
    }
    const uint64_t whole = (bytes + kStepBytes - 1) / kStepBytes * kStepBytes;
    auto* const memory = static_cast<uint8_t*>(std::aligned_alloc(kBlockBytes, whole));
    return {std::unique_ptr<uint8_t, Free>(memory), memory == nullptr ? 0 : whole};
  }
  void give(Bounce bounce) {
    if (bounce.memory == nullptr || kept_bytes_ + bounce.bytes > kKeptBytesMax) return;
    kept_bytes_ += bounce.bytes;
    kept_.push_back(std::move(bounce));
  }

 private:
  static constexpr uint64_t kStepBytes = 128 << 10;
  static constexpr uint64_t kKeptBytesMax = 32 << 20;

  std::vector<Bounce> kept_;
  uint64_t kept_bytes_ = 0;
};

}  // namespace gofs::ssd
