// SPDX-License-Identifier: Apache-2.0
//
// Reads and writes that are started and waited for.
#include "device/attached.cuh"
#include "vfs/async.h"
#include "vfs/async_write.h"

namespace gofs::device_library {

template <typename Scope>
__device__ Ticket pread_async(Scope scope, VolumeHandle vol, int fd, void* buffer, uint64_t bytes,
                              uint64_t offset) {
  GOFS_IF_ATTACHED(pread_async(scope, *channel, fd, buffer, bytes, offset));
  vfs::Filesystem& fs = *vol;
  const auto caller = in(scope);
  if (bytes != 0 && !simt::is_common_target(buffer)) return refused_ticket();
  const auto warp = caller.async_warp();
  const Ticket ticket = vfs::pread_async(warp, fs, fd, buffer, bytes, offset);
  if (warp.thread_rank() == 0) vfs::count_transfer(fs, CallKind::kRead, ticket.result);
  return ticket;
}

template <typename Scope>
__device__ Ticket pwrite_async(Scope scope, VolumeHandle vol, int fd, const void* buffer,
                               uint64_t bytes, uint64_t offset) {
  GOFS_IF_ATTACHED(pwrite_async(scope, *channel, fd, buffer, bytes, offset));
  vfs::Filesystem& fs = *vol;
  const auto caller = in(scope);
  if (bytes != 0 && !simt::is_common_source(buffer)) return refused_ticket();
  const auto warp = caller.async_warp();
  const Ticket ticket = vfs::pwrite_async(warp, fs, fd, buffer, bytes, offset);
  if (warp.thread_rank() == 0) vfs::count_transfer(fs, CallKind::kWrite, ticket.result);
  return ticket;
}

template <typename Scope>
__device__ bool poll(Scope scope, VolumeHandle vol, const Ticket& ticket) {
  GOFS_IF_ATTACHED(poll(scope, *channel, ticket));
  vfs::Filesystem& fs = *vol;
  return vfs::poll(in(scope).async_warp(), fs, ticket);
}

template <typename Scope>
__device__ int64_t wait(Scope scope, VolumeHandle vol, const Ticket& ticket) {
  GOFS_IF_ATTACHED(wait(scope, *channel, ticket));
  vfs::Filesystem& fs = *vol;
  return vfs::wait(in(scope).async_warp(), fs, ticket);
}

GOFS_BY_ONE_WARP(Ticket, pread_async, int, void*, uint64_t, uint64_t);
GOFS_BY_ONE_WARP(Ticket, pwrite_async, int, const void*, uint64_t, uint64_t);
GOFS_BY_ONE_WARP(bool, poll, const Ticket&);
GOFS_BY_ONE_WARP(int64_t, wait, const Ticket&);

}  // namespace gofs::device_library
