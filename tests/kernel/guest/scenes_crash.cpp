// SPDX-License-Identifier: Apache-2.0
//
// A volume that loses power: what the last checkpoint holds is what a reader must show, whatever
// was written, and even forced out by fsync, since then.
#include <unistd.h>

#include <cstdio>
#include <string>

#include "ops.h"
#include "scenes.h"

namespace gofs::judge {
namespace {

std::string stay(int64_t i) { return "crash/stay" + std::to_string(i); }

}  // namespace

void orphans_scene(const Scene& scene) {
  Random random(scene.seed);
  make_directory("crash");
  for (int64_t i = 0; i < scene.scale; ++i) {
    if (!make_file(stay(i), random.below(50000), random.next())) die("full");
  }
  for (int64_t i = 0; i < scene.scale; ++i) {
    const std::string path = "crash/orphan" + std::to_string(i);
    const int fd = ::open(path.c_str(), O_CREAT | O_RDWR, 0644);  // stays open in the child below
    check(fd, "open " + path);
    if (!write_at(fd, content(random.below(20000), random.next()), 0)) die("full");
    check(::unlink(path.c_str()), "unlink " + path);
  }
  const pid_t child = ::fork();
  check(child, "fork");
  if (child > 0) return;
  ::setsid();
  for (int fd = 0; fd < 3; ++fd) ::close(fd);
  for (;;) ::pause();  // until the power goes
}

void crash_scene(const Scene& scene) {
  Random random(scene.seed);
  for (int64_t i = 0; i < scene.scale; ++i) {
    if (i % 7 == 0) {
      check(::unlink(stay(i).c_str()), "unlink");
    } else if (i % 7 == 1) {
      check(::rename(stay(i).c_str(), ("crash/renamed" + std::to_string(i)).c_str()), "rename");
    } else {
      const Fd file = open_or_die(stay(i), O_RDWR);
      const auto offset = static_cast<int64_t>(random.below(60000));
      if (!write_at(file.get(), content(1 + random.below(30000), random.next()), offset)) {
        die("full");
      }
      if (i % 3 != 0) check(::fsync(file.get()), "fsync");  // a node chain, not a checkpoint
    }
    if (i % 2 == 0) {
      const Fd file = open_or_die("crash/late" + std::to_string(i), O_CREAT | O_RDWR);
      if (!write_at(file.get(), content(random.below(9000), random.next()), 0)) die("full");
      if (i % 4 == 0) check(::fsync(file.get()), "fsync");
    }
  }
  make_directory("crash/late directory");
  if (!make_file("crash/late directory/file", 100, random.next())) die("full");
}

}  // namespace gofs::judge
