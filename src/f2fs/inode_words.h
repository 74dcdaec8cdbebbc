// SPDX-License-Identifier: Apache-2.0
//
// Words of an inode's page that change beside those who look at it.
#pragma once

#include <cstddef>

#include "f2fs/node.h"

namespace gofs::f2fs {

using gofs::TimeStamp;

namespace detail {

GOFS_HD inline TimeStamp time_stamp(int64_t seconds, uint32_t nanoseconds) {
  return TimeStamp{seconds, nanoseconds};
}

/// Words of an inode in memory that are changed beside who looks, see change_words(): its size,
/// counts of its blocks and of its links, and the nanoseconds of its times.
GOFS_HD inline uint64_t& size_word(format::Inode& raw) {
  static_assert(offsetof(format::Inode, i_size) % sizeof(uint64_t) == 0);
  return *reinterpret_cast<uint64_t*>(&raw.i_size);
}
GOFS_HD inline const uint64_t& size_word(const format::Inode& raw) {
  return *reinterpret_cast<const uint64_t*>(&raw.i_size);
}
GOFS_HD inline uint64_t& blocks_word(format::Inode& raw) {
  static_assert(offsetof(format::Inode, i_blocks) % sizeof(uint64_t) == 0);
  return *reinterpret_cast<uint64_t*>(&raw.i_blocks);
}
GOFS_HD inline const uint64_t& blocks_word(const format::Inode& raw) {
  return *reinterpret_cast<const uint64_t*>(&raw.i_blocks);
}
GOFS_HD inline uint32_t& links_word(format::Inode& raw) {
  static_assert(offsetof(format::Inode, i_links) % sizeof(uint32_t) == 0);
  return *reinterpret_cast<uint32_t*>(&raw.i_links);
}
GOFS_HD inline const uint32_t& links_word(const format::Inode& raw) {
  return *reinterpret_cast<const uint32_t*>(&raw.i_links);
}

GOFS_HD inline uint32_t& mtime_nsec_word(format::Inode& raw) {
  static_assert(offsetof(format::Inode, i_mtime_nsec) % sizeof(uint32_t) == 0);
  return *reinterpret_cast<uint32_t*>(&raw.i_mtime_nsec);
}
GOFS_HD inline uint32_t& ctime_nsec_word(format::Inode& raw) {
  static_assert(offsetof(format::Inode, i_ctime_nsec) % sizeof(uint32_t) == 0);
  return *reinterpret_cast<uint32_t*>(&raw.i_ctime_nsec);
}
/// The times of the contents, and of the inode.
GOFS_HD inline TimeStamp modified_of(const format::Inode& raw) {
  return {static_cast<int64_t>(format::load_u64(&raw.i_mtime)),
          simt::load_relaxed(*reinterpret_cast<const uint32_t*>(&raw.i_mtime_nsec))};
}
GOFS_HD inline TimeStamp changed_of(const format::Inode& raw) {
  return {static_cast<int64_t>(format::load_u64(&raw.i_ctime)),
          simt::load_relaxed(*reinterpret_cast<const uint32_t*>(&raw.i_ctime_nsec))};
}

}  // namespace detail

}  // namespace gofs::f2fs
