// SPDX-License-Identifier: Apache-2.0
//
// Who reads or writes in a measurement, and memory for it.
#pragma once

#include <algorithm>
#include <cstdint>

#include "kernels/backend.h"
#include "simt/memory.h"

namespace gofs::bench {

/// Memory of the backend, zeroed; frees it when it goes.
class BackendArray {
 public:
  BackendArray(simt::MemorySpace& memory, uint64_t bytes)
      : memory_(memory), data_(memory.allocate(bytes)) {}
  ~BackendArray() { memory_.release(data_); }
  BackendArray(const BackendArray&) = delete;
  BackendArray& operator=(const BackendArray&) = delete;
  uint8_t* data() const { return static_cast<uint8_t*>(data_); }
  template <typename T>
  T* as() const {
    return static_cast<T*>(data_);
  }

 private:
  simt::MemorySpace& memory_;
  void* data_;
};

/// Those who have an operation under way, and a grid that holds them.
struct Actors {
  uint32_t count;  // lanes, warps, blocks or grids
  uint32_t warps;
  uint32_t lanes_per_warp;
  kernels::Grid grid;
};

/// How threads that read or write lie in a grid.
struct Layout {
  uint32_t lanes_per_warp = 0;     // of them in each warp; 0: whole warps
  uint32_t threads_per_block = 0;  // 0: few, so that they are spread over the processors

  friend bool operator==(const Layout&, const Layout&) = default;
};

namespace detail {

inline kernels::Grid grid_of_warps(uint32_t warps, uint32_t width) {
  // Few warps are spread over the processors.
  const uint32_t per_block = warps <= 512 ? 1 : 4;
  return {static_cast<uint32_t>(simt::divide_up(warps, per_block)), per_block * width};
}

}  // namespace detail

/// Each a lane: as many as wanted, but all warps have as many of them where they are in several. A
/// CPU has no more than it has threads.
inline Actors actors_by_lane(const kernels::Backend& backend, uint32_t wanted,
                             const Layout& layout = {}) {
  const uint32_t width = backend.warp_width();
  if (backend.is_host()) {
    const kernels::Grid full = backend.full_grid();
    const uint32_t threads =
        std::clamp(wanted, 1u, std::max(1u, full.blocks * full.threads_per_block));
    return {threads, threads, 1, {threads, 1}};
  }
  const uint32_t most = layout.lanes_per_warp == 0 ? width : std::min(layout.lanes_per_warp, width);
  const uint32_t lanes = std::min(wanted, most);
  const auto warps = static_cast<uint32_t>(simt::divide_up(wanted, most));
  if (layout.threads_per_block == 0) {
    return {warps * lanes, warps, lanes, detail::grid_of_warps(warps, width)};
  }
  const uint64_t blocks = simt::divide_up(uint64_t{warps} * width, layout.threads_per_block);
  return {warps * lanes, warps, lanes, {static_cast<uint32_t>(blocks), layout.threads_per_block}};
}

/// Each a warp.
inline Actors actors_by_warp(const kernels::Backend& backend, uint32_t wanted) {
  if (backend.is_host()) return actors_by_lane(backend, wanted);
  const uint32_t width = backend.warp_width();
  return {wanted, wanted, width, detail::grid_of_warps(wanted, width)};
}

}  // namespace gofs::bench
