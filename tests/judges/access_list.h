// SPDX-License-Identifier: Apache-2.0
//
// Access lists (acl(5)) of the model, as Linux takes them apart, keeps them, and decides by them.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "calls.h"

namespace gofs::judges {

/// The attributes that programs see them as.
inline constexpr const char* kAccessList = "system.posix_acl_access";
inline constexpr const char* kDefaultList = "system.posix_acl_default";
inline bool is_list(const std::string& name) { return name == kAccessList || name == kDefaultList; }

struct AccessList {
  enum Tag : uint16_t {
    kOwner = 0x01,
    kUser = 0x02,
    kGroupOwner = 0x04,
    kGroup = 0x08,
    kMask = 0x10,
    kOther = 0x20,
  };
  struct Entry {
    uint16_t tag;
    uint16_t permissions;
    uint32_t id;  // of a user or group that is named
  };

  /// Takes a value apart that a program gives. 0, -EINVAL or -EOPNOTSUPP; no entries: no list.
  static int parse(const std::string& value, AccessList& list);
  /// As programs get it.
  std::string value() const;
  /// 0, or -EINVAL for one that cannot be: entries in another order, without a mask, ...
  int check() const;
  /// Permissions of the owner, the group (or mask) and others, as the mode has them.
  uint32_t mode() const;
  /// Whether it says more than these.
  bool is_extended() const;
  /// Makes these what the mode says.
  void set_mode(uint32_t mode);
  /// Whether somebody who is not the owner may do what he wants: 0 or -EACCES.
  int permits(const Who& who, uint32_t owning_group, uint32_t wanted) const;

  std::vector<Entry> entries;

 private:
  /// The place of the first entry of that kind, or of none.
  size_t find(uint16_t tag) const;
  /// The one whose permissions are those of the mode's group.
  size_t group_class() const;
};

}  // namespace gofs::judges
