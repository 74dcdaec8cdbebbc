// SPDX-License-Identifier: Apache-2.0
//
// Many new files of one directory as a batch (batch.h). The work is cut so that any number of warps
// can share it; between the steps the callers synchronise:
//
//   begin_creation     one warp     the directory, which is the batch's alone from then on
//   prepare_creation   many warps   room for the names
//   create_batch       many warps   the files
//   end_creation       one warp     lets the directory go
//
// Each warp makes groups of files, a file a lane, with their contents (f2fs/make_files.h), and then
// enters their names (f2fs/add_entries.h). A name that comes more than once is the file's that
// claims it first (batch_names.h).
//
// A file whose contents need more addresses than an inode has, or that inherits an access list, is
// made empty, and written then as batch_write.h does.
#pragma once

#include "f2fs/empty_directory.h"
#include "f2fs/make_files.h"
#include "f2fs/prealloc_dentry_blocks.h"
#include "simt/address_space.h"
#include "vfs/batch_names.h"
#include "vfs/batch_write.h"
#include "vfs/make_file.h"

namespace gofs::vfs {

/// What batch_create() makes. All arrays have `count` entries.
struct BatchCreation {
  const char* path;  // of the directory
  const char* const* names;
  uint32_t count;
  uint32_t permissions;
  const uint8_t* buffer;    // null: the files stay empty
  const uint64_t* offsets;  // in `buffer`
  const uint64_t* bytes;
};

namespace detail {

/// Pages that one operation changes for `count` files: their inodes, pages of the NAT, and what
/// entering them in so many levels takes, as far as the batch has no room for these.
GOFS_HD inline uint32_t pages_to_create(const Batch& batch, const f2fs::Inode& directory,
                                        uint32_t count, uint32_t levels) {
  const uint32_t inodes = (batch.has_nat ? 1 : f2fs::kPagesToMakeInode) * count;
  if (levels <= batch.entry_levels) return inodes;
  return inodes + f2fs::pages_to_add_entries(directory, count, levels);
}

/// Takes room for pages that all groups are likely to change, if these are a small part of what
/// there is: each group would take room for the same ones again. One lane.
GOFS_HD inline bool reserve_for_all(const Filesystem& fs, Batch& batch, uint64_t pages) {
  if (pages > f2fs::detail::dirty_pages_max(fs.volume) / 8) return false;
  const auto taken = static_cast<uint32_t>(pages);
  if (!f2fs::detail::reserve_pages(fs.volume, *fs.writer, taken)) return false;
  batch.reserved += taken;
  return true;
}

/// That of all levels that the new names are likely to come to, and that of the NAT. One lane.
GOFS_HD inline void reserve_shared_pages(const Filesystem& fs, Batch& batch,
                                         const f2fs::Inode& directory) {
  const uint32_t levels =
      simt::min(simt::max(batch.growth.spread, directory.dir_depth) + 1, format::kDirDepthMax);
  if (reserve_for_all(fs, batch, f2fs::pages_of_levels(directory, levels))) {
    batch.entry_levels = levels;
  }
  batch.has_nat = reserve_for_all(fs, batch, f2fs::nat_blocks(fs.volume));
}

/// Files of a group at least, where there are so many: with 16 KiB each they fill 32 lanes.
inline constexpr uint32_t kFilesPerCreation = 8;

/// How many files of `count` a group has: a file a lane, but so few that every warp has some, and
/// that one operation of several side by side has room in the cache.
GOFS_HD inline uint32_t files_per_creation(simt::AnyWarp auto warp, const Filesystem& fs,
                                           uint32_t count, uint32_t warp_count) {
  constexpr uint32_t kPagesMax = f2fs::kPagesToMakeInode + 1 + 2 * 3;  // for each of many
  const uint32_t room = f2fs::detail::dirty_pages_max(fs.volume) / (2 * kPagesMax);
  const uint64_t share = simt::max(simt::divide_up(count, warp_count), uint64_t{kFilesPerCreation});
  // So many that no warp has a last group when most of the others are done.
  const uint64_t rounds = simt::divide_up(share, warp.size());
  const auto even = static_cast<uint32_t>(simt::divide_up(share, rounds));
  return simt::max(1u, simt::min(simt::min(warp.size(), even), room));
}

/// A lane's file, while it is made.
struct Creation {
  f2fs::EntryName name;
  uint32_t hash;  // format::name_hash() of it
  f2fs::NewContents contents;
  uint32_t ino;
  uint32_t generation;
  uint32_t* slot;  // in the table of the batch's names, where it has claimed its own
  int status;      // 0, a negative errno, kPending, or kClaimed

