// SPDX-License-Identifier: Apache-2.0
//
// The fast path of a write, as pread_lanes() has one of a read: lanes that each write whole LBAs
// within a block of one file, over what is there (f2fs/write_over.h). It is for the case that
// nothing stands in the way, and else leaves all as it was to those who can wait (write_lanes.h):
// no thread reads the file, writes more of it or the same blocks, and there are no address readers;
// its block map knows the blocks; and its times have been set in this moment, when its set-ID bits
// were cleared as well.
#pragma once

#include "f2fs/write_over.h"
#include "vfs/block_queue.h"
#include "vfs/change.h"
#include "vfs/open_files.h"

namespace gofs::vfs {

/// What one thread wants to be written.
struct WriteRequest {
  int fd;
  const void* buffer;
  uint64_t bytes;
  uint64_t offset;  // of one that appends: where it went, in the end
};

namespace detail {

/// Whether a write of `bytes` at `offset` is part of one block that the file, which keeps its
/// contents in blocks, has.
GOFS_HD inline bool is_within(const f2fs::Inode& inode, uint64_t offset, uint64_t bytes) {
  const uint64_t size = simt::load_relaxed(inode.size_bytes);
  const uint64_t room = kBlockBytes - (offset & (kBlockBytes - 1));
  return size > inode.inline_bytes && bytes != 0 && bytes <= room && offset < size &&
         bytes <= size - offset;
}

/// What a lane finds before its warp has joined the block writers, who may change it until then.
struct OverwriteProbe {
  BlockQueue* queue;
  BlockQueue seen;
  const uint32_t* word;  // of the block map, which says where the block lies; null: it may not go
};

/// One lane that `asks`, at first sight: its file's size, times and map.
GOFS_HD inline OverwriteProbe probe_overwrite(const Filesystem& fs, const OpenInode& open,
                                              bool asks, const WriteRequest& request,
                                              uint64_t lba_mask, int64_t now_ns,
                                              int64_t granularity_ns) {
  const uint64_t index = request.offset >> kBlockShift;
  BlockQueue& queue = queue_of_block(fs, open, index);
  const int64_t times_set_ns = simt::load_relaxed(open.inode.times_set_ns);
  const uint32_t* const word = probe_block_word(fs, open, index);
  const BlockQueue seen = look_at(queue);
  const bool fits = is_within(open.inode, request.offset, request.bytes) && word != nullptr &&
                    f2fs::detail::is_directly_addressable(request.buffer, request.offset,
                                                          request.bytes, lba_mask);
  const bool goes =
      f2fs::detail::are_times_set(times_set_ns, now_ns, granularity_ns) && (fits || !asks);
  // Some word is loaded in any case: behind a branch, a lane would wait for it alone.
  return {&queue, seen, !goes ? nullptr : asks ? word : &queue.next};
}

}  // namespace detail

/// Writes the requests of all lanes the fast path, if that can be; lanes without bytes ask for
/// nothing. Collective, uniform: whether all of it is written; if not, any of it may be, and is to
/// be written again.
///
/// A GPU waits as long for one word of memory as for many that are asked for together, and asks for
/// none behind a branch before that is decided. So all that one step can know is loaded at once,
/// and only then looked at: the file system's fields; the descriptor and the writer; the inode and
/// the block's queue; its word in the map; and after queue and lock have been taken, together, all
/// that may have changed since.
GOFS_HD inline bool try_to_overwrite(simt::AnyWarp auto warp, Filesystem& fs,
                                     const WriteRequest& request) {
  const bool asks = request.bytes != 0;
  const uint32_t asking = warp.ballot(asks);
  f2fs::Writer* const writer = simt::load_here(fs.writer);
  if (asking == 0) return false;
  const int fd = warp.shfl(request.fd, simt::lowest_bit(asking));
  OpenInode* const open = find_inode_to_overwrite(warp, fs, fd);
  if (writer == nullptr) return false;  // the answer of the first loads, the descriptor's beside it
  const int64_t now_ns = realtime_about(fs.clock);
  const int64_t granularity_ns = simt::load_here(fs.time_granularity_ns);
  const format::Geometry& geometry = fs.volume.geometry;
  const uint32_t main_blkaddr = simt::load_here(geometry.main_blkaddr);
  const uint32_t main_segments = simt::load_here(geometry.main_segments);
  const f2fs::SegmentInfo* const segments = simt::load_here(writer->segments.segments);
  const bool noted = simt::load_relaxed(writer->written_over) != 0;
  const int failed = simt::load_relaxed(writer->failed);
  const bool may_go = f2fs::may_write_over(*writer);
  const nvme::Route route = nvme::pick_route(fs.volume.array);
  if (!warp.all(open != nullptr && request.fd == fd && failed == 0 && may_go)) {
    return false;
  }
  const uint64_t lba_mask = (uint64_t{1} << route.lba_shift) - 1;
  const detail::OverwriteProbe probe =
      detail::probe_overwrite(fs, *open, asks, request, lba_mask, now_ns, granularity_ns);
  if (!warp.all(probe.word != nullptr)) return false;

  const uint32_t block = simt::load_relaxed(*probe.word);
  const bool served = asks && detail::try_queue_up(*probe.queue, probe.seen);
  const uint64_t counts = enter_block_writers(warp, open->lock);
  const uint32_t in_main = block - main_blkaddr;  // of a hole, or what is not known, too much
  const uint32_t segno = in_main / format::kBlocksPerSegment;
  const bool known = segno < main_segments;
  const bool is_data = f2fs::detail::is_data_in_use(segments[known ? segno : 0],
                                                    in_main % format::kBlocksPerSegment);
  const bool stays = simt::load_relaxed(*probe.word) == block;
  const bool within = detail::is_within(open->inode, request.offset, request.bytes);
  const bool may_stay = f2fs::may_write_over(*writer);
  const bool joined =
      warp.shfl(
          may_write_blocks(open->lock, counts, writer->cleaning.overwriters_awaited) ? 1u : 0u,
          0) != 0;
  const bool mine = served && known && is_data && stays && within;
  bool written = warp.all(joined && may_stay && (mine || !asks));
  if (written) {
    if (!noted) f2fs::note_overwrite(warp, *writer);
    warp.sync();  // each lane has filled its own buffer
    const int error = f2fs::write_data(
        warp, route, asking,
        {open->inode.ino, request.offset, block, static_cast<uint32_t>(request.bytes),
         static_cast<uint8_t*>(const_cast<void*>(request.buffer))},
        f2fs::Merge::kNothing);
    written = warp.all(!asks || error == 0);
  }
  warp.sync();
  const simt::Release release;
  if (served) detail::serve_next(release, *probe.queue, probe.seen.next);
  leave_block_writers(warp, open->lock, release);
  return written;
}

}  // namespace gofs::vfs
