// SPDX-License-Identifier: Apache-2.0
//
// Freeing the orphans that a volume comes with: what closing them would have done.
#pragma once

#include "f2fs/free_inode.h"

namespace gofs::f2fs {

namespace detail {

/// Loads an inode that is to be freed; `orphan` becomes false for what should not have been listed,
/// which is reported: a free nid, another file's node, an inode that has names. Collective,
/// uniform. 0 or a negative errno: -EUCLEAN (reported) of an inode that contradicts itself.
GOFS_NOINLINE GOFS_HD inline int load_orphan(simt::AnyWarp auto warp, Volume& volume, uint32_t ino,
                                             Inode& inode, bool& orphan) {
  const uint32_t lanes = warp.ballot(true);
  NatRecord record{};
  int error = simt::first_error(warp, look_up_nat(warp, volume, lanes, ino, record));
  if (error < 0) return error;
  orphan = record.block != format::kNullAddr && record.ino == ino;
  uint32_t found = record.ino;
  if (orphan) {
    error = simt::first_error(warp, load_inodes(warp, volume, lanes, ino, inode));
    if (error < 0) return error;
    found = inode.links;
    orphan = found == 0;
  }
  if (!orphan) (void)report_once(warp, *volume.corruptions, {Structure::kOrphan, 0, ino, found});
  return 0;
}

/// Frees one orphan. Collective, uniform. 0 or a negative errno; it is still listed then.
GOFS_NOINLINE GOFS_HD inline int recover_orphan(simt::AnyWarp auto warp, Volume& volume,
                                                Writer& writer, const PagePool& pool,
                                                uint32_t ino) {
  Inode inode{};
  bool orphan = false;
  int error = load_orphan(warp, volume, ino, inode, orphan);
  if (error < 0) return error;
  if (orphan) return free_inode(warp, volume, writer, pool, inode, inode.changed);
  OperationSlot slot;
  error = begin_operation(warp, {volume, writer}, 0, slot);
  if (error < 0) return error;
  if (warp.thread_rank() == 0) remove_orphan(writer.orphans, ino);
  end_operation(warp, slot);
  return 0;
}

}  // namespace detail

/// Frees all orphans, after begin_writing(), which has listed them, and before any other uses the
/// volume. Collective, by one warp with no operation under way and no spare blocks. Returns,
/// identical in all lanes: 0, also where some stay listed since they contradict themselves or
/// cannot be changed by us; or a negative errno, with the others still listed: those of
/// begin_operation(), -EBUSY, what the device says. Durable after the next checkpoint.
GOFS_NOINLINE GOFS_HD inline int recover_orphans(simt::AnyWarp auto warp, Volume& volume,
                                                 Writer& writer, const PagePool& pool) {
  const OrphanTable& table = writer.orphans;
  uint32_t ino = next_orphan(warp, table, 0);
  while (ino < table.ino_count) {
    const int error = detail::recover_orphan(warp, volume, writer, pool, ino);
    if (error < 0 && error != -EUCLEAN && error != -EOPNOTSUPP) return error;
    ino = next_orphan(warp, table, ino + 1);
  }
  return 0;
}

}  // namespace gofs::f2fs
