// SPDX-License-Identifier: Apache-2.0
//
// Whether a directory has no names but `.` and `..`, so that it may be removed. Strict: whatever
// uses a slot counts, also an entry that makes no sense, and what cannot be read is no answer.
#pragma once

#include "f2fs/dentry_space.h"

namespace gofs::f2fs {

namespace detail {

/// Whether the first entries of a directory are not those of every one: what else it had may be
/// lost as well.
GOFS_HD inline bool lacks_dots(const DentryView& view) { return !view.used(0) || !view.used(1); }

GOFS_NOINLINE GOFS_HD inline int report_no_dots(simt::AnyWarp auto warp, Volume& volume,
                                                const Inode& directory) {
  const uint32_t block = block_of_entries(warp, volume, directory, 0);
  return report_once(warp, *volume.corruptions,
                     {Structure::kDentryName, block, directory.ino, slot_value(0, 0)});
}

/// As is_empty_directory, of one with entries in blocks.
GOFS_NOINLINE GOFS_HD inline int is_empty_in_blocks(simt::AnyWarp auto warp, Volume& volume,
                                                    const Inode& directory) {
  const uint64_t blocks = directory_blocks(directory);
  for (uint64_t first = 0; first < blocks;) {
    const uint64_t index = first + warp.thread_rank();
    const uint32_t lanes = warp.ballot(index < blocks);
    uint64_t span = 1;
    bool used = false;
    bool lost = false;
    const int read = with_directory_blocks(
        warp, volume, lanes, directory, index, span, [&](const uint8_t* page) {
          used = any_used_slot(block_view(page), index == 0 ? kDotSlots : 0u);
          lost = index == 0 && lacks_dots(block_view(page));
        });
    const int error = simt::first_error(warp, index < blocks && read != -ENOENT ? read : 0);
    if (error < 0) return error;
    if (warp.any(used)) return 0;
    if (warp.any(lost || (index == 0 && read == -ENOENT)))
      return report_no_dots(warp, volume, directory);
    // On to the first block that the last lane's hole does not cover.
    const uint32_t last = simt::popcount(lanes) - 1;
    first += last + warp.shfl(span, last);
  }
  if (has_possible_size(directory)) return 1;
  return report_once(warp, *volume.corruptions,
                     {Structure::kDirectory, 0, directory.ino, directory.size_bytes});
}

}  // namespace detail

/// 1 if `directory` is empty, 0 if not, or a negative errno. Collective, uniform. No names are
/// added meanwhile.
GOFS_NOINLINE GOFS_HD inline int is_empty_directory(simt::AnyWarp auto warp, Volume& volume,
                                                    const Inode& directory) {
  if (!directory.has_inline_dentries()) return detail::is_empty_in_blocks(warp, volume, directory);
  bool used = false;
  bool lost = false;
  int error = with_nodes(warp, volume, warp.ballot(true), directory.ino, directory.ino,
                         [&](const format::NodeBlock& node) {
                           const detail::DentryView view = detail::inline_view(node, directory);
                           used = detail::any_used_slot(view, detail::kDotSlots);
                           lost = detail::lacks_dots(view);
                         });
  error = simt::first_error(warp, error);
  if (error < 0) return error;
  if (warp.any(used)) return 0;
  return warp.any(lost) ? detail::report_no_dots(warp, volume, directory) : 1;
}

}  // namespace gofs::f2fs
