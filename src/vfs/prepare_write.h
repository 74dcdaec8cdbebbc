// SPDX-License-Identifier: Apache-2.0
//
// What comes before a write, with no locks held: room for it, and the file loses its capabilities,
// whichever user writes, since running it now would run something else with them. Linux does the
// same (file_remove_privs). That a file has none is noted as long as it is open, so that only the
// first write looks.
#pragma once

#include "vfs/change_attributes.h"
#include "vfs/foreground_gc.h"

namespace gofs::vfs::detail {

/// lose_capability() where it is not known that there is none.
GOFS_NOINLINE GOFS_HD inline int look_for_capability(simt::AnyWarp auto warp, Filesystem& fs,
                                                     f2fs::Inode& inode) {
  const bool leader = warp.thread_rank() == 0;
  // Noted before the look: a call that sets one resets this afterwards, so that either it does so
  // later than this, or what it set is found here.
  if (leader) {
    simt::AtomicRef<uint32_t>(inode.no_capability)
        .exchange(1u, simt::memory_order_acquire);  // [V18]
  }
  warp.sync();
  f2fs::Inode now{};
  int error = load_uniform(warp, fs, inode.ino, now);
  if (error == 0 && f2fs::may_have_xattrs(now)) {
    error = change_inode(
        warp, fs, inode.ino, f2fs::kXattrPages, [](const f2fs::Inode&) { return 0; },
        [&](f2fs::Operation& op, f2fs::Inode& loaded) {
          return drop_capability(warp, op, loaded);
        });
  }
  if (error < 0 && leader) simt::store_relaxed(inode.no_capability, 0u);
  return error;
}

/// Takes "security.capability" from an open file whose contents are about to change. Collective,
/// uniform, by a caller that holds no locks. 0 or a negative errno.
GOFS_HD inline int lose_capability(simt::AnyWarp auto warp, Filesystem& fs, f2fs::Inode& inode) {
  if (fs.writer == nullptr) return 0;
  const uint32_t none = warp.shfl(simt::load_relaxed(inode.no_capability), 0);
  return none != 0 ? 0 : look_for_capability(warp, fs, inode);
}

/// Before a write of `bytes` to an open file. Collective, uniform, by a caller that holds no locks.
/// 0 or a negative errno; whether there is room in the end the write itself finds out.
GOFS_HD inline int prepare_to_write(simt::AnyWarp auto warp, Filesystem& fs, OpenInode& open,
                                    uint64_t bytes) {
  run_foreground_gc(warp, fs, bytes);
  return lose_capability(warp, fs, open.inode);
}

}  // namespace gofs::vfs::detail
