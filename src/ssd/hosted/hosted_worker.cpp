// SPDX-License-Identifier: Apache-2.0
#include "ssd/hosted/hosted_worker.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <mutex>
#include <utility>

#include "ssd/file_back_end.h"
#include "ssd/hosted/quiet_thread.h"

namespace gofs::ssd {

namespace {

using format::nvme::IoOpcode;

/// Commands of which one completes before it is worth while to look for others.
constexpr uint32_t kManyUnderWay = 4;
/// Looks after which what they have started goes to the kernel in any case.
constexpr uint32_t kLooksTogether = 8;
/// Commands of a queue that are taken before others get their turn.
constexpr uint32_t kTakenAtOnce = 64;

uint64_t tag_of(uint32_t slot, uint32_t place) { return uint64_t{slot} << 32 | place; }

void pause_a_moment() {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#else
  std::this_thread::yield();
#endif
}

}  // namespace

HostedWorker::HostedWorker(VirtualController& controller, BackingStore& store, const Part& part,
                           const IdlePolicy& idle, std::span<uint8_t> buffers,
                           const EngineMaker& make_engine, CommandMeter& meter)
    : controller_(controller),
      store_(store),
      part_(part),
      idle_(idle),
      meter_(meter),
      nap_ns_(idle.nap_first_ns) {
  for (uint32_t qid = 1; qid <= controller.queue_limit; ++qid) {
    if (worker_of(qid, part.count) == part.index) qids_.push_back(qid);
  }
  flights_.resize(qids_.size());
  thread_ = start_quiet_thread([this, &make_engine, buffers] { run(make_engine, buffers); });
  ready_.wait(false);
  if (failed_ == nullptr) return;
  thread_.join();
  std::rethrow_exception(failed_);
}

HostedWorker::~HostedWorker() {
  stop();
  thread_.join();
}

void HostedWorker::stop() {
  ends_ = true;
  wake();
}

void HostedWorker::nudge(uint32_t qid) {
  if (asleep_.load(std::memory_order_relaxed) && has_work(controller_, qid)) wake();
}

void HostedWorker::wake() {
  if (asleep_.exchange(false)) engine_->wake();
}

/// The kernel wants one thread to make a ring and to use it.
void HostedWorker::run(const EngineMaker& make_engine, std::span<uint8_t> buffers) {
  std::unique_ptr<IoEngine> engine;
  try {
    engine = make_engine({store_.descriptor(), store_.traits().is_device, buffers});
    engine_name_ = engine->name();
  } catch (...) {
    failed_ = std::current_exception();
  }
  engine_ = std::move(engine);
  ready_ = true;
  ready_.notify_one();
  if (failed_ != nullptr) return;
  serve();
}

void HostedWorker::serve() {
  while (!ends_.load(std::memory_order_relaxed)) {
    if (work()) {
      be_awake();
    } else {
      idle(simt::now_ns());
    }
  }
  drain();
}

void HostedWorker::be_awake() {
  idle_since_ns_ = 0;
  nap_ns_ = idle_.nap_first_ns;
  fruitless_ = 0;
}

void HostedWorker::drain() {
  // Nothing else is begun, and no driver waits for it.
  under_way_ -= static_cast<uint32_t>(stalled_.size());
  stalled_.clear();
  drains_ = true;
  const simt::Deadline deadline = simt::Deadline::after_ns(kDrainNs);
  while (under_way_ != 0 && !deadline.passed()) {
    if (!reap()) engine_->wait(idle_.nap_last_ns);
  }
  meter_.stop(simt::now_ns());
  if (under_way_ == 0) return engine_->close();
  engine_->abandon();
  // The kernel may still write to what these point to, so they never go.
  using Kept = std::pair<std::unique_ptr<IoEngine>, std::vector<std::vector<Flight>>>;
  static auto* const kept = new std::deque<Kept>();
  static std::mutex mutex;
  const std::lock_guard lock(mutex);
  kept->emplace_back(std::move(engine_), std::move(flights_));
}

/// Looks at all that there may be to do, once. Whether there was something.
bool HostedWorker::work() {
  cut_looked_for_ = false;
  bool busy = part_.index == 0 && step_admin_queue();
  while (!stalled_.empty()) {
    const uint64_t tag = stalled_.front();
    stalled_.pop_front();
    const size_t before = stalled_.size();
    go_on(tag);
    if (stalled_.size() > before) break;
  }
  for (const uint32_t qid : qids_) {
    if (stalled_.empty()) busy = fetch(qid) || busy;
  }
  if (!is_woken() || ++looks_ == kLooksTogether) {
    engine_->submit();
    looks_ = 0;
  }
  busy = reap() || busy;
  const uint64_t now_ns = simt::now_ns();
  for (const uint32_t qid : qids_) {
    busy = post_due(simt::Warp(), controller_, qid, now_ns) != 0 || busy;
  }
  return busy;
}

bool HostedWorker::admin_is_wanted() const {
  const AdminState& admin = controller_.admin;
  const uint32_t configuration = simt::load_system_acquire(controller_.registers().cc);
  if (configuration != seen_cc_ || admin.phase == ControllerPhase::kResetting) return true;
  if (admin.phase != ControllerPhase::kReady) return false;
  return simt::load_relaxed(controller_.failed) != 0 ||
         simt::load_system_relaxed(controller_.submission_doorbell(0)) != admin.head;
}

bool HostedWorker::step_admin_queue() {
  if (!admin_is_wanted()) return false;
  seen_cc_ = simt::load_system_acquire(controller_.registers().cc);
  const AdminState& admin = controller_.admin;
  const ControllerPhase phase = admin.phase;
  const uint32_t head = admin.head;
  step_admin(simt::Warp(), controller_);
  return admin.phase != phase || admin.head != head;
}

bool HostedWorker::fetch(uint32_t qid) {
  SubmissionQueue& queue = controller_.submission_queue(qid);
  uint64_t now_ns = 0;
  for (uint32_t taken = 0; taken < kTakenAtOnce; ++taken) {
    if (!has_work(controller_, qid)) return taken != 0;
    const Claim claim = claim_commands(simt::Warp(), controller_, queue, qid);
    if (claim.count == 0) return taken != 0;
    if (taken == 0) now_ns = simt::now_ns();
    take(qid, claim, now_ns);
    if (!stalled_.empty()) return true;
  }
  return true;
}

void HostedWorker::take(uint32_t qid, const Claim& claim, uint64_t now_ns) {
  SubmissionQueue& queue = controller_.submission_queue(qid);
  const uint32_t slot = (qid - 1) / part_.count;
  std::vector<Flight>& flights = flights_[slot];
  if (flights.size() < claim.depth) flights.resize(claim.depth);
  const uint32_t place = claim.first.index();
  Flight& flight = flights[place];
  const auto* const entries = reinterpret_cast<const format::nvme::SubmissionEntry*>(claim.entries);
  flight.claim = claim;
  flight.began_ns = now_ns;
  flight.command = decode_io_command(controller_, entries[place]);
  // Without a cache everything that has completed is durable.
  if (!controller_.volatile_cache_present) flight.command.durable = false;
  if (flight.command.durable || flight.command.is(IoOpcode::kFlush)) {
    simt::add_relaxed(controller_.flush_requests, uint64_t{1});
  }
  simt::count_release(queue.consumed, 1);  // [S3]
  ++under_way_;
  meter_.begin(now_ns);
  if (flight.command.fails()) return end(qid, flight);
  const bool reads = flight.command.is(IoOpcode::kRead);
  if (!reads && !std::exchange(cut_looked_for_, true)) store_.look_for_cut();
  flight.begin(controller_, store_.traits(), bounces_);
  if (flight.command.fails()) return end(qid, flight);
  const int refusal = store_.write_refusal();
  if (refusal != 0 && (!reads || refusal == kImageWasCut || store_.is_gone())) {
    fail(flight, refusal);
    return end(qid, flight);
  }
  go_on(tag_of(slot, place));
}

Flight& HostedWorker::flight_of(uint64_t tag) {
  return flights_[tag >> 32][static_cast<uint32_t>(tag)];
}

/// Starts the next request of a command, or ends it.
void HostedWorker::go_on(uint64_t tag) {
  Flight& flight = flight_of(tag);
  const uint32_t qid = qids_[tag >> 32];
  IoRequest request;
  if (!flight.next(request)) return end(qid, flight);
  request.tag = tag;
  const bool writes = request.kind == IoRequest::Kind::kWrite;
  if (writes && store_.exceeds_limit(request.offset + request.bytes)) {
    fail(flight, -EFBIG);
    return end(qid, flight);
  }
  if (!engine_->start(request)) stalled_.push_back(tag);
}

bool HostedWorker::reap() {
  std::array<IoCompletion, 64> completions;
  bool any = false;
  for (;;) {
    const uint32_t count = engine_->reap(completions);
    for (const IoCompletion& completion : std::span(completions).first(count)) {
      Flight& flight = flight_of(completion.tag);
      if (const int error = flight.note(completion.result); error != 0) {
        fail(flight, error);
        end(qids_[completion.tag >> 32], flight);
      } else if (completion.result == -EAGAIN || drains_) {
        again(completion.tag);
      } else {
        go_on(completion.tag);
      }
    }
    any = any || count != 0;
    if (count < completions.size()) return any;
  }
}

/// With the next look, if there is one.
void HostedWorker::again(uint64_t tag) {
  if (drains_) {
    --under_way_;
  } else {
    stalled_.push_back(tag);
  }
}

/// A fatal controller ends its commands all the same, each with an error: none waits for its
/// deadline.
void HostedWorker::fail(Flight& flight, int error) {
  using namespace format::nvme;
  flight.command.fail(store_.note_failure(flight.asked(), error));
  if (!store_.is_gone()) return;
  simt::store_system_release(controller_.registers().csts, kCstsReady | kCstsFatal);
}

/// The command has its status: its completion is recorded, and posted with the next look.
void HostedWorker::end(uint32_t qid, Flight& flight) {
  SubmissionQueue& queue = controller_.submission_queue(qid);
  const simt::Warp warp;
  detail::count_commands(warp, controller_, queue, qid, flight.command);
  const uint64_t now_ns = simt::now_ns();
  meter_.end(flight.command.opcode, flight.began_ns, now_ns);
  const uint64_t due_ns =
      detail::leave_record(warp, controller_, queue, flight.claim, flight.command, nullptr, now_ns);
  detail::lower_next_due(queue, due_ns);
  flight.end();
  simt::count_release(queue.finished, 1);  // [S2]
  --under_way_;
}

bool HostedWorker::wants_something() {
  if (part_.index == 0 && admin_is_wanted()) return true;
  const bool stopped = simt::load_relaxed(controller_.stopped) != 0;
  return std::any_of(qids_.begin(), qids_.end(), [&](uint32_t qid) {
    // A completion that finds no room is tried again: no nudge says when there is some.
    const uint64_t due_ns = simt::load_relaxed(controller_.submission_queue(qid).next_due_ns);
    return (due_ns != kNever && !stopped) || has_work(controller_, qid);
  });
}

/// Where much is under way, some of it soon completes and wakes this thread. What comes until then
/// goes to the kernel together, with the wait.
bool HostedWorker::is_woken() const {
  return under_way_ >= kManyUnderWay && idle_.spin_ns != kNever;
}

void HostedWorker::idle(uint64_t now_ns) {
  constexpr uint32_t kFruitlessMax = 100;
  if (idle_since_ns_ == 0) idle_since_ns_ = now_ns;
  if (!is_woken() && now_ns - idle_since_ns_ < idle_.spin_ns) return pause_a_moment();
  asleep_ = true;
  // Whoever rings a doorbell nudges at each look for its completion, so at one of them this thread
  // is seen to sleep.
  std::atomic_thread_fence(std::memory_order_seq_cst);
  if (!wants_something() && stalled_.empty() && !ends_) {
    fruitless_ = 0;
    // The more is under way, the less it matters when one more begins.
    const uint64_t times = std::max(under_way_ / kManyUnderWay, 1u);
    engine_->wait(std::min(nap_ns_ * times, idle_.nap_last_ns));
    if (under_way_ == 0) nap_ns_ = std::min(2 * nap_ns_, idle_.nap_last_ns);
  } else if (++fruitless_ < kFruitlessMax) {
    pause_a_moment();
  } else {
    // It is not for this thread to do: a completion queue that is full, a doorbell that makes no
    // sense, or a reset that waits for others.
    engine_->wait(idle_.nap_first_ns);
  }
  if (!asleep_.exchange(false)) be_awake();
}

}  // namespace gofs::ssd
