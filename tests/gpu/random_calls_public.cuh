// SPDX-License-Identifier: Apache-2.0
//
// Random calls (testing/random_calls.h) by the calls of gofs.cuh, of whole warps.
#pragma once

#include "gofs/gofs.cuh"
#include "testing/random_calls.h"

namespace gofs_gpu_test {

/// As gofs::testing::MountedVolume. Of the warp it needs no more than that it is the caller's.
struct PublicVolume {
  using Warp = gofs::simt::Warp;
  gofs::VolumeHandle vol;

  __device__ int open(Warp, const char* path, uint32_t flags, uint32_t mode) const {
    return gofs::open(gofs::this_warp(), vol, path, flags, mode);
  }
  __device__ int close(Warp, int fd) const { return gofs::close(gofs::this_warp(), vol, fd); }
  __device__ int64_t pread(Warp, int fd, void* buffer, uint64_t bytes, uint64_t offset) const {
    return gofs::pread(gofs::this_warp(), vol, fd, buffer, bytes, offset);
  }
  __device__ int64_t pwrite(Warp, int fd, const void* buffer, uint64_t bytes,
                            uint64_t offset) const {
    return gofs::pwrite(gofs::this_warp(), vol, fd, buffer, bytes, offset);
  }
  __device__ int fsync(Warp, int fd) const { return gofs::fsync(gofs::this_warp(), vol, fd); }
  __device__ int truncate(Warp, const char* path, uint64_t size) const {
    return gofs::truncate(gofs::this_warp(), vol, path, size);
  }
  __device__ int chmod(Warp, const char* path, uint32_t mode) const {
    return gofs::chmod(gofs::this_warp(), vol, path, mode);
  }
  __device__ int lstat(Warp, const char* path, gofs::Stat& out) const {
    return gofs::lstat(gofs::this_warp(), vol, path, &out);
  }
  __device__ int lsetxattr(Warp, const char* path, const char* name, const void* value,
                           uint64_t bytes, uint32_t flags) const {
    return gofs::lsetxattr(gofs::this_warp(), vol, path, name, value, bytes, flags);
  }
  __device__ int lremovexattr(Warp, const char* path, const char* name) const {
    return gofs::lremovexattr(gofs::this_warp(), vol, path, name);
  }
  __device__ int mkdir(Warp, const char* path, uint32_t mode) const {
    return gofs::mkdir(gofs::this_warp(), vol, path, mode);
  }
  __device__ int rmdir(Warp, const char* path) const {
    return gofs::rmdir(gofs::this_warp(), vol, path);
  }
  __device__ int unlink(Warp, const char* path) const {
    return gofs::unlink(gofs::this_warp(), vol, path);
  }
  __device__ int rename(Warp, const char* from, const char* to, uint32_t flags) const {
    return gofs::rename(gofs::this_warp(), vol, from, to, flags);
  }
  __device__ int link(Warp, const char* existing, const char* path) const {
    return gofs::link(gofs::this_warp(), vol, existing, path);
  }
  __device__ int symlink(Warp, const char* target, const char* path) const {
    return gofs::symlink(gofs::this_warp(), vol, target, path);
  }
  __device__ int mknod(Warp, const char* path, uint32_t mode) const {
    return gofs::mknod(gofs::this_warp(), vol, path, mode);
  }
  __device__ int sync(Warp) const { return gofs::sync(gofs::this_warp(), vol); }
};

}  // namespace gofs_gpu_test
