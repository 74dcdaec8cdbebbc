// SPDX-License-Identifier: Apache-2.0
//
// A range of a GPU's memory as the host and other devices see it, through the GPU's BAR 1: what
// VFIO can map for an SSD. By a dma-buf where the driver maps such (CUDA 13.3 on), else by NVIDIA's
// gdrdrv and its library libgdrapi, where they are installed. Host only.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

namespace gofs::gpu {

/// The view of a range, as long as this lives. The memory stays the caller's, and outlives it.
class DeviceView {
 public:
  /// What `device` and `bytes` are multiples of.
  static constexpr uint64_t kPageBytes = 65536;

  virtual ~DeviceView() = default;
  virtual uint8_t* base() const = 0;
  /// "by a dma-buf".
  virtual const char* way() const = 0;

  /// Throws std::system_error, which says what either way lacks.
  static std::unique_ptr<DeviceView> make(void* device, uint64_t bytes);
};

}  // namespace gofs::gpu
