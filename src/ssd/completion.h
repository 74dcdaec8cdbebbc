// SPDX-License-Identifier: Apache-2.0
//
// Posting completions: how an entry is written, and the pending records that wait until they are
// due.
#pragma once

#include "ssd/controller_state.h"

namespace gofs::ssd {

namespace detail {

struct Completion {
  uint32_t dw0;
  uint16_t sq_head;
  uint16_t sq_id;
  uint16_t cid;
  format::nvme::Status status;
};

/// The least `value` of the group, on every lane. Collective.
GOFS_HD inline uint64_t reduce_min(simt::AnyWarp auto warp, uint64_t value) {
  const uint32_t size = warp.size();
  // After the round of k every lane knows the least of 2k lanes; to look at a lane twice does no
  // harm.
  for (uint32_t k = 1; k < size; k *= 2) {
    const uint32_t other = warp.thread_rank() + k;
    value = simt::min(value, warp.shfl(value, other < size ? other : other - size));
  }
  return value;
}

/// Writes all of entry `index` of a completion queue but its last word, and returns that one. To
/// store final_word() there posts the entry. One lane.
GOFS_HD inline uint32_t& write_entry(uint64_t entries, uint32_t index,
                                     const Completion& completion) {
  auto* const words = reinterpret_cast<uint32_t*>(entries) + uint64_t{index} * 4;
  words[0] = completion.dw0;
  words[1] = 0;
  words[2] = uint32_t{completion.sq_id} << 16 | completion.sq_head;
  return words[3];
}

/// The last word of an entry, with the phase tag.
GOFS_HD inline uint32_t final_word(uint32_t phase, const Completion& completion) {
  return (uint32_t{completion.status} << 1 | phase) << 16 | completion.cid;
}

/// Writes entry `index` of a completion queue; its last word, with the phase tag, last. One lane.
/// Order: release to the system [N4]. The driver's acquire of that word sees the data that this
/// lane wrote or sees by sync(), and the rest of the entry.
GOFS_HD inline void post_entry(uint64_t entries, uint32_t index, uint32_t phase,
                               const Completion& completion) {
  simt::store_system_release(write_entry(entries, index, completion),
                             final_word(phase, completion));
}

/// Entries that a completion queue of `depth` with the driver's `head` can take. 0 for a head that
/// no driver may write.
GOFS_HD inline uint32_t completion_room(uint32_t tail, uint32_t head, uint32_t depth) {
  if (head >= depth) return 0;
  const uint32_t used = tail >= head ? tail - head : tail + depth - head;
  return depth - 1 - used;
}

/// Says that a record of this queue is due at `finish_ns`; called when the record is in place.
GOFS_HD inline void lower_next_due(SubmissionQueue& queue, uint64_t finish_ns) {
  simt::AtomicRef<uint64_t> word(queue.next_due_ns);
  uint64_t seen = word.load(simt::memory_order_relaxed);
  // Written also when it stays as it is: the scan that next resets the word then sees our record.
  // [S5] Lock-free: a failed round means that another record was added or a scan begun.
  while (!word.compare_exchange_weak(seen, simt::min(seen, finish_ns), simt::memory_order_acq_rel,
                                     simt::memory_order_relaxed)) {
  }
}

/// The submission queue head to report with records that are there already: all that was claimed,
/// if all of that is consumed, else what was reported before. A command is counted as consumed
/// before its record is there, so the last completion to be posted reports everything. Heads never
/// go back, since the caller holds the completion queue's lock.
GOFS_HD inline uint16_t consumed_head(SubmissionQueue& queue) {
  // `consumed` first: what it counts was claimed before, so equality means that nothing is missing.
  const uint64_t consumed = simt::load_acquire(queue.consumed);  // [S3]
  const RingPlace claimed{simt::load_relaxed(queue.claimed)};
  if (claimed.total(simt::load_relaxed(queue.depth)) == consumed) {
    queue.reported_head = static_cast<uint16_t>(claimed.index());
  }
  return queue.reported_head;
}

/// The records of one queue under the lock of its completion queue.
template <simt::AnyWarp Warp>
class PendingScan {
 public:
  GOFS_HD PendingScan(Warp warp, VirtualController& controller, SubmissionQueue& queue,
                      uint32_t qid, CompletionQueue& completions)
      : warp_(warp),
        controller_(controller),
        queue_(queue),
        qid_(qid),
        completions_(completions),
        depth_(simt::load_relaxed(queue.depth)) {}

