// SPDX-License-Identifier: Apache-2.0
//
// Scenarios about directories, names and attributes.
#include "scenario.h"
#include "vfs/rename.h"

namespace gofs::judges {

namespace {

void mkdir_deep(Actor& actor) {
  std::string path;
  for (uint32_t i = 0; i < 24; ++i) {
    path += numbered("/d", i);
    actor.mkdir(path, 0700 + i);
    if (i % 7 == 6) actor.sync();
  }
  actor.put(path + "/bottom", actor.bytes(10));
}

void mkdir_wide(Actor& actor) {
  actor.mkdir("/parent", 02775);
  for (uint32_t i = 0; i < 30; ++i) {
    actor.mkdir(numbered("/parent/child", i));
    if (i % 11 == 10) actor.sync();
  }
}

/// From inline entries to blocks of several levels.
void directory_growth(Actor& actor) {
  actor.mkdir("/many");
  for (uint32_t i = 0; i < 500; ++i) {
    actor.create(numbered("/many/a rather long name of a file ", i));
    if (i % 150 == 149) actor.sync();
  }
}

void long_names(Actor& actor) {
  for (uint32_t i = 0; i < 30; ++i) {
    actor.create("/" + std::string(200 + 55 * (i % 2), static_cast<char>('a' + i % 26)) +
                 (i % 2 == 0 ? std::to_string(i) : ""));
    if (i % 8 == 7) actor.sync();
    if (i == 24) break;
  }
}

void symlinks(Actor& actor) {
  for (uint32_t i = 0; i < 20; ++i) {
    actor.symlink(std::string(1 + 170 * i, 't'), numbered("/link", i));
    if (i % 6 == 5) actor.sync();
  }
}

void hard_links(Actor& actor) {
  actor.mkdir("/dir");
  actor.put("/file", actor.bytes(5000));
  for (uint32_t i = 0; i < 20; ++i) {
    actor.link(i % 3 == 0 ? "/file" : numbered("/dir/link", i - i % 3), numbered("/dir/link", i));
    if (i % 6 == 5) actor.sync();
  }
  actor.symlink("nowhere", "/symbolic");
  actor.link("/symbolic", "/dir/symbolic");
}

void special_files(Actor& actor) {
  for (uint32_t i = 0; i < 12; ++i) {
    actor.mknod(numbered("/fifo", i), format::kModeFifo | 0600);
    actor.mknod(numbered("/socket", i), format::kModeSocket | 0700);
    actor.mknod(numbered("/device", i), format::kModeBlockDevice | 0640, 8 + 300 * i, i);
    if (i % 5 == 4) actor.sync();
  }
}

void a_few_files(Actor& actor) {
  actor.mkdir("/dir");
  for (uint32_t i = 0; i < 8; ++i) actor.put(numbered("/dir/file", i), actor.bytes(50 + 1000 * i));
  actor.symlink("dir/file0", "/link");
}

void attributes(Actor& actor) {
  for (uint32_t i = 0; i < 24; ++i) {
    const std::string path = numbered("/dir/file", i % 8);
    if (i % 3 == 0) actor.chmod(path, 0400 + i);
    if (i % 3 == 1) actor.chown(path, 1000 + i, 2000 + i);
    if (i % 3 == 2) actor.utimens(path, {1'000'000'000 + i, i}, {1'100'000'000 + i, 999'999'999});
    if (i % 7 == 6) actor.sync();
  }
  actor.chmod("/dir", 01777);
  actor.chown("/link", 3, 4);
}

void small_xattrs(Actor& actor) {
  for (uint32_t i = 0; i < 24; ++i) {
    const std::string path = numbered("/dir/file", i % 4);
    actor.setxattr(path, numbered("user.name", i / 8), std::string(1 + i, 'v'));
    if (i % 7 == 6) actor.sync();
  }
  actor.setxattr("/dir", "user.of a directory", "x");
  actor.setxattr("/link", "trusted.of a link", "y");
}

/// Those that need a block of their own.
void large_xattrs(Actor& actor) {
  for (uint32_t i = 0; i < 18; ++i) {
    const std::string path = numbered("/dir/file", i % 3);
    const std::string name = numbered("user.name", i % 2);
    if (i >= 9 && i % 4 == 0) {
      actor.removexattr(path, name);
    } else {
      actor.setxattr(path, name, actor.bytes(i % 2 == 0 ? 1700 : 30 * i));
    }
    if (i % 5 == 4) actor.sync();
  }
}

void trees(Actor& actor) {
  for (uint32_t i = 0; i < 6; ++i) {
    const std::string top = numbered("/tree", i);
    actor.mkdir(top);
    for (uint32_t k = 0; k < 4; ++k) {
      actor.mkdir(numbered(top + "/d", k));
      actor.put(numbered(top + "/d", k) + "/file", actor.bytes(300 * k * i));
    }
    actor.symlink("../tree0", top + "/back");
    if (i % 2 == 1) actor.sync();
  }
}

void some_directories(Actor& actor) {
  for (uint32_t i = 0; i < 4; ++i) {
    const std::string dir = numbered("/dir", i);
    actor.mkdir(dir);
    actor.mkdir(dir + "/empty");
    for (uint32_t k = 0; k < 8; ++k) {
      actor.put(numbered(dir + "/file", k), actor.bytes(1 + 1700 * k));
    }
  }
  actor.put("/large", actor.bytes(1200 * uint64_t{kBlockBytes}));
}

void unlink_files(Actor& actor) {
  for (uint32_t i = 0; i < 16; ++i) {
    actor.unlink(numbered(numbered("/dir", i % 4) + "/file", i / 4));
    if (i % 5 == 4) actor.sync();
  }
  actor.unlink("/large");
}

void unlink_what_has_other_names(Actor& actor) {
  for (uint32_t i = 0; i < 6; ++i) {
    const std::string file = numbered("/dir0/file", i);
    actor.link(file, numbered("/dir1/link", i));
    if (i % 3 == 1) actor.sync();
    actor.unlink(file);
    if (i % 3 == 2) actor.unlink(numbered("/dir1/link", i));
  }
}

/// It lives until it is closed, and a crash before that frees it.
void unlink_open_files(Actor& actor) {
  for (uint32_t i = 0; i < 3; ++i) {
    const std::string path = i == 0 ? "/large" : numbered("/dir2/file", 2 * i);
    const int fd = actor.open(path, vfs::kOpenReadWrite);
    actor.unlink(path);
    actor.sync();
    actor.pwrite(fd, 3000, actor.bytes(9000));
    actor.sync();
    actor.close(fd);
    actor.put(path, actor.bytes(500));
  }
}

void remove_directories(Actor& actor) {
  for (uint32_t i = 0; i < 4; ++i) {
    const std::string dir = numbered("/dir", i);
    actor.rmdir(dir + "/empty");
    for (uint32_t k = 0; k < 8; ++k) actor.unlink(numbered(dir + "/file", k));
    if (i % 2 == 1) actor.sync();
    actor.rmdir(dir);
  }
}

void rename_over_files(Actor& actor) {
  for (uint32_t i = 0; i < 12; ++i) {
    actor.rename(numbered(numbered("/dir", i % 3) + "/file", i / 3),
                 numbered(numbered("/dir", (i + i / 3) % 4) + "/file", 7 - i / 6));
    if (i % 4 == 3) actor.sync();
  }
  actor.rename("/dir3/file2", "/large");
}

/// As programs do that replace a file at once.
void replace_a_file(Actor& actor) {
  for (uint32_t i = 0; i < 6; ++i) {
    actor.put("/dir0/new", actor.bytes(2000 * i));
    if (i % 2 == 1) actor.sync();
    actor.rename("/dir0/new", "/dir0/file0");
    if (i % 3 == 2) actor.sync();
  }
}

void rename_directories(Actor& actor) {
  actor.rename("/dir0", "/dir1/moved");
  actor.rename("/dir2/empty", "/dir3/empty");
  actor.sync();
  actor.rename("/dir1/moved/empty", "/dir1/empty");
  actor.rename("/dir1/moved", "/back");
  actor.rename("/dir3", "/back/dir3");
  actor.sync();
  actor.rename("/back/dir3/file0", "/file0");
  actor.rename("/back", "/forth");
}

void exchange_names(Actor& actor) {
  for (uint32_t i = 0; i < 8; ++i) {
    actor.rename(numbered("/dir0/file", i), numbered("/dir1/file", 7 - i), vfs::kRenameExchange);
    if (i % 3 == 2) actor.sync();
  }
  actor.rename("/dir2", "/dir3/empty", vfs::kRenameExchange);
  actor.rename("/dir3/file0", "/dir1", vfs::kRenameExchange);
}

/// Entries come and go in the blocks of a directory.
void directory_churn(Actor& actor) {
  actor.mkdir("/many");
  for (uint32_t i = 0; i < 300; ++i) {
    actor.create(numbered("/many/file ", i));
    if (i % 3 == 2) actor.unlink(numbered("/many/file ", i / 2));
    if (i % 100 == 99) actor.sync();
  }
}

constexpr Scenario kNames[] = {
    {"mkdir_deep", mkdir_deep},
    {"mkdir_wide", mkdir_wide},
    {.name = "directory_growth", .run = directory_growth, .cut_every = 4},
    {"long_names", long_names},
    {"symlinks", symlinks},
    {"hard_links", hard_links},
    {"special_files", special_files},
    {"attributes", attributes, a_few_files},
    {"small_xattrs", small_xattrs, a_few_files},
    {"large_xattrs", large_xattrs, a_few_files},
    {"trees", trees},
    {"unlink_files", unlink_files, some_directories},
    {"unlink_what_has_other_names", unlink_what_has_other_names, some_directories},
    {"unlink_open_files", unlink_open_files, some_directories},
    {"remove_directories", remove_directories, some_directories},
    {"rename_over_files", rename_over_files, some_directories},
    {"replace_a_file", replace_a_file, some_directories},
    {"rename_directories", rename_directories, some_directories},
    {"exchange_names", exchange_names, some_directories},
    {.name = "directory_churn", .run = directory_churn, .cut_every = 4},
};

}  // namespace

std::span<const Scenario> name_scenarios() { return kNames; }

}  // namespace gofs::judges
