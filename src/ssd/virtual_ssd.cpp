// SPDX-License-Identifier: Apache-2.0
#include "ssd/virtual_ssd.h"

#include <algorithm>
#include <cstring>
#include <new>
#include <stdexcept>

namespace gofs::ssd {

namespace {

using format::nvme::IdentifyController;
using format::nvme::IdentifyNamespace;
using format::nvme::Registers;

constexpr uint32_t kQueuePairsMax = 65534;
constexpr uint32_t kStrideMax = 15;
constexpr uint32_t kMdtsMax = 16;
constexpr uint32_t kVersion14 = 0x00010400;

void require(bool condition, const char* what) {
  if (!condition) throw std::invalid_argument(std::string("virtual SSD: ") + what);
}

uint64_t capacity_of(const VirtualSsdConfig& config, const Media& media) {
  const uint64_t lba_bytes = uint64_t{1} << config.lba_shift;
  if (config.capacity_bytes == 0) return media.bytes / lba_bytes * lba_bytes;
  return config.capacity_bytes;
}

void check(const VirtualSsdConfig& config, const Media& media) {
  require(config.lba_shift == 9 || config.lba_shift == 12, "LBAs have 512 or 4096 bytes");
  require(config.queue_entries_max >= 2 && config.queue_entries_max <= kQueueEntriesMax,
          "a queue has 2 to 65535 entries");
  require(config.queue_pairs_max >= 1 && config.queue_pairs_max <= kQueuePairsMax,
          "there are 1 to 65534 queue pairs");
  require(config.mdts <= kMdtsMax, "mdts is at most 16");
  require(config.doorbell_stride <= kStrideMax, "the doorbell stride is at most 15");
  require(config.model.units <= kTimingUnitsMax, "the timing model has at most 1024 units");
  require(config.model.units == 0 || config.model.stripe_bytes != 0, "a stripe has some bytes");
  require(media.base != nullptr || media.chunks != nullptr || media.is_apart(),
          "there is no media");
  require(!media.is_apart() || (config.logged_commands == 0 && config.log_disk == 0),
          "what is written to a file is not logged");
  const uint64_t capacity = capacity_of(config, media);
  require(capacity != 0, "the media is smaller than one LBA");
  require(capacity <= media.bytes, "the capacity is larger than the media");
  require(capacity % (uint64_t{1} << config.lba_shift) == 0, "the capacity is not whole LBAs");
  const uint64_t atomic_lbas = config.atomic_bytes >> config.lba_shift;
  require(atomic_lbas >= 1 && atomic_lbas <= 65536 &&
              atomic_lbas << config.lba_shift == config.atomic_bytes,
          "what is written atomically is 1 to 65536 LBAs");
  const bool borrows = config.log_of.controller != nullptr;
  require(borrows == (config.log_disk != 0), "who logs elsewhere is not disk 0 there");
  require(!borrows || config.logged_commands == 0, "there is one log for what is written");
}

/// Fixed-width text of Identify data: padded with spaces, not terminated.
template <size_t kSize>
void put_text(char (&field)[kSize], std::string_view text) {
  std::fill(std::begin(field), std::end(field), ' ');
  std::copy_n(text.begin(), std::min(text.size(), kSize), field);
}

IdentifyController make_identify_controller(const VirtualSsdConfig& config) {
  constexpr uint16_t kWriteZeroes = 1u << 3;
  constexpr uint16_t kDatasetManagement = 1u << 2;
  constexpr uint8_t kExtendedLogData = 1u << 2;
  IdentifyController data;
  std::memset(static_cast<void*>(&data), 0, sizeof(data));
  put_text(data.serial_number, "GOFS0001");
  put_text(data.model_number, config.model_number);
  put_text(data.firmware_revision, "0.1");
  data.ieee[2] = 0x02;  // locally administered
  data.mdts = static_cast<uint8_t>(config.mdts);
  data.controller_id = 1;
  data.version = kVersion14;
  data.acl = 3;
  data.lpa = kExtendedLogData;
  data.elpe = kErrorLogEntries - 1;
  data.sqes = 0x66;
  data.cqes = 0x44;
  data.maxcmd = static_cast<uint16_t>(config.queue_entries_max);
  data.nn = 1;
  data.oncs = kWriteZeroes;
  if (config.dataset_management) data.oncs |= kDatasetManagement;
  data.vwc = config.volatile_write_cache ? 1 : 0;
  data.awun = data.awupf = static_cast<uint16_t>((config.atomic_bytes >> config.lba_shift) - 1);
  return data;
}

IdentifyNamespace make_identify_namespace(const VirtualSsdConfig& config, uint64_t lba_count) {
  constexpr size_t kDlfeat = 33;  // deallocated blocks read zeros
  IdentifyNamespace data;
  std::memset(static_cast<void*>(&data), 0, sizeof(data));
  data.nsze = data.ncap = data.nuse = lba_count;
  data.lbaf[0].lba_shift = static_cast<uint8_t>(config.lba_shift);
  reinterpret_cast<uint8_t*>(&data)[kDlfeat] = config.deallocated_reads_zeros ? 1 : 0;
  return data;
}

size_t bar_bytes(const VirtualSsdConfig& config) {
  const size_t doorbells = size_t{2} * (config.queue_pairs_max + 1);
  return format::nvme::kDoorbellOffset + (doorbells << (2 + config.doorbell_stride));
}

/// The controller's state, and what belongs to it; released if the rest fails.
class Layout {
 public:
  Layout(simt::MemorySpace& memory, size_t state_bytes)
      : memory_(memory), state_(memory.allocate_array<uint8_t>(state_bytes, kPart)) {}
  Layout(const Layout&) = delete;
  Layout& operator=(const Layout&) = delete;
  ~Layout() {
    if (state_ != nullptr) memory_.release_belongings(state_);
    memory_.release(state_);
  }

