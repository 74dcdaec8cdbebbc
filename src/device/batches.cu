// SPDX-License-Identifier: Apache-2.0
//
// Many files of a directory at once.
#include "device/attached.cuh"
#include "vfs/batch_create.h"
#include "vfs/batch_list.h"
#include "vfs/batch_write.h"

namespace gofs::device_library {

template <typename Scope>
__device__ int batch_open(Scope scope, VolumeHandle vol, const char* path, const char* const* names,
                          uint32_t count) {
  GOFS_IF_ATTACHED(batch_open(scope, *channel, path, names, count));
  vfs::Filesystem& fs = *vol;
  const auto caller = in(scope);
  if (!may_read(path)) return -EFAULT;
  if (names != nullptr && !may_read_all(names, count)) return -EFAULT;
  vfs::BatchTable& table = *fs.batches;
  const auto bd = static_cast<int>(caller.once(fs, [&](simt::AnyWarp auto warp) -> int64_t {
    const int begun = vfs::begin_batch(warp, fs, table, path, count);
    if (warp.thread_rank() == 0) vfs::count_call(fs, CallKind::kOpen, begun);
    return begun;
  }));
  if (bd < 0) return bd;
  vfs::Batch& batch = table.batches[bd];
  if (names == nullptr) {
    caller.share(fs, [&](simt::AnyWarp auto warp, uint32_t index, uint32_t warps) -> int64_t {
      vfs::survey_batch(warp, fs, table, batch, index, warps);
      return 0;
    });
    caller.share(fs, [&](simt::AnyWarp auto warp, uint32_t index, uint32_t warps) -> int64_t {
      vfs::list_batch(warp, fs, table, batch, index, warps);
      return 0;
    });
    // The next call begins with a barrier: all have read the error before the batch is closed.
    const int listed = batch.error;
    if (listed < 0) {
      caller.once(
          fs, [&](simt::AnyWarp auto warp) -> int64_t { return vfs::end_batch(warp, table, bd); });
      return listed;
    }
  } else {
    caller.share(fs, [&](simt::AnyWarp auto warp, uint32_t index, uint32_t warps) -> int64_t {
      vfs::find_batch(warp, fs, table, batch, names, index, warps);
      return 0;
    });
  }
  caller.share(fs, [&](simt::AnyWarp auto warp, uint32_t index, uint32_t warps) -> int64_t {
    vfs::load_batch(warp, fs, table, batch, index, warps);
    return 0;
  });
  return bd;
}

template <typename Scope>
__device__ int64_t batch_read(Scope scope, VolumeHandle vol, int bd, void* buffer,
                              const uint64_t* offsets) {
  GOFS_IF_ATTACHED(batch_read(scope, *channel, bd, buffer, offsets));
  vfs::Filesystem& fs = *vol;
  vfs::BatchTable& table = *fs.batches;
  vfs::Batch* batch = vfs::find_batch_descriptor(table, bd);
  if (batch == nullptr) return -EBADF;
  const bool reachable = simt::is_common_target(buffer) && may_read_all(offsets, batch->count);
  if (batch->count != 0 && !reachable) return -EFAULT;
  return in(scope).share(
      fs, [&](simt::AnyWarp auto warp, uint32_t index, uint32_t warps) -> int64_t {
        const uint64_t bytes = vfs::read_batch(
            warp, fs, table, *batch, static_cast<uint8_t*>(buffer), offsets, index, warps);
        vfs::count_share(warp, fs, CallKind::kRead, bytes, index == 0);
        return static_cast<int64_t>(bytes);
      });
}

template <typename Scope>
__device__ int batch_create(Scope scope, VolumeHandle vol, const char* path,
                            const char* const* names, uint32_t count, uint32_t mode,
                            const void* buffer, const uint64_t* offsets, const uint64_t* bytes) {
  GOFS_IF_ATTACHED(batch_create(scope, *channel, path, names, count, mode, buffer, offsets, bytes));
  vfs::Filesystem& fs = *vol;
  const auto caller = in(scope);
  if (!may_read(path) || !may_read_all(names, count)) return -EFAULT;
  const bool filled = count != 0 && buffer != nullptr;
  if (filled && !(simt::is_common_source(buffer) && may_read_all(offsets, count) &&
                  may_read_all(bytes, count))) {
    return -EFAULT;
  }
  const int64_t hidden =
      caller.share(fs, [&](simt::AnyWarp auto warp, uint32_t index, uint32_t warps) -> int64_t {
        return vfs::detail::count_hidden_names(warp, names, count, index, warps);
      });
  if (hidden != 0) return hidden < 0 ? static_cast<int>(hidden) : -EFAULT;
  const vfs::BatchCreation creation{
      path, names, count, mode, static_cast<const uint8_t*>(buffer), offsets, bytes};
  const auto bd = static_cast<int>(caller.once(fs, [&](simt::AnyWarp auto warp) -> int64_t {
    const int begun = vfs::begin_creation(warp, fs, creation);
    if (warp.thread_rank() == 0) vfs::count_call(fs, CallKind::kName, begun);
    return begun;
  }));
  if (bd < 0) return bd;
  vfs::Batch& batch = fs.batches->batches[bd];
  caller.share(fs, [&](simt::AnyWarp auto warp, uint32_t index, uint32_t warps) -> int64_t {
    vfs::prepare_creation(warp, fs, batch, index, warps);
    return 0;
  });
  caller.share(fs, [&](simt::AnyWarp auto warp, uint32_t index, uint32_t warps) -> int64_t {
    vfs::create_batch(warp, fs, batch, creation, index, warps);
    return 0;
  });
  caller.once(fs, [&](simt::AnyWarp auto warp) -> int64_t {
    vfs::end_creation(warp, fs, batch);
    return 0;
  });
  return bd;
}

template <typename Scope>
__device__ int64_t batch_write(Scope scope, VolumeHandle vol, int bd, const void* buffer,
                               const uint64_t* offsets, const uint64_t* bytes) {
  GOFS_IF_ATTACHED(batch_write(scope, *channel, bd, buffer, offsets, bytes));
  vfs::Filesystem& fs = *vol;
  vfs::BatchTable& table = *fs.batches;
  vfs::Batch* batch = vfs::find_batch_descriptor(table, bd);
  if (batch == nullptr) return -EBADF;
  const bool reachable = simt::is_common_source(buffer) && may_read_all(offsets, batch->count) &&
                         may_read_all(bytes, batch->count);
  if (batch->count != 0 && !reachable) return -EFAULT;
  return in(scope).share(
      fs, [&](simt::AnyWarp auto warp, uint32_t index, uint32_t warps) -> int64_t {
        const uint64_t written =
            vfs::write_batch(warp, fs, table, *batch, static_cast<const uint8_t*>(buffer), offsets,
                             bytes, index, warps);
        vfs::count_share(warp, fs, CallKind::kWrite, written, index == 0);
        return static_cast<int64_t>(written);
      });
}

template <typename Scope>
__device__ int batch_close(Scope scope, VolumeHandle vol, int bd) {
  GOFS_IF_ATTACHED(batch_close(scope, *channel, bd));
  vfs::Filesystem& fs = *vol;
  return static_cast<int>(counted(
      CallKind::kClose, scope, fs,
      [&](simt::AnyWarp auto warp) -> int64_t { return vfs::end_batch(warp, *fs.batches, bd); }));
}

__device__ int64_t batch_count(VolumeHandle vol, int bd) {
  GOFS_IF_ATTACHED(batch_count(*channel, bd));
  const vfs::Filesystem& fs = *vol;
  const vfs::Batch* const batch = vfs::find_batch_descriptor(*fs.batches, bd);
  return batch == nullptr ? -EBADF : static_cast<int64_t>(batch->count);
}

__device__ BatchFile batch_file(VolumeHandle vol, int bd, uint32_t index) {
  GOFS_IF_ATTACHED(batch_file(*channel, bd, index));
  const vfs::Filesystem& fs = *vol;
  const vfs::BatchTable& table = *fs.batches;
  return vfs::file_of(table.files[table.batches[bd].first + index]);
}

GOFS_IN_EVERY_SCOPE(int, batch_open, const char*, const char* const*, uint32_t);
GOFS_IN_EVERY_SCOPE(int64_t, batch_read, int, void*, const uint64_t*);
GOFS_IN_EVERY_SCOPE(int, batch_create, const char*, const char* const*, uint32_t, uint32_t,
                    const void*, const uint64_t*, const uint64_t*);
GOFS_IN_EVERY_SCOPE(int64_t, batch_write, int, const void*, const uint64_t*, const uint64_t*);
GOFS_IN_EVERY_SCOPE(int, batch_close, int);

}  // namespace gofs::device_library
