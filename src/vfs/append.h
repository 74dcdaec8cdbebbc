// SPDX-License-Identifier: Apache-2.0
//
// The straight way of an append, beside that of an overwrite (overwrite.h): lanes that each add a
// block to the end of one file (f2fs/append.h). It is for the case that nothing stands in the way,
// and else leaves all as it was to those who can wait (write.h): nobody reads the file or writes
// more of it, nobody else adds to its end, and no checkpoint is being made.
//
// Who appends joins those who write blocks of the file (range_lock.h), to whom it makes no
// difference that it grows, and has its end for himself among them.
#pragma once

#include "f2fs/append.h"
#include "vfs/overwrite.h"
#include "vfs/read.h"

namespace gofs::vfs::detail {

/// What an append has to give back. For lane 0.
struct AppendHold {
  bool has_end;
  bool inside;  // the gate, and it was open
  f2fs::GatePass pass;
  f2fs::NodesHold nodes;
};

/// Takes the file's end, as one of those who write its blocks, and goes into the gate, all of it
/// at once. Collective, uniform: whether it may go on, and all is as it was in sight.
GOFS_HD inline bool try_begin_append(simt::AnyWarp auto warp, Filesystem& fs, OpenInode& open,
                                     const f2fs::AppendSight& sight, AppendHold& hold) {
  const bool leader = warp.thread_rank() == 0;
  if (leader) {
    hold.has_end = try_lock_end(open.lock);
    hold.inside = f2fs::was_open(f2fs::step_in(fs.writer->gate, hold.pass));
  }
  const uint64_t gate = enter_block_writers(warp, open.lock);
  const bool stands = f2fs::still_stands(fs.volume, open.inode, sight);
  const bool may = may_write_blocks(open.lock, gate, fs.writer->cleaning.overwriters_awaited) &&
                   hold.has_end && hold.inside;
  return warp.all(stands && (may || !leader));
}

/// Gives it back. Collective.
GOFS_HD inline void end_append(simt::AnyWarp auto warp, Filesystem& fs, OpenInode& open,
                               const f2fs::AppendSight& sight, const AppendHold& hold) {
  warp.sync();
  const simt::Release release;
  if (warp.thread_rank() == 0) {
    f2fs::let_nodes_go(release, fs.volume, open.inode, sight, hold.nodes);
    f2fs::leave_gate(fs.writer->gate, hold.pass, release);
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
  const f2fs::EndLook look = f2fs::look_at_end(writer, inode);
  const f2fs::TimeStamp now = time_now(fs);
  const uint64_t place = look.size_bytes + uint64_t{before} * kBlockBytes;
  const bool fits = request.bytes == kBlockBytes && (append || request.offset == place) &&
                    f2fs::detail::goes_in_place(request.buffer, 0, kBlockBytes, kBlockBytes - 1);
  if (!warp.all(fits || !mine)) return false;
  f2fs::AppendSight sight{};
  if (!warp.all(
          f2fs::sight_append(warp, fs.volume, inode, look, simt::popcount(lanes), now, sight))) {
    return false;
  }
  AppendHold hold{};
  const bool appended = try_begin_append(warp, fs, open, sight, hold) &&
                        f2fs::append_blocks(warp, fs.volume, writer, lanes, inode, sight,
                                            static_cast<const uint8_t*>(request.buffer), now,
                                            fs.credentials.uid == 0, hold.nodes);
  end_append(warp, fs, open, sight, hold);
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
