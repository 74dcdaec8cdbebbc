// SPDX-License-Identifier: Apache-2.0
#include "model.h"

#include <algorithm>
#include <cerrno>

#include "vfs/rename.h"
#include "vfs/set_xattr.h"

namespace gofs::judges {

namespace {

constexpr uint32_t kSetUserId = 04000;
constexpr uint32_t kSetGroupId = 02000;
constexpr uint32_t kGroupExecutes = 010;

bool is_no_name(const std::string& name) { return name.empty() || name == "." || name == ".."; }

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

Object& Model::touch(uint32_t id) {
  touched_.insert(id);
  return objects_.at(id);
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

int Model::resolve(const std::string& path, bool follow, uint32_t& id) const {
  Place missing;
  return walk(path, follow, id, missing);
}

int Model::walk(const std::string& path, bool follow, uint32_t& id, Place& missing) const {
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
    if (!here.is_directory()) return -ENOTDIR;
    if (name.size() > format::kNameBytesMax) return -ENAMETOOLONG;
    if (name == "." || (name == ".." && id == kRoot)) {
      if (rest.empty()) return 0;
      continue;
    }
    uint32_t next = 0;
    if (name == "..") {
      next = here.names.begin()->first;
    } else {
      const auto found = here.entries.find(name);
      if (found == here.entries.end()) {
        if (rest.empty()) missing = {id, name};
        return -ENOENT;
      }
      next = found->second;
    }
    const Object& object = objects_.at(next);
    if (object.is_symlink() && (follow || !rest.empty())) {
      if (++links > vfs::kSymlinksMax) return -ELOOP;
      if (object.target.size() + rest.size() >= vfs::kPathBytesMax) return -ENAMETOOLONG;
      rest.insert(0, object.target);
      if (rest.front() == '/') id = kRoot;
      continue;
    }
    id = next;
    if (rest.empty()) return 0;
  }
}

int Model::find_parent(const std::string& path, Place& place) const {
  if (path.empty()) return -ENOENT;
  if (path.size() >= vfs::kPathBytesMax) return -ENAMETOOLONG;
  const size_t last = path.find_last_not_of('/');
  if (last == std::string::npos) {
    place = {kRoot, ""};
    return 0;
  }
  const size_t slash = path.rfind('/', last);
  place.name = path.substr(slash + 1, last - slash);
  if (place.name.size() > format::kNameBytesMax) return -ENAMETOOLONG;
  const int error = resolve(path.substr(0, slash + 1), true, place.directory);
  if (error < 0) return error;
  return objects_.at(place.directory).is_directory() ? 0 : -ENOTDIR;
}

/// Where a new name goes: -EEXIST where it cannot.
int Model::find_free(const std::string& path, Place& place) const {
  const int error = find_parent(path, place);
  if (error < 0) return error;
  if (is_no_name(place.name)) return -EEXIST;
  return objects_.at(place.directory).entries.count(place.name) != 0 ? -EEXIST : 0;
}

uint32_t Model::enter(const Place& place, Object object) {
  const uint32_t id = next_id_++;
  Object& directory = touch(place.directory);
  object.links = object.is_directory() ? 2 : 1;
  object.names.insert({place.directory, place.name});
  object.gid = (directory.mode & kSetGroupId) != 0 ? directory.gid : 0;
  if (object.is_directory()) {
    ++directory.links;
    object.mode |= directory.mode & kSetGroupId;
  }
  directory.entries[place.name] = id;
  objects_[id] = std::move(object);
  touched_.insert(id);
  return id;
}

int Model::open(const std::string& path, uint32_t flags, uint32_t mode, uint32_t& id) {
  const bool creates = (flags & vfs::kOpenCreate) != 0;
  const bool exclusive = creates && (flags & vfs::kOpenExclusive) != 0;
  if (creates && (flags & vfs::kOpenDirectory) != 0) return -EINVAL;
  Place missing;
  int error = walk(path, (flags & vfs::kOpenNoFollow) == 0 && !exclusive, id, missing);
  if (error == 0 && exclusive) return -EEXIST;
  if (error == -ENOENT && creates) {
    Place place;
    error = find_free(path, place);
    if (error == -EEXIST && !exclusive) {  // a link to nowhere: made is what it leads to
      if (missing.name.empty()) return -ENOENT;
      place = missing;
      error = 0;
    }
    if (error < 0) return error;
    Object file;
    file.mode = format::kModeRegular | (mode & format::kModePermissionMask);
    id = enter(place, file);
    return 0;
  }
  if (error < 0) return error;
  const Object& object = objects_.at(id);
  const bool writes =
      (flags & vfs::kOpenAccessMask) != vfs::kOpenReadOnly || (flags & vfs::kOpenTruncate) != 0;
  if ((flags & vfs::kOpenDirectory) != 0 && !object.is_directory()) return -ENOTDIR;
  if (object.is_symlink()) return -ELOOP;
  if (object.is_directory()) return writes || creates ? -EISDIR : 0;
  if (!object.is_regular()) return -ENXIO;
  if ((flags & vfs::kOpenTruncate) != 0) resize(id, 0);
  return 0;
}

int Model::mkdir(const std::string& path, uint32_t mode) {
  Place place;
  const int error = find_free(path, place);
  if (error < 0) return error;
  Object directory;
  directory.mode = format::kModeDirectory | (mode & 01777);
  enter(place, directory);
  return 0;
}

int Model::mknod(const std::string& path, uint32_t mode, uint32_t major, uint32_t minor) {
  Place place;
  const int error = find_free(path, place);
  if (error < 0) return error;
  Object node;
  node.mode = mode;
  const bool device =
      node.type() == format::kModeCharDevice || node.type() == format::kModeBlockDevice;
  if (device) node.major = major;
  if (device) node.minor = minor;
  enter(place, node);
  return 0;
}

int Model::symlink(const std::string& target, const std::string& path) {
  if (target.empty()) return -ENOENT;
  Place place;
  const int error = find_free(path, place);
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
  if (error == 0) error = find_free(path, place);
  if (error < 0) return error;
  if (objects_.at(id).is_directory()) return -EPERM;
  Object& object = touch(id);
  ++object.links;
  object.names.insert({place.directory, place.name});
  touch(place.directory).entries[place.name] = id;
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
  Object& directory = touch(place.directory);
  Object& object = touch(entry_of(place));
  object.names.erase({place.directory, place.name});
  directory.entries.erase(place.name);
  if (object.is_directory()) --directory.links;
}

void Model::give_name(const Place& place, uint32_t id) {
  Object& directory = touch(place.directory);
  Object& object = touch(id);
  object.names.insert({place.directory, place.name});
  directory.entries[place.name] = id;
  if (object.is_directory()) ++directory.links;
}

int Model::unlink(const std::string& path) {
  Place place;
  const int error = find_parent(path, place);
  if (error < 0) return error;
  if (is_no_name(place.name)) return -EISDIR;
  const uint32_t id = entry_of(place);
  if (id == 0) return -ENOENT;
  if (objects_.at(id).is_directory()) return -EISDIR;
  take_name(place);
  --objects_.at(id).links;
  return 0;
}

int Model::rmdir(const std::string& path) {
  Place place;
  const int error = find_parent(path, place);
  if (error < 0) return error;
  if (place.name.empty()) return -EBUSY;
  if (place.name == ".") return -EINVAL;
  if (place.name == "..") return -ENOTEMPTY;
  const uint32_t id = entry_of(place);
  if (id == 0) return -ENOENT;
  if (!objects_.at(id).is_directory()) return -ENOTDIR;
  if (!objects_.at(id).entries.empty()) return -ENOTEMPTY;
  take_name(place);
  objects_.at(id).links = 0;
  return 0;
}

/// In Linux's order.
int Model::check_rename(const Place& from, const Place& to, uint32_t flags) const {
  const bool exchange = (flags & vfs::kRenameExchange) != 0;
  const bool keep = (flags & vfs::kRenameNoReplace) != 0;
  if (is_no_name(from.name)) return -EBUSY;
  if (is_no_name(to.name)) return keep ? -EEXIST : -EBUSY;
  const uint32_t moved = entry_of(from);
  const uint32_t there = entry_of(to);
  if (moved == 0) return -ENOENT;
  if (keep && there != 0) return -EEXIST;
  if (exchange && there == 0) return -ENOENT;
  const bool directory = objects_.at(moved).is_directory();
  if (directory && is_above(moved, to.directory)) return -EINVAL;
  if (there == 0 || there == moved) return 0;
  const Object& target = objects_.at(there);
  if (target.is_directory() && is_above(there, from.directory)) {
    return exchange ? -EINVAL : -ENOTEMPTY;
  }
  if (exchange) return 0;
  if (directory && !target.is_directory()) return -ENOTDIR;
  if (!directory && target.is_directory()) return -EISDIR;
  return target.entries.empty() ? 0 : -ENOTEMPTY;
}

int Model::rename(const std::string& from_path, const std::string& to_path, uint32_t flags) {
  const bool exchange = (flags & vfs::kRenameExchange) != 0;
  if (exchange && (flags & vfs::kRenameNoReplace) != 0) return -EINVAL;
  Place from;
  Place to;
  int error = find_parent(from_path, from);
  if (error == 0) error = find_parent(to_path, to);
  if (error == 0) error = check_rename(from, to, flags);
  if (error < 0) return error;
  const uint32_t moved = entry_of(from);
  const uint32_t there = entry_of(to);
  if (moved == there) return 0;
  if (there != 0) take_name(to);
  take_name(from);
  give_name(to, moved);
  if (exchange) {
    give_name(from, there);
  } else if (there != 0) {
    Object& gone = objects_.at(there);
    gone.links = gone.is_directory() ? 0 : gone.links - 1;
  }
  return 0;
}

int Model::truncate(const std::string& path, uint64_t size) {
  uint32_t id = 0;
  const int error = resolve(path, true, id);
  if (error < 0) return error;
  if (objects_.at(id).is_directory()) return -EISDIR;
  if (!objects_.at(id).is_regular()) return -EINVAL;
  resize(id, size);
  return 0;
}

int Model::chmod(const std::string& path, uint32_t mode) {
  uint32_t id = 0;
  const int error = resolve(path, true, id);
  if (error < 0) return error;
  Object& object = touch(id);
  object.mode = object.type() | (mode & format::kModePermissionMask);
  return 0;
}

int Model::chown(const std::string& path, uint32_t uid, uint32_t gid) {
  uint32_t id = 0;
  const int error = resolve(path, false, id);
  if (error < 0) return error;
  Object& object = touch(id);
  object.uid = uid;
  object.gid = gid;
  if (!object.is_directory()) {
    if ((object.mode & kGroupExecutes) != 0) object.mode &= ~kSetGroupId;
    object.mode &= ~kSetUserId;
  }
  return 0;
}

int Model::utimens(const std::string& path) {
  uint32_t id = 0;
  const int error = resolve(path, false, id);
  if (error == 0) touch(id);
  return error;
}

int Model::setxattr(const std::string& path, const std::string& name, const std::string& value,
                    uint32_t flags) {
  uint32_t id = 0;
  const int error = resolve(path, false, id);
  if (error < 0) return error;
  const Object& object = objects_.at(id);
  if (name.starts_with("user.") && !object.is_regular() && !object.is_directory()) return -EPERM;
  const bool there = object.xattrs.count(name) != 0;
  if ((flags & vfs::kXattrCreate) != 0 && there) return -EEXIST;
  if ((flags & vfs::kXattrReplace) != 0 && !there) return -ENODATA;
  touch(id).xattrs[name] = value;
  return 0;
}

int Model::removexattr(const std::string& path, const std::string& name) {
  uint32_t id = 0;
  const int error = resolve(path, false, id);
  if (error < 0) return error;
  const Object& object = objects_.at(id);
  if (name.starts_with("user.") && !object.is_regular() && !object.is_directory()) return -EPERM;
  if (object.xattrs.count(name) == 0) return -ENODATA;
  touch(id).xattrs.erase(name);
  return 0;
}

void Model::write(uint32_t id, uint64_t offset, std::string_view bytes) {
  if (!bytes.empty()) touch(id).content.write(offset, bytes);
}

void Model::resize(uint32_t id, uint64_t size) { touch(id).content.resize(size); }

}  // namespace gofs::judges
