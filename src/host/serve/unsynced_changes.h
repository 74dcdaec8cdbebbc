// SPDX-License-Identifier: Apache-2.0
//
// Whether a client has changed what no sync has made durable. A sync covers what was answered
// before it began; of a change that is under way then nobody knows which of the two the server did
// first.
#pragma once

#include <atomic>
#include <cstdint>
#include <optional>

namespace gofs::host {

class UnsyncedChanges {
 public:
  /// A call is made that may change something.
  void begin() { begun_.fetch_add(1, std::memory_order_seq_cst); }
  /// It was answered. One that never is stays under way.
  void end() { ended_.fetch_add(1, std::memory_order_seq_cst); }

  /// Before a sync: what it covers. None where a change is under way.
  std::optional<uint64_t> covered() const {
    // In this order: two that are equal were so at the time of the first look.
    const uint64_t ended = ended_.load(std::memory_order_seq_cst);
    const uint64_t begun = begun_.load(std::memory_order_seq_cst);
    return begun == ended ? std::optional(ended) : std::nullopt;
  }
  /// That sync was performed.
  void synced(std::optional<uint64_t> covered) {
    uint64_t before = durable_.load(std::memory_order_seq_cst);
    while (covered && before < *covered &&
           !durable_.compare_exchange_weak(before, *covered, std::memory_order_seq_cst)) {
    }
  }
  bool any() const {
    return begun_.load(std::memory_order_seq_cst) != durable_.load(std::memory_order_seq_cst);
  }

 private:
  std::atomic<uint64_t> begun_{0};
  std::atomic<uint64_t> ended_{0};
  std::atomic<uint64_t> durable_{0};  // so many changes are, the first ones
};

}  // namespace gofs::host
