// SPDX-License-Identifier: Apache-2.0
//
// Writing over blocks where they lie, as Linux's f2fs does with direct I/O in its mode `adaptive`:
// no block is taken or released, and no node changes. It leaves out what store_blocks.h is careful
// about, so it is for contents that may be there or not after a power cut, each block by itself:
// those that a program writes within a file, and not zeros behind a new end. And it is for SSDs
// that write a block wholly or not at all.
#pragma once

#include "f2fs/map.h"
#include "f2fs/store_blocks.h"
#include "f2fs/writer.h"

namespace gofs::f2fs {

/// Whether files' blocks may be written over now: the volume is not mounted as log-structured only,
/// its SSDs do not leave a block half written, and there are no address readers. For sure by a
/// block writer (vfs/range_lock.h). One lane.
GOFS_HD inline bool may_write_over(const Writer& writer) {
  const uint32_t held = simt::load_before_command(writer.cleaning.address_readers);  // [C4]
  return writer.writes_over != 0 && held == 0;
}

namespace detail {

/// Whether the segment table has a block of `segment` as one of file data: what a damaged volume
/// calls a file's may be a node. (As Linux's f2fs asks before it writes in place.)
GOFS_HD inline bool is_data_in_use(const SegmentInfo& segment, uint32_t offset) {
  const uint32_t valid = simt::load_relaxed(segment.valid[offset / 32]);
  const uint32_t type = simt::load_relaxed(segment.type);
  return (valid >> offset % 32 & 1u) != 0 && type < format::kDataLogCount;
}

/// Writes pieces of file `ino` over `block` of each lane: whole LBAs from where they are, the rest
/// through spare blocks. Collective; per lane of `lanes` 0 or a negative errno.
GOFS_NOINLINE GOFS_HD inline int write_stored(simt::AnyWarp auto warp, Volume& volume,
                                              const PagePool& pool, uint32_t lanes, uint32_t ino,
                                              uint32_t block, uint64_t file_bytes,
                                              const WritePiece& piece) {
  const uint32_t rank = warp.thread_rank();
  const auto in_block = static_cast<uint32_t>(piece.offset & (kBlockBytes - 1));
  const bool whole_lbas =
      is_directly_addressable(piece.source, in_block, piece.bytes, volume.array.lba_bytes() - 1);
  const uint32_t direct = warp.ballot((lanes >> rank & 1u) != 0 && whole_lbas);
  const uint32_t bounced = lanes & ~direct;
  int result = 0;
  warp.sync();  // each lane has filled its own buffer
  if (direct != 0) {
    // Each block with a command of its own: no larger one is sure to be written block by block.
    const nvme::Route route = nvme::pick_route(volume.array);
    const int written =
        write_data(warp, route, direct,
                   {ino, piece.offset, block, piece.bytes, const_cast<uint8_t*>(piece.source)},
                   Merge::kNothing);
    if ((direct >> rank & 1u) != 0) result = written;
  }
  if (bounced != 0) {
    const uint64_t start = piece.offset - in_block;
    const auto old_bytes =
        static_cast<uint32_t>(simt::min<uint64_t>(file_bytes - start, kBlockBytes));
    const int written =
        write_bounced(warp, volume, pool, bounced, {ino, &block, block, old_bytes}, piece);
    if ((bounced >> rank & 1u) != 0) result = written;
  }
  return result;
}

}  // namespace detail

/// Says that something was written over, or may have been. It is never taken back: who makes
/// anything durable from now on flushes, whatever else there is to do. Collective.
GOFS_HD inline void note_overwrite(simt::AnyWarp auto warp, Writer& writer) {
  if (warp.thread_rank() == 0 && simt::load_relaxed(writer.written_over) == 0) {
    simt::store_relaxed(writer.written_over, 1u);
  }
}

/// Writes one piece a lane over what the file has there, all within its size, each of another
/// block, which `file` holds. Collective; no thread reads them without a lock, and the file's times
/// are set. The inode is one without inline contents. Returns, identical in all lanes: the lanes
/// whose pieces are written. Of the others nothing is where the file has no block, or none that can
/// be found; where the device fails, it is or not. Durable after the next flush (sync_file(),
/// sync_volume()).
GOFS_NOINLINE GOFS_HD inline uint32_t write_over(simt::AnyWarp auto warp, Volume& volume,
                                                 Writer& writer, const PagePool& pool,
                                                 uint32_t lanes, const FileHold& file,
                                                 const WritePiece& piece) {
  const Inode& inode = file.inode;
  const bool mine = (lanes >> warp.thread_rank() & 1u) != 0;
  file.check_block(mine, piece.offset >> kBlockShift);
  BlockPlace place{};
  const int mapped = map_blocks(warp, volume, lanes, inode, piece.offset >> kBlockShift, place);
  const format::Geometry& geometry = volume.geometry;
  const bool there =
      mine && mapped == 0 && place.block != format::kNullAddr &&
      detail::is_data_in_use(writer.segments.segments[geometry.segno_of(place.block)],
                             geometry.offset_in_segment(place.block));
  const uint32_t found = warp.ballot(there);
  if (found == 0) return 0;
  const uint64_t file_bytes = simt::load_relaxed(inode.size_bytes);
  const int written =
      detail::write_stored(warp, volume, pool, found, inode.ino, place.block, file_bytes, piece);
  note_overwrite(warp, writer);
  return warp.ballot(there && written == 0);
}

}  // namespace gofs::f2fs
