// SPDX-License-Identifier: Apache-2.0
//
// Writing requests of several blocks that lie anywhere within what a file has, one a lane. Each
// lane waits for its own blocks (block_span.h), so that warps which write other places of the file
// do not wait for each other, as they would if a warp held all from its first to its last byte in
// the ring. The blocks of all lanes that have theirs are dealt to the whole warp, one a lane, in
// rounds, each of which is one operation: else a request of four blocks would leave 28 lanes
// without. A lane keeps its blocks until the last of its rounds, so nobody sees half a request. A
// request of one block goes over what is there, as it would by itself (write_blocks.h).
#pragma once

#include "vfs/block_span.h"
#include "vfs/write.h"

namespace gofs::vfs::detail {

/// What a lane wants to be written.
struct SpanRequest {
  uint64_t offset;
  uint64_t bytes;
  const uint8_t* source;
};

GOFS_HD inline uint64_t blocks_of(const SpanRequest& request) {
  return simt::divide_up((request.offset & (kBlockBytes - 1)) + request.bytes, kBlockBytes);
}

/// Whether that is not too much, and within what the file, which keeps its contents in blocks, has.
GOFS_HD inline bool is_span(const f2fs::Inode& inode, const SpanRequest& request) {
  const uint64_t size = simt::load_relaxed(inode.size_bytes);
  return size > inode.inline_bytes && request.bytes != 0 && request.offset < size &&
         request.bytes <= size - request.offset && blocks_of(request) <= kSpanBlocksMax;
}

/// Of the numbers that the lanes count up to, of which none is less than that of the lane before
/// it, which lane has the `number`-th. Collective; where there is none, any lane.
GOFS_HD inline uint32_t lane_that_has(simt::AnyWarp auto warp, uint32_t counted, uint32_t number) {
  uint32_t lane = 0;
  for (uint32_t step = 16; step != 0; step /= 2) {
    const uint32_t next = lane + step;
    const bool exists = next < warp.size();
    const uint32_t before = warp.shfl(counted, exists ? next - 1 : 0);
    if (exists && before <= number) lane = next;
  }
  return lane;
}

/// The part of lane `owner`'s request that lies in its `number`-th block. Collective.
GOFS_HD inline f2fs::WritePiece piece_of_span(simt::AnyWarp auto warp, const SpanRequest& request,
                                              uint32_t owner, uint32_t number) {
  const uint64_t offset = warp.shfl(request.offset, owner);
  const uint64_t end = offset + warp.shfl(request.bytes, owner);
  const uint64_t source = warp.shfl(reinterpret_cast<uint64_t>(request.source), owner);
  const uint64_t start = (offset & ~uint64_t{kBlockBytes - 1}) + uint64_t{number} * kBlockBytes;
  const uint64_t from = simt::max(offset, start);
  const uint64_t to = simt::min(end, start + kBlockBytes);
  return {from, static_cast<uint32_t>(to - from),
          reinterpret_cast<const uint8_t*>(source + (from - offset))};
}

/// Writes what lane `owner` has left behind the first `blocks` of its request, by the whole warp.
/// Collective, uniform. Bytes of the request that are written in the end, or a negative errno.
GOFS_NOINLINE GOFS_HD inline int64_t write_rest_of_span(simt::AnyWarp auto warp, Filesystem& fs,
                                                        f2fs::Inode& inode,
                                                        const SpanRequest& request, uint32_t owner,
                                                        uint32_t blocks) {
  const f2fs::WritePiece first = piece_of_span(warp, request, owner, blocks);
  const uint64_t done = first.offset - warp.shfl(request.offset, owner);
  const uint64_t bytes = warp.shfl(request.bytes, owner) - done;
  IoFailure failed = write_striped(warp, fs, inode, first.source,
                                   {bytes, first.offset, 0, 1, first.offset + bytes});
  if (failed.error != 0) failed.at += done;
  return io_outcome(done + bytes, failed);
}

/// Writes those requests of `lanes`, which have their blocks for themselves, that are of one block,
/// over what is there. Collective, uniform: the lanes whose requests are written.
GOFS_NOINLINE GOFS_HD inline uint32_t write_single_blocks(simt::AnyWarp auto warp, Filesystem& fs,
                                                          f2fs::Inode& inode, uint32_t lanes,
                                                          const SpanRequest& request) {
  const bool mine = (lanes >> warp.thread_rank() & 1u) != 0;
  const uint32_t single = warp.ballot(mine && blocks_of(request) == 1);
  if (single == 0 || begin_overwrite(warp, fs, inode) < 0) return 0;
  const f2fs::WritePiece piece{request.offset, static_cast<uint32_t>(request.bytes),
                               request.source};
  return f2fs::write_over(warp, fs.volume, *fs.writer, fs.pool, single, inode, piece);
}

/// Writes the requests of `lanes`, which have their blocks for themselves, to new ones but for
/// those of one block, which go `over` what is there. Collective. Per lane of them bytes written,
/// or a negative errno.
GOFS_NOINLINE GOFS_HD inline int64_t write_held_spans(simt::AnyWarp auto warp, Filesystem& fs,
                                                      f2fs::Inode& inode, uint32_t lanes,
                                                      const SpanRequest& request, bool over) {
  if (over) lanes &= ~write_single_blocks(warp, fs, inode, lanes, request);
  const uint32_t rank = warp.thread_rank();
  const bool mine = (lanes >> rank & 1u) != 0;
  const auto blocks = static_cast<uint32_t>(mine ? blocks_of(request) : 0);
  uint32_t total = 0;
  const uint32_t before = simt::sum_before(warp, blocks, total);
  int64_t result = static_cast<int64_t>(request.bytes);
  uint32_t ended = 0;  // lanes whose requests were written by themselves
  for (uint32_t first = 0; first < total; first += warp.size()) {
    const uint32_t number = first + rank;
    const uint32_t owner = lane_that_has(warp, before + blocks, number);
    const f2fs::WritePiece piece =
        piece_of_span(warp, request, owner, number - warp.shfl(before, owner));
    const uint32_t pieces = warp.ballot(number < total && (ended >> owner & 1u) == 0);
    if (pieces == 0) continue;
    if (write_block_pieces(warp, fs, inode, pieces, piece, Where::kWithin, 0) == 0) continue;
    // Which of them failed nobody knows, and none is written: each goes on by itself.
    const bool here = before < first + warp.size() && before + blocks > first;
    const uint32_t failed = warp.ballot(mine && here) & ~ended;
    for (uint32_t left = failed; left != 0; left &= left - 1) {
      const uint32_t lane = simt::lowest_bit(left);
      const uint32_t start = warp.shfl(before, lane);
      const int64_t written =
          write_rest_of_span(warp, fs, inode, request, lane, first - simt::min(first, start));
      if (rank == lane) result = written;
    }
    ended |= failed;
  }
  return result;
}

/// Writes the requests of `lanes`, at least one, each of which is_span(), those first whose blocks
/// can be had first. Collective; `result` of each of them: bytes written, or a negative errno.
/// Uniform answer: false, and nothing is written, since somebody reads the file or writes it
/// otherwise, or it has become another.
GOFS_NOINLINE GOFS_HD inline bool write_spans(simt::AnyWarp auto warp, Filesystem& fs,
                                              OpenInode& open, uint32_t lanes,
                                              const SpanRequest& request, int64_t& result) {
  if (!try_join_block_writers(warp, open.lock, fs.writer->cleaning.overwriters_awaited)) {
    return false;
  }
  const bool over = warp.all(f2fs::may_write_over(*fs.writer));
  // Nobody changes the size from here on.
  bool waiting = (lanes >> warp.thread_rank() & 1u) != 0;
  if (warp.any(waiting && !is_span(open.inode, request))) {
    leave_block_writers(warp, open.lock);
    return false;
  }
  BlockSpan span{request.offset >> kBlockShift, 0, 0, 0};
  if (waiting) {
    span.count = static_cast<uint32_t>(blocks_of(request));
    queue_up(fs, open, span);
  }
  simt::Backoff backoff;
  for (uint32_t left = lanes;;) {
    go_on(warp, fs, open, span);
    const bool served = waiting && has_all(span);
    const uint32_t turn = warp.ballot(served);
    if (turn == 0) {
      backoff.pause();
      continue;
    }
    warp.sync();  // what each lane has seen, all may use
    const int64_t written = write_held_spans(warp, fs, open.inode, turn, request, over);
    left &= ~turn;
    warp.sync();
    const simt::Release release;
    if (served) {
      result = written;
      give_back(release, fs, open, span);
      waiting = false;
    }
    if (left == 0) {
      leave_block_writers(warp, open.lock, release);
      return true;
    }
    backoff.reset();
  }
}

}  // namespace gofs::vfs::detail
