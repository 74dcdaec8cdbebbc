// SPDX-License-Identifier: Apache-2.0
//
// Writing all that has changed, for a checkpoint, by whoever is there: the warp that makes it hands
// out portions of the page cache, and warps that wait for the checkpoint lock take some, as do
// those that were sent to help. Directories come first, since writing them changes nodes. All
// portions of one kind are done before the first of the next is handed out.
#pragma once

#include "f2fs/write_directories.h"

namespace gofs::f2fs {

namespace detail {

/// Words of a map of dirty pages that are one portion: of 1,024 frames, a third of them dirty at
/// most.
inline constexpr uint32_t kWordsPerPortion = 32;

GOFS_HD inline uint32_t portions_of(const PageCache& cache) {
  return (cache.map_words() + kWordsPerPortion - 1) / kWordsPerPortion;
}

GOFS_HD constexpr PageKind kind_of_task(uint64_t task) {
  return static_cast<PageKind>(task >> 32 & 0xff);
}
GOFS_HD constexpr uint32_t portion_of_task(uint64_t task) { return static_cast<uint32_t>(task); }

/// Takes a portion of what is handed out: true, with its `kind` and number, or false, there is
/// none. Collective, uniform.
GOFS_HD inline bool take_portion(simt::AnyWarp auto warp, const Volume& volume, WritebackWork& work,
                                 uint64_t& task) {
  const uint32_t portions = portions_of(volume.cache);
  task = 0;
  if (warp.thread_rank() == 0) {
    const uint64_t seen = simt::load_relaxed(work.task);
    if (kind_of_task(seen) != PageKind::kNone && portion_of_task(seen) < portions) {
      // Whatever has been handed out since then, this is a portion of it, or none. [K1]
      task = simt::AtomicRef<uint64_t>(work.task).fetch_add(1, simt::memory_order_acquire);
    }
  }
  task = warp.shfl(task, 0);
  warp.sync();  // what the leader acquired, all may look at
  return kind_of_task(task) != PageKind::kNone && portion_of_task(task) < portions;
}

/// Writes the portion `task`, which the caller has taken. Collective.
GOFS_NOINLINE GOFS_HD inline void write_portion(simt::AnyWarp auto warp, Operation& op,
                                                uint64_t task) {
  WritebackWork& work = op.writer.writeback;
  const uint32_t first = portion_of_task(task) * kWordsPerPortion;
  const MapRange range{first, simt::min(first + kWordsPerPortion, op.volume.cache.map_words())};
  // Where another has failed, it is only counted.
  int error = warp.shfl(simt::load_relaxed(work.error), 0);
  if (error == 0) {
    error = kind_of_task(task) == PageKind::kDirectory ? write_dirty_directories(warp, op, range)
                                                       : write_dirty_nodes(warp, op, range);
    if (error < 0 && warp.thread_rank() == 0) simt::store_relaxed(work.error, error);
  }
  warp.sync();
  if (warp.thread_rank() == 0) {
    simt::AtomicRef<uint32_t>(work.written).fetch_add(1, simt::memory_order_release);  // [K2]
  }
}

/// Has all changed pages of a kind written. Collective, uniform, by a caller that holds the
/// checkpoint lock exclusively. 0 or a negative errno, after which those that were not written are
/// still dirty.
GOFS_NOINLINE GOFS_HD inline int write_kind(simt::AnyWarp auto warp, Operation& op, PageKind kind) {
  WritebackWork& work = op.writer.writeback;
  const bool leader = warp.thread_rank() == 0;
  if (leader) {
    work.error = 0;
    simt::store_relaxed(work.written, 0u);
    simt::store_release(work.task, static_cast<uint64_t>(kind) << 32);  // [K1]
  }
  warp.sync();
  uint64_t task = 0;
  while (take_portion(warp, op.volume, work, task)) write_portion(warp, op, task);
  const simt::Deadline deadline = simt::Deadline::after_ns(kCheckpointLockTimeoutNs);
  simt::Backoff backoff;
  int error = 0;
  for (;;) {
    uint32_t done = 0;
    if (leader)
      done = simt::load_acquire(work.written) == portions_of(op.volume.cache) ? 1 : 0;  // [K2]
    if (warp.shfl(done, 0) != 0) break;
    if (warp.any(deadline.passed())) {
      // Who is that late may yet do something: no checkpoint can be relied on any more.
      error = -EBUSY;
      if (leader) simt::store_relaxed(op.writer.failed, error);
      break;
    }
    backoff.pause();
  }
  warp.sync();
  if (error == 0) error = warp.shfl(simt::load_relaxed(work.error), 0);
  if (leader) simt::store_relaxed(work.task, uint64_t{0});
  warp.sync();
  return error;
}

}  // namespace detail

/// Writes all pages of directories and all nodes that have changed. Collective, uniform, by a
/// caller that holds the checkpoint lock exclusively, or is alone. 0 or a negative errno, after
/// which those that were not written are still dirty.
GOFS_NOINLINE GOFS_HD inline int write_dirty_pages(simt::AnyWarp auto warp, Operation& op) {
  const bool leader = warp.thread_rank() == 0;
  if (leader) simt::store_relaxed(op.writer.writing_directories, 1u);
  const int error = detail::write_kind(warp, op, PageKind::kDirectory);
  if (leader) simt::store_relaxed(op.writer.writing_directories, 0u);
  return error < 0 ? error : detail::write_kind(warp, op, PageKind::kNode);
}

/// Does a portion of what another hands out in write_dirty_pages(), if there is one. Collective,
/// uniform, by a warp with no operation under way. Whether there was.
GOFS_HD inline bool help_writeback(simt::AnyWarp auto warp, Volume& volume, Writer& writer) {
  uint64_t task = 0;
  if (!detail::take_portion(warp, volume, writer.writeback, task)) return false;
  Operation op = Operation::under_checkpoint_lock(volume, writer);
  detail::write_portion(warp, op, task);
  return true;
}

}  // namespace gofs::f2fs
