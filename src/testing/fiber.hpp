// SPDX-License-Identifier: Apache-2.0
//
// Several flows of execution on one thread, each with a stack of its own; a switch is a few
// instructions and no system call. ASan is told which stack is in use. ThreadSanitizer takes each
// fiber for a thread, and a switch orders nothing.
//
// A fiber does one work after another, each from its begin to its end on one thread, which need not
// be the same for all. To make one takes sanitizers as long as to make a thread, so they are kept.
#pragma once

#include <sanitizer/common_interface_defs.h>
#include <sanitizer/tsan_interface.h>

#include <atomic>
#include <boost/context/detail/fcontext.hpp>
#include <functional>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "simt/platform.h"
#include "testing/fiber_stack.hpp"

namespace gofs::testing {

/// No fiber may switch while it handles an exception: what is being handled is noted by thread.
class Fiber {
 public:
  /// Returns the fiber that goes on when this work has ended. Nothing may be thrown out of it.
  using Work = std::function<Fiber&()>;

  /// The calling flow as it is, to come back to.
  static Fiber here() { return Fiber(); }

  /// A flow of its own, without work.
  explicit Fiber(std::in_place_t) : stack_(std::in_place) {
    Fiber maker = here();
    maker.made_ = this;
    context_ = boost::context::detail::make_fcontext(stack_->top(), FiberStack::kBytes, begin);
    stack_bottom_ = stack_->bottom();
    stack_bytes_ = FiberStack::kBytes;
#if defined(GOFS_THREAD_SANITIZER)
    tsan_fiber_ = __tsan_create_fiber(0);
#endif
    maker.jump(*this, Leave::kForNow);
    GOFS_ASSERT(ended());
  }

  /// Of one that has no work, or the calling flow.
  ~Fiber() {
    if (!stack_) return;
    GOFS_ASSERT(ended());
    Fiber last = here();
    is_over_ = true;
    start([&last]() -> Fiber& { return last; });
    last.jump(*this, Leave::kForNow);
    GOFS_ASSERT(ended());
#if defined(GOFS_THREAD_SANITIZER)
    __tsan_destroy_fiber(tsan_fiber_);
#endif
  }
  Fiber(const Fiber&) = delete;
  Fiber& operator=(const Fiber&) = delete;

  /// Gives it work, which begins when a fiber switches to it, on the thread of that one. What the
  /// caller did before is ordered before `work`.
  void start(Work work) {
    GOFS_ASSERT(ended());
    work_ = std::move(work);
    ended_.store(false, std::memory_order_relaxed);
    started_.store(true, std::memory_order_release);  // [T3]
  }

  /// Whether it has no work (any more): all that `work` did is ordered before what follows.
  bool ended() const { return ended_.load(std::memory_order_acquire); }  // [T4]

  /// Called by this fiber: goes on with `next`, and returns when a fiber switches back.
  void switch_to(Fiber& next) { jump(next, Leave::kForNow); }

 private:
  using Transfer = boost::context::detail::transfer_t;
  enum class Leave { kForNow, kWithoutWork, kForGood };

  Fiber() {
#if defined(GOFS_THREAD_SANITIZER)
    tsan_fiber_ = __tsan_get_current_fiber();
#endif
  }

  /// All that happens on the new stack. An exception that comes here ends the program.
  static void begin(Transfer came) noexcept {
    Fiber& maker = *static_cast<Fiber*>(came.data);
    Fiber& self = *maker.made_;
    arrive(came, nullptr);
    Fiber* next = &maker;
    while (!self.is_over_) {
      self.jump(*next, Leave::kWithoutWork);
      next = &self.work_();
    }
    self.jump(*next, Leave::kForGood);
  }

  /// ASan keeps no marks for this one's own variables: when the flow is left for good, they would
  /// go while they are in use.
  __attribute__((no_sanitize("address"))) void jump(Fiber& next, Leave leave) {
    void* const context = next.context_.load(std::memory_order_relaxed);
    [[maybe_unused]] void* const tsan_fiber = next.tsan_fiber_;
    void* fake_stack = nullptr;
    // Nothing of this fiber is touched behind it, before there is work again.
    if (leave != Leave::kForNow) ended_.store(true, std::memory_order_release);  // [T4]
#if defined(GOFS_ADDRESS_SANITIZER)
    __sanitizer_start_switch_fiber(leave == Leave::kForGood ? nullptr : &fake_stack,
                                   next.stack_bottom_, next.stack_bytes_);
#elif defined(GOFS_THREAD_SANITIZER)
    __tsan_switch_to_fiber(tsan_fiber, __tsan_switch_to_fiber_no_sync);
#endif
    const Transfer came = boost::context::detail::jump_fcontext(context, this);
    if (leave == Leave::kWithoutWork) started_.load(std::memory_order_acquire);  // [T3]
    arrive(came, fake_stack);
  }

  /// Behind a switch: notes where the fiber that we come from goes on.
  static void arrive(Transfer came, [[maybe_unused]] void* fake_stack) {
    Fiber& from = *static_cast<Fiber*>(came.data);
#if defined(GOFS_ADDRESS_SANITIZER)
    __sanitizer_finish_switch_fiber(fake_stack, &from.stack_bottom_, &from.stack_bytes_);
#endif
    from.context_.store(came.fctx, std::memory_order_relaxed);
  }

  std::optional<FiberStack> stack_;  // none where it is a flow that was there before
  Work work_;
  bool is_over_ = false;   // after the next work
  Fiber* made_ = nullptr;  // by this one
  // Atomic, since those that read and write them are threads for ThreadSanitizer.
  std::atomic<void*> context_{nullptr};
  std::atomic<bool> started_{false};
  std::atomic<bool> ended_{true};
  const void* stack_bottom_ = nullptr;
  size_t stack_bytes_ = 0;
  void* tsan_fiber_ = nullptr;
};

/// The fibers without work that a thread keeps for its next launch. They stay with the thread that
/// launches, so that each of them may well be ordered behind its former work: the launch is.
class SpareFibers {
 public:
  struct GiveBack {
    void operator()(Fiber* fiber) const { all().emplace_back(fiber); }
  };
  using Loan = std::unique_ptr<Fiber, GiveBack>;

  /// Goes back on the same thread.
  static Loan take() {
    if (all().empty()) return Loan(new Fiber(std::in_place));
    Loan loan(all().back().release());
    all().pop_back();
    return loan;
  }

 private:
  static std::vector<std::unique_ptr<Fiber>>& all() {
    static thread_local std::vector<std::unique_ptr<Fiber>> fibers;
    return fibers;
  }
};

}  // namespace gofs::testing
