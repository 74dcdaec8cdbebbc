// SPDX-License-Identifier: Apache-2.0
#include "host/serve/servant.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cmath>
#include <mutex>
#include <thread>
#include <utility>

#include "host/serve/serve_bodies.h"
#include "host/shared_array.h"

namespace gofs::host {

namespace {

/// Warps of a block that serves: one looks, seven perform.
constexpr uint32_t kWarpsOfBlock = 8;
/// A launch costs some 10 us. What waits until the GPU is idle, as the release of memory does,
/// waits for the end of a turn; and all clients wait for the longest call of one that is over.
constexpr uint64_t kTurnNs = 20'000'000;
constexpr uint64_t kTurnNsMax = 1'000'000'000;
constexpr uint64_t kNever = ~uint64_t{0};
/// So long a turn that keeps its place waits for an answer to its question for the next.
constexpr std::chrono::milliseconds kUnasked{1};
/// Of the warps that perform calls: where more were busy there are to be more, and the reverse.
constexpr double kManyBusy = 0.75;
constexpr double kFewBusy = 0.25;

class WarpServant final : public Servant {
 public:
  WarpServant(const ServedFilesystem& served, serve::Server* server)
      : served_(served),
        room_(served.backend->memory(), 1),
        params_(served.backend->shared_memory(), 1) {
    params_[0] = {server, room_.data(), 0};
  }
  End serve(uint64_t idle_ns) override {
    params_[0].idle_ns = idle_ns;
    const bool ran = served_.run(kernels::bodies::kServe, {1, 1}, params_.data());
    return ran ? End::kRest : End::kFailed;
  }

 private:
  const ServedFilesystem& served_;
  const SharedArray<serve::CallRoom> room_;
  const SharedArray<kernels::ServeParams> params_;
};

class GridServant final : public Servant {
 public:
  GridServant(const ServedFilesystem& served, serve::Server* server, uint32_t blocks_max,
              std::function<bool()> keeps_place)
      : served_(served),
        server_(server),
        blocks_max_(blocks_max),
        keeps_place_(std::move(keeps_place)),
        grid_(served.backend->memory(), 1),
        turns_{Turn(*served.backend, blocks_max), Turn(*served.backend, blocks_max)} {}
  ~GridServant() override {
    for (const Turn& turn : turns_) {
      if (turn.launch != nullptr) (void)turn.launch->wait();
    }
  }

  End serve(uint64_t idle_ns) override {
    if (now_->launch == nullptr && !begin(*now_, idle_ns)) return End::kFailed;
    if (now_->params[0].turn.keeps_place && !begin_next_when_asked(idle_ns)) return End::kFailed;
    const bool ran = now_->launch->wait();
    const std::lock_guard lock(mutex_);
    now_->launch.reset();
    if (!ran) return End::kFailed;
    const kernels::ServeTurnParams& ended = now_->params[0];
    ended_ = ended.turn.number;
    if (next_->launch != nullptr) {
      std::swap(now_, next_);
      return End::kTurn;
    }
    suit_blocks(ended.busy_most);
    return ended.rests != 0 ? End::kRest : End::kTurn;
  }
  bool is_at_work() const override { return now_->launch != nullptr; }
  uint32_t turns_begun() const override { return begun_; }
  uint32_t turns_ended() const override { return ended_; }
  void end_turn() override {
    const std::lock_guard lock(mutex_);
    if (now_->launch != nullptr) tell(*now_, kernels::NextTurn::kNone);
  }
  void stop() override {
    const std::lock_guard lock(mutex_);
    stops_ = true;
    for (const Turn& turn : turns_) {
      if (turn.launch != nullptr) tell(turn, kernels::NextTurn::kNone);
    }
  }

 private:
  struct Turn {
    Turn(kernels::Backend& backend, uint32_t blocks_max)
        : rooms(backend.memory(), size_t{blocks_max} * kWarpsOfBlock),
          params(backend.shared_memory(), 1) {}

