// SPDX-License-Identifier: Apache-2.0
//
// Batches of files on behalf of a host program, a launch a step (see vfs/batch.h).
#pragma once

#include "vfs/batch_create.h"
#include "vfs/batch_list.h"
#include "vfs/call_counts.h"

namespace gofs::kernels {

enum class BatchStep : uint32_t {
  kBegin,  // path, count -> result: descriptor
  kSurvey,
  kList,  // -> result: files
  kFind,  // names
  kLoad,
  kRead,   // buffer, offsets -> bytes
  kWrite,  // buffer, offsets, sizes -> bytes
  kEnd,
  // Makes the files as a batch and closes it: path, names, count, permissions, buffer, offsets,
  // sizes -> result: 0 or a negative errno; and errors.
  kCreate,
};

struct BatchParams {
  vfs::Filesystem* fs;
  BatchStep step;
  int descriptor;
  uint32_t count;
  const char* path;
  const char* const* names;
  uint8_t* buffer;
  const uint64_t* offsets;
  const uint64_t* sizes;  // of what is written to each file
  uint32_t permissions;
  int* errors;          // of each file
  simt::Barrier point;  // of the warps of kCreate
  int64_t result;
  uint64_t bytes;     // kRead and kWrite add to it
  uint64_t first_ns;  // as in BenchResults
  uint64_t last_ns;
};

GOFS_HD inline vfs::BatchCreation creation_of(const BatchParams& params) {
  return {params.path,   params.names,   params.count, params.permissions,
          params.buffer, params.offsets, params.sizes};
}

/// kCreate, by all warps of a cooperative launch: one launch, since the directory is locked
/// meanwhile, and another launch that wants it might keep ours from being the next.
GOFS_HD inline void create_step(simt::AnyWarp auto warp, uint32_t warp_index, uint32_t warp_count,
                                BatchParams& params) {
  vfs::Filesystem& fs = *params.fs;
  vfs::BatchTable& table = *fs.batches;
  const simt::GridGroup group(warp, warp_index, warp_count, params.point);
  if (warp_index == 0) {
    const int bd = vfs::begin_creation(warp, fs, creation_of(params));
    if (warp.thread_rank() == 0) {
      params.descriptor = bd;
      vfs::count_call(fs, CallKind::kName, bd);
    }
  }
  group.sync();
  const int bd = params.descriptor;
  if (bd < 0) {
    if (warp_index == 0 && warp.thread_rank() == 0) params.result = bd;
    return;
  }
  vfs::Batch& batch = table.batches[bd];
  vfs::prepare_creation(warp, fs, batch, warp_index, warp_count);
  group.sync();
  vfs::create_batch(warp, fs, batch, creation_of(params), warp_index, warp_count);
  group.sync();
  for (uint32_t i = warp_index * warp.size() + warp.thread_rank(); i < params.count;
       i += warp_count * warp.size()) {
    params.errors[i] = table.files[batch.first + i].error;
  }
  group.sync();
  if (warp_index != 0) return;
  vfs::end_creation(warp, fs, batch);
  const int ended = vfs::end_batch(warp, table, bd);
  if (warp.thread_rank() == 0) params.result = ended;
}

/// kBegin and kEnd by one warp; the others by as many as there are, kSurvey and kList by the same
/// number, kCreate as create_step() says.
GOFS_HD inline void batch_body(simt::AnyWarp auto warp, uint32_t warp_index, uint32_t warp_count,
                               BatchParams& params) {
  vfs::Filesystem& fs = *params.fs;
  vfs::BatchTable& table = *fs.batches;
  const bool leader = warp.thread_rank() == 0;
  if (leader) {
    simt::AtomicRef<uint64_t>(params.first_ns)
        .fetch_min(simt::now_ns(), simt::memory_order_relaxed);
  }
  if (params.step == BatchStep::kCreate) {
    create_step(warp, warp_index, warp_count, params);
    if (leader) {
      simt::AtomicRef<uint64_t>(params.last_ns)
          .fetch_max(simt::now_ns(), simt::memory_order_relaxed);
    }
    return;
  }
  if (params.step == BatchStep::kBegin) {
    if (warp_index != 0) return;
    const int bd = vfs::begin_batch(warp, fs, table, params.path, params.count);
    if (leader) {
      params.result = bd;
      vfs::count_call(fs, CallKind::kOpen, bd);
    }
    return;
  }
  vfs::Batch* batch = vfs::find_batch_descriptor(table, params.descriptor, vfs::client_of(warp));
  if (batch == nullptr) {
    if (leader) simt::store_relaxed(params.result, int64_t{-EBADF});
    return;
  }
  switch (params.step) {
    case BatchStep::kSurvey:
      vfs::survey_batch(warp, fs, table, *batch, warp_index, warp_count);
      break;
    case BatchStep::kList: {
      const int error = vfs::list_batch(warp, fs, table, *batch, warp_index, warp_count);
      if (leader && warp_index == 0) {
        params.result = error < 0 ? error : static_cast<int64_t>(batch->count);
      }
      break;
    }
    case BatchStep::kFind:
      vfs::find_batch(warp, fs, table, *batch, params.names, warp_index, warp_count);
      break;
    case BatchStep::kLoad:
      vfs::load_batch(warp, fs, table, *batch, warp_index, warp_count);
      break;
    case BatchStep::kRead: {
      const uint64_t bytes = vfs::read_batch(warp, fs, table, *batch, params.buffer, params.offsets,
                                             warp_index, warp_count);
      if (leader) simt::add_relaxed(params.bytes, bytes);
      vfs::count_share(warp, fs, CallKind::kRead, bytes, warp_index == 0);
      break;
    }
    case BatchStep::kWrite: {
      const uint64_t bytes = vfs::write_batch(warp, fs, table, *batch, params.buffer,
                                              params.offsets, params.sizes, warp_index, warp_count);
      if (leader) simt::add_relaxed(params.bytes, bytes);
      vfs::count_share(warp, fs, CallKind::kWrite, bytes, warp_index == 0);
      break;
    }
    case BatchStep::kEnd: {
      if (warp_index != 0) return;
      const int error = vfs::end_batch(warp, table, params.descriptor);
      if (leader) {
        params.result = error;
        vfs::count_call(fs, CallKind::kClose, error);
      }
      break;
    }
    case BatchStep::kBegin:
    case BatchStep::kCreate:
      break;
  }
  warp.sync();
  if (leader) {
    simt::AtomicRef<uint64_t>(params.last_ns).fetch_max(simt::now_ns(), simt::memory_order_relaxed);
  }
}

}  // namespace gofs::kernels
