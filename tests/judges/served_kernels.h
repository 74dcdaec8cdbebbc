// SPDX-License-Identifier: Apache-2.0
//
// Calls of the kernels of a server's clients, through their channels, as device/attached.cuh makes
// them.
#pragma once

#include "kernel_calls.h"
#include "serve/kernel_data.h"

namespace gofs::judges {

class ServedCalls;

class ServedKernels : public KernelCalls {
 public:
  /// `width`: lanes of a warp. `calls` outlives this.
  ServedKernels(ServedCalls& calls, uint32_t width) : calls_(calls), width_(width) {}

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
  serve::KernelChannel& channel();
  template <typename Work>
  int64_t once(const Work& work);
  template <typename Call>
  void on_lanes(LaneRequests& requests, const Call& call);
  int64_t move(uint32_t warps, const serve::MovedRange& range);
  int64_t ask(const serve::KernelCall& call);
  int64_t write_parts(const serve::WrittenParts& write);
  int begin_batch(const std::string& directory, uint32_t count, vfs::BatchSource source);
  template <typename Work>
  void share(int bd, uint32_t count, const Work& work);
  int end_batch(int bd, std::vector<BatchItem>& items);
  template <typename Work>
  int with_batch(const std::string& directory, std::vector<BatchItem>& items, const Work& work);

  ServedCalls& calls_;
  const uint32_t width_;
};

}  // namespace gofs::judges
