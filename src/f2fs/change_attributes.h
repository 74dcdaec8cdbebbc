// SPDX-License-Identifier: Apache-2.0
//
// What chmod, chown and utimens change in an inode. Who may do so is the caller's question.
#pragma once

#include "f2fs/change_pages.h"
#include "f2fs/inode.h"

namespace gofs::f2fs {

enum AttributeMask : uint32_t {
  kSetPermissions = 0x1,
  kSetUid = 0x2,
  kSetGid = 0x4,
  kSetAccessed = 0x8,
  kSetModified = 0x10,
  kDropPermissions = 0x20,  // takes them away from those that there are
};

struct AttributeChange {
  uint32_t mask;         // AttributeMask: which of these
  uint16_t permissions;  // of i_mode, without the type: all of them, or those to be dropped
  uint32_t uid;
  uint32_t gid;
  TimeStamp accessed;
  TimeStamp modified;
  TimeStamp changed;  // always set: now
};

/// Changes the inode `ino` of each lane in `lanes`. Collective. Per lane 0 or a negative errno.
/// Others see all of it or nothing; durable after the next checkpoint.
GOFS_NOINLINE GOFS_HD inline int change_attributes(simt::AnyWarp auto warp, Operation& op,
                                                   uint32_t lanes, uint32_t ino,
                                                   const AttributeChange& change) {
  return change_nodes(warp, op, lanes, ino, ino, [&](format::NodeBlock& node) {
    format::Inode& inode = node.inode;
    if ((change.mask & kSetPermissions) != 0) {
      inode.i_mode = static_cast<uint16_t>((inode.i_mode & format::kModeTypeMask) |
                                           (change.permissions & format::kModePermissionMask));
    }
    if ((change.mask & kDropPermissions) != 0) {
      const uint32_t dropped = change.permissions & uint32_t{format::kModePermissionMask};
      inode.i_mode = static_cast<uint16_t>(inode.i_mode & ~dropped);
    }
    if ((change.mask & kSetUid) != 0) inode.i_uid = change.uid;
    if ((change.mask & kSetGid) != 0) inode.i_gid = change.gid;
    if ((change.mask & kSetAccessed) != 0) {
      inode.i_atime = change.accessed.seconds;
      inode.i_atime_nsec = change.accessed.nanoseconds;
    }
    if ((change.mask & kSetModified) != 0) {
      inode.i_mtime = change.modified.seconds;
      inode.i_mtime_nsec = change.modified.nanoseconds;
    }
    inode.i_ctime = change.changed.seconds;
    inode.i_ctime_nsec = change.changed.nanoseconds;
    return (change.mask & ~uint32_t{kSetAccessed | kSetModified}) == 0 ? PageChange::kTimes
                                                                       : PageChange::kContents;
  });
}

}  // namespace gofs::f2fs
