// SPDX-License-Identifier: Apache-2.0
//
// The power fails: what may a drive with a volatile cache hold afterwards? NVMe promises what was
// written with FUA, or flushed; of everything else each LBA may be there or not, whatever the order
// of the writes. A trace of a controller's commands (write_log.h) is enough to build every such
// state for every moment. Host only.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "simt/memory.h"
#include "ssd/controller_ref.h"
#include "ssd/write_log.h"

namespace gofs::ssd {

struct WriteTrace {
  std::vector<LoggedCommand> commands;  // in the order in which they were carried out
  std::vector<uint8_t> data;
  uint32_t events = 0;  // numbered from 1
};

/// What the controller, and those that log there as well, have logged since it was made. All of
/// them are there still, and they are not stepped meanwhile. Throws std::logic_error if it was made
/// without a log, std::length_error if the log ran over.
WriteTrace read_trace(simt::MemorySpace& memory, ControllerRef ref);

class PowerCut {
 public:
  /// Right after event `event` of the trace, which must outlive this; 0 is before all of them.
  PowerCut(const WriteTrace& trace, uint32_t event);

  /// The writes of which nothing is promised: numbers of commands of the trace.
  const std::vector<uint32_t>& unsafe() const { return unsafe_; }

  /// Whether a unit of an unsafe write is kept; `unit` counts from the write's first.
  using Survives = std::function<bool(uint32_t command, uint64_t unit)>;

  /// Makes `media` of disk `disk`, which holds what was there when the log began, what is there
  /// after the cut. A unit (an LBA, or several) is written whole or not at all.
  void apply(std::span<uint8_t> media, uint64_t unit_bytes, const Survives& survives,
             uint32_t disk = 0) const;

 private:
  enum class Fate : uint8_t { kNotBegun, kUnsafe, kSafe };

  const WriteTrace& trace_;
  std::vector<Fate> fates_;
  std::vector<uint32_t> unsafe_;
};

}  // namespace gofs::ssd
