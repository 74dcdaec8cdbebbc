// SPDX-License-Identifier: Apache-2.0
//
// The fast path of a flush (record_flush.h), as append.h is for whole blocks: a run of no more
// blocks than a warp has lanes, at the end of a file whose nodes are at hand. The block in which
// the file ends is written over where it lies. Nothing is waited for but the SSD; where something
// stands in the way, all is left to store_run().
#pragma once

#include "vfs/append.h"
#include "vfs/record_store.h"

namespace gofs::vfs::detail {

/// What was seen of the blocks of a run, before anything is locked.
struct RecordProbe {
  f2fs::AppendProbe append;
  BlockQueue* queue;  // of the block in which the file ends
  uint32_t block;     // where that lies
};

/// Looks at the end of the file. Collective; per lane whether it is as it should be.
GOFS_HD inline bool probe_records(simt::AnyWarp auto warp, Filesystem& fs, const OpenInode& open,
                                  const RecordBuffer& buffer, const RecordBlocks& blocks,
                                  const f2fs::TimeStamp& now, RecordProbe& probe) {
  const f2fs::EndProbe end_probe = f2fs::probe_end(*fs.writer, open.inode, open.maps);
  const bool may_go = blocks.has_head == 0 || f2fs::may_write_over(*fs.writer);
  probe.queue = &queue_of_block(fs, open, blocks.first);
  const bool found =
      f2fs::probe_blocks(warp, fs.volume, open.inode, end_probe, blocks.count, now, probe.append);
  if (!warp.all(found && may_go && end_probe.size_bytes == blocks.size &&
                end_probe.size_bytes > open.inode.inline_bytes &&
                (blocks.has_head == 0 || buffer.tail.end == blocks.size))) {
    return false;
  }
  probe.block = simt::load_here(f2fs::probed_word(fs.volume.cache, open.inode, probe.append, 0));
  return true;
}

/// Whether the block in which the file ends is where it was seen, is the file's, and has what its
/// page has. Any lane, by a caller that has joined the block writers and has queued up for it.
GOFS_HD inline bool may_write_head(const Filesystem& fs, const OpenInode& open,
                                   const RecordBuffer& buffer, const RecordProbe& probe) {
  const format::Geometry& geometry = fs.volume.geometry;
  const uint32_t in_main = probe.block - geometry.main_blkaddr;  // of a hole, too much
  const uint32_t segno = in_main / format::kBlocksPerSegment;
  const bool known = segno < geometry.main_segments;
  const f2fs::SegmentInfo* const segments = fs.writer->segments.segments;
  const bool is_data = f2fs::detail::is_data_in_use(segments[known ? segno : 0],
                                                    in_main % format::kBlocksPerSegment);
  const uint32_t block =
      simt::load_here(f2fs::probed_word(fs.volume.cache, open.inode, probe.append, 0));
  const uint32_t holds = simt::load_here(open.lock.holds);
  return known && is_data && block == probe.block && holds == buffer.tail.holds &&
         f2fs::may_write_over(*fs.writer);
}

/// What a flush has to release. For lane 0.
struct RecordHold {
  AppendHold append;
  uint32_t ticket;
  bool served;  // with the ticket, in the queue of the block in which the file ends
};

/// Releases it, and where the run is `done`, says so and releases the buffer too, if it `unlocks`.
/// Collective.
GOFS_HD inline void end_at_once(simt::AnyWarp auto warp, Filesystem& fs, OpenInode& open,
                                RecordBuffer& buffer, const RecordRun& run,
                                const RecordProbe& probe, const RecordHold& hold, bool done,
                                bool unlocks) {
  warp.sync();
  const simt::Release release;
  if (warp.thread_rank() == 0) {
    if (hold.served) serve_next(release, *probe.queue, hold.ticket);
    f2fs::release_nodes(release, fs.volume, open.inode, probe.append, hold.append.nodes);
    f2fs::unlock_op(fs.writer->checkpoint_lock, hold.append.op_hold, release);
    if (hold.append.has_end) unlock_end(open.lock, release);
    if (done) publish_flushed(release, buffer, run);
    if (done && unlocks) release.store(buffer.flushing, 0u);  // [R4]
  }
  leave_block_writers(warp, open.lock, release);
}

/// What will be known of the block in which the file then ends. By lane 0 of who has the file's
/// end, before it is moved: nothing can write to a block behind it yet.
GOFS_HD inline RecordTail tail_at_once(const Filesystem& fs, const OpenInode& open,
                                       const RecordBuffer& buffer, const RecordBlocks& blocks) {
  RecordTail tail{blocks.end, blocks.page_of_end(), 1, simt::load_here(open.lock.holds),
                  buffer.tail.queue_next};
  if (blocks.has_foot != 0) {
    const BlockQueue& queue = queue_of_block(fs, open, blocks.end >> kBlockShift);
    tail.queue_next = simt::load_here(queue.next);
    // A ticket that another has drawn already may be that of a write to come.
    if (simt::load_here(queue.serving) != tail.queue_next) tail.end = 0;
  }
  return tail;
}

/// How a run is stored at once.
struct AtOnce {
  bool in_page;  // its bytes are in the page of the block in which the file ends
  bool unlocks;  // the buffer is released when the run is stored
};

/// Stores a run at once, if that can be. Collective, uniform, by the flusher: whether the run is in
/// the file, published, and the buffer unlocked, if `way` says so; if not, the file is as it was.
GOFS_NOINLINE GOFS_HD inline bool store_at_once(simt::AnyWarp auto warp, Filesystem& fs,
                                                OpenInode& open, RecordBuffer& buffer,
                                                const RecordRun& run, const AtOnce& way) {
  const RecordBlocks blocks = blocks_of_run(buffer, run);
  const bool leader = warp.thread_rank() == 0;
  const uint32_t rank = warp.thread_rank();
  const uint64_t now_ns = warp.shfl(simt::now_ns(), 0);
  if (leader) simt::store_relaxed(buffer.used_ns, now_ns);
  const f2fs::TimeStamp now = time_when(fs, now_ns);
  RecordProbe probe{};
  if (blocks.count > warp.size()) return false;
  if (!probe_records(warp, fs, open, buffer, blocks, now, probe)) return false;
  if (!way.in_page) fill_pages(warp, buffer, blocks);
  RecordHold hold{};
  bool served = blocks.has_head == 0;
  if (leader && !served) {
    const BlockQueue seen = look_at(*probe.queue);
    hold.ticket = seen.next;
    hold.served = seen.next == buffer.tail.queue_next && try_queue_up(*probe.queue, seen);
    served = hold.served;
  }
  const bool begun = try_begin_append(warp, fs, open, probe.append, hold.append);
  const bool head = blocks.has_head == 0 || may_write_head(fs, open, buffer, probe);
  bool done = warp.all(begun && head && (served || !leader));
  warp.sync();  // all lanes have looked at the buffer's tail
  if (leader) {
    buffer.tail.clean = 0;
    if (hold.served) ++buffer.tail.queue_next;
  }
  if (done) {
    const uint32_t lanes = blocks.count == 32 ? ~0u : (1u << blocks.count) - 1;
    const f2fs::AppendEnd end{blocks.end, blocks.has_head};
    const uint8_t* const source =
        source_of_block(buffer, blocks, simt::min(rank, blocks.count - 1));
    if (blocks.has_head != 0) f2fs::note_overwrite(warp, *fs.writer);
    f2fs::Operation op = f2fs::Operation::stepped_in(fs.volume, *fs.writer, now);
    const RecordTail next = leader ? tail_at_once(fs, open, buffer, blocks) : RecordTail{};
    done = f2fs::append_over(warp, op, lanes, open.inode, probe.append, end, source, !run.of_user,
                             probe.block, hold.append.nodes);
    if (leader && done) buffer.tail = next;
  }
  end_at_once(warp, fs, open, buffer, run, probe, hold, done, way.unlocks);
  return done;
}

}  // namespace gofs::vfs::detail
