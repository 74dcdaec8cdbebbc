// SPDX-License-Identifier: Apache-2.0
//
// How a write is done: which blocks of the file it has to hold, how they are locked, and whether
// the bytes go over what is there or to new blocks. It depends on the request and on what the file
// is like, and not on who asks: a thread, a warp, a block or a grid. It is a pure function, so a
// plan that was made before the file was locked is made again afterwards, and holds if it comes out
// the same.
//
//   the write                                                   what it holds
//   contents in the inode, or so few that they could be there   the whole file
//   an append                                                   from the end on
//   part of one block that the file has                         that block, written over
//   up to 32 blocks, behind the end too                         these blocks, new ones
//   more                                                        a range, new ones
//
// A file whose contents do not fit into its inode any longer has them moved to a block first, with
// the whole file locked; then the write is planned.
//
// Blocks are locked by their queues (block_queue.h), a range in the file's ring (range_lock.h).
#pragma once

#include "f2fs/inode.h"
#include "vfs/range_lock.h"

namespace gofs::vfs {

/// The most blocks that are held by their queues.
inline constexpr uint32_t kQueuedBlocksMax = 32;

enum class Hold : uint32_t {
  kBlocks,     // the queue of each block
  kRange,      // a range in the ring
  kWholeFile,  // all of it in the ring
};

/// What a plan needs to know of a file, at one moment.
struct FileView {
  uint64_t size_bytes;
  bool in_inode;    // has its contents there
  bool clean_tail;  // what lies behind the end in its last block is zeros

  friend bool operator==(const FileView&, const FileView&) = default;
};

struct WritePlan {
  Hold hold;
  ByteRange range;  // whole blocks
  bool grows;       // the file ends behind its present end then
  bool in_place;    // over the block that is there, if there is one
  bool clears;      // what lies behind the present end in its block is to be cleared first
};

GOFS_HD constexpr ByteRange whole_file() { return {0, kOffsetMax}; }

GOFS_HD constexpr bool covers(const ByteRange& outer, const ByteRange& inner) {
  return outer.offset <= inner.offset && inner.offset + inner.bytes <= outer.offset + outer.bytes;
}

/// Of a write of `bytes`, not 0, at `offset`.
GOFS_HD constexpr WritePlan plan_write(const FileView& file, uint64_t offset, uint64_t bytes) {
  constexpr uint64_t kInBlock = kBlockBytes - 1;
  const uint64_t end = offset + bytes;
  const bool grows = end > file.size_bytes;
  if (file.in_inode) return {Hold::kWholeFile, whole_file(), grows, false, true};
  // The rest of the last block becomes part of the file.
  const bool clears = offset > file.size_bytes && !file.clean_tail;
  const uint64_t from = (clears ? file.size_bytes : offset) & ~kInBlock;
  const uint64_t count = ((end + kInBlock) & ~kInBlock) - from;
  const bool few = count <= uint64_t{kQueuedBlocksMax} * kBlockBytes;
  return {few && !clears ? Hold::kBlocks : Hold::kRange,
          {from, count},
          grows,
          !grows && count == kBlockBytes,
          clears};
}

/// Of one that appends: what it holds ends nowhere, so that nothing else makes the file longer.
GOFS_HD constexpr WritePlan plan_append(const FileView& file) {
  if (file.in_inode) return {Hold::kWholeFile, whole_file(), true, false, true};
  const uint64_t from = file.size_bytes & ~uint64_t{kBlockBytes - 1};
  return {Hold::kRange, {from, kOffsetMax - from}, true, false, false};
}

/// Of a change of the blocks that a file has there, or will have, which may make it longer by
/// itself.
GOFS_HD constexpr WritePlan plan_allocation(const FileView& file, uint64_t offset, uint64_t bytes) {
  WritePlan plan = plan_write(file, offset, bytes);
  if (plan.hold == Hold::kBlocks) plan.hold = Hold::kRange;
  if (plan.hold == Hold::kRange && plan.grows) {
    const uint64_t from = simt::min(offset, file.size_bytes) & ~uint64_t{kBlockBytes - 1};
    plan.range = {from, kOffsetMax - from};
  }
  return plan;
}

/// Whether what `held` says, which was made earlier and is held, is enough for `needed`, of the
/// same request.
GOFS_HD constexpr bool is_enough(const WritePlan& held, const WritePlan& needed) {
  return held.hold == Hold::kWholeFile ||
         (needed.hold != Hold::kWholeFile && covers(held.range, needed.range));
}

/// What one lane sees of an open file. It may be changing.
GOFS_HD inline FileView view_of(const f2fs::Inode& inode) {
  const uint64_t size = simt::load_relaxed(inode.size_bytes);
  const uint32_t clean = simt::load_relaxed(inode.clean_tail);
  return {size, inode.has_inline_data(), clean != 0 || size % kBlockBytes == 0};
}
/// The same, what lane 0 sees, on all lanes. Collective.
GOFS_HD inline FileView view_of(simt::AnyWarp auto warp, const f2fs::Inode& inode) {
  FileView view = view_of(inode);
  view.size_bytes = warp.shfl(view.size_bytes, 0);
  const uint32_t flags = warp.shfl((view.clean_tail ? 1u : 0u) | (view.in_inode ? 2u : 0u), 0);
  view.clean_tail = (flags & 1u) != 0;
  view.in_inode = (flags & 2u) != 0;
  return view;
}

struct OpenInode;
struct SharedWrite;

namespace detail {
struct HoldMaker;
}

/// The token of what is locked of an open file, from acquire() (write_hold.h) or hold_in_ring() to
/// release() (file_lock.h): only these fill one. It is not copied, but for SharedWrite, whose group
/// has one in memory that all of its warps reach. That is also why it has a constructor at all:
/// memory of a block has no first value, and `{}` holds nothing.
class WriteHold {
 public:
  WriteHold() = default;

  GOFS_HD OpenInode& open() const {
    GOFS_ASSERT(open_ != nullptr);
    return *open_;
  }
  GOFS_HD Hold kind() const { return kind_; }
  GOFS_HD const ByteRange& range() const { return range_; }  // whole blocks

 private:
  friend struct detail::HoldMaker;
  friend struct SharedWrite;
  WriteHold(const WriteHold&) = default;
  WriteHold& operator=(const WriteHold&) = default;

  OpenInode* open_;  // null: it holds nothing
  RangeHold ring_;   // kRange, kWholeFile
  ByteRange range_;
  Hold kind_;
  bool shares_end_;  // kBlocks: it makes the file longer, as others may
};

}  // namespace gofs::vfs
