// SPDX-License-Identifier: Apache-2.0
#include "host_load.hpp"

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <exception>
#include <vector>

#include "bench/read_body.h"
#include "host/messages.h"
#include "simt/workers.h"
#include "slots.hpp"

namespace gofs::bench {
namespace {

constexpr const char* kLoadSubject = "host threads";

/// What one thread has done.
struct Share {
  uint64_t operations = 0;
  uint64_t first_ns = ~uint64_t{0};
  uint64_t last_ns = 0;
  int error = 0;
};

class LoadRun {
 public:
  LoadRun(Device& device, Transfer& transfer, const HostLoad& load, const Point& point)
      : transfer_(transfer),
        load_(load),
        writes_(point.writes),
        threads_(std::clamp(point.outstanding, 1u, load.threads_max)),
        run_(next_stamp_run()),
        slots_(device, uint64_t{threads_} * kSlotsEach),
        shares_(threads_) {
    places_.pattern = point.random ? Pattern::kRandom : Pattern::kSequential;
    places_.block_bytes = kBlockBytes;
    places_.span_bytes = writes_ ? transfer.written_bytes() : transfer.read_bytes();
    places_.seed = detail::mix(run_);
  }

  Expected<Sample> run() {
    for (uint32_t thread = 0; thread < threads_; ++thread) {
      lanes_.push_back(transfer_.make_lane());
      if (lanes_.back() == nullptr) {
        return host::make_error(EIO, kLoadSubject, "a thread's copies cannot be made");
      }
    }
    if (writes_) {
      if (auto prepared = prepare_writes(); !prepared) return prepared.error();
    }
    transfer_.attach(slots_.memory(), slots_.count() * kBlockBytes);
    auto sample = run_threads();
    transfer_.detach(slots_.memory());
    if (!sample) return sample;
    auto checked = writes_ ? check_file() : slots_.check(0);
    if (!checked) return checked.error();
    return sample;
  }

 private:
  uint64_t position(uint32_t thread, uint64_t operation) const {
    return detail::read_position(places_, thread, threads_, operation);
  }

  /// Each slot has its place in the file, to which its thread writes it again and again.
  Expected<void> prepare_writes() {
    if (auto room = transfer_.make_room(); !room) return room;
    for (uint64_t slot = 0; slot < slots_.count(); ++slot) {
      const auto thread = static_cast<uint32_t>(slot / kSlotsEach);
      slots_.block(slot) = position(thread, slot % kSlotsEach) / kBlockBytes;
    }
    return slots_.stamp(run_);
  }

  Expected<Sample> run_threads() {
    const CpuMeter meter;
    try {
      simt::run_workers(threads_, [this](const simt::Warp&, uint32_t thread) { work(thread); });
    } catch (const std::exception& problem) {
      return host::make_error(EAGAIN, kLoadSubject, problem.what());
    }
    Sample sample;
    sample.cores = meter.cores();
    sample.outstanding = threads_;
    sample.in_flight = threads_;
    uint64_t first_ns = ~uint64_t{0};
    uint64_t last_ns = 0;
    for (const Share& share : shares_) {
      if (share.error == -EBADMSG) return wrong_blocks(1, "that a host thread got");
      if (share.error != 0) return host::make_error(share.error, kLoadSubject);
      sample.operations += share.operations;
      first_ns = std::min(first_ns, share.first_ns);
      last_ns = std::max(last_ns, share.last_ns);
    }
    sample.seconds = static_cast<double>(last_ns - first_ns) * 1e-9;
    return sample;
  }

  void work(uint32_t thread) {
    Share share;
    Transfer::Lane& lane = *lanes_[thread];
    share.first_ns = simt::now_ns();
    const uint64_t end_ns = share.first_ns + static_cast<uint64_t>(load_.seconds * 1e9);
    do {
      const uint64_t slot = uint64_t{thread} * kSlotsEach + share.operations % kSlotsEach;
      if (writes_) {
        share.error = lane.write(slots_.at(slot), slots_.block(slot) * kBlockBytes, run_);
      } else {
        const uint64_t offset = position(thread, share.operations);
        slots_.block(slot) = offset / kBlockBytes;
        share.error = lane.read(slots_.at(slot), offset);
      }
      ++share.operations;
      share.last_ns = simt::now_ns();
    } while (share.error == 0 && share.last_ns < end_ns);
    shares_[thread] = share;
  }

  /// Of each thread the block that it wrote last.
  Expected<void> check_file() {
    alignas(kBlockBytes) uint8_t block[kBlockBytes];
    uint64_t wrong = 0;
    for (uint32_t thread = 0; thread < threads_; ++thread) {
      const uint64_t last = (shares_[thread].operations - 1) % kSlotsEach;
      const uint64_t index = slots_.block(uint64_t{thread} * kSlotsEach + last);
      const int error = transfer_.read_back(block, index * kBlockBytes);
      if (error != 0) return host::make_error(error, kLoadSubject, "reading back");
      if (!has_block_stamp(block, index, run_)) ++wrong;
    }
    if (wrong != 0) return wrong_blocks(wrong, "that were written");
    return {};
  }

  Transfer& transfer_;
  const HostLoad load_;
  const bool writes_;
  const uint32_t threads_;
  const uint64_t run_;
  Slots slots_;
  std::vector<Share> shares_;
  BenchParams places_{};
  std::vector<std::unique_ptr<Transfer::Lane>> lanes_;
};

}  // namespace

Expected<Sample> run_host_load(Device& device, Transfer& transfer, const HostLoad& load,
                               const Point& point) {
  try {
    return LoadRun(device, transfer, load, point).run();
  } catch (const std::bad_alloc&) {
    return host::make_error(ENOMEM, kLoadSubject);
  }
}

uint64_t next_stamp_run() {
  static std::atomic<uint64_t> runs{0};
  return ++runs;
}

}  // namespace gofs::bench
