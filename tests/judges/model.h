// SPDX-License-Identifier: Apache-2.0
//
// A file system that is nothing but maps: what a volume should hold, and what calls should answer,
// in Linux's order where several answers are possible. Not safe for several threads.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <string_view>
#include <utility>

#include "calls.h"
#include "f2fs/inode.h"

namespace gofs::judges {

/// What an SSD writes wholly or not at all.
inline constexpr uint64_t kSectorBytes = 512;

/// What a regular file holds; copies share their blocks.
class Content {
 public:
  uint64_t size() const { return size_; }
  void write(uint64_t offset, std::string_view bytes);
  void resize(uint64_t bytes);
  /// Zeros, as far as the file goes.
  void clear(uint64_t offset, uint64_t bytes);
  /// At most `bytes` at `offset`, as pread gives them.
  std::string read(uint64_t offset, uint64_t bytes) const;
  bool operator==(const Content& other) const;
  /// Where two of them differ first; the smaller size if only the sizes do.
  uint64_t first_difference(const Content& other) const;

  using Block = std::shared_ptr<const std::string>;  // always of kBlockBytes
  /// Those that hold anything but zeros.
  const std::map<uint64_t, Block>& blocks() const { return blocks_; }

 private:
  void set(uint64_t block, std::string bytes);

  uint64_t size_ = 0;
  std::map<uint64_t, Block> blocks_;
};

/// Times of an inode, as bits.
enum Times : uint32_t { kAccessed = 1, kModified = 2, kChanged = 4 };

/// What sizes a file may have of which several versions are mixed.
enum class Sizes : uint8_t {
  kBetween,  // any between theirs
  kWritten,  // one of theirs, or one with which it ends with a byte that the last has there
  kTheirs,   // one of theirs
};

/// An inode. Its number in the model is not the one that it has in the volume.
struct Object {
  uint32_t mode = 0;  // type and permissions
  uint32_t uid = 0;
  uint32_t gid = 0;
  uint32_t links = 0;
  uint32_t major = 0;
  uint32_t minor = 0;
  Content content;
  // Of several versions (found_tree.h) each unit of so many bytes may be this one's; with 0 the
  // file is wholly one of them.
  uint64_t unit_bytes = kBlockBytes;
  Sizes sizes = Sizes::kBetween;
  std::string target;  // of a symbolic link
  std::map<std::string, std::string> xattrs;
  std::map<std::string, uint32_t> entries;           // of a directory
  std::set<std::pair<uint32_t, std::string>> names;  // (directory, name); the root has none
  // As the volume gave them after the last change: they are to stay like that, but for those that
  // the last call has set to the present. F2FS does so with some that others leave as they are.
  uint32_t renewed = 0;
  uint32_t renewed_by_f2fs = 0;
  bool times_known = false;
  f2fs::TimeStamp accessed{};
  f2fs::TimeStamp modified{};
  f2fs::TimeStamp changed{};

  uint32_t type() const { return mode & format::kModeTypeMask; }
  bool is_directory() const { return type() == format::kModeDirectory; }
  bool is_regular() const { return type() == format::kModeRegular; }
  bool is_symlink() const { return type() == format::kModeSymlink; }
};

class Model {
 public:
  static constexpr uint32_t kRoot = 1;
  Model();

  /// Who makes the calls from now on.
  void become(const Who& who) { who_ = who; }

  // Calls: 0 or more, or a negative errno.
  int resolve(const std::string& path, bool follow, uint32_t& id) const;
  int resolve(const About& about, uint32_t& id) const;
  /// The file is made or emptied as `flags` say.
  int open(const std::string& path, uint32_t flags, uint32_t mode, uint32_t& id);
  int mkdir(const std::string& path, uint32_t mode);
  int mknod(const std::string& path, uint32_t mode, uint32_t major, uint32_t minor);
  int symlink(const std::string& target, const std::string& path);
  int link(const std::string& existing, const std::string& path);
  int unlink(const std::string& path);
  int rmdir(const std::string& path);
  int rename(const std::string& from, const std::string& to, uint32_t flags);
  int truncate(const std::string& path, uint64_t size);
  int chmod(const About& about, uint32_t mode);
  int chown(const About& about, uint32_t uid, uint32_t gid);
  int utimens(const About& about, const f2fs::TimeStamp& accessed, const f2fs::TimeStamp& modified);
  int setxattr(const About& about, const std::string& name, const std::string& value,
               uint32_t flags);
  int removexattr(const About& about, const std::string& name);
  /// Bytes of the value.
  int getxattr(const About& about, const std::string& name) const;
  int access(const std::string& path, uint32_t wanted) const;
  /// Whether new files can be made in a directory.
  int check_directory(const std::string& path, uint32_t& id) const;
  /// A new regular file of it.
  int make_file(uint32_t directory, const std::string& name, uint32_t mode, uint32_t& id);
  // Of a file that is open.
  void write(uint32_t id, uint64_t offset, std::string_view bytes);
  void resize(uint32_t id, uint64_t size);
  void allocate(uint32_t id, uint32_t mode, uint64_t offset, uint64_t bytes);

  const std::map<uint32_t, Object>& objects() const { return objects_; }
  const Object& at(uint32_t id) const { return objects_.at(id); }
  Object& at(uint32_t id) { return objects_.at(id); }
  /// A path of an object, or words about one that has no name any more.
  std::string path_of(uint32_t id) const;
  /// What the times are is to be found out again.
  void forget_times();
  /// Drops an object without names, that nobody has open.
  void drop(uint32_t id) { objects_.erase(id); }

  /// Which objects have changed since the last call.
  const std::set<uint32_t>& touched() const { return touched_; }
  std::set<uint32_t> take_touched() { return std::exchange(touched_, {}); }

 private:
  struct Place {
    uint32_t directory = 0;
    std::string name;    // empty: the root's
    bool slash = false;  // only a directory is named so
  };
  enum class Last { kKeep, kFollow, kMake };
  int walk(const std::string& path, Last last, uint32_t& id, Place& missing) const;
  int find_parent(const std::string& path, Place& place) const;
  int find_free(const std::string& path, bool directory, Place& place) const;
  int find_old(const Place& place, uint32_t& id) const;
  int check_open(uint32_t id, uint32_t flags) const;
  int check_rename(const Place& from, const Place& to, uint32_t flags) const;
  int may_rename(const Place& from, const Place& to, uint32_t flags) const;
  int may_remove(const Place& place, bool directory) const;
  int may_change_xattr(const Object& object, const std::string& name) const;
  int change_list(uint32_t id, const std::string& name, const std::string& value);
  static void inherit_lists(const Object& directory, Object& object);
  int permits(const Object& object, uint32_t wanted) const;
  int permits_names(uint32_t directory) const;
  bool owns(const Object& object) const { return who_.uid == 0 || who_.uid == object.uid; }
  bool in_group(uint32_t gid) const { return who_.uid == 0 || who_.in_group(gid); }
  uint32_t setid_of(const Object& object) const;
  void clear_setid(Object& object);
  uint32_t entry_of(const Place& place) const;
  bool is_above(uint32_t upper, uint32_t lower) const;
  void take_name(const Place& place);
  void give_name(const Place& place, uint32_t id);
  uint32_t enter(const Place& place, Object object);
  Object& touch(uint32_t id, uint32_t times = kChanged);

  Who who_;
  std::map<uint32_t, Object> objects_;
  uint32_t next_id_ = kRoot + 1;
  std::set<uint32_t> touched_;
};

}  // namespace gofs::judges
