// SPDX-License-Identifier: Apache-2.0
//
// When a command is done: computed at its submission from the time at which each resource that it
// needs is free again. The resources are a token for the controller's command rate, the units that
// hold the media (the dies of a flash SSD), and the link in each direction. Every resource is one
// word, "free at", that atomics move forward, so that the model needs no lock and no events.
// The order of submission is the order of service.
//
// The link is charged at submission, not when the unit is done: a slow command must not keep later,
// faster ones from using the link meanwhile.
#pragma once

#include "simt/atomic.h"
#include "simt/platform.h"

namespace gofs::ssd {

inline constexpr uint32_t kTimingUnitsMax = 1024;

/// All zero: no model, a command is done when its data is moved.
struct TimingModel {
  uint32_t units = 0;
  uint32_t stripe_bytes = 4096;  // consecutive bytes on one unit
  uint32_t read_fixed_ns = 0;    // a unit is busy this long per command
  uint32_t read_block_ns = 0;    // and this long per 4 KiB
  uint32_t write_fixed_ns = 0;
  uint32_t write_block_ns = 0;
  uint32_t read_latency_ns = 0;  // of the command; occupies nothing
  uint32_t write_latency_ns = 0;
  uint32_t flush_latency_ns = 0;
  uint32_t write_buffer_ns = 0;    // a write is done when its unit is at most this far behind
  uint32_t link_bytes_per_us = 0;  // 7000 is 7 GB/s; 0: no limit
  uint32_t link_write_bytes_per_us = 0;
  uint32_t iops = 0;  // 0: no limit

  GOFS_HD bool is_none() const {
    return units == 0 && link_bytes_per_us == 0 && link_write_bytes_per_us == 0 && iops == 0 &&
           read_latency_ns == 0 && write_latency_ns == 0 && flush_latency_ns == 0;
  }
};

enum class TimedOperation : uint8_t { kRead, kWrite, kFlush, kOther };

struct TimedCommand {
  TimedOperation operation;
  bool durable;     // a write that may not stop at the write buffer
  uint64_t offset;  // of its first byte on the media
  uint64_t bytes;
};

/// The "free at" words, each pair of resources on lines of their own.
struct TimingState {
  alignas(128) uint64_t token;
  alignas(128) uint64_t link_read;
  alignas(128) uint64_t link_write;
  alignas(128) uint64_t units[kTimingUnitsMax];
};

namespace detail {

/// Takes the resource for `duration_ns` as soon as it is free, but not before `now`. Returns when
/// it is free again. Two atomics that never fail: with thousands of lanes at one word, a
/// compare-and-swap loop took nine tenths of the time of a full queue.
GOFS_HD inline uint64_t occupy(uint64_t& free_at, uint64_t now, uint64_t duration_ns) {
  simt::AtomicRef<uint64_t> word(free_at);
  word.fetch_max(now, simt::memory_order_relaxed);
  return word.fetch_add(duration_ns, simt::memory_order_relaxed) + duration_ns;
}

GOFS_HD inline uint64_t transfer_ns(uint64_t bytes, uint32_t bytes_per_us) {
  return bytes_per_us == 0 ? 0 : simt::divide_up(bytes * 1000, bytes_per_us);
}

/// Occupies every unit that the range touches; returns when the last of them is done.
GOFS_HD inline uint64_t occupy_units(const TimingModel& model, TimingState& state, uint64_t now,
                                     const TimedCommand& command, uint64_t fixed_ns,
                                     uint64_t block_ns) {
  if (model.units == 0 || command.bytes == 0) return now;
  const uint64_t stripe = model.stripe_bytes;
  const uint64_t end = command.offset + command.bytes;
  const uint64_t first = command.offset / stripe;
  const uint64_t last = (end - 1) / stripe;
  const uint64_t stripes = last - first + 1;
  const auto touched = static_cast<uint32_t>(simt::min<uint64_t>(stripes, model.units));
  auto unit = static_cast<uint32_t>(first % model.units);
  uint64_t done = now;
  for (uint32_t i = 0; i < touched; ++i) {
    const uint64_t here = (stripes - i + model.units - 1) / model.units;  // stripes on this unit
    uint64_t bytes = here * stripe;
    if (i == 0) bytes -= command.offset - first * stripe;
    if ((stripes - 1) % model.units == i) bytes -= (last + 1) * stripe - end;
    const uint64_t busy_ns = fixed_ns + block_ns * simt::divide_up(bytes, kBlockBytes);
    done = simt::max(done, occupy(state.units[unit], now, busy_ns));
    unit = unit + 1 == model.units ? 0 : unit + 1;
  }
  return done;
}

GOFS_HD inline uint64_t all_units_free_at(const TimingModel& model, const TimingState& state,
                                          uint64_t now) {
  uint64_t free_at = now;
  for (uint32_t unit = 0; unit < model.units; ++unit) {
    free_at = simt::max(free_at, simt::load_relaxed(state.units[unit]));
  }
  return free_at;
}

}  // namespace detail

/// The time at which a command submitted at `now` is done. Called once per command, by one lane.
GOFS_HD inline uint64_t finish_time(const TimingModel& model, TimingState& state, uint64_t now,
                                    const TimedCommand& command) {
  uint64_t start = now;
  if (model.iops != 0) {
    const uint64_t interval_ns = uint64_t{1000000000} / model.iops;
    start = detail::occupy(state.token, now, interval_ns) - interval_ns;
  }
  switch (command.operation) {
    case TimedOperation::kRead: {
      const uint64_t moved_ns = detail::transfer_ns(command.bytes, model.link_bytes_per_us);
      const uint64_t link = detail::occupy(state.link_read, now, moved_ns);
      const uint64_t ready = detail::occupy_units(model, state, start, command, model.read_fixed_ns,
                                                  model.read_block_ns);
      return simt::max(link, ready + moved_ns) + model.read_latency_ns;
    }
    case TimedOperation::kWrite: {
      const uint64_t moved_ns = detail::transfer_ns(command.bytes, model.link_write_bytes_per_us);
      const uint64_t link =
          simt::max(detail::occupy(state.link_write, now, moved_ns), start + moved_ns);
      const uint64_t written = detail::occupy_units(model, state, start, command,
                                                    model.write_fixed_ns, model.write_block_ns) +
                               moved_ns;
      const uint64_t behind = command.durable ? 0 : model.write_buffer_ns;
      const uint64_t accepted = written > behind ? written - behind : 0;
      return simt::max(link, accepted) + model.write_latency_ns;
    }
    case TimedOperation::kFlush:
      return detail::all_units_free_at(model, state, start) + model.flush_latency_ns;
    case TimedOperation::kOther:
      return start + model.write_latency_ns;
  }
  return start;
}

}  // namespace gofs::ssd
