// SPDX-License-Identifier: Apache-2.0
//
// Which file has which record buffer. A file takes one when records are appended to it, and keeps
// it until it is closed, or until another file wants one and nothing has come through this one for
// a moment. Where all are in use, records are appended as other writes are.
#pragma once

#include "vfs/record_stream.h"

namespace gofs::vfs::detail {

/// How long a buffer is not used before another file may have it.
inline constexpr uint64_t kRecordIdleNs = 1'000'000;

/// Number of an open inode, + 1.
GOFS_HD inline uint32_t owner_number(const Filesystem& fs, const OpenInode& open) {
  return static_cast<uint32_t>(&open - fs.open_inodes) + 1;
}

/// Whether a buffer belongs to no file, or to one that may lose it. A look only.
GOFS_HD inline bool may_be_taken(const RecordBuffer& buffer, uint64_t now_ns) {
  if (simt::load_relaxed(buffer.owner) == 0) return true;
  const uint64_t word = simt::load_relaxed(buffer.stream);
  return (word & kStreamClosed) == 0 &&
         tickets_of_stream(word) == simt::load_relaxed(buffer.flushed_tickets) &&
         now_ns - simt::load_relaxed(buffer.used_ns) > kRecordIdleNs;
}

/// Gives a buffer, whose lock the caller has, to the open inode `owner` - 1. One lane.
GOFS_HD inline void change_owner(Filesystem& fs, RecordBuffer& buffer, uint32_t number,
                                 uint32_t owner) {
  settle(buffer, -EAGAIN, 0);
  simt::store_relaxed(buffer.owned_from, simt::load_relaxed(buffer.base));
  simt::AtomicRef<uint32_t> word(buffer.owner);
  uint32_t former = word.load(simt::memory_order_relaxed);
  // Its file may be closed meanwhile.
  while (!word.compare_exchange_weak(former, owner, simt::memory_order_acquire,
                                     simt::memory_order_relaxed)) {  // [R7]
  }
  if (former != 0) {
    uint32_t records = number;
    simt::AtomicRef<uint32_t>(fs.open_inodes[former - 1].records)
        .compare_exchange_strong(records, 0, simt::memory_order_relaxed,
                                 simt::memory_order_relaxed);
  }
  simt::store_relaxed(buffer.used_ns, simt::now_ns());
  begin_stream(fs, buffer, owner);
}

/// Finds a buffer for the open inode, which has said that it seeks one. Collective, uniform. Its
/// number, + 1, or 0.
GOFS_NOINLINE GOFS_HD inline uint32_t take_record_buffer(simt::AnyWarp auto warp, Filesystem& fs,
                                                         uint32_t owner) {
  const uint64_t now_ns = simt::now_ns();
  uint32_t usable = 0;
  for (uint32_t first = 0; first < fs.records.count; first += warp.size()) {
    const uint32_t i = first + warp.thread_rank();
    usable |= warp.ballot(i < fs.records.count && may_be_taken(fs.records.buffers[i], now_ns))
              << first;
  }
  uint32_t number = 0;
  if (warp.thread_rank() == 0) {
    // Those that have no file come first.
    for (uint32_t turn = 0; turn < 2 && number == 0; ++turn) {
      for (uint32_t left = usable; left != 0 && number == 0; left &= left - 1) {
        const uint32_t i = simt::lowest_bit(left);
        RecordBuffer& buffer = fs.records.buffers[i];
        if (turn == 0 && simt::load_relaxed(buffer.owner) != 0) continue;
        if (!simt::try_lock(buffer.flushing)) continue;  // [R4]
        if (may_be_taken(buffer, now_ns)) {
          number = i + 1;
          change_owner(fs, buffer, number, owner);
        }
        simt::unlock(buffer.flushing);  // [R4]
      }
    }
  }
  return warp.shfl(number, 0);
}

/// The open inode has lost `buffer`: it may get another. One lane.
GOFS_HD inline void invalidate_buffer(const Filesystem& fs, OpenInode& open,
                                      const RecordBuffer& buffer) {
  auto number = static_cast<uint32_t>(&buffer - fs.records.buffers) + 1;
  simt::AtomicRef<uint32_t>(open.records)
      .compare_exchange_strong(number, 0, simt::memory_order_relaxed, simt::memory_order_relaxed);
}

/// The buffer of an open inode, which gets one if there is one to be had. Collective, uniform.
/// Null: there is none.
GOFS_NOINLINE GOFS_HD inline RecordBuffer* find_record_buffer(simt::AnyWarp auto warp,
                                                              Filesystem& fs, OpenInode& open) {
  const simt::Deadline deadline = simt::Deadline::after_ns(fs.lock_timeout_ns);
  simt::Backoff backoff;
  for (;;) {
    uint32_t number = 0;
    if (warp.thread_rank() == 0 && (number = simt::load_relaxed(open.records)) == 0) {
      simt::AtomicRef<uint32_t>(open.records)
          .compare_exchange_strong(number, kRecordsSought, simt::memory_order_relaxed,
                                   simt::memory_order_relaxed);
    }
    number = warp.shfl(number, 0);
    if (number == 0) {
      number = take_record_buffer(warp, fs, owner_number(fs, open));
      if (warp.thread_rank() == 0) simt::store_relaxed(open.records, number);
      return number == 0 ? nullptr : &fs.records.buffers[number - 1];
    }
    if (number != kRecordsSought) return &fs.records.buffers[number - 1];
    if (warp.any(deadline.passed())) return nullptr;
    backoff.pause();
  }
}

}  // namespace gofs::vfs::detail
