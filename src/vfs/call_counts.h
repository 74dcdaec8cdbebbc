// SPDX-License-Identifier: Apache-2.0
//
// How many calls were made, and how they ended. They are counted where they come in: those of
// kernels in device/, those of host programs in request/perform.h and kernels/.
#pragma once

#include "vfs/filesystem.h"

namespace gofs::vfs {

namespace detail {

GOFS_HD inline CallCounts& own_calls(Filesystem& fs) { return simt::own_counts(fs.call_counts); }

/// One lane.
GOFS_HD inline void count_calls(CallCounts& counts, CallKind kind, uint32_t succeeded,
                                uint32_t failed) {
  OutcomeCounts& calls = counts.calls[static_cast<uint32_t>(kind)];
  if (succeeded != 0) simt::count_relaxed(calls.succeeded, succeeded);
  if (failed != 0) simt::count_relaxed(calls.failed, failed);
}
GOFS_HD inline void count_bytes(CallCounts& counts, CallKind kind, uint64_t bytes) {
  if (bytes == 0) return;
  simt::count_relaxed(kind == CallKind::kRead ? counts.bytes_read : counts.bytes_written, bytes);
}

}  // namespace detail

/// A call that has ended with `result`: a negative errno, or success. One lane.
GOFS_HD inline void count_call(Filesystem& fs, CallKind kind, int64_t result) {
  detail::count_calls(detail::own_calls(fs), kind, result < 0 ? 0 : 1, result < 0 ? 1 : 0);
}

/// One that reads or writes, and `result` is in bytes. One lane.
GOFS_HD inline void count_transfer(Filesystem& fs, CallKind kind, int64_t result) {
  count_call(fs, kind, result);
  if (result > 0) detail::count_bytes(detail::own_calls(fs), kind, static_cast<uint64_t>(result));
}

/// One such call of each of `lanes`; the result of the others is 0. Collective.
GOFS_HD inline void count_transfers(simt::AnyWarp auto warp, Filesystem& fs, CallKind kind,
                                    uint32_t lanes, int64_t result) {
  const uint32_t failed = warp.ballot(result < 0);
  const uint64_t mine = result > 0 ? static_cast<uint64_t>(result) : 0;
  // Mostly all are of one size.
  const bool alike = warp.all(mine == warp.shfl(mine, 0));
  const uint64_t bytes = alike ? mine * warp.size() : simt::reduce_add(warp, mine);
  if (warp.thread_rank() != 0) return;
  CallCounts& counts = detail::own_calls(fs);
  detail::count_calls(counts, kind, simt::popcount(lanes & ~failed), simt::popcount(failed));
  detail::count_bytes(counts, kind, bytes);
}

/// Part of a call that many warps share: its bytes, and the call once, by the warp that `leads`.
/// Collective, uniform.
GOFS_HD inline void count_share(simt::AnyWarp auto warp, Filesystem& fs, CallKind kind,
                                uint64_t bytes, bool leads) {
  if (warp.thread_rank() != 0) return;
  CallCounts& counts = detail::own_calls(fs);
  if (leads) detail::count_calls(counts, kind, 1, 0);
  detail::count_bytes(counts, kind, bytes);
}

}  // namespace gofs::vfs
