// SPDX-License-Identifier: Apache-2.0
//
// Memory of a GPU that the program gives to a volume which is not on that GPU: mounted on the CPU,
// or by another process. It is copied, or the other process is given a name of it, by the driver
// that the program has loaded; nothing of CUDA is linked for it.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "ssd/descriptor.h"

struct CUctx_st;
struct CUstream_st;

namespace gofs::host {

/// An allocation of a GPU's memory, as it is named to other processes (kernels::ForeignMemory), and
/// where in it a buffer begins.
struct NamedGpuMemory {
  std::string handle;
  ssd::Descriptor descriptor;
  uint64_t whole_bytes;
  uint64_t offset;
};

class GpuMemory {
 public:
  /// None: `memory` is not a GPU's, or the host reaches it by the same address. It is asked before
  /// any call that takes a buffer, so it is cheap while the program has not loaded CUDA; that is
  /// noticed within 10 ms.
  static std::optional<GpuMemory> at(const void* memory);

  /// Copies behind what was enqueued on a stream; null is CUDA's default stream. One of the two may
  /// be memory of the host, which stays as it is until settle(). False: the driver does not.
  bool copy(void* to, const void* from, uint64_t bytes, CUstream_st* stream) const;
  /// Waits for what was enqueued; on the default stream for what is in others that it waits for,
  /// too. False: something has failed.
  bool settle(CUstream_st* stream) const;
  /// Whether what comes into the stream becomes part of a graph, and is not run.
  bool is_captured(CUstream_st* stream) const;

  /// What names the allocation that has all of `bytes` at `memory`, which at() was asked about.
  /// None: it is several, or the driver makes no name for it.
  std::optional<NamedGpuMemory> name(const void* memory, uint64_t bytes) const;

  /// Whether it belongs to the same GPU.
  bool operator==(const GpuMemory& other) const = default;

 private:
  explicit GpuMemory(CUctx_st* context) : context_(context) {}

  CUctx_st* context_;  // of the GPU
};

}  // namespace gofs::host
