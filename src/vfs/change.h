// SPDX-License-Identifier: Apache-2.0
//
// The frame of everything that changes an inode: the volume can be written to, the inode is the
// caller's alone, it was loaded after that, and what is changed is one operation
// (f2fs/begin_operation.h).
#pragma once

#include "f2fs/begin_operation.h"
#include "vfs/inode_lock.h"
#include "vfs/path.h"

namespace gofs::vfs {

/// The time as the host's clock has it when simt::now_ns() says `now_ns`, for time stamps.
GOFS_HD inline f2fs::TimeStamp time_when(const Filesystem& fs, uint64_t now_ns) {
  constexpr int64_t kSecondNs = 1'000'000'000;
  const int64_t exact = realtime_when(fs.clock, now_ns);
  const int64_t now = exact - exact % fs.time_granularity_ns;
  return {now / kSecondNs, static_cast<uint32_t>(now % kSecondNs)};
}
/// The same of now.
GOFS_HD inline f2fs::TimeStamp time_now(const Filesystem& fs) {
  return time_when(fs, simt::now_ns());
}

/// Paths that were resolved before are to be resolved anew: permissions on them have changed, or
/// names. By one lane, after the change.
GOFS_HD inline void invalidate_paths(Filesystem& fs) {
  simt::AtomicRef<uint32_t>(fs.path_generation).fetch_add(1, simt::memory_order_release);  // [V6]
}

namespace detail {

/// Whether the caller is the file's owner, or user 0.
GOFS_HD inline bool owns(const Credentials& who, const f2fs::Inode& inode) {
  return who.uid == 0 || who.uid == inode.uid;
}

/// What an operation works with.
GOFS_HD inline f2fs::OperationContext context_of(const simt::AnyWarp auto& warp, Filesystem& fs) {
  return {fs.volume, *fs.writer, &fs.pool, &credentials_of(warp, fs)};
}

/// Makes `change(Operation&)` an operation of at most `pages` pages, and where it has no block for
/// it, and `may_help()`, which is asked within an operation, once more after a checkpoint: only
/// that makes room of what was freed. Collective, uniform; `change` then leaves all as it was, or
/// can go on where it was. 0 or a negative errno: that of `change`, -EROFS, -EBUSY, -ENOBUFS (the
/// cache is too small), what the device says.
template <typename Change, typename MayHelp>
GOFS_HD int operate_or_sync(simt::AnyWarp auto warp, Filesystem& fs, const f2fs::PageBudget& pages,
                            Change change, MayHelp may_help) {
  for (uint32_t attempt = 0;; ++attempt) {
    f2fs::OperationSlot slot;
    int error = f2fs::begin_operation(
        warp, context_of(warp, fs), pages, [&] { return time_now(fs); }, slot);
    if (error < 0) return error;
    error = change(*slot);
    const bool again = error == -ENOSPC && attempt == 0 && warp.any(may_help());
    f2fs::end_operation(warp, slot);
    if (!again) return error;
    const int synced = f2fs::sync_volume(warp, fs.volume, *fs.writer, false);
    if (synced < 0) return synced;
  }
}

/// The same of a change that needs room that users have: no checkpoint helps where there is none,
/// or less than is asked for, or where it is not segments that are short.
template <typename Change>
GOFS_HD int operate(simt::AnyWarp auto warp, Filesystem& fs, const f2fs::PageBudget& pages,
                    Change change) {
  return operate_or_sync(warp, fs, pages, change, [&] {
    return f2fs::is_short_of_segments(fs.volume, *fs.writer) &&
           simt::load_relaxed(fs.volume.valid_block_count) < fs.volume.user_block_count;
  });
}

/// Asks `allow(const Inode&)`, collectively, and if it returns 0 calls `apply(Operation&, Inode&)`
/// within an operation of at most `pages` pages. Collective, uniform; `allow` and `apply` answer
/// uniformly 0 or a negative errno, and the first that does not return 0 ends it. Also -EROFS,
/// -EBUSY, -ENOBUFS (the cache is too small), -EUCLEAN, what the device says.
template <typename Allow, typename Apply>
GOFS_HD int change_inode(simt::AnyWarp auto warp, Filesystem& fs, uint32_t ino, uint32_t pages,
                         Allow allow, Apply apply) {
  if (fs.writer == nullptr) return -EROFS;
  int error = lock_inode(warp, fs, ino);
  if (error < 0) return error;
  f2fs::Inode inode{};
  error = load_uniform(warp, fs, ino, inode);
  if (error == 0) error = allow(inode);
  if (error == 0)
    error = operate(warp, fs, pages, [&](f2fs::Operation& op) { return apply(op, inode); });
  unlock_inode(warp, fs, ino);
  return error;
}

}  // namespace detail

/// Makes all that was done before durable. Collective, uniform, by one warp. 0 or a negative errno:
/// -EROFS (an earlier checkpoint failed in its last step: none can be made any more), -EBUSY, what
/// the device says; what was done is then in memory still.
GOFS_HD inline int sync(simt::AnyWarp auto warp, Filesystem& fs) {
  if (fs.writer == nullptr) return 0;
  return f2fs::sync_volume(warp, fs.volume, *fs.writer, false);
}

}  // namespace gofs::vfs