  /// Posts what is due, as far as there is room. Collective. Returns how many were posted. Looks at
  /// kRecordsMax records at most; where there are more, the next run goes on with the same pass
  /// over them, and `next_due_ns` is known when the pass is over.
  GOFS_HD uint32_t run(uint64_t now_ns) {
    const uint32_t rank = warp_.thread_rank();
    const uint32_t size = warp_.size();
    uint32_t offset = simt::load_relaxed(queue_.scan_offset);
    const bool begins = offset == 0;
    uint64_t soonest = begins ? kNever : queue_.pass_soonest_ns;
    bool held = begins ? false : queue_.pass_held;
    const uint64_t posted_before = simt::load_relaxed(queue_.posted);
    const uint64_t posted_before_pass = begins ? posted_before : queue_.pass_posted;
    RingPlace oldest{queue_.oldest};
    uint64_t claimed = 0;
    if (rank == 0) {
      // Before the records: one that is added later lowers the word again. [S5]
      if (begins) {
        simt::AtomicRef<uint64_t>(queue_.next_due_ns).exchange(kNever, simt::memory_order_acq_rel);
      }
      claimed = simt::load_relaxed(queue_.claimed);
    }
    load_completion_queue();
    // All lanes have read what rank 0 writes at the end.
    warp_.sync();
    claimed = warp_.shfl(claimed, 0);
    // Where records right after `oldest` are posted but were not looked at since, their places may
    // be in use again, so there can be more than a lap; one lap is looked at.
    const uint64_t distance = RingPlace{claimed}.total(depth_) - oldest.total(depth_);
    auto outstanding = static_cast<uint32_t>(simt::min<uint64_t>(distance, depth_));
    if (distance > depth_) soonest = 0;

    for (uint32_t looked_at = 0; offset < outstanding && looked_at < kRecordsMax;) {
      const uint32_t index = offset + rank;
      PendingRecord* record = nullptr;
      uint64_t lap = 0;
      bool done = false;
      bool due = false;
      if (index < outstanding) {
        const RingPlace place = oldest.plus(index, depth_);
        lap = place.lap();
        record = &queue_.records[place.index()];
        const uint32_t turn = simt::load_acquire(record->turn);  // [S4]
        done = PendingRecord::is_posted(turn, lap);
        if (turn == PendingRecord::turn_waiting(lap)) {
          const bool holds = queue_.hold_until != nullptr &&
                             queue_.hold_until[place.index()] > posted_before + posted_;
          held = held || holds;
          due = !holds && record->finish_ns <= now_ns;
          if (!holds && !due) soonest = simt::min(soonest, record->finish_ns);
        }
      }
      const bool posted = post(record, lap, due);
      if (due && !posted) soonest = 0;
      // Records at the old end that are posted are done with.
      const uint32_t kept = warp_.ballot(index < outstanding && !done && !posted);
      const uint32_t window = simt::min(size, outstanding - offset);
      if (offset == 0) {
        const uint32_t passed = kept == 0 ? window : simt::lowest_bit(kept);
        oldest = oldest.plus(passed, depth_);
        outstanding -= passed;
        offset = window - passed;
      } else {
        offset += window;
      }
      looked_at += window;
    }

    held = warp_.any(held);
    soonest = reduce_min(warp_, soonest);
    const bool over = offset >= outstanding || offset == 0;
    // Nothing but posted records so far, or some that waited for those that were posted: once more.
    if (offset < outstanding && offset == 0) soonest = 0;
    if (held && posted_before + posted_ != posted_before_pass) soonest = 0;
    if (rank == 0) {
      if (over && soonest != kNever) lower_next_due(queue_, soonest);
      queue_.oldest = oldest.word;
      queue_.pass_soonest_ns = soonest;
      queue_.pass_held = held;
      queue_.pass_posted = posted_before_pass;
      simt::store_relaxed(queue_.scan_offset, over ? 0 : offset);
      simt::store_relaxed(queue_.posted, posted_before + posted_);
      completions_.tail = tail_;
      completions_.phase = phase_;
    }
    return posted_;
  }

 private:
  static constexpr uint32_t kRecordsMax = 256;

  GOFS_HD void load_completion_queue() {
    completion_entries_ = simt::load_relaxed(completions_.entries);
    completion_depth_ = simt::load_relaxed(completions_.depth);
    tail_ = completions_.tail;
    phase_ = completions_.phase;
    const uint32_t completion_queue = simt::load_relaxed(queue_.completion_queue);
    uint32_t driver_head = 0;
    if (warp_.thread_rank() == 0) {
      driver_head = simt::load_system_acquire(controller_.completion_doorbell(completion_queue));
    }
    room_ = completion_room(tail_, warp_.shfl(driver_head, 0), completion_depth_);
  }

