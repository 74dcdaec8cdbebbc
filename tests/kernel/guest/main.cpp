// SPDX-License-Identifier: Apache-2.0
//
// The program that the kernel tests run inside the guest (and, for its SHA-256, on the host):
//   judge scene NAME DIR SEED SCALE   makes things on the file system mounted at DIR (scenes.h)
//   judge manifest DIR OUT WHOLE_MAX  writes down what the kernel says about all of it (manifest.h)
//   judge versions DEVICE             the versions of the two checkpoint packs, as the device has
//                                     them
//   judge assemble DEVICE DISK...     makes the disks of an md array that array, as mdadm does
//   judge sha256 FILE
// It is linked statically: the guest has no libraries.
#include <linux/major.h>
#include <linux/raid/md_u.h>
#include <sys/ioctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <string>
#include <string_view>
#include <utility>

#include "manifest.h"
#include "ops.h"
#include "scenes.h"
#include "sha256.h"

namespace gofs::judge {
namespace {

using SceneFunction = void (*)(const Scene&);

constexpr std::pair<std::string_view, SceneFunction> kScenes[] = {
    {"names", names_scene},     {"directories", directories_scene},
    {"types", types_scene},     {"times", times_scene},
    {"xattrs", xattrs_scene},   {"edges", edges_scene},
    {"sparse", sparse_scene},   {"media", media_scene},
    {"churn", churn_scene},     {"full", full_scene},
    {"nudge", nudge_scene},     {"flags", flags_scene},
    {"verity", verity_scene},   {"project", project_scene},
    {"refused", refused_scene}, {"orphans", orphans_scene},
    {"crash", crash_scene},
};

int run_scene(std::string_view name, const char* directory, const Scene& scene) {
  for (const auto& [known, function] : kScenes) {
    if (known != name) continue;
    check(::chdir(directory), std::string("chdir ") + directory);
    function(scene);
    return 0;
  }
  std::fprintf(stderr, "judge: no scene %s\n", std::string(name).c_str());
  return 2;
}

/// Reads past all caches, so that it sees what the file system has really written.
int print_versions(const char* device) {
  const Fd disk = open_or_die(device, O_RDONLY | O_DIRECT);
  const std::unique_ptr<char, decltype(&std::free)> block(
      static_cast<char*>(std::aligned_alloc(kBlock, kBlock)), &std::free);
  check(::pread(disk.get(), block.get(), kBlock, 0), "read the superblock");
  uint32_t first_pack = 0;
  std::memcpy(&first_pack, block.get() + 1024 + 76, sizeof first_pack);
  for (const int64_t pack : {int64_t{first_pack}, int64_t{first_pack} + 512}) {
    check(::pread(disk.get(), block.get(), kBlock, pack * kBlock), "read a checkpoint");
    unsigned long long version = 0;
    std::memcpy(&version, block.get(), sizeof version);
    std::printf("%llx ", version);
  }
  std::printf("\n");
  return 0;
}

/// The kernel reads the disks' superblocks of version 1.2 itself.
int assemble_array(const char* device, char** disks, int count) {
  (void)::mknod(device, S_IFBLK | 0600, ::makedev(MD_MAJOR, 0));  // perhaps it is there
  const Fd array = open_or_die(device, O_RDWR);
  mdu_array_info_t info{};
  info.major_version = 1;
  info.minor_version = 2;
  check(::ioctl(array.get(), SET_ARRAY_INFO, &info), "SET_ARRAY_INFO");
  for (int i = 0; i < count; ++i) {
    struct stat about {};
    check(::stat(disks[i], &about), std::string("stat ") + disks[i]);
    mdu_disk_info_t disk{};
    disk.major = static_cast<int>(::major(about.st_rdev));
    disk.minor = static_cast<int>(::minor(about.st_rdev));
    check(::ioctl(array.get(), ADD_NEW_DISK, &disk), std::string("ADD_NEW_DISK ") + disks[i]);
  }
  check(::ioctl(array.get(), RUN_ARRAY, nullptr), "RUN_ARRAY");
  return 0;
}

int print_sha256(const char* path) {
  const Fd file = open_or_die(path, O_RDONLY);
  Sha256 hash;
  char buffer[65536];
  for (;;) {
    const int64_t got = check(::read(file.get(), buffer, sizeof buffer), "read");
    if (got == 0) break;
    hash.update(buffer, static_cast<size_t>(got));
  }
  std::printf("%s\n", hash.finish().c_str());
  return 0;
}

int run(int count, char** words) {
  const std::string_view verb = count > 1 ? words[1] : "";
  if (verb == "scene" && count == 6) {
    return run_scene(words[2], words[3],
                     {std::strtoull(words[4], nullptr, 0), std::atoll(words[5])});
  }
  if (verb == "manifest" && count == 5) {
    write_manifest(words[2], words[3], std::atoll(words[4]));
    return 0;
  }
  if (verb == "versions" && count == 3) return print_versions(words[2]);
  if (verb == "assemble" && count > 3) return assemble_array(words[2], words + 3, count - 3);
  if (verb == "sha256" && count == 3) return print_sha256(words[2]);
  std::fprintf(stderr, "usage: judge scene|manifest|versions|assemble|sha256 ... (see main.cpp)\n");
  return 2;
}

}  // namespace
}  // namespace gofs::judge

int main(int count, char** words) {
  ::umask(022);
  rlimit files{65536, 65536};  // a descriptor for each level of a deep tree
  ::setrlimit(RLIMIT_NOFILE, &files);
  return gofs::judge::run(count, words);
}
