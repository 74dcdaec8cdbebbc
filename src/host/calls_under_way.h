// SPDX-License-Identifier: Apache-2.0
//
// The calls that threads of this process are in. Who ends what they use forbids new ones first, and
// then waits for these.
#pragma once

#include <atomic>
#include <cstdint>

namespace gofs::host {

class CallsUnderWay {
 public:
  /// One call, from before it looks whether it may be made to its end.
  class One {
   public:
    explicit One(CallsUnderWay& calls) : count_(calls.count_) { ++count_; }
    One(const One&) = delete;
    One& operator=(const One&) = delete;
    ~One() {
      if (--count_ == 0) count_.notify_all();
    }

   private:
    std::atomic<uint32_t>& count_;
  };

  /// Waits until there is none: as long as each of them does.
  void wait() const {
    for (uint32_t left = count_; left != 0; left = count_) count_.wait(left);
  }

 private:
  std::atomic<uint32_t> count_{0};
};

}  // namespace gofs::host
