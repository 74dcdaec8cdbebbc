// SPDX-License-Identifier: Apache-2.0
#include "testing/teams.hpp"

#include <array>
#include <atomic>
#include <memory>
#include <utility>
#include <vector>

#include "testing/fiber.hpp"

namespace gofs::testing {
namespace {

/// The lanes of one warp. A lane runs until it waits for the others or pauses. Who goes on first
/// behind a barrier changes from one to the next, for each warp in a way of its own.
class TeamTurns final : public simt::LaneTurns {
 public:
  /// Made and destroyed by the thread that launches.
  TeamTurns(uint32_t width, uint32_t index, const TeamWork& work)
      : team_(width, *this), index_(index), work_(work), able_(all_lanes()), luck_(index + 1) {
    for (uint32_t rank = 0; rank < width; ++rank) lanes_[rank] = SpareFibers::take();
  }

  /// Plays all lanes, on the calling thread, and returns when their work has ended.
  void run() {
    simt::host_turns = this;
    const uint32_t outer_worker = std::exchange(simt::host_worker, index_);
    Fiber thread = Fiber::here();
    thread_ = &thread;
    running_ = any_lane();
    for (uint32_t rank = 0; rank < team_.size(); ++rank) {
      lanes_[rank]->start([this, rank]() -> Fiber& {
        work_(simt::Warp(&team_, rank), index_);
        return next_of_ended();
      });
    }
    thread.switch_to(*lanes_[running()]);
    for (uint32_t rank = 0; rank < team_.size(); ++rank) GOFS_ASSERT(lanes_[rank]->ended());
    simt::host_worker = outer_worker;
    simt::host_turns = nullptr;
  }

  bool pause() override {
    const uint32_t pauses = pauses_.load(std::memory_order_relaxed) + 1;
    const uint32_t able = able_.load(std::memory_order_relaxed);
    const bool others = pauses < simt::popcount(able);
    pauses_.store(others ? pauses : 0, std::memory_order_relaxed);
    if (others) switch_to(next_able(able));
    return others;
  }

  void wait() override { switch_to(next_without_running()); }

  void release_all() override {
    able_.store(all_lanes(), std::memory_order_relaxed);
    pauses_.store(0, std::memory_order_relaxed);
    const uint32_t first = any_lane();
    if (first != running()) switch_to(first);
  }

 private:
  uint32_t all_lanes() const { return ~0u >> (32 - team_.size()); }
  uint32_t running() const { return running_.load(std::memory_order_relaxed); }

  /// The next lane behind the running one that can go on.
  uint32_t next_able(uint32_t able) const {
    GOFS_ASSERT(able != 0 && "lanes wait for one that has ended");
    const uint32_t behind = able & (~1u << running());
    return simt::lowest_bit(behind != 0 ? behind : able);
  }

  /// The same when the running one cannot.
  uint32_t next_without_running() {
    const uint32_t able = able_.load(std::memory_order_relaxed) & ~(1u << running());
    able_.store(able, std::memory_order_relaxed);
    return next_able(able);
  }

  Fiber& next_of_ended() {
    if (ended_.fetch_add(1, std::memory_order_relaxed) + 1 == team_.size()) return *thread_;
    pauses_.store(0, std::memory_order_relaxed);
    const uint32_t next = next_without_running();
    running_.store(next, std::memory_order_relaxed);
    return *lanes_[next];
  }

  void switch_to(uint32_t lane) {
    Fiber& from = *lanes_[running()];
    running_.store(lane, std::memory_order_relaxed);
    from.switch_to(*lanes_[lane]);
  }

  /// The next of a xorshift, which is cheap and never 0.
  uint32_t any_lane() {
    uint32_t luck = luck_.load(std::memory_order_relaxed);
    luck ^= luck << 13;
    luck ^= luck >> 17;
    luck ^= luck << 5;
    luck_.store(luck, std::memory_order_relaxed);
    return (luck >> 8) % team_.size();
  }

  simt::Team team_;
  const uint32_t index_;
  const TeamWork& work_;
  Fiber* thread_ = nullptr;  // what the thread did before and does after
  std::array<SpareFibers::Loan, simt::Team::kSizeMax> lanes_;
  // ThreadSanitizer takes lanes for threads, so what they share is atomic; relaxed, since turns are
  // to order nothing. Only a lane's begin and end do, as those of a thread.
  std::atomic<uint32_t> able_;  // bit i: lane i has not ended and does not wait
  std::atomic<uint32_t> running_{0};
  std::atomic<uint32_t> pauses_{0};  // by lanes that are able, since one of them got further
  std::atomic<uint32_t> ended_{0};
  std::atomic<uint32_t> luck_;
};

}  // namespace

void run_teams(uint32_t count, uint32_t width, const TeamWork& work) {
  GOFS_ASSERT(simt::host_turns == nullptr);
  std::vector<std::unique_ptr<TeamTurns>> teams;
  for (uint32_t index = 0; index < count; ++index) {
    teams.push_back(std::make_unique<TeamTurns>(width, index, work));
  }
  if (count == 1) {
    teams.front()->run();
  } else {
    simt::run_workers(count, [&](const simt::Warp&, uint32_t index) { teams[index]->run(); });
  }
}

}  // namespace gofs::testing
