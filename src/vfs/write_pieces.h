// SPDX-License-Identifier: Apache-2.0
//
// How the bytes of a write become pieces, which are dealt to the lanes of a warp: a block of which
// a write has only a part is a piece by itself, and so are its whole blocks, or rows of them.
#pragma once

#include "f2fs/store_blocks.h"

namespace gofs::vfs::detail {

/// The pieces of bytes [offset, end) of a file, at least one, in rows of `most` blocks at most.
/// With larger ones than one block, that are at most format::kNodeSlots blocks.
class PieceCut {
 public:
  GOFS_HD PieceCut(const f2fs::Inode& inode, uint64_t offset, uint64_t end, const uint8_t* source,
                   uint32_t most)
      : offset_(offset),
        end_(end),
        source_(source),
        first_(simt::divide_up(offset, kBlockBytes)),
        last_(end >> kBlockShift) {
    const bool direct = f2fs::detail::is_directly_addressable(
        source + ((first_ << kBlockShift) - offset), 0, 0, kBlockBytes - 1);
    most_ = direct ? most : 1;
    const auto whole = static_cast<uint32_t>(last_ > first_ ? last_ - first_ : 0);
    near_ = whole;
    if (most_ > 1) {
      const uint64_t next = f2fs::dnode_number(first_, inode.slot_count) + 1;
      const uint64_t room = f2fs::first_of_dnode(next, inode.slot_count) - first_;
      near_ = static_cast<uint32_t>(simt::min<uint64_t>(whole, room));
      GOFS_DEBUG_ASSERT(whole - near_ <= format::kNodeSlots);
    }
  }

  GOFS_HD uint32_t count() const {
    const bool tail = last_ >= first_ && last_ << kBlockShift < end_;
    return head() + rows(near_) + rows(far()) + (tail ? 1 : 0);
  }

  /// The `number`-th of them.
  GOFS_HD f2fs::WritePiece piece(uint32_t number) const {
    if (number < head()) return part(offset_, simt::min(end_, first_ << kBlockShift));
    uint32_t row = number - head();
    uint64_t begin = first_;
    uint64_t stop = first_ + near_;
    if (row >= rows(near_)) {
      row -= rows(near_);
      begin = stop;
      stop = last_;
    }
    begin += uint64_t{row} * most_;
    if (begin >= last_) return part(last_ << kBlockShift, end_);
    return part(begin << kBlockShift, simt::min(begin + most_, stop) << kBlockShift);
  }

 private:
  GOFS_HD uint32_t head() const { return first_ << kBlockShift != offset_ ? 1 : 0; }
  GOFS_HD uint32_t far() const {
    return last_ > first_ ? static_cast<uint32_t>(last_ - first_) - near_ : 0;
  }
  GOFS_HD uint32_t rows(uint32_t blocks) const { return (blocks + most_ - 1) / most_; }
  GOFS_HD f2fs::WritePiece part(uint64_t from, uint64_t to) const {
    return {from, static_cast<uint32_t>(to - from), source_ + (from - offset_)};
  }

  uint64_t offset_;
  uint64_t end_;
  const uint8_t* source_;
  uint64_t first_;  // whole blocks [first_, last_), if there are any
  uint64_t last_;
  uint32_t near_;  // of them, those whose addresses stand in the same node as the first one's
  uint32_t most_;
};

/// How long the rows are to be, so that the warp has all of `blocks` blocks at once if it can:
/// `count(most)` says how many pieces there are then. Collective, uniform, and so is `count`.
template <typename Count>
GOFS_HD uint32_t pick_row(simt::AnyWarp auto warp, uint64_t blocks, Count count) {
  const uint32_t limit = f2fs::row_blocks_max(warp);
  auto most = static_cast<uint32_t>(
      simt::min<uint64_t>(simt::max<uint64_t>(simt::divide_up(blocks, warp.size()), 1), limit));
  while (most < limit && count(most) > warp.size()) most = simt::min(2 * most, limit);
  return most;
}

}  // namespace gofs::vfs::detail