  static constexpr int kPending = 1;
  static constexpr int kClaimed = 2;  // another file of the batch has claimed the name
};

/// Whether this can be the name of a new file. One lane.
GOFS_HD inline int check_new_name(const char* name, f2fs::EntryName& entry) {
  uint32_t length = 0;
  while (length <= format::kNameBytesMax && name[length] != '\0') {
    if (name[length] == '/') return -EINVAL;
    ++length;
  }
  if (length > format::kNameBytesMax) return -ENAMETOOLONG;
  entry = {name, length};
  if (length == 0) return -ENOENT;
  return is_no_name(entry) ? -EEXIST : 0;
}

/// Makes the files of `lanes`, within an operation that has room for so many levels of the
/// directory. Collective. Returns, identical in all lanes: 0, or -ENOSPC where some are pending
/// still.
GOFS_NOINLINE GOFS_HD inline int create_pending(simt::AnyWarp auto warp, f2fs::Operation& op,
                                                Batch& batch, f2fs::Inode& directory,
                                                const f2fs::RoomLevels& levels, uint32_t lanes,
                                                const BatchCreation& creation, Creation& mine) {
  const uint32_t rank = warp.thread_rank();
  const bool pending = (lanes >> rank & 1u) != 0;
  f2fs::Adding how{levels, &batch.growth.locks, &batch.growth};
  f2fs::NewInode wanted{};
  wanted.mode = static_cast<uint16_t>(
      format::kModeRegular | (creation.permissions & uint32_t{format::kModePermissionMask}));
  wanted.name = mine.name;
  wanted.now = op.now;
  wanted.generation = mine.generation = new_generation(op.now);
  inherit(op.caller(), directory, wanted);
  int error = f2fs::make_files(warp, op, lanes, directory, wanted, mine.contents, mine.ino);
  const uint32_t made = warp.ballot(pending && error == 0);
  if (made != 0) {
    const f2fs::NewEntry entry{mine.name, mine.hash, {mine.ino, format::kTypeRegular}};
    const int entered = f2fs::add_entries(warp, op, directory, made, entry, how);
    if (pending && error == 0) error = entered;
    const uint32_t failed = warp.ballot((made >> rank & 1u) != 0 && error < 0);
    if (failed != 0) {
      f2fs::unmake_files(warp, op, failed, mine.ino, mine.contents.bytes);
    }
  }
  // Those that take another level of the directory have it in the next operation.
  if (pending && error != -ENOSPC && error != -EAGAIN) mine.status = error;
  return warp.any(pending && error == -ENOSPC) ? -ENOSPC : 0;
}

/// Makes the files of all lanes that are pending. Collective; their status says how it went.
GOFS_NOINLINE GOFS_HD inline void create_lanes(simt::AnyWarp auto warp, Filesystem& fs,
                                               Batch& batch, f2fs::Inode& directory,
                                               const BatchCreation& creation, Creation& mine) {
  bool single = false;  // for want of room: perhaps there is some for each alone
  for (;;) {
    const uint32_t pending = warp.ballot(mine.status == Creation::kPending);
    if (pending == 0) return;
    const uint32_t turn = single ? pending & (~pending + 1) : pending;
    int error = f2fs::catch_up(warp, fs.volume, directory, batch.growth);
    if (error == 0) {
      const f2fs::RoomLevels levels{simt::max(f2fs::levels_to_add(directory), batch.growth.spread),
                                    batch.growth.spread, batch.growth.old_blocks};
      const uint32_t pages = pages_to_create(batch, directory, simt::popcount(turn), levels.end);
      error = operate(warp, fs, {pages, batch.reserved}, [&](f2fs::Operation& op) {
        const uint32_t left = warp.ballot(mine.status == Creation::kPending) & turn;
        return left == 0 ? 0
                         : create_pending(warp, op, batch, directory, levels, left, creation, mine);
      });
    }
    if (error == 0) continue;
    if (error == -ENOSPC && !single && (turn & (turn - 1)) != 0) {
      single = true;
    } else if ((turn >> warp.thread_rank() & 1u) != 0 && mine.status == Creation::kPending) {
      mine.status = error;
    }
  }
}

/// Makes the empty files of all lanes that are pending, one after the other, with the access lists
/// that they inherit. Collective; their status says how it went.
GOFS_NOINLINE GOFS_HD inline void create_one_by_one(simt::AnyWarp auto warp, Filesystem& fs,
                                                    Batch& batch, const BatchCreation& creation,
                                                    Creation& mine) {
  const auto mode = static_cast<uint16_t>(
      format::kModeRegular | (creation.permissions & uint32_t{format::kModePermissionMask}));
  for (uint32_t left = warp.ballot(mine.status == Creation::kPending); left != 0;
       left &= left - 1) {
    const uint32_t owner = simt::lowest_bit(left);
    const uint64_t text = warp.shfl(reinterpret_cast<uint64_t>(mine.name.bytes), owner);
    const f2fs::EntryName name{reinterpret_cast<const char*>(text),
                               warp.shfl(mine.name.length, owner)};
    uint32_t ino = 0;
    f2fs::Inode made{};
    const int error =
        operate(warp, fs, kPagesToMakeFile + f2fs::kPagesToAddEntryMax, [&](f2fs::Operation& op) {
          int now = f2fs::lock_growth(warp, &batch.growth.locks);
          if (now < 0) return now;
          f2fs::Inode directory{};
          now = load_uniform(warp, fs, batch.directory_ino, directory);
          f2fs::EntryWay way{};
          if (now == 0) now = f2fs::find_free_name(warp, fs.volume, directory, name, 0, way.room);
          if (now == 0) {
            now = make_and_enter(warp, op, fs, directory, name, way, {mode, {}, nullptr, 0}, ino);
          }
          if (now == 0) now = load_uniform(warp, fs, ino, made);
          f2fs::unlock_growth(warp, &batch.growth.locks);
          return now;
        });
    if (warp.thread_rank() == owner) {
      mine.status = error;
      mine.ino = ino;
      mine.generation = made.generation;
    }
  }
}

/// Whether new files of the directory inherit an access list. Collective, uniform. 1, 0, or a
/// negative errno.
GOFS_HD inline int inherits_acl(simt::AnyWarp auto warp, Filesystem& fs,
                                const f2fs::Inode& directory) {
  InheritedAcl inherited{};
  uint16_t mode = 0;
  const int error = load_inherited(warp, fs, directory, mode, inherited);
  const int inherits = inherited.count != 0 ? 1 : 0;
  release_inherited(warp, fs, inherited);
  return error < 0 ? error : inherits;
}

/// Claims the names of lanes that have none, and answers those whose name another file has got.
/// Per lane.
GOFS_HD inline void claim_or_answer(const Filesystem& fs, const Batch& batch,
                                    const BatchCreation& creation, uint32_t index, Creation& file) {
  if (file.status != Creation::kClaimed) return;
  const NameClaim claim =
      claim_name(*fs.batches, batch, creation.names, index, file.name, file.hash);
  if (claim.seen == 0) {
    file.slot = claim.slot;
    file.status = Creation::kPending;
  } else if ((claim.seen & kNameMade) != 0) {
    file.status = -EEXIST;
  }
}

/// Makes the files of all lanes that are not answered yet, those first whose names no other lane
/// has. `inherits` is what inherits_acl() says. Collective; their status says how it went.
GOFS_NOINLINE GOFS_HD inline void create_claimed(simt::AnyWarp auto warp, Filesystem& fs,
                                                 Batch& batch, f2fs::Inode& directory,
                                                 const BatchCreation& creation, uint32_t index,
                                                 int inherits, Creation& file) {
  const simt::Deadline deadline = simt::Deadline::after_ns(fs.lock_timeout_ns);
  simt::Backoff backoff;
  for (;;) {
    claim_or_answer(fs, batch, creation, index, file);
    const bool mine = file.status == Creation::kPending;
    if (!warp.any(mine || file.status == Creation::kClaimed)) return;
    if (!warp.any(mine)) {
      // Others are about to make theirs, and do not wait for us: ours are settled.
      if (warp.any(deadline.passed())) {
        if (file.status == Creation::kClaimed) file.status = -EBUSY;
        return;
      }
      backoff.pause();
      continue;
    }
    if (inherits == 0) {
      create_lanes(warp, fs, batch, directory, creation, file);
    } else {
      create_one_by_one(warp, fs, batch, creation, file);
    }
    if (mine) settle_name(file.slot, index, file.status == 0 || file.status == -EEXIST);
  }
}

/// Writes what a file that was made empty is to hold. That is part of making it, so what a write
/// takes from its mode is put back. Collective, uniform; errors are left in the entry.
GOFS_NOINLINE GOFS_HD inline void write_new_file(simt::AnyWarp auto warp, Filesystem& fs,
                                                 BatchEntry& entry, const uint8_t* source,
                                                 uint64_t bytes) {
  f2fs::Inode inode{};
  const uint32_t ino = entry.ino;
  int error = load_uniform(warp, fs, ino, inode);
  const uint32_t setid = error == 0 ? setid_of(credentials_of(warp, fs), inode) : 0;
  (void)write_batch_file(warp, fs, entry, source, bytes);
  if (error == 0 && setid != 0 && credentials_of(warp, fs).uid != 0) {
    error = operate(warp, fs, 1, [&](f2fs::Operation& op) {
      f2fs::AttributeChange change{};
      const int loaded = load_uniform(warp, fs, ino, inode);
      change.mask = f2fs::kSetPermissions;
      change.permissions =
          static_cast<uint16_t>((inode.mode & format::kModePermissionMask) | setid);
      change.changed = op.now;
      return loaded < 0 ? loaded : apply_change(warp, op, ino, change);
    });
  }
  if (error < 0 && warp.thread_rank() == 0 && entry.error == 0) entry.error = error;
  warp.sync();
}

/// Makes `group` files of the batch from `first` on. `inherits` is what inherits_acl() says.
/// Collective. Errors are per file.
GOFS_NOINLINE GOFS_HD inline void create_group(simt::AnyWarp auto warp, Filesystem& fs,
                                               Batch& batch, f2fs::Inode& directory,
                                               const BatchCreation& creation, uint32_t first,
                                               uint32_t group, int inherits) {
  const uint32_t rank = warp.thread_rank();
  const uint32_t index = first + rank;
  const bool mine = rank < group && index < creation.count;
  Creation file{};
  bool later = false;  // to be written when it was made
  if (mine) {
    const char* const name = creation.names[index];  // all warps look at all of them
    file.status = simt::is_common_source(name) ? check_new_name(name, file.name) : -EFAULT;
    if (file.status == 0) {
      file.hash = format::name_hash(file.name.bytes, file.name.length);
      file.status = Creation::kClaimed;
    }
    if (creation.buffer != nullptr) {
      file.contents = {creation.buffer + creation.offsets[index], creation.bytes[index]};
    }
    const format::InodeLayout layout = f2fs::detail::new_inode_layout(fs.volume);
    later = inherits != 0 || file.contents.bytes > uint64_t{layout.slot_count} << kBlockShift;
    if (later) file.contents = {};
    if (inherits < 0) file.status = inherits;
  }
  create_claimed(warp, fs, batch, directory, creation, index, inherits, file);
  if (mine) {
    BatchEntry entry{};
    entry.error = file.status;
    entry.ino = file.status == 0 ? file.ino : 0;
    entry.generation = file.generation;
    entry.created = true;
    entry.size_bytes = file.contents.bytes;
    entry.kind = BatchEntryKind::kGeneral;
    fs.batches->files[batch.first + index] = entry;
  }
  warp.sync();
  for (uint32_t left = warp.ballot(mine && file.status == 0 && later); left != 0;
       left &= left - 1) {
    const uint32_t which = first + simt::lowest_bit(left);
    if (creation.buffer == nullptr || creation.bytes[which] == 0) continue;
    write_new_file(warp, fs, fs.batches->files[batch.first + which],
                   creation.buffer + creation.offsets[which], creation.bytes[which]);
  }
}

/// Bytes of the blocks that the contents of all files take. Collective, uniform.
GOFS_NOINLINE GOFS_HD inline uint64_t bytes_to_store(simt::AnyWarp auto warp,
                                                     const BatchCreation& creation) {
  if (creation.buffer == nullptr) return 0;
  constexpr uint32_t kAtOnce = 16;  // loads under way: one after the other, they take 0.3 us each
  uint64_t blocks = 0;
  const uint32_t width = warp.size();
  for (uint64_t first = warp.thread_rank(); first < creation.count; first += kAtOnce * width) {
    uint64_t sizes[kAtOnce];
    for (uint32_t i = 0; i < kAtOnce; ++i) {
      const uint64_t index = first + i * width;
      sizes[i] = index < creation.count ? creation.bytes[index] : 0;
    }
    for (const uint64_t bytes : sizes) blocks += simt::divide_up(bytes, uint64_t{kBlockBytes});
  }
  return simt::reduce_add(warp, blocks) << kBlockShift;
}

/// What entering the names of a new batch begins with, under the lock of the directory. Collective,
/// uniform. 0 or a negative errno.
GOFS_NOINLINE GOFS_HD inline int begin_growth(simt::AnyWarp auto warp, Filesystem& fs, Batch& batch,
                                              f2fs::Inode& directory, uint32_t count) {
  const int empty =
      directory.has_inline_dentries() ? f2fs::is_empty_directory(warp, fs.volume, directory) : 0;
  if (empty < 0) return empty;
  if (warp.thread_rank() == 0) {
    batch.growth = f2fs::growth_of(directory, count, empty != 0);
    reserve_shared_pages(fs, batch, directory);
  }
  warp.sync();
  const uint32_t levels = batch.growth.spread;
  if (levels <= simt::max(directory.dir_depth, 1u) || levels > batch.entry_levels) return 0;
  const uint64_t first = f2fs::first_new_block(directory);
  const int error = operate(warp, fs, {0, batch.reserved}, [&](f2fs::Operation& op) {
    return f2fs::move_out_entries(warp, op, directory, batch.growth);
  });
  if (error < 0) return 0;  // it comes, or fails, with the names
  if (warp.thread_rank() == 0) {
    batch.ahead_first = first;
    // Its levels may have become wider when its entries left the inode, or narrower.
    batch.ahead_end = format::dir_level_start(levels, directory.dir_level);
  }
  warp.sync();
  return 0;
}

/// Makes blocks of the directory before the names come, a block a lane. Collective; warps 0 to
/// `warp_count` - 1 do it together.
GOFS_NOINLINE GOFS_HD inline void make_room_ahead(simt::AnyWarp auto warp, Filesystem& fs,
                                                  Batch& batch, uint32_t warp_index,
                                                  uint32_t warp_count) {
  const uint64_t step = uint64_t{warp_count} * warp.size();
  uint64_t first = batch.ahead_first + uint64_t{warp_index} * warp.size();
  if (first >= batch.ahead_end) return;
  f2fs::Inode directory{};
  int error = load_uniform(warp, fs, batch.directory_ino, directory);
  // Those that are missing in the end come, or fail, with their names.
  for (; first < batch.ahead_end && error == 0; first += step) {
    error = operate(warp, fs, {0, batch.reserved}, [&](f2fs::Operation& op) {
      const f2fs::Adding how{f2fs::room_in_levels(batch.growth.spread), &batch.growth.locks,
                             &batch.growth};
      return f2fs::prealloc_dentry_blocks(warp, op, directory, first, how);
    });
  }
}

}  // namespace detail

/// Opens a batch for the files of `creation` and holds their directory exclusively. Collective,
/// uniform, by one warp. A batch descriptor, for the other two steps; or a negative errno: what
/// resolve() says, -ENOTDIR, -EACCES, -EPERM, -EROFS, -EMFILE, -ENOMEM, -EBUSY.
GOFS_NOINLINE GOFS_HD inline int begin_creation(simt::AnyWarp auto warp, Filesystem& fs,
                                                const BatchCreation& creation) {
  run_foreground_gc(warp, fs, detail::bytes_to_store(warp, creation));
  return reading_paths(warp, fs, [&]() -> int {
    f2fs::Inode directory{};
    int error = resolve(warp, fs, creation.path, LastLink::kFollow, directory);
    if (error == 0 && !directory.is_directory()) error = -ENOTDIR;
    if (error == 0) error = f2fs::check_supported(directory);
    if (error == 0 && fs.writer == nullptr) error = -EROFS;
    if (error < 0) return error;
    const uint32_t ino = directory.ino;
    error = lock_inode(warp, fs, ino);
    if (error < 0) return error;
    error = detail::load_uniform(warp, fs, ino, directory);
    if (error == 0) error = detail::may_change_names(warp, fs, directory);
    int bd = error < 0 ? error
                       : detail::take_batch(warp, *fs.batches, directory, creation.count, nullptr);
    if (bd >= 0) {
      Batch& batch = fs.batches->batches[bd];
      error = detail::begin_growth(warp, fs, batch, directory, creation.count);
      if (error < 0) (void)end_batch(warp, *fs.batches, bd);
      if (error < 0) bd = error;
    }
    if (bd < 0) unlock_inode(warp, fs, ino);
    return bd;
  });
}

/// Makes room for the names of the files. Collective; warps 0 to `warp_count` - 1 do it together.
GOFS_NOINLINE GOFS_HD inline void prepare_creation(simt::AnyWarp auto warp, Filesystem& fs,
                                                   Batch& batch, uint32_t warp_index,
                                                   uint32_t warp_count) {
  detail::clear_names(warp, *fs.batches, batch, warp_index, warp_count);
  detail::make_room_ahead(warp, fs, batch, warp_index, warp_count);
}

/// Makes the files. Collective; warps 0 to `warp_count` - 1 do it together, with the same
/// arguments. A file that cannot be made has its error in its BatchEntry: -EEXIST (the name is
/// there, or another file of the batch has it), -ENOENT (no name), -EINVAL (a name with a slash),
/// -ENAMETOOLONG, -ENOSPC, what the device says. What comes with contents is there wholly or not at
/// all, also after a crash, if it fits in the addresses of an inode (some 3.6 MiB). Seen by others
/// at once, durable after sync().
GOFS_NOINLINE GOFS_HD inline void create_batch(simt::AnyWarp auto warp, Filesystem& fs,
                                               Batch& batch, const BatchCreation& creation,
                                               uint32_t warp_index, uint32_t warp_count) {
  const uint32_t group = detail::files_per_creation(warp, fs, creation.count, warp_count);
  f2fs::Inode directory{};
  const int error = detail::load_uniform(warp, fs, batch.directory_ino, directory);
  const int inherits = error < 0 ? error : detail::inherits_acl(warp, fs, directory);
  for (uint32_t first = warp_index * group; first < creation.count; first += warp_count * group) {
    detail::create_group(warp, fs, batch, directory, creation, first, group, inherits);
  }
}

/// Lets the directory of a batch go whose files were made. Collective, by one warp.
GOFS_HD inline void end_creation(simt::AnyWarp auto warp, Filesystem& fs, const Batch& batch) {
  if (warp.thread_rank() == 0) f2fs::detail::release_pages(*fs.writer, batch.reserved);
  unlock_inode(warp, fs, batch.directory_ino);
}

}  // namespace gofs::vfs
