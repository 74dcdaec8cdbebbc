// SPDX-License-Identifier: Apache-2.0
//
// Scenarios without a plan: calls of all kinds on a few files, with an fsync now and then. What
// they come to meet is what nobody has thought of. `gofs_crash --scenario random_calls --seed N`.
#include <algorithm>

#include "scenario.h"
#include "vfs/fallocate.h"

namespace gofs::judges {

namespace {

constexpr uint32_t kFilesFirst = 5;
constexpr uint32_t kFilesMost = 9;
constexpr const char* kDirectories[] = {"", "/a", "/a/b", "/c"};

void some_files(Actor& actor) {
  for (const char* const directory : kDirectories) {
    if (*directory != 0) actor.mkdir(directory);
  }
  for (uint32_t i = 0; i < kFilesFirst; ++i) actor.put(numbered("/file", i), actor.bytes(i * 3000));
  const int fd = actor.open("/file0", vfs::kOpenReadWrite);
  for (const uint64_t block : {kDirectNode, kDirectNode + 1018, kIndirectNode, kIndirectNode + 5000,
                               kDoubleIndirectNode}) {
    actor.pwrite(fd, block * kBlock, actor.bytes(2 * kBlock));
  }
  actor.close(fd);
}

class RandomCalls {
 public:
  explicit RandomCalls(Actor& actor) : actor_(actor) {
    for (uint32_t i = 0; i < kFilesFirst; ++i) paths_.push_back(numbered("/file", i));
  }

  /// On the contents of a file, which may be made durable then.
  void change_contents() {
    const int fd = actor_.open(some_path(), vfs::kOpenReadWrite);
    for (uint64_t calls = 1 + actor_.below(2); calls != 0; --calls) change(fd);
    perhaps_sync(fd);
    // Removed while it is open.
    if (one_in(12) && paths_.size() > 3) {
      remove(some_path());
      change(fd);
      perhaps_sync(fd);
    }
    actor_.close(fd);
  }

  /// On names, owners and attributes.
  void change_names() {
    const std::string path = some_path();
    switch (actor_.below(12)) {
      case 0:
      case 1:
      case 2:
        return make();
      case 3:
        if (paths_.size() > 3) remove(path);
        return;
      case 4:
      case 5:
        return rename(path);
      case 6:
        if (paths_.size() >= kFilesMost) return;
        paths_.push_back(new_path());
        actor_.link(path, paths_.back());
        return;
      case 7:
        actor_.setxattr(path, numbered("user.name", static_cast<uint32_t>(actor_.below(2))),
                        actor_.bytes(one_in(3) ? 1500 : 1 + actor_.below(60)));
        return;
      case 8:
        // ENODATA is an answer too.
        actor_.removexattr(path, numbered("user.name", static_cast<uint32_t>(actor_.below(2))));
        return;
      case 9:
        actor_.chmod(path, 0600 + static_cast<uint32_t>(actor_.below(0100)));
        return;
      case 10:
        actor_.utimens(path, {1'000'000 + static_cast<int64_t>(actor_.below(1000)), 1},
                       {2'000'000 + static_cast<int64_t>(actor_.below(1000)), 2});
        return;
      default:
        if (!directory_.empty()) {
          actor_.rmdir(directory_);
          directory_.clear();
        } else {
          directory_ = new_path();
          actor_.mkdir(directory_);
        }
    }
  }

  void make_all_durable() {
    if (one_in(3)) {
      actor_.sync();
    } else if (one_in(2)) {
      actor_.collect_garbage();
    } else {
      actor_.fsync_directory(one_in(2) ? "/a" : "/");
    }
  }

  bool one_in(uint64_t count) { return actor_.below(count) == 0; }

 private:
  const std::string& some_path() { return paths_[actor_.below(paths_.size())]; }
  std::string new_path() {
    const std::string directory = kDirectories[actor_.below(std::size(kDirectories))];
    return numbered(directory + "/new", made_++);
  }

