// SPDX-License-Identifier: Apache-2.0
//
// Bringing a file system up (the device, the volume on it, and what writing needs) and down. By one
// warp, but for what there is much of.
#pragma once

#include "f2fs/begin_writing.h"
#include "f2fs/recover_files.h"
#include "f2fs/recover_orphans.h"
#include "kernels/help.h"

namespace gofs::kernels {

struct MountParams {
  vfs::Filesystem* fs;
  bool device_only;  // raw commands, no volume
  nvme::BringUpResult device;
  uint32_t failed_device;  // which one did not come up
  f2fs::MountResult volume;
};

GOFS_HD inline void mount_body(simt::AnyWarp auto warp, uint32_t warp_index, uint32_t,
                               MountParams& params) {
  if (warp_index != 0) return;
  f2fs::Volume& volume = params.fs->volume;
  uint32_t failed = 0;
  const nvme::BringUpResult device = nvme::bring_up(warp, volume.array, failed);
  f2fs::MountResult mounted{};
  if (device.step == nvme::BringUpStep::kDone && !params.device_only) {
    mounted = f2fs::mount(warp, volume);
  }
  if (warp.thread_rank() == 0) {
    params.device = device;
    params.failed_device = failed;
    params.volume = mounted;
  }
}

struct BeginWritingParams {
  vfs::Filesystem* fs;  // mounted; `writer` is set if this succeeds
  f2fs::Writer* writer;
  int read;  // 0 or a negative errno, of read_segments_body()
  f2fs::WriteResult result;
  int64_t recovered;  // nodes that fsync had written after the last checkpoint
};

/// The first step, by all warps that there are.
GOFS_HD inline void read_segments_body(simt::AnyWarp auto warp, uint32_t warp_index,
                                       uint32_t warp_count, BeginWritingParams& params) {
  const int error =
      f2fs::read_segments(warp, params.fs->volume, *params.writer, warp_index, warp_count);
  if (error < 0 && warp.thread_rank() == 0) simt::store_relaxed(params.read, error);
}

GOFS_HD inline void begin_writing_body(simt::AnyWarp auto warp, uint32_t warp_index, uint32_t,
                                       BeginWritingParams& params) {
  if (warp_index != 0) return;
  vfs::Filesystem& fs = *params.fs;
  f2fs::WriteResult result = f2fs::begin_writing(warp, fs.volume, *params.writer, params.read);
  int64_t recovered = 0;
  if (result.error == 0) {
    recovered = f2fs::recover_files(warp, fs.volume, *params.writer);
    if (recovered < 0) result = {f2fs::WriteProblem::kFsyncLog, static_cast<int>(recovered), 0};
  }
  if (result.error == 0) {
    const int error = f2fs::recover_orphans(warp, fs.volume, *params.writer, fs.pool);
    const uint32_t left = warp.shfl(simt::load_relaxed(params.writer->orphans.count), 0);
    if (error < 0) result = {f2fs::WriteProblem::kRecovery, error, left};
  }
  if (result.error == 0) f2fs::withhold(warp, fs.volume, *params.writer);
  if (warp.thread_rank() == 0) {
    if (result.error == 0) fs.writer = params.writer;
    params.result = result;
    params.recovered = recovered;
  }
}

struct UnmountParams {
  vfs::Filesystem* fs;
  uint32_t ended;  // not 0: the checkpoint is made
  int written;     // 0, or a negative errno: what was done since the last checkpoint is not on the
                   // disk
  int result;      // 0, or a negative errno: the controller did not finish its shutdown
};

/// Afterwards the device touches no memory any more. Nothing else uses the file system. By one
/// warp; others help it.
GOFS_HD inline void unmount_body(simt::AnyWarp auto warp, uint32_t warp_index, uint32_t,
                                 UnmountParams& params) {
  vfs::Filesystem& fs = *params.fs;
  if (warp_index != 0) {
    if (fs.writer != nullptr) help_until(warp, fs, params.ended);
    return;
  }
  const int written =
      fs.writer == nullptr ? 0 : f2fs::sync_volume(warp, fs.volume, *fs.writer, true);
  if (warp.thread_rank() == 0) simt::store_relaxed(params.ended, 1u);
  const int result = nvme::shut_down(warp, fs.volume.array);
  if (warp.thread_rank() == 0) {
    params.written = written;
    params.result = result;
  }
}

}  // namespace gofs::kernels
