// SPDX-License-Identifier: Apache-2.0
//
// What a mounted volume consists of on the host's side: the backend, the SSD and its media, the
// device's queues, the file system's memory, and the way to run a call over there and to learn what
// went wrong.
//
// A child of fork() has a copy of this, without the threads, with locks as they happened to be, and
// with an image that is its parent's. There nothing is locked, waited for or freed, and all fails.
#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <mutex>
#include <new>
#include <string>
#include <utility>
#include <vector>

#include "f2fs/writer_layout.h"
#include "host/any_volume.h"
#include "host/backends.h"
#include "host/calls_at_once.h"
#include "host/calls_under_way.h"
#include "host/media_room.h"
#include "host/process_mark.h"
#include "host/range_work.h"
#include "host/registered_buffers.h"
#include "host/shared_array.h"
#include "host/staged_reads.h"
#include "host/volume_spec.h"
#include "kernels/backend.h"
#include "kernels/mount.h"
#include "nvme/layout.h"
#include "ssd/virtual_ssd.h"
#include "vfs/layout.h"

namespace gofs::host {

class AttachedSsd;
class ClockKeeper;
struct QuietMemory;
class Maintenance;

enum class MountKind {
  kVolume,
  kServed,      // the same, where what warps have flushed lasts: no SSD is a copy of an image
  kDeviceOnly,  // the SSD alone, for raw commands
};

/// As make_backend().
using BackendMaker =
    std::function<std::unique_ptr<kernels::Backend>(const std::string& name, std::string& error)>;

class VolumeState final : public AnyVolume {
 public:
  /// `make` is for tests.
  static Expected<std::unique_ptr<VolumeState>> mount(const std::string& spec,
                                                      const MountOptions& options, MountKind kind,
                                                      const BackendMaker& make = make_backend);
  ~VolumeState() override;
  /// In a child of fork() it is left as it is, destructor and all.
  static void operator delete(VolumeState* volume, std::destroying_delete_t);

  kernels::Backend& backend() const { return *backend_; }
  vfs::Filesystem* filesystem() const { return filesystem_->filesystem(); }
  const VolumeSpec& spec() const { return spec_; }
  const MountOptions& options() const { return options_; }
  const std::string& name() const override { return spec_.text; }
  VolumeHandle device() const override;
  std::vector<std::string> storage_paths() const override;

  /// False once it was unmounted.
  bool is_up() const { return up_; }

  /// Whether this process has mounted it, and no parent of it.
  bool is_ours() const { return process_.is_ours(); }
  /// What is said where it is not.
  Error not_ours() const;

  /// Whether the backend runs nothing any more: then every call fails, explain() says why, and what
  /// lies in its memory is not looked at.
  bool has_failed() const { return backend_->has_failed(); }

  /// Runs `body`; `params` lies in the backend's memory, its own or shared. False: it has not run,
  /// or not to its end, explain(kNotRun) says why. The backend may be as good as before.
  bool run(const kernels::Body& body, const kernels::Grid& grid, void* params);
  /// As run(), but does not wait (Backend::begin_apart). Null: it does not run.
  std::unique_ptr<kernels::Begun> begin(const kernels::Body& body, const kernels::Grid& grid,
                                        void* params);

  /// Of a call's `input`.
  static constexpr uint64_t kInputBytesMax = 1 << 20;
  bool read_staged(std::span<const IoRange> ranges, std::span<int64_t> results) override;

  Expected<std::shared_ptr<RangeWork>> begin_ranges(bool writes, const std::vector<IoRange>& ranges,
                                                    CUstream_st* stream) override;
  Expected<std::vector<int>> create_files(const std::string& path,
                                          const std::vector<NewFile>& files,
                                          uint32_t permissions) override;
  CleaningReport cleaning_totals() const override;
  ClockReport clock() const override;
  Expected<CleaningReport> collect_garbage(const CleaningOptions& options) override;

  Expected<void> sync() override;
  Expected<void> fsync(request::Verb verb, int descriptor) override;
  /// Where that could not even be tried, the volume is mounted still; where only the image could
  /// not be written, for want of room on the host's disk, another call tries that again.
  Expected<void> unmount() override;

  /// Whether an operation has begun since the last checkpoint.
  bool has_changed() const;
  /// Segments of the main area that nothing lies in, now.
  uint32_t free_segments() const;
  /// Commands that the SSDs' I/O queues have been given so far.
  uint64_t commands_issued() const;
  /// Whether raw commands of `bytes` each, contiguous from `start` on, do not go from one SSD of a
  /// stripe to the next.
  bool is_within_chunks(uint64_t start, uint64_t bytes) const {
    const uint64_t mask = (uint64_t{1} << stripe_.chunk_shift) - 1;
    return stripe_.disks == 1 || ((start & mask) % bytes == 0 && (mask + 1) % bytes == 0);
  }
  /// What the SSDs have counted together since they were made. No thread gives them commands
  /// meanwhile.
  ssd::VirtualSsdCounters ssd_counters() const;

  Error explain(int64_t negative_errno, const std::string& subject, uint64_t ino = 0) override;
  Error explain(int64_t negative_errno, const std::string& from, const std::string& to) override;
  std::vector<std::string> more_damage(uint64_t ino) override;
  std::string refuses_buffer(const void* buffer, uint64_t bytes) const override;
  void name_descriptor(int descriptor, const std::string& path) override;
  std::string descriptor_name(int descriptor) override;
  /// Damage that was met since the last call of this function or of explain().
  std::vector<f2fs::Corruption> take_corruptions();

