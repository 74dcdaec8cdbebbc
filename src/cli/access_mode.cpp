// SPDX-License-Identifier: Apache-2.0
#include "cli/access_mode.h"

#include <sys/stat.h>

#include "format/xattr.h"

namespace gofs::cli {
namespace {

uint32_t number_at(std::string_view bytes, size_t at, size_t count) {
  uint32_t number = 0;
  for (size_t i = count; i-- > 0;) number = number << 8 | static_cast<uint8_t>(bytes[at + i]);
  return number;
}

}  // namespace

uint32_t mode_without_list(uint32_t mode, std::string_view list) {
  constexpr size_t kVersionBytes = 4;
  constexpr size_t kEntryBytes = 8;
  uint32_t group = 0;  // that of a list which says nothing of it
  uint32_t mask = 7;
  for (size_t at = kVersionBytes; at + kEntryBytes <= list.size(); at += kEntryBytes) {
    const uint32_t tag = number_at(list, at, 2);
    const uint32_t permissions = number_at(list, at + 2, 2) & 7;
    if (tag == format::kAclGroupOwner) group = permissions;
    if (tag == format::kAclMask) mask = permissions;
  }
  return (mode & ~uint32_t{S_IRWXG}) | (mode & (group & mask) << 3);
}

uint32_t mode_of_others(uint32_t mode) { return mode & ~uint32_t{S_ISUID | S_ISGID}; }

}  // namespace gofs::cli
