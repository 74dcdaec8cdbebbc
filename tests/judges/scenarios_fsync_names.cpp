// SPDX-License-Identifier: Apache-2.0
//
// Scenarios about names and attributes that fsync makes durable, or that change around it.
#include "scenario.h"
#include "vfs/rename.h"

namespace gofs::judges {

namespace {

void some_files(Actor& actor) {
  actor.mkdir("/a");
  actor.mkdir("/b");
  for (uint32_t i = 0; i < 6; ++i) {
    actor.put(numbered("/a/file", i), actor.bytes(300 + 2000 * i));
    actor.put(numbered("/b/file", i), actor.bytes(300 + 1000 * i));
  }
}

/// After a checkpoint of this mount.
void begin(Actor& actor) {
  actor.put("/beginning", "");
  actor.sync();
}

void change_and_fsync(Actor& actor, const std::string& path, uint64_t at = 0) {
  const int fd = actor.open(path, vfs::kOpenReadWrite);
  actor.pwrite(fd, at, actor.bytes(1500));
  actor.fsync(fd);
  actor.close(fd);
}

void put_and_fsync(Actor& actor, const std::string& path, size_t bytes) {
  const int fd = actor.open(path, kNewFile | vfs::kOpenExclusive);
  actor.pwrite(fd, 0, actor.bytes(bytes));
  actor.fsync(fd);
  actor.close(fd);
}

void rename_then_fsync(Actor& actor) {
  begin(actor);
  for (uint32_t i = 0; i < 6; ++i) {
    if (i % 2 == 0) change_and_fsync(actor, numbered("/a/file", i));
    actor.rename(numbered("/a/file", i), numbered(i % 3 == 0 ? "/a/moved" : "/b/moved", i));
    change_and_fsync(actor, numbered(i % 3 == 0 ? "/a/moved" : "/b/moved", i), 700);
  }
}

/// The new name may be lost, the contents not.
void fsync_then_rename(Actor& actor) {
  begin(actor);
  for (uint32_t i = 0; i < 6; ++i) {
    change_and_fsync(actor, numbered("/a/file", i));
    actor.rename(numbered("/a/file", i), numbered("/b/moved", i));
    put_and_fsync(actor, numbered("/new", i), 100);
    actor.rename(numbered("/new", i), numbered("/a/new", i));
  }
}

void rename_over_then_fsync(Actor& actor) {
  begin(actor);
  for (uint32_t i = 0; i < 4; ++i) {
    change_and_fsync(actor, numbered("/b/file", i));
    actor.rename(numbered("/a/file", i), numbered("/b/file", i));
    if (i % 2 == 0) change_and_fsync(actor, numbered("/b/file", i), 900);
  }
}

/// As programs replace a file at once.
void replace(Actor& actor, bool directory) {
  begin(actor);
  for (uint32_t i = 0; i < 4; ++i) {
    put_and_fsync(actor, "/a/file0.new", 2000 * (i + 1));
    actor.rename("/a/file0.new", "/a/file0");
    if (directory) actor.fsync_directory("/a");
  }
}

void replace_a_file(Actor& actor) { replace(actor, false); }
void replace_a_file_and_fsync_its_directory(Actor& actor) { replace(actor, true); }

void fsync_of_directories(Actor& actor) {
  begin(actor);
  for (uint32_t i = 0; i < 3; ++i) {
    actor.mkdir(numbered("/a/new", i));
    actor.put(numbered("/a/new", i) + "/file", actor.bytes(100));
    actor.symlink("anywhere", numbered("/a/link", i));
    if (i == 1) actor.rename("/b/file3", "/a/new1/file3");
    actor.fsync_directory(i == 0 ? "/a" : numbered("/a/new", i));
  }
}

void exchange(Actor& actor) {
  begin(actor);
  for (uint32_t i = 0; i < 4; ++i) {
    change_and_fsync(actor, numbered("/a/file", i));
    actor.rename(numbered("/a/file", i), numbered("/b/file", 5 - i), vfs::kRenameExchange);
    if (i != 1) change_and_fsync(actor, numbered("/b/file", 5 - i), 50);
    if (i == 2) change_and_fsync(actor, numbered("/a/file", i), 70);
  }
}

void without_replacing(Actor& actor) {
  begin(actor);
  for (uint32_t i = 0; i < 4; ++i) {
    actor.rename(numbered("/a/file", i), numbered("/b/kept", i), vfs::kRenameNoReplace);
    if (i % 2 == 0) change_and_fsync(actor, numbered("/b/kept", i));
    put_and_fsync(actor, numbered("/a/file", i), 3000);
  }
}

void link_then_fsync(Actor& actor) {
  begin(actor);
  for (uint32_t i = 0; i < 4; ++i) {
    if (i % 2 == 0) change_and_fsync(actor, numbered("/a/file", i));
    actor.link(numbered("/a/file", i), numbered("/b/link", i));
    change_and_fsync(actor, numbered("/b/link", i), 90);
  }
}

/// Names that the last checkpoint has take none.
void names_that_are_durable(Actor& actor) {
  begin(actor);
  for (uint32_t i = 0; i < 4; ++i) {
    const std::string now = numbered("/b/now", i);
    actor.rename(numbered("/a/file", i), now);
    if (i % 2 == 0) actor.link(now, numbered("/a/second", i));
  }
  change_and_fsync(actor, "/b/now0");
  for (uint32_t i = 0; i < 4; ++i) {
    const std::string now = numbered("/b/now", i);
    change_and_fsync(actor, now, 50 * i);
    if (i == 0) actor.unlink(now);
    if (i == 2) actor.unlink("/a/second2");
    if (i % 2 == 1) actor.rename(now, numbered("/a/back", i));
    change_and_fsync(actor, i == 0 ? "/a/second0" : i == 2 ? now : numbered("/a/back", i), 3000);
    change_and_fsync(actor, i == 0 ? "/a/second0" : i == 2 ? now : numbered("/a/back", i), 90);
  }
  actor.link("/a/second0", "/b/third");
  actor.unlink("/a/second0");
  change_and_fsync(actor, "/b/third", 5000);
  change_and_fsync(actor, "/b/third", 10);
  put_and_fsync(actor, "/a/second0", 200);
}

/// One of two names goes, and the file that keeps the other is synced.
void unlink_another_name(Actor& actor) {
  for (uint32_t i = 0; i < 4; ++i) actor.link(numbered("/a/file", i), numbered("/b/link", i));
  begin(actor);
  for (uint32_t i = 0; i < 4; ++i) {
    actor.unlink(numbered(i % 2 == 0 ? "/a/file" : "/b/link", i));
    change_and_fsync(actor, numbered(i % 2 == 0 ? "/b/link" : "/a/file", i), 90);
  }
}

void unlink_synced_files(Actor& actor) {
  begin(actor);
  for (uint32_t i = 0; i < 5; ++i) {
    change_and_fsync(actor, numbered("/a/file", i));
    actor.unlink(numbered("/a/file", i));
    put_and_fsync(actor, numbered("/new", i), 900);
    actor.unlink(numbered("/new", i));
    if (i == 2) actor.sync();
  }
}

/// Another file under the name, perhaps under the number too.
void recreate(Actor& actor) {
  begin(actor);
  for (uint32_t i = 0; i < 4; ++i) {
    if (i % 2 == 0) change_and_fsync(actor, numbered("/a/file", i));
    actor.unlink(numbered("/a/file", i));
    put_and_fsync(actor, numbered("/a/file", i), 5000);
    change_and_fsync(actor, numbered("/a/file", i), 2000);
    if (i == 3) actor.unlink("/a/file3");
    if (i == 3) put_and_fsync(actor, "/a/file3", 50);
  }
}

void recreate_what_was_new(Actor& actor) {
  begin(actor);
  for (uint32_t i = 0; i < 4; ++i) {
    put_and_fsync(actor, "/again", 4000 + i);
    change_and_fsync(actor, "/again", 1000);
    actor.unlink("/again");
  }
  put_and_fsync(actor, "/again", 10);
}

void directories_of_the_same_name(Actor& actor) {
  actor.mkdir("/dir");
  begin(actor);
  for (uint32_t i = 0; i < 4; ++i) {
    put_and_fsync(actor, "/dir/file", 700);
    actor.unlink("/dir/file");
    actor.rmdir("/dir");
    actor.mkdir("/dir", 0700 + i);
    if (i % 2 == 0) put_and_fsync(actor, "/dir/other", 800);
    if (i % 2 == 0) actor.unlink("/dir/other");
  }
}

void files_of_new_directories(Actor& actor) {
  begin(actor);
  for (uint32_t i = 0; i < 4; ++i) {
    actor.mkdir(numbered("/new", i));
    actor.mkdir(numbered("/new", i) + "/sub");
    put_and_fsync(actor, numbered("/new", i) + "/sub/one", 1000);
    put_and_fsync(actor, numbered("/new", i) + "/sub/two", 5000);
  }
}

/// The way to a synced file changes.
void rename_the_directory(Actor& actor) {
  begin(actor);
  for (uint32_t i = 0; i < 3; ++i) {
    const std::string now = i == 0 ? "/a" : numbered("/moved", i - 1);
    change_and_fsync(actor, numbered(now + "/file", i));
    put_and_fsync(actor, numbered(now + "/new", i), 400);
    actor.rename(now, numbered("/moved", i));
    change_and_fsync(actor, numbered(numbered("/moved", i) + "/file", i), 800);
    put_and_fsync(actor, numbered("/moved", i) + "/newer", 400);
    actor.unlink(numbered("/moved", i) + "/newer");
  }
}

void unlinked_and_open(Actor& actor) {
  begin(actor);
  for (uint32_t i = 0; i < 4; ++i) {
    const std::string path = numbered("/a/file", i);
    const int fd = actor.open(path, vfs::kOpenReadWrite);
    actor.pwrite(fd, 100, actor.bytes(200));
    if (i % 2 == 0) actor.fsync(fd);
    actor.unlink(path);
    actor.pwrite(fd, 3000, actor.bytes(9000));
    actor.fsync(fd);
    actor.close(fd);
    if (i % 2 == 1) put_and_fsync(actor, path, 30);
  }
}

void attributes(Actor& actor) {
  begin(actor);
  for (uint32_t i = 0; i < 12; ++i) {
    const std::string path = numbered("/a/file", i % 6);
    if (i % 3 == 0) actor.chmod(path, 0400 + i);
    if (i % 3 == 1) actor.chown(path, 1000 + i, 2000 + i);
    if (i % 3 == 2) actor.utimens(path, {1'000'000'000 + i, i}, {1'100'000'000 + i, 999'999'999});
    const int fd = actor.open(path, vfs::kOpenReadOnly);
    if (i % 4 != 3) actor.fsync(fd);
    actor.close(fd);
  }
}

/// Those that fit in the inode, and `more` that do not.
void set_xattrs(Actor& actor, size_t more) {
  begin(actor);
  for (uint32_t i = 0; i < 9; ++i) {
    const std::string path = numbered("/b/file", i % 3);
    actor.setxattr(path, numbered("user.name", i / 3), actor.bytes(10 + i + (i % 2) * more));
    change_and_fsync(actor, path, 10 * i);
    if (i >= 6) actor.removexattr(path, "user.name0");
    if (i % 3 == 0) change_and_fsync(actor, path, 20 * i);
  }
}

void small_xattrs(Actor& actor) { set_xattrs(actor, 0); }
void large_xattrs(Actor& actor) { set_xattrs(actor, 1500); }

/// One that leaves the mode, 0640, as it is.
std::string access_list(uint32_t user) {
  std::string list("\2\0\0\0", 4);
  const auto add = [&](uint16_t tag, uint16_t permissions, uint32_t id) {
    for (const uint32_t word : {uint32_t{tag} | uint32_t{permissions} << 16, id}) {
      for (uint32_t byte = 0; byte < 4; ++byte) list += static_cast<char>(word >> 8 * byte);
    }
  };
  add(1, 6, ~0u);
  add(2, 4, user);
  add(4, 4, ~0u);
  add(16, 4, ~0u);
  add(32, 0, ~0u);
  return list;
}

void access_lists(Actor& actor) {
  begin(actor);
  for (uint32_t i = 0; i < 4; ++i) {
    const std::string path = numbered("/a/file", i);
    actor.chmod(path, 0640);
    actor.setxattr(path, "system.posix_acl_access", access_list(1000 + i));
    change_and_fsync(actor, path, 10);
    if (i % 2 == 0) actor.setxattr(path, "system.posix_acl_access", access_list(2000));
    if (i == 3) actor.removexattr(path, "system.posix_acl_access");
    change_and_fsync(actor, path, 500);
  }
}

constexpr Scenario kNames[] = {
    {"rename_then_fsync", rename_then_fsync, some_files},
    {"fsync_then_rename", fsync_then_rename, some_files},
    {"rename_over_then_fsync", rename_over_then_fsync, some_files},
    {"fsync_replace_a_file", replace_a_file, some_files},
    {"fsync_replace_a_file_and_directory", replace_a_file_and_fsync_its_directory, some_files},
    {"fsync_of_directories", fsync_of_directories, some_files},
    {"fsync_and_exchange", exchange, some_files},
    {"fsync_without_replacing", without_replacing, some_files},
    {"link_then_fsync", link_then_fsync, some_files},
    {"fsync_names_that_are_durable", names_that_are_durable, some_files},
    {"fsync_unlink_another_name", unlink_another_name, some_files},
    {"unlink_synced_files", unlink_synced_files, some_files},
    {"fsync_recreate", recreate, some_files},
    {"fsync_recreate_what_was_new", recreate_what_was_new},
    {"fsync_directories_of_the_same_name", directories_of_the_same_name},
    {"fsync_files_of_new_directories", files_of_new_directories},
    {"fsync_rename_the_directory", rename_the_directory, some_files},
    {"fsync_unlinked_and_open", unlinked_and_open, some_files},
    {"fsync_attributes", attributes, some_files},
    {"fsync_small_xattrs", small_xattrs, some_files},
    {"fsync_large_xattrs", large_xattrs, some_files},
    {"fsync_access_lists", access_lists, some_files},
};

}  // namespace

std::span<const Scenario> fsync_name_scenarios() { return kNames; }

}  // namespace gofs::judges
