// SPDX-License-Identifier: Apache-2.0
//
// Many new files of one directory as a batch (batch.h). The work is cut so that any number of warps
// can share it; between the steps the callers synchronise:
//
//   begin_creation   one warp     the directory, which is the batch's alone from then on, and room
//   create_batch     many warps   the files
//   end_creation     one warp     lets the directory go
//
// Each warp makes groups of files, a file a lane, with their contents (f2fs/make_files.h), which is
// what takes the time and goes side by side, and enters their names, which one warp after the other
// does.
//
// A file whose contents need more addresses than an inode has, or that inherits an access list, is
// made empty, and written then as batch_write.h does.
#pragma once

#include "f2fs/change_directory.h"
#include "f2fs/make_files.h"
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

/// Files that one operation makes at most: with 16 KiB each they fill a warp's 32 lanes.
inline constexpr uint32_t kFilesPerCreation = 8;
/// Pages that it changes for each of them: the inode, and what entering it takes in a large
/// directory.
inline constexpr uint32_t kPagesPerCreation = f2fs::kPagesToMakeInode + 1 + f2fs::pages_to_grow(1);

/// How many files a group has, so that one operation of many side by side has room in the cache.
GOFS_HD inline uint32_t files_per_creation(simt::AnyWarp auto warp, const Filesystem& fs) {
  const uint32_t room = f2fs::detail::dirty_pages_max(fs.volume.cache) / (2 * kPagesPerCreation);
  return simt::max(1u, simt::min(simt::min(warp.size(), kFilesPerCreation), room));
}

/// A lane's file, while it is made.
struct Creation {
  f2fs::EntryName name;
  f2fs::NewContents contents;
  uint32_t ino;
  int status;  // 0, a negative errno, or kPending

