// SPDX-License-Identifier: Apache-2.0
//
// The contents of new blocks, of each lane's piece: straight from the caller's memory if the device
// can take them from there, else through spare blocks, with what is kept of the former block.
#pragma once

#include "f2fs/file_data.h"
#include "f2fs/page_pool.h"
#include "simt/copy.h"

namespace gofs::f2fs {

/// Part of one file block, or of a file's inline data, and what shall be there; or a row of whole
/// blocks, from where the device can take them.
struct WritePiece {
  uint64_t offset;        // in the file, bytes
  uint32_t bytes;         // unless they are whole blocks, it does not cross a block boundary
  const uint8_t* source;  // null: zeros

  GOFS_HD uint32_t block_count() const { return simt::max(1u, bytes / uint32_t{kBlockBytes}); }
};

namespace detail {

/// Blocks that are to be written: whose they are, where they go, and what is kept of the block
/// before a single one.
struct NewBlocks {
  uint32_t ino;
  const uint32_t* blocks;  // one for each of the piece
  uint32_t old_block;
  uint32_t old_bytes;  // from its beginning; the rest becomes zeros
};

/// Makes in `page` what is to be written, on which a lane's old block lies already. Collective, for
/// one lane after the other.
GOFS_HD inline void compose_pages(simt::AnyWarp auto warp, uint32_t lanes, uint8_t* page,
                                  uint32_t kept, const WritePiece& piece) {
  const auto in_block = static_cast<uint32_t>(piece.offset & (kBlockBytes - 1));
  for (; lanes != 0; lanes &= lanes - 1) {
    const uint32_t owner = simt::lowest_bit(lanes);
    auto* const to = reinterpret_cast<uint8_t*>(warp.shfl(reinterpret_cast<uint64_t>(page), owner));
    const auto* const from = reinterpret_cast<const uint8_t*>(
        warp.shfl(reinterpret_cast<uint64_t>(piece.source), owner));
    const uint32_t zeros_from = warp.shfl(kept, owner);
    const uint32_t at = warp.shfl(in_block, owner);
    const uint32_t bytes = warp.shfl(piece.bytes, owner);
    simt::zero_bytes(warp, to + zeros_from, kBlockBytes - zeros_from);
    warp.sync();
    if (from != nullptr) {
      simt::copy_bytes(warp, to + at, from, bytes);
    } else {
      simt::zero_bytes(warp, to + at, bytes);
    }
  }
  warp.sync();
}

/// Writes blocks through spare ones. Collective; per lane of `lanes` 0 or a negative errno.
GOFS_NOINLINE GOFS_HD inline int write_bounced(simt::AnyWarp auto warp, Volume& volume,
                                               const PagePool& pool, uint32_t lanes,
                                               const NewBlocks& where, const WritePiece& piece) {
  const auto in_block = static_cast<uint32_t>(piece.offset & (kBlockBytes - 1));
  const bool covered = in_block == 0 && piece.bytes >= where.old_bytes;
  const uint32_t kept = covered ? 0 : where.old_bytes;
  const nvme::Route route = nvme::pick_route(volume.array);
  bool todo = (lanes >> warp.thread_rank() & 1u) != 0;
  int result = 0;
  const simt::Deadline deadline = simt::Deadline::after_ns(kFrameTimeoutNs);
  simt::Backoff backoff;
  while (warp.any(todo)) {
    uint8_t* const page = todo ? pool.try_take(warp) : nullptr;
    DataPart whole{where.ino, piece.offset - in_block, where.old_block, kBlockBytes, page};
    const uint32_t holders = warp.ballot(page != nullptr);
    if (holders == 0) {
      if (warp.any(deadline.passed())) return todo ? -EBUSY : result;
      backoff.pause();
      continue;
    }
    const bool holds = page != nullptr;
    int error = 0;
    const uint32_t reading = warp.ballot(holds && kept != 0);
    if (reading != 0) {
      const int read = read_data(warp, route, reading, whole, Merge::kNothing);
      if (holds && kept != 0) error = read;
    }
    warp.sync();
    const uint32_t writing = warp.ballot(holds && error == 0);
    compose_pages(warp, writing, page, kept, piece);
    if (writing != 0) {
      whole.block = where.blocks[0];
      const int written = write_data(warp, route, writing, whole, Merge::kNothing);
      if (holds && error == 0) error = written;
    }
    if (holds) {
      result = error;
      pool.release(page);
      todo = false;
    }
  }
  return result;
}

/// How many of `count` blocks one command can write, from the first of `blocks` on.
GOFS_HD inline uint32_t run_of_blocks(const nvme::Array& array, const uint32_t* blocks,
                                      uint32_t count) {
  const uint32_t most = simt::min(count, array.run_bytes_max / uint32_t{kBlockBytes});
  uint32_t run = 1;
  while (run < most && blocks[run] == blocks[0] + run && (blocks[run] & array.chunk_mask) != 0) {
    ++run;
  }
  return run;
}

/// Writes whole blocks from where their contents are, all lanes at once, those that follow each
/// other on an SSD with one command. Collective; per lane of `lanes` 0 or a negative errno.
GOFS_NOINLINE GOFS_HD inline int write_direct(simt::AnyWarp auto warp, Volume& volume,
                                              uint32_t lanes, const NewBlocks& where,
                                              const WritePiece& piece) {
  const nvme::Route route = nvme::pick_route(volume.array);
  const bool mine = (lanes >> warp.thread_rank() & 1u) != 0;
  const uint32_t count = mine ? piece.block_count() : 0;
  int result = 0;
  for (uint32_t done = 0;;) {
    const bool writes = done < count && result == 0;
    const uint32_t writing = warp.ballot(writes);
    if (writing == 0) return result;
    const uint32_t* const blocks = where.blocks + done;
    const uint32_t run = writes ? run_of_blocks(route.array, blocks, count - done) : 0;
    const uint64_t from = uint64_t{done} << kBlockShift;
    const DataPart part{where.ino, piece.offset + from, writes ? blocks[0] : 0,
                        run * uint32_t{kBlockBytes}, const_cast<uint8_t*>(piece.source) + from};
    const int written = write_data(warp, route, writing, part, Merge::kNeighbours);
    if (writes) result = written;
    done += run;
  }
}

/// Writes the new blocks of each lane: from where their contents are, if the device can take them
/// from there. Collective; per lane of `lanes` 0 or a negative errno.
GOFS_NOINLINE GOFS_HD inline int write_new_blocks(simt::AnyWarp auto warp, Volume& volume,
                                                  const PagePool& pool, uint32_t lanes,
                                                  const NewBlocks& where, const WritePiece& piece) {
  const uint32_t rank = warp.thread_rank();
  const bool whole = is_directly_addressable(piece.source, 0, piece.bytes, kBlockBytes - 1);
  const uint32_t direct = warp.ballot((lanes >> rank & 1u) != 0 && whole);
  const uint32_t bounced = lanes & ~direct;
  int result = 0;
  warp.sync();  // each lane has filled its own buffer
  if (direct != 0) {
    const int written = write_direct(warp, volume, direct, where, piece);
    if ((direct >> rank & 1u) != 0) result = written;
  }
  if (bounced != 0) {
    const int written = write_bounced(warp, volume, pool, bounced, where, piece);
    if ((bounced >> rank & 1u) != 0) result = written;
  }
  return result;
}

}  // namespace detail

}  // namespace gofs::f2fs
