// SPDX-License-Identifier: Apache-2.0
//
// Whether a directory has no names but `.` and `..`, so that it may be removed. Strict: whatever
// uses a slot counts, also an entry that makes no sense, and what cannot be read is no answer.
#pragma once

#include "f2fs/dentry_space.h"

namespace gofs::f2fs {

namespace detail {

/// The slots of `.` and `..`.
inline constexpr uint32_t kDotSlots = 2;

/// As is_empty_directory, of one with entries in blocks.
GOFS_NOINLINE GOFS_HD inline int is_empty_in_blocks(simt::AnyWarp auto warp, Volume& volume,
                                                    const Inode& directory) {
  const uint64_t blocks = directory_blocks(directory);
  for (uint64_t first = 0; first < blocks;) {
    const uint64_t index = first + warp.thread_rank();
    const uint32_t lanes = warp.ballot(index < blocks);
    uint64_t span = 1;
    bool used = false;
    const int read = with_directory_blocks(
        warp, volume, lanes, directory, index, span, [&](const uint8_t* page) {
          used = any_used_slot(block_view(page), index == 0 ? kDotSlots : 0u);
        });
    const int error = simt::first_error(warp, index < blocks && read != -ENOENT ? read : 0);
    if (error < 0) return error;
    if (warp.any(used)) return 0;
    // On to the first block that the last lane's hole does not cover.
    const uint32_t last = simt::popcount(lanes) - 1;
    first += last + warp.shfl(span, last);
  }
  if (directory.size_blocks() == blocks) return 1;
  return report_once(warp, *volume.corruptions,
                     {Structure::kDirectory, 0, directory.ino, directory.size_bytes});
}

}  // namespace detail

/// 1 if `directory` is empty, 0 if not, or a negative errno. Collective, uniform. Nobody adds names
/// meanwhile.
GOFS_NOINLINE GOFS_HD inline int is_empty_directory(simt::AnyWarp auto warp, Volume& volume,
                                                    const Inode& directory) {
  if (!directory.has_inline_dentries()) return detail::is_empty_in_blocks(warp, volume, directory);
  bool used = false;
  int error = with_nodes(warp, volume, warp.ballot(true), directory.ino, directory.ino,
                         [&](const format::NodeBlock& node) {
                           used = detail::any_used_slot(detail::inline_view(node, directory),
                                                        detail::kDotSlots);
                         });
  error = simt::first_error(warp, error);
  if (error < 0) return error;
  return warp.any(used) ? 0 : 1;
}

}  // namespace gofs::f2fs
