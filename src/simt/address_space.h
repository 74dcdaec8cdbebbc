// SPDX-License-Identifier: Apache-2.0
//
// Which memory a pointer leads to. The SSD, and every warp that steps it, reach global memory only;
// __shared__ memory is reached by its block, and local memory (a thread's stack) by its thread: the
// same address is other memory in each lane.
//
// On the CPU all memory is global, but for addresses that a test says stand for others.
#pragma once

#include "simt/platform.h"

#if !defined(__CUDA_ARCH__)
#include <atomic>

#include "simt/team.h"
#endif

namespace gofs::simt {

enum class AddressSpace : uint32_t {
  kGlobal,
  kConstant,  // as global memory, but for reading only
  kBlock,     // __shared__
  kLane,      // local
  kNone,      // null, the shared memory of another block, and what no memory is behind
};

#if !defined(__CUDA_ARCH__)
/// For tests: addresses that stand for memory of a block or of a lane. Nothing is behind them, so
/// that who uses one without reach() is found out. The memory itself is `storage`, `bytes` for each
/// block, or for each lane.
struct HostWindow {
  AddressSpace space;
  const uint8_t* begin;
  uint64_t bytes;
  uint8_t* storage;
  uint32_t warps;  // of a block
  uint32_t lanes;  // of a warp

  bool has(const void* address) const {
    const auto* const at = static_cast<const uint8_t*>(address);
    return at >= begin && at < begin + bytes;
  }
  /// What the address is to the lane of that rank of the calling worker's warp.
  uint8_t* reach(const void* address, uint32_t rank) const {
    const uint64_t warp = host_worker_index();
    const uint64_t part = space == AddressSpace::kLane ? warp * lanes + rank : warp / warps;
    return storage + part * bytes + (static_cast<const uint8_t*>(address) - begin);
  }
};

/// Ends with one of kGlobal. Set while no other thread runs; null but in such tests.
inline std::atomic<const HostWindow*> host_windows = nullptr;

/// The window that has `address`, or null.
inline const HostWindow* window_of(const void* address) {
  const HostWindow* window = host_windows.load(std::memory_order_relaxed);
  if (window == nullptr) return nullptr;
  for (; window->space != AddressSpace::kGlobal; ++window) {
    if (window->has(address)) return window;
  }
  return nullptr;
}
#endif

/// What a thread can have of local memory at most.
inline constexpr uint64_t kLaneMemoryMax = 512 << 10;

namespace detail {

/// Whether an address can be one at all: not in the page at zero, nor behind what a GPU or a CPU
/// can map (57 bits).
GOFS_HD inline bool is_address(const void* pointer) {
  constexpr uint64_t kEnd = uint64_t{1} << 57;
  return reinterpret_cast<uintptr_t>(pointer) - kBlockBytes < kEnd - kBlockBytes;
}

#if GOFS_ON_GPU
/// The same pointer, of which the compiler knows nothing: it takes what a kernel's arguments point
/// to, and pointers that lie there, for global memory, and would answer for it.
__device__ inline const void* unknown(const void* pointer) {
  auto address = reinterpret_cast<uint64_t>(pointer);
  asm("" : "+l"(address));
  return reinterpret_cast<const void*>(address);
}

/// How many bytes from there on the block has of its shared memory, of which CUDA has the first
/// KiB.
__device__ inline uint64_t room_in_block(const void* pointer) {
  uint32_t end;
#if __CUDA_ARCH__ >= 900
  asm("mov.u32 %0, %%aggr_smem_size;" : "=r"(end));
#else
  asm("mov.u32 %0, %%total_smem_size;" : "=r"(end));
  end += 1024;
#endif
  const uint64_t begin = __cvta_generic_to_shared(pointer);
  return begin < end ? end - begin : 0;
}
#endif

}  // namespace detail

/// Whether all warps, and the SSD, can take `pointer` for a source. Cheap: for the way of those who
/// pass global memory.
GOFS_HD inline bool is_common_source(const void* pointer) {
#if GOFS_ON_GPU
  const void* const address = detail::unknown(pointer);
  // All warps read constant memory by the same address.
  return (__isGlobal(address) || __isConstant(address)) && detail::is_address(address);
#else
  return detail::is_address(pointer) && window_of(pointer) == nullptr;
#endif
}

/// The same for a target.
GOFS_HD inline bool is_common_target(const void* pointer) {
#if GOFS_ON_GPU
  const void* const address = detail::unknown(pointer);
  return is_common_source(address) && !__isConstant(address);
#else
  return is_common_source(pointer);
#endif
}

/// What `bytes` bytes from `pointer` on are.
GOFS_HD inline AddressSpace space_of(const void* pointer, uint64_t bytes) {
  if (is_common_target(pointer)) return AddressSpace::kGlobal;
#if GOFS_ON_GPU
  pointer = detail::unknown(pointer);
  if (!detail::is_address(pointer)) return AddressSpace::kNone;
  if (__isConstant(pointer) || __isGridConstant(pointer)) return AddressSpace::kConstant;
  if (__isLocal(pointer)) {
    return bytes <= kLaneMemoryMax ? AddressSpace::kLane : AddressSpace::kNone;
  }
  const uint64_t room = __isShared(pointer) ? detail::room_in_block(pointer) : 0;
  return room != 0 && bytes <= room ? AddressSpace::kBlock : AddressSpace::kNone;
#else
  const HostWindow* const window = window_of(pointer);
  if (window == nullptr) return AddressSpace::kNone;
  const auto at = static_cast<uint64_t>(static_cast<const uint8_t*>(pointer) - window->begin);
  return bytes <= window->bytes - at ? window->space : AddressSpace::kNone;
#endif
}

/// How many bytes from `pointer` on there are at most, as far as is known: of a text whose end is
/// to be found.
GOFS_HD inline uint64_t room_at(const void* pointer) {
#if GOFS_ON_GPU
  pointer = detail::unknown(pointer);
  return __isShared(pointer) ? detail::room_in_block(pointer) : ~uint64_t{0};
#else
  const HostWindow* const window = window_of(pointer);
  if (window == nullptr) return ~uint64_t{0};
  return static_cast<uint64_t>(window->begin + window->bytes -
                               static_cast<const uint8_t*>(pointer));
#endif
}

/// By which address the lane of that rank gets at what `pointer` is to it, for itself alone: not to
/// be given to the SSD, or to another warp. On a GPU the same one.
template <typename Value>
GOFS_HD inline Value* reach([[maybe_unused]] uint32_t rank, Value* pointer) {
#if !GOFS_ON_GPU
  const HostWindow* const window = window_of(pointer);
  if (window != nullptr) return reinterpret_cast<Value*>(window->reach(pointer, rank));
#endif
  return pointer;
}

}  // namespace gofs::simt
