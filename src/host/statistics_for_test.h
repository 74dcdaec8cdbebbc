// SPDX-License-Identifier: Apache-2.0
//
// For tests only: the counts of Volume::statistics() by kind, compared with those of the SSD.
#pragma once

#include <gtest/gtest.h>

#include <cstdint>

#include "gofs/volume.hpp"
#include "host/volume_access.h"

namespace gofs::host {

inline const OutcomeCounts& calls_of(const Statistics& seen, CallKind kind) {
  return seen.calls[static_cast<uint32_t>(kind)];
}
inline const OutcomeCounts& commands_of(const Statistics& seen, CommandKind kind) {
  return seen.commands[static_cast<uint32_t>(kind)];
}
inline const LookupCounts& lookups_of(const Statistics& seen, CacheKind kind) {
  return seen.lookups[static_cast<uint32_t>(kind)];
}
inline uint64_t segments_in(const Statistics& seen, SegmentState state) {
  return seen.segments[static_cast<uint32_t>(state)];
}
inline uint64_t all_of(const OutcomeCounts& counts) { return counts.succeeded + counts.failed; }

/// The volume's statistics, which are to be those of its virtual SSDs where both count the same.
/// Nothing is under way.
inline Statistics checked_statistics(Volume& volume) {
  const Statistics seen = volume.statistics().value();
  const VolumeState& state = state_of(volume);
  const ssd::VirtualSsdCounters ssd = state.ssd_counters();
  const uint64_t lba_bytes = volume.info().lba_bytes;
  EXPECT_EQ(all_of(commands_of(seen, CommandKind::kRead)), ssd.read_commands);
  EXPECT_EQ(all_of(commands_of(seen, CommandKind::kWrite)), ssd.write_commands);
  EXPECT_EQ(seen.ssd_bytes_read, ssd.blocks_read * lba_bytes);
  EXPECT_EQ(seen.ssd_bytes_written, ssd.blocks_written * lba_bytes);
  uint64_t commands = 0;
  for (const OutcomeCounts& kind : seen.commands) commands += all_of(kind);
  EXPECT_EQ(commands, state.commands_issued());
  EXPECT_EQ(seen.commands_under_way, 0u);
  EXPECT_EQ(seen.command_timeouts, 0u);
  return seen;
}

}  // namespace gofs::host
