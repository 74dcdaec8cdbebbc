// SPDX-License-Identifier: Apache-2.0
#include "model.h"

#include <algorithm>
#include <cerrno>

#include "access_list.h"

namespace gofs::judges {

namespace {

constexpr uint32_t kSetUserId = 04000;
constexpr uint32_t kSetGroupId = 02000;
constexpr uint32_t kGroupExecutes = 010;

constexpr uint32_t kSticky = 01000;

bool is_no_name(const std::string& name) { return name.empty() || name == "." || name == ".."; }

/// The list that an object has under that name; without entries if it has none.
AccessList list_of(const Object& object, const std::string& name) {
  AccessList list;
  const auto found = object.xattrs.find(name);
  if (found != object.xattrs.end()) (void)AccessList::parse(found->second, list);
  return list;
}

bool all_zero(const std::string& bytes) {
  return bytes.find_first_not_of('\0') == std::string::npos;
}

}  // namespace

void Content::set(uint64_t block, std::string bytes) {
  if (all_zero(bytes)) {
    blocks_.erase(block);
  } else {
    blocks_[block] = std::make_shared<const std::string>(std::move(bytes));
  }
}

void Content::write(uint64_t offset, std::string_view bytes) {
  for (size_t done = 0; done < bytes.size();) {
    const uint64_t at = offset + done;
    const uint64_t block = at / kBlockBytes;
    const size_t within = at % kBlockBytes;
    const size_t count = std::min<size_t>(kBlockBytes - within, bytes.size() - done);
    const auto found = blocks_.find(block);
    std::string whole = found != blocks_.end() ? *found->second : std::string(kBlockBytes, '\0');
    std::copy_n(bytes.begin() + static_cast<ptrdiff_t>(done), count,
                whole.begin() + static_cast<ptrdiff_t>(within));
    set(block, std::move(whole));
    done += count;
  }
  if (!bytes.empty()) size_ = std::max(size_, offset + bytes.size());
}

void Content::resize(uint64_t bytes) {
  if (bytes < size_) {
    blocks_.erase(blocks_.lower_bound((bytes + kBlockBytes - 1) / kBlockBytes), blocks_.end());
    const auto last = blocks_.find(bytes / kBlockBytes);
    if (last != blocks_.end()) {
      std::string cut = last->second->substr(0, bytes % kBlockBytes);
      cut.resize(kBlockBytes, '\0');
      set(bytes / kBlockBytes, std::move(cut));
    }
  }
  size_ = bytes;
}

void Content::clear(uint64_t offset, uint64_t bytes) {
  const uint64_t end = std::min(offset + bytes, size_);
  if (offset >= end) return;
  for (auto it = blocks_.lower_bound(offset / kBlockBytes); it != blocks_.end();) {
    const uint64_t begin = it->first * kBlockBytes;
    if (begin >= end) break;
    const uint64_t from = std::max(begin, offset) - begin;
    const uint64_t to = std::min(begin + kBlockBytes, end) - begin;
    std::string whole = *it->second;
    std::fill(whole.begin() + static_cast<ptrdiff_t>(from),
              whole.begin() + static_cast<ptrdiff_t>(to), '\0');
    const uint64_t block = (it++)->first;
    set(block, std::move(whole));
  }
}

std::string Content::read(uint64_t offset, uint64_t bytes) const {
  if (offset >= size_) return {};
  std::string got(std::min(bytes, size_ - offset), '\0');
  for (size_t done = 0; done < got.size();) {
    const uint64_t at = offset + done;
    const size_t within = at % kBlockBytes;
    const size_t count = std::min<size_t>(kBlockBytes - within, got.size() - done);
    const auto found = blocks_.find(at / kBlockBytes);
    if (found != blocks_.end()) found->second->copy(got.data() + done, count, within);
    done += count;
  }
  return got;
}

bool Content::operator==(const Content& other) const {
  return size_ == other.size_ &&
         std::equal(blocks_.begin(), blocks_.end(), other.blocks_.begin(), other.blocks_.end(),
                    [](const auto& a, const auto& b) {
                      return a.first == b.first && (a.second == b.second || *a.second == *b.second);
                    });
}

uint64_t Content::first_difference(const Content& other) const {
  std::set<uint64_t> all;
  for (const auto& [block, bytes] : blocks_) all.insert(block);
  for (const auto& [block, bytes] : other.blocks_) all.insert(block);
  const std::string zeros(kBlockBytes, '\0');
  for (const uint64_t block : all) {
    const auto mine = blocks_.find(block);
    const auto theirs = other.blocks_.find(block);
    const std::string& a = mine == blocks_.end() ? zeros : *mine->second;
    const std::string& b = theirs == other.blocks_.end() ? zeros : *theirs->second;
    const auto place = std::mismatch(a.begin(), a.end(), b.begin());
    if (place.first != a.end()) {
      return block * kBlockBytes + static_cast<uint64_t>(place.first - a.begin());
    }
  }
  return std::min(size_, other.size_);
}

Model::Model() {
  Object root;
  root.mode = format::kModeDirectory | 0755;
  root.links = 2;
  objects_[kRoot] = root;
}

Object& Model::touch(uint32_t id, uint32_t times) {
  touched_.insert(id);
  Object& object = objects_.at(id);
  object.renewed |= times;
  return object;
}

void Model::forget_times() {
  for (auto& [id, object] : objects_) object.times_known = false;
}

std::string Model::path_of(uint32_t id) const {
  std::string path;
  for (uint32_t at = id; at != kRoot;) {
    if (objects_.at(at).names.empty()) return "removed file " + std::to_string(id);
    const auto& [directory, name] = *objects_.at(at).names.begin();
    path.insert(0, "/" + name);
    at = directory;
  }
  return path.empty() ? "/" : path;
}

/// 0 or -EACCES.
int Model::permits(const Object& object, uint32_t wanted) const {
  if (who_.uid == 0) {
    const bool runs = object.is_directory() || (object.mode & 0111) != 0;
    return (wanted & vfs::kMayExecute) != 0 && !runs ? -EACCES : 0;
  }
  const bool owner = who_.uid == object.uid;
  if (!owner && (object.mode & 070) != 0 && object.xattrs.count(kAccessList) != 0) {
    return list_of(object, kAccessList).permits(who_, object.gid, wanted);
  }
  const uint32_t shift = owner ? 6 : who_.in_group(object.gid) ? 3 : 0;
  return (wanted & ~(object.mode >> shift)) != 0 ? -EACCES : 0;
}

/// Whether names of the directory may come and go.
int Model::permits_names(uint32_t directory) const {
  return permits(objects_.at(directory), vfs::kMayWrite | vfs::kMayExecute);
}

int Model::resolve(const std::string& path, bool follow, uint32_t& id) const {
  Place missing;
  return walk(path, follow ? Last::kFollow : Last::kKeep, id, missing);
}

int Model::resolve(const About& about, uint32_t& id) const {
  id = about.id;
  return about.is_open() ? 0 : resolve(about.path, about.follow, id);
}

/// `missing` is where the last name would be that is not there. To be made (kMake) is no name with
/// a slash behind it: -EISDIR, whatever is there.
int Model::walk(const std::string& path, Last last, uint32_t& id, Place& missing) const {
  if (path.empty()) return -ENOENT;
  if (path.size() >= vfs::kPathBytesMax) return -ENAMETOOLONG;
  std::string rest = path;
  uint32_t links = 0;
  id = kRoot;
  for (;;) {
    const Object& here = objects_.at(id);
    const size_t begin = rest.find_first_not_of('/');
    if (begin != 0 && !here.is_directory()) return -ENOTDIR;
    if (begin == std::string::npos) return here.is_directory() || rest.empty() ? 0 : -ENOTDIR;
    const size_t end = std::min(rest.find('/', begin), rest.size());
    const std::string name = rest.substr(begin, end - begin);
    rest = rest.substr(end);
    const bool is_last = rest.find_first_not_of('/') == std::string::npos;
    if (!here.is_directory()) return -ENOTDIR;
    if (permits(here, vfs::kMayExecute) < 0) return -EACCES;
    if (name == "." || (name == ".." && id == kRoot)) {
      if (rest.empty()) return 0;
      continue;
    }
    if (name == "..") {
      id = here.names.begin()->first;
      if (rest.empty()) return 0;
      continue;
    }
    if (is_last && !rest.empty() && last == Last::kMake) return -EISDIR;
    if (name.size() > format::kNameBytesMax) return -ENAMETOOLONG;
    const auto found = here.entries.find(name);
    if (found == here.entries.end()) {
      if (rest.empty()) missing = {id, name};
      return -ENOENT;
    }
    const Object& object = objects_.at(found->second);
    if (object.is_symlink() && (last != Last::kKeep || !rest.empty())) {
      if (++links > vfs::kSymlinksMax) return -ELOOP;
      if (object.target.size() + rest.size() >= vfs::kPathBytesMax) return -ENAMETOOLONG;
      rest.insert(0, object.target);
      if (rest.front() == '/') id = kRoot;
      continue;
    }
    id = found->second;
    if (rest.empty()) return 0;
  }
}

int Model::find_parent(const std::string& path, Place& place) const {
  if (path.empty()) return -ENOENT;
  if (path.size() >= vfs::kPathBytesMax) return -ENAMETOOLONG;
  const size_t last = path.find_last_not_of('/');
  if (last == std::string::npos) {
    place = {kRoot, "", true};
    return 0;
  }
  const size_t slash = path.rfind('/', last);
  place.name = path.substr(slash + 1, last - slash);
  place.slash = last + 1 != path.size();
  const int error = resolve(path.substr(0, slash + 1), true, place.directory);
  if (error < 0) return error;
  const Object& directory = objects_.at(place.directory);
  return directory.is_directory() ? permits(directory, vfs::kMayExecute) : -ENOTDIR;
}

/// Where a new name goes: -EEXIST where it cannot.
int Model::find_free(const std::string& path, bool directory, Place& place) const {
  const int error = find_parent(path, place);
  if (error < 0) return error;
  if (is_no_name(place.name)) return -EEXIST;
  if (place.name.size() > format::kNameBytesMax) return -ENAMETOOLONG;
  if (entry_of(place) != 0) return -EEXIST;
  if (place.slash && !directory) return -ENOENT;
  return permits_names(place.directory);
}

/// What a name leads to, or `id` 0.
int Model::find_old(const Place& place, uint32_t& id) const {
  if (place.name.size() > format::kNameBytesMax) return -ENAMETOOLONG;
  id = entry_of(place);
  return 0;
}

/// What a new object has of the default list of its directory.
void Model::inherit_lists(const Object& directory, Object& object) {
  AccessList list = list_of(directory, kDefaultList);
  if (list.entries.empty() || object.is_symlink()) return;
  if (object.is_directory()) object.xattrs[kDefaultList] = list.value();
  list.set_mode(list.mode() & object.mode);
  object.mode = (object.mode & ~0777u) | list.mode();
  if (list.is_extended()) object.xattrs[kAccessList] = list.value();
}

uint32_t Model::enter(const Place& place, Object object) {
  const uint32_t id = next_id_++;
  Object& directory = touch(place.directory, kModified | kChanged);
  object.links = object.is_directory() ? 2 : 1;
  object.names.insert({place.directory, place.name});
  const bool inherits = (directory.mode & kSetGroupId) != 0;
  object.uid = who_.uid;
  object.gid = inherits ? directory.gid : who_.gid;
  if (object.is_directory()) {
    ++directory.links;
    object.mode |= directory.mode & kSetGroupId;
  } else if (inherits && (object.mode & kGroupExecutes) != 0 && !in_group(directory.gid)) {
    object.mode &= ~kSetGroupId;
  }
  inherit_lists(directory, object);
  directory.entries[place.name] = id;
  objects_[id] = std::move(object);
  touched_.insert(id);
  return id;
}

/// Whether what is there may be opened.
int Model::check_open(uint32_t id, uint32_t flags) const {
  const Object& object = objects_.at(id);
  if ((flags & vfs::kOpenDirectory) != 0 && !object.is_directory()) return -ENOTDIR;
  if ((flags & vfs::kOpenPath) != 0) return 0;
  const bool writes = vfs::may_write(flags) || (flags & vfs::kOpenTruncate) != 0;
  if (object.is_symlink()) return -ELOOP;
  if (object.is_directory() && writes) return -EISDIR;
  const uint32_t reading = vfs::may_read(flags) ? uint32_t{vfs::kMayRead} : 0;
  const int error = permits(object, reading | (writes ? uint32_t{vfs::kMayWrite} : 0));
  if (error < 0) return error;
  return object.is_directory() || object.is_regular() ? 0 : -ENXIO;
}

int Model::open(const std::string& path, uint32_t flags, uint32_t mode, uint32_t& id) {
  if ((flags & vfs::kOpenPath) != 0) {
    flags &= vfs::kOpenPath | vfs::kOpenDirectory | vfs::kOpenNoFollow;
  }
  const bool creates = (flags & vfs::kOpenCreate) != 0;
  const bool exclusive = creates && (flags & vfs::kOpenExclusive) != 0;
  if (creates && (flags & vfs::kOpenDirectory) != 0) return -EINVAL;
  const bool keeps = (flags & vfs::kOpenNoFollow) != 0 || exclusive;
  Place missing;
  int error = 0;
  if (creates && keeps) {
    // The name itself is what is made.
    Place place;
    error = find_parent(path, place);
    if (error == 0 && place.slash && !is_no_name(place.name)) error = -EISDIR;
    if (error == 0) error = walk(path, Last::kKeep, id, missing);
  } else {
    error = walk(path, creates ? Last::kMake : keeps ? Last::kKeep : Last::kFollow, id, missing);
  }
  if (error == -ENOENT && creates && !missing.name.empty()) {
    error = permits_names(missing.directory);
    return error < 0 ? error : make_file(missing.directory, missing.name, mode, id);
  }
  if (error < 0) return error;
  if (exclusive) return -EEXIST;
  if (creates && objects_.at(id).is_directory()) return -EISDIR;
  error = check_open(id, flags);
  if (error == 0 && (flags & vfs::kOpenTruncate) != 0) resize(id, 0);
  return error;
}

int Model::check_directory(const std::string& path, uint32_t& id) const {
  const int error = resolve(path, true, id);
  if (error < 0) return error;
  return objects_.at(id).is_directory() ? permits_names(id) : -ENOTDIR;
}

int Model::make_file(uint32_t directory, const std::string& name, uint32_t mode, uint32_t& id) {
  Object file;
  file.mode = format::kModeRegular | (mode & format::kModePermissionMask);
  id = enter({directory, name}, file);
  return 0;
}

int Model::mkdir(const std::string& path, uint32_t mode) {
  Place place;
  const int error = find_free(path, true, place);
  if (error < 0) return error;
  Object directory;
  directory.mode = format::kModeDirectory | (mode & 01777);
  enter(place, directory);
  return 0;
}

int Model::mknod(const std::string& path, uint32_t mode, uint32_t major, uint32_t minor) {
  Object node;
  node.mode = mode;
  if (node.type() == 0) node.mode |= format::kModeRegular;
  const bool device =
      node.type() == format::kModeCharDevice || node.type() == format::kModeBlockDevice;
  if (node.is_directory()) return -EPERM;
  const bool known = device || node.is_regular() || node.type() == format::kModeFifo ||
                     node.type() == format::kModeSocket;
  if (!known) return -EINVAL;
  Place place;
  const int error = find_free(path, false, place);
  if (error < 0) return error;
  if (device && who_.uid != 0) return -EPERM;
  if (device) node.major = major;
  if (device) node.minor = minor;
  enter(place, node);
  return 0;
}

int Model::symlink(const std::string& target, const std::string& path) {
  if (target.empty()) return -ENOENT;
  if (target.size() >= vfs::kPathBytesMax) return -ENAMETOOLONG;
  Place place;
  const int error = find_free(path, false, place);
  if (error < 0) return error;
  Object link;
  link.mode = format::kModeSymlink | 0777;
  link.target = target;
  enter(place, link);
  return 0;
}

int Model::link(const std::string& existing, const std::string& path) {
  uint32_t id = 0;
  Place place;
  int error = resolve(existing, false, id);
  if (error == 0) error = find_free(path, false, place);
  if (error < 0) return error;
  if (objects_.at(id).is_directory()) return -EPERM;
  Object& object = touch(id);
  ++object.links;
  object.names.insert({place.directory, place.name});
  touch(place.directory, kModified | kChanged).entries[place.name] = id;
  return 0;
}

uint32_t Model::entry_of(const Place& place) const {
  const auto& entries = objects_.at(place.directory).entries;
  const auto found = entries.find(place.name);
  return found == entries.end() ? 0 : found->second;
}

/// Whether the directory `upper` is `lower` or one that it lies in.
bool Model::is_above(uint32_t upper, uint32_t lower) const {
  while (lower != upper && lower != kRoot) lower = objects_.at(lower).names.begin()->first;
  return lower == upper;
}

void Model::take_name(const Place& place) {
  Object& directory = touch(place.directory, kModified | kChanged);
  Object& object = touch(entry_of(place));
  object.names.erase({place.directory, place.name});
  directory.entries.erase(place.name);
  if (object.is_directory()) --directory.links;
}

void Model::give_name(const Place& place, uint32_t id) {
  Object& directory = touch(place.directory, kModified | kChanged);
  Object& object = touch(id);
  object.names.insert({place.directory, place.name});
  directory.entries[place.name] = id;
  if (object.is_directory()) ++directory.links;
}

/// Whether a name may be taken away: of a directory, or of what is none.
int Model::may_remove(const Place& place, bool directory) const {
  const Object& parent = objects_.at(place.directory);
  const Object& object = objects_.at(entry_of(place));
  const int error = permits_names(place.directory);
  if (error < 0) return error;
  if ((parent.mode & kSticky) != 0 && !owns(object) && !owns(parent)) return -EPERM;
  if (directory && !object.is_directory()) return -ENOTDIR;
  return !directory && object.is_directory() ? -EISDIR : 0;
}

int Model::unlink(const std::string& path) {
  Place place;
  uint32_t id = 0;
  int error = find_parent(path, place);
  if (error < 0) return error;
  if (is_no_name(place.name)) return -EISDIR;
  error = find_old(place, id);
  if (error < 0) return error;
  if (id == 0) return -ENOENT;
  if (place.slash) return objects_.at(id).is_directory() ? -EISDIR : -ENOTDIR;
  error = may_remove(place, false);
  if (error < 0) return error;
  take_name(place);
  --objects_.at(id).links;
  return 0;
}

int Model::rmdir(const std::string& path) {
  Place place;
  uint32_t id = 0;
  int error = find_parent(path, place);
  if (error < 0) return error;
  if (place.name.empty()) return -EBUSY;
  if (place.name == ".") return -EINVAL;
  if (place.name == "..") return -ENOTEMPTY;
  error = find_old(place, id);
  if (error < 0) return error;
  if (id == 0) return -ENOENT;
  error = may_remove(place, true);
  if (error < 0) return error;
  if (!objects_.at(id).entries.empty()) return -ENOTEMPTY;
  take_name(place);
  objects_.at(id).links = 0;
  return 0;
}

/// What the names and what they lead to say.
int Model::check_rename(const Place& from, const Place& to, uint32_t flags) const {
  const bool exchange = (flags & vfs::kRenameExchange) != 0;
  const bool keep = (flags & vfs::kRenameNoReplace) != 0;
  if (is_no_name(from.name)) return -EBUSY;
  if (is_no_name(to.name)) return keep ? -EEXIST : -EBUSY;
  uint32_t moved = 0;
  uint32_t there = 0;
  int error = find_old(from, moved);
  if (error == 0 && moved == 0) error = -ENOENT;
  if (error == 0) error = find_old(to, there);
  if (error < 0) return error;
  if (keep && there != 0) return -EEXIST;
  if (exchange && there == 0) return -ENOENT;
  if (exchange && to.slash && !objects_.at(there).is_directory()) return -ENOTDIR;
  const bool directory = objects_.at(moved).is_directory();
  if (!directory && (from.slash || (to.slash && !exchange))) return -ENOTDIR;
  if (directory && is_above(moved, to.directory)) return -EINVAL;
  if (there == 0 || there == moved) return 0;
  if (objects_.at(there).is_directory() && is_above(there, from.directory)) {
    return exchange ? -EINVAL : -ENOTEMPTY;
  }
  return 0;
}

/// Whether the caller may rename one to the other, which are not the same.
int Model::may_rename(const Place& from, const Place& to, uint32_t flags) const {
  const bool exchange = (flags & vfs::kRenameExchange) != 0;
  const Object& moved = objects_.at(entry_of(from));
  const uint32_t there = entry_of(to);
  int error = may_remove(from, moved.is_directory());
  if (error < 0) return error;
  if (there == 0) {
    error = permits_names(to.directory);
  } else {
    error = may_remove(to, exchange ? objects_.at(there).is_directory() : moved.is_directory());
  }
  if (error == 0 && from.directory != to.directory) {  // their `..` changes
    if (moved.is_directory()) error = permits(moved, vfs::kMayWrite);
    if (error == 0 && exchange && objects_.at(there).is_directory()) {
      error = permits(objects_.at(there), vfs::kMayWrite);
    }
  }
  if (error < 0 || there == 0 || exchange) return error;
  return objects_.at(there).entries.empty() ? 0 : -ENOTEMPTY;
}

int Model::rename(const std::string& from_path, const std::string& to_path, uint32_t flags) {
  const bool exchange = (flags & vfs::kRenameExchange) != 0;
  if (flags > vfs::kRenameExchange) return -EINVAL;
  Place from;
  Place to;
  int error = find_parent(from_path, from);
  if (error == 0) error = find_parent(to_path, to);
  if (error == 0) error = check_rename(from, to, flags);
  if (error < 0) return error;
  const uint32_t moved = entry_of(from);
  const uint32_t there = entry_of(to);
  if (moved == there) return 0;
  error = may_rename(from, to, flags);
  if (error < 0) return error;
  if (there != 0) take_name(to);
  take_name(from);
  give_name(to, moved);
  if (exchange) {
    give_name(from, there);
  } else if (there != 0) {
    Object& gone = objects_.at(there);
    gone.links = gone.is_directory() ? 0 : gone.links - 1;
  }
  // F2FS counts `..` as what the directory holds.
  if (from.directory != to.directory) {
    for (const uint32_t id : {moved, exchange ? there : moved}) {
      if (objects_.at(id).is_directory()) objects_.at(id).renewed_by_f2fs |= kModified;
    }
  }
  return 0;
}

int Model::truncate(const std::string& path, uint64_t size) {
  uint32_t id = 0;
  int error = resolve(path, true, id);
  if (error < 0) return error;
  if (objects_.at(id).is_directory()) return -EISDIR;
  if (!objects_.at(id).is_regular()) return -EINVAL;
  error = permits(objects_.at(id), vfs::kMayWrite);
  if (error == 0) resize(id, size);
  return error;
}

int Model::chmod(const About& about, uint32_t mode) {
  uint32_t id = about.id;
  const int error = about.is_open() ? 0 : resolve(about.path, true, id);
  if (error < 0) return error;
  if (!owns(objects_.at(id))) return -EPERM;
  Object& object = touch(id);
  object.mode = object.type() | (mode & format::kModePermissionMask);
  if (!in_group(object.gid)) object.mode &= ~kSetGroupId;
  AccessList list = list_of(object, kAccessList);
  if (!list.entries.empty()) {
    list.set_mode(mode);
    object.xattrs[kAccessList] = list.value();
  }
  return 0;
}

/// What others could do as the owner or his group: bits of the mode that go when it changes.
uint32_t Model::setid_of(const Object& object) const {
  if (object.is_directory()) return 0;
  const bool group = (object.mode & kGroupExecutes) != 0 || !in_group(object.gid);
  return object.mode & (kSetUserId | (group ? kSetGroupId : 0));
}

int Model::chown(const About& about, uint32_t uid, uint32_t gid) {
  uint32_t id = 0;
  const int error = resolve(about, id);
  if (error < 0) return error;
  const Object& before = objects_.at(id);
  const bool owner = who_.uid == before.uid;
  const bool sets_uid = uid != vfs::kKeepId;
  const bool sets_gid = gid != vfs::kKeepId;
  const uint32_t setid = setid_of(before);
  if (who_.uid != 0) {
    if (sets_uid && !(owner && uid == before.uid)) return -EPERM;
    if (sets_gid && !(owner && (gid == before.gid || who_.in_group(gid)))) return -EPERM;
    if (setid != 0 && !owner) return -EPERM;
  }
  Object& object = touch(id);
  if (sets_uid) object.uid = uid;
  if (sets_gid) object.gid = gid;
  object.mode &= ~setid;
  if (setid != 0 && !in_group(object.gid)) object.mode &= ~kSetGroupId;
  return 0;
}

int Model::utimens(const About& about, const f2fs::TimeStamp& accessed,
                   const f2fs::TimeStamp& modified) {
  const auto keeps = [](const f2fs::TimeStamp& time) { return time.nanoseconds == vfs::kTimeOmit; };
  const auto present = [](const f2fs::TimeStamp& time) {
    return time.nanoseconds == vfs::kTimeNow;
  };
  if (keeps(accessed) && keeps(modified)) return 0;
  uint32_t id = 0;
  int error = resolve(about, id);
  if (error < 0) return error;
  for (const f2fs::TimeStamp& time : {accessed, modified}) {
    if (time.nanoseconds >= 1'000'000'000 && !keeps(time) && !present(time)) return -EINVAL;
  }
  const Object& before = objects_.at(id);
  if (!owns(before)) {
    error = present(accessed) && present(modified) ? permits(before, vfs::kMayWrite) : -EPERM;
    if (error < 0) return error;
  }
  Object& object = touch(id);
  const auto set = [&](const f2fs::TimeStamp& time, uint32_t bit, f2fs::TimeStamp& field) {
    if (present(time)) object.renewed |= bit;
    if (!present(time) && !keeps(time)) field = time;
  };
  set(accessed, kAccessed, object.accessed);
  set(modified, kModified, object.modified);
  return 0;
}

/// Of attributes that users name, and of those that only user 0 may change.
int Model::may_change_xattr(const Object& object, const std::string& name) const {
  if (!name.starts_with("user.")) return who_.uid == 0 ? 0 : -EPERM;
  if (!object.is_regular() && !object.is_directory()) return -EPERM;
  if (object.is_directory() && (object.mode & kSticky) != 0 && !owns(object)) return -EPERM;
  return permits(object, vfs::kMayWrite);
}

/// Sets a list, or where `value` is empty, removes it.
int Model::change_list(uint32_t id, const std::string& name, const std::string& value) {
  AccessList list;
  int error = AccessList::parse(value, list);
  if (error < 0) return error;
  const Object& before = objects_.at(id);
  const bool some = !list.entries.empty();
  if (before.is_symlink()) return -EOPNOTSUPP;
  if (name == kDefaultList && !before.is_directory()) return some ? -EACCES : 0;
  if (!owns(before)) return -EPERM;
  if (some) error = list.check();
  if (error < 0) return error;
  Object& object = touch(id);
  if (some && (name == kDefaultList || list.is_extended())) {
    object.xattrs[name] = list.value();
  } else {
    object.xattrs.erase(name);
  }
  if (!some || name == kDefaultList) return 0;
  object.mode = (object.mode & ~0777u) | list.mode();
  if (!in_group(object.gid)) object.mode &= ~kSetGroupId;
  return 0;
}

int Model::setxattr(const About& about, const std::string& name, const std::string& value,
                    uint32_t flags) {
  if (flags > (vfs::kXattrCreate | vfs::kXattrReplace)) return -EINVAL;
  if (name.empty() || name.size() > vfs::kXattrNameBytesMax) return -ERANGE;
  uint32_t id = 0;
  int error = resolve(about, id);
  if (error == 0 && is_list(name)) return change_list(id, name, value);
  if (error == 0) error = may_change_xattr(objects_.at(id), name);
  if (error < 0) return error;
  const bool there = objects_.at(id).xattrs.count(name) != 0;
  if ((flags & vfs::kXattrCreate) != 0 && there) return -EEXIST;
  if ((flags & vfs::kXattrReplace) != 0 && !there) return -ENODATA;
  touch(id).xattrs[name] = value;
  return 0;
}

int Model::removexattr(const About& about, const std::string& name) {
  if (name.empty() || name.size() > vfs::kXattrNameBytesMax) return -ERANGE;
  uint32_t id = 0;
  int error = resolve(about, id);
  if (error == 0 && is_list(name)) return change_list(id, name, "");
  if (error == 0) error = may_change_xattr(objects_.at(id), name);
  if (error < 0) return error;
  if (objects_.at(id).xattrs.count(name) == 0) return -ENODATA;
  touch(id).xattrs.erase(name);
  return 0;
}

int Model::getxattr(const About& about, const std::string& name) const {
  if (name.empty() || name.size() > vfs::kXattrNameBytesMax) return -ERANGE;
  uint32_t id = 0;
  int error = resolve(about, id);
  if (error < 0) return error;
  const Object& object = objects_.at(id);
  if (is_list(name) && object.is_symlink()) return -EOPNOTSUPP;
  if (name.starts_with("trusted.") && who_.uid != 0) return -ENODATA;
  if (name.starts_with("user.")) {
    if (!object.is_regular() && !object.is_directory()) return -ENODATA;
    error = permits(object, vfs::kMayRead);
    if (error < 0) return error;
  }
  const auto found = object.xattrs.find(name);
  return found == object.xattrs.end() ? -ENODATA : static_cast<int>(found->second.size());
}

int Model::access(const std::string& path, uint32_t wanted) const {
  if (wanted > 7) return -EINVAL;
  uint32_t id = 0;
  const int error = resolve(path, true, id);
  return error < 0 ? error : permits(objects_.at(id), wanted);
}

/// What a change of its contents takes from a file.
void Model::clear_setid(Object& object) {
  if (who_.uid != 0) object.mode &= ~setid_of(object);
}

void Model::write(uint32_t id, uint64_t offset, std::string_view bytes) {
  if (bytes.empty()) return;
  Object& object = touch(id, kModified | kChanged);
  clear_setid(object);
  object.content.write(offset, bytes);
}

void Model::resize(uint32_t id, uint64_t size) {
  const bool same = objects_.at(id).content.size() == size;
  Object& object = touch(id, same ? 0u : kModified | kChanged);
  if (same) object.renewed_by_f2fs |= kModified | kChanged;
  clear_setid(object);
  object.content.resize(size);
}

void Model::allocate(uint32_t id, uint32_t mode, uint64_t offset, uint64_t bytes) {
  const bool punches = (mode & vfs::kFallocatePunchHole) != 0;
  Object& object = touch(id, punches ? 0u : uint32_t{kChanged});
  object.renewed_by_f2fs |= kModified | kChanged;
  clear_setid(object);
  if (mode != 0 && mode != vfs::kFallocateKeepSize) object.content.clear(offset, bytes);
  const bool grows =
      (mode & vfs::kFallocateKeepSize) == 0 && offset + bytes > object.content.size();
  if (grows) object.content.resize(offset + bytes);
}

}  // namespace gofs::judges
