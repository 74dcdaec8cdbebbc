// SPDX-License-Identifier: Apache-2.0
//
// Calls that change what an inode says of a file, and its extended attributes.
#include <fmt/format.h>

#include <cerrno>

#include "access_list.h"
#include "walker.h"

namespace gofs::judges {

namespace {

constexpr size_t kXattrBytesMost = 3000;  // of one inode: there is always room for so many

}  // namespace

void Walker::chmod() {
  const About about = some_about();
  const uint32_t mode = some_mode();
  both(
      fmt::format("chmod {} {:o}", words_about(about), mode),
      [&] { return calls_->chmod(about, mode); },
      [&](int64_t) { return is_path_only(about) ? -EBADF : model_.chmod(about, mode); });
}

void Walker::chown() {
  constexpr uint32_t kIds[] = {0, 1000, 1001, 2000, vfs::kKeepId};
  const About about = some_about();
  const uint32_t uid = one_in(8) ? static_cast<uint32_t>(below(70'000)) : one_of(kIds);
  const uint32_t gid = one_in(8) ? static_cast<uint32_t>(below(70'000)) : one_of(kIds);
  both(
      fmt::format("chown {} {}:{}", words_about(about), uid, gid),
      [&] { return calls_->chown(about, uid, gid); },
      [&](int64_t) { return is_path_only(about) ? -EBADF : model_.chown(about, uid, gid); });
}

void Walker::utimens() {
  const About about = some_about();
  const auto time = [&] {
    constexpr uint32_t kSpecial[] = {vfs::kTimeNow, vfs::kTimeNow, vfs::kTimeOmit, vfs::kTimeOmit,
                                     1'000'000'000};
    const auto seconds = static_cast<int64_t>(below(1u << 31));
    const bool special = one_in(2);
    return f2fs::TimeStamp{
        seconds, special ? one_of(kSpecial) : static_cast<uint32_t>(below(1'000'000'000))};
  };
  const f2fs::TimeStamp accessed = time();
  const f2fs::TimeStamp modified = time();
  both(
      fmt::format("utimens {} {}.{} {}.{}", words_about(about), accessed.seconds,
                  accessed.nanoseconds, modified.seconds, modified.nanoseconds),
      [&] { return calls_->utimens(about, accessed, modified); },
      [&](int64_t) -> int64_t {
        const bool nothing =
            accessed.nanoseconds == vfs::kTimeOmit && modified.nanoseconds == vfs::kTimeOmit;
        if (is_path_only(about) && !nothing) return -EBADF;
        return model_.utimens(about, accessed, modified);
      });
}

/// What the attributes take that are there.
size_t Walker::xattr_bytes(const About& about) const {
  uint32_t id = 0;
  size_t there = 0;
  if (model_.resolve(about, id) < 0) return 0;
  for (const auto& [name, value] : model_.at(id).xattrs) there += value.size() + name.size() + 8;
  return there;
}

void Walker::setxattr() {
  constexpr const char* kPrefixes[] = {"user.", "user.", "user.", "trusted.", "security."};
  const About about = some_about();
  std::string name = one_of(kPrefixes) + std::to_string(below(one_in(4) ? 100 : 6));
  if (one_in(50)) name += std::string(below(260), 'n');
  if (one_in(200)) name.clear();
  const std::string value = bytes(below(one_in(4) ? 1500 : 60));
  const auto flags = static_cast<uint32_t>(one_in(3) ? 1 + below(2) : one_in(50) ? 4 : 0);
  if (value.size() + name.size() + xattr_bytes(about) > kXattrBytesMost) return;
  both(
      fmt::format("setxattr {} {} {} bytes, flags {}", words_about(about), name, value.size(),
                  flags),
      [&] { return calls_->setxattr(about, name, value, flags); },
      [&](int64_t) -> int64_t {
        const bool known = flags <= (vfs::kXattrCreate | vfs::kXattrReplace);
        const bool named = !name.empty() && name.size() <= vfs::kXattrNameBytesMax;
        if (is_path_only(about) && known && named) return -EBADF;
        return model_.setxattr(about, name, value, flags);
      });
}

/// An access list, and now and then what is none.
std::string Walker::some_list() {
  constexpr uint32_t kIds[] = {1000, 1001, 2000, 0, 70'000};
  AccessList list;
  const auto add = [&](uint16_t tag, uint64_t count) {
    for (uint64_t i = 0; i < count; ++i) {
      const uint64_t permissions = one_in(2) ? 7 : one_in(100) ? 8 : below(8);
      const bool named = tag == AccessList::kUser || tag == AccessList::kGroup;
      const uint32_t id = named || one_in(20) ? one_of(kIds) : ~0u;
      list.entries.push_back({tag, static_cast<uint16_t>(permissions), one_in(200) ? ~0u : id});
    }
  };
  const uint64_t users = one_in(3) ? 0 : below(4);
  const uint64_t groups = one_in(3) ? 0 : below(4);
  add(AccessList::kOwner, 1);
  add(AccessList::kUser, users);
  add(AccessList::kGroupOwner, 1);
  add(AccessList::kGroup, groups);
  add(AccessList::kMask, users + groups != 0 ? (one_in(30) ? 0 : 1) : one_in(3) ? 1 : 0);
  add(AccessList::kOther, 1);
  auto& entries = list.entries;
  if (one_in(25)) std::swap(entries[below(entries.size())], entries[below(entries.size())]);
  if (one_in(40)) entries.erase(entries.begin() + static_cast<ptrdiff_t>(below(entries.size())));
  if (one_in(60)) entries[below(entries.size())].tag = static_cast<uint16_t>(below(70));
  if (one_in(20)) entries.clear();
  std::string value = list.value();
  if (one_in(50)) value.resize(below(value.size() + 3));
  if (one_in(80) && !value.empty()) value[0] = static_cast<char>(below(4));
  return value;
}

void Walker::set_list() {
  const bool is_default = one_in(2);
  const bool any = one_in(4);
  const uint32_t id =
      pick([&](const Object& one) { return any || !is_default || one.is_directory(); });
  const About about = one_in(5) ? some_about() : About(decorated(model_.path_of(id)), one_in(3));
  const std::string name = is_default ? kDefaultList : kAccessList;
  const std::string value = some_list();
  const auto flags = static_cast<uint32_t>(one_in(20) ? below(5) : 0);
  const bool removes = value.empty() || one_in(12);
  // Where a list is removed, as by one without entries, tmpfs asks for the group as if one were
  // set.
  const bool empties = removes || value.size() == AccessList{}.value().size();
  if (gofs_ == nullptr && empties && who_.uid != 0 && !is_default) return;
  if (value.size() + name.size() + xattr_bytes(about) > kXattrBytesMost) return;
  both(
      fmt::format("{} {} {}, {} bytes, flags {}", removes ? "removexattr" : "setxattr",
                  words_about(about), name, value.size(), flags),
      [&] {
        return removes ? calls_->removexattr(about, name)
                       : calls_->setxattr(about, name, value, flags);
      },
      [&](int64_t) -> int64_t {
        const bool known = removes || flags <= (vfs::kXattrCreate | vfs::kXattrReplace);
        if (is_path_only(about) && known) return -EBADF;
        return removes ? model_.removexattr(about, name)
                       : model_.setxattr(about, name, value, flags);
      });
}

/// A name of an attribute, mostly one that is there.
std::string Walker::some_xattr_of(uint32_t id) {
  constexpr const char* kAsked[] = {"user.none", kAccessList, kDefaultList};
  const auto& xattrs = model_.at(id).xattrs;
  if (xattrs.empty() || one_in(5)) return one_of(kAsked);
  return std::next(xattrs.begin(), static_cast<ptrdiff_t>(below(xattrs.size())))->first;
}

void Walker::getxattr() {
  const uint32_t id = pick([](const Object& one) { return !one.xattrs.empty(); });
  const std::string name = some_xattr_of(id);
  const About about(decorated(model_.path_of(id)), one_in(3));
  std::string value(one_in(3) ? 0 : below(one_in(2) ? 80 : 2000), '\xee');
  std::string wanted;
  const int64_t got = both(
      fmt::format("getxattr {} {}, room for {}", words_about(about), name, value.size()),
      [&] { return calls_->getxattr(about, name, value.data(), value.size()); },
      [&](int64_t) -> int64_t {
        const int size = model_.getxattr(about, name);
        if (size < 0) return size;
        if (!value.empty() && static_cast<size_t>(size) > value.size()) return -ERANGE;
        uint32_t found = 0;
        model_.resolve(about, found);
        wanted = model_.at(found).xattrs.at(name);
        return size;
      });
  if (got >= 0 && !value.empty() && value.compare(0, wanted.size(), wanted) != 0) {
    differ(fmt::format("getxattr {} {} gives another value", words_about(about), name));
  }
}

void Walker::removexattr() {
  const uint32_t id = pick([](const Object& one) { return !one.xattrs.empty(); });
  const std::string name = some_xattr_of(id);
  if (gofs_ == nullptr && name == kAccessList && who_.uid != 0) return;  // as in set_list()
  const About about(decorated(model_.path_of(id)), one_in(3));
  both(
      fmt::format("removexattr {} {}", words_about(about), name),
      [&] { return calls_->removexattr(about, name); },
      [&](int64_t) { return model_.removexattr(about, name); });
}

}  // namespace gofs::judges
