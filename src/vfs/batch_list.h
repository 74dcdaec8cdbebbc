// SPDX-License-Identifier: Apache-2.0
//
// The files of a batch that is all of a directory. Any number of warps list it together, in two
// steps between which the callers synchronise; all warps come to both steps with the same
// `warp_count`. The directory's blocks are cut into as many parts, each for one warp: survey_batch
// counts the regular files of each part, and list_batch, which then knows how many come before a
// part, enters them. Both go through the entries, so that nothing but the counts has to be kept.
#pragma once

#include "vfs/batch.h"

namespace gofs::vfs {

namespace detail {

/// Where the parts of `batch` are noted.
GOFS_HD inline BatchPart* parts_of(BatchTable& table, const Batch& batch) {
  return table.parts + static_cast<uint64_t>(&batch - table.batches) * kBatchPartsMax;
}

/// Parts that a directory has when `warp_count` warps list it. Further warps have none.
GOFS_HD inline uint32_t part_count(uint32_t warp_count) {
  return simt::min(warp_count, kBatchPartsMax);
}

/// Goes through the regular files of part `index` of `count` parts, until it has met `room` of
/// them. Enters them into `files`; null: only counts. Collective, uniform.
GOFS_NOINLINE GOFS_HD inline BatchPart list_part(simt::AnyWarp auto warp, Filesystem& fs,
                                                 const Batch& batch, uint32_t index, uint32_t count,
                                                 BatchEntry* files, uint32_t room) {
  f2fs::Inode directory{};
  BatchPart part{};
  part.error = load_batch_directory(warp, fs, batch, directory);
  if (part.error < 0) return part;
  // Of fewer than 2^31 blocks. They may be holes nearly all: a part of nothing else ends soon,
  // since the walk skips whole subtrees of them.
  const uint64_t blocks = f2fs::listing_blocks(directory);
  const uint64_t end_block = blocks * (index + 1) / count;
  f2fs::DirectoryCursor cursor = f2fs::cursor_of_block(blocks * index / count);
  int damage = 0;
  const int error = f2fs::walk_entries(
      warp, fs.volume, directory, cursor, end_block, damage,
      [&](uint32_t given, const f2fs::SeenEntry& seen) {
        const bool regular =
            (given >> warp.thread_rank() & 1u) != 0 && seen.entry.type == format::kTypeRegular;
        const uint32_t lanes = warp.ballot(regular);
        const uint32_t place =
            part.files + simt::popcount(lanes & simt::ranks_below(warp.thread_rank()));
        if (regular && place < room && files != nullptr) {
          files[place].ino = seen.entry.ino;
          files[place].error = 0;
        }
        part.files = simt::min(room, part.files + simt::popcount(lanes));
        if (damage == 0) part.sound = part.files;
        return part.files < room;
      });
  part.error = error < 0 ? error : damage;
  return part;
}

/// What the parts of a directory make together.
struct PartSums {
  uint64_t before;  // files of the parts before the one that was asked about
  uint32_t count;   // files of all parts, as far as there is room
  int error;        // of damage before the room was full: the last one's
};

/// Adds up the parts. Collective, uniform.
GOFS_HD inline PartSums sum_parts(simt::AnyWarp auto warp, const BatchPart* parts, uint32_t count,
                                  uint32_t index, uint32_t room) {
  PartSums sums{};
  uint64_t all = 0;
  for (uint32_t first = 0; first < count; first += warp.size()) {
    const uint32_t mine = first + warp.thread_rank();
    const BatchPart part = mine < count ? parts[mine] : BatchPart{};
    uint64_t total = 0;
    const uint64_t before = all + simt::sum_before(warp, uint64_t{part.files}, total);
    if (index >= first && index < first + warp.size()) {
      sums.before = warp.shfl(before, index - first);
    }
    const uint32_t damaged = warp.ballot(part.error < 0 && before + part.sound < room);
    if (damaged != 0) sums.error = warp.shfl(part.error, 31 - simt::leading_zeros(damaged));
    all += total;
  }
  sums.count = static_cast<uint32_t>(simt::min<uint64_t>(all, room));
  return sums;
}

}  // namespace detail

/// Counts the regular files of the directory. Collective, uniform; warps 0 to `warp_count` - 1 do
/// it together, then synchronise, then call list_batch. Once, after begin_batch. What goes wrong
/// list_batch says.
GOFS_NOINLINE GOFS_HD inline void survey_batch(simt::AnyWarp auto warp, Filesystem& fs,
                                               BatchTable& table, Batch& batch, uint32_t warp_index,
                                               uint32_t warp_count) {
  const uint32_t count = detail::part_count(warp_count);
  if (warp_index >= count) return;
  const BatchPart part = reading_paths(warp, fs, [&] {
    return detail::list_part(warp, fs, batch, warp_index, count, nullptr, batch.room);
  });
  if (warp.thread_rank() == 0) detail::parts_of(table, batch)[warp_index] = part;
  warp.sync();
}

/// Enters the regular files of the directory in the order of readdir, at most `batch.room`; the
/// rest is cut, and batch.count becomes what there is. Collective, uniform; warps 0 to `warp_count`
/// - 1 do it together after survey_batch, then synchronise.
///
/// Entries that make no sense are reported and passed over; so is a block that cannot be mapped or
/// read. Either makes the result a negative errno: 0 or the errno of the last one that was
/// met before the room was full, the same for all warps, and batch.error once they have
/// synchronised. What could be entered is there all the same. A block that could be read by
/// survey_batch and not again leaves files that have that error, and ino 0; -ESTALE those that were
/// removed in between.
GOFS_NOINLINE GOFS_HD inline int list_batch(simt::AnyWarp auto warp, Filesystem& fs,
                                            BatchTable& table, Batch& batch, uint32_t warp_index,
                                            uint32_t warp_count) {
  const uint32_t count = detail::part_count(warp_count);
  const BatchPart* const parts = detail::parts_of(table, batch);
  const detail::PartSums sums = detail::sum_parts(warp, parts, count, warp_index, batch.room);
  if (warp_index == 0 && warp.thread_rank() == 0) {
    lock_table(table.lock);  // the count says which room others may take
    batch.count = sums.count;
    simt::unlock(table.lock);
    batch.error = sums.error;
  }
  const bool has_part = warp_index < count && sums.before < sums.count;
  const auto room = static_cast<uint32_t>(
      has_part ? simt::min<uint64_t>(parts[warp_index].files, sums.count - sums.before) : 0);
  if (room != 0) {
    BatchEntry* const files = table.files + batch.first + sums.before;
    const BatchPart part = reading_paths(warp, fs, [&] {
      return detail::list_part(warp, fs, batch, warp_index, count, files, room);
    });
    const int missing = fs.writer != nullptr ? -ESTALE : -EUCLEAN;
    for (uint32_t i = part.files + warp.thread_rank(); i < room; i += warp.size()) {
      files[i].ino = 0;
      files[i].error = part.error < 0 ? part.error : missing;
    }
  }
  warp.sync();
  return sums.error;
}

}  // namespace gofs::vfs
