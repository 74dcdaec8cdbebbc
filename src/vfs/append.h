// SPDX-License-Identifier: Apache-2.0
//
// The fast path of an append, beside that of an overwrite (overwrite.h): lanes that each add a
// block to the end of one file (f2fs/append.h). It is for the case that nothing stands in the way,
// and else leaves all as it was to those who can wait (write.h): no thread reads the file or writes
// more of it, no other one adds to its end, and no checkpoint is being made.
//
// An append joins the block writers of the file (range_lock.h), to which it makes no difference
// that it grows, and holds its end exclusively among them.
#pragma once

#include "f2fs/append.h"
#include "vfs/overwrite.h"
#include "vfs/read.h"

namespace gofs::vfs::detail {

/// What an append has to release. For lane 0.
struct AppendHold {
  bool has_end;
  bool inside;  // has the checkpoint lock
  f2fs::OpHold op_hold;
  f2fs::NodesHold nodes;
};

/// Takes the file's end, as a block writer, and the checkpoint lock for an operation, all of it at
/// once. Collective, uniform: whether it may go on, and all is as it was probed.
GOFS_HD inline bool try_begin_append(simt::AnyWarp auto warp, Filesystem& fs, OpenInode& open,
                                     const f2fs::AppendProbe& probe, AppendHold& hold) {
  const bool leader = warp.thread_rank() == 0;
  if (leader) {
    hold.has_end = try_lock_end(open.lock);
    hold.inside = f2fs::is_op_locked(f2fs::try_lock_op(fs.writer->checkpoint_lock, hold.op_hold));
  }
  const uint64_t counts = enter_block_writers(warp, open.lock);
  const bool stands = f2fs::revalidate(fs.volume, open.inode, probe);
  const bool may = may_write_blocks(open.lock, counts, fs.writer->cleaning.overwriters_awaited) &&
                   hold.has_end && hold.inside;
  return warp.all(stands && (may || !leader));
}

/// Releases it. Collective.
GOFS_HD inline void end_append(simt::AnyWarp auto warp, Filesystem& fs, OpenInode& open,
                               const f2fs::AppendProbe& probe, const AppendHold& hold) {
  warp.sync();
  const simt::Release release;
  if (warp.thread_rank() == 0) {
    f2fs::release_nodes(release, fs.volume, open.inode, probe, hold.nodes);
    f2fs::unlock_op(fs.writer->checkpoint_lock, hold.op_hold, release);
    if (hold.has_end) unlock_end(open.lock, release);
  }
  leave_block_writers(warp, open.lock, release);
}

/// Writes the requests of `lanes`, at least one, in order of rank, behind the end of the open file,
/// if each is a block, and they `append`, or their offsets are there anyway; those of `lanes`
/// become so. Collective, uniform: whether all is written; if not, nothing is.
GOFS_NOINLINE GOFS_HD inline bool try_to_append(simt::AnyWarp auto warp, Filesystem& fs,
                                                OpenInode& open, uint32_t lanes, bool append,
                                                WriteRequest& request) {
  if (fs.writer == nullptr) return false;
  f2fs::Writer& writer = *fs.writer;
  f2fs::Inode& inode = open.inode;
  const bool mine = (lanes >> warp.thread_rank() & 1u) != 0;
  const uint32_t before = simt::popcount(lanes & simt::ranks_below(warp.thread_rank()));
  // Beside others that make it longer as well, each had better hold its own blocks alone.
  const bool others = !append && simt::load_here(open.lock.holder_counts) != 0;
  const f2fs::EndProbe end_probe = f2fs::probe_end(writer, inode, open.maps);
  const f2fs::TimeStamp now = time_now(fs);
  const uint64_t place = end_probe.size_bytes + uint64_t{before} * kBlockBytes;
  const bool fits =
      !others && request.bytes == kBlockBytes && (append || request.offset == place) &&
      f2fs::detail::is_directly_addressable(request.buffer, 0, kBlockBytes, kBlockBytes - 1);
  if (!warp.all(fits || !mine)) return false;
  f2fs::AppendProbe probe{};
  if (!warp.all(f2fs::probe_append(warp, fs.volume, inode, end_probe, simt::popcount(lanes), now,
                                   probe))) {
    return false;
  }
  AppendHold hold{};
  bool appended = false;
  if (try_begin_append(warp, fs, open, probe, hold)) {
    f2fs::Operation op = f2fs::Operation::stepped_in(fs.volume, writer, now);
    appended = f2fs::append_blocks(warp, op, lanes, inode, probe,
                                   static_cast<const uint8_t*>(request.buffer),
                                   credentials_of(warp, fs).uid == 0, hold.nodes);
  }
  end_append(warp, fs, open, probe, hold);
  if (appended && mine) request.offset = place;
  return appended;
}

/// The same for a write of `part` by the warp, a block a lane; `offset` becomes where it went.
GOFS_HD inline bool try_to_append(simt::AnyWarp auto warp, Filesystem& fs, OpenInode& open,
                                  const IoVector& part, bool append, uint64_t& offset) {
  const uint64_t blocks = part.bytes >> kBlockShift;
  if (part.bytes % kBlockBytes != 0 || blocks == 0 || blocks > warp.size()) return false;
  const bool within = !append && offset < simt::load_relaxed(open.inode.size_bytes);
  if (warp.any(warp.thread_rank() == 0 && within)) return false;
  const uint64_t from = uint64_t{warp.thread_rank()} * kBlockBytes;
  WriteRequest request{0, static_cast<const uint8_t*>(part.base) + from,
                       from < part.bytes ? uint64_t{kBlockBytes} : 0, offset + from};
  const uint32_t lanes = warp.ballot(request.bytes != 0);
  if (!try_to_append(warp, fs, open, lanes, append, request)) return false;
  offset = warp.shfl(request.offset, 0);
  return true;
}

}  // namespace gofs::vfs::detail
