// SPDX-License-Identifier: Apache-2.0
//
// An SSD, its driver and a file system's memory, set up once and used for one image after another:
// mounting and walking an image then costs what its commands cost. After each walk everything that
// was taken must have been given back, and the SSD must never have been asked for what it has not.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "edit.h"
#include "simt/host_memory.h"
#include "ssd/virtual_ssd.h"
#include "vfs/layout.h"
#include "volume_walker.h"

namespace gofs::fuzz {

struct Outcome {
  f2fs::MountResult mount{};
  bool mounted = false;
  WalkReport walk;
  uint64_t commands = 0;  // that the SSD was given
  std::string wrong;      // a promise that was broken; else empty
};

struct FuzzVolumeOptions {
  uint32_t warp_width = 1;  // more: a team of so many lanes
  uint32_t cache_pages = 64;
  uint32_t lba_shift = 9;
  uint64_t map_bytes = kBlockBytes;  // a few files' worth: some get none
  WalkLimits limits{};
};

class FuzzVolume {
 public:
  /// `image` outlives this object; its bytes may change between calls.
  FuzzVolume(uint8_t* image, uint64_t bytes, const FuzzVolumeOptions& options);
  ~FuzzVolume();
  FuzzVolume(const FuzzVolume&) = delete;
  FuzzVolume& operator=(const FuzzVolume&) = delete;

  /// Mounts what the image holds now, on a device of `device_bytes`, and walks it. `change` is
  /// called before the operation number `change_at` of the walk, if that is not 0; the reader's
  /// cached pages are dropped then, so that it reads again what it has read before.
  Outcome run(uint64_t device_bytes, uint16_t change_at, const std::function<void()>& change);

  /// What was mounted last, for a closer look.
  vfs::Filesystem& filesystem() { return *filesystem_->filesystem(); }

 private:
  void reset(uint64_t device_bytes);
  void drop_pages();
  Outcome run_on(const simt::Warp& warp, const OperationHook& hook);
  std::string find_leftovers() const;

  const FuzzVolumeOptions options_;
  simt::HostMemorySpace memory_;
  ssd::ControllerRef controller_{};
  nvme::Device* device_ = nullptr;
  std::unique_ptr<vfs::FilesystemMemory> filesystem_;
  std::unique_ptr<WalkMemory> walk_memory_;
  vfs::Filesystem fresh_{};  // as it was before the first mount
  vfs::FilesystemOptions sizes_{};
  uint64_t errors_after_mount_ = 0;
};

/// Applies `program` to `image`, mounts, walks and takes the program back.
Outcome run_program(EditableImage& image, FuzzVolume& volume, const Program& program);

}  // namespace gofs::fuzz