  uint8_t* state() const { return state_; }
  template <typename T>
  T* allocate(size_t count) {
    return memory_.allocate_for<T>(state_, count, kPart);
  }
  void keep() { state_ = nullptr; }

 private:
  static constexpr auto kPart = simt::MemoryPart::kController;

  simt::MemorySpace& memory_;
  uint8_t* state_;
};

Registers make_registers(const VirtualSsdConfig& config) {
  using namespace format::nvme;
  constexpr uint64_t kContiguousQueues = uint64_t{1} << 16;
  Registers registers;
  std::memset(static_cast<void*>(&registers), 0, sizeof(registers));
  registers.cap = (config.queue_entries_max - 1) | kContiguousQueues |
                  uint64_t{config.timeout_half_seconds} << kCapTimeoutShift |
                  uint64_t{config.doorbell_stride} << kCapStrideShift |
                  uint64_t{1} << kCapNvmCommandSetShift;
  registers.vs = kVersion14;
  return registers;
}

}  // namespace

ControllerRef create_virtual_controller(simt::MemorySpace& memory, const VirtualSsdConfig& config,
                                        const Media& media) {
  check(config, media);
  const uint64_t lba_count = capacity_of(config, media) >> config.lba_shift;
  const size_t queues = config.queue_pairs_max + 1;
  const bool faults = config.fault_capacity != 0;
  const bool modelled = !config.model.is_none();

  static_assert(sizeof(VirtualController) % alignof(SubmissionQueue) == 0);
  Layout layout(memory, sizeof(VirtualController) +
                            queues * (sizeof(SubmissionQueue) + sizeof(CompletionQueue)));
  uint8_t* const state = layout.state();
  auto* const controller_at = reinterpret_cast<VirtualController*>(state);

  VirtualController controller;
  std::memset(static_cast<void*>(&controller), 0, sizeof(controller));
  controller.bar = layout.allocate<uint8_t>(bar_bytes(config));
  controller.doorbell_shift = 2 + config.doorbell_stride;
  controller.queue_limit = config.queue_pairs_max;
  controller.queue_entries_max = config.queue_entries_max;
  controller.lba_shift = config.lba_shift;
  controller.lba_count = lba_count;
  controller.transfer_bytes_max = config.mdts == 0 ? 0 : kBlockBytes << config.mdts;
  // A Flush that calls the host takes long, and must not hold up what was submitted after it.
  const bool borrows = config.log_of.controller != nullptr;
  const bool logs = config.logged_commands != 0 || borrows;
  const bool pending = modelled || faults || logs || config.virtual_clock || media.sync != nullptr;
  controller.mode = pending ? CompletionMode::kPending : CompletionMode::kDirect;
  controller.volatile_cache_present = config.volatile_write_cache;
  controller.volatile_cache_enabled = config.volatile_write_cache ? 1 : 0;
  controller.virtual_clock = config.virtual_clock;
  controller.media = media;
  controller.model = config.model;
  controller.scratch = layout.allocate<uint8_t>(kBlockBytes);
  controller.identify_controller = layout.allocate<IdentifyController>(1);
  controller.identify_namespace = layout.allocate<IdentifyNamespace>(1);
  memory.write_object(controller.identify_controller, make_identify_controller(config));
  memory.write_object(controller.identify_namespace, make_identify_namespace(config, lba_count));
  if (modelled) controller.timing = layout.allocate<TimingState>(1);
  if (faults) {
    controller.faults = layout.allocate<FaultTable>(1);
    const FaultTable table{config.fault_capacity, 0,
                           layout.allocate<FaultTable::Entry>(config.fault_capacity)};
    memory.write_object(controller.faults, table);
  }
  if (borrows) {
    controller.write_log = memory.read_object(config.log_of.controller).write_log;
    controller.log_disk = config.log_disk;
    require(controller.write_log != nullptr, "the SSD that is to lend its log has none");
  } else if (logs) {
    WriteLog log{};
    log.commands = layout.allocate<LoggedCommand>(config.logged_commands);
    log.data = layout.allocate<uint8_t>(std::max<uint64_t>(config.logged_bytes, 1));
    log.capacity = config.logged_commands;
    log.data_capacity = config.logged_bytes;
    controller.write_log = layout.allocate<WriteLog>(1);
    memory.write_object(controller.write_log, log);
  }
  memory.write_object(controller_at, controller);

  const size_t records = size_t{config.queue_pairs_max} * config.queue_entries_max;
  auto* const record_at = layout.allocate<PendingRecord>(records);
  auto* const hold_at = faults ? layout.allocate<uint64_t>(records) : nullptr;
  for (uint32_t qid = 1; qid < queues; ++qid) {
    SubmissionQueue queue;
    std::memset(static_cast<void*>(&queue), 0, sizeof(queue));
    queue.claimed = RingPlace::kClosed;
    queue.next_due_ns = kNever;
    const size_t first = size_t{qid - 1} * config.queue_entries_max;
    queue.records = record_at + first;
    queue.hold_until = faults ? hold_at + first : nullptr;
    memory.write_object(reinterpret_cast<SubmissionQueue*>(state + sizeof(VirtualController)) + qid,
                        queue);
  }
  memory.write_object(reinterpret_cast<Registers*>(controller.bar), make_registers(config));
  layout.keep();
  return ControllerRef{controller.bar, controller_at, nullptr};
}

void destroy_virtual_controller(simt::MemorySpace& memory, ControllerRef ref) {
  memory.release_belongings(ref.controller);
  memory.release(ref.controller);
}

void add_fault(simt::MemorySpace& memory, ControllerRef ref, const FaultRule& rule) {
  FaultTable* const table_at = memory.read_object(ref.controller).faults;
  require(table_at != nullptr, "made without room for fault rules");
  require(!rule.admin || (rule.action != FaultAction::kDelay && rule.action != FaultAction::kHold),
          "admin commands cannot be delayed or held");
  FaultTable table = memory.read_object(table_at);
  require(table.count < table.capacity, "no room for another fault rule");
  FaultTable::Entry entry;
  entry.rule = rule;
  entry.matches = 0;
  memory.write_object(table.entries + table.count, entry);
  ++table.count;
  memory.write_object(table_at, table);
}

void clear_faults(simt::MemorySpace& memory, ControllerRef ref) {
  FaultTable* const table_at = memory.read_object(ref.controller).faults;
  if (table_at == nullptr) return;
  FaultTable table = memory.read_object(table_at);
  table.count = 0;
  memory.write_object(table_at, table);
}

VirtualSsdCounters read_counters(simt::MemorySpace& memory, ControllerRef ref) {
  const VirtualController controller = memory.read_object(ref.controller);
  VirtualSsdCounters counters;
  counters.errors = controller.error_count;
  counters.invalid_doorbells = controller.admin.invalid_doorbells;
  counters.flush_requests = controller.flush_requests;
  counters.virtual_now_ns = controller.virtual_now_ns;
  const auto* const queues = reinterpret_cast<const SubmissionQueue*>(ref.controller + 1);
  for (uint32_t qid = 1; qid <= controller.queue_limit; ++qid) {
    const SubmissionQueue queue = memory.read_object(queues + qid);
    counters.read_commands += queue.read_commands;
    counters.write_commands += queue.write_commands;
    counters.blocks_read += queue.blocks_read;
    counters.blocks_written += queue.blocks_written;
    counters.invalid_doorbells += queue.invalid_doorbells;
  }
  return counters;
}

}  // namespace gofs::ssd
