// SPDX-License-Identifier: Apache-2.0
//
// F2FS volumes in memory: TestImage builds one with host/image and lets a test change its
// structures; VolumeRig puts it into a virtual SSD and mounts it. Several rigs may use one image,
// one after another or at once, as long as none writes.
#pragma once

#include <gtest/gtest.h>

#include <cstring>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "host/image/image_builder.h"
#include "host/image/image_target.h"
#include "testing/image_file.h"
#include "testing/ssd_rig.hpp"
#include "vfs/layout.h"

namespace gofs::testing {

/// The least that F2FS fits in.
inline constexpr uint64_t kSmallVolumeBytes = uint64_t{64} << 20;

class TestImage {
 public:
  using Fill = std::function<void(image::ImageBuilder& builder)>;

  explicit TestImage(const Fill& fill, uint32_t feature = 0,
                     uint64_t volume_bytes = kSmallVolumeBytes)
      : file_(volume_bytes) {
    image::VolumeOptions options;
    options.feature = feature;
    options.label = "test";
    options.seed = 1;
    options.time_s = 1'700'000'000;
    options.flush = false;
    std::unique_ptr<image::ImageTarget> target;
    must(image::open_fd_target(file_.fd(), volume_bytes, &target));
    std::unique_ptr<image::ImageBuilder> builder;
    must(image::ImageBuilder::create(*target, options, &builder));
    fill(*builder);
    must(builder->finish());
    geometry_ = format::geometry_of(superblock(0));
  }
  /// What mkfs or a copy makes of the zeros at `path`.
  explicit TestImage(const std::function<void(const std::string& path)>& make,
                     uint64_t volume_bytes = kSmallVolumeBytes)
      : file_(volume_bytes) {
    make(file_.path());
    geometry_ = format::geometry_of(superblock(0));
  }
  /// A copy. `other` is not written to meanwhile.
  explicit TestImage(const TestImage& other) = default;
  TestImage& operator=(const TestImage&) = delete;

  ImageFile& file() { return file_; }
  const ImageFile& file() const { return file_; }
  uint8_t* data() { return file_.data(); }
  uint64_t bytes() const { return file_.bytes(); }
  const format::Geometry& geometry() const { return geometry_; }
  /// For readers that share nothing with the library.
  std::unique_ptr<image::ImageTarget> target() {
    return image::make_memory_target(data(), bytes());
  }

  uint8_t* block(uint32_t index) { return data() + uint64_t{index} * kBlockBytes; }
  format::Superblock& superblock(uint32_t copy) {
    return *reinterpret_cast<format::Superblock*>(block(copy) + format::kSuperOffset);
  }
  /// After a change, where the volume has a sum there.
  void seal_superblock(uint32_t copy) {
    format::Superblock& super = superblock(copy);
    super.crc = format::crc32(format::kSuperMagic, &super, format::kSuperChecksumOffset);
  }
  format::Checkpoint& checkpoint(uint32_t pack) {
    return *reinterpret_cast<format::Checkpoint*>(block(geometry_.pack_block(pack)));
  }
  /// After a change: sums the head block and copies it to the pack's end.
  void seal_checkpoint(uint32_t pack) {
    uint8_t* const head = block(geometry_.pack_block(pack));
    format::store_u32(head + format::kCheckpointChecksumOffset,
                      format::checkpoint_checksum(head, format::kCheckpointChecksumOffset));
    const uint32_t total = checkpoint(pack).cp_pack_total_block_count;
    std::memcpy(block(geometry_.pack_block(pack) + total - 1), head, kBlockBytes);
  }
  /// In the copy of the NAT that a new volume uses.
  format::NatEntry& nat_entry(uint32_t nid) {
    const uint32_t where = geometry_.nat_block(nid / format::kNatEntriesPerBlock, false);
    return reinterpret_cast<format::NatBlock*>(block(where))
        ->entries[nid % format::kNatEntriesPerBlock];
  }
  format::NodeBlock& node(uint32_t nid) {
    return *reinterpret_cast<format::NodeBlock*>(block(nat_entry(nid).block_addr));
  }
  /// After a change of an inode, where the volume keeps sums of them.
  void seal_inode(uint32_t ino) {
    format::NodeBlock& inode = node(ino);
    format::extra_attr(inode.inode).i_inode_checksum =
        format::inode_checksum(format::inode_checksum_seed(superblock(0).uuid), inode);
  }

  static void must(const image::Status& status) {
    if (!status.ok()) ADD_FAILURE() << status.message;
  }