  static constexpr int kPending = 1;
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

/// Takes the word that those who enter names of the batch share, inside the gate: who has it waits
/// for nothing but the device. Collective, uniform. 0 or -EBUSY.
GOFS_HD inline int lock_entries(simt::AnyWarp auto warp, Filesystem& fs, Batch& batch) {
  const simt::Deadline deadline = simt::Deadline::after_ns(fs.lock_timeout_ns);
  return wait_for_lock(warp, batch.entries, deadline) ? 0 : -EBUSY;
}

/// Collective.
GOFS_HD inline void unlock_entries(simt::AnyWarp auto warp, Batch& batch) {
  warp.sync();
  if (warp.thread_rank() == 0) simt::unlock(batch.entries);
}

/// Enters the new files of `lanes`, one after the other. Collective. Per lane 0 or a negative
/// errno.
GOFS_NOINLINE GOFS_HD inline int enter_files(simt::AnyWarp auto warp, Filesystem& fs, Batch& batch,
                                             uint32_t lanes, const Creation& mine,
                                             const f2fs::TimeStamp& now) {
  int answer = lock_entries(warp, fs, batch);
  if (answer < 0) return answer;
  f2fs::Inode directory{};
  answer = load_uniform(warp, fs, batch.directory_ino, directory);
  for (uint32_t left = answer == 0 ? lanes : 0; left != 0; left &= left - 1) {
    const uint32_t owner = simt::lowest_bit(left);
    const uint64_t text = warp.shfl(reinterpret_cast<uint64_t>(mine.name.bytes), owner);
    const f2fs::EntryName name{reinterpret_cast<const char*>(text),
                               warp.shfl(mine.name.length, owner)};
    const uint32_t ino = warp.shfl(mine.ino, owner);
    int error = find_free_name(warp, fs, directory, name);
    if (error == 0) {
      error = f2fs::add_entry(warp, fs.volume, *fs.writer, directory, name,
                              {ino, format::kTypeRegular}, now);
    }
    if (warp.thread_rank() == owner) answer = error;
  }
  unlock_entries(warp, batch);
  return answer;
}

/// Makes the files of the lanes that are pending, within an operation. Collective. Uniform answer:
/// 0, or -ENOSPC where some are pending still.
GOFS_NOINLINE GOFS_HD inline int create_pending(simt::AnyWarp auto warp, Filesystem& fs,
                                                Batch& batch, uint32_t lanes,
                                                const BatchCreation& creation, Creation& mine) {
  const uint32_t rank = warp.thread_rank();
  const bool pending = (lanes >> rank & 1u) != 0;
  f2fs::Volume& volume = fs.volume;
  f2fs::Inode directory{};
  const int loaded = load_uniform(warp, fs, batch.directory_ino, directory);
  if (loaded < 0) {
    if (pending) mine.status = loaded;
    return 0;
  }
  f2fs::NewInode wanted{};
  wanted.mode = static_cast<uint16_t>(
      format::kModeRegular | (creation.permissions & uint32_t{format::kModePermissionMask}));
  wanted.name = mine.name;
  wanted.now = time_now(fs);
  wanted.generation = new_generation(wanted.now);
  inherit(fs.credentials, directory, wanted);
  int error = f2fs::make_files(warp, volume, *fs.writer, fs.pool, lanes, directory, wanted,
                               mine.contents, mine.ino);
  const uint32_t made = warp.ballot(pending && error == 0);
  if (made != 0) {
    const int entered = enter_files(warp, fs, batch, made, mine, wanted.now);
    if (pending && error == 0) error = entered;
    const uint32_t failed = warp.ballot((made >> rank & 1u) != 0 && error < 0);
    if (failed != 0) {
      f2fs::unmake_files(warp, volume, *fs.writer, failed, mine.ino, mine.contents.bytes);
    }
  }
  if (pending && error != -ENOSPC) mine.status = error;
  return warp.any(pending && error == -ENOSPC) ? -ENOSPC : 0;
}

/// Makes the files of all lanes that are pending. Collective; their status says how it went.
GOFS_NOINLINE GOFS_HD inline void create_lanes(simt::AnyWarp auto warp, Filesystem& fs,
                                               Batch& batch, const BatchCreation& creation,
                                               Creation& mine) {
  bool single = false;  // for want of room: perhaps there is some for each alone
  for (;;) {
    const uint32_t pending = warp.ballot(mine.status == Creation::kPending);
    if (pending == 0) return;
    const uint32_t turn = single ? pending & (~pending + 1) : pending;
    const int error = operate(warp, fs, kPagesPerCreation * simt::popcount(turn), [&] {
      const uint32_t left = warp.ballot(mine.status == Creation::kPending) & turn;
      return left == 0 ? 0 : create_pending(warp, fs, batch, left, creation, mine);
    });
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
    const int error = operate(warp, fs, kPagesToMakeFile + kPagesPerCreation, [&] {
      const int locked = lock_entries(warp, fs, batch);
      if (locked < 0) return locked;
      f2fs::Inode directory{};
      int made = load_uniform(warp, fs, batch.directory_ino, directory);
      if (made == 0) made = find_free_name(warp, fs, directory, name);
      if (made == 0) {
        made = make_and_enter(warp, fs, directory, name, {mode, {}, nullptr, 0}, ino);
      }
      unlock_entries(warp, batch);
      return made;
    });
    if (warp.thread_rank() == owner) {
      mine.status = error;
      mine.ino = ino;
    }
  }
}

/// Whether new files of the directory inherit an access list. Collective, uniform. 1, 0, or a
/// negative errno.
GOFS_HD inline int inherits_acl(simt::AnyWarp auto warp, Filesystem& fs, uint32_t ino) {
  f2fs::Inode directory{};
  int error = load_uniform(warp, fs, ino, directory);
  if (error < 0) return error;
  InheritedAcl inherited{};
  uint16_t mode = 0;
  error = load_inherited(warp, fs, directory, mode, inherited);
  const int inherits = inherited.count != 0 ? 1 : 0;
  give_back_inherited(warp, fs, inherited);
  return error < 0 ? error : inherits;
}

/// Makes `group` files of the batch from `first` on. Collective. Errors are per file.
GOFS_NOINLINE GOFS_HD inline void create_group(simt::AnyWarp auto warp, Filesystem& fs,
                                               Batch& batch, const BatchCreation& creation,
                                               uint32_t first, uint32_t group, int inherits) {
  const uint32_t rank = warp.thread_rank();
  const uint32_t index = first + rank;
  const bool mine = rank < group && index < creation.count;
  Creation file{};
  bool later = false;  // to be written when it was made
  if (mine) {
    file.status = check_new_name(creation.names[index], file.name);
    if (file.status == 0) file.status = Creation::kPending;
    if (creation.buffer != nullptr) {
      file.contents = {creation.buffer + creation.offsets[index], creation.bytes[index]};
    }
    const format::InodeLayout layout = f2fs::detail::new_inode_layout(fs.volume);
    later = inherits != 0 || file.contents.bytes > uint64_t{layout.slot_count} << kBlockShift;
    if (later) file.contents = {};
    if (inherits < 0) file.status = inherits;
  }
  if (inherits == 0) {
    create_lanes(warp, fs, batch, creation, file);
  } else {
    create_one_by_one(warp, fs, batch, creation, file);
  }
  f2fs::Inode inode{};
  const uint32_t made = warp.ballot(mine && file.status == 0);
  const int loaded = f2fs::load_inodes(warp, fs.volume, made, file.ino, inode);
  if (mine) {
    BatchFile entry{};
    entry.error = file.status == 0 ? loaded : file.status;
    entry.ino = file.status == 0 ? file.ino : 0;
    entry.generation = inode.generation;
    entry.created = true;
    entry.size_bytes = file.contents.bytes;
    entry.kind = BatchFileKind::kGeneral;
    fs.batches->files[batch.first + index] = entry;
  }
  warp.sync();
  for (uint32_t left = warp.ballot(mine && file.status == 0 && later); left != 0;
       left &= left - 1) {
    const uint32_t which = first + simt::lowest_bit(left);
    if (creation.buffer == nullptr || creation.bytes[which] == 0) continue;
    (void)write_batch_file(warp, fs, fs.batches->files[batch.first + which],
                           creation.buffer + creation.offsets[which], creation.bytes[which]);
  }
}

}  // namespace detail

