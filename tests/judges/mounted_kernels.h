// SPDX-License-Identifier: Apache-2.0
//
// Calls of kernels on a file system that their program has mounted, as src/device makes them.
#pragma once

#include "kernel_calls.h"

namespace gofs::kernels {
struct BatchParams;
}  // namespace gofs::kernels

namespace gofs::judges {

class MountedKernels : public KernelCalls {
 public:
  /// `width`: lanes of a warp. `fs` outlives this.
  MountedKernels(vfs::Filesystem& fs, uint32_t width) : fs_(fs), width_(width) {}

  int64_t pwritev(int fd, const Calls::Buffers& parts, uint64_t offset) override;
  int64_t writev(int fd, const Calls::Buffers& parts) override;
  vfs::Ticket start_pwrite(int fd, std::string_view bytes, uint64_t offset) override;
  int64_t wait(const vfs::Ticket& ticket) override;
  void pwrite_lanes(int fd, LaneRequests& requests) override;
  void pread_lanes(int fd, LaneRequests& requests) override;
  void write_lanes(int fd, LaneRequests& requests) override;
  int64_t pwrite(Scope scope, int fd, std::string_view bytes, uint64_t offset) override;
  int64_t write(Scope scope, int fd, std::string_view bytes) override;
  int64_t pread(Scope scope, int fd, void* buffer, uint64_t bytes, uint64_t offset) override;
  int create_batch(const std::string& directory, uint32_t mode,
                   std::vector<BatchItem>& items) override;
  int read_batch(const std::string& directory, std::vector<BatchItem>& items) override;
  int write_batch(const std::string& directory, std::vector<BatchItem>& items) override;

 private:
  template <typename Call>
  int64_t on_warp(const Call& call);
  template <typename Call>
  int64_t on_block(const Call& call);
  template <typename Call>
  int64_t on_grid(const Call& call);
  template <typename Call>
  void on_lanes(LaneRequests& requests, const Call& call);
  int64_t perform(kernels::BatchParams& params);
  template <typename Work>
  int with_batch(const std::string& directory, std::vector<BatchItem>& items, const Work& work);

  vfs::Filesystem& fs_;
  const uint32_t width_;
};

/// `work(group)`, by a warp or several, for whom the thread works: user 0 is the mount itself.
template <typename Group, typename Work>
auto for_caller(const Group& group, const vfs::Caller& caller, const Work& work) {
  const vfs::Credentials& who = caller.credentials;
  const bool is_root = who.uid == 0 && who.gid == 0 && who.group_count == 0;
  if (is_root) return work(group);
  if constexpr (simt::AnyWarp<Group>) {
    return work(vfs::CallerWarp(group, caller));
  } else {
    return work(vfs::CallerGroup(group, caller));
  }
}

}  // namespace gofs::judges
