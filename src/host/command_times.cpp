// SPDX-License-Identifier: Apache-2.0
#include "gofs/command_times.hpp"

#include "host/attached_ssd.h"
#include "host/volume_access.h"

namespace gofs {

namespace host {

namespace {

void add(CommandTimes& sum, const ssd::MeasuredCommands& found) {
  static_assert(ssd::MeasuredCommands::kBuckets == kTimeBuckets);
  ++sum.ssds;
  sum.busy_ns += found.busy_ns;
  sum.under_way += found.under_way;
  for (uint32_t kind = 0; kind < kCommandKinds; ++kind) {
    for (uint32_t i = 0; i < kTimeBuckets; ++i) {
      sum.kinds[kind].counts[i] += found.kinds[kind].counts[i];
    }
    sum.kinds[kind].total_ns += found.kinds[kind].total_ns;
  }
}

}  // namespace

Expected<CommandTimes> VolumeState::command_times() {
  if (!is_ours()) return not_ours();
  const CallsUnderWay::One under_way(calls_under_way_);
  if (!up_) return explain(-ENODEV, spec_.text);
  CommandTimes sum{};
  for (const auto& ssd : ssds_) {
    if (const auto found = ssd->measured()) add(sum, *found);
  }
  return sum;
}

}  // namespace host

Expected<CommandTimes> command_times(Volume& volume) {
  return host::any_of(volume).command_times();
}

}  // namespace gofs