/// Opens a batch for the files of `creation` and has their directory for itself. Collective,
/// uniform, by one warp. A batch descriptor, for the other two steps; or a negative errno: what
/// resolve() says, -ENOTDIR, -EACCES, -EPERM, -EROFS, -EMFILE, -ENOMEM, -EBUSY.
GOFS_NOINLINE GOFS_HD inline int begin_creation(simt::AnyWarp auto warp, Filesystem& fs,
                                                const BatchCreation& creation) {
  uint64_t bytes = 0;
  if (creation.buffer != nullptr) {
    for (uint32_t i = warp.thread_rank(); i < creation.count; i += warp.size()) {
      bytes += simt::align_up(creation.bytes[i], uint64_t{kBlockBytes});
    }
  }
  make_space(warp, fs, simt::reduce_add(warp, bytes));
  return walking(warp, fs, [&]() -> int {
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
    const int bd =
        error < 0 ? error : detail::take_batch(warp, *fs.batches, ino, creation.count, nullptr);
    if (bd < 0) unlock_inode(warp, fs, ino);
    return bd;
  });
}

/// Makes the files. Collective; warps 0 to `warp_count` - 1 do it together, with the same
/// arguments. A file that cannot be made has its error in its BatchFile: -EEXIST, -ENOENT (no
/// name), -EINVAL (a name with a slash), -ENAMETOOLONG, -ENOSPC, what the device says. What comes
/// with contents is there wholly or not at all, also after a crash, if it fits in the addresses of
/// an inode (some 3.6 MiB). Seen by others at once, durable after sync().
GOFS_NOINLINE GOFS_HD inline void create_batch(simt::AnyWarp auto warp, Filesystem& fs,
                                               Batch& batch, const BatchCreation& creation,
                                               uint32_t warp_index, uint32_t warp_count) {
  const uint32_t group = detail::files_per_creation(warp, fs);
  const int inherits = detail::inherits_acl(warp, fs, batch.directory_ino);
  for (uint32_t first = warp_index * group; first < creation.count; first += warp_count * group) {
    detail::create_group(warp, fs, batch, creation, first, group, inherits);
  }
}

/// Lets the directory of a batch go whose files were made. Collective, by one warp.
GOFS_HD inline void end_creation(simt::AnyWarp auto warp, Filesystem& fs, const Batch& batch) {
  unlock_inode(warp, fs, batch.directory_ino);
}

}  // namespace gofs::vfs