  /// Where nodes of all levels begin, and in the inode.
  uint64_t some_offset() {
    switch (actor_.below(9)) {
      case 0:
      case 1:
        return actor_.below(3000);
      case 2:
      case 3:
        return actor_.below(40 * kBlock);
      case 4:
        return (kDirectNode - 3) * kBlock + actor_.below(6 * kBlock);
      case 5:
        return (kDirectNode + 1015) * kBlock + actor_.below(6 * kBlock);
      case 6:
        return (kIndirectNode - 3) * kBlock + actor_.below(6 * kBlock);
      case 7:
        return (kIndirectNode + actor_.below(6000)) * kBlock;
      default:
        return (kDoubleIndirectNode + actor_.below(4)) * kBlock;
    }
  }

  void change(int fd) {
    constexpr uint32_t kPunch = vfs::kFallocatePunchHole | vfs::kFallocateKeepSize;
    constexpr uint32_t kModes[] = {kPunch,
                                   kPunch,
                                   vfs::kFallocateZeroRange,
                                   vfs::kFallocateZeroRange | vfs::kFallocateKeepSize,
                                   vfs::kFallocateKeepSize,
                                   0};
    const uint64_t offset = some_offset();
    switch (actor_.below(8)) {
      case 0:
      case 1:
        actor_.ftruncate(fd, offset);
        return;
      case 2:
        actor_.fallocate(fd, kModes[actor_.below(std::size(kModes))], offset,
                         1 + actor_.below(one_in(4) ? 2000 * kBlock : 5 * kBlock));
        return;
      default:
        actor_.pwrite(fd, offset, actor_.bytes(1 + actor_.below(2 * kBlock)));
    }
  }

  void perhaps_sync(int fd) {
    if (one_in(2)) return;
    if (one_in(3)) {
      actor_.fdatasync(fd);
    } else {
      actor_.fsync(fd);
    }
  }

  void make() {
    if (paths_.size() >= kFilesMost) return;
    paths_.push_back(new_path());
    const int fd = actor_.open(paths_.back(), kNewFile);
    if (!one_in(3)) actor_.pwrite(fd, 0, actor_.bytes(1 + actor_.below(5000)));
    perhaps_sync(fd);
    actor_.close(fd);
  }

  void remove(std::string path) {
    actor_.unlink(path);
    paths_.erase(std::find(paths_.begin(), paths_.end(), path));
  }

  void rename(std::string from) {
    const std::string other = some_path();
    if (other != from && one_in(3)) {
      actor_.rename(from, other, vfs::kRenameExchange);
    } else if (other != from && paths_.size() > 3 && one_in(2)) {
      actor_.rename(from, other);
      // Two names of one file both stay.
      uint32_t id = 0;
      if (actor_.model().resolve(from, /*follow=*/false, id) != 0) {
        paths_.erase(std::find(paths_.begin(), paths_.end(), from));
      }
    } else {
      const std::string to = new_path();
      actor_.rename(from, to);
      *std::find(paths_.begin(), paths_.end(), from) = to;
    }
  }

  Actor& actor_;
  std::vector<std::string> paths_;
  std::string directory_;
  uint32_t made_ = 0;
};

void random_calls(Actor& actor) {
  RandomCalls calls(actor);
  for (uint32_t i = 0; i < 70; ++i) {
    if (calls.one_in(16)) {
      calls.make_all_durable();
    } else if (calls.one_in(2)) {
      calls.change_names();
    } else {
      calls.change_contents();
    }
  }
}

void random_contents(Actor& actor) {
  RandomCalls calls(actor);
  for (uint32_t i = 0; i < 60; ++i) {
    if (calls.one_in(20)) {
      calls.make_all_durable();
    } else {
      calls.change_contents();
    }
  }
}

constexpr Scenario kRandom[] = {
    {.name = "random_calls", .run = random_calls, .prepare = some_files, .cut_every = 2},
    {.name = "random_contents", .run = random_contents, .prepare = some_files, .cut_every = 2},
    {"random_calls_in_little_memory", random_calls, some_files, 64},
};

}  // namespace

std::span<const Scenario> random_scenarios() { return kRandom; }

}  // namespace gofs::judges
