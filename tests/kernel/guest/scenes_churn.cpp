// SPDX-License-Identifier: Apache-2.0
//
// Long random histories, so that nodes, NAT blocks and segments end up where no mkfs puts them.
#include <linux/falloc.h>
#include <linux/fs.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/xattr.h>
#include <unistd.h>

#include <cerrno>
#include <string>
#include <vector>

#include "ops.h"
#include "scenes.h"

namespace gofs::judge {
namespace {

/// Returns whether the call worked; a full volume (or a name that is taken or gone, which random
/// operations run into) is no reason to stop, anything else is.
bool tried(int64_t result, const std::string& what) {
  if (result >= 0) return true;
  if (errno == ENOSPC || errno == EEXIST || errno == ENOENT || errno == ENOTEMPTY) return false;
  die(what);
}

/// A population of files under "churn", in a few folders, that random operations work on.
class Population {
 public:
  explicit Population(uint64_t seed) : random_(seed) {
    ::mkdir("churn", 0755);  // there already when a second churn goes on with the first one's
    for (const std::string& folder : sorted_names("churn")) {
      folders_.push_back("churn/" + folder);
      for (const std::string& name : sorted_names(folders_.back())) {
        files_.push_back(folders_.back() + "/" + name);
      }
    }
    while (folders_.size() < 8) {
      folders_.push_back("churn/" + std::to_string(folders_.size()));
      make_directory(folders_.back());
    }
  }

  void step() {
    const uint64_t dice = random_.below(100);
    if (files_.size() < 20 || dice < 24) return create();
    if (dice < 38) return write();
    if (dice < 46) return append();
    if (dice < 54) return truncate();
    if (dice < 60) return punch();
    if (dice < 73) return remove();
    if (dice < 83) return rename();
    if (dice < 86) return link();
    if (dice < 88) return symlink();
    if (dice < 92) return attributes();
    if (dice < 96) return xattr();
    if (dice < 97) return exchange();
    return force();
  }

 private:
  /// A name that nothing has.
  std::string fresh_name() {
    std::string name;
    do {
      name = folders_[random_.below(folders_.size())] + "/" +
             std::to_string(random_.next() % 100000000);
      if (random_.percent(10)) name += std::string(random_.below(240), 'w');
    } while (exists(name));
    return name;
  }

  static bool exists(const std::string& path) {
    struct stat info {};
    return ::lstat(path.c_str(), &info) == 0;
  }

  size_t pick() { return random_.below(files_.size()); }

  bool is_regular(const std::string& path) {
    struct stat info {};
    check(::lstat(path.c_str(), &info), "lstat " + path);
    return S_ISREG(info.st_mode);
  }

  size_t random_size() {
    switch (random_.below(8)) {
      case 0:
        return 0;
      case 1:
        return random_.below(100);
      case 2:
        return random_.below(3600);
      case 3:
        return 3400 + random_.below(400);
      case 4:
        return 4000 + random_.below(200);
      case 5:
        return random_.below(20000);
      case 6:
        return random_.below(60000);
      default:
        return random_.below(4096) * 16;
    }
  }

  /// A file of the population that can be written, or none.
  int open_some() {
    const std::string& path = files_[pick()];
    if (!is_regular(path)) return -1;
    return static_cast<int>(check(::open(path.c_str(), O_RDWR | O_CLOEXEC), "open " + path));
  }

  void create() {
    const std::string path = fresh_name();
    make_file(path, random_size(), random_.next());  // on a full volume: as much as fits
    if (exists(path)) files_.push_back(path);
  }

  void write() {
    const Fd file(open_some());
    if (file.get() < 0) return;
    const auto offset = static_cast<int64_t>(random_.below(100000));
    write_at(file.get(), content(1 + random_.below(12000), random_.next()), offset);
  }

  void append() {
    const Fd file(open_some());
    if (file.get() < 0) return;
    const int64_t end = check(::lseek(file.get(), 0, SEEK_END), "lseek");
    if (end < 1000000) write_at(file.get(), content(1 + random_.below(6000), random_.next()), end);
  }

  void truncate() {
    const Fd file(open_some());
    if (file.get() < 0) return;
    const int64_t end = check(::lseek(file.get(), 0, SEEK_END), "lseek");
    const bool grow = random_.percent(30);
    const auto size =
        static_cast<int64_t>(random_.below(static_cast<uint64_t>(grow ? end + 200000 : end + 1)));
    tried(::ftruncate(file.get(), size), "ftruncate");
  }

  void punch() {
    const Fd file(open_some());
    if (file.get() < 0) return;
    const int64_t end = check(::lseek(file.get(), 0, SEEK_END), "lseek");
    if (end < 2) return;
    const auto at = static_cast<int64_t>(random_.below(static_cast<uint64_t>(end)));
    const auto length = static_cast<int64_t>(1 + random_.below(20000));
    const int zero = FALLOC_FL_ZERO_RANGE | FALLOC_FL_KEEP_SIZE;
    const int hole = FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE;
    tried(::fallocate(file.get(), random_.percent(30) ? zero : hole, at, length), "fallocate");
  }

