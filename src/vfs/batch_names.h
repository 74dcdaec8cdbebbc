// SPDX-License-Identifier: Apache-2.0
//
// Entering the names of files that a batch has made (batch_create.h). The batch has the directory
// for itself, and its warps enter names side by side: a warp has those names of its group locked
// that it enters at a time, by their hashes, so nobody enters the same name meanwhile. Where they
// stand is f2fs/add_entries.h's affair.
#pragma once

#include "vfs/batch.h"

namespace gofs::vfs::detail {

/// Enters the name of each lane in `lanes`. Collective, inside the gate. Per lane 0 or a negative
/// errno: those of add_entries(), of the first of several files with one name that is not -EEXIST.
GOFS_NOINLINE GOFS_HD inline int enter_names(simt::AnyWarp auto warp, Filesystem& fs,
                                             f2fs::Inode& directory, uint32_t lanes,
                                             const f2fs::NewEntry& mine, f2fs::Adding& how) {
  bool wanted = (lanes >> warp.thread_rank() & 1u) != 0;
  int result = 0;
  static_assert((kNameLocks & (kNameLocks - 1)) == 0);
  uint32_t& lock = fs.batches->name_locks[(mine.hash ^ directory.ino) & (kNameLocks - 1)];
  const simt::Deadline deadline = simt::Deadline::after_ns(fs.lock_timeout_ns);
  simt::Backoff backoff;
  while (warp.any(wanted)) {
    // Who does not get his is not waited for: nobody waits for a name while he has one.
    const bool held = wanted && simt::try_lock(lock);
    const uint32_t round = warp.ballot(held);
    if (round == 0) {
      if (warp.any(deadline.passed())) return wanted ? -EBUSY : result;
      backoff.pause();
      continue;
    }
    warp.sync();  // all lanes look at what one of them acquired
    const int added = f2fs::add_entries(warp, fs.volume, *fs.writer, directory, round, mine, how);
    warp.sync();
    if (held) {
      simt::unlock(lock);
      result = added;
      wanted = false;
    }
  }
  return result;
}

}  // namespace gofs::vfs::detail
