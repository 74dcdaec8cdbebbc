// SPDX-License-Identifier: Apache-2.0
//
// What a controller's media was told to change, in order and with the data: enough to build, later
// and on the host, every state in which a power cut at any moment could have left it (power_cut.h).
//
// Time is counted in events: each command that changes or flushes the media begins with one and
// ends with one, the latter before its completion is told to the driver. A flush makes durable what
// had ended before it began. Commands on the same blocks at the same time may be logged in either
// order, as they may be carried out.
#pragma once

#include "simt/atomic.h"

namespace gofs::ssd {

enum class LoggedKind : uint32_t { kWrite, kZeroes, kFlush };

struct LoggedCommand {
  LoggedKind kind;
  uint32_t durable;  // not 0: what it wrote is safe when it has ended (FUA, or no volatile cache)
  uint64_t offset;   // on the media, bytes
  uint64_t bytes;    // 0: a flush
  uint64_t data;     // kWrite: where its bytes begin in WriteLog::data
  uint32_t began;    // event
  uint32_t ended;    // event; 0: it never did
};

/// In the controller's memory.
struct WriteLog {
  LoggedCommand* commands;
  uint8_t* data;
  uint32_t capacity;
  uint64_t data_capacity;
  alignas(128) uint32_t count;
  uint32_t events;
  uint64_t data_bytes;
  uint32_t lost;  // commands that found no room: the log is of no use
};

inline constexpr uint32_t kNotLogged = ~0u;

GOFS_HD inline uint32_t next_event(WriteLog& log) { return simt::add_relaxed(log.events, 1u) + 1; }

/// One lane: a command begins. Its number, or kNotLogged.
GOFS_HD inline uint32_t begin_logged(WriteLog& log, LoggedKind kind, bool durable, uint64_t offset,
                                     uint64_t bytes) {
  const uint64_t room = kind == LoggedKind::kWrite ? bytes : 0;
  const uint64_t data = room == 0 ? 0 : simt::add_relaxed(log.data_bytes, room);
  const uint32_t number = simt::add_relaxed(log.count, 1u);
  if (number >= log.capacity || data + room > log.data_capacity) {
    simt::add_relaxed(log.lost, 1u);
    return kNotLogged;
  }
  log.commands[number] = {kind, durable ? 1u : 0u, offset, bytes, data, next_event(log), 0};
  return number;
}

/// One lane: the command is carried out, its completion not yet told.
GOFS_HD inline void end_logged(WriteLog& log, uint32_t number) {
  if (number != kNotLogged) log.commands[number].ended = next_event(log);
}

}  // namespace gofs::ssd
