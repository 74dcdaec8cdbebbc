// SPDX-License-Identifier: Apache-2.0
//
// Calls that change what an inode says of a file, and its extended attributes.
#include <fmt/format.h>

#include <cerrno>

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

void Walker::setxattr() {
  constexpr const char* kPrefixes[] = {"user.", "user.", "user.", "trusted.", "security."};
  const About about = some_about();
  std::string name = one_of(kPrefixes) + std::to_string(below(one_in(4) ? 100 : 6));
  if (one_in(50)) name += std::string(below(260), 'n');
  if (one_in(200)) name.clear();
  const std::string value = bytes(below(one_in(4) ? 1500 : 60));
  const auto flags = static_cast<uint32_t>(one_in(3) ? 1 + below(2) : one_in(50) ? 4 : 0);
  uint32_t id = 0;
  size_t there = value.size() + name.size();
  if (model_.resolve(about, id) == 0) {
    for (const auto& [one, bytes_of] : model_.at(id).xattrs) {
      there += bytes_of.size() + one.size() + 8;
    }
  }
  if (there > kXattrBytesMost) return;
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

void Walker::getxattr() {
  const uint32_t id = pick([](const Object& one) { return !one.xattrs.empty(); });
  const auto& xattrs = model_.at(id).xattrs;
  std::string name = "user.none";
  if (!xattrs.empty() && !one_in(5)) {
    name = std::next(xattrs.begin(), static_cast<ptrdiff_t>(below(xattrs.size())))->first;
  }
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
  const auto& xattrs = model_.at(id).xattrs;
  const std::string name = xattrs.empty() || one_in(5) ? "user.none" : xattrs.begin()->first;
  const About about(decorated(model_.path_of(id)), one_in(3));
  both(
      fmt::format("removexattr {} {}", words_about(about), name),
      [&] { return calls_->removexattr(about, name); },
      [&](int64_t) { return model_.removexattr(about, name); });
}

}  // namespace gofs::judges
