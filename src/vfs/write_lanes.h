// SPDX-License-Identifier: Apache-2.0
//
// Writing by threads that each have a request of their own, as pread_lanes() is for reading. Lanes
// that write different blocks of one file do so together, in one operation: within what the file
// has, beside others who do that (write_blocks.h); behind its end, at its end, or where somebody
// reads the file or writes more of it, with one lock for all of them. So do those whose requests of
// several blocks follow each other, and those whose requests of some blocks lie anywhere within
// what the file has (write_spans.h). All others take their turns, each with the whole warp at work.
#pragma once

#include "vfs/write_spans.h"

namespace gofs::vfs {

namespace detail {

/// How long lanes wait together for their blocks, and those between them, before each waits for its
/// own, where a lane itself may keep some of them (async_write.h).
inline constexpr uint64_t kTogetherPatienceNs = 2'000'000;
GOFS_HD inline f2fs::WritePiece piece_of(const WriteRequest& request) {
  return {request.offset, static_cast<uint32_t>(request.bytes),
          static_cast<const uint8_t*>(request.buffer)};
}

/// Whether a write of `bytes` at `offset` is part of one block that the file has or can have.
GOFS_HD inline bool is_block_piece(uint64_t offset, uint64_t bytes) {
  const uint64_t room = kBlockBytes - (offset & (kBlockBytes - 1));
  return bytes != 0 && bytes <= room && offset < f2fs::kFileBytesMax;
}

/// Those of `lanes` that can be written together, if there are several: no two of them in one
/// block, and all within what the file has, where they may go over it, or none of them. Of those
/// that append, all that are a block, where the file ends with one. Collective, uniform; `open` is
/// what all of them have open.
GOFS_HD inline uint32_t lanes_to_write_together(simt::AnyWarp auto warp, const OpenInode& open,
                                                uint32_t lanes, bool append,
                                                const WriteRequest& request) {
  const uint32_t rank = warp.thread_rank();
  const bool mine = (lanes >> rank & 1u) != 0;
  const uint64_t size = simt::load_relaxed(open.inode.size_bytes);
  const bool fits = mine && (append ? request.bytes == kBlockBytes && size % kBlockBytes == 0
                                    : is_block_piece(request.offset, request.bytes));
  const bool within = fits && !append && is_within(open.inode, request.offset, request.bytes);
  // No block has a number that great.
  const uint64_t key = fits && !append ? (request.offset >> kBlockShift) * 2 + (within ? 1 : 0)
                                       : ~uint64_t{0} - rank;
  const bool first = simt::lowest_bit(warp.match_any(key)) == rank;
  const uint32_t over = warp.ballot(within && first);
  if (simt::popcount(over) > 1) return over;
  const uint32_t others = warp.ballot(fits && !within && first);
  return simt::popcount(others) > 1 ? others : 0;
}

/// Where the pieces of `lanes` begin that lie in the block of the file's end or behind it; 0: there
/// are none. Collective, uniform, with the size locked.
GOFS_HD inline uint64_t where_file_grows(simt::AnyWarp auto warp, const f2fs::Inode& inode,
                                         uint32_t lanes, const WriteRequest& request) {
  const uint64_t end_block = simt::load_relaxed(inode.size_bytes) >> kBlockShift;
  const bool mine = (lanes >> warp.thread_rank() & 1u) != 0;
  const uint32_t growing = warp.ballot(mine && request.offset >> kBlockShift >= end_block);
  if (growing == 0) return 0;
  return range_of_lanes(warp, growing, request.offset, request.bytes).offset;
}

/// Writes the requests of `lanes`, as lanes_to_write_together() has found them, with one lock from
/// the first of their blocks to the last, or to the end of the file where it grows. Collective,
/// uniform. 0; -EAGAIN: the file has become another; -ETIMEDOUT; or another negative errno, of one
/// of them, and none is written.
GOFS_NOINLINE GOFS_HD inline int write_in_ring(simt::AnyWarp auto warp, Filesystem& fs,
                                               OpenInode& open, uint32_t lanes, bool append,
                                               uint64_t patience_ns, WriteRequest& request) {
  const uint32_t rank = warp.thread_rank();
  const bool mine = (lanes >> rank & 1u) != 0;
  ByteRange range{0, uint64_t{simt::popcount(lanes)} * kBlockBytes};
  if (!append) range = range_of_lanes(warp, lanes, request.offset, request.bytes);
  RangeHold hold{};
  int error = lock_to_write(warp, open, range.bytes, append, patience_ns, range.offset, hold);
  if (error < 0) return error;
  if (append && mine) {
    const uint32_t before = lanes & simt::ranks_below(rank);
    request.offset = range.offset + uint64_t{simt::popcount(before)} * kBlockBytes;
  }
  if (warp.any(mine && !is_block_piece(request.offset, request.bytes))) error = -EAGAIN;
  if (error == 0) {
    error = write_block_pieces(warp, fs, open.inode, lanes, piece_of(request), Where::kAnywhere,
                               where_file_grows(warp, open.inode, lanes, request));
  }
  unlock_exclusive(warp, open.lock, hold);
  return error;
}

/// Writes the requests of `lanes`, each of another block of the open file, together. Collective,
/// uniform: those that are done, with `error`, which is 0 or what all of them are told.
GOFS_NOINLINE GOFS_HD inline uint32_t write_lanes_of_file(simt::AnyWarp auto warp, Filesystem& fs,
                                                          OpenInode& open, uint32_t lanes,
                                                          bool append, WriteRequest& request,
                                                          int& error) {
  error = 0;
  const bool mine = (lanes >> warp.thread_rank() & 1u) != 0;
  const bool grows =
      warp.any(mine && (append || !is_within(open.inode, request.offset, request.bytes)));
  if (grows && try_to_append(warp, fs, open, lanes, append, request)) return lanes;
  error = prepare_to_write(warp, fs, open, uint64_t{simt::popcount(lanes)} * kBlockBytes);
  if (error < 0) return lanes;
  if (!grows) {
    uint32_t written = 0;
    const int queued = write_queued(warp, fs, open, lanes, piece_of(request), written);
    if (queued != -EAGAIN || written != 0) return written;
  }
  const bool kept = warp.any(simt::load_relaxed(open.lock.kept_count) != 0);
  const uint64_t patience_ns =
      kept ? simt::min(fs.lock_timeout_ns, kTogetherPatienceNs) : fs.lock_timeout_ns;
  const int written = write_in_ring(warp, fs, open, lanes, append, patience_ns, request);
  // Who has waited that long need not wait again, each for himself.
  if (written == -ETIMEDOUT && !kept) error = written;
  return written == 0 || error < 0 ? lanes : 0;
}

/// From that size on a request by itself has a block for each lane.
GOFS_HD constexpr uint64_t row_request_bytes_max(uint32_t lanes) {
  return uint64_t{lanes} * kBlockBytes;
}

/// Those of `lanes`, from the first on, whose requests follow each other from block to block, if
/// there are several: a row. Of those that append, as many as are whole blocks, and the next. None
/// that may go over what is there. Collective, uniform.
GOFS_HD inline uint32_t lanes_in_a_row(simt::AnyWarp auto warp, const f2fs::Inode& inode,
                                       uint32_t lanes, bool append, const WriteRequest& request) {
  const uint32_t rank = warp.thread_rank();
  const bool mine = (lanes >> rank & 1u) != 0;
  const uint32_t before = lanes & simt::ranks_below(rank);
  const uint32_t left = before == 0 ? rank : 31 - simt::leading_zeros(before);
  const uint64_t end = append ? request.bytes : request.offset + request.bytes;
  const uint64_t left_end = warp.shfl(end, left);
  const bool follows =
      before == 0 || (left_end % kBlockBytes == 0 && (append || request.offset == left_end));
  const bool fits = request.bytes != 0 && request.bytes < row_request_bytes_max(warp.size()) &&
                    (append || !is_within(inode, request.offset, request.bytes));
  const uint32_t others = warp.ballot(mine && !(follows && fits));
  const uint32_t row = others == 0 ? lanes : lanes & simt::ranks_below(simt::lowest_bit(others));
  return (row & (row - 1)) == 0 ? 0 : row;
}

/// Writes the requests of `row`, as lanes_in_a_row() has found them, as one: with one lock, and a
/// block a lane at a time, where those of one request would leave most lanes without. Collective;
/// `result` of each lane: bytes written, or a negative errno. Uniform answer: false, and nothing is
/// written, since the file does not end with a block, cannot have them all, or has asynchronous
/// writes under way, which the lanes themselves may have started.
GOFS_NOINLINE GOFS_HD inline bool write_row(simt::AnyWarp auto warp, Filesystem& fs,
                                            OpenInode& open, uint32_t row, bool append,
                                            WriteRequest& request, int64_t& result) {
  if (warp.any(simt::load_relaxed(open.lock.kept_count) != 0)) return false;
  const bool mine = (row >> warp.thread_rank() & 1u) != 0;
  uint64_t total = 0;
  const uint64_t before = simt::sum_before(warp, mine ? request.bytes : 0, total);
  uint64_t offset = warp.shfl(request.offset, simt::lowest_bit(row));
  RangeHold hold{};
  const int locked = lock_to_write(warp, open, total, append, fs.lock_timeout_ns, offset, hold);
  if (locked < 0) {
    if (mine) result = locked;
    return true;
  }
  const uint64_t most = f2fs::kFileBytesMax;
  if ((append && offset % kBlockBytes != 0) || offset > most || total > most - offset) {
    unlock_exclusive(warp, open.lock, hold);
    return false;
  }
  const uint64_t start = offset + before;
  const auto source_of = [&](uint64_t from) {
    const uint8_t* source = nullptr;
    for (uint32_t left = row; left != 0; left &= left - 1) {
      const uint32_t lane = simt::lowest_bit(left);
      const uint64_t theirs = warp.shfl(start, lane);
      const uint64_t bytes = warp.shfl(request.bytes, lane);
      const uint64_t buffer = warp.shfl(reinterpret_cast<uint64_t>(request.buffer), lane);
      if (from >= theirs && from - theirs < bytes) {
        source = reinterpret_cast<const uint8_t*>(buffer) + (from - theirs);
      }
    }
    return source;
  };
  const IoFailure failed =
      write_rounds(warp, fs, open.inode, {total, offset, 0, 1, offset + total}, source_of);
  unlock_exclusive(warp, open.lock, hold);
  if (!mine) return true;
  request.offset = start;
  const uint64_t good = failed.at - simt::min(failed.at, before);
  result = failed.error == 0 || good != 0 ? static_cast<int64_t>(simt::min(request.bytes, good))
                                          : failed.error;
  return true;
}

/// Those of `lanes` that write_spans() takes.
GOFS_HD inline uint32_t lanes_with_spans(simt::AnyWarp auto warp, const f2fs::Inode& inode,
                                         uint32_t lanes, bool append, const SpanRequest& request) {
  const bool mine = (lanes >> warp.thread_rank() & 1u) != 0;
  return warp.ballot(mine && !append && is_span(inode, request));
}

/// Writes those of `lanes`, which have all opened `descriptor`, that are in a row, or those whose
/// requests are spans, whichever are more: those lanes. Collective, uniform.
GOFS_NOINLINE GOFS_HD inline uint32_t write_rows_or_spans(simt::AnyWarp auto warp, Filesystem& fs,
                                                          const Descriptor& descriptor,
                                                          uint32_t lanes, WriteRequest& request,
                                                          int64_t& result) {
  OpenInode& open = fs.open_inodes[descriptor.open_inode];
  const bool append = (descriptor.flags & kOpenAppend) != 0;
  const SpanRequest span{request.offset, request.bytes,
                         static_cast<const uint8_t*>(request.buffer)};
  const uint32_t row = lanes_in_a_row(warp, open.inode, lanes, append, request);
  const uint32_t spans = lanes_with_spans(warp, open.inode, lanes, append, span);
  const bool in_a_row = simt::popcount(row) >= simt::popcount(spans);
  const uint32_t those = in_a_row ? row : spans;
  if ((those & (those - 1)) == 0) return 0;
  const bool mine = (those >> warp.thread_rank() & 1u) != 0;
  const int prepared =
      prepare_to_write(warp, fs, open, simt::reduce_add(warp, mine ? request.bytes : 0));
  if (prepared < 0) {
    if (mine) result = prepared;
    return those;
  }
  const bool done = in_a_row ? write_row(warp, fs, open, row, append, request, result)
                             : write_spans(warp, fs, open, spans, span, result);
  if (!done) return 0;
  const bool written = mine && result > 0;
  const int synced = warp.any(written) ? sync_if_asked(warp, fs, descriptor) : 0;
  if (written && synced < 0) result = synced;
  return those;
}

/// The request of lane `owner`, by the whole warp. Collective, uniform.
GOFS_NOINLINE GOFS_HD inline int64_t write_for(simt::AnyWarp auto warp, Filesystem& fs,
                                               uint32_t owner, WriteRequest& request) {
  const auto buffer = warp.shfl(reinterpret_cast<uint64_t>(request.buffer), owner);
  const IoVector part =
      one_part(reinterpret_cast<const void*>(buffer), warp.shfl(request.bytes, owner));
  uint64_t offset = warp.shfl(request.offset, owner);
  const int64_t result = write_at(warp, fs, warp.shfl(request.fd, owner), &part, 1, offset);
  if (warp.thread_rank() == owner) request.offset = offset;
  return result;
}

/// The requests of `lanes`. Collective. Per lane bytes written or a negative errno.
GOFS_NOINLINE GOFS_HD inline int64_t write_requests(simt::AnyWarp auto warp, Filesystem& fs,
                                                    uint32_t lanes, WriteRequest& request) {
  const uint32_t rank = warp.thread_rank();
  int64_t result = 0;
  if (request.bytes == 0) {  // has an answer at once
    const bool writable = find_writable(fs, request.fd) != nullptr;
    result = !writable ? -EBADF : request.offset > kOffsetMax ? -EINVAL : 0;
  }
  for (uint32_t left = lanes & warp.ballot(request.bytes != 0); left != 0;) {
    const uint32_t owner = simt::lowest_bit(left);
    const int fd = warp.shfl(request.fd, owner);
    const uint32_t same = warp.ballot((left >> rank & 1u) != 0 && request.fd == fd);
    const Descriptor* const descriptor = (same & (same - 1)) != 0 ? find_writable(fs, fd) : nullptr;
    uint32_t together = 0;
    if (descriptor != nullptr && fs.writer != nullptr) {
      OpenInode& open = fs.open_inodes[descriptor->open_inode];
      const bool append = (descriptor->flags & kOpenAppend) != 0;
      together = lanes_to_write_together(warp, open, same, append, request);
      int error = 0;
      // Which of them failed nobody knows; each then learns it for itself.
      if (together != 0) {
        together = write_lanes_of_file(warp, fs, open, together, append, request, error);
      }
      if (together != 0 && error == 0) error = sync_if_asked(warp, fs, *descriptor);
      if ((together >> rank & 1u) != 0) {
        result = error < 0 ? error : static_cast<int64_t>(request.bytes);
      }
      if (together == 0) {
        together = write_rows_or_spans(warp, fs, *descriptor, same, request, result);
      }
    }
    if (together == 0) {
      const int64_t written = write_for(warp, fs, owner, request);
      if (rank == owner) result = written;
      together = 1u << owner;
    }
    left &= ~together;
  }
  return result;
}

/// After write() by `lanes`, which appended: the position of each descriptor is behind what went
/// furthest. Collective.
GOFS_HD inline void move_positions(simt::AnyWarp auto warp, Filesystem& fs, uint32_t lanes, int fd,
                                   uint64_t end) {
  for (uint32_t left = lanes; left != 0;) {
    const uint32_t owner = simt::lowest_bit(left);
    const int theirs = warp.shfl(fd, owner);
    const uint32_t same = warp.ballot((left >> warp.thread_rank() & 1u) != 0 && fd == theirs);
    uint64_t furthest = 0;
    for (uint32_t rest = same; rest != 0; rest &= rest - 1) {
      furthest = simt::max(furthest, warp.shfl(end, simt::lowest_bit(rest)));
    }
    Descriptor* const descriptor = find_writable(fs, fd);
    if (warp.thread_rank() == owner && descriptor != nullptr) {
      simt::store_relaxed(descriptor->position, furthest);
    }
    left &= ~same;
  }
}

}  // namespace detail

/// pwrite by each lane for itself: descriptors, buffers and ranges may all differ. Collective. Per
/// lane bytes written or a negative errno, as pwrite(). Of lanes that write to the same bytes, any
/// may be the last; of lanes that append, any the first.
GOFS_HD inline int64_t pwrite_lanes(simt::AnyWarp auto warp, Filesystem& fs, WriteRequest request) {
  if (try_to_overwrite(warp, fs, request)) return static_cast<int64_t>(request.bytes);
  return detail::write_requests(warp, fs, warp.ballot(true), request);
}

/// write by each lane for itself, wherever `request.offset` is. Collective. Per lane bytes written
/// or a negative errno, as write().
GOFS_NOINLINE GOFS_HD inline int64_t write_lanes(simt::AnyWarp auto warp, Filesystem& fs,
                                                 WriteRequest request) {
  Descriptor* const descriptor = find_writable(fs, request.fd);
  int error = descriptor == nullptr ? -EBADF : request.bytes > kOffsetMax ? -EINVAL : 0;
  if (error == 0) error = detail::take_position(*descriptor, request.bytes, request.offset);
  const uint32_t lanes = warp.ballot(error == 0);
  const bool appends = descriptor != nullptr && (descriptor->flags & kOpenAppend) != 0;
  if (warp.all(error == 0 && !appends) && try_to_overwrite(warp, fs, request)) {
    return static_cast<int64_t>(request.bytes);
  }
  const int64_t result = detail::write_requests(warp, fs, lanes, request);
  const bool appended = error == 0 && result > 0 && (descriptor->flags & kOpenAppend) != 0;
  const uint64_t end = request.offset + static_cast<uint64_t>(simt::max<int64_t>(result, 0));
  detail::move_positions(warp, fs, warp.ballot(appended), request.fd, end);
  return error < 0 ? error : result;
}

}  // namespace gofs::vfs
