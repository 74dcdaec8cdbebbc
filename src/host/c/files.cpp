// SPDX-License-Identifier: Apache-2.0
//
// gofs/gofs.h: files by their descriptors, and their contents.
#include <bit>

#include "host/c/call.h"

using namespace gofs::host::c;

int gofs_open(gofs_volume* volume, const char* path, uint32_t flags, uint32_t mode) {
  return call({{"volume", volume}, {"path", path}},
              [&] { return volume->volume.open(path, flags, mode); });
}

int gofs_identity(gofs_volume* volume, int fd, gofs_identity_t* identity) {
  return call({{"volume", volume}, {"identity", identity}},
              [&] { return give(volume->volume.identity(fd), identity); });
}

int gofs_open_inode(gofs_volume* volume, const gofs_identity_t* file, uint32_t flags) {
  return call({{"volume", volume}, {"file", file}}, [&] {
    return volume->volume.open_inode(std::bit_cast<gofs::Identity>(*file), flags);
  });
}

int gofs_close(gofs_volume* volume, int fd) {
  return call({{"volume", volume}}, [&] { return volume->volume.close(fd); });
}

int64_t gofs_pread(gofs_volume* volume, int fd, void* buffer, uint64_t bytes, uint64_t offset) {
  return call({{"volume", volume}},
              [&] { return volume->volume.pread(fd, buffer, bytes, offset); });
}

int64_t gofs_read(gofs_volume* volume, int fd, void* buffer, uint64_t bytes) {
  return call({{"volume", volume}}, [&] { return volume->volume.read(fd, buffer, bytes); });
}

int64_t gofs_pwrite(gofs_volume* volume, int fd, const void* buffer, uint64_t bytes,
                    uint64_t offset) {
  return call({{"volume", volume}},
              [&] { return volume->volume.pwrite(fd, buffer, bytes, offset); });
}

int64_t gofs_write(gofs_volume* volume, int fd, const void* buffer, uint64_t bytes) {
  return call({{"volume", volume}}, [&] { return volume->volume.write(fd, buffer, bytes); });
}

int64_t gofs_lseek(gofs_volume* volume, int fd, int64_t offset, int whence) {
  return call({{"volume", volume}}, [&] { return volume->volume.lseek(fd, offset, whence); });
}

int gofs_truncate(gofs_volume* volume, const char* path, uint64_t size_bytes) {
  return call({{"volume", volume}, {"path", path}},
              [&] { return volume->volume.truncate(path, size_bytes); });
}

int gofs_ftruncate(gofs_volume* volume, int fd, uint64_t size_bytes) {
  return call({{"volume", volume}}, [&] { return volume->volume.ftruncate(fd, size_bytes); });
}

int gofs_fallocate(gofs_volume* volume, int fd, uint32_t mode, uint64_t offset, uint64_t bytes) {
  return call({{"volume", volume}},
              [&] { return volume->volume.fallocate(fd, mode, offset, bytes); });
}

int64_t gofs_copy_file_range(gofs_volume* volume, int from, uint64_t from_offset, int to,
                             uint64_t to_offset, uint64_t bytes) {
  return call({{"volume", volume}}, [&] {
    return volume->volume.copy_file_range(from, from_offset, to, to_offset, bytes);
  });
}

int gofs_fsync(gofs_volume* volume, int fd) {
  return call({{"volume", volume}}, [&] { return volume->volume.fsync(fd); });
}

int gofs_fdatasync(gofs_volume* volume, int fd) {
  return call({{"volume", volume}}, [&] { return volume->volume.fdatasync(fd); });
}
