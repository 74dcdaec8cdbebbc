// SPDX-License-Identifier: Apache-2.0
//
// What an inode can be besides data: types, modes, owners, links, devices, times, attributes.
#include <linux/fs.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/xattr.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <ctime>
#include <string>

#include "ops.h"
#include "scenes.h"

namespace gofs::judge {
namespace {

void symlink_or_die(const std::string& target, const std::string& path) {
  check(::symlink(target.c_str(), path.c_str()), "symlink " + path);
}

void set_times(const std::string& path, timespec atime, timespec mtime) {
  const timespec both[2] = {atime, mtime};
  check(::utimensat(AT_FDCWD, path.c_str(), both, AT_SYMLINK_NOFOLLOW), "utimensat " + path);
}

void set_clock(timespec now) { check(::clock_settime(CLOCK_REALTIME, &now), "clock_settime"); }

struct AclEntry {
  uint16_t tag;
  uint16_t permission;
  uint32_t id;
};

/// An access list in the form that the system call takes (version 2).
std::string acl(std::initializer_list<AclEntry> entries) {
  const uint32_t version = 2;
  std::string value(reinterpret_cast<const char*>(&version), sizeof version);
  for (const AclEntry& entry : entries) {
    value.append(reinterpret_cast<const char*>(&entry), sizeof entry);
  }
  return value;
}

constexpr uint32_t kNoId = 0xFFFFFFFF;

/// File capabilities in the form of version 2, or 3 with the user who is root for them.
std::string capability(uint32_t version, uint32_t root) {
  const uint32_t words[] = {version << 24 | 1, 0x3400, 0x0400, 0, 0, root};
  return {reinterpret_cast<const char*>(words), version == 3 ? sizeof words : sizeof words - 4};
}

/// An attribute as large as can be: what the kernel takes depends on the room in the inode.
void set_largest_xattr(const std::string& path, const std::string& name, uint64_t seed) {
  for (const size_t size : {4200u, 4100u, 4040u}) {
    const std::string value = noise(size, seed);
    if (::lsetxattr(path.c_str(), name.c_str(), value.data(), size, 0) == 0) return;
    if (errno != E2BIG && errno != ENOSPC && errno != ERANGE) break;
  }
  die("setxattr " + name + " on " + path);
}

/// Attributes until not even the smallest finds room.
void fill_with_xattrs(const std::string& path, Random& random) {
  int count = 0;
  for (size_t size = 600;; size /= 2) {
    for (; count < 1000; ++count) {
      const std::string name = "user." + std::to_string(count);
      const std::string value = noise(size, random.next());
      if (::lsetxattr(path.c_str(), name.c_str(), value.data(), size, 0) < 0) break;
    }
    if (errno != ENOSPC && errno != E2BIG && errno != ERANGE) die("setxattr on " + path);
    if (size == 0) return;
  }
}

std::string octal(unsigned mode) {
  std::string digits;
  for (int shift = 9; shift >= 0; shift -= 3)
    digits += static_cast<char>('0' + (mode >> shift & 7));
  return digits;
}

}  // namespace

void types_scene(const Scene& scene) {
  Random random(scene.seed);
  make_directory("types");

  make_directory("types/devices");
  constexpr unsigned kNumbers[][2] = {{0, 0},    {1, 3},          {255, 255},     {255, 256},
                                      {256, 0},  {256, 255},      {259, 1048575}, {300, 70000},
                                      {4095, 0}, {4095, 1048575}, {0, 1048575},   {8, 0}};
  for (const auto& [major_number, minor_number] : kNumbers) {
    const dev_t device = makedev(major_number, minor_number);
    const std::string name = std::to_string(major_number) + "_" + std::to_string(minor_number);
    check(::mknod(("types/devices/c" + name).c_str(), S_IFCHR | 0600, device), "mknod");
    check(::mknod(("types/devices/b" + name).c_str(), S_IFBLK | 0660, device), "mknod");
  }
  check(::mknod("types/fifo", S_IFIFO | 0644, 0), "mkfifo");
  check(::mknod("types/socket", S_IFSOCK | 0755, 0), "mknod socket");

  // All permission bits, on files and on directories.
  make_directory("types/modes");
  for (unsigned mode = 0; mode < 010000; mode += mode < 02000 ? 0111 : 0333) {
    const std::string path = "types/modes/f" + octal(mode);
    if (!make_file(path, 3, mode)) die("full");
    check(::chmod(path.c_str(), mode), "chmod");
  }
  for (const unsigned mode : {0u, 0111u, 0444u, 0700u, 01777u, 02755u, 04755u, 07777u}) {
    const std::string path = "types/modes/d" + octal(mode);
    make_directory(path);
    check(::chmod(path.c_str(), mode), "chmod");
  }
  make_directory("types/owners");
  constexpr unsigned kIds[] = {0, 1, 1000, 65534, 65535, 65536, 0x7FFFFFFF, 0x80000000, 0xFFFFFFFE};
  for (const unsigned uid : kIds) {
    for (const unsigned gid : kIds) {
      const std::string path = "types/owners/" + std::to_string(uid) + "_" + std::to_string(gid);
      if (!make_file(path, 0, 0)) die("full");
      check(::lchown(path.c_str(), uid, gid), "chown");
    }
  }

  make_directory("types/links");
  symlink_or_die("/types/fifo", "types/links/absolute");
  symlink_or_die("../devices/c1_3", "types/links/relative");
  symlink_or_die("../../types", "types/links/to_directory");
  symlink_or_die("nowhere/at all", "types/links/dangling");
  symlink_or_die("self", "types/links/self");
  symlink_or_die("loop_b", "types/links/loop_a");
  symlink_or_die("loop_c", "types/links/loop_b");
  symlink_or_die("loop_a", "types/links/loop_c");
  symlink_or_die("../../..//../types/./links/../fifo", "types/links/crooked");
  symlink_or_die("new\nline\\\xff\x01", "types/links/bytes");
  symlink_or_die("/", "types/links/root");
  symlink_or_die(".", "types/links/dot");
  std::string chain = "../fifo";
  for (int i = 0; i < 45; ++i) {  // 40 may be followed, more is ELOOP
    symlink_or_die(chain, "types/links/chain" + padded(i, 2));
    chain = "chain" + padded(i, 2);
  }
  // Lengths around the room for inline data with each inode layout, up to the longest.
  for (const size_t length : {1u,    7u,    8u,    59u,   60u,   255u,  256u,  1000u, 3450u,
                              3451u, 3452u, 3453u, 3486u, 3487u, 3488u, 3489u, 3650u, 3651u,
                              3652u, 3653u, 3687u, 3688u, 3689u, 4000u, 4094u, 4095u}) {
    std::string target;
    while (target.size() < length) target += "step" + std::to_string(target.size()) + "/";
    target.resize(length);
    symlink_or_die(target, "types/links/long" + padded(length, 4));
  }
  check(::lchown("types/links/dangling", 123456, 654321), "lchown");

  make_directory("types/hard");
  if (!make_file("types/hard/file", 5000, random.next())) die("full");
  for (int i = 0; i < 120; ++i) {
    check(::link("types/hard/file", ("types/hard/again" + std::to_string(i)).c_str()), "link");
  }
  for (int i = 0; i < 120; i += 5) {
    check(::unlink(("types/hard/again" + std::to_string(i)).c_str()), "unlink");
  }
  check(::link("types/links/dangling", "types/hard/symlink"), "link a symlink");
  check(::link("types/fifo", "types/hard/fifo"), "link a fifo");
  check(::link("types/socket", "types/hard/socket"), "link a socket");
  check(::link("types/devices/b8_0", "types/hard/device"), "link a device");
  check(::link("types/hard/file", "types/elsewhere"), "link across directories");
  // The first name goes, the others stay.
  check(::unlink("types/hard/file"), "unlink");
}

void times_scene(const Scene& scene) {
  Random random(scene.seed);
  make_directory("times");
  constexpr int64_t kSeconds[] = {0,
                                  1,
                                  -1,
                                  -100,
                                  -86400,
                                  -2208988800,  // 1900
                                  -2147483648,  // least of 32 bits
                                  -2147483649,
                                  -62135596800,  // year 1
                                  951782400,     // 29 February 2000
                                  2147483647,    // 2038
                                  2147483648,
                                  4294967295,  // 2106
                                  4294967296,
                                  253402300800,  // year 10000
                                  17179869184,
                                  99999999999};
  constexpr int64_t kNanoseconds[] = {0, 1, 500000000, 999999999, 123456789};
  int index = 0;
  for (const int64_t seconds : kSeconds) {
    const timespec mtime{seconds, kNanoseconds[index % 5]};
    const timespec atime{kSeconds[(index + 7) % 17], kNanoseconds[(index + 2) % 5]};
    const std::string path = "times/" + padded(index, 2);
    if (!make_file(path + "_file", index * 100, random.next())) die("full");
    make_directory(path + "_dir");
    symlink_or_die("target", path + "_link");
    check(::mknod((path + "_fifo").c_str(), S_IFIFO | 0600, 0), "mkfifo");
    for (const char* kind : {"_file", "_dir", "_link", "_fifo"})
      set_times(path + kind, atime, mtime);
    ++index;
  }
  // ctime follows the clock, so the clock is set to other times for a moment (1970 plus what the
  // machine has been up; 1999; 2038; 2106; the year 2200), then back.
  timespec saved{};
  check(::clock_gettime(CLOCK_REALTIME, &saved), "clock_gettime");
  for (const int64_t seconds : {86400ll, 946684799ll, 2147483648ll, 4294967297ll, 7258118400ll}) {
    set_clock({seconds, 987654321});
    const std::string path = "times/clock" + std::to_string(seconds);
    if (!make_file(path, 10, random.next())) die("full");
    make_directory(path + "_dir");
    if (!make_file(path + "_dir/inside", 10, random.next())) die("full");
  }
  set_clock(saved);
}

void xattrs_scene(const Scene& scene) {
  Random random(scene.seed);
  make_directory("xattrs");
  const auto path_of = [](const std::string& name) { return "xattrs/" + name; };
  const auto file = [&](const std::string& name, size_t size) {
    if (!make_file(path_of(name), size, random.next())) die("full");
    return path_of(name);
  };
  set_xattr(file("one", 10), "user.one", "value");
  set_xattr(file("empty_value", 10), "user.empty", "");
  set_xattr(file("binary", 10), "user.binary", std::string("\0\1\2\xff\0", 5));
  const std::string long_name = "user." + std::string(250, 'n');
  set_xattr(file("long_name", 10), long_name, "x");
  // Values whose entries end before, at and after the inline room (200 bytes less the header),
  // and so lie inline, in both places, or straddle.
  for (size_t size = 120; size <= 220; size += 4) {
    set_xattr(file("inline" + std::to_string(size), 5), "user.v", noise(size, random.next()));
  }
  for (const size_t size : {500u, 1000u, 2000u, 3000u, 3500u, 3800u, 4000u, 4040u}) {
    set_xattr(file("large" + std::to_string(size), 5), "user.v", noise(size, random.next()));
  }
  {
    const std::string many = file("many", 3000);
    for (int i = 0; i < 60; ++i) {
      set_xattr(many, "user.n" + std::to_string(i), noise(random.below(40), random.next()));
    }
    for (int i = 0; i < 60; i += 3) {
      check(::lremovexattr(many.c_str(), ("user.n" + std::to_string(i)).c_str()), "removexattr");
    }
  }
  {
    const std::string gone = file("gone", 100);
    set_xattr(gone, "user.big", noise(3000, random.next()));
    check(::lremovexattr(gone.c_str(), "user.big"), "removexattr");
  }
  {
    const std::string grown = file("replaced", 100);
    for (const size_t size : {10u, 3000u, 20u, 300u}) {
      set_xattr(grown, "user.v", noise(size, random.next()));
    }
  }
  // Beside block data, beside inline data of the largest size, and on other types.
  set_xattr(file("with_blocks", 100000), "user.v", noise(1500, random.next()));
  set_xattr(file("with_inline", 3400), "user.v", noise(1500, random.next()));
  set_xattr(file("namespaces", 10), "trusted.gofs", "trusted");
  set_xattr(path_of("namespaces"), "security.gofs", "security");
  set_xattr(path_of("namespaces"), "user.gofs", "user");
  make_directory(path_of("dir"));
  set_xattr(path_of("dir"), "user.dir", noise(800, random.next()));
  for (int i = 0; i < 40; ++i) file("dir/" + std::to_string(i), 5);
  make_directory(path_of("dir_inline"));
  set_xattr(path_of("dir_inline"), "user.dir", "small");
  symlink_or_die("target", path_of("link"));
  set_xattr(path_of("link"), "trusted.link", noise(100, random.next()));
  check(::mknod(path_of("fifo").c_str(), S_IFIFO | 0600, 0), "mkfifo");
  set_xattr(path_of("fifo"), "trusted.fifo", "on a fifo");

  // Special files have no data: what blocks they have is their attributes' (see coverage.py).
  check(::mknod(path_of("fifo_largest").c_str(), S_IFIFO | 0600, 0), "mkfifo");
  set_largest_xattr(path_of("fifo_largest"), "trusted.b", random.next());
  check(::mknod(path_of("device").c_str(), S_IFCHR | 0600, makedev(1, 3)), "mknod");
  set_xattr(path_of("device"), "trusted.device", "1, 3");
  set_xattr(path_of("link"), "security.link", "");
  fill_with_xattrs(file("full", 10), random);
  make_directory(path_of("full_dir"));
  fill_with_xattrs(path_of("full_dir"), random);
  {
    const std::string names = file("names", 10);
    for (const std::string prefix : {"user.", "trusted.", "security."}) {
      set_xattr(names, prefix + std::string(255 - prefix.size(), 'x'), prefix);
      set_xattr(names, prefix + "\xc3\xa4 \n=\xff", "");
      set_xattr(names, prefix + "user.", prefix);
      set_xattr(names, prefix + "twin", "of " + prefix);
    }
  }
  set_xattr(file("capability2", 10), "security.capability", capability(2, 0));
  set_xattr(file("capability3_root", 10), "security.capability", capability(3, 0));
  set_xattr(file("capability3", 10), "security.capability", capability(3, 1000));
  // Kept in the inode, and never listed.
  set_xattr(file("hot.advise", 10), "system.advise", "\x20");

  // Tags: 1 owner, 2 user, 4 group of the file, 8 group, 16 mask, 32 others.
  const std::string access = acl({{1, 7, kNoId},
                                  {2, 6, 1000},
                                  {2, 4, 70000},
                                  {4, 5, kNoId},
                                  {8, 1, 0x80000001},
                                  {16, 7, kNoId},
                                  {32, 0, kNoId}});
  set_xattr(file("acl", 10), "system.posix_acl_access", access);
  make_directory(path_of("acl_dir"));
  set_xattr(path_of("acl_dir"), "system.posix_acl_access", access);
  set_xattr(path_of("acl_dir"), "system.posix_acl_default",
            acl({{1, 7, kNoId}, {2, 5, 1234}, {4, 5, kNoId}, {16, 5, kNoId}, {32, 1, kNoId}}));
  file("acl_dir/inherits", 10);
  make_directory(path_of("acl_dir/inherits_dir"));
}

}  // namespace gofs::judge