  /// Posts the records of the lanes that are `due`, in rank order, while there is room. Collective.
  /// True on the lanes whose record was posted.
  GOFS_HD bool post(PendingRecord* record, uint64_t lap, bool due) {
    const uint32_t due_ranks = warp_.ballot(due);
    if (due_ranks == 0) return false;
    warp_.sync();
    uint32_t sq_head = 0;
    if (warp_.thread_rank() == 0) sq_head = consumed_head(queue_);
    sq_head = warp_.shfl(sq_head, 0);
    // [S3] Rank 0 has acquired that those entries are read; the other lanes tell the driver.
    warp_.sync();
    const uint32_t below = simt::ranks_below(warp_.thread_rank());
    const bool twice = due && (record->status & PendingRecord::kTwice) != 0;
    const uint32_t twice_ranks = warp_.ballot(twice);
    const uint32_t first = simt::popcount(due_ranks & below) + simt::popcount(twice_ranks & below);
    const uint32_t entries = twice ? 2 : 1;
    const bool fits = due && first + entries <= room_;
    if (fits) {
      const Completion completion{
          0, static_cast<uint16_t>(sq_head), static_cast<uint16_t>(qid_), record->cid,
          static_cast<format::nvme::Status>(record->status & ~PendingRecord::kTwice)};
      for (uint32_t k = 0; k < entries; ++k) {
        uint32_t index = tail_ + first + k;
        uint32_t phase = phase_;
        if (index >= completion_depth_) {
          index -= completion_depth_;
          phase ^= 1;
        }
        if (k == 0) {
          // The record is read [S7] and the entry written [N4]. The record first, since the driver
          // may use the place again at once.
          simt::store_system_release_both(record->turn, PendingRecord::turn_posted(lap),
                                          write_entry(completion_entries_, index, completion),
                                          final_word(phase, completion));
        } else {
          post_entry(completion_entries_, index, phase, completion);
        }
      }
    }
    const uint32_t fit_ranks = warp_.ballot(fits);
    const uint32_t used = simt::popcount(fit_ranks) + simt::popcount(fit_ranks & twice_ranks);
    room_ -= used;
    posted_ += simt::popcount(fit_ranks);
    tail_ += used;
    if (tail_ >= completion_depth_) {
      tail_ -= completion_depth_;
      phase_ ^= 1;
    }
    return fits;
  }

  const Warp warp_;
  VirtualController& controller_;
  SubmissionQueue& queue_;
  const uint32_t qid_;
  CompletionQueue& completions_;
  const uint32_t depth_;
  uint64_t completion_entries_ = 0;
  uint32_t completion_depth_ = 0;
  uint32_t tail_ = 0;
  uint32_t phase_ = 0;
  uint32_t room_ = 0;
  uint32_t posted_ = 0;
};

/// Takes a completion queue's lock for the whole warp if it is free. Collective, uniform answer.
GOFS_HD inline bool lock_together(simt::AnyWarp auto warp, uint32_t& lock) {
  uint32_t taken = 0;
  if (warp.thread_rank() == 0) taken = simt::try_lock(lock) ? 1 : 0;
  taken = warp.shfl(taken, 0);
  warp.sync();
  return taken != 0;
}

GOFS_HD inline void unlock_together(simt::AnyWarp auto warp, uint32_t& lock) {
  warp.sync();
  if (warp.thread_rank() == 0) simt::unlock(lock);
}

}  // namespace detail

/// Posts the completions of queue `qid` that are due. Collective. Does nothing if another warp is
/// at it. Returns how many were posted.
GOFS_NOINLINE GOFS_HD inline uint32_t post_due(simt::AnyWarp auto warp,
                                               VirtualController& controller, uint32_t qid,
                                               uint64_t now_ns) {
  SubmissionQueue& queue = controller.submission_queue(qid);
  uint64_t next_due_ns = kNever;
  uint32_t completion_queue = 0;
  if (warp.thread_rank() == 0) {
    next_due_ns = simt::load_relaxed(queue.next_due_ns);
    if (simt::load_relaxed(queue.scan_offset) != 0) next_due_ns = 0;
    completion_queue = simt::load_relaxed(queue.completion_queue);
  }
  if (warp.shfl(next_due_ns, 0) > now_ns) return 0;
  completion_queue = warp.shfl(completion_queue, 0);
  if (completion_queue == 0) return 0;
  CompletionQueue& completions = controller.completion_queue(completion_queue);
  if (!detail::lock_together(warp, completions.lock)) return 0;
  // The queue may have been deleted, or the controller stopped, before we had the lock.
  uint32_t current = 0;
  if (warp.thread_rank() == 0) {
    current = simt::load_relaxed(queue.completion_queue) == completion_queue &&
              simt::load_relaxed(controller.stopped) == 0;
  }
  uint32_t posted = 0;
  if (warp.shfl(current, 0) != 0) {
    posted = detail::PendingScan(warp, controller, queue, qid, completions).run(now_ns);
  }
  detail::unlock_together(warp, completions.lock);
  return posted;
}

}  // namespace gofs::ssd
