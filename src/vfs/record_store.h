// SPDX-License-Identifier: Apache-2.0
//
// Storing a run of records (record_stream.h) at the end of the file that has the buffer, by the
// flusher. All of it is one operation, so no checkpoint holds a part of a record: blocks from that
// of the file's end on, and the size last. Full blocks go to the SSD from where the records are;
// the first block, if the file ends within it, and the last from pages of the buffer, with zeros
// behind the file's end.
#pragma once

#include "f2fs/read.h"
#include "simt/copy_any.h"
#include "vfs/block_queue.h"
#include "vfs/record_stream.h"
#include "vfs/resize.h"
#include "vfs/write_rounds.h"

namespace gofs::vfs::detail {

/// The blocks of a file that a run of records changes.
struct RecordBlocks {
  uint64_t size;   // of the file before
  uint64_t end;    // and after
  uint64_t first;  // the block of `size`
  uint32_t count;
  uint32_t has_head;  // 1: the file ends within the first block, which has a page
  uint32_t has_foot;  // 1: the last block is another, and has a page, since it is not full
  uint32_t head_page;

  GOFS_HD uint32_t foot_page() const { return 1 - head_page; }
  /// Which of the two has what is then the file's last block, if that is there in part.
  GOFS_HD uint32_t page_of_end() const { return has_foot != 0 ? foot_page() : head_page; }
};

GOFS_HD inline RecordBlocks blocks_of_run(const RecordBuffer& buffer, const RecordRun& run) {
  RecordBlocks blocks{};
  blocks.size = buffer.origin + run.from;
  blocks.end = buffer.origin + run.to;
  blocks.first = blocks.size >> kBlockShift;
  blocks.count =
      static_cast<uint32_t>(((blocks.end + kBlockBytes - 1) >> kBlockShift) - blocks.first);
  blocks.has_head = blocks.size % kBlockBytes != 0 ? 1 : 0;
  blocks.has_foot = blocks.end % kBlockBytes != 0 && blocks.count > blocks.has_head ? 1 : 0;
  blocks.head_page = buffer.tail.page;
  return blocks;
}

/// Where the contents of block `number` of a run are: a whole block.
GOFS_HD inline const uint8_t* source_of_block(const RecordBuffer& buffer,
                                              const RecordBlocks& blocks, uint32_t number) {
  if (number == 0 && blocks.has_head != 0) return buffer.page(blocks.head_page);
  if (number + 1 == blocks.count && blocks.has_foot != 0) return buffer.page(blocks.foot_page());
  const uint64_t in_stream = ((blocks.first + number) << kBlockShift) - buffer.origin;
  return buffer.data + (in_stream & (buffer.bytes - 1));
}

/// Clears what lies behind the file's end in the page of the first block. Collective.
GOFS_NOINLINE GOFS_HD inline void clear_head(simt::AnyWarp auto warp, const RecordBuffer& buffer,
                                             const RecordBlocks& blocks) {
  uint8_t* const page = buffer.page(blocks.head_page);
  const uint64_t kept = blocks.size % kBlockBytes;
  for (uint64_t i = kept + warp.thread_rank(); i < kBlockBytes; i += warp.size()) page[i] = 0;
  warp.sync();
}

/// Copies the bytes of a run that lie in its first and its last block to their pages; the first
/// one's has what the file has of it. Collective.
GOFS_HD inline void fill_pages(simt::AnyWarp auto warp, const RecordBuffer& buffer,
                               const RecordBlocks& blocks) {
  const simt::CopyShare share{warp.thread_rank(), warp.size()};
  const auto copy = [&](uint8_t* page, uint64_t from, uint64_t to) {
    const uint64_t in_stream = from - buffer.origin;
    simt::copy_any(share, page + from % kBlockBytes, buffer.data + (in_stream & (buffer.bytes - 1)),
                   to - from);
  };
  if (blocks.has_foot != 0) {
    uint8_t* const page = buffer.page(blocks.foot_page());
    simt::zero_bytes(warp, page, kBlockBytes);
    warp.sync();
    copy(page, blocks.end & ~uint64_t{kBlockBytes - 1}, blocks.end);
  }
  if (blocks.has_head != 0 && buffer.tail.clean == 0) clear_head(warp, buffer, blocks);
  if (blocks.has_head != 0) {
    const uint64_t block_end = (blocks.first + 1) << kBlockShift;
    copy(buffer.page(blocks.head_page), blocks.size, simt::min(blocks.end, block_end));
  }
  warp.sync();
}

/// Whether the page of the file's last block has what the file has, by the holder of a range of it
/// with the number `holds`.
GOFS_HD inline bool is_tail_known(const Filesystem& fs, const OpenInode& open,
                                  const RecordBuffer& buffer, uint64_t size, uint32_t holds) {
  const RecordTail& tail = buffer.tail;
  return tail.end == size && tail.holds == holds &&
         simt::load_relaxed(queue_of_block(fs, open, size >> kBlockShift).next) == tail.queue_next;
}

/// Notes what is in the pages when `blocks` are in the file; `holds` as it is then. By one lane,
/// which holds the file's end, or all from that on, exclusively.
GOFS_HD inline void note_tail(const Filesystem& fs, const OpenInode& open, RecordBuffer& buffer,
                              const RecordBlocks& blocks, uint32_t holds) {
  const BlockQueue& queue = queue_of_block(fs, open, blocks.end >> kBlockShift);
  const uint32_t serving = simt::load_acquire(queue.serving);
  const uint32_t next = simt::load_relaxed(queue.next);
  // A ticket that another has drawn already may be that of a write to come.
  buffer.tail = {serving == next ? blocks.end : 0, blocks.page_of_end(), 1, holds, next};
}

/// Reads what the file has of the first block to its page. Collective, uniform, within the
/// operation. 0 or a negative errno.
GOFS_NOINLINE GOFS_HD inline int read_head(simt::AnyWarp auto warp, Filesystem& fs,
                                           const f2fs::Inode& inode, const RecordBuffer& buffer,
                                           const RecordBlocks& blocks) {
  uint8_t* const page = buffer.page(blocks.head_page);
  const int read = f2fs::read_pieces(warp, fs.volume, fs.pool, 1u, inode,
                                     {blocks.first << kBlockShift, kBlockBytes, page});
  const int error = simt::first_error(warp, warp.thread_rank() == 0 ? read : 0);
  if (error < 0) return error;
  warp.sync();
  clear_head(warp, buffer, blocks);
  return 0;
}

/// Stores a run in a file whose contents are in its inode, and stay there. Collective, uniform,
/// within the operation. 0 or a negative errno.
GOFS_NOINLINE GOFS_HD inline int store_in_inode(simt::AnyWarp auto warp, f2fs::Operation& op,
                                                const f2fs::FileHold& file,
                                                const RecordBuffer& buffer, const RecordRun& run,
                                                const RecordBlocks& blocks) {
  uint8_t* const page = buffer.page(0);
  const simt::CopyShare share{warp.thread_rank(), warp.size()};
  simt::copy_any(share, page, buffer.data + (run.from & (buffer.bytes - 1)), run.to - run.from);
  warp.sync();
  return f2fs::write_pieces(warp, op, 1u, file,
                            {blocks.size, static_cast<uint32_t>(run.to - run.from), page});
}

/// Stores the blocks, as one operation's, in rounds of a block a lane: the first one, in which the
/// file ends, in the last round, with the size, so that what fails before leaves all as it was up
/// to the file's end. Collective, uniform. 0 or a negative errno; `leaves` becomes true where
/// blocks may be behind the end then.
GOFS_NOINLINE GOFS_HD inline int store_in_rounds(simt::AnyWarp auto warp, f2fs::Operation& op,
                                                 const f2fs::FileHold& file,
                                                 const RecordBuffer& buffer,
                                                 const RecordBlocks& blocks, bool& leaves) {
  const uint32_t rank = warp.thread_rank();
  const uint32_t others = blocks.count - blocks.has_head;
  for (uint32_t stored = 0;;) {
    const uint32_t left = others - stored;
    const bool last = left + blocks.has_head <= warp.size();
    const uint32_t head = last ? blocks.has_head : 0;
    const uint32_t count = simt::min(left + head, warp.size());
    const uint32_t number = rank < head ? 0 : blocks.has_head + stored + (rank - head);
    f2fs::WritePiece piece{};
    if (rank < count) {
      piece = {(blocks.first + number) << kBlockShift, kBlockBytes,
               source_of_block(buffer, blocks, number)};
    }
    f2fs::InodeUpdate update = f2fs::update_of_times(op.now);
    if (last) update.size_least = blocks.end;
    const int error = f2fs::store_pieces(warp, op, warp.ballot(rank < count), file, piece, update);
    if (error < 0 || last) return error;
    stored += count;
    leaves = true;
  }
}

/// Takes away what rounds that were followed by none that failed have left behind the file's end,
/// which is locked. Collective, uniform. What was reserved there goes as well.
GOFS_NOINLINE GOFS_HD inline void cut_behind_end(simt::AnyWarp auto warp, Filesystem& fs,
                                                 const f2fs::FileHold& file) {
  const uint64_t size = warp.shfl(simt::load_relaxed(file.inode.size_bytes), 0);
  set_size(warp, fs, file, size, [](f2fs::Operation&) { return 0; });
}

/// Locks the file from the block of its end on, where that is at `size`. Collective, uniform. 0;
/// -EAGAIN: the end is elsewhere; -ETIMEDOUT. `holds`: the number of this hold.
GOFS_NOINLINE GOFS_HD inline int lock_end(simt::AnyWarp auto warp, Filesystem& fs, OpenInode& open,
                                          uint64_t size, WriteHold& hold, uint32_t& holds) {
  const uint64_t begin = size <= open.inode.inline_bytes ? 0 : size & ~uint64_t{kBlockBytes - 1};
  const simt::Deadline deadline = simt::Deadline::after_ns(fs.lock_timeout_ns);
  const int error =
      hold_in_ring(warp, open, Hold::kRange, {begin, kOffsetMax - begin}, deadline, hold);
  if (error < 0) return error;
  holds = warp.shfl(simt::load_relaxed(open.lock.holds), 0);
  if (warp.shfl(simt::load_relaxed(open.inode.size_bytes), 0) == size) return 0;
  release(warp, fs, hold);
  return -EAGAIN;
}

/// Stores a run as all writes are stored that grow a file. Collective, uniform, by the flusher. 0,
/// and the run is in the file; -EAGAIN: the file's end is elsewhere, or the file has set-ID bits
/// that one of the writers takes away; or another negative errno, and nothing is there of it.
GOFS_NOINLINE GOFS_HD inline int store_run(simt::AnyWarp auto warp, Filesystem& fs, OpenInode& open,
                                           RecordBuffer& buffer, const RecordRun& run) {
  constexpr uint32_t kPages = kPagesToBeginWrite + f2fs::kPagesToWriteRun;
  const RecordBlocks blocks = blocks_of_run(buffer, run);
  f2fs::Inode& inode = open.inode;
  int error = prepare_to_write(warp, fs, open, run.to - run.from);
  if (error < 0) return error;
  WriteHold hold{};
  uint32_t holds = 0;
  error = lock_end(warp, fs, open, blocks.size, hold, holds);
  if (error < 0) return error;
  const f2fs::FileHold file = held_file(hold);
  bool known = is_tail_known(fs, open, buffer, blocks.size, holds - 1);
  known = warp.shfl(known ? 1u : 0u, 0) != 0;
  bool leaves = false;
  warp.sync();  // all lanes have looked
  if (warp.thread_rank() == 0) buffer.tail.end = 0;
  error = operate(warp, fs, kPages, [&](f2fs::Operation& op) -> int {
    // Whose writers take them away, each as his groups are, when this one says so: alone.
    int failed = run.of_user ? has_setid_bits(warp, fs, inode.ino) : 0;
    if (failed > 0) return -EAGAIN;
    if (failed == 0) failed = f2fs::prepare_write(warp, op, file, blocks.size, blocks.end);
    if (failed < 0) return failed;
    if (inode.has_inline_data()) {
      return store_in_inode(warp, op, file, buffer, run, blocks);
    }
    if (blocks.has_head != 0 && !known) failed = read_head(warp, fs, inode, buffer, blocks);
    if (failed < 0) return failed;
    known = false;  // it has more than the file from here on
    fill_pages(warp, buffer, blocks);
    return store_in_rounds(warp, op, file, buffer, blocks, leaves);
  });
  if (error < 0 && leaves) cut_behind_end(warp, fs, file);
  const bool in_blocks = !inode.has_inline_data();
  if (error == 0 && in_blocks && warp.thread_rank() == 0) {
    note_tail(fs, open, buffer, blocks, holds);
  }
  release(warp, fs, hold);
  return error;
}

}  // namespace gofs::vfs::detail