  void remove() {
    const size_t index = pick();
    if (!tried(::unlink(files_[index].c_str()), "unlink " + files_[index])) return;
    files_[index] = files_.back();
    files_.pop_back();
  }

  void rename() {
    const size_t index = pick();
    const bool over = random_.percent(25);
    const size_t other = pick();
    const std::string target = over ? files_[other] : fresh_name();
    if (over && other == index) return;
    if (!tried(::rename(files_[index].c_str(), target.c_str()), "rename")) return;
    // Two names of one inode: rename() then does nothing, and both stay.
    if (exists(files_[index])) return;
    files_[index] = target;
    if (over) {
      files_[other] = files_.back();
      files_.pop_back();
    }
  }

  void exchange() {
    const std::string& one = files_[pick()];
    const std::string& other = files_[pick()];
    tried(::syscall(SYS_renameat2, AT_FDCWD, one.c_str(), AT_FDCWD, other.c_str(), RENAME_EXCHANGE),
          "exchange");
  }

  void link() {
    const std::string path = fresh_name();
    if (tried(::link(files_[pick()].c_str(), path.c_str()), "link")) files_.push_back(path);
  }

  void symlink() {
    const std::string path = fresh_name();
    const std::string target = "../" + std::string(1 + random_.below(300), 't');
    if (tried(::symlink(target.c_str(), path.c_str()), "symlink")) files_.push_back(path);
  }

  void attributes() {
    const std::string& path = files_[pick()];
    const auto owner = static_cast<uid_t>(random_.below(70000));
    tried(::lchown(path.c_str(), owner, owner / 2), "chown");
    if (is_regular(path)) tried(::chmod(path.c_str(), random_.below(07777)), "chmod");
    const timespec times[2] = {{static_cast<time_t>(random_.below(5000000000)), 1},
                               {static_cast<time_t>(random_.below(5000000000)) - 2500000000, 2}};
    tried(::utimensat(AT_FDCWD, path.c_str(), times, AT_SYMLINK_NOFOLLOW), "utimensat");
  }

  void xattr() {
    const std::string& path = files_[pick()];
    if (!is_regular(path)) return;
    const std::string value = noise(random_.below(random_.percent(20) ? 2000 : 60), random_.next());
    const std::string name = "user.c" + std::to_string(random_.below(3));
    if (random_.percent(30)) {
      if (::removexattr(path.c_str(), name.c_str()) < 0 && errno != ENODATA) {
        tried(-1, "removexattr");
      }
      return;
    }
    // The attributes of one inode together may be too many (ENOSPC as well).
    tried(::setxattr(path.c_str(), name.c_str(), value.data(), value.size(), 0), "setxattr");
  }

  void force() {
    const Fd file(open_some());
    if (file.get() < 0) return;
    tried(::fsync(file.get()), "fsync");
  }

  Random random_;
  std::vector<std::string> folders_;
  std::vector<std::string> files_;
};

}  // namespace

void churn_scene(const Scene& scene) {
  Population population(scene.seed);
  for (int64_t i = 0; i < scene.scale; ++i) {
    population.step();
    if (i % 700 == 699) checkpoint(".");
  }
}

void full_scene(const Scene& scene) {
  Random random(scene.seed);
  if (::mkdir("full", 0755) < 0 && errno != EEXIST) die("mkdir full");
  std::vector<std::string> paths;
  for (const std::string& name : sorted_names("full")) paths.push_back("full/" + name);
  const int64_t round = static_cast<int64_t>(paths.size());
  for (int64_t pass = 0; pass < scene.scale; ++pass) {
    // To the brim: the first file that does not fit keeps what did.
    for (int64_t i = 0; i < 20000; ++i) {
      const std::string path =
          "full/" + std::to_string(round) + "_" + std::to_string(pass) + "_" + std::to_string(i);
      const size_t size = random.percent(60) ? random.below(9000) : random.below(120000);
      const bool fitted = make_file(path, size, random.next());
      if (::access(path.c_str(), F_OK) == 0) paths.push_back(path);
      if (!fitted) break;
      if (i % 100 == 99) checkpoint(".");
    }
    // Then every third or so goes, which leaves holes in all segments but frees none.
    for (size_t i = 0; i < paths.size();) {
      if (!random.percent(pass == scene.scale - 1 ? 15 : 35)) {
        ++i;
        continue;
      }
      check(::unlink(paths[i].c_str()), "unlink " + paths[i]);
      paths[i] = paths.back();
      paths.pop_back();
    }
    checkpoint(".");
  }
  // Some of what is left is rewritten, into the holes.
  for (size_t i = 0; i < paths.size(); i += 3) {
    const Fd file = open_or_die(paths[i], O_WRONLY);
    if (!write_at(file.get(), content(3 * kBlock, random.next()), 0)) break;
  }
}

void nudge_scene(const Scene& scene) {
  Random random(scene.seed);
  make_directory("nudge" + std::to_string(scene.seed));
  const std::string folder = "nudge" + std::to_string(scene.seed) + "/";
  for (int i = 0; i < 5; ++i) {
    if (!make_file(folder + std::to_string(i), 5000, random.next())) die("full");
  }
}

}  // namespace gofs::judge
