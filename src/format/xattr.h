// SPDX-License-Identifier: Apache-2.0
//
// Extended attributes: one string of bytes, the inline area of the inode
// (InodeLayout::xattr_offset, if kInlineXattr is set) followed by the first 4072 bytes of the xattr
// node (if i_xattr_nid is not 0). Entries may straddle the border. A header at the very start, then
// entries padded to 4 bytes; a zero word ends the list, but a full area has no end mark: bound the
// walk.
#pragma once

#include <cstddef>
#include <cstdint>

#include "format/little_endian.h"

namespace gofs::format {

inline constexpr uint32_t kXattrMagic = 0xF2F52011;
inline constexpr uint32_t kXattrNodeBytes = 4072;

struct XattrHeader {
  le32 h_magic;
  le32 h_refcount;
  le32 reserved[4];
};
static_assert(sizeof(XattrHeader) == 24);

struct XattrEntry {
  uint8_t e_name_index;
  uint8_t e_name_len;
  le16 e_value_size;
  // The name, then the value, follow.

  /// Bytes of an entry whose name and value have so many.
  GOFS_HD static constexpr uint32_t padded_bytes(uint32_t name_bytes, uint32_t value_bytes) {
    return (static_cast<uint32_t>(sizeof(XattrEntry)) + name_bytes + value_bytes + 3u) & ~3u;
  }
  GOFS_HD uint32_t padded_bytes() const { return padded_bytes(e_name_len, e_value_size); }
};
static_assert(sizeof(XattrEntry) == 4);

/// e_name_index: the prefix of the attribute's name.
enum XattrIndex : uint8_t {
  kXattrUser = 1,        // "user."
  kXattrAclAccess = 2,   // "system.posix_acl_access", empty name
  kXattrAclDefault = 3,  // "system.posix_acl_default", empty name
  kXattrTrusted = 4,     // "trusted."
  kXattrSecurity = 6,    // "security."
  kXattrAdvise = 7,      // "system.advise"
  kXattrEncryption = 9,  // "c"
  kXattrVerity = 11,     // "v"
};

/// Value of an ACL: a version, then entries that are short unless they name a user or a group.
inline constexpr uint32_t kAclVersion = 1;

enum AclTag : uint16_t {
  kAclOwner = 0x01,
  kAclUser = 0x02,  // of a named user: has an id
  kAclGroupOwner = 0x04,
  kAclGroup = 0x08,  // of a named group: has an id
  kAclMask = 0x10,
  kAclOther = 0x20,
};

struct AclEntryShort {
  le16 e_tag;
  le16 e_perm;
};
static_assert(sizeof(AclEntryShort) == 4);

struct AclEntry {
  le16 e_tag;
  le16 e_perm;
  le32 e_id;
};
static_assert(sizeof(AclEntry) == 8);

}  // namespace gofs::format
