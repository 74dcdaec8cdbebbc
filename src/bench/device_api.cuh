// SPDX-License-Identifier: Apache-2.0
//
// The file API as the bodies of this folder call it on a GPU (cpu_api.h): calls that users make,
// and no others. The thread, the warp, the block or the grid that calls is the one that is here,
// whatever the bodies name it.
#pragma once

#include "gofs/gofs.cuh"
#include "simt/warp_group.h"
#include "vfs/filesystem.h"

namespace gofs::bench {

struct DeviceApi {
  __device__ static VolumeHandle volume(vfs::Filesystem& fs) { return handle_of(&fs); }

  __device__ static int64_t pread_by_thread(vfs::Filesystem& fs, int fd, void* buffer,
                                            uint64_t bytes, uint64_t offset) {
    return gofs::pread(gofs::this_thread(), volume(fs), fd, buffer, bytes, offset);
  }
  __device__ static int64_t pread_by_warp(const simt::Warp&, vfs::Filesystem& fs, int fd,
                                          void* buffer, uint64_t bytes, uint64_t offset) {
    return gofs::pread(gofs::this_warp(), volume(fs), fd, buffer, bytes, offset);
  }
  __device__ static int64_t pread_by_block(const simt::Warp&, vfs::Filesystem& fs, int fd,
                                           void* buffer, uint64_t bytes, uint64_t offset) {
    return gofs::pread(gofs::this_block(), volume(fs), fd, buffer, bytes, offset);
  }
  __device__ static int64_t pread_by_grid(const simt::GridGroup&, vfs::Filesystem& fs, int fd,
                                          void* buffer, uint64_t bytes, uint64_t offset) {
    return gofs::pread(gofs::this_grid(), volume(fs), fd, buffer, bytes, offset);
  }
  __device__ static int64_t pwrite_by_thread(vfs::Filesystem& fs, int fd, const void* buffer,
                                             uint64_t bytes, uint64_t offset) {
    return gofs::pwrite(gofs::this_thread(), volume(fs), fd, buffer, bytes, offset);
  }
  __device__ static int64_t pwrite_by_warp(const simt::Warp&, vfs::Filesystem& fs, int fd,
                                           const void* buffer, uint64_t bytes, uint64_t offset) {
    return gofs::pwrite(gofs::this_warp(), volume(fs), fd, buffer, bytes, offset);
  }
  __device__ static int64_t pwrite_by_block(const simt::Warp&, vfs::Filesystem& fs, int fd,
                                            const void* buffer, uint64_t bytes, uint64_t offset) {
    return gofs::pwrite(gofs::this_block(), volume(fs), fd, buffer, bytes, offset);
  }
  __device__ static int64_t pwrite_by_grid(const simt::GridGroup&, vfs::Filesystem& fs, int fd,
                                           const void* buffer, uint64_t bytes, uint64_t offset) {
    return gofs::pwrite(gofs::this_grid(), volume(fs), fd, buffer, bytes, offset);
  }
  __device__ static int64_t write_by_thread(vfs::Filesystem& fs, int fd, const void* buffer,
                                            uint64_t bytes) {
    return gofs::write(gofs::this_thread(), volume(fs), fd, buffer, bytes);
  }
  __device__ static int64_t write_by_warp(const simt::Warp&, vfs::Filesystem& fs, int fd,
                                          const void* buffer, uint64_t bytes) {
    return gofs::write(gofs::this_warp(), volume(fs), fd, buffer, bytes);
  }
  __device__ static int fsync_by_warp(const simt::Warp&, vfs::Filesystem& fs, int fd) {
    return gofs::fsync(gofs::this_warp(), volume(fs), fd);
  }
  __device__ static int sync_by_warp(const simt::Warp&, vfs::Filesystem& fs) {
    return gofs::sync(gofs::this_warp(), volume(fs));
  }
  __device__ static int open_by_warp(const simt::Warp&, vfs::Filesystem& fs, const char* path,
                                     uint32_t flags, uint32_t mode) {
    return gofs::open(gofs::this_warp(), volume(fs), path, flags, mode);
  }
  __device__ static int close_by_warp(const simt::Warp&, vfs::Filesystem& fs, int fd) {
    return gofs::close(gofs::this_warp(), volume(fs), fd);
  }
  __device__ static int lstat_by_warp(const simt::Warp&, vfs::Filesystem& fs, const char* path,
                                      Stat* out) {
    return gofs::lstat(gofs::this_warp(), volume(fs), path, out);
  }
  __device__ static int fstat_by_warp(const simt::Warp&, vfs::Filesystem& fs, int fd, Stat* out) {
    return gofs::fstat(gofs::this_warp(), volume(fs), fd, out);
  }
  __device__ static int mkdir_by_warp(const simt::Warp&, vfs::Filesystem& fs, const char* path,
                                      uint32_t mode) {
    return gofs::mkdir(gofs::this_warp(), volume(fs), path, mode);
  }
  __device__ static int rmdir_by_warp(const simt::Warp&, vfs::Filesystem& fs, const char* path) {
    return gofs::rmdir(gofs::this_warp(), volume(fs), path);
  }
  __device__ static int unlink_by_warp(const simt::Warp&, vfs::Filesystem& fs, const char* path) {
    return gofs::unlink(gofs::this_warp(), volume(fs), path);
  }
};

}  // namespace gofs::bench
