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
  kOpen,          // flags, mode -> descriptor
  kOpenInode,     // number, flags -> descriptor
  kOpenIdentity,  // the Identity in the buffer, flags -> descriptor
  kClose,
  kPread,    // offset -> bytes read
  kPwrite,   // offset -> bytes written; of a piece -ESPIPE where the descriptor appends
  kWrite,    // -> bytes written
  kLseek,    // offset, flags (Whence) -> position
  kAdvance,  // offset (how far) -> the position, which moves on from there
  kReaddir,  // -> number of entries
  kStat,
  kFstat,
  kIdentity,
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
  kMemory,  // -> words of 8 bytes of the vfs::MemoryUse
  kStatistics,
  // Steps of a batch (vfs/batch_calls.h), of which `number` is a file's.
  kBatchOpen,    // length (how many files), flags (vfs::BatchSource) -> batch descriptor
  kBatchEnter,   // `path` is a name, number, flags (an errno to note) -> its error
  kBatchLoad,    // number (of the first), length (how many)
  kBatchFiles,   // number (of the first) -> how many; without a buffer, how many there are
  kBatchPread,   // number, offset -> bytes read
  kBatchPwrite,  // number, offset -> bytes written
  kBatchClose,
};
inline constexpr uint32_t kVerbs = static_cast<uint32_t>(Verb::kBatchClose) + 1;

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
  kRoom = 1 << 8,    // a buffer of `bytes` to work in, which the caller sees nothing of
  kSteady = 1 << 9,  // the buffer is looked at more than once: it is not to change meanwhile
  kBatch = 1 << 10,  // `descriptor` is a batch's
  // And what it does:
  kLooks = 1 << 11,  // it changes nothing on the volume
  kGives = 1 << 12,  // it answers a new descriptor
};

/// What only asks how the volume is, or moves a position, is not.
inline constexpr CallKind kNotCounted{kCallKinds};

struct VerbRow {
  Verb verb;
  const char* name;  // for people
  CallKind counted;  // as what calls are counted
  uint32_t takes;
  /// What an answer of n has written: n times so many bytes,
  uint32_t unit = 0;
  /// or, if that is 0 and the call has not failed, always so many: a struct.
  uint32_t whole = 0;
};

inline constexpr std::array<VerbRow, kVerbs> kVerbRows = {{
    {Verb::kOpen, "open", CallKind::kOpen, kPath | kGives},
    {Verb::kOpenInode, "open by number", CallKind::kOpen, kNumber | kLooks | kGives},
    {Verb::kOpenIdentity, "open by identity", CallKind::kOpen, kInput | kSteady | kLooks | kGives},
    {Verb::kClose, "close", CallKind::kClose, kDescriptor | kLooks},
    {Verb::kPread, "pread", CallKind::kRead, kDescriptor | kOutput | kLooks, 1},
    {Verb::kPwrite, "pwrite", CallKind::kWrite, kDescriptor | kInput},
    {Verb::kWrite, "write", CallKind::kWrite, kDescriptor | kInput},
    {Verb::kLseek, "lseek", kNotCounted, kDescriptor | kLooks},
    {Verb::kAdvance, "advance", kNotCounted, kDescriptor | kLooks},
    {Verb::kReaddir, "readdir", CallKind::kReaddir, kDescriptor | kOutput | kLooks,
     sizeof(NamedEntry)},
    {Verb::kStat, "stat", CallKind::kStat, kPath | kOutput | kLooks, 0, sizeof(Stat)},
    {Verb::kFstat, "fstat", CallKind::kStat, kDescriptor | kOutput | kLooks, 0, sizeof(Stat)},
    {Verb::kIdentity, "identity", CallKind::kStat, kDescriptor | kOutput | kLooks, 0,
     sizeof(Identity)},
    {Verb::kStatfs, "statfs", CallKind::kStat, kOutput | kLooks, 0, sizeof(FilesystemStat)},
    {Verb::kAccess, "access", CallKind::kStat, kPath | kLooks},
    {Verb::kReadlink, "readlink", CallKind::kStat, kPath | kOutput | kLooks, 1},
    {Verb::kGetxattr, "getxattr", CallKind::kStat, kPath | kName | kOutput | kLooks, 1},
    {Verb::kFgetxattr, "fgetxattr", CallKind::kStat, kDescriptor | kName | kOutput | kLooks, 1},
    {Verb::kListxattr, "listxattr", CallKind::kStat, kPath | kOutput | kLooks, 1},
    {Verb::kFlistxattr, "flistxattr", CallKind::kStat, kDescriptor | kOutput | kLooks, 1},
    {Verb::kSetxattr, "setxattr", CallKind::kAttribute, kPath | kName | kInput | kSteady},
    {Verb::kFsetxattr, "fsetxattr", CallKind::kAttribute, kDescriptor | kName | kInput | kSteady},
    {Verb::kRemovexattr, "removexattr", CallKind::kAttribute, kPath | kName},
    {Verb::kFremovexattr, "fremovexattr", CallKind::kAttribute, kDescriptor | kName},
    {Verb::kChmod, "chmod", CallKind::kAttribute, kPath | kNumber},
    {Verb::kFchmod, "fchmod", CallKind::kAttribute, kDescriptor},
    {Verb::kChown, "chown", CallKind::kAttribute, kPath | kNumber},
    {Verb::kFchown, "fchown", CallKind::kAttribute, kDescriptor},
    {Verb::kUtimens, "utimens", CallKind::kAttribute, kPath | kNumber},
    {Verb::kFutimens, "futimens", CallKind::kAttribute, kDescriptor},
    {Verb::kMkdir, "mkdir", CallKind::kName, kPath},
    {Verb::kMknod, "mknod", CallKind::kName, kPath},
    {Verb::kSymlink, "symlink", CallKind::kName, kPath | kOther},
    {Verb::kLink, "link", CallKind::kName, kPath | kOther},
    {Verb::kUnlink, "unlink", CallKind::kName, kPath | kNumber},
    {Verb::kRmdir, "rmdir", CallKind::kName, kPath | kNumber},
    {Verb::kRename, "rename", CallKind::kName, kPath | kOther},
    {Verb::kTruncate, "truncate", CallKind::kResize, kPath},
    {Verb::kFtruncate, "ftruncate", CallKind::kResize, kDescriptor},
    {Verb::kFallocate, "fallocate", CallKind::kResize, kDescriptor},
    {Verb::kCopyRange, "copy_file_range", CallKind::kWrite, kDescriptor | kOtherDescriptor | kRoom},
    {Verb::kFsync, "fsync", CallKind::kSync, kDescriptor | kLooks},
    {Verb::kFdatasync, "fdatasync", CallKind::kSync, kDescriptor | kLooks},
    {Verb::kSync, "sync", CallKind::kSync, kLooks},
    {Verb::kMemory, "memory", kNotCounted, kOutput | kLooks, 8},
    {Verb::kStatistics, "statistics", kNotCounted, kOutput | kLooks, 0, sizeof(Statistics)},
    {Verb::kBatchOpen, "open a batch", CallKind::kOpen, kPath | kLooks | kGives},
    {Verb::kBatchEnter, "enter into a batch", kNotCounted, kBatch | kPath | kLooks},
    {Verb::kBatchLoad, "load a batch", kNotCounted, kBatch | kLooks},
    {Verb::kBatchFiles, "list a batch", kNotCounted, kBatch | kOutput | kLooks, sizeof(BatchFile)},
    {Verb::kBatchPread, "pread of a batch", CallKind::kRead, kBatch | kOutput | kLooks, 1},
    {Verb::kBatchPwrite, "pwrite to a batch", CallKind::kWrite, kBatch | kInput},
    {Verb::kBatchClose, "close a batch", CallKind::kClose, kBatch | kLooks},
}};

