// SPDX-License-Identifier: Apache-2.0
#include "walker.h"

#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <thread>

namespace gofs::judges {

namespace {

constexpr size_t kObjectsMax = 400;

}  // namespace

std::string words_of(int64_t answer) {
  if (answer >= 0) return std::to_string(answer);
  return fmt::format("{} ({})", answer, std::strerror(static_cast<int>(-answer)));
}

Walker::Walker(uint64_t seed, uint32_t number, bool strangers)
    : home_("/thread" + std::to_string(number)),
      strangers_(strangers),
      random_(seed * 1000003 + number),
      counts_(operations_table().size()) {}

std::span<const Walker::Operation> Walker::operations_table() {
  static constexpr Operation kOperations[] = {
      {"open", 12, &Walker::open},
      {"close", 3, &Walker::close},
      {"pwrite", 12, &Walker::pwrite},
      {"write", 7, &Walker::write},
      {"pwritev", 3, &Walker::pwritev},
      {"writev", 3, &Walker::writev},
      {"pread", 6, &Walker::pread},
      {"read", 4, &Walker::read},
      {"lseek", 3, &Walker::lseek},
      {"lseek to data or a hole", 3, &Walker::seek_data},
      {"ftruncate", 5, &Walker::ftruncate},
      {"truncate", 4, &Walker::truncate},
      {"fallocate", 5, &Walker::fallocate},
      {"copy_file_range", 4, &Walker::copy_range},
      {"fsync", 1, &Walker::fsync},
      {"sync", 1, &Walker::sync},
      {"mkdir", 6, &Walker::mkdir},
      {"mknod", 6, &Walker::mknod},
      {"symlink", 4, &Walker::symlink},
      {"link", 5, &Walker::link},
      {"unlink", 8, &Walker::unlink},
      {"rmdir", 4, &Walker::rmdir},
      {"rename", 8, &Walker::rename},
      {"chmod", 4, &Walker::chmod},
      {"chown", 4, &Walker::chown},
      {"utimens", 4, &Walker::utimens},
      {"setxattr", 6, &Walker::setxattr},
      {"setxattr of an access list", 6, &Walker::set_list},
      {"getxattr", 3, &Walker::getxattr},
      {"removexattr", 3, &Walker::removexattr},
      {"stat", 5, &Walker::stat},
      {"access", 3, &Walker::access},
      {"readlink", 3, &Walker::readlink},
      {"readdir", 2, &Walker::readdir},
      {"pwrite_async", 3, &Walker::pwrite_async, true},
      {"pwrite by lanes", 5, &Walker::pwrite_lanes, true},
      {"pread by lanes", 3, &Walker::pread_lanes, true},
      {"writes by scope", 5, &Walker::write_by_scope, true},
      {"reads by scope", 4, &Walker::read_by_scope, true},
      {"writes side by side", 4, &Walker::write_side_by_side, true},
      {"appends side by side", 4, &Walker::append_side_by_side, true},
      {"batch_create", 2, &Walker::create_batch, true},
      {"batch_read", 2, &Walker::read_batch, true},
      {"batch_write", 2, &Walker::write_batch, true},
      {"collect_garbage", 1, &Walker::collect_garbage, true},
  };
  return kOperations;
}

void Walker::enter(Calls& calls) {
  calls_ = &calls;
  gofs_ = dynamic_cast<Session*>(&calls);
  if (home_id_ != 0) return;
  const uint32_t mode = strangers_ ? 0777 : 0755;
  const int made = calls.mkdir(home_, mode);
  if (made != 0) throw Difference(home_ + ": mkdir answers " + words_of(made));
  model_.mkdir(home_, mode);
  model_.resolve(home_, true, home_id_);
  const std::string problem = observe(calls, model_, {home_id_});
  if (!problem.empty()) throw Difference(problem);
  model_.take_touched();
}

void Walker::step() {
  who_ = {};
  if (strangers_ && one_in(3)) {
    constexpr uint32_t kIds[] = {1000, 1001, 2000};
    who_.uid = one_of(kIds);
    who_.gid = one_of(kIds);
    if (one_in(2)) who_.groups.push_back(one_of(kIds));
  }
  const auto table = operations_table();
  uint64_t all = 0;
  for (const Operation& one : table) all += one.weight;
  uint64_t luck = below(all);
  for (size_t i = 0; i < table.size(); ++i) {
    const Operation& one = table[i];
    if (luck < one.weight) {
      if (one.only_gofs && gofs_ == nullptr) return;
      (this->*one.run)();
      ++counts_[i];
      break;
    }
    luck -= one.weight;
  }
  ++operations_;
}

void Walker::put_file(const std::string& name, std::string_view content) {
  const std::string path = home_ + "/" + name;
  constexpr uint32_t kFlags = vfs::kOpenWriteOnly | vfs::kOpenCreate | vfs::kOpenTruncate;
  who_ = {};
  uint32_t id = 0;
  const int64_t fd = both(
      "open " + path, [&] { return calls_->open(path, kFlags); },
      [&](int64_t answer) {
        const int error = model_.open(path, kFlags, 0644, id);
        return error < 0 ? error : answer;
      });
  both(
      "pwrite " + path, [&] { return calls_->pwrite(static_cast<int>(fd), content, 0); },
      [&](int64_t) {
        model_.write(id, 0, content);
        return static_cast<int64_t>(content.size());
      });
  (void)calls_->close(static_cast<int>(fd));
}

void Walker::leave() {
  while (!files_.empty()) close();
}

void Walker::check() {
  FoundTree tree;
  std::string problem = read_tree(*calls_, home_, tree);
  if (problem.empty()) {
    problem = difference(tree, home_id_, [&](uint32_t id) { return Versions{&model_.at(id)}; });
  }
  if (!problem.empty()) {
    throw Difference(fmt::format("after {} operations: {}", operations_, problem));
  }
}

void Walker::check_read_only() {
  const std::string file = model_.path_of(pick([](const Object& one) { return one.is_regular(); }));
  const std::string free = home_ + "/a name that nothing has";
  const auto refuses = [](const char* what, int64_t answer) {
    if (answer != -EROFS) throw Difference(fmt::format("{} answers {}", what, words_of(answer)));
  };
  refuses("mkdir", calls_->mkdir(free, 0700));
  refuses("mknod", calls_->mknod(free, format::kModeFifo | 0600, 0, 0));
  refuses("symlink", calls_->symlink("target", free));
  refuses("link", calls_->link(file, free));
  refuses("open", calls_->open(free, vfs::kOpenCreate | vfs::kOpenWriteOnly, 0600));
  refuses("unlink", calls_->unlink(file));
  refuses("rmdir", calls_->rmdir(home_));
  refuses("rename", calls_->rename(file, free, 0));
  refuses("chmod", calls_->chmod(file, 0600));
  refuses("chown", calls_->chown(file, 1, 1));
  refuses("utimens", calls_->utimens(file, {1, 1}, {1, 1}));
  refuses("setxattr", calls_->setxattr(file, "trusted.x", "y", 0));
  refuses("access", calls_->access(file, vfs::kMayWrite));
  if (file != home_) refuses("truncate", calls_->truncate(file, 1));
}

void Walker::differ(const std::string& what) const {
  throw Difference(fmt::format("operation {}, by user {}, group {}{}: {}", operations_, who_.uid,
                               who_.gid, who_.groups.empty() ? "" : " and another", what));
}

/// Makes the call and lets the model make it, which hears the answer where that is not to be
/// foreseen. A full volume changes nothing but times.
int64_t Walker::both(const std::string& what, const Call& call, const Expect& expect) {
  const bool stranger = who_.uid != 0;
  // Linux's clock for time stamps may stand still for 10 ms.
  const bool waits = gofs_ == nullptr && one_in(200);
  if (waits) std::this_thread::sleep_for(std::chrono::milliseconds(12));
  if (stranger) calls_->become(who_);
  const int64_t answer = call();
  if (stranger) calls_->become({});
  if (answer == -ENOSPC) {
    ++full_;
    model_.forget_times();
    // Nothing is half done.
    std::set<uint32_t> open;
    for (const OpenFile& file : files_) open.insert(file.id);
    // But for set-ID bits, which go before a write finds out that there is no room. A truncate
    // leaves them then.
    const bool truncates = what.starts_with("truncate") || what.starts_with("ftruncate");
    if (stranger && !truncates) {
      std::for_each(open.begin(), open.end(), [&](uint32_t id) { take_lost_setid(id); });
    }
    const std::string problem = observe(*calls_, model_, open, false);
    if (!problem.empty()) differ(fmt::format("without room for {}: {}", what, problem));
    if (one_in(16)) check();
    return answer;
  }
  model_.become(who_);
  const int64_t wanted = expect(answer);
  model_.become({});
  if (answer != wanted) {
    differ(fmt::format("{} answers {}, the model {}", what, words_of(answer), words_of(wanted)));
  }
  if (answer < 0) ++refused_;
  std::set<uint32_t> touched = model_.take_touched();
  touched.erase(Model::kRoot);
  const bool exact = gofs_ != nullptr ? gofs_->clock_is_exact() : waits;
  const std::string problem = observe(*calls_, model_, touched, exact);
  if (!problem.empty()) differ(fmt::format("after {}: {}", what, problem));
  for (const uint32_t id : touched) drop_if_gone(id);
  return answer;
}

void Walker::drop_if_gone(uint32_t id) {
  const bool open = std::any_of(files_.begin(), files_.end(),
                                [&](const OpenFile& file) { return file.id == id; });
  if (!open && id != Model::kRoot && model_.at(id).names.empty()) model_.drop(id);
}

/// An object of the kind that is wanted, or else its directory.
uint32_t Walker::pick(const Wanted& wanted) {
  const auto& objects = model_.objects();
  for (uint32_t attempt = 0; attempt < 20; ++attempt) {
    const auto found = objects.lower_bound(
        static_cast<uint32_t>(home_id_ + below(objects.rbegin()->first - home_id_ + 1)));
    const bool named = found->first == home_id_ || !found->second.names.empty();
    if (named && wanted(found->second)) return found->first;
  }
  return home_id_;
}

/// Another way to say the same; or, behind what is no directory, a wrong one.
std::string Walker::decorated(std::string path) {
  // First, while there is a name between the last two slashes: `..` and no name would lead out of
  // the home, to where others have names that the model does not know.
  if (one_in(16) && path.rfind('/') != 0) {
    const size_t slash = path.rfind('/', path.rfind('/') - 1);
    const std::string name = path.substr(slash, path.rfind('/') - slash);
    if (name != "/." && name != "/..") path.insert(path.rfind('/'), "/.." + name);
  }
  if (one_in(12)) path.insert(path.rfind('/'), "/.");
  if (one_in(12)) path.insert(path.rfind('/'), "/");
  if (one_in(20)) path += "/";
  if (one_in(60)) path += "/.";
  if (one_in(300)) path.insert(0, std::string(vfs::kPathBytesMax - 20, '/'));
  return path;
}

/// What has its name in the root, which others use too.
bool Walker::is_home(const std::string& path) const {
  uint32_t id = 0;
  std::string plain = path;
  while (plain.ends_with('/')) plain.pop_back();
  return plain.ends_with("/..") || (model_.resolve(plain, false, id) == 0 && id <= home_id_);
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
  uint32_t id = 0;
  const bool inside =
      model_.resolve(directory, false, id) == 0 && id != home_id_ && model_.at(id).is_directory();
  if (one_in(200)) name = inside && one_in(2) ? ".." : ".";
  return decorated(directory + "/" + name);
}

About Walker::some_about() {
  if (!files_.empty() && one_in(4)) {
    const OpenFile& file = files_[below(files_.size())];
    return {file.fd, file.id};
  }
  return {some_path(), one_in(3)};
}

std::string Walker::words_about(const About& about) {
  if (about.is_open()) return fmt::format("descriptor {}", about.fd);
  return about.path + (about.follow ? " (followed)" : "");
}

const Walker::OpenFile* Walker::find_open(const About& about) const {
  for (const OpenFile& file : files_) {
    if (about.is_open() && file.fd == about.fd) return &file;
  }
  return nullptr;
}

/// Of such a descriptor little more is known than what it stands for.
bool Walker::is_path_only(const About& about) const {
  const OpenFile* const file = find_open(about);
  return file != nullptr && (file->flags & vfs::kOpenPath) != 0;
}

/// Permissions: often such that others get on.
uint32_t Walker::some_mode() {
  constexpr uint32_t kModes[] = {0777, 0755, 01777, 02777, 04777, 06775, 0640};
  return one_in(2) ? one_of(kModes) : static_cast<uint32_t>(below(010000));
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

}  // namespace gofs::judges
