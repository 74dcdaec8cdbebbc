// SPDX-License-Identifier: Apache-2.0
//
// Our virtual controller as a device that works by itself and is reached as a physical one: through
// a Transport. A thread steps it.
#pragma once

#include <atomic>
#include <string>
#include <thread>

#include "simt/atomic.h"
#include "ssd/controller_ref.h"
#include "ssd/transport.h"

namespace gofs::testing {

class VirtualTransport final : public ssd::Transport {
 public:
  /// The controller, which outlives it, reaches all memory, at its own addresses.
  VirtualTransport(const ssd::ControllerRef& controller, uint32_t queue_pairs)
      : controller_(controller), thread_([this, queue_pairs] {
          while (!ends_) {
            for (uint32_t qid = 0; qid <= queue_pairs; ++qid) controller_.step(simt::Warp(), qid);
            std::this_thread::yield();
          }
        }) {}
  ~VirtualTransport() override {
    ends_ = true;
    thread_.join();
  }
  VirtualTransport(const VirtualTransport&) = delete;
  VirtualTransport& operator=(const VirtualTransport&) = delete;

  /// As if it was pulled out.
  void remove() { gone_ = true; }

  const std::string& name() const override { return name_; }
  uint8_t* bar() const override { return nullptr; }
  uint64_t bar_bytes() const override { return 1 << 16; }
  uint32_t read_register(uint32_t offset) override {
    return gone_ ? format::nvme::kRegisterGone : simt::load_system_acquire(word(offset));
  }
  void write_register(uint32_t offset, uint32_t value) override {
    if (!gone_) simt::store_system_release(word(offset), value);
  }
  uint64_t map(void* memory, uint64_t) override { return reinterpret_cast<uint64_t>(memory); }
  void unmap(uint64_t, uint64_t) override {}

 private:
  uint32_t& word(uint32_t offset) const {
    return *reinterpret_cast<uint32_t*>(controller_.bar + offset);
  }

  const ssd::ControllerRef controller_;
  const std::string name_ = "virtual";
  std::atomic<bool> gone_{false};
  std::atomic<bool> ends_{false};
  std::thread thread_;
};

}  // namespace gofs::testing
