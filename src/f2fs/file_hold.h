// SPDX-License-Identifier: Apache-2.0
//
// The token of who has blocks of a file exclusively: what changes a file's blocks or its contents
// takes one in place of the inode. Only what locks files makes them (vfs/file_lock.h), for what it
// has locked; and there is one of a file that no other thread can reach. Debug builds check that
// what is changed lies in it (simt::kDebugChecks).
//
// The fast paths of an overwrite and of an append (vfs/overwrite.h, vfs/append.h) go without one:
// they lock, write and unlock in one function, and their loads are counted.
//
// A warp's lanes have an object each, of the same file. It is passed by reference and never copied.
#pragma once

#include <type_traits>

#include "f2fs/inode.h"

namespace gofs::vfs::detail {
struct HoldMaker;
}

namespace gofs::f2fs {

/// File blocks [first, end).
struct FileBlocks {
  uint64_t first;
  uint64_t end;
};
/// A function, since device code cannot refer to an object of the host.
GOFS_HD constexpr FileBlocks all_file_blocks() { return {0, ~uint64_t{0}}; }

namespace detail {

/// What a hold covers. Known in debug builds alone.
struct HeldFileBlocks {
  FileBlocks blocks;

  GOFS_HD explicit HeldFileBlocks(const FileBlocks& held) : blocks(held) {}
  GOFS_HD void check(const FileBlocks& changed) const {
    GOFS_ASSERT(blocks.first <= changed.first && changed.end <= blocks.end);
  }
};
struct UnknownFileBlocks {
  GOFS_HD explicit UnknownFileBlocks(const FileBlocks&) {}
  GOFS_HD void check(const FileBlocks&) const {}
};

}  // namespace detail

class FileHold {
 public:
  Inode& inode;  // one object for all lanes, unless a function says otherwise

  FileHold(const FileHold&) = delete;
  FileHold& operator=(const FileHold&) = delete;

  /// All of a file that no other thread can reach: no name leads to it, and it is not open.
  GOFS_HD static FileHold of_unreachable(Inode& inode) {
    return FileHold(inode, all_file_blocks());
  }

  /// That it covers file block `index`, if `changes`. One lane.
  GOFS_HD void check_block(bool changes, uint64_t index) const {
    if (changes) held_.check({index, index + 1});
  }
  /// That it covers the blocks of the bytes [from, to).
  GOFS_HD void check_bytes(uint64_t from, uint64_t to) const {
    if (from < to) held_.check({from >> kBlockShift, simt::divide_up(to, kBlockBytes)});
  }
  /// That it covers the block of byte `from` and all behind it.
  GOFS_HD void check_from(uint64_t from) const {
    held_.check({from >> kBlockShift, all_file_blocks().end});
  }
  /// That it covers the whole file.
  GOFS_HD void check_all() const { held_.check(all_file_blocks()); }

 private:
  friend struct vfs::detail::HoldMaker;
  GOFS_HD FileHold(Inode& its_inode, const FileBlocks& blocks) : inode(its_inode), held_(blocks) {}

  [[no_unique_address]] std::conditional_t<simt::kDebugChecks, detail::HeldFileBlocks,
                                           detail::UnknownFileBlocks>
      held_;
};
static_assert(simt::kDebugChecks || sizeof(FileHold) == sizeof(Inode*));

}  // namespace gofs::f2fs
