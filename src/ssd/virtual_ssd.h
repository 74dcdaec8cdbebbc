// SPDX-License-Identifier: Apache-2.0
//
// The host's side of the virtual SSD: making one, planning faults, reading its counters. Nothing
// here dereferences the controller's memory, which may be a GPU's. Host only.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "simt/memory.h"
#include "ssd/controller_ref.h"

namespace gofs::ssd {

struct VirtualSsdConfig {
  std::string_view model_number = "GoFS virtual NVMe SSD";
  uint32_t lba_shift = 9;             // 9 or 12
  uint64_t capacity_bytes = 0;        // 0: all of the media
  uint32_t queue_entries_max = 4096;  // CAP.MQES: 2 to 65535
  uint32_t queue_pairs_max = 128;
  uint32_t mdts = 7;             // a command moves up to 2^mdts pages; 0: no limit
  uint32_t doorbell_stride = 5;  // CAP.DSTRD: 5 gives each doorbell 128 bytes of its own
  TimingModel model;
  bool virtual_clock = false;   // time moves only when nothing else is left to do; one thread
  uint32_t fault_capacity = 0;  // rules that can be planned
  bool volatile_write_cache = true;
  uint32_t atomic_bytes = 4096;  // AWUPF: a write of up to as much, of whole LBAs, is done wholly
                                 // or not at all when the power fails
  bool deallocated_reads_zeros = true;
  bool dataset_management = true;
  uint32_t timeout_half_seconds = 20;  // CAP.TO: until it has stopped
  uint32_t logged_commands = 0;  // room for them in the write log (power_cut.h); 0: none is kept
  uint64_t logged_bytes = 0;     // room for what they wrote
  // Instead of a log of its own: that of an SSD which was made with one, and is destroyed later.
  // There this one is disk `log_disk`, from 1.
  ControllerRef log_of{};
  uint32_t log_disk = 0;
};

/// Lays the controller out in `memory`, disabled. The media stays the caller's. Throws
/// std::invalid_argument for a configuration that makes no sense, std::bad_alloc.
ControllerRef create_virtual_controller(simt::MemorySpace& memory, const VirtualSsdConfig& config,
                                        const Media& media);

/// The controller is not stepped any more.
void destroy_virtual_controller(simt::MemorySpace& memory, ControllerRef ref);

/// Adds a rule after those that are there. No thread steps the controller meanwhile. Throws
/// std::invalid_argument when the table is full or the rule is one that admin commands cannot have.
void add_fault(simt::MemorySpace& memory, ControllerRef ref, const FaultRule& rule);
void clear_faults(simt::MemorySpace& memory, ControllerRef ref);

struct VirtualSsdCounters {
  uint64_t read_commands = 0;
  uint64_t write_commands = 0;
  uint64_t blocks_read = 0;
  uint64_t blocks_written = 0;
  uint64_t errors = 0;
  uint64_t invalid_doorbells = 0;
  // Flush, FUA writes, shutdown: as often as the media was to be made durable. On a GPU that cannot
  // be done while the kernel runs; the owner compares with what it saw last, and syncs.
  uint64_t flush_requests = 0;
  uint64_t virtual_now_ns = 0;
};

/// No thread steps the controller meanwhile.
VirtualSsdCounters read_counters(simt::MemorySpace& memory, ControllerRef ref);

/// "none", "990pro", "p5800x", or settings such as "units=8,unit_ns=5700"; a name may be followed
/// by settings that change it: "990pro,iops=1000000". Throws std::invalid_argument, which names the
/// setting that is wrong.
TimingModel parse_timing_model(std::string_view text);

}  // namespace gofs::ssd
