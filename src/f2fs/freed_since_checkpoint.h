// SPDX-License-Identifier: Apache-2.0
//
// What the last checkpoint may have and the volume no longer: names, numbers of nodes, nodes with
// attributes or addresses, data in an inode; and inodes that have got a name since. Recovery after
// a crash starts from that checkpoint, so a file that takes the place of something freed is not
// made durable by fsync's nodes alone: it would meet the former one; nor is a name that comes to
// one that was there. This is a set of hashes, from which nothing is removed before the next
// checkpoint and which may have more than there was: that costs a checkpoint and nothing else.
#pragma once

#include "f2fs/writer.h"

namespace gofs::f2fs {

inline constexpr uint32_t kFreedWords = 1024;

GOFS_HD constexpr uint64_t freed_name(uint32_t directory_ino, uint32_t hash) {
  return uint64_t{directory_ino} << 32 | hash;
}
/// No directory has this number.
GOFS_HD constexpr uint64_t freed_nid(uint32_t nid) { return freed_name(0xffffffff, nid); }
/// The node with attributes of `ino`.
GOFS_HD constexpr uint64_t freed_xattrs(uint32_t ino) { return freed_name(0xfffffffe, ino); }
GOFS_HD constexpr uint64_t freed_inline_data(uint32_t ino) { return freed_name(0xfffffffd, ino); }
/// A node of `ino` with the addresses of blocks.
GOFS_HD constexpr uint64_t freed_dnode(uint32_t ino) { return freed_name(0xfffffffb, ino); }
/// That `ino` had the names that it has, or more.
GOFS_HD constexpr uint64_t renamed_inode(uint32_t ino) { return freed_name(0xfffffffc, ino); }

namespace detail {

GOFS_HD constexpr uint32_t freed_bit(uint64_t key) {
  constexpr uint64_t kOdd = 0x9E3779B97F4A7C15ull;
  uint64_t hash = key * kOdd;
  hash = (hash ^ hash >> 32) * kOdd;
  return static_cast<uint32_t>(hash >> 40) % (32 * kFreedWords);
}

}  // namespace detail

/// Notes that `key` is freed. Any lane.
GOFS_HD inline void note_freed(Operation& op, uint64_t key) {
  const uint32_t bit = detail::freed_bit(key);
  uint32_t& word = op.writer.freed_since_checkpoint[bit / 32];
  if ((simt::load_relaxed(word) >> bit % 32 & 1u) != 0) return;
  simt::AtomicRef<uint32_t>(word).fetch_or(1u << bit % 32, simt::memory_order_relaxed);
}

/// Whether `key` may have been freed since the last checkpoint. Within an operation.
GOFS_HD inline bool may_be_freed(const Writer& writer, uint64_t key) {
  const uint32_t bit = detail::freed_bit(key);
  return (simt::load_relaxed(writer.freed_since_checkpoint[bit / 32]) >> bit % 32 & 1u) != 0;
}

}  // namespace gofs::f2fs
