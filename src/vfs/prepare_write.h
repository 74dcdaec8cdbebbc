// SPDX-License-Identifier: Apache-2.0
//
// What comes before a write, with no locks held: room for it, and the file loses its capabilities,
// whichever user writes, since running it now would run something else with them. Linux does the
// same (file_remove_privs). That a file has none is noted as long as it is open, so that only the
// first write looks.
#pragma once

#include "f2fs/capability_looks.h"
#include "vfs/change_attributes.h"
#include "vfs/foreground_gc.h"

namespace gofs::vfs::detail {

/// lose_capability() where it is not known that there is none.
GOFS_NOINLINE GOFS_HD inline int look_for_capability(simt::AnyWarp auto warp, Filesystem& fs,
                                                     f2fs::Inode& inode) {
  const bool leader = warp.thread_rank() == 0;
  // A call that sets one says so afterwards: either it does so later than this, or what it set is
  // found here.
  const uint32_t looks = leader ? f2fs::begin_capability_look(inode) : 0;
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
  // Not before it is gone: others write at once then.
  if (error == 0 && leader) f2fs::without_capability(inode, looks);
  return error;
}

/// Takes "security.capability" from an open file whose contents are about to change. Collective,
/// uniform, by a caller that holds no locks. 0 or a negative errno.
GOFS_HD inline int lose_capability(simt::AnyWarp auto warp, Filesystem& fs, f2fs::Inode& inode) {
  if (fs.writer == nullptr) return 0;
  const uint32_t looks = warp.shfl(simt::load_relaxed(inode.capability_looks), 0);
  return f2fs::is_without_capability(looks) ? 0 : look_for_capability(warp, fs, inode);
}

/// Before a write of `bytes` to an open file. Collective, uniform, by a caller that holds no locks.
/// 0 or a negative errno; whether there is room in the end the write itself finds out.
GOFS_HD inline int prepare_to_write(simt::AnyWarp auto warp, Filesystem& fs, OpenInode& open,
                                    uint64_t bytes) {
  run_foreground_gc(warp, fs, bytes);
  return lose_capability(warp, fs, open.inode);
}

}  // namespace gofs::vfs::detail
