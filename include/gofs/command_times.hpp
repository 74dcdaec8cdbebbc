// SPDX-License-Identifier: Apache-2.0
//
// How long NVMe commands take, and how busy an SSD is: what iostat says of a disk. It is measured
// where a controller of host threads carries the commands out (media=hosted); the clocks of other
// SSDs are not looked at.
#pragma once

#include <cstdint>

#include "gofs/expected.hpp"
#include "gofs/export.h"
#include "gofs/types.h"
#include "gofs/volume.hpp"

namespace gofs {

/// Of a histogram. Bucket 0 has times of up to 1 us, bucket i those of more than 2^(i-1) and up to
/// 2^i us, and the last one all that are longer.
inline constexpr uint32_t kTimeBuckets = 26;

/// Commands of one kind that have ended, successfully or not.
struct TimedCommands {
  uint64_t counts[kTimeBuckets];  // by how long each took
  uint64_t total_ns;              // of all of them
};

/// Since the volume was mounted. The time of a command begins when the controller takes it from its
/// queue, and ends when the completion is there to be posted.
struct CommandTimes {
  uint32_t ssds;                       // whose commands are timed; 0: of none, and all else is 0
  TimedCommands kinds[kCommandKinds];  // by CommandKind; on these SSDs
  uint64_t busy_ns;                    // while an SSD had a command under way; the sum over SSDs
  uint64_t under_way;                  // commands, now
};

/// Of a volume that a server has mounted: what the commands for all of its clients took. Others go
/// on meanwhile: what they do at the moment may be counted or not. Takes microseconds. Errors:
/// ENODEV after unmount(); of a server, ESTALE and ENOTCONN where it has gone.
GOFS_API Expected<CommandTimes> command_times(Volume& volume);

}  // namespace gofs
