// SPDX-License-Identifier: Apache-2.0
#include "ssd/hosted/hosted_controller.h"

#include <algorithm>
#include <bit>
#include <cerrno>
#include <system_error>

#include "ssd/system_failure.h"

namespace gofs::ssd {

namespace {

constexpr uint64_t kUs = 1000;
constexpr uint64_t kMs = 1000 * kUs;
constexpr uint32_t kStopHalfSeconds = 120;  // a disk that retries takes its time

/// Threads that are woken by those who wait sleep at once, and longer. A GPU's stores wake no
/// thread, and a warp that reads what it is asked for by others has 50 us between two commands.
IdlePolicy idle_policy(const HostedOptions& options) {
  if (options.always_polls) return {kNever, kMs, kMs};
  if (options.is_nudged) return {2 * kUs, kMs, 10 * kMs};
  return {200 * kUs, 50 * kUs, kMs};
}

}  // namespace

HostedController::HostedController(std::unique_ptr<BackingStore> store, simt::MemorySpace& memory,
                                   const HostedOptions& options)
    : store_(std::move(store)), memory_(memory) {
  const StorageTraits& traits = store_->traits();
  Media media;
  // No warp moves data by it: it only says that there is no memory with the contents.
  media.transfer = sync_store;
  media.transfer_context = this;
  media.sync = sync_store;
  media.sync_context = this;
  media.read_only = traits.read_only;
  const VirtualSsdConfig config = config_of(options);
  media.bytes = traits.bytes >> config.lba_shift << config.lba_shift;
  state_ = create_virtual_controller(memory, config, media);
  ref_ = state_;
  ref_.controller = nullptr;
  if (options.is_nudged) {
    ref_.nudge = nudge;
    ref_.nudged = this;
  }
  try {
    start_threads(options);
  } catch (...) {
    workers_.clear();
    destroy_virtual_controller(memory_, state_);
    throw;
  }
}

HostedController::~HostedController() {
  stop();
  destroy_virtual_controller(memory_, state_);
}

void HostedController::stop() {
  for (const auto& worker : workers_) worker->stop();
  workers_.clear();
  store_.reset();
}

VirtualSsdConfig HostedController::config_of(const HostedOptions& options) const {
  const StorageTraits& traits = store_->traits();
  const uint32_t least = traits.lba_bytes <= 512 ? 512 : kBlockBytes;
  const uint32_t lba_bytes = options.lba_bytes == 0 ? least : options.lba_bytes;
  if (lba_bytes < traits.lba_bytes) {
    fail_with(EINVAL, store_->path() + ": its sectors have " + std::to_string(traits.lba_bytes) +
                          " bytes, so LBAs cannot have " + std::to_string(lba_bytes));
  }
  VirtualSsdConfig config;
  config.model_number = "GoFS hosted NVMe SSD";
  config.lba_shift = static_cast<uint32_t>(std::countr_zero(lba_bytes));
  config.queue_pairs_max = options.queue_pairs_max;
  config.queue_entries_max = options.queue_entries_max;
  config.mdts = options.mdts;
  config.volatile_write_cache = traits.volatile_cache;
  // Linux promises no more.
  config.atomic_bytes = lba_bytes;
  config.deallocated_reads_zeros = false;
  config.dataset_management = traits.discards;
  config.timeout_half_seconds = kStopHalfSeconds;
  return config;
}

/// io_uring gives each request for a file that lies in memory to a thread of the kernel's.
EngineMaker HostedController::suit_store(const HostedOptions& options, EngineMaker maker) const {
  const bool best = options.engine == EngineKind::kBest && !options.make_engine;
  const bool in_memory = best && store_->traits().in_memory;
  if (options.engine != EngineKind::kMemory && !in_memory) return maker;
  return [maker = std::move(maker)](const IoTarget& target) {
    return make_memory_engine(target, maker(target));
  };
}

EngineMaker HostedController::choose_engine(const HostedOptions& options) {
  if (options.make_engine) return options.make_engine;
  if (options.engine == EngineKind::kThreads) return make_thread_engine;
  const int refusal = uring_refusal();
  if (refusal == 0) return make_uring_engine;
  why_no_uring_ = "io_uring: " + std::generic_category().message(refusal);
  if (options.engine == EngineKind::kUring) fail_with(refusal, store_->path() + ": io_uring");
  return make_thread_engine;
}

void HostedController::start_threads(const HostedOptions& options) {
  EngineMaker make_engine = suit_store(options, choose_engine(options));
  const bool may_choose = options.engine == EngineKind::kBest && !options.make_engine;
  const uint32_t count = std::clamp(options.threads, 1u, options.queue_pairs_max);
  for (uint32_t i = 0; i < count; ++i) meters_.emplace_back(busy_);
  const auto start = [&] {
    for (uint32_t i = 0; i < count; ++i) {
      workers_.push_back(std::make_unique<HostedWorker>(
          *state_.controller, *store_, HostedWorker::Part{i, count}, idle_policy(options),
          options.buffers, make_engine, meters_[i]));
    }
  };
  try {
    start();
  } catch (const std::system_error& problem) {
    // A ring of this size, or another call of io_uring, may be refused where a small one is not.
    if (!may_choose || !why_no_uring_.empty()) throw;
    why_no_uring_ = problem.what();
    make_engine = suit_store(options, make_thread_engine);
    workers_.clear();
    start();
  }
}

void HostedController::wake() {
  for (const auto& worker : workers_) worker->wake();
}

VirtualSsdCounters HostedController::counters() const {
  VirtualController& controller = *state_.controller;
  VirtualSsdCounters counters;
  counters.errors = simt::load_relaxed(controller.error_count);
  counters.flush_requests = simt::load_relaxed(controller.flush_requests);
  for (uint32_t qid = 1; qid <= controller.queue_limit; ++qid) {
    const SubmissionQueue& queue = controller.submission_queue(qid);
    counters.read_commands += simt::load_relaxed(queue.read_commands);
    counters.write_commands += simt::load_relaxed(queue.write_commands);
    counters.blocks_read += simt::load_relaxed(queue.blocks_read);
    counters.blocks_written += simt::load_relaxed(queue.blocks_written);
    counters.invalid_doorbells += simt::load_relaxed(queue.invalid_doorbells);
  }
  return counters;
}

MeasuredCommands HostedController::measured() const {
  MeasuredCommands sum{};
  for (const CommandMeter& meter : meters_) meter.add_to(sum);
  sum.busy_ns = busy_.until(simt::now_ns());
  return sum;
}

int HostedController::sync_store(void* self) {
  return static_cast<HostedController*>(self)->store_->sync();
}

int HostedController::nudge(void* call) {
  const Nudge& wanted = *static_cast<const Nudge*>(call);
  auto& workers = static_cast<HostedController*>(wanted.nudged)->workers_;
  if (workers.empty()) return 0;
  if (wanted.qid == 0) {
    workers.front()->wake();
  } else {
    const auto count = static_cast<uint32_t>(workers.size());
    workers[HostedWorker::worker_of(wanted.qid, count)]->nudge(wanted.qid);
  }
  return 0;
}

}  // namespace gofs::ssd