constexpr bool verb_rows_are_in_order() {
  for (uint32_t i = 0; i < kVerbs; ++i) {
    if (kVerbRows[i].verb != static_cast<Verb>(i)) return false;
  }
  return true;
}
static_assert(verb_rows_are_in_order());

constexpr const VerbRow& row_of(Verb verb) { return kVerbRows[static_cast<uint32_t>(verb)]; }

namespace detail {

/// Of 16 verbs, four bits each: device code has no rows, but it has constants.
constexpr uint64_t counted_from(uint32_t first) {
  uint64_t kinds = 0;
  for (uint32_t i = 0; i < 16 && first + i < kVerbs; ++i) {
    kinds |= static_cast<uint64_t>(kVerbRows[first + i].counted) << (4 * i);
  }
  return kinds;
}
static_assert(kCallKinds < 16 && kVerbs <= 64);

}  // namespace detail

/// As what calls of a verb are counted, as its row says.
GOFS_HD constexpr CallKind counted_as(Verb verb) {
  constexpr uint64_t kFirst = detail::counted_from(0);
  constexpr uint64_t kSecond = detail::counted_from(16);
  constexpr uint64_t kThird = detail::counted_from(32);
  constexpr uint64_t kFourth = detail::counted_from(48);
  const auto number = static_cast<uint32_t>(verb);
  const uint64_t kinds =
      number < 32 ? (number < 16 ? kFirst : kSecond) : (number < 48 ? kThird : kFourth);
  return static_cast<CallKind>(kinds >> (4 * (number % 16)) & 15);
}

/// Whether structs go into a call's buffer.
GOFS_HD constexpr bool writes_structs(const VerbRow& row) { return row.whole != 0 || row.unit > 1; }

/// Whether a call's buffer may lie anywhere, and change meanwhile: bytes go there, or come from it.
GOFS_HD constexpr bool moves_bytes(const VerbRow& row) {
  return (row.takes & (kInput | kOutput)) != 0 && (row.takes & kSteady) == 0 &&
         !writes_structs(row);
}

/// Bytes that a call of this row with this answer has written to its buffer.
GOFS_HD constexpr uint64_t bytes_written(const VerbRow& row, int64_t answer) {
  if (answer < 0) return 0;
  return row.whole != 0 ? row.whole : static_cast<uint64_t>(answer) * row.unit;
}
constexpr uint64_t bytes_written(Verb verb, int64_t answer) {
  return bytes_written(row_of(verb), answer);
}

}  // namespace gofs::request
