// SPDX-License-Identifier: Apache-2.0
//
// A batch of a client, whose kernels make the steps of batch.h by calls of their own: of any file
// of it, at any time, several at once. So each call holds the batch while it looks at it, a batch
// is not to be seen before its entries are its own, and of a file no more is believed than which
// inode it is: each read and write opens that, and asks whether the caller may.
#pragma once

#include "vfs/batch_list.h"
#include "vfs/batch_write.h"
#include "vfs/named_inode.h"

namespace gofs::vfs {

namespace detail {

/// Finds the directory of a batch of new files. Collective, uniform.
GOFS_NOINLINE GOFS_HD inline int find_growing_directory(simt::AnyWarp auto warp, Filesystem& fs,
                                                        const char* path, f2fs::Inode& directory) {
  return reading_paths(warp, fs, [&]() -> int {
    int error = resolve(warp, fs, path, LastLink::kFollow, directory);
    if (error == 0 && !directory.is_directory()) error = -ENOTDIR;
    if (error == 0) error = f2fs::check_supported(directory);
    if (error == 0 && fs.writer == nullptr) error = -EROFS;
    return error == 0 ? may_change_names(warp, fs, directory) : error;
  });
}

/// What `call(batch)` answers, which holds the caller's batch `bd` meanwhile; -EBADF. Collective,
/// uniform.
template <typename Call>
GOFS_HD int64_t with_batch(simt::AnyWarp auto warp, Filesystem& fs, int bd, Call call) {
  if (fs.batches == nullptr || bd < 0 || bd >= static_cast<int>(kBatchesMax)) return -EBADF;
  Batch& batch = fs.batches->batches[bd];
  uint32_t is_mine = 0;
  if (warp.thread_rank() == 0) {
    simt::add_before_look(batch.users, 1u);
    is_mine = simt::look_after_add(batch.taken) == owner_of_client(client_of(warp)) ? 1 : 0;
  }
  is_mine = warp.shfl(is_mine, 0);
  warp.sync();  // what the first lane has acquired, all have
  const int64_t answer = is_mine != 0 ? call(batch) : -EBADF;
  warp.sync();
  if (warp.thread_rank() == 0) {
    simt::AtomicRef<uint32_t>(batch.users).fetch_sub(1, simt::memory_order_release);  // [V25]
  }
  return answer;
}

/// What `call(entry)` answers for file `index` of the caller's batch; -EINVAL where it has none.
template <typename Call>
GOFS_HD int64_t with_batch_file(simt::AnyWarp auto warp, Filesystem& fs, int bd, uint32_t index,
                                Call call) {
  return with_batch(warp, fs, bd, [&](Batch& batch) -> int64_t {
    if (index >= batch.count) return -EINVAL;
    return call(batch, fs.batches->files[batch.first + index]);
  });
}

/// Notes what is known of a file. By one lane.
GOFS_HD inline void note_file(BatchEntry& entry, const BatchEntry& found) {
  simt::store_relaxed(entry.generation, found.generation);
  simt::store_relaxed(entry.size_bytes, found.size_bytes);
  simt::store_relaxed(entry.error, found.error);
  simt::store_relaxed(entry.created, found.created);
  simt::store_relaxed(entry.ino, found.ino);
}

/// What is known of it. Other calls may be noting it: then of each part either.
GOFS_HD inline BatchEntry noted_file(const BatchEntry& entry) {
  BatchEntry found{};
  found.ino = simt::load_relaxed(entry.ino);
  found.created = simt::load_relaxed(entry.created);
  found.error = simt::load_relaxed(entry.error);
  found.size_bytes = simt::load_relaxed(entry.size_bytes);
  found.generation = simt::load_relaxed(entry.generation);
  return found;
}

/// Reads or writes (`flags`) the file of `entry` by `move(fd)`, and notes what goes wrong.
/// Collective, uniform. What `move` answers.
template <typename Move>
GOFS_HD int64_t move_batch_file(simt::AnyWarp auto warp, Filesystem& fs, BatchEntry& entry,
                                uint32_t flags, Move move) {
  BatchEntry file = noted_file(entry);
  file.error = warp.shfl(file.error, 0);
  file.ino = warp.shfl(file.ino, 0);
  file.generation = warp.shfl(file.generation, 0);
  if (file.error < 0) return file.error;
  file.created = false;  // who only says so has no right by it
  const int fd = open_batch_file(warp, fs, file, flags);
  int64_t answer = fd;
  if (fd >= 0) {
    answer = move(fd);
    (void)close(warp, fs, fd);
  }
  if (answer < 0 && warp.thread_rank() == 0) {
    simt::store_relaxed(entry.error, static_cast<int>(answer));
  }
  return answer;
}

}  // namespace detail

/// Opens a batch for `count` files of the directory `path`. Collective, uniform. A batch
/// descriptor, or a negative errno: as begin_batch(), and of new files -EROFS and what forbids
/// names to be made there; of a directory that cannot be listed, -EUCLEAN and its like.
GOFS_NOINLINE GOFS_HD inline int open_batch(simt::AnyWarp auto warp, Filesystem& fs,
                                            const char* path, uint32_t count, BatchSource source) {
  if (fs.batches == nullptr) return -ENOMEM;
  BatchTable& table = *fs.batches;
  f2fs::Inode directory{};
  const int error = source == BatchSource::kNewFiles
                        ? detail::find_growing_directory(warp, fs, path, directory)
                        : detail::find_batch_directory(warp, fs, path, directory);
  if (error < 0) return error;
  // It reads no address without a lock, so nobody who cleans waits for it.
  const int bd = detail::take_batch(warp, table, directory, count, nullptr, kBatchHidden);
  if (bd < 0) return bd;
  Batch& batch = table.batches[bd];
  for (uint32_t i = warp.thread_rank(); i < count; i += warp.size()) {
    BatchEntry none{};
    none.error = -ENOENT;
    table.files[batch.first + i] = none;
  }
  warp.sync();
  int listed = 0;
  if (source == BatchSource::kDirectory) {
    survey_batch(warp, fs, table, batch, 0, 1);
    listed = list_batch(warp, fs, table, batch, 0, 1);
  }
  if (warp.thread_rank() == 0) {
    if (listed < 0) {
      detail::release_batch(table, batch);
    } else {
      simt::store_release(batch.taken, owner_of_client(client_of(warp)));  // [V25]
    }
  }
  warp.sync();
  return listed < 0 ? listed : bd;
}

/// Enters the file `name` of the batch's directory as number `index`, and notes `error` of it if
/// that is below 0; a name of no bytes is none then. `created`: the caller has made it. Collective,
/// uniform. What is noted as the file's error; -EBADF, -EINVAL.
GOFS_NOINLINE GOFS_HD inline int64_t enter_batch_file(simt::AnyWarp auto warp, Filesystem& fs,
                                                      int bd, uint32_t index, const char* name,
                                                      int error, bool created) {
  return detail::with_batch_file(
      warp, fs, bd, index, [&](Batch& batch, BatchEntry& entry) -> int64_t {
        BatchEntry file{};
        file.error = error;
        if (error == 0 || name[0] != '\0') {
          file.error = detail::find_batch_file(warp, fs, batch, name, file.ino);
          const bool found = file.error == 0;
          detail::load_batch_files(warp, fs, warp.ballot(found && warp.thread_rank() == 0), file);
          if (created && file.error == -EACCES) file.error = 0;  // its mode may forbid to read it
          if (file.error == 0) file.error = error;
          file.created = created;
        }
        file.error = warp.shfl(file.error, 0);
        if (warp.thread_rank() == 0) detail::note_file(entry, file);
        return file.error;
      });
}

/// Reads the inodes of files `first` to `first + count` - 1 of a batch that was listed. Collective,
/// uniform. 0, -EBADF; errors of a file are noted.
GOFS_NOINLINE GOFS_HD inline int64_t load_batch_part(simt::AnyWarp auto warp, Filesystem& fs,
                                                     int bd, uint32_t first, uint32_t count) {
  return detail::with_batch(warp, fs, bd, [&](Batch& batch) -> int64_t {
    const uint64_t end = simt::min<uint64_t>(uint64_t{first} + count, batch.count);
    for (uint64_t at = first; at < end; at += warp.size()) {
      const bool mine = at + warp.thread_rank() < end;
      BatchEntry& entry = fs.batches->files[batch.first + at + (mine ? warp.thread_rank() : 0)];
      BatchEntry file = detail::noted_file(entry);
      const uint32_t lanes = warp.ballot(mine && file.error == 0);
      detail::load_batch_files(warp, fs, lanes, file);
      if ((lanes >> warp.thread_rank() & 1u) != 0) detail::note_file(entry, file);
    }
    return 0;
  });
}

/// What is known of files `first` and those behind, at most `capacity`. Collective, uniform. How
/// many are given; with no capacity, how many files there are from there on. Or -EBADF.
GOFS_NOINLINE GOFS_HD inline int64_t list_batch_files(simt::AnyWarp auto warp, Filesystem& fs,
                                                      int bd, uint32_t first, BatchFile* files,
                                                      uint32_t capacity) {
  return detail::with_batch(warp, fs, bd, [&](Batch& batch) -> int64_t {
    const uint32_t there = batch.count > first ? batch.count - first : 0;
    if (capacity == 0) return there;
    const uint32_t given = simt::min(there, capacity);
    for (uint32_t i = warp.thread_rank(); i < given; i += warp.size()) {
      files[i] = file_of(detail::noted_file(fs.batches->files[batch.first + first + i]));
    }
    return given;
  });
}

/// As pread() of file `index`, of which there is what there was when it was entered. Collective,
/// uniform. Also the file's error, -EBADF, -EINVAL.
GOFS_NOINLINE GOFS_HD inline int64_t pread_batch_file(simt::AnyWarp auto warp, Filesystem& fs,
                                                      int bd, uint32_t index, void* buffer,
                                                      uint64_t bytes, uint64_t offset) {
  return detail::with_batch_file(warp, fs, bd, index, [&](Batch&, BatchEntry& entry) -> int64_t {
    const uint64_t size = warp.shfl(simt::load_relaxed(entry.size_bytes), 0);
    const uint64_t there = offset < size ? simt::min(bytes, size - offset) : 0;
    return detail::move_batch_file(warp, fs, entry, kOpenReadOnly, [&](int fd) -> int64_t {
      return pread(warp, fs, fd, buffer, there, offset);
    });
  });
}

/// As pwrite() to file `index`. Collective, uniform. Also the file's error, -EBADF, -EINVAL.
GOFS_NOINLINE GOFS_HD inline int64_t pwrite_batch_file(simt::AnyWarp auto warp, Filesystem& fs,
                                                       int bd, uint32_t index, const void* buffer,
                                                       uint64_t bytes, uint64_t offset) {
  return detail::with_batch_file(warp, fs, bd, index, [&](Batch&, BatchEntry& entry) -> int64_t {
    return detail::move_batch_file(warp, fs, entry, kOpenWriteOnly, [&](int fd) -> int64_t {
      const int64_t written = pwrite(warp, fs, fd, buffer, bytes, offset);
      if (written >= 0 && warp.thread_rank() == 0) {
        const OpenInode& open = fs.open_inodes[fs.descriptors[fd].open_inode];
        simt::store_relaxed(entry.size_bytes, simt::load_relaxed(open.inode.size_bytes));
      }
      return written;
    });
  });
}

}  // namespace gofs::vfs
