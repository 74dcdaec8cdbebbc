// SPDX-License-Identifier: Apache-2.0
//
// SHA-256 of many files, a file a lane. The lanes of a warp read the next chunk of all their files
// together, block by block (so that the chunk of a large file becomes few commands, and those of
// many small files go out side by side), and then hash in step. Files are named by inode number: a
// million of them need no descriptors. The host sorts them by size, largest first, so that the
// lanes of a warp have files alike and no large one comes last.
#pragma once

#include "kernels/sha256.h"
#include "vfs/by_number.h"
#include "vfs/read.h"

namespace gofs::kernels {

struct HashFile {
  uint32_t ino;
  int32_t error;        // 0, or a negative errno: then there is no digest
  uint64_t size_bytes;  // as found
  uint8_t digest[kSha256DigestBytes];
};

/// What a lane shows to the others of its warp.
struct HashLane {
  f2fs::Inode inode;
  int32_t error;  // of some block of the chunk
};

struct HashParams {
  vfs::Filesystem* fs;
  HashFile* files;  // in shared memory
  uint32_t count;
  uint32_t lanes_per_warp;  // that hash; the others only help to read. 1 to the warp's width
  uint32_t* cursor;         // next file that no lane has taken; 0 at the start
  uint32_t chunk_bytes;     // whole blocks
  uint8_t* buffers;         // a chunk a lane, aligned to blocks
  HashLane* lanes;          // one a lane
  uint64_t* bytes_done;     // one a warp, written by it alone: the host may look while we work
};

namespace detail {

/// The lanes' chunks as one list of blocks: lane i's come after those of the lanes before it.
template <simt::AnyWarp Warp>
class ChunkBlocks {
 public:
  /// Collective; `mine` blocks of this lane.
  GOFS_HD ChunkBlocks(Warp warp, uint32_t mine) : warp_(warp), end_(mine) {
    const uint32_t rank = warp.thread_rank();
    for (uint32_t distance = 1; distance < warp.size(); distance *= 2) {
      const uint32_t below = warp.shfl(end_, rank >= distance ? rank - distance : rank);
      if (rank >= distance) end_ += below;
    }
    begin_ = end_ - mine;
  }
  GOFS_HD uint32_t count() const { return warp_.shfl(end_, warp_.size() - 1); }

  /// The lane that block `item` of the list belongs to (the last lane, past the end), and its place
  /// there. Collective; `item` differs from lane to lane.
  GOFS_HD uint32_t owner(uint32_t item, uint32_t& index) const {
    uint32_t low = 0;
    uint32_t high = warp_.size() - 1;
    for (uint32_t span = 1; span < warp_.size(); span *= 2) {
      const uint32_t middle = (low + high) / 2;
      if (warp_.shfl(end_, middle) > item) {
        high = middle;
      } else {
        low = simt::min(middle + 1, high);
      }
    }
    index = item - warp_.shfl(begin_, low);
    return low;
  }

