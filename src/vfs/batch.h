// SPDX-License-Identifier: Apache-2.0
//
// Many files of one directory as one object, the batch node of GoFS (SOSP'25, section 3.3). Opening
// reads names, NAT and inodes in bulk; reading then needs no lookup, no lock and, for a file of one
// or two runs of blocks, no metadata at all: 40 bytes a file are kept.
//
// The work is cut so that any number of warps can share it; between the steps the callers
// synchronise:
//
//   begin_batch   one warp       the directory, and room for the files
//   survey_batch  many warps     counts the regular files of the directory (batch_list.h), and
//   list_batch    many warps     enters them in the order of readdir; or
//   find_batch    many warps     enters the files of a list of names
//   load_batch    many warps     inodes
//   read_batch    many warps     data; again and again
//   end_batch     one warp
//
// batch_create.h makes files as a batch, batch_write.h writes those of one.
#pragma once

#include "f2fs/add_entries.h"
#include "f2fs/victims.h"
#include "simt/address_space.h"
#include "vfs/by_number.h"
#include "vfs/read.h"

namespace gofs::vfs {

inline constexpr uint32_t kBatchRuns = 2;
inline constexpr uint32_t kBatchGroupFiles = 8;  // that a warp reads together

enum class BatchEntryKind : uint8_t {
  kRuns,     // all blocks are in `runs`
  kGeneral,  // has an inode to ask
};

/// What a batch keeps of a file.
struct BatchEntry {
  uint32_t ino;  // 0: the name was not found, or is no regular file; `error` says which
  int error;     // of this file: 0 or a negative errno
  uint64_t size_bytes;
  struct {
    uint32_t block;
    uint32_t count;
  } runs[kBatchRuns];
  BatchEntryKind kind;
  bool created;         // by the batch
  uint32_t generation;  // of the inode
};
static_assert(sizeof(BatchEntry) == 40);

/// What callers get of it.
GOFS_HD inline BatchFile file_of(const BatchEntry& entry) {
  return {entry.size_bytes, entry.ino, entry.error, entry.created && entry.ino != 0, 0};
}

/// Bit of Batch::taken: it is being opened, or closed, and nobody may use it.
inline constexpr uint32_t kBatchHidden = 1u << 31;

/// An open batch: `count` files from `first` on in the table.
struct alignas(64) Batch {
  uint32_t taken;  // 0, or owner_of_client(), perhaps with kBatchHidden [V25]
  uint32_t first;
  uint32_t count;  // listing a directory may lower it, which gives the rest of the room to others
  uint32_t room;   // what `count` was at the beginning
  uint32_t directory_ino;
  uint32_t directory_generation;
  int error;                     // of the batch as a whole
  f2fs::DirectoryGrowth growth;  // of who enters names of files that are made (batch_names.h)
  uint64_t ahead_first;          // blocks of the directory that are made before the names come,
  uint64_t ahead_end;            // up to this one
  uint32_t reserved;             // pages, for what all who make files change (batch_create.h):
  uint32_t entry_levels;         // so many levels of the directory,
  bool has_nat;                  // and the NAT
  f2fs::Writer* holder;          // where it is counted as an address reader; null: it is none
  uint32_t users;                // calls that hold it (batch_calls.h) [V25]
};

/// Where the files of a client's batch come from.
enum class BatchSource : uint32_t {
  kNames,      // they are entered by their names
  kDirectory,  // they are those of the directory, at most `count`
  kNewFiles,   // they are made by other calls, and entered by their names
};

using gofs::kBatchesMax;
inline constexpr uint32_t kBatchPartsMax = 1024;  // of a directory, each listed by one warp

/// What survey_batch found in one part of a directory, in order of its entries.
struct BatchPart {
  uint32_t files;  // regular ones, at most the batch's room
  uint32_t sound;  // how many of them come before the first damage; all if there is none
  int error;       // of the damage; 0: there is none
};

struct BatchTable {
  uint32_t lock;
  uint32_t capacity;  // files of all batches together
  BatchEntry* files;
  BatchPart* parts;      // scratch, kBatchPartsMax for each batch: 12 KiB
  uint32_t* name_slots;  // kNameSlotsPerFile for each of `files` (batch_names.h)
  Batch batches[kBatchesMax];
};

/// The open batch `bd` of `client`, or null.
GOFS_HD inline Batch* find_batch_descriptor(BatchTable& table, int bd,
                                            uint32_t client = kMountClient) {
  if (bd < 0 || bd >= static_cast<int>(kBatchesMax)) return nullptr;
  Batch& batch = table.batches[bd];
  return simt::load_acquire(batch.taken) == owner_of_client(client) ? &batch : nullptr;
}

namespace detail {

/// Finds room for a batch of `count` files between the other batches. By one lane, under the
/// table's lock, which takes the batch then.
GOFS_HD inline int place_batch(BatchTable& table, uint32_t count) {
  int free_batch = -EMFILE;
  for (uint32_t i = 0; i < kBatchesMax && free_batch < 0; ++i) {
    if (simt::load_relaxed(table.batches[i].taken) == 0) free_batch = static_cast<int>(i);
  }
  if (free_batch < 0) return free_batch;
  // First fit: after the start, or after some other batch.
  for (uint32_t candidate = 0; candidate <= kBatchesMax; ++candidate) {
    uint64_t first = 0;
    if (candidate < kBatchesMax) {
      const Batch& before = table.batches[candidate];
      if (simt::load_relaxed(before.taken) == 0) continue;
      first = uint64_t{before.first} + before.count;
    }
    bool fits = first + count <= table.capacity;
    for (uint32_t i = 0; i < kBatchesMax && fits; ++i) {
      const Batch& other = table.batches[i];
      fits = simt::load_relaxed(other.taken) == 0 || first + count <= other.first ||
             first >= uint64_t{other.first} + other.count;
    }
    if (fits) {
      Batch& batch = table.batches[free_batch];
      batch.first = static_cast<uint32_t>(first);
      batch.count = batch.room = count;
      batch.error = 0;
      batch.growth = {};
      batch.ahead_first = batch.ahead_end = 0;
      batch.reserved = batch.entry_levels = 0;
      batch.has_nat = false;
      return free_batch;
    }
  }
  return -ENOMEM;
}

/// Takes a batch of `count` files of `directory`, an address reader if there is a `holder`;
/// `hidden`: 0 or kBatchHidden. Collective, uniform. Its descriptor, -EMFILE or -ENOMEM.
GOFS_HD inline int take_batch(simt::AnyWarp auto warp, BatchTable& table,
                              const f2fs::Inode& directory, uint32_t count, f2fs::Writer* holder,
                              uint32_t hidden = 0) {
  int bd = 0;
  if (warp.thread_rank() == 0) {
    if (holder != nullptr) f2fs::enter_address_readers(*holder);
    lock_table(table.lock);
    bd = place_batch(table, count);
    if (bd >= 0) {
      Batch& batch = table.batches[bd];
      batch.directory_ino = directory.ino;
      batch.directory_generation = directory.generation;
      batch.holder = holder;
      simt::store_release(batch.taken, owner_of_client(client_of(warp)) | hidden);
    }
    simt::unlock(table.lock);
    if (bd < 0 && holder != nullptr) f2fs::leave_address_readers(*holder);
  }
  bd = warp.shfl(bd, 0);
  warp.sync();
  return bd;
}

}  // namespace detail

namespace detail {

/// Finds the directory of a batch whose files are to be read. Collective, uniform. What resolve()
/// gives, -ENOTDIR, -EACCES.
GOFS_NOINLINE GOFS_HD inline int find_batch_directory(simt::AnyWarp auto warp, Filesystem& fs,
                                                      const char* path, f2fs::Inode& directory) {
  return reading_paths(warp, fs, [&]() -> int {
    int found = resolve(warp, fs, path, LastLink::kFollow, directory);
    if (found == 0 && !directory.is_directory()) found = -ENOTDIR;
    if (found == 0) found = check_permission(warp, fs, directory, kMayRead | kMayExecute);
    return found == 0 ? f2fs::check_supported(directory) : found;
  });
}

/// Gives the room of a batch to others, whose owner has hidden it. By one lane.
GOFS_HD inline void release_batch(BatchTable& table, Batch& batch) {
  // Who came before it was hidden; each call comes to an end.
  simt::Backoff backoff;
  while (simt::look_after_add(batch.users) != 0) backoff.pause();  // [V25]
  if (batch.holder != nullptr) f2fs::leave_address_readers(*batch.holder);
  lock_table(table.lock);
  simt::store_release(batch.taken, 0u);
  simt::unlock(table.lock);
}

}  // namespace detail

/// Opens a batch for `count` files of `path`. Collective, uniform, by one warp. A batch descriptor
/// or a negative errno: what resolve() gives, -ENOTDIR, -EACCES, -EMFILE, -ENOMEM.
GOFS_NOINLINE GOFS_HD inline int begin_batch(simt::AnyWarp auto warp, Filesystem& fs,
                                             BatchTable& table, const char* path, uint32_t count) {
  f2fs::Inode directory{};
  const int error = detail::find_batch_directory(warp, fs, path, directory);
  if (error < 0) return error;
  return detail::take_batch(warp, table, directory, count, fs.writer);
}

/// Closes a batch, after the calls that hold it have ended. Collective, uniform, by one warp.
GOFS_HD inline int end_batch(simt::AnyWarp auto warp, BatchTable& table, int bd) {
  warp.sync();
  int error = 0;
  if (warp.thread_rank() == 0) {
    lock_table(table.lock);
    Batch* const batch = find_batch_descriptor(table, bd, client_of(warp));
    if (batch != nullptr) simt::add_before_look(batch->taken, kBatchHidden);  // [V25]
    simt::unlock(table.lock);
    if (batch != nullptr) {
      detail::release_batch(table, *batch);
    } else {
      error = -EBADF;
    }
  }
  return warp.shfl(error, 0);
}

namespace detail {

/// Loads the directory of a batch. Collective, uniform, while reading paths. 0, or a negative
/// errno: -ESTALE where it has been removed.
GOFS_HD inline int load_batch_directory(simt::AnyWarp auto warp, Filesystem& fs, const Batch& batch,
                                        f2fs::Inode& directory) {
  return simt::first_error(warp, load_known(warp, fs, warp.ballot(true), batch.directory_ino,
                                            batch.directory_generation, directory));
}

/// Finds the regular file `name`, which all lanes reach, in the directory of a batch. Collective,
/// uniform. 0, or what is wrong with the file.
GOFS_NOINLINE GOFS_HD inline int find_batch_file(simt::AnyWarp auto warp, Filesystem& fs,
                                                 const Batch& batch, const char* name,
                                                 uint32_t& ino) {
  NameTarget target{};
  const int length = path_length(warp, name);
  if (length == 0) return -ENOENT;
  if (length < 0 || length > static_cast<int>(format::kNameBytesMax)) return -ENAMETOOLONG;
  const int error = reading_paths(warp, fs, [&]() -> int {
    f2fs::Inode directory{};
    const int loaded = load_batch_directory(warp, fs, batch, directory);
    if (loaded < 0) return loaded;
    return look_up(warp, fs, directory, name, static_cast<uint32_t>(length), target);
  });
  if (error < 0) return error;
  if (target.type != format::kTypeRegular) {
    return target.type == format::kTypeDirectory ? -EISDIR : -EINVAL;
  }
  ino = target.ino;
  return 0;
}

}  // namespace detail

/// Enters the files `names` (NUL-terminated, `batch.count` of them). Collective; warps 0 to
/// `warp_count` - 1 do it together. Errors are per file.
GOFS_NOINLINE GOFS_HD inline void find_batch(simt::AnyWarp auto warp, Filesystem& fs,
                                             BatchTable& table, Batch& batch,
                                             const char* const* names, uint32_t warp_index,
                                             uint32_t warp_count) {
  for (uint32_t index = warp_index; index < batch.count; index += warp_count) {
    const char* const name = names[index];
    uint32_t ino = 0;
    // All warps look at all names.
    const int error = simt::is_common_source(name)
                          ? detail::find_batch_file(warp, fs, batch, name, ino)
                          : -EFAULT;
    if (warp.thread_rank() == 0) {
      BatchEntry& file = table.files[batch.first + index];
      file.ino = ino;
      file.error = error;
    }
  }
}

namespace detail {

/// Reads the inode of the lane's file: fills `file`, of which number and error are known. Lanes
/// that are not in `lanes` have none. Collective. Errors are per file.
GOFS_NOINLINE GOFS_HD inline void load_batch_files(simt::AnyWarp auto warp, Filesystem& fs,
                                                   uint32_t lanes, BatchEntry& file) {
  const uint32_t bit = 1u << warp.thread_rank();
  const uint32_t ino = file.ino;
  f2fs::Inode inode{};
  BatchEntry loaded{};
  // Runs, if they are few and all addresses are in the inode.
  const auto note_runs = [&](const format::NodeBlock& node) {
    const uint64_t blocks = inode.size_blocks();
    bool simple = !inode.has_inline_data() && blocks <= inode.slot_count;
    uint32_t run = 0;
    for (uint32_t i = 0; i < blocks && simple; ++i) {
      const uint32_t block = f2fs::load_address(&node.inode.i_addr[inode.extra_words + i]);
      simple = fs.volume.is_main_block(block);
      auto& current = loaded.runs[run];
      if (current.count != 0 && current.block + current.count != block) {
        ++run;
        simple = simple && run < kBatchRuns;
      }
      if (simple) {
        if (loaded.runs[run].count == 0) loaded.runs[run].block = block;
        ++loaded.runs[run].count;
      }
    }
    loaded.kind = simple ? BatchEntryKind::kRuns : BatchEntryKind::kGeneral;
    loaded.size_bytes = inode.size_bytes;
    loaded.generation = inode.generation;
  };
  int error = wait_for_overwriters(warp, fs, lanes, ino);
  if (error == 0) {
    error = reading_paths(warp, fs, [&]() -> int {
      int found = use_numbered(warp, fs, lanes, ino, inode, note_runs);
      if (found == 0 && (lanes & bit) != 0 && !inode.is_regular()) found = -EINVAL;
      const uint32_t readable = warp.ballot((lanes & bit) != 0 && found == 0);
      const int permitted = check_permissions(warp, fs, readable, inode, kMayRead);
      return found < 0 ? found : permitted;
    });
  }
  if ((lanes & bit) == 0) return;
  loaded.ino = ino;
  loaded.error = error < 0 ? error : f2fs::check_supported(inode);
  if (loaded.error < 0) loaded.size_bytes = 0;
  file = loaded;
}

}  // namespace detail

/// Reads the inodes of the files that were entered: a file a lane. Collective; warps 0 to
/// `warp_count` - 1 do it together. Errors are per file.
GOFS_NOINLINE GOFS_HD inline void load_batch(simt::AnyWarp auto warp, Filesystem& fs,
                                             BatchTable& table, Batch& batch, uint32_t warp_index,
                                             uint32_t warp_count) {
  const uint32_t width = warp.size();
  for (uint32_t first = warp_index * width; first < batch.count; first += warp_count * width) {
    const uint32_t index = first + warp.thread_rank();
    // Lanes without a file must not look at that of another warp, which may be writing it.
    BatchEntry file{};
    if (index < batch.count) file = table.files[batch.first + index];
    const uint32_t lanes = warp.ballot(index < batch.count && file.error == 0);
    detail::load_batch_files(warp, fs, lanes, file);
    if ((lanes >> warp.thread_rank() & 1u) != 0) table.files[batch.first + index] = file;
    warp.sync();
  }
}

namespace detail {

/// Reads the file of each lane in `lanes` by its inode. Collective. Bytes read; per lane `error`, 0
/// or a negative errno: -ESTALE where the file has been removed.
GOFS_NOINLINE GOFS_HD inline uint64_t read_general(simt::AnyWarp auto warp, Filesystem& fs,
                                                   const Batch& batch, uint32_t lanes,
                                                   const BatchEntry& file, uint8_t* target,
                                                   int& error) {
  const bool mine = (lanes >> warp.thread_rank() & 1u) != 0;
  // A batch of files that it has made is no address reader in between: its files may be written.
  const bool enters = batch.holder == nullptr && fs.writer != nullptr;
  if (enters && warp.thread_rank() == 0) f2fs::enter_address_readers(*fs.writer);
  warp.sync();
  f2fs::Inode inode{};
  error = enters ? wait_for_overwriters(warp, fs, lanes, file.ino) : 0;
  if (error == 0) {
    error = reading_paths(
        warp, fs, [&] { return load_known(warp, fs, lanes, file.ino, file.generation, inode); });
  }
  int failure = 0;
  const uint32_t loaded = warp.ballot(mine && error == 0);
  // A file may have become shorter: what is behind its end now, it has not.
  const int64_t read = read_lanes(warp, fs, loaded, inode, target, file.size_bytes, 0, failure);
  if (enters) {
    warp.sync();
    if (warp.thread_rank() == 0) f2fs::leave_address_readers(*fs.writer);
  }
  if ((loaded >> warp.thread_rank() & 1u) == 0) return 0;
  error = failure == -ENOENT ? -ESTALE : failure;
  return read > 0 ? static_cast<uint64_t>(read) : 0;
}

}  // namespace detail

/// Reads all files of the batch: file i to `buffer + offsets[i]`. Collective; warps 0 to
/// `warp_count` - 1 do it together. Returns the bytes that this warp has read; a file's error is
/// left in its entry.
GOFS_NOINLINE GOFS_HD inline uint64_t read_batch(simt::AnyWarp auto warp, Filesystem& fs,
                                                 BatchTable& table, Batch& batch, uint8_t* buffer,
                                                 const uint64_t* offsets, uint32_t warp_index,
                                                 uint32_t warp_count) {
  const uint32_t width = warp.size();
  const uint32_t rank = warp.thread_rank();
  uint64_t bytes_read = 0;
  // Few files at a time, so that all warps have some even of a small batch.
  const uint32_t group = simt::min(width, kBatchGroupFiles);
  for (uint32_t first = warp_index * group; first < batch.count; first += warp_count * group) {
    const bool mine = rank < group && first + rank < batch.count;
    BatchEntry& entry = table.files[batch.first + (mine ? first + rank : first)];
    const BatchEntry file = entry;
    uint8_t* const target = buffer + (mine ? offsets[first + rank] : 0);
    const bool usable = mine && file.error == 0;
    int error = 0;

    // The blocks of files made of runs are dealt to the lanes in one row.
    const uint32_t blocks =
        usable && file.kind == BatchEntryKind::kRuns
            ? static_cast<uint32_t>(simt::divide_up(file.size_bytes, kBlockBytes))
            : 0;
    uint32_t before = 0;  // blocks of the lanes before this one
    uint32_t total = 0;
    for (uint32_t lane = 0; lane < group; ++lane) {
      const uint32_t theirs = warp.shfl(blocks, lane);
      if (lane < rank) before += theirs;
      total += theirs;
    }
    for (uint32_t round = 0; round < total; round += width) {
      const uint32_t item = round + rank;
      const bool active = item < total;
      // The last lane whose row begins at or before the item.
      uint32_t owner = 0;
      for (uint32_t lane = 1; lane < group; ++lane) {
        if (warp.shfl(before, lane) <= item) owner = lane;
      }
      const uint32_t index = item - warp.shfl(before, owner);
      const uint64_t size = warp.shfl(file.size_bytes, owner);
      const uint32_t run0 = warp.shfl(file.runs[0].count, owner);
      const uint32_t block0 = warp.shfl(file.runs[0].block, owner);
      const uint32_t block1 = warp.shfl(file.runs[1].block, owner);
      const uint64_t owner_target = warp.shfl(reinterpret_cast<uint64_t>(target), owner);
      const uint64_t offset = uint64_t{index} * kBlockBytes;
      const uint32_t ino = warp.shfl(file.ino, owner);
      const f2fs::Piece piece{
          offset,
          active ? static_cast<uint32_t>(simt::min<uint64_t>(kBlockBytes, size - offset)) : 0,
          reinterpret_cast<uint8_t*>(owner_target + offset)};
      const uint32_t block = index < run0 ? block0 + index : block1 + (index - run0);
      const int result =
          f2fs::read_stored(warp, fs.volume, fs.pool, warp.ballot(active), ino, block, piece);
      if (active && result == 0) bytes_read += piece.bytes;
      for (uint32_t failed = warp.ballot(active && result < 0); failed != 0; failed &= failed - 1) {
        const uint32_t lane = simt::lowest_bit(failed);
        const uint32_t whose = warp.shfl(owner, lane);
        const int what = warp.shfl(result, lane);
        if (whose == rank) error = what;
      }
    }

    const uint32_t general =
        warp.ballot(usable && file.kind == BatchEntryKind::kGeneral && file.size_bytes != 0);
    if (general != 0) {
      int failed = 0;
      bytes_read += detail::read_general(warp, fs, batch, general, file, target, failed);
      if ((general >> rank & 1u) != 0) error = failed;
    }
    if (mine && error < 0) entry.error = error;
    warp.sync();
  }
  return simt::reduce_add(warp, bytes_read);
}

}  // namespace gofs::vfs
