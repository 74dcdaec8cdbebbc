// SPDX-License-Identifier: Apache-2.0
//
// A read that the warps of a block or of a grid share (simt/warp_group.h): one of them takes the
// range lock, all of them read their rounds of it (read.h), and all give the same answer.
#pragma once

#include "vfs/read.h"

namespace gofs::vfs {

namespace detail {

/// The failures of several warps in one word of which the least one counts: the offset above, the
/// errno below.
inline constexpr uint64_t kNoFailure = ~uint64_t{0};
inline constexpr uint32_t kErrnoBits = 12;

GOFS_HD inline uint64_t pack_failure(const IoFailure& failure) {
  return failure.at << kErrnoBits | static_cast<uint32_t>(-failure.error);
}
GOFS_HD inline IoFailure unpack_failure(uint64_t packed) {
  if (packed == kNoFailure) return {kOffsetMax, 0};
  return {packed >> kErrnoBits, -static_cast<int>(packed & ((1u << kErrnoBits) - 1))};
}

/// The part of one warp alone, before the others begin. Collective, uniform.
GOFS_HD inline void begin_together(simt::AnyWarp auto warp, Filesystem& fs, SharedRead& shared,
                                   int fd, uint64_t bytes, uint64_t offset) {
  SharedRead begun{0, bytes, nullptr, {}, kNoFailure};
  begun.error = begin_read(warp, fs, fd, offset, begun.bytes, begun.open);
  begun.bytes = warp.shfl(begun.bytes, 0);  // the file may be growing
  if (begun.error == 0 && begun.bytes == 0) begun.open = nullptr;
  if (begun.error == 0 && begun.bytes != 0) {
    const simt::Deadline deadline = simt::Deadline::after_ns(fs.lock_timeout_ns);
    begun.error = lock_shared(warp, begun.open->lock, {offset, begun.bytes}, deadline, begun.hold);
    if (begun.error == 0) begun.bytes = bytes_before_end(*begun.open, offset, begun.bytes);
  }
  if (warp.thread_rank() == 0) shared = begun;
}

}  // namespace detail

/// pread by all warps of `group`, with the same arguments, where all of them have come and use
/// `shared` for nothing else. The result of pread, the same everywhere; what was read is visible to
/// the whole group.
template <typename WarpGroup>
GOFS_HD int64_t pread_by_all(const WarpGroup& group, Filesystem& fs, SharedRead& shared, int fd,
                             void* buffer, uint64_t bytes, uint64_t offset) {
  const auto warp = group.warp();
  if (group.index() == 0) detail::begin_together(warp, fs, shared, fd, bytes, offset);
  group.sync();
  if (shared.error < 0 || shared.open == nullptr) return shared.error;  // or nothing to read
  if (group.index() < group.count()) {
    const IoFailure failed =
        read_striped(warp, fs, shared.open->inode, static_cast<uint8_t*>(buffer), shared.bytes,
                     offset, group.index(), group.count());
    if (failed.error != 0 && warp.thread_rank() == 0) {
      simt::AtomicRef<uint64_t>(shared.failure)
          .fetch_min(detail::pack_failure(failed), simt::memory_order_relaxed);
    }
  }
  group.sync();
  const IoFailure first = detail::unpack_failure(simt::load_relaxed(shared.failure));
  if (group.index() == 0) unlock_shared(warp, shared.open->lock, shared.hold);
  return io_outcome(shared.bytes, first);
}

/// The same by a group that comes together first.
template <typename WarpGroup>
GOFS_HD int64_t pread_together(const WarpGroup& group, Filesystem& fs, SharedRead& shared, int fd,
                               void* buffer, uint64_t bytes, uint64_t offset) {
  group.sync();  // all have taken the outcome of a former read
  return pread_by_all(group, fs, shared, fd, buffer, bytes, offset);
}

}  // namespace gofs::vfs
