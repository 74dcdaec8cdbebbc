// SPDX-License-Identifier: Apache-2.0
//
// gofs/gofs.h: what inodes say of files.
#include <bit>

#include "host/c/call.h"

namespace gofs::host::c {

namespace {

struct Times {
  TimeStamp accessed{0, kTimeNow};
  TimeStamp modified{0, kTimeNow};
};

/// Null: both are the present.
Times times_in_cpp(const gofs_time_stamp_t* times) {
  if (times == nullptr) return {};
  return {std::bit_cast<TimeStamp>(times[0]), std::bit_cast<TimeStamp>(times[1])};
}

}  // namespace

}  // namespace gofs::host::c

using namespace gofs::host::c;

int gofs_stat(gofs_volume* volume, const char* path, gofs_stat_t* stat) {
  return call({{"volume", volume}, {"path", path}, {"stat", stat}},
              [&] { return give(volume->volume.stat(path), stat); });
}

int gofs_lstat(gofs_volume* volume, const char* path, gofs_stat_t* stat) {
  return call({{"volume", volume}, {"path", path}, {"stat", stat}},
              [&] { return give(volume->volume.lstat(path), stat); });
}

int gofs_fstat(gofs_volume* volume, int fd, gofs_stat_t* stat) {
  return call({{"volume", volume}, {"stat", stat}},
              [&] { return give(volume->volume.fstat(fd), stat); });
}

int gofs_chmod(gofs_volume* volume, const char* path, uint32_t mode) {
  return call({{"volume", volume}, {"path", path}},
              [&] { return volume->volume.chmod(path, mode); });
}

int gofs_fchmod(gofs_volume* volume, int fd, uint32_t mode) {
  return call({{"volume", volume}}, [&] { return volume->volume.fchmod(fd, mode); });
}

int gofs_chown(gofs_volume* volume, const char* path, uint32_t uid, uint32_t gid) {
  return call({{"volume", volume}, {"path", path}},
              [&] { return volume->volume.chown(path, uid, gid); });
}

int gofs_lchown(gofs_volume* volume, const char* path, uint32_t uid, uint32_t gid) {
  return call({{"volume", volume}, {"path", path}},
              [&] { return volume->volume.lchown(path, uid, gid); });
}

int gofs_fchown(gofs_volume* volume, int fd, uint32_t uid, uint32_t gid) {
  return call({{"volume", volume}}, [&] { return volume->volume.fchown(fd, uid, gid); });
}

int gofs_utimens(gofs_volume* volume, const char* path, const gofs_time_stamp_t times[2]) {
  return call({{"volume", volume}, {"path", path}}, [&] {
    const Times given = times_in_cpp(times);
    return volume->volume.utimens(path, given.accessed, given.modified);
  });
}

int gofs_lutimens(gofs_volume* volume, const char* path, const gofs_time_stamp_t times[2]) {
  return call({{"volume", volume}, {"path", path}}, [&] {
    const Times given = times_in_cpp(times);
    return volume->volume.lutimens(path, given.accessed, given.modified);
  });
}

int gofs_futimens(gofs_volume* volume, int fd, const gofs_time_stamp_t times[2]) {
  return call({{"volume", volume}}, [&] {
    const Times given = times_in_cpp(times);
    return volume->volume.futimens(fd, given.accessed, given.modified);
  });
}