    SharedArray<serve::CallRoom> rooms;
    SharedArray<kernels::ServeTurnParams> params;
    std::unique_ptr<kernels::Begun> launch;  // while it is under way
  };

  bool begin(Turn& turn, uint64_t idle_ns) {
    const bool keeps_place = keeps_place_();
    turn.params[0] = {};
    turn.params[0].turn = {.server = server_,
                           .grid = grid_.data(),
                           .rooms = turn.rooms.data(),
                           .number = ++begun_,
                           .keeps_place = keeps_place,
                           .idle_ns = keeps_place ? kNever : idle_ns,
                           .turn_ns = kTurnNs,
                           .busy_many = blocks_ < blocks_max_ ? many_busy() : ~0u,
                           .busy_few = blocks_ > 1 ? few_busy() + 1 : 0,
                           .turn_ns_max = kTurnNsMax};
    const uint32_t threads = kWarpsOfBlock * served_.backend->warp_width();
    auto launch =
        served_.begin(kernels::bodies::kServeTurn, {blocks_, threads}, turn.params.data());
    const std::lock_guard lock(mutex_);
    turn.launch = std::move(launch);
    if (stops_) tell(turn, kernels::NextTurn::kNone);
    return turn.launch != nullptr;
  }
  static void tell(const Turn& turn, kernels::NextTurn next) {
    simt::store_system_relaxed(turn.params[0].next, next);
  }
  /// Returns when the turn has been told of the next one, or has ended without. Whether that could
  /// be begun, if it was to be.
  bool begin_next_when_asked(uint64_t idle_ns) {
    const kernels::ServeTurnParams& params = now_->params[0];
    while (simt::load_system_acquire(params.wants_next) == 0) {
      if (now_->launch->is_over()) return true;
      std::this_thread::sleep_for(kUnasked);
    }
    bool begins = keeps_place_();
    bool begun = true;
    if (begins) {
      suit_blocks(params.busy_most);
      begun = begins = begin(*next_, idle_ns);
    }
    const std::lock_guard lock(mutex_);
    tell(*now_, begins && !stops_ ? kernels::NextTurn::kLaunched : kernels::NextTurn::kNone);
    return begun;
  }

  /// Of the warps, so many are for calls.
  uint32_t for_calls() const { return blocks_ * kWarpsOfBlock - 1; }
  /// So many busy ones are many.
  uint32_t many_busy() const { return static_cast<uint32_t>(std::ceil(kManyBusy * for_calls())); }
  /// No more than so many are few.
  uint32_t few_busy() const { return static_cast<uint32_t>(kFewBusy * for_calls()); }
  void suit_blocks(uint32_t busy) {
    if (busy >= many_busy()) {
      blocks_ = std::min(2 * blocks_, blocks_max_);
    } else if (busy <= few_busy()) {
      blocks_ = std::max(blocks_ / 2, 1u);
    }
  }

  const ServedFilesystem& served_;
  serve::Server* const server_;
  const uint32_t blocks_max_;
  const std::function<bool()> keeps_place_;
  const SharedArray<kernels::ServingGrid> grid_;
  Turn turns_[2];
  Turn* now_ = &turns_[0];
  Turn* next_ = &turns_[1];
  std::atomic<uint32_t> begun_{0};  // turns_begun()
  std::atomic<uint32_t> ended_{0};  // turns_ended()
  uint32_t blocks_ = 1;
  std::mutex mutex_;  // of the turns' launches, and which is which, where another thread asks
  bool stops_ = false;
};

}  // namespace

std::unique_ptr<Servant> make_warp_servant(const ServedFilesystem& served, serve::Server* server) {
  return std::make_unique<WarpServant>(served, server);
}

std::unique_ptr<Servant> make_grid_servant(const ServedFilesystem& served, serve::Server* server,
                                           uint32_t blocks_max, std::function<bool()> keeps_place) {
  return std::make_unique<GridServant>(served, server, blocks_max, std::move(keeps_place));
}

}  // namespace gofs::host
