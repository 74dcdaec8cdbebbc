// SPDX-License-Identifier: Apache-2.0
//
// One end of QEMU's qtest protocol: memory and I/O ports of a machine as its processor would reach
// them, by lines of text over a Unix socket. Each request has one answer, in order. Host only.
//
// Reads wait for their answer. Writes do not, as writes over PCIe do not: what QEMU has against one
// is said by a later call. What was stored to the machine's memory before a write, the machine sees
// when it carries the write out.
//
// When QEMU is gone, or has not answered in time, the client is `gone` for good: reads are answered
// all ones at once and writes do nothing, as with a device that was pulled out. Any thread may call
// any function at any time.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <deque>
#include <mutex>
#include <string>

#include "ssd/descriptor.h"

namespace gofs::ssd {

class QtestClient {
 public:
  /// QEMU answers in 0.1 ms; this is for a machine with far more to do than it can.
  static constexpr std::chrono::milliseconds kAnswerTimeout{30000};

  /// Connects to a socket at which QEMU listens already. Throws std::system_error, with ENOENT or
  /// ECONNREFUSED if it does not (yet).
  explicit QtestClient(const std::string& socket_path,
                       std::chrono::milliseconds answer_timeout = kAnswerTimeout);
  QtestClient(const QtestClient&) = delete;
  QtestClient& operator=(const QtestClient&) = delete;

  // All of these throw std::system_error, whose text says what was asked and what came back:
  // EPROTO for an answer other than OK, ETIMEDOUT (once, then the client is gone) for none.

  /// Memory, 32 and 64 bits.
  uint32_t readl(uint64_t address);
  uint64_t readq(uint64_t address);
  void writel(uint64_t address, uint32_t value);
  void writeq(uint64_t address, uint64_t value);
  /// I/O ports, 32 bits.
  uint32_t inl(uint16_t port);
  void outl(uint16_t port, uint32_t value);

  bool gone() const { return gone_.load(std::memory_order_acquire); }

 private:
  using Deadline = std::chrono::steady_clock::time_point;

  uint64_t ask(std::string request);
  void post(std::string request);
  /// The rest are called under the lock.
  void send_request(std::string request, Deadline deadline);
  /// The value in the next answer; 0 if it has none.
  uint64_t take_answer(Deadline deadline);
  /// Whether a whole answer has been received. News of interrupts, which come at any time and are
  /// no answer, are dropped on the way.
  bool has_answer();
  /// False: nothing came in time. True: something came, or QEMU is gone.
  bool receive(Deadline deadline);
  /// False: not in time.
  bool wait_until_ready(short events, Deadline deadline);
  [[noreturn]] void give_up(const std::string& asked);
  void become_gone();

  const std::chrono::milliseconds answer_timeout_;
  std::mutex mutex_;
  Descriptor socket_;
  std::atomic<bool> gone_{false};
  std::string received_;             // and not looked at yet
  std::deque<std::string> pending_;  // requests without answer so far, oldest first
};

}  // namespace gofs::ssd