 private:
  const Warp warp_;
  uint32_t end_;
  uint32_t begin_ = 0;
};

/// Gives each lane in `wanting` the next file, as far as there are any. Collective. The index, or
/// params.count.
GOFS_HD inline uint32_t take_files(simt::AnyWarp auto warp, HashParams& params, uint32_t wanting) {
  const uint32_t leader = simt::lowest_bit(wanting);
  uint32_t base = 0;
  if (warp.thread_rank() == leader) {
    base = simt::load_relaxed(*params.cursor);
    // Never far past the end, so that the count cannot wrap.
    if (base < params.count) base = simt::add_relaxed(*params.cursor, simt::popcount(wanting));
  }
  base = warp.shfl(base, leader);
  const uint32_t index = base + simt::popcount(wanting & simt::ranks_below(warp.thread_rank()));
  return simt::min(index, params.count);
}

/// Reads `bytes` from `offset` on of the file of each lane in `lanes`, into the lane's buffer; all
/// of the last block. Collective. A lane's errors go to its HashLane.
GOFS_HD inline void read_chunks(simt::AnyWarp auto warp, HashParams& params,
                                HashLane* lanes_of_warp, uint8_t* buffers_of_warp, uint64_t offset,
                                uint32_t bytes) {
  const ChunkBlocks blocks(warp, static_cast<uint32_t>(simt::divide_up(bytes, kBlockBytes)));
  const uint32_t count = blocks.count();
  for (uint32_t first = 0; first < count; first += warp.size()) {
    uint32_t index = 0;
    const uint32_t item = first + warp.thread_rank();
    const uint32_t owner = blocks.owner(item, index);
    const uint64_t start = warp.shfl(offset, owner) + uint64_t{index} * kBlockBytes;
    const uint32_t chunk = warp.shfl(bytes, owner);
    HashLane& lane = lanes_of_warp[owner];
    const uint32_t reading = warp.ballot(item < count);
    // Whole blocks need no bounce; inline data has no block to be read to its end.
    const f2fs::Piece piece{
        start, lane.inode.has_inline_data() ? chunk : kBlockBytes,
        buffers_of_warp + uint64_t{owner} * params.chunk_bytes + uint64_t{index} * kBlockBytes};
    const int error =
        f2fs::read_pieces(warp, params.fs->volume, params.fs->pool, reading, lane.inode, piece);
    if (item < count && error < 0) simt::store_relaxed(lane.error, static_cast<int32_t>(error));
  }
  warp.sync();
}

}  // namespace detail

GOFS_HD inline void hash_body(simt::AnyWarp auto warp, uint32_t warp_index, uint32_t,
                              HashParams& params) {
  const uint32_t rank = warp.thread_rank();
  const uint64_t first_lane = uint64_t{warp_index} * warp.size();
  HashLane* const lanes_of_warp = params.lanes + first_lane;
  uint8_t* const buffers_of_warp = params.buffers + first_lane * params.chunk_bytes;
  HashLane& lane = lanes_of_warp[rank];
  uint8_t* const buffer = buffers_of_warp + uint64_t{rank} * params.chunk_bytes;

  // Files are read without their locks.
  f2fs::Writer* const holder = rank == 0 ? params.fs->writer : nullptr;
  lane.inode = f2fs::Inode{};  // lanes that never get a file are looked at as well
  bool exhausted = rank >= params.lanes_per_warp;
  bool busy = false;
  uint32_t index = 0;
  uint64_t offset = 0;
  uint64_t size = 0;
  Sha256 hash;
  // Each turn takes a file or a chunk off what is left.
  for (;;) {
    const uint32_t wanting = warp.ballot(!busy && !exhausted);
    if (wanting != 0) {
      const uint32_t taken = detail::take_files(warp, params, wanting);
      const bool mine = (wanting >> rank & 1u) != 0;
      busy = busy || (mine && taken < params.count);
      exhausted = exhausted || (mine && taken == params.count);
      const uint32_t fresh = warp.ballot(mine && busy);
      const uint32_t ino = mine && busy ? params.files[taken].ino : 0;
      int error = vfs::reading_paths(warp, *params.fs, [&] {
        return vfs::load_numbered(warp, *params.fs, fresh, ino, lane.inode);
      });
      if (mine && busy) {
        if (error == 0) error = f2fs::check_supported(lane.inode);
        if (error == 0 && !lane.inode.is_regular()) error = -EINVAL;
        index = taken;
        offset = 0;
        size = lane.inode.size_bytes;
        hash = Sha256();
        HashFile& file = params.files[index];
        file.error = error;
        file.size_bytes = error == 0 ? size : 0;
        busy = error == 0;
      }
      warp.sync();
    }
    if (!warp.any(busy)) {
      if (warp.all(exhausted)) break;
      continue;
    }
    if (holder != nullptr) f2fs::enter_address_readers(*holder);
    const int awaited =
        vfs::detail::wait_for_overwriters(warp, *params.fs, warp.ballot(busy), lane.inode.ino);
    if (busy) lane.error = awaited;
    const uint32_t bytes =
        busy ? static_cast<uint32_t>(simt::min<uint64_t>(params.chunk_bytes, size - offset)) : 0;
    warp.sync();
    detail::read_chunks(warp, params, lanes_of_warp, buffers_of_warp, offset, bytes);
    if (holder != nullptr) f2fs::leave_address_readers(*holder);

    if (busy) {
      const int32_t error = simt::load_relaxed(lane.error);
      const uint32_t whole = bytes / kSha256BlockBytes;
      if (error == 0) hash.blocks(buffer, whole);
      offset += bytes;
      if (error != 0 || offset == size) {
        HashFile& file = params.files[index];
        file.error = error;
        if (error == 0) {
          hash.finish(buffer + whole * kSha256BlockBytes, bytes % kSha256BlockBytes, size,
                      file.digest);
        }
        busy = false;
      }
    }
    const uint64_t moved = simt::reduce_add(warp, uint64_t{bytes});
    if (rank == 0) {
      uint64_t& done = params.bytes_done[warp_index];
      simt::store_system_relaxed(done, simt::load_system_relaxed(done) + moved);
    }
    warp.sync();
  }
}

}  // namespace gofs::kernels
