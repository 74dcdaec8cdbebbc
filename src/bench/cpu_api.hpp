// SPDX-License-Identifier: Apache-2.0
//
// The file API as the bodies of this folder call it, a function a call and scope. On a GPU these
// are users' own calls (device_api.cuh). This is the other half, for host threads, where there is
// no device API: each makes the call of the file system that the public one makes.
//
// A call by a thread is made by those lanes alone that want something. Of the others `warp` says
// who calls; all its lanes do, with the same arguments.
#pragma once

#include "vfs/grid_call.h"
#include "vfs/make_file.h"
#include "vfs/metadata.h"
#include "vfs/open.h"
#include "vfs/read_together.h"
#include "vfs/remove_file.h"
#include "vfs/write_lanes.h"
#include "vfs/write_together.h"

namespace gofs::bench {

struct CpuApi {
  static int64_t pread_by_thread(vfs::Filesystem& fs, int fd, void* buffer, uint64_t bytes,
                                 uint64_t offset) {
    const vfs::ReadRequest request{fd, buffer, bytes, offset};
    return vfs::pread_lanes(simt::Warp::full(), fs, request);
  }
  static int64_t pread_by_warp(const simt::Warp& warp, vfs::Filesystem& fs, int fd, void* buffer,
                               uint64_t bytes, uint64_t offset) {
    return vfs::pread(warp, fs, fd, buffer, bytes, offset);
  }
  static int64_t pread_by_block(const simt::Warp& warp, vfs::Filesystem& fs, int fd, void* buffer,
                                uint64_t bytes, uint64_t offset) {
    vfs::SharedRead meeting;
    const auto group = simt::BlockGroup<simt::Warp>::current(warp);
    return vfs::pread_together(group, fs, meeting, fd, buffer, bytes, offset);
  }
  static int64_t pread_by_grid(const simt::GridGroup& grid, vfs::Filesystem& fs, int fd,
                               void* buffer, uint64_t bytes, uint64_t offset) {
    vfs::GridMeeting* const meeting = vfs::begin_grid_call(grid, fs);
    if (meeting == nullptr) return -EBUSY;
    const int64_t got = vfs::pread_by_all(grid, fs, meeting->read, fd, buffer, bytes, offset);
    vfs::end_grid_call(grid, fs, *meeting);
    return got;
  }
  static int64_t pwrite_by_thread(vfs::Filesystem& fs, int fd, const void* buffer, uint64_t bytes,
                                  uint64_t offset) {
    const vfs::WriteRequest request{fd, buffer, bytes, offset};
    return vfs::pwrite_lanes(simt::Warp::full(), fs, request);
  }
  static int64_t pwrite_by_warp(const simt::Warp& warp, vfs::Filesystem& fs, int fd,
                                const void* buffer, uint64_t bytes, uint64_t offset) {
    return vfs::pwrite(warp, fs, fd, buffer, bytes, offset);
  }
  static int64_t pwrite_by_block(const simt::Warp& warp, vfs::Filesystem& fs, int fd,
                                 const void* buffer, uint64_t bytes, uint64_t offset) {
    vfs::SharedWrite meeting;
    const auto group = simt::BlockGroup<simt::Warp>::current(warp);
    return vfs::pwrite_together(group, fs, meeting, fd, buffer, bytes, offset);
  }
  static int64_t pwrite_by_grid(const simt::GridGroup& grid, vfs::Filesystem& fs, int fd,
                                const void* buffer, uint64_t bytes, uint64_t offset) {
    vfs::GridMeeting* const meeting = vfs::begin_grid_call(grid, fs);
    if (meeting == nullptr) return -EBUSY;
    const IoVector part = vfs::detail::one_part(buffer, bytes);
    const int64_t put = vfs::pwritev_by_all(grid, fs, meeting->write, fd, &part, 1, offset);
    vfs::end_grid_call(grid, fs, *meeting);
    return put;
  }
  static int64_t write_by_thread(vfs::Filesystem& fs, int fd, const void* buffer, uint64_t bytes) {
    const vfs::WriteRequest request{fd, buffer, bytes, 0};
    return vfs::write_lanes(simt::Warp::full(), fs, request);
  }
  static int64_t write_by_warp(const simt::Warp& warp, vfs::Filesystem& fs, int fd,
                               const void* buffer, uint64_t bytes) {
    return vfs::write(warp, fs, fd, buffer, bytes);
  }
  static int fsync_by_warp(const simt::Warp& warp, vfs::Filesystem& fs, int fd) {
    return vfs::fsync(warp, fs, fd);
  }
  static int sync_by_warp(const simt::Warp& warp, vfs::Filesystem& fs) {
    return vfs::sync(warp, fs);
  }
  static int open_by_warp(const simt::Warp& warp, vfs::Filesystem& fs, const char* path,
                          uint32_t flags, uint32_t mode) {
    return vfs::open(warp, fs, path, flags, mode);
  }
  static int close_by_warp(const simt::Warp& warp, vfs::Filesystem& fs, int fd) {
    return vfs::close(warp, fs, fd);
  }
  /// `out` is the warp's: memory that all its lanes reach.
  static int lstat_by_warp(const simt::Warp& warp, vfs::Filesystem& fs, const char* path,
                           vfs::Stat* out) {
    vfs::Stat found{};
    const int error = vfs::stat(warp, fs, path, vfs::LastLink::kKeep, found);
    if (error == 0 && warp.thread_rank() == 0) *out = found;
    warp.sync();
    return error;
  }
  static int fstat_by_warp(const simt::Warp& warp, vfs::Filesystem& fs, int fd, vfs::Stat* out) {
    vfs::Stat found{};
    const int error = vfs::fstat(warp, fs, fd, found);
    if (error == 0 && warp.thread_rank() == 0) *out = found;
    warp.sync();
    return error;
  }
  static int mkdir_by_warp(const simt::Warp& warp, vfs::Filesystem& fs, const char* path,
                           uint32_t mode) {
    return vfs::mkdir(warp, fs, path, mode);
  }
  static int rmdir_by_warp(const simt::Warp& warp, vfs::Filesystem& fs, const char* path) {
    return vfs::rmdir(warp, fs, path);
  }
  static int unlink_by_warp(const simt::Warp& warp, vfs::Filesystem& fs, const char* path) {
    return vfs::unlink(warp, fs, path);
  }
};

}  // namespace gofs::bench
