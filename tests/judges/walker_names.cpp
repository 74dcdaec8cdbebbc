// SPDX-License-Identifier: Apache-2.0
//
// Calls that make, change and look up names.
#include <fmt/format.h>

#include <cerrno>

#include "walker.h"

namespace gofs::judges {

void Walker::mkdir() {
  const std::string path = one_in(8) ? some_path() : new_path();
  const uint32_t mode = some_mode();
  both(
      fmt::format("mkdir {} {:o}", path, mode), [&] { return calls_->mkdir(path, mode); },
      [&](int64_t) { return model_.mkdir(path, mode); });
}

void Walker::mknod() {
  constexpr uint32_t kTypes[] = {
      format::kModeRegular,    format::kModeRegular,    0, format::kModeFifo, format::kModeSocket,
      format::kModeCharDevice, format::kModeBlockDevice};
  uint32_t type = one_of(kTypes);
  if (one_in(30)) type = one_in(2) ? format::kModeDirectory : format::kModeSymlink;
  const uint32_t mode = type | some_mode();
  const std::string path = one_in(8) ? some_path() : new_path();
  const auto major = static_cast<uint32_t>(below(4096));
  const auto minor = static_cast<uint32_t>(1 + below((1 << 20) - 1));
  both(
      fmt::format("mknod {} {:o} {} {}", path, mode, major, minor),
      [&] { return calls_->mknod(path, mode, major, minor); },
      [&](int64_t) { return model_.mknod(path, mode, major, minor); });
}

void Walker::symlink() {
  std::string target = one_in(4) ? std::string(1 + below(3000), 't') : some_path();
  if (one_in(3)) target = std::to_string(below(30));
  if (one_in(60)) target = std::string(4090 + below(8), 't');
  if (one_in(100)) target.clear();
  if (is_home(target) && target.find("..") != std::string::npos) return;
  // Not all that Linux takes: a path that has become too long by links, and a link to make a file
  // by, with a slash behind it.
  if (target.find("///") != std::string::npos || target.ends_with('/')) return;
  const std::string path = one_in(8) ? some_path() : new_path();
  both(
      fmt::format("symlink {} at {}", target, path), [&] { return calls_->symlink(target, path); },
      [&](int64_t) { return model_.symlink(target, path); });
}

void Walker::link() {
  const std::string existing = some_path();
  const std::string path = one_in(8) ? some_path() : new_path();
  // Linux may be told to let nobody link files of others.
  if (gofs_ == nullptr && who_.uid != 0) return;
  both(
      fmt::format("link {} as {}", existing, path), [&] { return calls_->link(existing, path); },
      [&](int64_t) { return model_.link(existing, path); });
}

void Walker::unlink() {
  const bool any = one_in(6);
  const std::string path =
      any ? some_path()
          : decorated(model_.path_of(pick([](const Object& one) { return !one.is_directory(); })));
  if (is_home(path)) return;
  both(
      "unlink " + path, [&] { return calls_->unlink(path); },
      [&](int64_t) { return model_.unlink(path); });
}

void Walker::rmdir() {
  const bool any = one_in(4);
  const std::string path = decorated(model_.path_of(
      pick([&](const Object& one) { return any || (one.is_directory() && one.entries.empty()); })));
  if (is_home(path)) return;
  both(
      "rmdir " + path, [&] { return calls_->rmdir(path); },
      [&](int64_t) { return model_.rmdir(path); });
}

void Walker::rename() {
  const std::string from = some_path();
  const std::string to = one_in(2) ? new_path() : some_path();
  if (is_home(from) || is_home(to)) return;
  uint32_t flags = 0;
  if (one_in(5)) flags = vfs::kRenameNoReplace;
  if (one_in(5)) flags |= vfs::kRenameExchange;
  both(
      fmt::format("rename {} to {}, flags {}", from, to, flags),
      [&] { return calls_->rename(from, to, flags); },
      [&](int64_t) { return model_.rename(from, to, flags); });
}

void Walker::stat() {
  const About about = some_about();
  const std::string what = "stat of " + words_about(about);
  vfs::Stat got{};
  uint32_t id = 0;
  const int64_t answer = both(
      what, [&] { return calls_->stat(about, got); },
      [&](int64_t) { return model_.resolve(about, id); });
  if (answer < 0 || id == Model::kRoot) return;
  const Object& object = model_.at(id);
  const bool sized = object.is_regular() && got.size_bytes != object.content.size();
  if (got.mode != object.mode || got.links != object.links || got.uid != object.uid ||
      got.gid != object.gid || sized) {
    differ(fmt::format("{}: mode {:o}, {} links, owner {}:{}, {} bytes", what, got.mode, got.links,
                       got.uid, got.gid, got.size_bytes));
  }
  // What lies in the inode has no block.
  const uint64_t blocks = object.content.blocks().size();
  if (object.content.size() > kBlockBytes && got.blocks_512 < blocks * (kBlockBytes / 512)) {
    differ(fmt::format("{}: {} sectors for {} blocks", what, got.blocks_512, blocks));
  }
}

void Walker::access() {
  const std::string path = some_path();
  const auto wanted = static_cast<uint32_t>(one_in(40) ? 8 : below(8));
  both(
      fmt::format("access {} {}", path, wanted), [&] { return calls_->access(path, wanted); },
      [&](int64_t) { return model_.access(path, wanted); });
}

void Walker::readlink() {
  const std::string path = decorated(
      model_.path_of(pick([&](const Object& one) { return one.is_symlink() || one_in(10); })));
  std::string target;
  uint32_t id = 0;
  const int64_t answer = both(
      "readlink " + path, [&] { return calls_->readlink(path, target); },
      [&](int64_t) {
        const int error = model_.resolve(path, false, id);
        return error == 0 && !model_.at(id).is_symlink() ? -EINVAL : error;
      });
  if (answer == 0 && target != model_.at(id).target) {
    differ(fmt::format("readlink {} gives {}", path, target));
  }
}

void Walker::readdir() {
  const std::string path = one_in(8) ? some_path() : decorated(some_directory());
  Calls::Names names;
  uint32_t id = 0;
  const int64_t answer = both(
      "readdir " + path, [&] { return calls_->list(path, names); },
      [&](int64_t) { return model_.open(path, vfs::kOpenReadOnly | vfs::kOpenDirectory, 0, id); });
  if (answer < 0 || id == Model::kRoot) return;
  const auto& entries = model_.at(id).entries;
  const bool same = names.size() == entries.size() &&
                    std::all_of(entries.begin(), entries.end(),
                                [&](const auto& entry) { return names.count(entry.first) != 0; });
  if (!same) differ(fmt::format("readdir {} gives {} names", path, names.size()));
}

}  // namespace gofs::judges
