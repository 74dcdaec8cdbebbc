// SPDX-License-Identifier: Apache-2.0
#include <pthread.h>
#include <signal.h>

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <deque>
#include <mutex>
#include <thread>
#include <utility>
#include <vector>

#include "ssd/hosted/io_call.h"
#include "ssd/hosted/io_engine.h"
#include "ssd/hosted/quiet_thread.h"

namespace gofs::ssd {

namespace {

/// As many requests are under way at once.
constexpr uint32_t kThreads = 16;
constexpr uint32_t kWaitingMax = 256;

class ThreadEngine final : public IoEngine {
 public:
  ThreadEngine(const IoTarget& target, uint32_t threads, std::function<void()> news)
      : target_(target), tell_(std::move(news)) {
    try {
      for (uint32_t i = 0; i < threads; ++i) {
        threads_.push_back(start_quiet_thread([this] { serve(); }));
      }
    } catch (...) {
      end();
      throw;
    }
  }
  ~ThreadEngine() override { end(); }
  ThreadEngine(const ThreadEngine&) = delete;
  ThreadEngine& operator=(const ThreadEngine&) = delete;

  const char* name() const override { return "threads"; }

  bool start(const IoRequest& request) override {
    {
      const std::lock_guard lock(mutex_);
      if (waiting_.size() >= kWaitingMax) return false;
      waiting_.push_back(request);
    }
    wanted_.notify_one();
    return true;
  }

  void submit() override {}

  uint32_t reap(std::span<IoCompletion> completions) override {
    const std::lock_guard lock(mutex_);
    const size_t count = std::min(done_.size(), completions.size());
    std::copy_n(done_.begin(), count, completions.begin());
    done_.erase(done_.begin(), done_.begin() + static_cast<std::ptrdiff_t>(count));
    return static_cast<uint32_t>(count);
  }

  void wait(uint64_t timeout_ns) override {
    std::unique_lock lock(mutex_);
    news_.wait_for(lock, std::chrono::nanoseconds(timeout_ns),
                   [this] { return !done_.empty() || woken_; });
    woken_ = false;
  }

  void abandon() override {
    const std::lock_guard lock(mutex_);
    waiting_.clear();
  }

  void wake() override {
    {
      const std::lock_guard lock(mutex_);
      woken_ = true;
    }
    news_.notify_one();
  }

 private:
  void serve() {
    std::unique_lock lock(mutex_);
    for (;;) {
      wanted_.wait(lock, [this] { return ends_ || !waiting_.empty(); });
      if (waiting_.empty()) return;
      const IoRequest request = waiting_.front();
      waiting_.pop_front();
      lock.unlock();
      const int64_t result = call_kernel(target_, request);
      lock.lock();
      done_.push_back({request.tag, result});
      news_.notify_one();
      if (tell_) tell_();
    }
  }

  void end() {
    {
      const std::lock_guard lock(mutex_);
      ends_ = true;
    }
    wanted_.notify_all();
    for (std::thread& thread : threads_) thread.join();
  }

  const IoTarget target_;
  const std::function<void()> tell_;
  std::mutex mutex_;
  std::condition_variable wanted_;  // there is something to do
  std::condition_variable news_;    // something is done
  std::deque<IoRequest> waiting_;
  std::vector<IoCompletion> done_;
  bool woken_ = false;
  bool ends_ = false;
  std::vector<std::thread> threads_;
};

}  // namespace

std::unique_ptr<IoEngine> make_thread_engine(const IoTarget& target) {
  return make_waiting_threads(target, kThreads, {});
}

std::unique_ptr<IoEngine> make_waiting_threads(const IoTarget& target, uint32_t threads,
                                               std::function<void()> news) {
  return std::make_unique<ThreadEngine>(target, threads, std::move(news));
}

}  // namespace gofs::ssd
