// SPDX-License-Identifier: Apache-2.0
//
// Measures the commands of a hosted SSD: how long each took, how many are under way, and for how
// long any was. Each of the controller's threads counts for itself; whoever looks adds up. Host
// only.
#pragma once

#include <algorithm>
#include <atomic>
#include <bit>
#include <cstdint>

#include "format/nvme.h"
#include "gofs/types.h"

namespace gofs::ssd {

/// For how long at least one of several threads was busy. Relaxed: a time, and no more, is shared.
class BusyTime {
 public:
  void begin(uint64_t now_ns) { step(now_ns, 0, 1); }
  void end(uint64_t now_ns) { step(now_ns, 1, kThreadMask); }
  uint64_t until(uint64_t now_ns) const {
    const uint64_t word = word_.load(std::memory_order_relaxed);
    const uint64_t now = (word & kThreadMask) == 0 ? word : moved(word, now_ns, 1);
    // A thread may have looked at its clock after who looks here.
    const int64_t us = static_cast<int64_t>(now) >> kThreadBits;
    return static_cast<uint64_t>(std::max<int64_t>(us, 0)) * kNsPerUs;
  }

 private:
  // The word: busy threads, and above these microseconds that only grow while there are none; while
  // there are some, the time at which the first of them began is taken off. Both change at once.
  static constexpr uint32_t kThreadBits = 12;
  static constexpr uint64_t kThreadMask = (uint64_t{1} << kThreadBits) - 1;
  static constexpr uint64_t kNsPerUs = 1000;

  static uint64_t moved(uint64_t word, uint64_t now_ns, uint64_t sign) {
    return word + sign * (now_ns / kNsPerUs << kThreadBits);
  }
  /// Adds `change` to the threads; the time counts where there are `edge` of them.
  void step(uint64_t now_ns, uint64_t edge, uint64_t change) {
    uint64_t word = word_.load(std::memory_order_relaxed);
    uint64_t next = 0;
    do {
      next = (word & ~kThreadMask) | ((word + change) & kThreadMask);
      if ((word & kThreadMask) == edge) next = moved(next, now_ns, edge == 0 ? ~uint64_t{0} : 1);
    } while (!word_.compare_exchange_weak(word, next, std::memory_order_relaxed));
  }

  std::atomic<uint64_t> word_{0};
};

/// What was measured, added up.
struct MeasuredCommands {
  static constexpr uint32_t kBuckets = 26;  // as kTimeBuckets of gofs/command_times.hpp

  struct Kind {
    uint64_t counts[kBuckets];
    uint64_t total_ns;
  };
  Kind kinds[kCommandKinds];  // by CommandKind
  uint64_t busy_ns;
  uint64_t under_way;
};

/// Of one thread, which alone writes it. Any may look.
class CommandMeter {
 public:
  /// `busy`, which all threads of a controller have together, outlives it.
  explicit CommandMeter(BusyTime& busy) : busy_(busy) {}
  CommandMeter(const CommandMeter&) = delete;
  CommandMeter& operator=(const CommandMeter&) = delete;

  void begin(uint64_t now_ns) {
    if (add(under_way_, 1) == 0) busy_.begin(now_ns);
  }
  void end(uint8_t opcode, uint64_t began_ns, uint64_t now_ns) {
    const uint64_t took_ns = now_ns > began_ns ? now_ns - began_ns : 0;
    const uint32_t kind = kind_of(opcode);
    if (kind < kCommandKinds) {
      add(kinds_[kind].counts[bucket_of(took_ns)], 1);
      add(kinds_[kind].total_ns, took_ns);
    }
    if (add(under_way_, ~uint64_t{0}) == 1) busy_.end(now_ns);
  }
  /// The thread has ended; what it had under way is not its business any more.
  void stop(uint64_t now_ns) {
    if (under_way_.exchange(0, std::memory_order_relaxed) != 0) busy_.end(now_ns);
  }

  void add_to(MeasuredCommands& sum) const {
    for (uint32_t kind = 0; kind < kCommandKinds; ++kind) {
      for (uint32_t i = 0; i < MeasuredCommands::kBuckets; ++i) {
        sum.kinds[kind].counts[i] += kinds_[kind].counts[i].load(std::memory_order_relaxed);
      }
      sum.kinds[kind].total_ns += kinds_[kind].total_ns.load(std::memory_order_relaxed);
    }
    sum.under_way += under_way_.load(std::memory_order_relaxed);
  }

  static uint32_t bucket_of(uint64_t took_ns) {
    constexpr uint64_t kNsPerUs = 1000;
    const uint64_t begun_us = took_ns == 0 ? 0 : (took_ns - 1) / kNsPerUs;
    return std::min(static_cast<uint32_t>(std::bit_width(begun_us)),
                    MeasuredCommands::kBuckets - 1);
  }

 private:
  struct Kind {
    std::atomic<uint64_t> counts[MeasuredCommands::kBuckets]{};
    std::atomic<uint64_t> total_ns{0};
  };

  /// Before it.
  static uint64_t add(std::atomic<uint64_t>& count, uint64_t value) {
    const uint64_t before = count.load(std::memory_order_relaxed);
    count.store(before + value, std::memory_order_relaxed);
    return before;
  }
  static uint32_t kind_of(uint8_t opcode) {
    using format::nvme::IoOpcode;
    switch (static_cast<IoOpcode>(opcode)) {
      case IoOpcode::kRead:
        return static_cast<uint32_t>(CommandKind::kRead);
      case IoOpcode::kWrite:
        return static_cast<uint32_t>(CommandKind::kWrite);
      case IoOpcode::kFlush:
        return static_cast<uint32_t>(CommandKind::kFlush);
      case IoOpcode::kDatasetManagement:
        return static_cast<uint32_t>(CommandKind::kDeallocate);
      default:
        return kCommandKinds;
    }
  }

  BusyTime& busy_;
  std::atomic<uint64_t> under_way_{0};
  Kind kinds_[kCommandKinds];
};

}  // namespace gofs::ssd
