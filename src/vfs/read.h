// SPDX-License-Identifier: Apache-2.0
//
// Reading open files. read_striped is the work of one warp on a range that one or many warps
// share: a block a lane, round by round. pread_lanes is for threads that each have a request of
// their own. The scopes of the public API (gofs.cuh) are made of these two.
#pragma once

#include "f2fs/read_run.h"
#include "vfs/open_files.h"

namespace gofs::vfs {

using gofs::IoVector;
using gofs::kIoVectorsMax;
using gofs::kOffsetMax;

/// Bytes of all parts, or -EINVAL: too many parts, or more bytes than a result can count.
GOFS_HD inline int64_t total_bytes(const IoVector* parts, int count) {
  if (count < 0 || count > kIoVectorsMax) return -EINVAL;
  uint64_t total = 0;
  for (int i = 0; i < count; ++i) {
    if (parts[i].bytes > kOffsetMax - total) return -EINVAL;
    total += parts[i].bytes;
  }
  return static_cast<int64_t>(total);
}

/// Calls `move(part, done)` for one part after the other, while each is moved wholly, or for one of
/// no bytes where there is none. The sum of the answers, or the first one if that is an error.
template <typename Move>
GOFS_HD int64_t move_parts(const IoVector* parts, int count, Move move) {
  if (count == 0) return move(IoVector{nullptr, 0}, uint64_t{0});
  int64_t total = 0;
  for (int i = 0; i < count; ++i) {
    const IoVector part = parts[i];  // of the last one nothing is read when others may have left
    const int64_t got = move(part, static_cast<uint64_t>(total));
    if (got < 0) return total > 0 ? total : got;
    total += got;
    if (static_cast<uint64_t>(got) < part.bytes) break;
  }
  return total;
}

/// How far one warp got in a range that several share: the lowest offset that it could not read or
/// write.
struct IoFailure {
  uint64_t at;  // bytes from the start of the range; kOffsetMax: none
  int error;
};

namespace detail {

/// Bytes up to the next block boundary, at most `left`.
GOFS_HD inline uint32_t piece_bytes(uint64_t offset, uint64_t left) {
  const uint64_t in_block = kBlockBytes - (offset & (kBlockBytes - 1));
  return static_cast<uint32_t>(simt::min(in_block, left));
}

/// Size of the portions in which a file's inline data is dealt to the lanes.
inline constexpr uint32_t kInlinePortionBytes = 128;

}  // namespace detail

/// Those of the `bytes` at `offset` that the file has: for sure where they are locked.
GOFS_HD inline uint64_t bytes_before_end(const OpenInode& open, uint64_t offset, uint64_t bytes) {
  const uint64_t size = simt::load_relaxed(open.inode.size_bytes);
  return offset >= size ? 0 : simt::min(bytes, size - offset);
}

/// Checks the arguments of a read and cuts it at the end of the file. 0 or a negative errno;
/// `bytes` may become 0.
GOFS_HD inline int begin_read(const simt::AnyWarp auto& warp, const Filesystem& fs, int fd,
                              uint64_t offset, uint64_t& bytes, OpenInode*& open) {
  const Descriptor* descriptor = find_readable(warp, fs, fd);
  if (descriptor == nullptr) return -EBADF;
  open = &fs.open_inodes[descriptor->open_inode];
  if (open->inode.is_directory()) return -EISDIR;
  if (offset > kOffsetMax || bytes > kOffsetMax) return -EINVAL;
  bytes = bytes_before_end(*open, offset, bytes);
  return 0;
}

/// Reads a range of its own file for each lane in `lanes`: `bytes` (not 0) at `offset`, within the
/// file, as many blocks at a time as are contiguous. Collective. Per lane bytes read, or a negative
/// errno if there were none; `failure` is the errno that ended it, or 0 when all was read.
GOFS_HD inline int64_t read_lanes(simt::AnyWarp auto warp, Filesystem& fs, uint32_t lanes,
                                  const f2fs::Inode& inode, uint8_t* target, uint64_t bytes,
                                  uint64_t offset, int& failure) {
  bool active = (lanes >> warp.thread_rank() & 1u) != 0;
  bool runs = true;  // until one cannot be read: then block by block, to where it cannot
  failure = 0;
  int64_t result = 0;
  uint64_t done = 0;
  while (warp.any(active)) {
    const uint64_t left = active ? bytes - done : 0;
    const uint32_t first = active ? detail::piece_bytes(offset + done, left) : 0;
    f2fs::Piece piece{offset + done, first, target + done};
    const int error =
        f2fs::read_runs(warp, fs.volume, fs.pool, warp.ballot(active), inode, runs, left, piece);
    if (active && error < 0 && piece.bytes > first) {
      runs = false;
    } else if (active && error < 0) {
      failure = error;
      if (done == 0) result = error;
      active = false;
    } else if (active) {
      done += piece.bytes;
      result = static_cast<int64_t>(done);
      active = done < bytes;
    }
  }
  return result;
}

/// The share of a warp with one lane alone in reading `bytes` at `offset`: rounds of many blocks,
/// each as few commands as it can be. As read_striped().
GOFS_HD inline IoFailure read_alone(simt::AnyWarp auto warp, Filesystem& fs,
                                    const f2fs::Inode& inode, uint8_t* target, uint64_t bytes,
                                    uint64_t offset, uint32_t warp_index, uint32_t warp_count) {
  constexpr uint64_t kRoundBytes = uint64_t{1} << 20;
  const uint64_t head = offset & (kRoundBytes - 1);
  for (uint64_t round = warp_index * kRoundBytes; round < head + bytes;
       round += warp_count * kRoundBytes) {
    const uint64_t from = simt::max(round, head) - head;
    const uint64_t to = simt::min(round + kRoundBytes - head, bytes);
    int failure = 0;
    const int64_t read =
        read_lanes(warp, fs, 1u, inode, target + from, to - from, offset + from, failure);
    if (failure < 0) return {from + static_cast<uint64_t>(simt::max(read, int64_t{0})), failure};
  }
  return {kOffsetMax, 0};
}

/// This warp's share of reading `bytes` at `offset`: rounds of one block a lane, every
/// `warp_count`-th round starting at `warp_index`. Collective, uniform; the range lies in the file
/// and is locked. The bytes read are visible to the warp; with a mailbox they may be under way.
GOFS_NOINLINE GOFS_HD inline IoFailure read_striped(simt::AnyWarp auto warp, Filesystem& fs,
                                                    const f2fs::Inode& inode, uint8_t* target,
                                                    uint64_t bytes, uint64_t offset,
                                                    uint32_t warp_index, uint32_t warp_count,
                                                    nvme::Mailbox* mailbox = nullptr) {
  if (warp.size() == 1 && mailbox == nullptr) {
    return read_alone(warp, fs, inode, target, bytes, offset, warp_index, warp_count);
  }
  const uint32_t unit = inode.has_inline_data() ? detail::kInlinePortionBytes : kBlockBytes;
  const uint64_t head = offset & (unit - 1);
  const uint64_t round_bytes = uint64_t{warp.size()} * unit;
  const uint64_t span = head + bytes;
  for (uint64_t round = warp_index * round_bytes; round < span; round += warp_count * round_bytes) {
    // From here on positions are counted from the boundary at or before `offset`.
    const uint64_t start = round + uint64_t{warp.thread_rank()} * unit;
    const uint64_t from = simt::max(start, head);
    const uint64_t to = simt::min(start + unit, span);
    const uint32_t lanes = warp.ballot(from < to);
    const f2fs::Piece piece{offset + (from - head),
                            static_cast<uint32_t>(from < to ? to - from : 0),
                            target + (from - head)};
    const int error = f2fs::read_pieces(warp, fs.volume, fs.pool, lanes, inode, piece, mailbox);
    const uint32_t failed = warp.ballot((lanes >> warp.thread_rank() & 1u) != 0 && error < 0);
    if (failed != 0) {
      const uint32_t first = simt::lowest_bit(failed);
      return IoFailure{warp.shfl(from - head, first), warp.shfl(error, first)};
    }
  }
  return IoFailure{kOffsetMax, 0};
}

/// Bytes read or written, or the errno if nothing was, as read(2) and write(2) report it.
GOFS_HD inline int64_t io_outcome(uint64_t bytes, const IoFailure& failure) {
  if (failure.error == 0) return static_cast<int64_t>(bytes);
  return failure.at == 0 ? failure.error : static_cast<int64_t>(simt::min(bytes, failure.at));
}

/// pread by one warp. Collective, uniform. Bytes read (less than asked only at the end of the file
/// or before an unreadable block), or a negative errno.
GOFS_NOINLINE GOFS_HD inline int64_t pread(simt::AnyWarp auto warp, Filesystem& fs, int fd,
                                           void* buffer, uint64_t bytes, uint64_t offset) {
  OpenInode* open = nullptr;
  const int error = begin_read(warp, fs, fd, offset, bytes, open);
  bytes = warp.shfl(bytes, 0);  // the file may be growing
  if (error < 0 || bytes == 0) return error;
  RangeHold hold{};
  const simt::Deadline deadline = simt::Deadline::after_ns(fs.lock_timeout_ns);
  const int locked = lock_shared(warp, open->lock, ByteRange{offset, bytes}, deadline, hold);
  if (locked < 0) return locked;
  bytes = warp.shfl(bytes_before_end(*open, offset, bytes), 0);
  const IoFailure failure =
      read_striped(warp, fs, open->inode, static_cast<uint8_t*>(buffer), bytes, offset, 0, 1);
  unlock_shared(warp, open->lock, hold);
  return io_outcome(bytes, failure);
}

/// What one thread asks for.
struct ReadRequest {
  int fd;
  void* buffer;
  uint64_t bytes;
  uint64_t offset;
};

namespace detail {

/// How many lanes of `lanes` have a file at a lower address than this lane's. Collective.
GOFS_HD inline uint32_t lanes_before(simt::AnyWarp auto warp, uint32_t lanes, uint64_t file) {
  uint32_t before = 0;
  for (; lanes != 0; lanes &= lanes - 1) {
    if (warp.shfl(file, simt::lowest_bit(lanes)) < file) ++before;
  }
  return before;
}

/// Reads the request of each lane that is `active`, cut to `bytes` (not 0), of its own file `open`,
/// which is locked. Collective. Per lane bytes read, or a negative errno.
GOFS_HD inline int64_t read_requests(simt::AnyWarp auto warp, Filesystem& fs, bool active,
                                     const OpenInode* open, const ReadRequest& request,
                                     uint64_t bytes) {
  const uint32_t lanes = warp.ballot(active);
  if (lanes == 0) return 0;
  // A lane that reads nothing has no file; any will do for it that no other thread changes now.
  const uint64_t some = warp.shfl(reinterpret_cast<uint64_t>(open), simt::lowest_bit(lanes));
  const f2fs::Inode& inode = (active ? open : reinterpret_cast<const OpenInode*>(some))->inode;
  int failure = 0;  // the caller gets it when it asks for the rest
  return read_lanes(warp, fs, lanes, inode, static_cast<uint8_t*>(request.buffer), bytes,
                    request.offset, failure);
}

/// pread_lanes where the lanes' files differ, or some of them cannot be read: every file is locked
/// for all of its lanes, then all is read together. All warps lock files in one order: a place in a
/// ring is waited for until another thread leaves it, which must not wait for a place that we have.
GOFS_NOINLINE GOFS_HD inline int64_t pread_lanes_of_files(simt::AnyWarp auto warp, Filesystem& fs,
                                                          const ReadRequest& request) {
  const uint32_t rank = warp.thread_rank();
  OpenInode* open = nullptr;
  uint64_t bytes = request.bytes;
  int64_t result = begin_read(warp, fs, request.fd, request.offset, bytes, open);
  bool active = result == 0 && bytes != 0;
  const uint64_t file = active ? reinterpret_cast<uint64_t>(open) : uint64_t{rank};
  RangeHold hold{};
  const uint32_t wanted = warp.ballot(active);
  const uint32_t before = lanes_before(warp, wanted, file);
  const simt::Deadline deadline = simt::Deadline::after_ns(fs.lock_timeout_ns);
  for (uint32_t done = 0; done < simt::popcount(wanted);) {
    const bool next = (wanted >> rank & 1u) != 0 && before == done;
    const uint32_t same = warp.ballot(next);
    const uint64_t theirs = warp.shfl(file, simt::lowest_bit(same));
    RangeHold taken{};
    const ByteRange range = range_of_lanes(warp, same, request.offset, bytes);
    const int locked =
        lock_shared(warp, reinterpret_cast<OpenInode*>(theirs)->lock, range, deadline, taken);
    if ((same >> rank & 1u) != 0) {
      hold = taken;
      if (locked < 0) {
        result = locked;
        active = false;
      }
    }
    done += simt::popcount(same);
  }
  const bool locked = active;
  if (active) bytes = bytes_before_end(*open, request.offset, bytes);
  if (active && bytes == 0) {
    result = 0;
    active = false;
  }

  const int64_t read = read_requests(warp, fs, active, open, request, bytes);
  if (active) result = read;

  uint32_t holding = warp.ballot(locked);
  while (holding != 0) {
    const uint32_t owner = simt::lowest_bit(holding);
    const uint64_t theirs = warp.shfl(file, owner);
    const uint64_t ring = warp.shfl(reinterpret_cast<uint64_t>(hold.ring), owner);
    const RangeHold taken{warp.shfl(hold.place, owner), reinterpret_cast<RangeRing*>(ring),
                          warp.shfl(hold.in_ring ? 1u : 0u, owner) != 0};
    unlock_shared(warp, reinterpret_cast<OpenInode*>(theirs)->lock, taken);
    holding &= ~warp.ballot(locked && file == theirs);
  }
  return result;
}

/// pread_lanes of one file, whose readers the warp has joined and leaves. Lanes that ask for
/// nothing may have another one.
GOFS_NOINLINE GOFS_HD inline int64_t pread_lanes_joined(simt::AnyWarp auto warp, Filesystem& fs,
                                                        RangeLock& lock,
                                                        const ReadRequest& request) {
  OpenInode* open = nullptr;
  uint64_t bytes = request.bytes;
  const int error = begin_read(warp, fs, request.fd, request.offset, bytes, open);
  const bool active = error == 0 && bytes != 0;
  const int64_t read = read_requests(warp, fs, active, open, request, bytes);
  leave_readers(warp, lock);
  return active ? read : error;
}

/// Where the request's block lies, if the device can put it in place and the file's map knows it;
/// else 0. The file is locked.
GOFS_HD inline uint32_t block_within_reach(const f2fs::Inode& inode, const uint32_t* probed_word,
                                           const ReadRequest& request, uint64_t lba_mask) {
  const uint64_t size = simt::load_here(inode.size_bytes);  // no thread writes the file meanwhile
  const uint64_t in_block = request.offset & (kBlockBytes - 1);
  const bool fits = request.bytes != 0 && request.bytes <= kBlockBytes - in_block &&
                    request.offset < size && request.bytes <= size - request.offset &&
                    f2fs::detail::is_directly_addressable(request.buffer, request.offset,
                                                          request.bytes, lba_mask);
  const bool mapped = probed_word != nullptr;
  // Some word is loaded in any case, beside the size: behind a branch, a lane would wait for it
  // alone.
  const uint32_t word = simt::load_relaxed(mapped ? *probed_word : inode.ino);
  return fits && mapped && word != f2fs::detail::kMappedHole ? word : 0;
}

}  // namespace detail

/// pread by each lane for itself: descriptors, buffers and ranges may all differ. Collective. Per
/// lane bytes read or a negative errno.
///
/// One hold serves all lanes of a file, from the first byte to the last: readers do not exclude
/// each other, and a writer of any part waits for no more than this warp's round trip.
///
/// The fast path, which is meant to cost little beside the command itself, is for lanes that read
/// one file that is not being written, each a range that the device can put in place and whose
/// block the file's map knows.
GOFS_HD inline int64_t pread_lanes(simt::AnyWarp auto warp, Filesystem& fs,
                                   const ReadRequest& request) {
  const bool asks = request.bytes != 0;
  const uint32_t asking = warp.ballot(asks);
  if (asking == 0) return detail::pread_lanes_of_files(warp, fs, request);
  const int fd = warp.shfl(request.fd, simt::lowest_bit(asking));
  OpenInode* const open = find_file_inode(warp, fs, fd);
  const nvme::Route route = nvme::pick_route(fs.volume.array);
  if (!warp.all(open != nullptr && request.fd == fd)) {
    return detail::pread_lanes_of_files(warp, fs, request);
  }
  const uint32_t* const word = detail::probe_block_word(fs, *open, request.offset >> kBlockShift);
  if (!try_join_readers(warp, open->lock)) {
    return detail::pread_lanes_of_files(warp, fs, request);
  }
  const uint64_t lba_mask = (uint64_t{1} << route.lba_shift) - 1;
  const uint32_t block = detail::block_within_reach(open->inode, word, request, lba_mask);
  if (!warp.all(!asks || block != 0)) {
    return detail::pread_lanes_joined(warp, fs, open->lock, request);
  }
  const int error =
      f2fs::read_data(warp, route, asking,
                      {open->inode.ino, request.offset, block, static_cast<uint32_t>(request.bytes),
                       static_cast<uint8_t*>(request.buffer)},
                      f2fs::Merge::kNeighbours);
  leave_readers(warp, open->lock);
  if (!asks) return 0;
  return error < 0 ? error : static_cast<int64_t>(request.bytes);
}

}  // namespace gofs::vfs
