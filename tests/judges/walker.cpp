// SPDX-License-Identifier: Apache-2.0
#include "walker.h"

#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "vfs/rename.h"
#include "vfs/set_xattr.h"

namespace gofs::judges {

namespace {

constexpr size_t kObjectsMax = 400;
constexpr size_t kOpenMax = 5;
constexpr uint64_t kFileBytesMost = 60 * uint64_t{kBlockBytes};
constexpr size_t kXattrBytesMost = 3000;  // of one inode: there is always room for so many

std::string words_of(int64_t answer) {
  if (answer >= 0) return std::to_string(answer);
  return fmt::format("{} ({})", answer, std::strerror(static_cast<int>(-answer)));
}

}  // namespace

Walker::Walker(uint64_t seed, uint32_t number)
    : home_("/thread" + std::to_string(number)), random_(seed * 1000003 + number) {}

std::span<const Walker::Operation> Walker::operations_table() {
  static constexpr Operation kOperations[] = {
      {"open", 10, &Walker::open},          {"close", 3, &Walker::close},
      {"pwrite", 14, &Walker::pwrite},      {"write", 8, &Walker::write},
      {"pread", 8, &Walker::pread},         {"lseek", 3, &Walker::lseek},
      {"ftruncate", 5, &Walker::ftruncate}, {"truncate", 4, &Walker::truncate},
      {"mkdir", 6, &Walker::mkdir},         {"mknod", 6, &Walker::mknod},
      {"symlink", 4, &Walker::symlink},     {"link", 5, &Walker::link},
      {"unlink", 7, &Walker::unlink},       {"rmdir", 4, &Walker::rmdir},
      {"rename", 8, &Walker::rename},       {"chmod", 4, &Walker::chmod},
      {"chown", 4, &Walker::chown},         {"utimens", 3, &Walker::utimens},
      {"setxattr", 6, &Walker::setxattr},   {"removexattr", 3, &Walker::removexattr},
      {"stat", 6, &Walker::stat},           {"readlink", 3, &Walker::readlink},
      {"sync", 1, &Walker::sync},
  };
  return kOperations;
}

void Walker::enter(Session& session) {
  session_ = &session;
  if (home_id_ != 0) return;
  const int made = session.mkdir(home_, 0755);
  if (made != 0) throw Difference(home_ + ": mkdir answers " + words_of(made));
  model_.mkdir(home_, 0755);
  model_.resolve(home_, true, home_id_);
  const std::string problem = observe(session, model_, {home_id_});
  if (!problem.empty()) throw Difference(problem);
  model_.take_touched();
}

void Walker::step() {
  const auto table = operations_table();
  uint64_t all = 0;
  for (const Operation& one : table) all += one.weight;
  uint64_t luck = below(all);
  for (const Operation& one : table) {
    if (luck < one.weight) {
      (this->*one.run)();
      break;
    }
    luck -= one.weight;
  }
  ++operations_;
}

void Walker::put_file(const std::string& name, std::string_view content) {
  const std::string path = home_ + "/" + name;
  constexpr uint32_t kFlags = vfs::kOpenWriteOnly | vfs::kOpenCreate | vfs::kOpenTruncate;
  uint32_t id = 0;
  const int64_t fd = both(
      "open " + path, [&] { return session_->open(path, kFlags); },
      [&](int64_t answer) {
        const int error = model_.open(path, kFlags, 0644, id);
        return error < 0 ? error : answer;
      });
  both(
      "pwrite " + path, [&] { return session_->pwrite(static_cast<int>(fd), content, 0); },
      [&](int64_t) {
        model_.write(id, 0, content);
        return static_cast<int64_t>(content.size());
      });
  (void)session_->close(static_cast<int>(fd));
}

void Walker::leave() {
  while (!files_.empty()) close();
}

void Walker::check() {
  FoundTree tree;
  std::string problem = read_tree(*session_, home_, tree);
  if (problem.empty()) {
    problem = difference(tree, home_id_, [&](uint32_t id) { return Versions{&model_.at(id)}; });
  }
  if (!problem.empty()) {
    throw Difference(fmt::format("after {} operations: {}", operations_, problem));
  }
}

/// Makes the call and lets the model make it, which hears the answer where that is not to be
/// foreseen. A full volume changes nothing.
template <typename Call, typename Expect>
int64_t Walker::both(const std::string& what, Call call, Expect expect) {
  const int64_t answer = call();
  if (answer == -ENOSPC) {
    ++full_;
    return answer;
  }
  const int64_t wanted = expect(answer);
  if (answer != wanted) {
    throw Difference(fmt::format("operation {}: {} answers {}, the model {}", operations_, what,
                                 words_of(answer), words_of(wanted)));
  }
  if (answer < 0) ++refused_;
  std::set<uint32_t> touched = model_.take_touched();
  touched.erase(Model::kRoot);
  const std::string problem = observe(*session_, model_, touched);
  if (!problem.empty()) {
    throw Difference(fmt::format("operation {}: after {}: {}", operations_, what, problem));
  }
  for (const uint32_t id : touched) drop_if_gone(id);
  return answer;
}

void Walker::drop_if_gone(uint32_t id) {
  const bool open = std::any_of(files_.begin(), files_.end(),
                                [&](const OpenFile& file) { return file.id == id; });
  if (!open && id != Model::kRoot && model_.at(id).names.empty()) model_.drop(id);
}

/// An object of the kind that is wanted, or else its directory.
template <typename Wanted>
uint32_t Walker::pick(Wanted wanted) {
  const auto& objects = model_.objects();
  for (uint32_t attempt = 0; attempt < 20; ++attempt) {
    const auto found = objects.lower_bound(
        static_cast<uint32_t>(home_id_ + below(objects.rbegin()->first - home_id_ + 1)));
    const bool named = found->first == home_id_ || !found->second.names.empty();
    if (named && wanted(found->second)) return found->first;
  }
  return home_id_;
}

/// Another way to say the same.
std::string Walker::decorated(std::string path) {
  if (one_in(12)) path.insert(path.rfind('/'), "/.");
  if (one_in(12)) path.insert(path.rfind('/'), "/");
  if (one_in(16) && path.rfind('/') != 0) {
    const size_t slash = path.rfind('/', path.rfind('/') - 1);
    const std::string name = path.substr(slash, path.rfind('/') - slash);
    if (name != "/." && name != "/..") path.insert(path.rfind('/'), "/.." + name);
  }
  return path;
}

/// What has its name in the root, which others use too.
bool Walker::is_home(const std::string& path) const {
  uint32_t id = 0;
  return path.ends_with("/..") || (model_.resolve(path, false, id) == 0 && id == home_id_);
}

std::string Walker::some_path() {
  if (one_in(10)) return new_path();
  return decorated(model_.path_of(pick([](const Object&) { return true; })));
}

std::string Walker::some_directory() {
  // Now and then what is no directory, but may lead to one.
  const bool any = one_in(12);
  return model_.path_of(
      pick([any](const Object& one) { return one.is_directory() || (any && !one.is_regular()); }));
}

/// Mostly a name that is free; none once there are enough.
std::string Walker::new_path() {
  const std::string directory = some_directory();
  if (model_.objects().size() >= kObjectsMax) {
    return decorated(model_.path_of(pick([](const Object&) { return true; })));
  }
  std::string name = std::to_string(below(one_in(3) ? 30 : 1'000'000));
  if (one_in(10)) name += std::string(below(256), 'n');
  if (one_in(200)) name = one_in(2) ? "." : "..";
  return decorated(directory + "/" + name);
}

std::string Walker::bytes(size_t count) {
  std::string made(count, '\0');
  if (one_in(20)) return made;
  for (size_t i = 0; i < count; i += sizeof(uint64_t)) {
    const uint64_t word = random_();
    std::memcpy(made.data() + i, &word, std::min(sizeof(word), count - i));
  }
  return made;
}

uint64_t Walker::some_offset(uint64_t size) {
  switch (below(8)) {
    case 0:
      return size;
    case 1:
      return size + below(3 * kBlockBytes);
    case 2:
      return below(3500);
    case 3:
      return below(kFileBytesMost / kBlockBytes) * kBlockBytes;
    case 4:
      // Each level of the tree, but not too often: nodes take room.
      if (one_in(8)) {
        constexpr uint64_t kBlocks[] = {860, 1885, 2900, 1'040'000, 2'080'000};
        return (kBlocks[below(std::size(kBlocks))] + below(60)) * kBlockBytes + below(5000);
      }
      return below(kFileBytesMost);
    default:
      return below(std::min(size, kFileBytesMost) + 1);
  }
}

void Walker::open() {
  if (files_.size() >= kOpenMax) close();
  constexpr uint32_t kAccess[] = {vfs::kOpenReadOnly, vfs::kOpenWriteOnly, vfs::kOpenReadWrite,
                                  vfs::kOpenReadWrite};
  uint32_t flags = kAccess[below(std::size(kAccess))];
  if (one_in(2)) flags |= vfs::kOpenCreate;
  if (one_in(6)) flags |= vfs::kOpenExclusive;
  if (one_in(4)) flags |= vfs::kOpenAppend;
  if (one_in(12)) flags |= vfs::kOpenNoFollow;
  if (one_in(16)) flags |= vfs::kOpenDirectory;
  if (one_in(8) && (flags & vfs::kOpenAccessMask) != vfs::kOpenReadOnly) {
    flags |= vfs::kOpenTruncate;
  }
  const bool creates = (flags & vfs::kOpenCreate) != 0;
  const std::string path =
      creates && one_in(2) ? new_path() : decorated(model_.path_of(pick([&](const Object& one) {
        return one.is_regular() || one_in(10);
      })));
  const auto mode = static_cast<uint32_t>(below(01000));
  uint32_t id = 0;
  const int64_t fd = both(
      fmt::format("open {} {:o}", path, flags), [&] { return session_->open(path, flags, mode); },
      [&](int64_t answer) {
        const int error = model_.open(path, flags, mode, id);
        return error < 0 ? error : std::max<int64_t>(answer, 0);
      });
  if (fd >= 0) files_.push_back({static_cast<int>(fd), id, flags, 0});
}

void Walker::close() {
  if (files_.empty()) return;
  const size_t which = below(files_.size());
  const int closed = session_->close(files_[which].fd);
  if (closed != 0) throw Difference("close answers " + words_of(closed));
  const uint32_t id = files_[which].id;
  files_.erase(files_.begin() + static_cast<ptrdiff_t>(which));
  drop_if_gone(id);
}

Walker::OpenFile* Walker::some_open() {
  if (files_.empty()) open();
  return files_.empty() ? nullptr : &files_[below(files_.size())];
}

void Walker::write_to(OpenFile& file, bool at_position) {
  const std::string data = bytes(one_in(3) ? below(64) : below(one_in(6) ? 80'000 : 9000));
  const uint64_t size = model_.at(file.id).content.size();
  const bool append = (file.flags & vfs::kOpenAppend) != 0;
  uint64_t offset = at_position ? file.position : some_offset(size);
  if (append) offset = size;
  if (append && size > 4 * kFileBytesMost) return;
  const bool may = (file.flags & vfs::kOpenAccessMask) != vfs::kOpenReadOnly;
  const int64_t written = both(
      fmt::format("{} {} bytes at {} of {}", at_position ? "write" : "pwrite", data.size(), offset,
                  model_.path_of(file.id)),
      [&] {
        return at_position ? session_->write(file.fd, data)
                           : session_->pwrite(file.fd, data, offset);
      },
      [&](int64_t answer) -> int64_t {
        if (!may) return -EBADF;
        const bool some = answer > 0 && static_cast<uint64_t>(answer) < data.size();
        const uint64_t count = some ? static_cast<uint64_t>(answer) : data.size();
        if (some) ++full_;
        model_.write(file.id, offset, std::string_view(data).substr(0, count));
        return static_cast<int64_t>(count);
      });
  if (!at_position || !may || data.empty()) return;
  if (!append) file.position += data.size();  // also where there was no room
  if (append && written > 0) file.position = offset + static_cast<uint64_t>(written);
}

void Walker::pwrite() {
  if (OpenFile* const file = some_open()) write_to(*file, false);
}

void Walker::write() {
  OpenFile* const file = some_open();
  if (file != nullptr && file->position < 4 * kFileBytesMost) write_to(*file, true);
}

void Walker::pread() {
  const OpenFile* const file = some_open();
  if (file == nullptr) return;
  const Object& object = model_.at(file->id);
  const uint64_t offset = some_offset(object.content.size());
  std::string buffer(below(one_in(4) ? 100'000 : 6000), '\xee');
  const uint64_t count = buffer.size();
  const std::string what =
      fmt::format("pread {} bytes at {} of {}", count, offset, model_.path_of(file->id));
  std::string wanted;
  const int64_t got = both(
      what, [&] { return session_->pread(file->fd, buffer.data(), count, offset); },
      [&](int64_t) -> int64_t {
        if ((file->flags & vfs::kOpenAccessMask) == vfs::kOpenWriteOnly) return -EBADF;
        if (object.is_directory()) return -EISDIR;
        wanted = object.content.read(offset, count);
        return static_cast<int64_t>(wanted.size());
      });
  if (got < 0) return;
  const auto place = std::mismatch(wanted.begin(), wanted.end(), buffer.begin());
  if (place.first != wanted.end()) {
    throw Difference(fmt::format("operation {}: {}: byte {} is wrong", operations_, what,
                                 offset + static_cast<uint64_t>(place.first - wanted.begin())));
  }
}

void Walker::lseek() {
  OpenFile* const file = some_open();
  if (file == nullptr || model_.at(file->id).is_directory()) return;
  const auto size = static_cast<int64_t>(model_.at(file->id).content.size());
  const int whence = static_cast<int>(below(3));
  const int64_t offset = static_cast<int64_t>(below(kFileBytesMost)) - (one_in(3) ? 20'000 : 0);
  const int64_t base = whence == vfs::kSeekSet       ? 0
                       : whence == vfs::kSeekCurrent ? static_cast<int64_t>(file->position)
                                                     : size;
  const int64_t answer = both(
      fmt::format("lseek {} {}", offset, whence),
      [&] { return session_->lseek(file->fd, offset, whence); },
      [&](int64_t) {
        const int64_t target = base + offset;
        const auto most = static_cast<int64_t>(vfs::kFileBytesMax);
        return target < 0 || target > most ? int64_t{-EINVAL} : target;
      });
  if (answer >= 0) file->position = static_cast<uint64_t>(answer);
}

void Walker::ftruncate() {
  const OpenFile* const file = some_open();
  if (file == nullptr) return;
  const uint64_t size = some_offset(model_.at(file->id).content.size());
  both(
      fmt::format("ftruncate {} to {}", model_.path_of(file->id), size),
      [&] { return session_->ftruncate(file->fd, size); },
      [&](int64_t) {
        if ((file->flags & vfs::kOpenAccessMask) == vfs::kOpenReadOnly) return -EINVAL;
        model_.resize(file->id, size);
        return 0;
      });
}

void Walker::truncate() {
  const std::string path = some_path();
  const uint64_t size = some_offset(20'000);
  both(
      fmt::format("truncate {} to {}", path, size), [&] { return session_->truncate(path, size); },
      [&](int64_t) { return model_.truncate(path, size); });
}

void Walker::mkdir() {
  const std::string path = one_in(8) ? some_path() : new_path();
  const auto mode = static_cast<uint32_t>(below(one_in(6) ? 010000 : 01000));
  both(
      fmt::format("mkdir {} {:o}", path, mode), [&] { return session_->mkdir(path, mode); },
      [&](int64_t) { return model_.mkdir(path, mode); });
}

void Walker::mknod() {
  constexpr uint32_t kTypes[] = {format::kModeRegular,    format::kModeRegular,
                                 format::kModeFifo,       format::kModeSocket,
                                 format::kModeCharDevice, format::kModeBlockDevice};
  const uint32_t mode =
      kTypes[below(std::size(kTypes))] | static_cast<uint32_t>(below(one_in(6) ? 010000 : 01000));
  const std::string path = one_in(8) ? some_path() : new_path();
  const auto major = static_cast<uint32_t>(below(4096));
  const auto minor = static_cast<uint32_t>(below(1 << 20));
  both(
      fmt::format("mknod {} {:o} {} {}", path, mode, major, minor),
      [&] { return session_->mknod(path, mode, major, minor); },
      [&](int64_t) { return model_.mknod(path, mode, major, minor); });
}

void Walker::symlink() {
  std::string target = one_in(4) ? std::string(1 + below(3000), 't') : some_path();
  if (one_in(3)) target = std::to_string(below(30));
  const std::string path = one_in(8) ? some_path() : new_path();
  both(
      fmt::format("symlink {} at {}", target, path),
      [&] { return session_->symlink(target, path); },
      [&](int64_t) { return model_.symlink(target, path); });
}

void Walker::link() {
  const std::string existing = some_path();
  const std::string path = one_in(8) ? some_path() : new_path();
  both(
      fmt::format("link {} as {}", existing, path), [&] { return session_->link(existing, path); },
      [&](int64_t) { return model_.link(existing, path); });
}

void Walker::unlink() {
  const bool any = one_in(6);
  const std::string path =
      any ? some_path()
          : decorated(model_.path_of(pick([](const Object& one) { return !one.is_directory(); })));
  if (is_home(path)) return;
  both(
      "unlink " + path, [&] { return session_->unlink(path); },
      [&](int64_t) { return model_.unlink(path); });
}

void Walker::rmdir() {
  const bool any = one_in(4);
  const std::string path = decorated(model_.path_of(
      pick([&](const Object& one) { return any || (one.is_directory() && one.entries.empty()); })));
  if (is_home(path)) return;
  both(
      "rmdir " + path, [&] { return session_->rmdir(path); },
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
      [&] { return session_->rename(from, to, flags); },
      [&](int64_t) { return model_.rename(from, to, flags); });
}

void Walker::chmod() {
  const std::string path = some_path();
  const auto mode = static_cast<uint32_t>(below(010000));
  both(
      fmt::format("chmod {} {:o}", path, mode), [&] { return session_->chmod(path, mode); },
      [&](int64_t) { return model_.chmod(path, mode); });
}

void Walker::chown() {
  const std::string path = some_path();
  const auto uid = static_cast<uint32_t>(below(70'000));
  const auto gid = static_cast<uint32_t>(below(70'000));
  both(
      fmt::format("lchown {} {}:{}", path, uid, gid),
      [&] { return session_->chown(path, uid, gid); },
      [&](int64_t) { return model_.chown(path, uid, gid); });
}

void Walker::utimens() {
  const std::string path = some_path();
  const f2fs::TimeStamp accessed{static_cast<int64_t>(below(1u << 31)),
                                 static_cast<uint32_t>(below(1'000'000'000))};
  const f2fs::TimeStamp modified{static_cast<int64_t>(below(1u << 31)), 1};
  both(
      "utimens " + path, [&] { return session_->utimens(path, accessed, modified); },
      [&](int64_t) { return model_.utimens(path); });
}

void Walker::setxattr() {
  constexpr const char* kPrefixes[] = {"user.", "user.", "user.", "trusted.", "security."};
  const std::string path = some_path();
  const std::string name =
      kPrefixes[below(std::size(kPrefixes))] + std::to_string(below(one_in(4) ? 100 : 6));
  const std::string value = bytes(below(one_in(4) ? 1500 : 60));
  const auto flags = static_cast<uint32_t>(one_in(3) ? 1 + below(2) : 0);
  uint32_t id = 0;
  size_t there = value.size();
  if (model_.resolve(path, false, id) == 0) {
    for (const auto& [one, bytes_of] : model_.at(id).xattrs) there += bytes_of.size() + 16;
  }
  if (there > kXattrBytesMost) return;
  both(
      fmt::format("lsetxattr {} {} {} bytes, flags {}", path, name, value.size(), flags),
      [&] { return session_->setxattr(path, name, value, flags); },
      [&](int64_t) { return model_.setxattr(path, name, value, flags); });
}

void Walker::removexattr() {
  const uint32_t id = pick([](const Object& one) { return !one.xattrs.empty(); });
  const auto& xattrs = model_.at(id).xattrs;
  const std::string name = xattrs.empty() || one_in(5) ? "user.none" : xattrs.begin()->first;
  const std::string path = decorated(model_.path_of(id));
  both(
      fmt::format("lremovexattr {} {}", path, name),
      [&] { return session_->removexattr(path, name); },
      [&](int64_t) { return model_.removexattr(path, name); });
}

void Walker::stat() {
  const std::string path = some_path();
  vfs::Stat got{};
  const int64_t answer = both(
      "lstat " + path, [&] { return session_->stat(path, got); },
      [&](int64_t) {
        uint32_t id = 0;
        return model_.resolve(path, false, id);
      });
  uint32_t id = 0;
  if (answer < 0 || model_.resolve(path, false, id) < 0) return;
  const Object& object = model_.at(id);
  if (got.mode != object.mode || got.links != object.links) {
    throw Difference(fmt::format("operation {}: lstat {}: mode {:o}, {} links", operations_, path,
                                 got.mode, got.links));
  }
}

void Walker::readlink() {
  const std::string path = decorated(
      model_.path_of(pick([&](const Object& one) { return one.is_symlink() || one_in(10); })));
  std::string target;
  uint32_t id = 0;
  const int64_t answer = both(
      "readlink " + path, [&] { return session_->readlink(path, target); },
      [&](int64_t) {
        const int error = model_.resolve(path, false, id);
        return error == 0 && !model_.at(id).is_symlink() ? -EINVAL : error;
      });
  if (answer == 0 && target != model_.at(id).target) {
    throw Difference(fmt::format("operation {}: readlink {} gives {}", operations_, path, target));
  }
}

void Walker::sync() {
  both(
      "sync", [&] { return session_->sync(); }, [](int64_t) { return 0; });
}

}  // namespace gofs::judges