 private:
  ImageFile file_;
  format::Geometry geometry_{};
};

/// Small tables, so that what happens when they are full happens in tests.
inline vfs::FilesystemOptions small_tables() {
  vfs::FilesystemOptions options;
  options.time_granularity_ns = 1;
  options.cache_pages = 256;
  options.pool_pages = 64;
  options.bounce_bytes = 256 << 10;
  options.record_buffers = 2;
  options.record_bytes = 128 << 10;
  options.descriptors = 64;
  options.operations = 64;
  options.dentry_entries = 256;
  options.path_entries = 64;
  options.batch_files = 4096;
  options.map_bytes = 32 * 4096;  // of 1,024 small files
  return options;
}

struct VolumeRigOptions {
  ssd::VirtualSsdConfig ssd = SsdRigOptions().ssd;
  nvme::DeviceOptions device = SsdRigOptions().device;
  vfs::FilesystemOptions filesystem = small_tables();
};

/// Those of a rig whose SSD can be given a fault.
inline VolumeRigOptions with_a_fault() {
  VolumeRigOptions options;
  options.ssd.fault_capacity = 1;
  return options;
}

/// An image in an SSD, with a device and one or more mounted file systems on it.
class VolumeRig {
 public:
  explicit VolumeRig(TestImage& image, const VolumeRigOptions& options = {}) : options_(options) {
    ssd::Media media;
    media.base = image.data();
    media.bytes = image.bytes();
    controller_ = ssd::create_virtual_controller(arena_.space(), options.ssd, media);
    device_ = nvme::create_device(arena_.space(), controller_, options.device);
    const nvme::BringUpResult ready = nvme::bring_up(simt::Warp(), *device_);
    EXPECT_EQ(ready.step, nvme::BringUpStep::kDone) << nvme::step_name(ready.step);
    memory_ = make_memory(options.filesystem);
  }
  VolumeRig(const VolumeRig&) = delete;
  VolumeRig& operator=(const VolumeRig&) = delete;
  ~VolumeRig() {
    memory_.reset();
    nvme::destroy_device(arena_.space(), device_);
    ssd::destroy_virtual_controller(arena_.space(), controller_);
  }

  f2fs::MountResult mount(uint32_t width = 1) {
    f2fs::MountResult result{};
    run_alone(width, [&](const simt::Warp& warp) {
      const f2fs::MountResult mine = f2fs::mount(warp, volume());
      if (warp.thread_rank() == 0) result = mine;
    });
    return result;
  }
  void mount_ready(uint32_t width = 1) {
    const f2fs::MountResult result = mount(width);
    ASSERT_EQ(result.error, 0) << "problem " << static_cast<int>(result.problem) << ", value "
                               << result.value;
  }
  /// Drops what is in memory and lays out new tables, of other sizes or with other credentials.
  void reset(const vfs::FilesystemOptions& options) {
    memory_.reset();
    memory_ = make_memory(options);
  }

  vfs::Filesystem& fs() { return *memory_->filesystem(); }
  f2fs::Volume& volume() { return fs().volume; }
  nvme::Device& device() { return *device_; }
  TestArena& arena() { return arena_; }
  ssd::ControllerRef controller() const { return controller_; }
  void add_fault(const ssd::FaultRule& rule) { ssd::add_fault(arena_.space(), controller_, rule); }
  /// A fault of reads that touch `block`.
  static ssd::FaultRule reads_of_block(uint32_t block, uint32_t lba_shift,
                                       ssd::FaultAction action) {
    const uint32_t shift = kBlockShift - lba_shift;
    ssd::FaultRule rule;
    rule.opcode_mask = 1u << static_cast<uint32_t>(format::nvme::IoOpcode::kRead);
    rule.lba_first = uint64_t{block} << shift;
    rule.lba_last = rule.lba_first + (1u << shift) - 1;
    rule.action = action;
    rule.status = format::nvme::kUnrecoveredReadError;
    return rule;
  }
  void clear_faults() { ssd::clear_faults(arena_.space(), controller_); }
  ssd::VirtualSsdCounters counters() { return ssd::read_counters(arena_.space(), controller_); }

 private:
  std::unique_ptr<vfs::FilesystemMemory> make_memory(const vfs::FilesystemOptions& options) {
    return std::make_unique<vfs::FilesystemMemory>(arena_.space(), nvme::array_of(*device_),
                                                   options);
  }

  const VolumeRigOptions options_;
  TestArena arena_;
  ssd::ControllerRef controller_{};
  nvme::Device* device_ = nullptr;
  std::unique_ptr<vfs::FilesystemMemory> memory_;
};

}  // namespace gofs::testing
