// SPDX-License-Identifier: Apache-2.0
//
// A thread of a hosted SSD's controller: takes commands from its queues, has the host's storage
// carry them out, and posts their completions. Host only.
#pragma once

#include <atomic>
#include <cstdint>
#include <deque>
#include <exception>
#include <functional>
#include <memory>
#include <thread>
#include <vector>

#include "ssd/hosted/command_meter.h"
#include "ssd/hosted/flight.h"
#include "ssd/virtual_controller.h"

namespace gofs::ssd {

/// How long a thread that has nothing to do looks on before it sleeps (kNever: it does not), and
/// how long it sleeps: longer each time, but the first time only while commands are under way.
struct IdlePolicy {
  uint64_t spin_ns = 0;
  uint64_t nap_first_ns = 0;
  uint64_t nap_last_ns = 0;
};

using EngineMaker = std::function<std::unique_ptr<IoEngine>(const IoTarget&)>;

class HostedWorker {
 public:
  static constexpr uint64_t kDrainNs = 30'000'000'000;

  struct Part {
    uint32_t index;  // of the worker; the first also sees to the admin queue
    uint32_t count;  // of workers
  };
  /// Which of `count` workers has I/O queue `qid`: each has as many, also of every second one,
  /// where a GPU that runs few blocks has them.
  static uint32_t worker_of(uint32_t qid, uint32_t count) {
    const uint32_t number = qid - 1;
    return (number + (count % 2 == 0 ? number / count : 0)) % count;
  }

  /// All outlive it. Returns when the thread has its engine. Throws std::system_error.
  HostedWorker(VirtualController& controller, BackingStore& store, const Part& part,
               const IdlePolicy& idle, std::span<uint8_t> buffers, const EngineMaker& make_engine,
               CommandMeter& meter);
  /// Waits for what is under way. What the kernel does not end in kDrainNs keeps its memory for
  /// good.
  ~HostedWorker();
  HostedWorker(const HostedWorker&) = delete;
  HostedWorker& operator=(const HostedWorker&) = delete;

  const char* engine_name() const { return engine_name_; }
  /// Wakes the thread if it sleeps and I/O queue `qid`, one of its own, wants something.
  void nudge(uint32_t qid);
  /// Wakes it if it sleeps.
  void wake();
  /// It takes no more commands, and ends when none is under way any more.
  void stop();

 private:
  void run(const EngineMaker& make_engine, std::span<uint8_t> buffers);
  void serve();
  void drain();
  void be_awake();
  void again(uint64_t tag);
  bool work();
  bool admin_is_wanted() const;
  bool step_admin_queue();
  bool fetch(uint32_t qid);
  void take(uint32_t qid, const Claim& claim, uint64_t now_ns);
  void go_on(uint64_t tag);
  bool reap();
  void end(uint32_t qid, Flight& flight);
  void fail(Flight& flight, int error);
  bool wants_something();
  bool is_woken() const;
  void idle(uint64_t now_ns);
  Flight& flight_of(uint64_t tag);

  VirtualController& controller_;
  BackingStore& store_;
  const Part part_;
  const IdlePolicy idle_;
  CommandMeter& meter_;
  std::vector<uint32_t> qids_;
  BouncePool bounces_;
  std::vector<std::vector<Flight>> flights_;  // of each of these, by place in its ring
  std::unique_ptr<IoEngine> engine_;
  std::deque<uint64_t> stalled_;  // for which the engine had no room
  uint32_t under_way_ = 0;
  uint32_t looks_ = 0;  // since something went to the kernel last
  bool cut_looked_for_ = false;
  bool drains_ = false;
  uint32_t seen_cc_ = 0;
  uint64_t idle_since_ns_ = 0;
  uint64_t nap_ns_;
  uint32_t fruitless_ = 0;  // looks in a row that found something to do and could not do it

  const char* engine_name_ = "";
  std::atomic<bool> asleep_{false};
  std::atomic<bool> ends_{false};
  std::exception_ptr failed_;  // to make the engine
  std::atomic<bool> ready_{false};
  std::thread thread_;
};

}  // namespace gofs::ssd
