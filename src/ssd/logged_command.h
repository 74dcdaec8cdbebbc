// SPDX-License-Identifier: Apache-2.0
//
// Entering I/O commands into the write log of a controller that has one.
#pragma once

#include "simt/copy_ranges.h"
#include "ssd/fetch.h"
#include "ssd/io_command.h"

namespace gofs::ssd {

namespace detail {

/// One lane: the ranges of a Dataset Management command, which was carried out.
GOFS_HD inline void log_ranges(const VirtualController& controller, WriteLog& log,
                               const IoCommand& command, LoggedCommand entry) {
  for (uint32_t i = 0; i < command.range_count; ++i) {
    const format::nvme::DatasetRange range =
        load_range(command.prp1, command.prp2, command.range_count, i);
    entry.bytes = uint64_t{range.lba_count} << controller.lba_shift;
    entry.offset = uint64_t{range.lba} << controller.lba_shift;
    if (entry.bytes != 0) begin_logged(log, entry);
  }
}

}  // namespace detail

/// Logs the commands that a warp has carried out, before their completions can be posted; what they
/// wrote is taken from the media. Collective.
GOFS_NOINLINE GOFS_HD inline void log_commands(simt::AnyWarp auto warp,
                                               const VirtualController& controller,
                                               const SubmissionQueue& queue, const Claim& claim,
                                               const IoCommand& command) {
  using format::nvme::IoOpcode;
  WriteLog& log = *controller.write_log;
  if (warp.thread_rank() == 0) end_posted(log);
  warp.sync();
  const RingPlace place = claim.first.plus(warp.thread_rank(), claim.depth);
  LoggedCommand entry{};
  entry.disk = controller.log_disk;
  entry.durable = command.durable ? 1 : 0;
  entry.offset = command.lba << controller.lba_shift;
  entry.record = command.fails() ? nullptr : &queue.records[place.index()];
  entry.lap = place.lap();
  uint32_t number = kNotLogged;
  if (command.valid && command.is(IoOpcode::kWrite) && command.transfer_bytes != 0) {
    entry.kind = LoggedKind::kWrite;
    entry.bytes = command.transfer_bytes;
    number = begin_logged(log, entry);
  } else if (command.zeroes_media()) {
    entry.kind = LoggedKind::kZeroes;
    entry.bytes = uint64_t{command.lba_count} << controller.lba_shift;
    command.range_count == 0 ? static_cast<void>(begin_logged(log, entry))
                             : detail::log_ranges(controller, log, command, entry);
  } else if (command.valid && command.is(IoOpcode::kFlush) && !command.fails()) {
    entry.kind = LoggedKind::kFlush;
    begin_logged(log, entry);
  }
  warp.sync();
  for (uint32_t left = warp.ballot(number != kNotLogged); left != 0; left &= left - 1) {
    const LoggedCommand& one = log.commands[warp.shfl(number, simt::lowest_bit(left))];
    for (uint64_t done = 0; done < one.bytes;) {
      const uint64_t offset = one.offset + done;
      const uint64_t bytes = controller.media.contiguous_bytes(offset, one.bytes - done);
      simt::copy_ranges(warp, 1,
                        {log.data + one.data + done, controller.media.find(offset),
                         static_cast<uint32_t>(bytes)});
      done += bytes;
    }
  }
  warp.sync();
}

}  // namespace gofs::ssd
