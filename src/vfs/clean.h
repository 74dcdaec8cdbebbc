// SPDX-License-Identifier: Apache-2.0
//
// Cleaning: segments that are only partly in use are emptied, by moving what is left in them to
// other places, so that the logs find whole segments to write to. Nodes and blocks of directories
// are moved by the next checkpoint, blocks of files at once (clean_files.h); with that checkpoint
// an emptied segment is free, unless there are address readers (f2fs::enter_address_readers).
//
// Several warps may clean at a time, each a victim of its own. All functions are collective, by one
// warp that holds no locks.
#pragma once

#include "vfs/clean_files.h"

namespace gofs::vfs {

/// Segments with more blocks in use than this are not worth moving.
inline constexpr uint32_t kWorthCleaning = format::kBlocksPerSegment / 8 * 7;

/// What is to be cleaned.
struct CleanWish {
  f2fs::VictimWish victims;
  uint32_t free_segments;  // as many as there are to be free; then it ends
  uint32_t segments_max;   // victims
};

namespace detail {

/// What one warp cleans.
struct Victim {
  uint32_t segno;
  uint8_t* summary;
  CleanedFile file;
  uint32_t moved;
  uint32_t left;
  int error;  // the first
};

/// Counts the lanes of `lanes` whose blocks did not go and are in use still. Collective.
GOFS_HD inline void count_left(simt::AnyWarp auto warp, Filesystem& fs, Victim& victim,
                               uint32_t lanes, const f2fs::BlockOwner& owner) {
  const bool mine = (lanes >> warp.thread_rank() & 1u) != 0;
  const bool left = mine && f2fs::detail::is_in_use(fs.volume, *fs.writer, owner.block);
  victim.left += simt::popcount(warp.ballot(left));
}

GOFS_HD inline void note_error(Victim& victim, int error) {
  if (error < 0 && victim.error == 0) victim.error = error;
}

/// Moves nodes, one a lane. Collective.
GOFS_NOINLINE GOFS_HD inline void clean_nodes(simt::AnyWarp auto warp, Filesystem& fs,
                                              Victim& victim, uint32_t lanes,
                                              const f2fs::BlockOwner& owner) {
  const bool mine = (lanes >> warp.thread_rank() & 1u) != 0;
  int changed = 0;
  const int error = operate_cleaning(warp, fs, simt::popcount(lanes), [&](f2fs::Operation& op) {
    changed = f2fs::move_nodes(warp, op, lanes, owner);
    return simt::first_error(warp, mine && changed != -ENOENT ? changed : 0);
  });
  note_error(victim, error);
  const uint32_t moved = warp.ballot(mine && error == 0 && changed == 0);
  victim.moved += simt::popcount(moved);
  if (warp.thread_rank() == 0) {
    simt::add_relaxed(fs.writer->cleaning.counts.node_blocks, uint64_t{simt::popcount(moved)});
  }
  count_left(warp, fs, victim, lanes & ~moved, owner);
}

/// Moves blocks of one file or directory, one a lane. Collective.
GOFS_NOINLINE GOFS_HD inline void clean_blocks_of(simt::AnyWarp auto warp, Filesystem& fs,
                                                  Victim& victim, uint32_t lanes, uint32_t ino,
                                                  bool is_directory, uint64_t index,
                                                  const f2fs::BlockOwner& owner) {
  uint32_t moved = 0;
  int error = 0;
  if (is_directory) {
    error = move_directory_blocks(warp, fs, ino, lanes, index, owner, moved);
  } else {
    error = enter_cleaned(warp, fs, ino, victim.file);
    if (error == 0) error = move_file_blocks(warp, fs, victim.file, lanes, index, owner, moved);
    if (error == -ENOENT || error == -EAGAIN || error == -ETIMEDOUT) error = 0;
  }
  note_error(victim, error);
  victim.moved += simt::popcount(moved);
  if (warp.thread_rank() == 0) {
    f2fs::CleaningCounts& counts = fs.writer->cleaning.counts;
    simt::add_relaxed(is_directory ? counts.directory_blocks : counts.data_blocks,
                      uint64_t{simt::popcount(moved)});
  }
  count_left(warp, fs, victim, lanes & ~moved, owner);
}

/// Moves blocks of data, one a lane. Collective.
GOFS_NOINLINE GOFS_HD inline void clean_data(simt::AnyWarp auto warp, Filesystem& fs,
                                             Victim& victim, uint32_t lanes,
                                             const f2fs::BlockOwner& owner) {
  f2fs::FileBlock found{};
  const int located = f2fs::locate_blocks(warp, fs.volume, lanes, owner, found);
  const bool mine = (lanes >> warp.thread_rank() & 1u) != 0;
  note_error(victim, simt::first_error(warp, mine && located != -ENOENT ? located : 0));
  uint32_t todo = warp.ballot(mine && located == 0 && may_be_moved(found.inode));
  count_left(warp, fs, victim, lanes & ~todo, owner);
  // As many at once as there may be pages changed.
  const uint32_t most = f2fs::detail::dirty_pages_max(fs.volume) / 4;
  while (todo != 0) {
    const uint32_t lane = simt::lowest_bit(todo);
    const uint32_t ino = warp.shfl(found.inode.ino, lane);
    const bool is_directory = warp.shfl(found.inode.is_directory() ? 1u : 0u, lane) != 0;
    const uint32_t same =
        warp.ballot((todo >> warp.thread_rank() & 1u) != 0 && found.inode.ino == ino);
    const uint32_t now = first_lanes(same, most);
    clean_blocks_of(warp, fs, victim, now, ino, is_directory, found.index, owner);
    todo &= ~now;
  }
}

/// Moves all blocks of the victim. Collective.
GOFS_NOINLINE GOFS_HD inline void clean_victim(simt::AnyWarp auto warp, Filesystem& fs,
                                               Victim& victim) {
  f2fs::Volume& volume = fs.volume;
  f2fs::Writer& writer = *fs.writer;
  victim.error = f2fs::load_owners(warp, volume, writer, victim.segno, victim.summary);
  if (victim.error < 0) {
    victim.left = 1;
    return;
  }
  const uint32_t type = simt::load_relaxed(writer.segments.segments[victim.segno].type);
  for (uint32_t first = 0; first < format::kBlocksPerSegment; first += warp.size()) {
    f2fs::BlockOwner owner{};
    int damage = 0;
    const bool used = f2fs::owner_of(volume, writer, victim.segno, first + warp.thread_rank(),
                                     victim.summary, owner, damage);
    note_error(victim, simt::first_error(warp, damage));
    victim.left += simt::popcount(warp.ballot(damage < 0));
    uint32_t lanes = warp.ballot(used);
    if (lanes == 0) continue;
    if (format::is_node_log(type)) {
      clean_nodes(warp, fs, victim, lanes, owner);
    } else {
      clean_data(warp, fs, victim, lanes, owner);
    }
  }
  leave_cleaned(warp, fs, victim.file);
}

/// Takes a place for a summary. Collective, uniform; null where all are in use.
GOFS_HD inline uint8_t* take_cleaner(simt::AnyWarp auto warp, f2fs::Cleaning& cleaning) {
  uint64_t page = 0;
  if (warp.thread_rank() == 0) {
    for (uint32_t i = 0; i < f2fs::kCleaners && page == 0; ++i) {
      if (!simt::try_lock(cleaning.page_locks[i])) continue;
      page = reinterpret_cast<uint64_t>(cleaning.pages + uint64_t{i} * kBlockBytes);
    }
  }
  page = warp.shfl(page, 0);
  warp.sync();
  return reinterpret_cast<uint8_t*>(page);
}
GOFS_HD inline void release_cleaner(simt::AnyWarp auto warp, f2fs::Cleaning& cleaning,
                                    const uint8_t* page) {
  warp.sync();
  if (warp.thread_rank() != 0) return;
  simt::unlock(cleaning.page_locks[static_cast<uint64_t>(page - cleaning.pages) / kBlockBytes]);
}

/// The lane of `lanes`, which are not none, with the least value. Collective, uniform.
GOFS_HD inline uint32_t lane_of_least(simt::AnyWarp auto warp, uint32_t lanes, uint32_t value) {
  uint32_t best = simt::lowest_bit(lanes);
  uint32_t least = warp.shfl(value, best);
  for (lanes &= lanes - 1; lanes != 0; lanes &= lanes - 1) {
    const uint32_t theirs = warp.shfl(value, simt::lowest_bit(lanes));
    if (theirs >= least) continue;
    least = theirs;
    best = simt::lowest_bit(lanes);
  }
  return best;
}

}  // namespace detail

/// What one warp has done in one round.
struct CleanRound {
  uint32_t segments;  // victims
  uint32_t blocks;    // that they had free, or were moved out of them: the room gained
  uint32_t pending;   // segments that were empty already and wait for a checkpoint
  bool full;          // it ended early: there is no room to move to before that checkpoint
  int error;          // the first
};

/// Cleans victims, one after the other, until there is room for `gain` segments more, the cost of
/// moving taken off. Collective, uniform. A checkpoint is to follow.
GOFS_NOINLINE GOFS_HD inline CleanRound clean_round(simt::AnyWarp auto warp, Filesystem& fs,
                                                    const f2fs::VictimWish& wish, uint32_t gain,
                                                    uint32_t segments_max) {
  f2fs::Writer& writer = *fs.writer;
  CleanRound round{};
  uint8_t* const summary = detail::take_cleaner(warp, writer.cleaning);
  if (summary == nullptr) return round;
  const uint32_t enough = gain * format::kBlocksPerSegment;
  while (round.segments < segments_max && round.blocks < enough && !round.full) {
    uint32_t segno = 0;
    f2fs::SegmentCensus census{};
    const int chosen = f2fs::choose_victims(warp, fs.volume, writer, wish, census, segno);
    if (chosen < 0 && round.error == 0) round.error = chosen;
    if (chosen < 0) break;
    if (round.segments == 0) round.pending = census.pending;
    uint32_t left = census.lanes;
    if (left == 0) break;
    uint32_t valid = 0;
    if ((left >> warp.thread_rank() & 1u) != 0) {
      valid = simt::load_relaxed(writer.segments.segments[segno].valid_count);
    }
    while (left != 0) {
      const uint32_t lane = detail::lane_of_least(warp, left, valid);
      left &= ~(1u << lane);
      detail::Victim victim{};
      victim.segno = warp.shfl(segno, lane);
      victim.summary = summary;
      const uint32_t in_use = warp.shfl(valid, lane);
      if (round.segments == segments_max || round.blocks >= enough || round.full) {
        if (warp.thread_rank() == 0) f2fs::spare_victim(writer, victim.segno);
        continue;
      }
      detail::clean_victim(warp, fs, victim);
      if (warp.thread_rank() == 0) {
        f2fs::release_victim(writer, victim.segno, victim.left != 0 && victim.moved == 0);
        if (victim.left == 0) simt::add_relaxed(writer.cleaning.counts.segments, uint64_t{1});
        simt::add_relaxed(writer.cleaning.counts.left_blocks, uint64_t{victim.left});
      }
      ++round.segments;
      if (victim.left == 0) round.blocks += format::kBlocksPerSegment - in_use;
      round.full = victim.error == -ENOSPC;
      if (round.error == 0 && !round.full) round.error = victim.error;
    }
    warp.sync();
  }
  detail::release_cleaner(warp, writer.cleaning, summary);
  return round;
}

/// Lets segments be tried again that could not be emptied. Collective.
GOFS_HD inline void reset_stuck(simt::AnyWarp auto warp, Filesystem& fs) {
  const auto words = static_cast<uint32_t>(simt::divide_up(fs.volume.geometry.main_segments, 32));
  for (uint32_t i = warp.thread_rank(); i < words; i += warp.size()) {
    simt::store_relaxed(fs.writer->cleaning.stuck[i], 0u);
  }
  warp.sync();
}

/// What cleaning came to.
struct CleanResult {
  int error;          // 0 or a negative errno
  uint32_t segments;  // victims
};

/// Cleans until as many segments are free as is wished, there are no more victims, or cleaning
/// gains nothing. Collective, uniform, by one warp that holds no locks. Errors: -EROFS; of a victim
/// (-EUCLEAN, reported; the others are cleaned all the same); of a checkpoint.
GOFS_NOINLINE GOFS_HD inline CleanResult clean_segments(simt::AnyWarp auto warp, Filesystem& fs,
                                                        const CleanWish& wish) {
  CleanResult result{};
  if (fs.writer == nullptr) return {-EROFS, 0};
  constexpr uint32_t kGainMax = 16;  // segments for a checkpoint
  f2fs::Writer& writer = *fs.writer;
  while (result.segments < wish.segments_max) {
    const uint32_t free = warp.shfl(simt::load_relaxed(writer.free_count), 0);
    if (free >= wish.free_segments) break;
    const uint32_t gain = simt::min(wish.free_segments - free, kGainMax);
    const CleanRound round =
        clean_round(warp, fs, wish.victims, gain, wish.segments_max - result.segments);
    if (result.error == 0) result.error = round.error;
    result.segments += round.segments;
    if (round.segments == 0 && round.pending == 0) break;
    const int synced = f2fs::sync_volume(warp, fs.volume, writer, false);
    if (synced < 0) return {synced, result.segments};
    const uint32_t now = warp.shfl(simt::load_relaxed(writer.free_count), 0);
    if (now <= free && round.blocks == 0) break;
  }
  return result;
}

/// Empties up to `segments_max` segments that are worth it, old ones first, also where there is
/// room enough. Collective, uniform, by one warp that holds no locks. How many it has tried, or a
/// negative errno.
GOFS_NOINLINE GOFS_HD inline int64_t collect_garbage(simt::AnyWarp auto warp, Filesystem& fs,
                                                     uint32_t segments_max) {
  if (fs.writer == nullptr) return -EROFS;
  reset_stuck(warp, fs);
  const CleanWish wish{{f2fs::VictimPolicy::kCostBenefit, kWorthCleaning},
                       fs.volume.geometry.main_segments,
                       simt::min(segments_max, fs.volume.geometry.main_segments)};
  const CleanResult result = clean_segments(warp, fs, wish);
  return result.error < 0 ? result.error : int64_t{result.segments};
}

}  // namespace gofs::vfs
