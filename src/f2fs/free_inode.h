// SPDX-License-Identifier: Apache-2.0
//
// Freeing a whole inode, in as many operations as it takes. It is an orphan until the last of them,
// so every checkpoint on the way lets this be done again after a crash.
#pragma once

#include "f2fs/begin_operation.h"
#include "f2fs/remove_inode.h"

namespace gofs::f2fs {

/// Frees `inode`, which was loaded, as remove_inode() says. Collective, uniform, outside
/// operations. 0 or a negative errno: those of begin_operation() and remove_inode(); -EUCLEAN
/// (reported) also where it does not come to an end. The inode is then an orphan still.
GOFS_NOINLINE GOFS_HD inline int free_inode(simt::AnyWarp auto warp, Volume& volume, Writer& writer,
                                            const PagePool& pool, Inode& inode,
                                            const TimeStamp& now) {
  // Each portion but the last frees some block.
  const uint64_t portions = 2 + warp.shfl(simt::load_relaxed(volume.valid_block_count), 0);
  for (uint64_t portion = 0; portion < portions; ++portion) {
    OperationSlot slot;
    bool more = false;
    int error = begin_operation(
        warp, {volume, writer, &pool}, kPagesToRemoveInode, [&] { return now; }, slot);
    if (error < 0) return error;
    error = remove_inode(warp, *slot, inode, more);
    end_operation(warp, slot);
    if (error < 0 || !more) return error;
  }
  return report_once(warp, *volume.corruptions, {Structure::kInode, 0, inode.ino, inode.mode});
}

}  // namespace gofs::f2fs