  VolumeInfo info() const override;
  Expected<MemoryReport> memory() override;
  Expected<CommandTimes> command_times() override;
  std::vector<std::string> warnings() override;

  Expected<BufferHandle> register_buffer(void* memory, uint64_t bytes) override;
  Expected<void> unregister_buffer(BufferHandle buffer) override;

 private:
  CallAnswer make(const CallRequest& request) override;
  /// By one launch, but for those that move data.
  void make_all(std::span<const CallRequest> requests, std::span<CallAnswer> answers) override;

  struct CallSlot;
  class Queues;

  /// `whole` has the text of all, and the options that are not about one SSD.
  VolumeState(VolumeSpec whole, std::vector<VolumeSpec> members, const format::Stripe& stripe,
              const MountOptions& options);
  Expected<void> come_up(MountKind kind, const BackendMaker& make);
  bool tries_doorbells() const;
  bool wake_ssds();
  Expected<void> come_up_or_throw(MountKind kind, const BackendMaker& make);
  Expected<void> open_backend(const BackendMaker& make);
  nvme::DeviceOptions device_options_of(const VolumeSpec& member) const;
  Expected<void> attach_ssds(MountKind kind);
  Expected<void> check_moments() const;
  void create_filesystem();
  Expected<void> bring_up(MountKind kind);
  Expected<RoomPlan> plan_room();
  Expected<void> begin_writing();
  Expected<void> prepare_to_end();
  bool prepare(const kernels::Body& body);
  Expected<void> begin_clock();
  void begin_maintenance();
  bool log_structured() const { return spec_.log_structured.value_or(options_.log_structured); }
  uint32_t ablations() const { return spec_.ablations.value_or(options_.ablations); }
  kernels::Grid checkpoint_grid() const;
  Expected<void> sync_media();
  Expected<void> sync_copies();
  Expected<void> collect_copies(kernels::MemoryCopier* warp);
  Expected<void> sync_ssds();
  Expected<void> sync_for_good();
  Expected<void> end(bool whatever_happens);
  bool end_threads();
  Expected<void> shut_down(bool whatever_happens);
  void detach();
  Expected<CleaningReport> collect_or_throw(const CleaningOptions& options);

  std::unique_ptr<CallSlot> take_slot();
  void release(std::unique_ptr<CallSlot> slot);
  struct Finding {
    f2fs::Corruption corruption;
    bool told;
  };
  f2fs::CorruptionLog* corruption_log() const;
  size_t collect_findings();
  std::string damage_met(uint64_t ino);
  void tell_lost(std::vector<std::string>& sentences);
  std::string unsupported_part(const std::string& path);
  std::string describe_ssds() const;
  std::string on_ssd(size_t index, const std::string& words) const;
  std::string last_failure(int code);

  const ProcessMark process_ = ProcessMark::of_this_process();
  VolumeState* next_left_ = nullptr;  // that was left alone in this child
  const VolumeSpec spec_;
  std::vector<VolumeSpec> members_;  // the SSDs, in the order of the stripe
  const format::Stripe stripe_;
  const MountOptions options_;
  // In the order in which they stand on each other; the last goes first.
  std::unique_ptr<kernels::Backend> backend_;
  std::vector<std::unique_ptr<AttachedSsd>> ssds_;
  std::vector<std::unique_ptr<Queues>> queues_;  // of each SSD
  std::unique_ptr<vfs::FilesystemMemory> filesystem_;
  std::unique_ptr<f2fs::WriterMemory> writer_;
  std::unique_ptr<SharedArray<kernels::UnmountParams>> unmounting_;
  std::unique_ptr<QuietMemory> quiet_memory_;
  // These go before all else is unmounted.
  std::unique_ptr<Maintenance> maintenance_;
  std::unique_ptr<ClockKeeper> clock_;
  std::atomic<bool> up_{false};     // the controller is enabled
  CallsUnderWay calls_under_way_;   // that an unmount() waits for
  bool is_behind_ = false;          // it was unmounted, and the image can be written still
  bool came_up_ = false;            // all SSDs
  uint32_t withheld_segments_ = 0;  // that the SSDs have no room for
  uint64_t read_only_withheld_blocks_ = 0;

  std::mutex failure_mutex_;
  std::string launch_failure_;  // of the last one that failed

  std::mutex sync_mutex_;           // one copy of the SSDs at a time
  std::mutex end_mutex_;            // one end() at a time: the others wait until it has ended
  mutable std::mutex clock_mutex_;  // of `clock_` itself

  std::mutex slots_mutex_;
  std::vector<std::unique_ptr<CallSlot>> free_slots_;

  RangeWorks range_works_;
  CallsAtOnce calls_at_once_;
  StagedReads staged_reads_;

  DescriptorNames descriptor_names_;

  std::mutex findings_mutex_;
  std::vector<uint64_t> told_failures_;  // of each SSD, the last that was reported
  std::vector<Finding> findings_;        // taken from the log, each once, the latest last
  uint32_t lost_reports_ = 0;            // as the log had it when it was reported
  bool told_unclean_ = false;
  int64_t recovered_nodes_ = 0;  // when it was mounted, until warnings() has reported it

  RegisteredBuffers buffers_;
};

}  // namespace gofs::host
