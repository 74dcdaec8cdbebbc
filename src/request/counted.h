// SPDX-License-Identifier: Apache-2.0
//
// As what the calls that a record asks for are counted.
#pragma once

#include "request/verb.h"
#include "vfs/call_counts.h"

namespace gofs::request {

/// Whether calls of a verb are counted, and as what. What only asks how the volume is, or moves a
/// position, is not.
GOFS_HD constexpr bool is_counted(Verb verb, CallKind& kind) {
  switch (verb) {
    case Verb::kOpen:
    case Verb::kOpenInode:
      kind = CallKind::kOpen;
      return true;
    case Verb::kClose:
      kind = CallKind::kClose;
      return true;
    case Verb::kPread:
      kind = CallKind::kRead;
      return true;
    case Verb::kPwrite:
    case Verb::kWrite:
    case Verb::kCopyRange:
      kind = CallKind::kWrite;
      return true;
    case Verb::kFsync:
    case Verb::kFdatasync:
    case Verb::kSync:
      kind = CallKind::kSync;
      return true;
    case Verb::kStat:
    case Verb::kFstat:
    case Verb::kStatfs:
    case Verb::kAccess:
    case Verb::kReadlink:
    case Verb::kGetxattr:
    case Verb::kFgetxattr:
    case Verb::kListxattr:
    case Verb::kFlistxattr:
      kind = CallKind::kStat;
      return true;
    case Verb::kReaddir:
      kind = CallKind::kReaddir;
      return true;
    case Verb::kMkdir:
    case Verb::kMknod:
    case Verb::kSymlink:
    case Verb::kLink:
    case Verb::kUnlink:
    case Verb::kRmdir:
    case Verb::kRename:
      kind = CallKind::kName;
      return true;
    case Verb::kSetxattr:
    case Verb::kFsetxattr:
    case Verb::kRemovexattr:
    case Verb::kFremovexattr:
    case Verb::kChmod:
    case Verb::kFchmod:
    case Verb::kChown:
    case Verb::kFchown:
    case Verb::kUtimens:
    case Verb::kFutimens:
      kind = CallKind::kAttribute;
      return true;
    case Verb::kTruncate:
    case Verb::kFtruncate:
    case Verb::kFallocate:
      kind = CallKind::kResize;
      return true;
    case Verb::kLseek:
    case Verb::kAdvance:
    case Verb::kMemory:
    case Verb::kStatistics:
      return false;
  }
  return false;
}

/// A call of `verb` that was performed. One lane.
GOFS_HD inline void count_performed(vfs::Filesystem& fs, Verb verb, int64_t result) {
  CallKind kind{};
  if (!is_counted(verb, kind)) return;
  if (kind == CallKind::kRead || kind == CallKind::kWrite) {
    vfs::count_transfer(fs, kind, result);
  } else {
    vfs::count_call(fs, kind, result);
  }
}

}  // namespace gofs::request
