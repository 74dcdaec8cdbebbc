// SPDX-License-Identifier: Apache-2.0
//
// Entering I/O commands into the write log, where the controller has one.
#pragma once

#include "simt/copy_two.h"
#include "ssd/io_command.h"
#include "ssd/write_log.h"

namespace gofs::ssd {

/// Before the command of each lane is carried out; its number in the log, for after_logged().
GOFS_HD inline uint32_t before_logged(const VirtualController& controller,
                                      const IoCommand& command) {
  using format::nvme::IoOpcode;
  if (!command.valid || command.fails()) return kNotLogged;
  if (command.is(IoOpcode::kFlush)) {
    return begin_logged(*controller.write_log, LoggedKind::kFlush, true, 0, 0);
  }
  if (!command.is(IoOpcode::kWrite)) return kNotLogged;
  return begin_logged(*controller.write_log, LoggedKind::kWrite, command.durable,
                      command.lba << controller.lba_shift, command.transfer_bytes);
}

/// After the commands of a warp are carried out and before their completions are told: keeps what
/// they wrote, as it now is on the media. A command that failed never ends: a flush that protects
/// nothing, a write of which anything may be left. Collective.
GOFS_HD inline void after_logged(simt::AnyWarp auto warp, const VirtualController& controller,
                                 uint32_t number, const IoCommand& command) {
  WriteLog& log = *controller.write_log;
  warp.sync();
  const bool writes = number != kNotLogged && command.is(format::nvme::IoOpcode::kWrite);
  for (uint32_t left = warp.ballot(writes); left != 0; left &= left - 1) {
    const LoggedCommand& one = log.commands[warp.shfl(number, simt::lowest_bit(left))];
    for (uint64_t done = 0; done < one.bytes;) {
      const uint64_t offset = one.offset + done;
      const uint64_t bytes = controller.media.contiguous_bytes(offset, one.bytes - done);
      simt::copy_two(
          warp,
          {log.data + one.data + done, controller.media.find(offset), static_cast<uint32_t>(bytes)},
          {nullptr, nullptr, 0});
      done += bytes;
    }
  }
  if (!command.fails()) end_logged(log, number);
}

/// A range of the media is set to zero, or was. Called by one lane.
GOFS_HD inline void log_zeroes(const VirtualController& controller, bool durable, uint64_t offset,
                               uint64_t bytes) {
  if (controller.write_log == nullptr || bytes == 0) return;
  WriteLog& log = *controller.write_log;
  end_logged(log, begin_logged(log, LoggedKind::kZeroes, durable, offset, bytes));
}

}  // namespace gofs::ssd
