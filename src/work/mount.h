// SPDX-License-Identifier: Apache-2.0
//
// Bringing a file system up (the device, then the volume on it) and down. By one warp.
#pragma once

#include "nvme/bring_up.h"
#include "nvme/shut_down.h"
#include "vfs/filesystem.h"

namespace gofs::work {

struct MountParams {
  vfs::Filesystem* fs;
  bool device_only;  // raw commands, no volume
  nvme::BringUpResult device;
  f2fs::MountResult volume;
};

GOFS_HD inline void mount_body(simt::AnyWarp auto warp, uint32_t warp_index, uint32_t,
                               MountParams& params) {
  if (warp_index != 0) return;
  f2fs::Volume& volume = params.fs->volume;
  const nvme::BringUpResult device = nvme::bring_up(warp, *volume.device, volume.scratch);
  f2fs::MountResult mounted{};
  if (device.step == nvme::BringUpStep::kDone && !params.device_only) {
    mounted = f2fs::mount(warp, volume);
  }
  if (warp.thread_rank() == 0) {
    params.device = device;
    params.volume = mounted;
  }
}

struct UnmountParams {
  vfs::Filesystem* fs;
  int result;  // 0, or a negative errno: the controller did not finish its shutdown
};

/// Afterwards the device touches no memory any more. Nobody else uses the file system.
GOFS_HD inline void unmount_body(simt::AnyWarp auto warp, uint32_t warp_index, uint32_t,
                                 UnmountParams& params) {
  if (warp_index != 0) return;
  const int result = nvme::shut_down(warp, *params.fs->volume.device);
  if (warp.thread_rank() == 0) params.result = result;
}

}  // namespace gofs::work
