// SPDX-License-Identifier: Apache-2.0
//
// The SSDs of a volume: one, or several over which it is striped (format/stripe.h). What the file
// system asks for goes by here and is named by LBAs of the volume: with one SSD these are its own,
// and this layer adds nothing; with several each lane's command goes to the one that has its LBAs,
// and those of all SSDs are under way together.
#pragma once

#include "format/stripe.h"
#include "nvme/bring_up.h"
#include "nvme/execute.h"
#include "nvme/shut_down.h"

namespace gofs::nvme {

struct Array {
  uint32_t count;  // of devices
  uint32_t lba_shift;
  uint32_t transfer_bytes_max;
  uint32_t run_bytes_max;  // of contiguous blocks that become one command
  uint32_t chunk_mask;     // `block & chunk_mask` is 0 where blocks of another device may begin
  uint32_t dataset_management;  // whether all of them take such commands
  uint32_t atomic_blocks;       // whether all of them write blocks wholly or not at all
  uint32_t single_blocks;       // set before they are brought up: each block has its own command
  uint64_t lba_count;           // of the volume
  Device* devices[format::kStripeDisksMax];
  format::Stripe stripe;

  GOFS_HD uint32_t lba_bytes() const { return 1u << lba_shift; }
};

/// Where a warp sends its commands, looked up once.
struct Route {
  Array& array;
  Device& device;    // the first,
  QueuePair& queue;  // and its
  uint32_t lba_shift;
};

GOFS_HD inline Route pick_route(Array& array) {
  Device& device = *array.devices[0];
  return {array, device, pick_queue(device), array.lba_shift};
}

/// Sets how many blocks become one command; the limits of the devices are known.
GOFS_HD inline void limit_runs(Array& array) {
  array.run_bytes_max = array.single_blocks != 0 ? kBlockBytes : array.transfer_bytes_max;
}

/// What all devices of the array, which have been brought up, come to: its LBAs and limits, and as
/// many queues of each. One lane. kDone; kNamespaceFormat: their LBAs differ; kCapacity: one has no
/// room for its part.
GOFS_HD inline BringUpStep take_limits(Array& array) {
  const Device& first = *array.devices[0];
  array.lba_shift = first.lba_shift;
  array.lba_count = first.lba_count;
  array.transfer_bytes_max = first.transfer_bytes_max;
  array.dataset_management = first.dataset_management;
  array.atomic_blocks = first.atomic_blocks;
  array.chunk_mask = ~0u;
  limit_runs(array);
  if (array.count == 1) return BringUpStep::kDone;
  const format::Stripe& stripe = array.stripe;
  array.lba_count = format::stripe_bytes(stripe) >> first.lba_shift;
  array.chunk_mask = (1u << (stripe.chunk_shift - kBlockShift)) - 1;
  array.transfer_bytes_max =
      simt::min(first.transfer_bytes_max, uint32_t{1} << simt::min(stripe.chunk_shift, 31u));
  uint32_t queues = first.io_queue_count;
  for (uint32_t disk = 0; disk < array.count; ++disk) {
    const Device& device = *array.devices[disk];
    if (device.lba_shift != first.lba_shift) return BringUpStep::kNamespaceFormat;
    const uint64_t bytes = device.lba_count << device.lba_shift;
    const uint64_t start = stripe.start_bytes[disk];
    if (start > bytes || stripe.disk_bytes > bytes - start) return BringUpStep::kCapacity;
    array.transfer_bytes_max = simt::min(array.transfer_bytes_max, device.transfer_bytes_max);
    array.dataset_management &= device.dataset_management;
    array.atomic_blocks &= start % kBlockBytes == 0 ? device.atomic_blocks : 0;
    queues = simt::min(queues, device.io_queue_count);
  }
  limit_runs(array);
  for (uint32_t disk = 0; disk < array.count; ++disk) {
    array.devices[disk]->io_queue_count = queues;
  }
  return BringUpStep::kDone;
}

/// An array of one device. One lane.
GOFS_HD inline Array array_of(Device& device) {
  Array array{};
  array.count = 1;
  array.devices[0] = &device;
  (void)take_limits(array);
  return array;
}

/// Brings all devices up. Collective, by one warp, before any other use. On failure all of them are
/// left disabled; `failed` is the one at fault.
GOFS_HD inline BringUpResult bring_up(simt::AnyWarp auto warp, Array& array, uint32_t& failed) {
  BringUpResult result{BringUpStep::kDone, 0};
  uint32_t disk = 0;
  for (; disk < array.count && result.step == BringUpStep::kDone; ++disk) {
    result = bring_up(warp, *array.devices[disk]);
  }
  failed = disk - 1;
  if (result.step == BringUpStep::kDone) {
    uint32_t step = 0;
    if (warp.thread_rank() == 0) step = static_cast<uint32_t>(take_limits(array));
    result.step = static_cast<BringUpStep>(warp.shfl(step, 0));
    warp.sync();
  }
  if (result.step == BringUpStep::kDone) return result;
  for (uint32_t up = 0; up < disk; ++up) fail_device(warp, *array.devices[up]);
  return result;
}

/// Shuts all devices down. Collective, as for one. 0, or the first error of shut_down().
GOFS_HD inline int shut_down(simt::AnyWarp auto warp, Array& array) {
  int result = 0;
  for (uint32_t disk = 0; disk < array.count; ++disk) {
    const int error = shut_down(warp, *array.devices[disk]);
    if (result == 0) result = error;
  }
  return result;
}

namespace detail {

/// `command`, whose LBAs lie in one chunk of the volume, as the device `disk` gets it.
GOFS_HD inline Command deal(const Array& array, const Command& command, uint32_t& disk) {
  const uint64_t offset = command.lba << array.lba_shift;
  const format::StripePlace place = format::place_in_stripe(array.stripe, offset);
  GOFS_ASSERT((offset & ((uint64_t{1} << array.stripe.chunk_shift) - 1)) + command.bytes <=
              uint64_t{1} << array.stripe.chunk_shift);
  disk = place.disk;
  Command dealt = command;
  dealt.lba = place.offset >> array.lba_shift;
  return dealt;
}

/// As wait(), of commands that each lane has given to the device `disk` of its own.
GOFS_NOINLINE GOFS_HD inline CommandStatus wait_for_all(simt::AnyWarp auto warp, Array& array,
                                                        uint32_t lanes, uint32_t disk,
                                                        const Token& token) {
  bool waiting = (lanes >> warp.thread_rank() & 1u) != 0;
  CommandStatus status = 0;
  // Devices of several kinds have timeouts of their own.
  const simt::Deadline deadline =
      simt::Deadline::after_ns(array.devices[waiting ? disk : 0]->limits.command_timeout_ns);
  simt::Backoff backoff;
  for (uint32_t late = 0;;) {
    for (uint32_t each = 0; each < array.count; ++each) {
      const bool here = waiting && disk == each;
      const uint32_t left = warp.ballot(here);
      if (left == 0) continue;
      Device& device = *array.devices[each];
      QueuePair& queue = pick_queue(device);
      progress(warp, device, queue);
      bool done = here && completed(queue, token, status);
      if (done) retire(queue, token);
      if (warp.any(device_failed(device))) {
        warp.sync();  // what one lane has acquired [N5], all may rely on
        if (here && !done) status = kStatusDeviceFailed;
        done = here;
      } else if ((late & left) != 0) {
        const CommandStatus verdict =
            recover(warp, device, queue, warp.ballot(here && !done), token);
        if (here && !done) status = verdict;
        done = here;
      }
      waiting = waiting && !done;
    }
    if (!warp.any(waiting)) return status;
    late = warp.ballot(waiting && deadline.passed());
    if (late == 0) backoff.pause();
  }
}

/// Runs the command of each lane in `lanes` on the device `disk` of its own. As execute().
GOFS_NOINLINE GOFS_HD inline CommandStatus execute_on(simt::AnyWarp auto warp, Array& array,
                                                      uint32_t lanes, uint32_t disk,
                                                      const Command& command) {
  CommandStatus status = 0;
  while (lanes != 0) {
    // All are started before one is waited for, on one device after the other in the same order for
    // everybody: who waits there for a slot may hold some, but only of devices before.
    uint32_t under_way = 0;
    Token token{};
    for (uint32_t each = 0; each < array.count; ++each) {
      uint32_t rest = lanes & warp.ballot(disk == each);
      if (rest == 0) continue;
      Device& device = *array.devices[each];
      QueuePair& queue = pick_queue(device);
      const uint32_t portion = take_portion(queue, rest);
      Token taken{};
      const int error = submit(warp, device, queue, portion, command, nullptr, taken);
      if ((portion >> warp.thread_rank() & 1u) != 0) {
        token = taken;
        if (error < 0) status = kStatusDeviceFailed;
      }
      if (error == 0) under_way |= portion;
      lanes &= ~portion;
    }
    if (under_way == 0) continue;
    const CommandStatus result = wait_for_all(warp, array, under_way, disk, token);
    if ((under_way >> warp.thread_rank() & 1u) != 0) status = result;
  }
  return status;
}

GOFS_NOINLINE GOFS_HD inline CommandStatus execute_dealt(simt::AnyWarp auto warp, Array& array,
                                                         uint32_t lanes, const Command& command) {
  uint32_t disk = 0;
  const bool mine = (lanes >> warp.thread_rank() & 1u) != 0;
  const Command dealt = mine ? deal(array, command, disk) : command;
  return execute_on(warp, array, lanes, disk, dealt);
}

GOFS_NOINLINE GOFS_HD inline int start_dealt(simt::AnyWarp auto warp, Array& array, uint32_t lanes,
                                             const Command& command, Mailbox& mailbox) {
  uint32_t disk = 0;
  const bool mine = (lanes >> warp.thread_rank() & 1u) != 0;
  const Command dealt = mine ? deal(array, command, disk) : command;
  for (uint32_t each = 0; each < array.count; ++each) {
    const uint32_t here = lanes & warp.ballot(disk == each);
    if (here == 0) continue;
    Device& device = *array.devices[each];
    const int error = start(warp, device, pick_queue(device), here, dealt, mailbox);
    if (error < 0) return error;
  }
  return 0;
}

}  // namespace detail

/// Runs the command of each lane in `lanes`, a Read or a Write within one chunk, to its end. As
/// execute() on a device.
GOFS_HD inline CommandStatus execute(simt::AnyWarp auto warp, const Route& route, uint32_t lanes,
                                     const Command& command) {
  if (route.array.count == 1) return execute(warp, route.device, route.queue, lanes, command);
  return detail::execute_dealt(warp, route.array, lanes, command);
}

/// Starts such commands, which report to `mailbox`. As start() on a device; where it answers -EIO,
/// some may be under way.
GOFS_HD inline int start(simt::AnyWarp auto warp, const Route& route, uint32_t lanes,
                         const Command& command, Mailbox& mailbox) {
  if (route.array.count == 1)
    return start(warp, route.device, route.queue, lanes, command, mailbox);
  return detail::start_dealt(warp, route.array, lanes, command, mailbox);
}

/// How long commands take at most, whichever device has them.
GOFS_HD inline uint64_t longest_timeout_ns(const Array& array) {
  uint64_t longest_ns = array.devices[0]->limits.command_timeout_ns;
  for (uint32_t disk = 1; disk < array.count; ++disk) {
    longest_ns = simt::max(longest_ns, array.devices[disk]->limits.command_timeout_ns);
  }
  return longest_ns;
}

/// Lets the devices and their queues with this index get on. Collective.
GOFS_HD inline void progress(simt::AnyWarp auto warp, Array& array, uint32_t queue) {
  for (uint32_t disk = 0; disk < array.count; ++disk) {
    Device& device = *array.devices[disk];
    progress(warp, device, device.io[queue]);
  }
}

/// Whether those commands that report to `mailbox`, all of them given to queues with index `queue`,
/// and that have not done so, never will, since their device has failed. Collective, uniform.
GOFS_NOINLINE GOFS_HD inline bool is_lost(simt::AnyWarp auto warp, Array& array, uint32_t queue,
                                          const Mailbox& mailbox) {
  // First, so that what is counted as delivered since then is missing in `lost`, not the reverse.
  const uint32_t remaining = simt::load_acquire(mailbox.remaining);
  uint32_t lost = 0;
  bool failed = false;
  for (uint32_t disk = 0; disk < array.count; ++disk) {
    const Device& device = *array.devices[disk];
    if (!warp.any(device_failed(device))) continue;
    failed = true;
    const QueuePair& pair = device.io[queue];
    for (uint32_t index = warp.thread_rank(); index < pair.depth(); index += warp.size()) {
      const Slot& slot = pair.slots[index];
      const uint32_t lap = simt::load_acquire(slot.lap);
      const bool outstanding =
          simt::load_acquire(slot.issued) == lap + 1 &&
          static_cast<uint32_t>(simt::load_relaxed(slot.done) >> 32) != lap + 1;
      if (outstanding && simt::load_relaxed(slot.mailbox) == &mailbox) ++lost;
    }
  }
  if (!failed) return false;
  lost = simt::reduce_add(warp, lost);
  return warp.all(remaining <= lost);
}

/// Settles the overdue commands that report to `mailbox`. Collective, uniform.
GOFS_HD inline void recover_mailbox(simt::AnyWarp auto warp, Array& array, uint32_t queue,
                                    Mailbox& mailbox) {
  for (uint32_t disk = 0; disk < array.count; ++disk) {
    Device& device = *array.devices[disk];
    if (!warp.any(device_failed(device))) {
      recover_mailbox(warp, device, device.io[queue], mailbox);
    }
  }
}

/// Makes durable, on all devices, what was written by commands that have returned. Collective,
/// uniform. 0 or a negative errno.
GOFS_NOINLINE GOFS_HD inline int flush(simt::AnyWarp auto warp, Array& array) {
  Command command{};
  command.opcode = format::nvme::IoOpcode::kFlush;
  int error = 0;
  for (uint32_t first = 0; first < array.count && error == 0; first += warp.size()) {
    const uint32_t disk = first + warp.thread_rank();
    const uint32_t lanes = warp.ballot(disk < array.count);
    const CommandStatus status = detail::execute_on(warp, array, lanes, disk, command);
    error = simt::first_error(warp, disk < array.count ? to_errno(status) : 0);
  }
  return error;
}

namespace detail {

/// The parts of ranges of the volume that lie on `disk`, at `dealt`. Their number. One lane.
GOFS_HD inline uint32_t deal_ranges(const Array& array, uint32_t disk,
                                    const format::nvme::DatasetRange* ranges, uint32_t count,
                                    format::nvme::DatasetRange* dealt) {
  uint32_t here = 0;
  for (uint32_t i = 0; i < count; ++i) {
    const uint64_t begin = ranges[i].lba << array.lba_shift;
    const uint64_t end = begin + (uint64_t{ranges[i].lba_count} << array.lba_shift);
    const uint64_t from = format::bytes_on_disk(array.stripe, disk, begin);
    const uint64_t to = format::bytes_on_disk(array.stripe, disk, end);
    if (from == to) continue;
    dealt[here++] = {0, static_cast<uint32_t>((to - from) >> array.lba_shift),
                     (array.stripe.start_bytes[disk] + from) >> array.lba_shift};
  }
  return here;
}

}  // namespace detail

/// Tells the devices that what lies in `count` ranges of the volume is not needed any more, from 1
/// to kDatasetRangesMax. `spare` is memory for as many that the devices reach, as they do `ranges`.
/// Collective, uniform. 0 or a negative errno.
GOFS_NOINLINE GOFS_HD inline int deallocate(simt::AnyWarp auto warp, Array& array,
                                            format::nvme::DatasetRange* ranges, uint32_t count,
                                            format::nvme::DatasetRange* spare) {
  GOFS_ASSERT(count != 0 && count <= format::nvme::kDatasetRangesMax);
  int error = 0;
  for (uint32_t disk = 0; disk < array.count && error == 0; ++disk) {
    uint32_t here = count;
    if (array.count > 1) {
      if (warp.thread_rank() == 0) here = detail::deal_ranges(array, disk, ranges, count, spare);
      here = warp.shfl(here, 0);
      warp.sync();
    }
    if (here == 0) continue;
    Command command{};
    command.opcode = format::nvme::IoOpcode::kDatasetManagement;
    command.lba_count = here;
    command.bytes = here * static_cast<uint32_t>(sizeof(format::nvme::DatasetRange));
    command.buffer = array.count == 1 ? ranges : spare;
    const CommandStatus status = detail::execute_on(warp, array, 1u, disk, command);
    error = simt::first_error(warp, warp.thread_rank() == 0 ? to_errno(status) : 0);
  }
  return error;
}

}  // namespace gofs::nvme
