// SPDX-License-Identifier: Apache-2.0
#include "fuzz_volume.h"

#include <algorithm>
#include <cstring>
#include <vector>

#include "nvme/bring_up.h"
#include "nvme/shut_down.h"
#include "testing/teams.hpp"

namespace gofs::fuzz {

namespace {

/// Answers that say that the reader got in its own way, not that the volume is bad.
constexpr int kForbidden[] = {EAGAIN, EBADMSG, EBUSY,  EDEADLK, EEXIST, EFAULT, EIO,      EMFILE,
                              ENFILE, ENODEV,  ENOMEM, ENOSPC,  ENOSYS, EPERM,  ETIMEDOUT};

/// More than any walk needs: what takes more does not end.
constexpr uint64_t kCommandsMax = 200'000;

}  // namespace

FuzzVolume::FuzzVolume(uint8_t* image, uint64_t bytes, const FuzzVolumeOptions& options)
    : options_(options) {
  ssd::Media media;
  media.base = image;
  media.bytes = bytes;
  media.read_only = true;
  ssd::VirtualSsdConfig config;
  config.queue_pairs_max = 1;
  config.queue_entries_max = 128;
  config.lba_shift = options.lba_shift;
  controller_ = ssd::create_virtual_controller(memory_, config, media);
  nvme::DeviceOptions device_options;
  device_options.io_queues = 1;
  device_options.queue_depth = 128;
  device_options.admin_depth = 8;
  // Timeouts are findings, and longer than what a busy machine takes away.
  device_options.command_timeout_ns = 60'000'000'000;
  device_options.admin_timeout_ns = 60'000'000'000;
  device_ = nvme::create_device(memory_, controller_, device_options);

  sizes_.cache_pages = options.cache_pages;
  sizes_.pool_pages = 32;
  sizes_.descriptors = 8;
  sizes_.operations = 4;
  sizes_.dentry_entries = 128;
  sizes_.path_entries = 16;
  sizes_.batch_files = 160;
  sizes_.map_bytes = options.map_bytes;
  filesystem_ = std::make_unique<vfs::FilesystemMemory>(memory_, nvme::array_of(*device_), sizes_);
  walk_memory_ = std::make_unique<WalkMemory>(memory_, options.warp_width);
  fresh_ = memory_.read_object(filesystem_->filesystem());
  // The device comes up by one lane: nothing of the image is looked at.
  uint32_t failed = 0;
  const auto up = nvme::bring_up(simt::Warp(), fresh_.volume.array, failed);
  GOFS_ASSERT(up.step == nvme::BringUpStep::kDone);
}

FuzzVolume::~FuzzVolume() {
  (void)nvme::shut_down(simt::Warp(), *device_);
  walk_memory_.reset();
  filesystem_.reset();
  nvme::destroy_device(memory_, device_);
  ssd::destroy_virtual_controller(memory_, controller_);
}

/// Pages that nobody uses are forgotten.
void FuzzVolume::drop_pages() {
  const f2fs::PageCache& cache = fresh_.volume.cache;
  std::memset(static_cast<void*>(cache.sets), 0,
              (uint64_t{cache.set_mask} + 1) * sizeof(f2fs::FrameSet));
  std::memset(cache.dirty_maps, 0,
              uint64_t{f2fs::kPageKinds} * cache.map_words() * sizeof(uint32_t));
}

/// Makes everything as it was before the first mount, but for what lies in unused pages.
void FuzzVolume::reset(uint64_t device_bytes) {
  vfs::Filesystem& fs = *filesystem_->filesystem();
  fs = fresh_;
  drop_pages();
  std::memset(static_cast<void*>(fs.dentries.entries), 0,
              (uint64_t{fs.dentries.mask} + 1) * sizeof(vfs::DentryTable::Entry));
  std::memset(static_cast<void*>(fs.paths.entries), 0,
              (uint64_t{fs.paths.mask} + 1) * sizeof(vfs::PathTable::Entry));
  *fs.volume.corruptions = f2fs::CorruptionLog{};
  // What a finding has left behind is no finding again.
  std::memset(static_cast<void*>(fs.descriptors), 0, fs.descriptor_count * sizeof(vfs::Descriptor));
  const vfs::DescriptorNumbers& numbers = fs.descriptor_numbers;
  std::memset(numbers.taken, 0, numbers.words * sizeof(uint32_t));
  numbers.taken[numbers.words - 1] = vfs::numbers_beyond(fs.descriptor_count);
  for (uint32_t i = 0; i < fs.open_inode_set_count * vfs::kOpenInodeWays; ++i) {
    fs.open_inodes[i] = vfs::OpenInode{};
  }
  for (uint32_t i = 0; i < fs.range_rings->count; ++i) {
    fs.range_rings->ring(i + 1) = vfs::RangeRing{};
  }
  std::memset(fs.volume.maps.used, 0, fs.volume.maps.unit_count / 8);
  std::memset(fs.pool.locks, 0, fs.pool.count * sizeof(uint32_t));
  for (vfs::Batch& batch : fs.batches->batches) batch.taken = 0;
  // What a device has left in memory differs from image to image; answers must not.
  std::memset(fs.volume.scratch, 0xA5, 2 * kBlockBytes);
  std::memset(fs.volume.checkpoint_blocks, 0xA5, 4 * kBlockBytes);
  std::memset(fs.volume.cache.pages, 0xA5, uint64_t{fs.volume.cache.frame_count()} * kBlockBytes);
  const uint64_t lba_count = device_bytes >> options_.lba_shift;
  device_->lba_count = fs.volume.array.lba_count = lba_count;
  controller_.controller->lba_count = lba_count;
}

std::string FuzzVolume::find_leftovers() const {
  const vfs::Filesystem& fs = *filesystem_->filesystem();
  const f2fs::PageCache& cache = fs.volume.cache;
  for (uint32_t set = 0; set <= cache.set_mask; ++set) {
    if (cache.sets[set].lock != 0) return "a set of frames is locked";
    for (const uint32_t state : cache.sets[set].states) {
      if ((state & f2fs::kPinMask) != 0) return "a page is pinned";
      if ((state & f2fs::kFrameLoading) != 0) return "a frame is loading";
    }
  }
  for (uint32_t i = 0; i < fs.pool.count; ++i) {
    if (fs.pool.locks[i] != 0) return "a spare block was not given back";
  }
  for (uint32_t i = 0; i < fs.descriptor_count; ++i) {
    const uint32_t taken = fs.descriptor_numbers.taken[i / 32] >> i % 32 & 1u;
    if (fs.descriptors[i].state != vfs::kDescriptorClosed || taken != 0) {
      return "a descriptor is open";
    }
  }
  for (uint32_t i = 0; i < fs.open_inode_set_count * vfs::kOpenInodeWays; ++i) {
    const vfs::OpenInode& open = fs.open_inodes[i];
    if (open.ino != 0 || open.references != 0) return "an inode is open";
    if (open.lock.holder_counts != 0) return "a range is locked";
  }
  for (uint32_t i = 0; i < fs.operation_count; ++i) {
    if (fs.operations[i].taken != 0) return "an operation is under way";
  }
  for (uint32_t i = 0; i < fs.volume.maps.unit_count / 32; ++i) {
    if (fs.volume.maps.used[i] != 0) return "a block map is in use";
  }
  const uint64_t map_words = uint64_t{fs.volume.maps.unit_count} * f2fs::MapArena::kUnitWords;
  if (std::any_of(fs.volume.maps.words, fs.volume.maps.words + map_words,
                  [](uint32_t word) { return word != 0; })) {
    return "a block map was not cleared";
  }
  for (const vfs::Batch& batch : fs.batches->batches) {
    if (batch.taken != 0) return "a batch is open";
  }
  if (device_->failure != nvme::kWorking || device_->timeouts != 0) return "the device failed";
  return {};
}

Outcome FuzzVolume::run_on(const simt::Warp& warp, const OperationHook& hook) {
  Outcome outcome;
  vfs::Filesystem& fs = *filesystem_->filesystem();
  outcome.mount = f2fs::mount(warp, fs.volume);
  outcome.mounted = outcome.mount.error == 0;
  warp.sync();
  if (warp.thread_rank() == 0) errors_after_mount_ = controller_.controller->error_count;
  warp.sync();
  if (outcome.mounted) {
    outcome.walk = walk_volume(warp, fs, *walk_memory_, options_.limits, hook);
  }
  return outcome;
}

Outcome FuzzVolume::run(uint64_t device_bytes, uint16_t change_at,
                        const std::function<void()>& change) {
  reset(device_bytes);
  const uint64_t before = ssd::read_counters(memory_, controller_).read_commands;
  Outcome outcome;
  const auto go = [&](const simt::Warp& warp) {
    const OperationHook hook = [&](uint32_t operation) {
      if (operation != change_at) return;
      warp.sync();
      if (warp.thread_rank() == 0) {
        change();
        drop_pages();
      }
      warp.sync();
    };
    Outcome mine = run_on(warp, hook);
    if (warp.thread_rank() == 0) outcome = std::move(mine);
  };
  if (options_.warp_width == 1) {
    go(simt::Warp());
  } else {
    testing::run_teams(1, options_.warp_width, [&](const simt::Warp& warp, uint32_t) { go(warp); });
  }

  outcome.commands = ssd::read_counters(memory_, controller_).read_commands - before;
  outcome.wrong = outcome.walk.wrong;
  if (outcome.wrong.empty()) outcome.wrong = find_leftovers();
  if (outcome.wrong.empty() && outcome.mounted &&
      controller_.controller->error_count != errors_after_mount_) {
    outcome.wrong = "a command failed on a mounted volume";
  }
  if (outcome.wrong.empty() && outcome.commands > kCommandsMax) {
    outcome.wrong = std::to_string(outcome.commands) + " commands for one walk";
  }
  for (const int error : kForbidden) {
    if (outcome.wrong.empty() && outcome.walk.errors[static_cast<size_t>(error)] != 0) {
      outcome.wrong = std::string("an answer of ") + std::strerror(error);
    }
  }
  if (!outcome.mounted && outcome.mount.problem == f2fs::MountProblem::kNone) {
    outcome.wrong = "mounting failed without a name";
  }
  return outcome;
}

Outcome run_program(EditableImage& image, FuzzVolume& volume, const Program& program) {
  if (program.late == 0) image.apply(program);
  Outcome outcome = volume.run(image.device_bytes(), program.late, [&] { image.apply(program); });
  image.restore();
  return outcome;
}

}  // namespace gofs::fuzz
