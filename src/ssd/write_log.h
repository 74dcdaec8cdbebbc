// SPDX-License-Identifier: Apache-2.0
//
// The changes of a controller's media, in order and with the data: enough to build, later and on
// the host, every state in which a power cut at any moment could have left it (power_cut.h).
//
// Time is counted in events: each command that changes or flushes the media begins with one, and
// ends with one when its completion is posted. A flush makes durable what had ended before it
// began. Commands on the same blocks at the same time may be logged in either order, as they may be
// carried out. A controller with a log has CompletionMode::kPending, so that only the way that has
// the time anyway asks for it.
//
// Controllers of one volume keep one log together, so that what happens on all of them has one
// order and a cut finds them at one moment. A flush is about its own disk.
#pragma once

#include "ssd/queue_state.h"

namespace gofs::ssd {

enum class LoggedKind : uint32_t { kWrite, kZeroes, kFlush };

struct LoggedCommand {
  LoggedKind kind;
  uint32_t disk;     // of those that keep the log
  uint32_t durable;  // not 0: what it wrote is safe when it has ended (FUA, or no volatile cache)
  uint64_t offset;   // on the media, bytes
  uint64_t bytes;    // 0: a flush
  uint64_t data;     // kWrite: where its bytes begin in WriteLog::data
  uint32_t began;    // event; 0: the entry is not there yet
  uint32_t ended;    // event; 0: not yet, or it failed: nothing is promised
  const PendingRecord* record;  // of its completion; null: it failed
  uint64_t lap;                 // of that record
};

/// In the controller's memory.
struct WriteLog {
  LoggedCommand* commands;
  uint8_t* data;
  uint32_t capacity;
  uint64_t data_capacity;
  alignas(128) uint32_t count;
  uint32_t settled;  // no entry before this one has still to end
  uint32_t events;
  uint32_t lost;  // commands that found no room: the log is of no use
  uint64_t data_bytes;
};

inline constexpr uint32_t kNotLogged = ~0u;

GOFS_HD inline uint32_t next_event(WriteLog& log) { return simt::add_relaxed(log.events, 1u) + 1; }

/// One lane: enters `command`, whose places for its data, began and ended are filled in. Its
/// number, or kNotLogged.
GOFS_HD inline uint32_t begin_logged(WriteLog& log, LoggedCommand command) {
  const uint64_t room = command.kind == LoggedKind::kWrite ? command.bytes : 0;
  command.data = room == 0 ? 0 : simt::add_relaxed(log.data_bytes, room);
  const uint32_t number = simt::add_relaxed(log.count, 1u);
  if (number >= log.capacity || command.data + room > log.data_capacity) {
    simt::add_relaxed(log.lost, 1u);
    return kNotLogged;
  }
  LoggedCommand& entry = log.commands[number];
  // Not the whole of it: others look at `began` and `ended` meanwhile, which are 0 from the start.
  entry.kind = command.kind;
  entry.disk = command.disk;
  entry.durable = command.durable;
  entry.offset = command.offset;
  entry.bytes = command.bytes;
  entry.data = command.data;
  entry.record = command.record;
  entry.lap = command.lap;
  simt::store_release(entry.began, next_event(log));  // [S8]
  return number;
}

/// One lane: notes which commands have ended since the last look.
GOFS_HD inline void end_posted(WriteLog& log) {
  const uint32_t count = simt::min(simt::load_relaxed(log.count), log.capacity);
  const uint32_t first = simt::load_relaxed(log.settled);
  uint32_t settled = first;
  for (uint32_t number = first; number < count; ++number) {
    LoggedCommand& entry = log.commands[number];
    bool over = simt::load_relaxed(entry.ended) != 0;
    if (!over && simt::load_acquire(entry.began) != 0) {  // [S8]
      over = entry.record == nullptr;
      if (!over && PendingRecord::is_posted(simt::load_acquire(entry.record->turn), entry.lap)) {
        uint32_t expected = 0;
        simt::AtomicRef<uint32_t>(entry.ended)
            .compare_exchange_strong(expected, next_event(log), simt::memory_order_relaxed,
                                     simt::memory_order_relaxed);
        over = true;
      }
    }
    if (over && settled == number) settled = number + 1;
  }
  simt::AtomicRef<uint32_t>(log.settled).fetch_max(settled, simt::memory_order_relaxed);
}

}  // namespace gofs::ssd
