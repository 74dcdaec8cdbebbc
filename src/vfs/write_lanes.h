// SPDX-License-Identifier: Apache-2.0
//
// Writing by threads that each have a request of their own, as pread_lanes() is for reading. Those
// of one file whose blocks are held by their queues (write_plan.h) are written together: each lane
// waits for its own blocks, so that warps which write other places of the file do not wait for each
// other. The blocks of all lanes that hold theirs are dealt to the whole warp, one a lane or a row
// of them, in rounds, each of which is one operation: else a request of four blocks would leave 28
// lanes without. A lane keeps its blocks until the last of its rounds, so that no reader finds half
// a request. Where the file is read meanwhile, or written otherwise, one range in its ring holds
// all of them.
//
// All other requests take their turns, each with the whole warp at work.
#pragma once

#include "vfs/write.h"

namespace gofs::vfs {

namespace detail {

/// How long lanes wait together for their blocks, and those between them, before each waits for its
/// own, where a lane itself may have detached some of them (async_write.h).
inline constexpr uint64_t kTogetherPatienceNs = 2'000'000;

GOFS_HD inline uint64_t blocks_of(const WriteRequest& request) {
  return simt::divide_up((request.offset & (kBlockBytes - 1)) + request.bytes, kBlockBytes);
}

/// This lane's request, of a file that is as `view` says, and how it is held.
GOFS_HD inline WritePlan plan_of(const FileView& view, const WriteRequest& request) {
  return plan_write(view, request.offset, request.bytes);
}

/// The pieces of a request, in rows of `most` blocks at most.
GOFS_HD inline PieceCut pieces_of(const f2fs::Inode& inode, const WriteRequest& request,
                                  uint32_t most) {
  return PieceCut(inode, request.offset, request.offset + request.bytes,
                  static_cast<const uint8_t*>(request.buffer), most);
}

/// The request of lane `owner`. Collective.
GOFS_HD inline WriteRequest request_of_lane(simt::AnyWarp auto warp, const WriteRequest& request,
                                            uint32_t owner) {
  return {
      warp.shfl(request.fd, owner),
      reinterpret_cast<const void*>(warp.shfl(reinterpret_cast<uint64_t>(request.buffer), owner)),
      warp.shfl(request.bytes, owner), warp.shfl(request.offset, owner)};
}

/// Writes what lane `owner` has left from its piece `first` on, by the whole warp. Collective,
/// uniform. Bytes of the request that are written in the end, or a negative errno.
GOFS_NOINLINE GOFS_HD inline int64_t write_rest_of_lane(simt::AnyWarp auto warp, Filesystem& fs,
                                                        const f2fs::FileHold& file,
                                                        const WriteRequest& request, uint32_t owner,
                                                        uint32_t most, uint32_t first) {
  const WriteRequest whole = request_of_lane(warp, request, owner);
  const f2fs::WritePiece piece = pieces_of(file.inode, whole, most).piece(first);
  const uint64_t done = piece.offset - whole.offset;
  const uint64_t bytes = whole.bytes - done;
  IoFailure failed =
      write_striped(warp, fs, file, piece.source,
                    {bytes, piece.offset, 0, 1, round_blocks_of(warp, piece.offset, bytes, 1), 0, 0,
                     f2fs::Growth::kStays});
  if (failed.error != 0) failed.at += done;
  return io_outcome(done + bytes, failed);
}

/// Those blocks of a file that `lanes` have all of their spans of, from the first to the last of
/// them: whether some between them are others', only the queues know. Collective.
GOFS_HD inline f2fs::FileHold file_of_spans(simt::AnyWarp auto warp, OpenInode& open,
                                            uint32_t lanes, const BlockSpan& span) {
  ByteRange range{};
  if constexpr (simt::kDebugChecks) {
    range =
        range_of_lanes(warp, lanes, span.first << kBlockShift, uint64_t{span.count} << kBlockShift);
  }
  return HoldMaker::file(open, range);
}

/// Writes the requests of `lanes`, whose blocks `file` holds: those of `over`, each part of one
/// block that the file has, over what is there, all others to new blocks. Collective. Per lane of
/// them bytes written, or a negative errno.
GOFS_NOINLINE GOFS_HD inline int64_t write_held_lanes(simt::AnyWarp auto warp, Filesystem& fs,
                                                      const f2fs::FileHold& file, uint32_t lanes,
                                                      uint32_t over, const WriteRequest& request) {
  if (over != 0) {
    const f2fs::WritePiece piece{request.offset, static_cast<uint32_t>(request.bytes),
                                 static_cast<const uint8_t*>(request.buffer)};
    lanes &= ~write_in_place(warp, fs, file, over, piece);
  }
  const uint32_t rank = warp.thread_rank();
  const bool mine = (lanes >> rank & 1u) != 0;
  const f2fs::Inode& inode = file.inode;
  const auto count = [&](uint32_t row) {
    return mine ? pieces_of(inode, request, row).count() : 0;
  };
  const uint64_t blocks = simt::reduce_add(warp, mine ? blocks_of(request) : 0);
  const uint32_t most =
      pick_row(warp, blocks, [&](uint32_t row) { return simt::reduce_add(warp, count(row)); });
  const uint32_t pieces = count(most);
  uint32_t total = 0;
  const uint32_t before = simt::sum_before(warp, pieces, total);
  auto result = static_cast<int64_t>(request.bytes);
  uint32_t ended = 0;  // lanes whose requests were written by themselves
  for (uint32_t first = 0; first < total; first += warp.size()) {
    const uint32_t number = simt::min(first + rank, total - 1);
    const uint32_t owner = simt::lane_that_has(warp, before + pieces, number);
    const WriteRequest theirs = request_of_lane(warp, request, owner);
    const f2fs::WritePiece piece =
        pieces_of(inode, theirs, most).piece(number - warp.shfl(before, owner));
    const uint32_t writing = warp.ballot(first + rank < total && (ended >> owner & 1u) == 0);
    if (writing == 0) continue;
    if (write_block_pieces(warp, fs, file, writing, piece) == 0) continue;
    // Which of them failed is not known, and none is written: each goes on by itself.
    const bool here = before < first + warp.size() && before + pieces > first;
    const uint32_t failed = warp.ballot(mine && here) & ~ended;
    for (uint32_t left = failed; left != 0; left &= left - 1) {
      const uint32_t lane = simt::lowest_bit(left);
      const uint32_t start = warp.shfl(before, lane);
      const int64_t written =
          write_rest_of_lane(warp, fs, file, request, lane, most, first - simt::min(first, start));
      if (rank == lane) result = written;
    }
    ended |= failed;
  }
  return result;
}

/// Of `lanes`, those whose requests are held by queues while the file is as `view` says.
GOFS_HD inline uint32_t lanes_of_blocks(simt::AnyWarp auto warp, const FileView& view,
                                        uint32_t lanes, const WriteRequest& request) {
  const bool mine = (lanes >> warp.thread_rank() & 1u) != 0;
  return warp.ballot(mine && request.offset + request.bytes <= f2fs::kFileBytesMax &&
                     plan_of(view, request).hold == Hold::kBlocks);
}

/// Writes the requests of `lanes`, at least one, whose plans hold blocks, those first whose blocks
/// can be had first. Collective; `result` of each of them: bytes written, or a negative errno.
/// Returns, identical in all lanes: false, and nothing is written: the file is read, written
/// otherwise, or another now.
GOFS_NOINLINE GOFS_HD inline bool write_lanes_queued(simt::AnyWarp auto warp, Filesystem& fs,
                                                     OpenInode& open, uint32_t lanes,
                                                     const WriteRequest& request, int64_t& result) {
  bool waiting = (lanes >> warp.thread_rank() & 1u) != 0;
  WritePlan plan{};
  const int grows = join_block_writers(warp, fs, open, [&] {
    const FileView view = view_of(warp, open.inode);
    if (waiting) plan = plan_of(view, request);
    return lanes_of_blocks(warp, view, lanes, request) != lanes ? -1 : warp.any(plan.grows) ? 1 : 0;
  });
  if (grows < 0) return false;
  BlockSpan span{plan.range.offset >> kBlockShift, 0, 0, 0};
  if (waiting) {
    span.count = static_cast<uint32_t>(plan.range.bytes >> kBlockShift);
    queue_up(fs, open, span);
  }
  simt::Backoff backoff;
  for (uint32_t left = lanes;;) {
    advance_queues(warp, fs, open, span);
    const bool served = waiting && has_all(span);
    const uint32_t turn = warp.ballot(served);
    if (turn == 0) {
      backoff.pause();
      continue;
    }
    warp.sync();  // what each lane has seen, all may use
    const f2fs::FileHold file = file_of_spans(warp, open, turn, span);
    const int64_t written =
        write_held_lanes(warp, fs, file, turn, warp.ballot(served && plan.in_place), request);
    left &= ~turn;
    warp.sync();
    const simt::Release release;
    if (served) {
      result = written;
      release_queues(release, fs, open, span);
      waiting = false;
    }
    if (left == 0) {
      if (grows > 0) unshare_end(warp, open.lock, release);
      leave_block_writers(warp, open.lock, release);
      return true;
    }
    backoff.reset();
  }
}

/// The same with one range in the ring, from the first of their blocks to the last. Returns,
/// identical in all lanes: false also where the range cannot be had.
GOFS_NOINLINE GOFS_HD inline bool write_lanes_in_ring(simt::AnyWarp auto warp, Filesystem& fs,
                                                      OpenInode& open, uint32_t lanes,
                                                      const WriteRequest& request,
                                                      int64_t& result) {
  const bool mine = (lanes >> warp.thread_rank() & 1u) != 0;
  const bool kept = warp.any(simt::load_relaxed(open.lock.detached_count) != 0);
  const simt::Deadline deadline = simt::Deadline::after_ns(
      kept ? simt::min(fs.lock_timeout_ns, kTogetherPatienceNs) : fs.lock_timeout_ns);
  ByteRange range = range_of_lanes(warp, lanes, request.offset, request.bytes);
  range = plan_write({kOffsetMax, false, true}, range.offset, range.bytes).range;
  WriteHold hold{};
  const int locked = hold_in_ring(warp, open, Hold::kRange, range, deadline, hold);
  if (locked < 0) {
    // A warp that has waited that long need not wait again, once for each lane.
    if (mine && !kept) result = locked;
    return !kept;
  }
  const FileView view = view_of(warp, open.inode);
  const bool same = lanes_of_blocks(warp, view, lanes, request) == lanes;
  if (same) {
    const f2fs::FileHold file = held_file(hold);
    const bool distinct =
        simt::lowest_bit(warp.match_any(mine ? request.offset >> kBlockShift
                                             : ~uint64_t{0} - warp.thread_rank())) ==
        warp.thread_rank();
    // Lanes of one block are written one after the other.
    const uint32_t first = warp.ballot(mine && distinct && blocks_of(request) == 1);
    for (uint32_t left = lanes; left != 0;) {
      uint32_t turn = left & first;
      if (turn == 0) turn = left & ~(left - 1);
      const int64_t written = write_held_lanes(warp, fs, file, turn, 0, request);
      if ((turn >> warp.thread_rank() & 1u) != 0) result = written;
      left &= ~turn;
    }
  }
  release(warp, fs, hold);
  return same;
}

/// Appends the whole blocks of `lanes`, in order of rank, with one hold of the file's end.
/// Collective; `result` of each of them, and `request.offset` where it went. Returns, identical in
/// all lanes: false, and nothing is written: the file does not end with a block.
GOFS_NOINLINE GOFS_HD inline bool append_lanes(simt::AnyWarp auto warp, Filesystem& fs,
                                               OpenInode& open, uint32_t lanes,
                                               WriteRequest& request, int64_t& result) {
  if (warp.any(simt::load_relaxed(open.lock.detached_count) != 0)) return false;
  const bool mine = (lanes >> warp.thread_rank() & 1u) != 0;
  const simt::Deadline deadline = simt::Deadline::after_ns(fs.lock_timeout_ns);
  const uint64_t bytes = uint64_t{simt::popcount(lanes)} * kBlockBytes;
  uint64_t offset = 0;
  WritePlan plan{};
  WriteHold hold{};
  const int locked = acquire_range(warp, open, bytes, true, deadline, offset, plan, hold);
  if (locked < 0) {
    if (mine) result = locked;
    return true;
  }
  const bool fits = offset % kBlockBytes == 0 && plan.hold != Hold::kWholeFile &&
                    offset <= f2fs::kFileBytesMax - bytes;
  if (fits) {
    const uint32_t before = simt::popcount(lanes & simt::ranks_below(warp.thread_rank()));
    if (mine) request.offset = offset + uint64_t{before} * kBlockBytes;
    const int64_t written = write_held_lanes(warp, fs, held_file(hold), lanes, 0, request);
    if (mine) result = written;
  }
  release(warp, fs, hold);
  return fits;
}

/// Writes those of `lanes`, which have all opened `descriptor`, that can be written together: those
/// lanes, with `result`. Collective, uniform.
GOFS_NOINLINE GOFS_HD inline uint32_t write_lanes_together(simt::AnyWarp auto warp, Filesystem& fs,
                                                           const Descriptor& descriptor,
                                                           uint32_t lanes, WriteRequest& request,
                                                           int64_t& result) {
  OpenInode& open = fs.open_inodes[descriptor.open_inode];
  const bool append = (descriptor.flags & kOpenAppend) != 0;
  const bool asks = (lanes >> warp.thread_rank() & 1u) != 0;
  const FileView view = view_of(warp, open.inode);
  const uint32_t those = append ? warp.ballot(asks && request.bytes == kBlockBytes)
                                : lanes_of_blocks(warp, view, lanes, request);
  if ((those & (those - 1)) == 0) return 0;
  const bool mine = (those >> warp.thread_rank() & 1u) != 0;
  const bool grows = append || warp.any(mine && request.offset + request.bytes > view.size_bytes);
  bool written = grows && try_to_append(warp, fs, open, those, append, request);
  if (written) {
    if (mine) result = static_cast<int64_t>(request.bytes);
  } else {
    const int prepared =
        prepare_to_write(warp, fs, open, simt::reduce_add(warp, mine ? request.bytes : 0));
    if (prepared < 0) {
      if (mine) result = prepared;
      return those;
    }
    written = append ? append_lanes(warp, fs, open, those, request, result)
                     : write_lanes_queued(warp, fs, open, those, request, result) ||
                           write_lanes_in_ring(warp, fs, open, those, request, result);
  }
  if (!written) return 0;
  const bool some = mine && result > 0;
  const int synced = warp.any(some) ? sync_if_asked(warp, fs, descriptor) : 0;
  if (some && synced < 0) result = synced;
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
    const bool writable = find_writable(warp, fs, request.fd) != nullptr;
    result = !writable ? -EBADF : request.offset > kOffsetMax ? -EINVAL : 0;
  }
  for (uint32_t left = lanes & warp.ballot(request.bytes != 0); left != 0;) {
    const uint32_t owner = simt::lowest_bit(left);
    const int fd = warp.shfl(request.fd, owner);
    const uint32_t same = warp.ballot((left >> rank & 1u) != 0 && request.fd == fd);
    const Descriptor* const descriptor =
        (same & (same - 1)) != 0 ? find_writable(warp, fs, fd) : nullptr;
    uint32_t together = 0;
    if (descriptor != nullptr && fs.writer != nullptr) {
      const bool append = (descriptor->flags & kOpenAppend) != 0;
      if (append) together = append_records(warp, fs, *descriptor, same, request, result);
      if (together == 0) {
        together = write_lanes_together(warp, fs, *descriptor, same, request, result);
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
    Descriptor* const descriptor = find_writable(warp, fs, fd);
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
  Descriptor* const descriptor = find_writable(warp, fs, request.fd);
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
