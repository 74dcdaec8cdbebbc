// SPDX-License-Identifier: Apache-2.0
#include "access_list.h"

#include <cerrno>

namespace gofs::judges {

namespace {

constexpr uint32_t kVersion = 2;
constexpr size_t kVersionBytes = 4;
constexpr size_t kEntryBytes = 8;
constexpr uint32_t kNoId = 0xffffffff;

uint32_t number_at(const std::string& bytes, size_t at, size_t count) {
  uint32_t number = 0;
  for (size_t i = 0; i < count; ++i) {
    number |= uint32_t{static_cast<uint8_t>(bytes[at + i])} << 8 * i;
  }
  return number;
}

void put_number(std::string& bytes, uint32_t number, size_t count) {
  for (size_t i = 0; i < count; ++i) bytes += static_cast<char>(number >> 8 * i);
}

bool is_named(uint16_t tag) { return tag == AccessList::kUser || tag == AccessList::kGroup; }

}  // namespace

int AccessList::parse(const std::string& value, AccessList& list) {
  list.entries.clear();
  if (value.empty()) return 0;
  if (value.size() < kVersionBytes) return -EINVAL;
  if (number_at(value, 0, kVersionBytes) != kVersion) return -EOPNOTSUPP;
  if ((value.size() - kVersionBytes) % kEntryBytes != 0) return -EINVAL;
  for (size_t at = kVersionBytes; at < value.size(); at += kEntryBytes) {
    Entry entry{static_cast<uint16_t>(number_at(value, at, 2)),
                static_cast<uint16_t>(number_at(value, at + 2, 2)), number_at(value, at + 4, 4)};
    const bool one_bit = entry.tag != 0 && (entry.tag & (entry.tag - 1)) == 0;
    if (!one_bit || entry.tag > kOther) return -EINVAL;
    if (is_named(entry.tag) && entry.id == kNoId) return -EINVAL;
    if (!is_named(entry.tag)) entry.id = kNoId;
    list.entries.push_back(entry);
  }
  return 0;
}

std::string AccessList::value() const {
  std::string bytes;
  put_number(bytes, kVersion, kVersionBytes);
  for (const Entry& entry : entries) {
    put_number(bytes, entry.tag, 2);
    put_number(bytes, entry.permissions, 2);
    put_number(bytes, entry.id, 4);
  }
  return bytes;
}

int AccessList::check() const {
  // One owner, users, one group, groups, a mask (which those that are named need), all others.
  size_t at = 0;
  bool named = false;
  const auto take = [&](uint16_t tag) {
    const bool there = at < entries.size() && entries[at].tag == tag;
    at += there ? 1 : 0;
    return there;
  };
  const auto take_all = [&](uint16_t tag) {
    while (take(tag)) named = true;
  };
  for (const Entry& entry : entries) {
    if (entry.permissions > 7) return -EINVAL;
  }
  if (!take(kOwner)) return -EINVAL;
  take_all(kUser);
  if (!take(kGroupOwner)) return -EINVAL;
  take_all(kGroup);
  if (!take(kMask) && named) return -EINVAL;
  return take(kOther) && at == entries.size() ? 0 : -EINVAL;
}

size_t AccessList::find(uint16_t tag) const {
  size_t at = 0;
  while (at < entries.size() && entries[at].tag != tag) ++at;
  return at;
}

size_t AccessList::group_class() const {
  const size_t mask = find(kMask);
  return mask < entries.size() ? mask : find(kGroupOwner);
}

uint32_t AccessList::mode() const {
  const uint32_t owner = entries[find(kOwner)].permissions;
  const uint32_t group = entries[group_class()].permissions;
  return owner << 6 | group << 3 | entries[find(kOther)].permissions;
}

bool AccessList::is_extended() const { return entries.size() > 3; }

void AccessList::set_mode(uint32_t mode) {
  entries[find(kOwner)].permissions = mode >> 6 & 7;
  entries[group_class()].permissions = mode >> 3 & 7;
  entries[find(kOther)].permissions = mode & 7;
}

int AccessList::permits(const Who& who, uint32_t owning_group, uint32_t wanted) const {
  const size_t mask = find(kMask);
  const uint32_t most = mask < entries.size() ? entries[mask].permissions : 7u;
  bool member = false;
  for (const Entry& entry : entries) {
    const bool grants = (wanted & ~(entry.permissions & most)) == 0;
    if (entry.tag == kUser && entry.id == who.uid) return grants ? 0 : -EACCES;
    if (entry.tag != kGroupOwner && entry.tag != kGroup) continue;
    if (!who.in_group(entry.tag == kGroup ? entry.id : owning_group)) continue;
    if (grants) return 0;
    member = true;
  }
  if (member) return -EACCES;
  return (wanted & ~entries[find(kOther)].permissions) == 0 ? 0 : -EACCES;
}

}  // namespace gofs::judges
