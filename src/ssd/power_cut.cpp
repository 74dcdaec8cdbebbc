// SPDX-License-Identifier: Apache-2.0
#include "ssd/power_cut.h"

#include <algorithm>
#include <cstring>
#include <stdexcept>

#include "ssd/controller_state.h"

namespace gofs::ssd {

WriteTrace read_trace(simt::MemorySpace& memory, ControllerRef ref) {
  const WriteLog* const log_at = memory.read_object(ref.controller).write_log;
  if (log_at == nullptr) throw std::logic_error("virtual SSD: made without a write log");
  const WriteLog log = memory.read_object(log_at);
  if (log.lost != 0) throw std::length_error("virtual SSD: the write log ran over");
  WriteTrace trace;
  trace.commands.resize(log.count);
  trace.data.resize(log.data_bytes);
  if (log.count != 0) {
    memory.read(trace.commands.data(), log.commands, log.count * sizeof(LoggedCommand));
  }
  if (log.data_bytes != 0) memory.read(trace.data.data(), log.data, log.data_bytes);
  trace.events = log.events;
  // The host may not have looked since the last of them ended.
  for (LoggedCommand& command : trace.commands) {
    if (command.ended != 0 || command.record == nullptr) continue;
    const PendingRecord record = memory.read_object(command.record);
    if (PendingRecord::is_posted(record.turn, command.lap)) command.ended = ++trace.events;
  }
  return trace;
}

PowerCut::PowerCut(const WriteTrace& trace, uint32_t event) : trace_(trace) {
  const auto ended = [event](const LoggedCommand& command) {
    return command.ended != 0 && command.ended <= event;
  };
  std::vector<uint32_t> flushed;  // of each disk: what ended there up to this event is safe
  for (const LoggedCommand& command : trace.commands) {
    if (command.disk >= flushed.size()) flushed.resize(command.disk + 1);
    if (command.kind == LoggedKind::kFlush && ended(command)) {
      flushed[command.disk] = std::max(flushed[command.disk], command.began);
    }
  }
  for (uint32_t number = 0; number < trace.commands.size(); ++number) {
    const LoggedCommand& command = trace.commands[number];
    Fate fate = Fate::kNotBegun;
    if (command.kind != LoggedKind::kFlush && command.began <= event) {
      const bool safe =
          ended(command) && (command.durable != 0 || command.ended <= flushed[command.disk]);
      fate = safe ? Fate::kSafe : Fate::kUnsafe;
      if (!safe) unsafe_.push_back(number);
    }
    fates_.push_back(fate);
  }
}

void PowerCut::apply(std::span<uint8_t> media, uint64_t unit_bytes, const Survives& survives,
                     uint32_t disk) const {
  for (uint32_t number = 0; number < trace_.commands.size(); ++number) {
    const LoggedCommand& command = trace_.commands[number];
    if (fates_[number] == Fate::kNotBegun || command.disk != disk) continue;
    for (uint64_t at = 0; at < command.bytes; at += unit_bytes) {
      if (fates_[number] == Fate::kUnsafe && !survives(number, at / unit_bytes)) continue;
      const uint64_t bytes = std::min(unit_bytes, command.bytes - at);
      uint8_t* const target = media.subspan(command.offset + at, bytes).data();
      if (command.kind == LoggedKind::kZeroes) {
        std::memset(target, 0, bytes);
      } else {
        std::memcpy(target, trace_.data.data() + command.data + at, bytes);
      }
    }
  }
}

}  // namespace gofs::ssd
