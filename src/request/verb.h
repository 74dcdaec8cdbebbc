// SPDX-License-Identifier: Apache-2.0
//
// The calls that a record (request.h) can ask for, and what each takes. perform.h does them. Who
// adds one changes these two files.
#pragma once

#include <array>
#include <cstdint>

#include "gofs/types.h"

namespace gofs::request {

/// A comment says what a call takes beside what its row tells, and what it answers if not 0. All
/// answer a negative errno where they fail.
enum class Verb : uint16_t {
  kOpen,       // flags, mode -> descriptor
  kOpenInode,  // number, flags -> descriptor
  kClose,
  kPread,    // offset -> bytes read
  kPwrite,   // offset -> bytes written
  kWrite,    // -> bytes written
  kLseek,    // offset, flags (Whence) -> position
  kAdvance,  // offset (how far) -> the position, which moves on from there
  kReaddir,  // -> number of entries
  kStat,
  kFstat,
  kStatfs,
  kAccess,    // flags (AccessBits)
  kReadlink,  // -> bytes of the target
  // -> bytes of the value or of the list; without a buffer, how many there are.
  kGetxattr,
  kFgetxattr,
  kListxattr,
  kFlistxattr,
  kSetxattr,   // flags
  kFsetxattr,  // flags
  kRemovexattr,
  kFremovexattr,
  kChmod,      // mode
  kFchmod,     // mode
  kChown,      // uid, gid
  kFchown,     // uid, gid
  kUtimens,    // accessed, modified
  kFutimens,   // accessed, modified
  kMkdir,      // mode
  kMknod,      // mode, device
  kSymlink,    // `other` is the target
  kLink,       // `other` is what exists
  kUnlink,     // with a number, `path` is a name in that directory
  kRmdir,      // the same
  kRename,     // `other` is the old name; flags
  kTruncate,   // bytes (the size)
  kFtruncate,  // bytes (the size)
  kFallocate,  // flags (the mode), offset, bytes
  kCopyRange,  // offset, and other_offset in the other file; length -> bytes copied
  kFsync,
  kFdatasync,
  kSync,
  kMemory,  // -> bytes of the vfs::MemoryUse
  kStatistics,
};
inline constexpr uint32_t kVerbs = static_cast<uint32_t>(Verb::kStatistics) + 1;

/// What a call takes.
enum Takes : uint32_t {
  kPath = 1 << 0,
  kOther = 1 << 1,  // another path, or a link's target
  kName = 1 << 2,   // of an extended attribute
  kDescriptor = 1 << 3,
  kNumber = 1 << 4,  // of an inode, instead of a path, or of the directory of one
  kInput = 1 << 5,   // a buffer of which `bytes` are read
  kOutput = 1 << 6,  // a buffer of which up to `bytes` are written
  kOtherDescriptor = 1 << 7,
  kRoom = 1 << 8,  // a buffer of `bytes` to work in, which the caller sees nothing of
  // And what it does:
  kLooks = 1 << 9,  // it changes nothing on the volume
};

struct VerbRow {
  Verb verb;
  const char* name;  // for people
  uint32_t takes;
  /// What an answer of n has written: n times so many bytes,
  uint32_t unit = 0;
  /// or, if that is 0 and the call has not failed, always so many: a struct.
  uint32_t whole = 0;
};

inline constexpr std::array<VerbRow, kVerbs> kVerbRows = {{
    {Verb::kOpen, "open", kPath},
    {Verb::kOpenInode, "open by number", kNumber | kLooks},
    {Verb::kClose, "close", kDescriptor | kLooks},
    {Verb::kPread, "pread", kDescriptor | kOutput | kLooks, 1},
    {Verb::kPwrite, "pwrite", kDescriptor | kInput},
    {Verb::kWrite, "write", kDescriptor | kInput},
    {Verb::kLseek, "lseek", kDescriptor | kLooks},
    {Verb::kAdvance, "advance", kDescriptor | kLooks},
    {Verb::kReaddir, "readdir", kDescriptor | kOutput | kLooks, sizeof(NamedEntry)},
    {Verb::kStat, "stat", kPath | kOutput | kLooks, 0, sizeof(Stat)},
    {Verb::kFstat, "fstat", kDescriptor | kOutput | kLooks, 0, sizeof(Stat)},
    {Verb::kStatfs, "statfs", kOutput | kLooks, 0, sizeof(FilesystemStat)},
    {Verb::kAccess, "access", kPath | kLooks},
    {Verb::kReadlink, "readlink", kPath | kOutput | kLooks, 1},
    {Verb::kGetxattr, "getxattr", kPath | kName | kOutput | kLooks, 1},
    {Verb::kFgetxattr, "fgetxattr", kDescriptor | kName | kOutput | kLooks, 1},
    {Verb::kListxattr, "listxattr", kPath | kOutput | kLooks, 1},
    {Verb::kFlistxattr, "flistxattr", kDescriptor | kOutput | kLooks, 1},
    {Verb::kSetxattr, "setxattr", kPath | kName | kInput},
    {Verb::kFsetxattr, "fsetxattr", kDescriptor | kName | kInput},
    {Verb::kRemovexattr, "removexattr", kPath | kName},
    {Verb::kFremovexattr, "fremovexattr", kDescriptor | kName},
    {Verb::kChmod, "chmod", kPath | kNumber},
    {Verb::kFchmod, "fchmod", kDescriptor},
    {Verb::kChown, "chown", kPath | kNumber},
    {Verb::kFchown, "fchown", kDescriptor},
    {Verb::kUtimens, "utimens", kPath | kNumber},
    {Verb::kFutimens, "futimens", kDescriptor},
    {Verb::kMkdir, "mkdir", kPath},
    {Verb::kMknod, "mknod", kPath},
    {Verb::kSymlink, "symlink", kPath | kOther},
    {Verb::kLink, "link", kPath | kOther},
    {Verb::kUnlink, "unlink", kPath | kNumber},
    {Verb::kRmdir, "rmdir", kPath | kNumber},
    {Verb::kRename, "rename", kPath | kOther},
    {Verb::kTruncate, "truncate", kPath},
    {Verb::kFtruncate, "ftruncate", kDescriptor},
    {Verb::kFallocate, "fallocate", kDescriptor},
    {Verb::kCopyRange, "copy_file_range", kDescriptor | kOtherDescriptor | kRoom},
    {Verb::kFsync, "fsync", kDescriptor | kLooks},
    {Verb::kFdatasync, "fdatasync", kDescriptor | kLooks},
    {Verb::kSync, "sync", kLooks},
    {Verb::kMemory, "memory", kOutput | kLooks, 1},
    {Verb::kStatistics, "statistics", kOutput | kLooks, 0, sizeof(Statistics)},
}};

constexpr bool verb_rows_are_in_order() {
  for (uint32_t i = 0; i < kVerbs; ++i) {
    if (kVerbRows[i].verb != static_cast<Verb>(i)) return false;
  }
  return true;
}
static_assert(verb_rows_are_in_order());

constexpr const VerbRow& row_of(Verb verb) { return kVerbRows[static_cast<uint32_t>(verb)]; }

/// Bytes that a call of this row with this answer has written to its buffer.
GOFS_HD constexpr uint64_t bytes_written(const VerbRow& row, int64_t answer) {
  if (answer < 0) return 0;
  return row.whole != 0 ? row.whole : static_cast<uint64_t>(answer) * row.unit;
}
constexpr uint64_t bytes_written(Verb verb, int64_t answer) {
  return bytes_written(row_of(verb), answer);
}

}  // namespace gofs::request
