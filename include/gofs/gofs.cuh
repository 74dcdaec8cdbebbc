// SPDX-License-Identifier: Apache-2.0
//
// GoFS inside CUDA kernels: POSIX names, the calling group first.
//
//   __global__ void sum(gofs::VolumeHandle vol, float* buffer) {
//     const auto block = gofs::this_block();
//     const int fd = gofs::open(block, vol, "/data/weights.bin", gofs::kOpenReadOnly);
//     const int64_t n = gofs::pread(block, vol, fd, buffer, 1 << 20, blockIdx.x * (1ull << 20));
//     ...
//     gofs::close(block, vol, fd);
//   }
//
// The group says who calls together and shares one result:
//   this_thread()  each thread for itself, in divergent code too
//   this_warp()    all 32 lanes, same arguments
//   this_block()   all threads of the block, same arguments; its warps share a read
//   this_grid()    all threads of a cooperative launch, same arguments; all warps share a read
// or a group of <cooperative_groups.h>: thread_block, a tile of 32, grid_group.
//
// Results are negative errnos or what POSIX says, the same for every thread of the group. When a
// call returns, what it read is visible to the whole group. Paths are NUL-terminated and absolute.
//
// Memory: buffers may lie in global memory (the GPU's own, managed, or pinned on the host), which
// is fastest, and for reads and writes that are waited for also
//   in __shared__ memory: of threads, warps and blocks;
//   in local memory, a thread's stack: of threads alone, since one address is other memory in each;
//   in __constant__ memory: what is written from.
// Such bytes are copied by the threads of the group through spare memory, up to 64 KiB
// (kBounceBytesMax) in one go: a request of so many is as whole as one of global memory, a longer
// one is several, one after the other, between which others may read, write and append. A buffer
// that is none of these, null among them, and any other but a global one given to asynchronous
// calls, batches and grids, is -EFAULT, before anything is read or written. What else a call writes
// (stat, links, entries, attributes) follows the same rules. What it only reads (paths, targets of
// links, names, values, an array of parts) may lie anywhere; each thread reads its own. Only the
// names of a batch are in global or constant memory. Parameters of a kernel that are
// __grid_constant__ are global memory that is read from, as long as the kernel runs. What is known
// to run over the end of a block's shared memory is -EFAULT, texts without an end among it.
//
// Compile with -rdc=true: without it every kernel gets its own copy of the file system, which takes
// the compiler minutes. GoFS has 16 KiB of each block's static shared memory for what is on its way
// (simt/lane_stage.h), and some hundred bytes more for calls by whole blocks. Kernels with blocks
// of more than 256 threads also need -maxrregcount=64: else whatever calls GoFS has some 220
// registers a thread (scripts/device_report.py lists them).
#pragma once

#include <cooperative_groups.h>

#include "gofs/types.h"
#include "vfs/async.h"
#include "vfs/batch_create.h"
#include "vfs/batch_list.h"
#include "vfs/fallocate.h"
#include "vfs/grid_call.h"
#include "vfs/metadata.h"
#include "vfs/near_group.h"
#include "vfs/open.h"
#include "vfs/read_together.h"
#include "vfs/rename.h"
#include "vfs/set_xattr.h"
#include "vfs/write_lanes.h"
#include "vfs/write_together.h"

namespace gofs {

namespace device_detail {

__device__ inline uint32_t thread_in_block() {
  return threadIdx.x + blockDim.x * (threadIdx.y + blockDim.y * threadIdx.z);
}
__device__ inline uint32_t threads_per_block() { return blockDim.x * blockDim.y * blockDim.z; }

/// Calls `work(warp)` with the calling warp of the block: a whole one, or all the threads of a
/// block that has fewer than 32.
template <typename Work>
__device__ auto with_block_warp(Work work) {
  if (threads_per_block() >= 32) return work(simt::Warp::full());
  return work(simt::PartialWarp((1u << threads_per_block()) - 1));
}

/// Calls `work(crew)` with the crew of the block's warps.
template <typename Work>
__device__ auto with_block_crew(Work work) {
  return with_block_warp([&](simt::AnyWarp auto warp) {
    return work(simt::BlockCrew<decltype(warp)>::current(warp));
  });
}

/// Of an asynchronous call that was given other than global memory.
__device__ inline Ticket refused_ticket() { return {-EFAULT, Ticket::kNoOperation, 0, 0}; }

/// Whether what a call is told can be read, by each thread that does.
template <typename... Pointers>
__device__ bool may_read(const Pointers*... pointers) {
  return ((simt::space_of(pointers, 1) != simt::AddressSpace::kNone) && ...);
}

/// The same of `count` values in a row.
template <typename Value>
__device__ bool may_read_all(const Value* values, uint64_t count) {
  return count == 0 || simt::space_of(values, count * sizeof(Value)) != simt::AddressSpace::kNone;
}

/// The same of the value of an extended attribute. Of one that is too long nothing is said: that is
/// the answer.
__device__ inline bool may_read_value(const void* value, uint64_t bytes) {
  const uint64_t looked_at = bytes <= vfs::kXattrValueBytesMax ? bytes : 1;
  return may_read_all(static_cast<const uint8_t*>(value), looked_at);
}

/// Where the parts of a vector are: what all warps reach, or not; or they cannot be read. Of a
/// wrong number of them nothing is said: that is the answer.
enum class Parts { kCommon, kNear, kUnreadable };

__device__ inline Parts look_at_parts(const IoVector* parts, int count) {
  if (count <= 0 || count > kIoVectorsMax) return Parts::kCommon;
  if (!may_read_all(parts, static_cast<uint64_t>(count))) return Parts::kUnreadable;
  for (int i = 0; i < count; ++i) {
    if (parts[i].bytes != 0 && !simt::is_common_source(parts[i].base)) return Parts::kNear;
  }
  return Parts::kCommon;
}

// Not inlined: the ways of whole warps and of global memory, which are, are those that have to be
// fast.
GOFS_NOINLINE __device__ inline int64_t pread_near(simt::PartialWarp here, vfs::Filesystem& fs,
                                                   vfs::ReadRequest request) {
  if (here.size() == 32) return vfs::pread_lanes_near(simt::Warp::full(), fs, request);
  return vfs::pread_lanes_near(here, fs, request);
}
GOFS_NOINLINE __device__ inline int64_t pwrite_near(simt::PartialWarp here, vfs::Filesystem& fs,
                                                    vfs::WriteRequest request) {
  if (here.size() == 32) return vfs::pwrite_lanes_near(simt::Warp::full(), fs, request);
  return vfs::pwrite_lanes_near(here, fs, request);
}
GOFS_NOINLINE __device__ inline int64_t write_near(simt::PartialWarp here, vfs::Filesystem& fs,
                                                   vfs::WriteRequest request) {
  if (here.size() == 32) return vfs::write_lanes_near(simt::Warp::full(), fs, request);
  return vfs::write_lanes_near(here, fs, request);
}
GOFS_NOINLINE __device__ inline int64_t pread_near_block(vfs::Filesystem& fs, int fd, void* buffer,
                                                         uint64_t bytes, uint64_t offset) {
  __shared__ vfs::SharedBounce bounce;
  __shared__ vfs::SharedRead shared;
  return with_block_crew([&](const auto& crew) {
    return vfs::pread_together_near(crew, fs, bounce, shared, fd, buffer, bytes, offset);
  });
}
GOFS_NOINLINE __device__ inline int64_t pwritev_near_block(vfs::Filesystem& fs, int fd,
                                                           const IoVector* parts, int count,
                                                           uint64_t offset) {
  __shared__ vfs::SharedBounce bounce;
  __shared__ vfs::SharedWrite shared;
  return with_block_crew([&](const auto& crew) {
    return vfs::pwritev_together_near(crew, fs, bounce, shared, fd, parts, count, offset);
  });
}
GOFS_NOINLINE __device__ inline int64_t writev_near_block(vfs::Filesystem& fs, int fd,
                                                          const IoVector* parts, int count) {
  __shared__ vfs::SharedBounce bounce;
  __shared__ vfs::SharedWrite shared;
  return with_block_crew([&](const auto& crew) {
    return vfs::writev_together_near(crew, fs, bounce, shared, fd, parts, count);
  });
}

}  // namespace device_detail

class ThisThread {
 public:
  /// Waits until the group has come: what one of its threads has filled, all see then.
  __device__ void gather() const {}
  /// Calls `work(warp)` once for the group; its answer for all threads.
  template <typename Work>
  __device__ int64_t once(VolumeHandle, Work work) const {
    return work(simt::PartialWarp::single());
  }
  __device__ int64_t pread(VolumeHandle vol, int fd, void* buffer, uint64_t bytes,
                           uint64_t offset) const {
    // Threads of a warp that happen to read together share their commands.
    const simt::PartialWarp here = simt::PartialWarp::current();
    const vfs::ReadRequest request{fd, buffer, bytes, offset};
    if (here.any(!simt::is_common_target(buffer))) {
      return device_detail::pread_near(here, *vol, request);
    }
    if (here.size() == 32) return vfs::pread_lanes(simt::Warp::full(), *vol, request);
    return vfs::detail::call_pread_lanes(here, *vol, request);
  }
  __device__ int64_t pwrite(VolumeHandle vol, int fd, const void* buffer, uint64_t bytes,
                            uint64_t offset) const {
    // Threads of a warp that happen to write together share their operations.
    const simt::PartialWarp here = simt::PartialWarp::current();
    const vfs::WriteRequest request{fd, buffer, bytes, offset};
    if (here.any(!simt::is_common_source(buffer))) {
      return device_detail::pwrite_near(here, *vol, request);
    }
    if (here.size() == 32) return vfs::pwrite_lanes(simt::Warp::full(), *vol, request);
    return vfs::detail::call_pwrite_lanes(here, *vol, request);
  }
  __device__ int64_t write(VolumeHandle vol, int fd, const void* buffer, uint64_t bytes) const {
    const simt::PartialWarp here = simt::PartialWarp::current();
    const vfs::WriteRequest request{fd, buffer, bytes, 0};
    if (here.any(!simt::is_common_source(buffer))) {
      return device_detail::write_near(here, *vol, request);
    }
    return vfs::write_lanes(here, *vol, request);
  }
  __device__ int64_t pwritev(VolumeHandle vol, int fd, const IoVector* parts, int count,
                             uint64_t offset) const {
    const device_detail::Parts look = device_detail::look_at_parts(parts, count);
    if (look == device_detail::Parts::kUnreadable) return -EFAULT;
    if (count == 1) return pwrite(vol, fd, parts->base, parts->bytes, offset);
    const simt::PartialWarp alone = simt::PartialWarp::single();
    if (look == device_detail::Parts::kNear) {
      return vfs::pwritev_near(alone, *vol, fd, parts, count, offset);
    }
    return vfs::pwritev(alone, *vol, fd, parts, count, offset);
  }
  __device__ int64_t writev(VolumeHandle vol, int fd, const IoVector* parts, int count) const {
    const device_detail::Parts look = device_detail::look_at_parts(parts, count);
    if (look == device_detail::Parts::kUnreadable) return -EFAULT;
    if (count == 1) return write(vol, fd, parts->base, parts->bytes);
    const simt::PartialWarp alone = simt::PartialWarp::single();
    if (look == device_detail::Parts::kNear) {
      return vfs::writev_near(alone, *vol, fd, parts, count);
    }
    return vfs::writev(alone, *vol, fd, parts, count);
  }
  /// Calls `work(warp, index, count)` with every warp of the group; sum of the answers.
  template <typename Work>
  __device__ int64_t share(VolumeHandle, Work work) const {
    return work(simt::PartialWarp::single(), 0, 1);
  }
  __device__ simt::PartialWarp async_warp() const { return simt::PartialWarp::single(); }
  static constexpr bool kOneWarp = true;
  static constexpr bool kHasLaneMemory = true;  // local memory is the group's
  static constexpr bool kHasBlockMemory = true;
};

class ThisWarp {
 public:
  __device__ void gather() const { __syncwarp(); }
  template <typename Work>
  __device__ int64_t once(VolumeHandle, Work work) const {
    return work(simt::Warp::full());
  }
  __device__ int64_t pread(VolumeHandle vol, int fd, void* buffer, uint64_t bytes,
                           uint64_t offset) const {
    const simt::Warp warp = simt::Warp::full();
    if (!simt::is_common_target(buffer)) {
      return vfs::pread_near(warp, *vol, fd, buffer, bytes, offset);
    }
    return vfs::pread(warp, *vol, fd, buffer, bytes, offset);
  }
  __device__ int64_t pwrite(VolumeHandle vol, int fd, const void* buffer, uint64_t bytes,
                            uint64_t offset) const {
    const IoVector part = vfs::detail::one_part(buffer, bytes);
    return pwrite_parts(vol, simt::is_common_source(buffer), fd, &part, 1, offset);
  }
  __device__ int64_t pwritev(VolumeHandle vol, int fd, const IoVector* parts, int count,
                             uint64_t offset) const {
    gather();  // the parts may be those of one lane
    const device_detail::Parts look = device_detail::look_at_parts(parts, count);
    if (look == device_detail::Parts::kUnreadable) return -EFAULT;
    return pwrite_parts(vol, look == device_detail::Parts::kCommon, fd, parts, count, offset);
  }
  __device__ int64_t write(VolumeHandle vol, int fd, const void* buffer, uint64_t bytes) const {
    const IoVector part = vfs::detail::one_part(buffer, bytes);
    return write_parts(vol, simt::is_common_source(buffer), fd, &part, 1);
  }
  __device__ int64_t writev(VolumeHandle vol, int fd, const IoVector* parts, int count) const {
    gather();  // as in pwritev()
    const device_detail::Parts look = device_detail::look_at_parts(parts, count);
    if (look == device_detail::Parts::kUnreadable) return -EFAULT;
    return write_parts(vol, look == device_detail::Parts::kCommon, fd, parts, count);
  }
  template <typename Work>
  __device__ int64_t share(VolumeHandle, Work work) const {
    return work(simt::Warp::full(), 0, 1);
  }
  __device__ simt::Warp async_warp() const { return simt::Warp::full(); }
  static constexpr bool kOneWarp = true;
  static constexpr bool kHasLaneMemory = false;
  static constexpr bool kHasBlockMemory = true;

 private:
  __device__ static int64_t pwrite_parts(VolumeHandle vol, bool common, int fd,
                                         const IoVector* parts, int count, uint64_t offset) {
    const simt::Warp warp = simt::Warp::full();
    if (!common) return vfs::pwritev_near(warp, *vol, fd, parts, count, offset);
    return vfs::pwritev(warp, *vol, fd, parts, count, offset);
  }
  __device__ static int64_t write_parts(VolumeHandle vol, bool common, int fd,
                                        const IoVector* parts, int count) {
    const simt::Warp warp = simt::Warp::full();
    if (!common) return vfs::writev_near(warp, *vol, fd, parts, count);
    return vfs::writev(warp, *vol, fd, parts, count);
  }
};

class ThisBlock {
 public:
  __device__ void gather() const { __syncthreads(); }
  template <typename Work>
  __device__ int64_t share(VolumeHandle, Work work) const {
    __shared__ unsigned long long sum;
    __syncthreads();
    if (device_detail::thread_in_block() == 0) sum = 0;
    __syncthreads();
    device_detail::with_block_warp([&](simt::AnyWarp auto warp) {
      const auto crew = simt::BlockCrew<decltype(warp)>::current(warp);
      if (crew.index() >= crew.count()) return;
      const int64_t part = work(warp, crew.index(), crew.count());
      if (warp.thread_rank() == 0) atomicAdd(&sum, static_cast<unsigned long long>(part));
    });
    __syncthreads();
    return static_cast<int64_t>(sum);
  }

  template <typename Work>
  __device__ int64_t once(VolumeHandle, Work work) const {
    __shared__ int64_t answer;
    __syncthreads();  // a former answer has been read
    if (device_detail::thread_in_block() < 32) {
      device_detail::with_block_warp([&](simt::AnyWarp auto warp) {
        const int64_t result = work(warp);
        if (warp.thread_rank() == 0) answer = result;
      });
    }
    __syncthreads();
    return answer;
  }

  __device__ int64_t pread(VolumeHandle vol, int fd, void* buffer, uint64_t bytes,
                           uint64_t offset) const {
    if (!simt::is_common_target(buffer)) {
      return device_detail::pread_near_block(*vol, fd, buffer, bytes, offset);
    }
    __shared__ vfs::SharedRead shared;
    return device_detail::with_block_crew([&](const auto& crew) {
      return vfs::pread_together(crew, *vol, shared, fd, buffer, bytes, offset);
    });
  }
  __device__ int64_t pwrite(VolumeHandle vol, int fd, const void* buffer, uint64_t bytes,
                            uint64_t offset) const {
    const IoVector part = vfs::detail::one_part(buffer, bytes);
    return pwrite_parts(vol, simt::is_common_source(buffer), fd, &part, 1, offset);
  }
  __device__ int64_t pwritev(VolumeHandle vol, int fd, const IoVector* parts, int count,
                             uint64_t offset) const {
    gather();  // the parts may be those of one thread
    const device_detail::Parts look = device_detail::look_at_parts(parts, count);
    if (look == device_detail::Parts::kUnreadable) return -EFAULT;
    return pwrite_parts(vol, look == device_detail::Parts::kCommon, fd, parts, count, offset);
  }
  __device__ int64_t write(VolumeHandle vol, int fd, const void* buffer, uint64_t bytes) const {
    const IoVector part = vfs::detail::one_part(buffer, bytes);
    return write_parts(vol, simt::is_common_source(buffer), fd, &part, 1);
  }
  __device__ int64_t writev(VolumeHandle vol, int fd, const IoVector* parts, int count) const {
    gather();  // as in pwritev()
    const device_detail::Parts look = device_detail::look_at_parts(parts, count);
    if (look == device_detail::Parts::kUnreadable) return -EFAULT;
    return write_parts(vol, look == device_detail::Parts::kCommon, fd, parts, count);
  }
  static constexpr bool kHasLaneMemory = false;
  static constexpr bool kHasBlockMemory = true;

 private:
  __device__ static int64_t pwrite_parts(VolumeHandle vol, bool common, int fd,
                                         const IoVector* parts, int count, uint64_t offset) {
    if (!common) return device_detail::pwritev_near_block(*vol, fd, parts, count, offset);
    __shared__ vfs::SharedWrite shared;
    return device_detail::with_block_crew([&](const auto& crew) {
      return vfs::pwritev_together(crew, *vol, shared, fd, parts, count, offset);
    });
  }
  __device__ static int64_t write_parts(VolumeHandle vol, bool common, int fd,
                                        const IoVector* parts, int count) {
    if (!common) return device_detail::writev_near_block(*vol, fd, parts, count);
    __shared__ vfs::SharedWrite shared;
    return device_detail::with_block_crew([&](const auto& crew) {
      return vfs::writev_together(crew, *vol, shared, fd, parts, count);
    });
  }
};

/// All threads of a kernel launched with cudaLaunchCooperativeKernel, blocks of whole warps.
/// Several such kernels may call at the same time, on one volume too.
class ThisGrid {
 public:
  __device__ void gather() const { simt::GridCrew::current().sync(); }
  template <typename Work>
  __device__ int64_t share(VolumeHandle vol, Work work) const {
    return meet(vol, [&](const simt::GridCrew& crew, vfs::GridMeeting& meeting) {
      const int64_t part = work(crew.warp(), crew.index(), crew.count());
      if (crew.warp().thread_rank() == 0) simt::add_relaxed(meeting.answer, part);
      crew.sync();
      return simt::load_relaxed(meeting.answer);
    });
  }

  template <typename Work>
  __device__ int64_t once(VolumeHandle vol, Work work) const {
    return meet(vol, [&](const simt::GridCrew& crew, vfs::GridMeeting& meeting) {
      if (crew.index() == 0) {
        const int64_t result = work(crew.warp());
        if (crew.warp().thread_rank() == 0) simt::store_relaxed(meeting.answer, result);
      }
      crew.sync();
      return simt::load_relaxed(meeting.answer);
    });
  }

  __device__ int64_t pread(VolumeHandle vol, int fd, void* buffer, uint64_t bytes,
                           uint64_t offset) const {
    if (bytes != 0 && !simt::is_common_target(buffer)) return -EFAULT;
    return meet(vol, [&](const simt::GridCrew& crew, vfs::GridMeeting& meeting) {
      return vfs::pread_by_all(crew, *vol, meeting.read, fd, buffer, bytes, offset);
    });
  }
  __device__ int64_t pwrite(VolumeHandle vol, int fd, const void* buffer, uint64_t bytes,
                            uint64_t offset) const {
    if (bytes != 0 && !simt::is_common_source(buffer)) return -EFAULT;
    const IoVector part = vfs::detail::one_part(buffer, bytes);
    return meet(vol, [&](const simt::GridCrew& crew, vfs::GridMeeting& meeting) {
      return vfs::pwritev_by_all(crew, *vol, meeting.write, fd, &part, 1, offset);
    });
  }
  __device__ int64_t pwritev(VolumeHandle vol, int fd, const IoVector* parts, int count,
                             uint64_t offset) const {
    return meet(vol, [&](const simt::GridCrew& crew, vfs::GridMeeting& meeting) -> int64_t {
      // Behind the barrier that the call began with: the parts may be those of one thread.
      const device_detail::Parts look = device_detail::look_at_parts(parts, count);
      if (look != device_detail::Parts::kCommon) return -EFAULT;
      return vfs::pwritev_by_all(crew, *vol, meeting.write, fd, parts, count, offset);
    });
  }
  __device__ int64_t write(VolumeHandle vol, int fd, const void* buffer, uint64_t bytes) const {
    if (bytes != 0 && !simt::is_common_source(buffer)) return -EFAULT;
    const IoVector part = vfs::detail::one_part(buffer, bytes);
    return meet(vol, [&](const simt::GridCrew& crew, vfs::GridMeeting& meeting) {
      return vfs::writev_by_all(crew, *vol, meeting.write, fd, &part, 1);
    });
  }
  __device__ int64_t writev(VolumeHandle vol, int fd, const IoVector* parts, int count) const {
    return meet(vol, [&](const simt::GridCrew& crew, vfs::GridMeeting& meeting) -> int64_t {
      // Behind the barrier that the call began with: the parts may be those of one thread.
      const device_detail::Parts look = device_detail::look_at_parts(parts, count);
      if (look != device_detail::Parts::kCommon) return -EFAULT;
      return vfs::writev_by_all(crew, *vol, meeting.write, fd, parts, count);
    });
  }
  static constexpr bool kHasLaneMemory = false;
  static constexpr bool kHasBlockMemory = false;

 private:
  /// Calls `work(crew, meeting)` with every warp; its answer, which is the same for all.
  template <typename Work>
  __device__ static int64_t meet(VolumeHandle vol, Work work) {
    const auto crew = simt::GridCrew::current();
    vfs::GridMeeting* const meeting = vfs::begin_grid_call(crew, *vol);
    if (meeting == nullptr) return -EBUSY;
    const int64_t answer = work(crew, *meeting);
    vfs::end_grid_call(crew, *vol, *meeting);
    return answer;
  }
};

__device__ inline ThisThread this_thread() { return {}; }
__device__ inline ThisWarp this_warp() { return {}; }
__device__ inline ThisBlock this_block() { return {}; }
__device__ inline ThisGrid this_grid() { return {}; }

namespace device_detail {

__device__ inline const ThisThread& scope(const ThisThread& group) { return group; }
__device__ inline const ThisWarp& scope(const ThisWarp& group) { return group; }
__device__ inline const ThisBlock& scope(const ThisBlock& group) { return group; }
__device__ inline const ThisGrid& scope(const ThisGrid& group) { return group; }
__device__ inline ThisBlock scope(const cooperative_groups::thread_block&) { return {}; }
__device__ inline ThisGrid scope(const cooperative_groups::grid_group&) { return {}; }
template <typename Parent>
__device__ ThisWarp scope(const cooperative_groups::thread_block_tile<32, Parent>&) {
  return {};
}
template <typename Parent>
__device__ ThisThread scope(const cooperative_groups::thread_block_tile<1, Parent>&) {
  return {};
}

/// Whether `bytes` bytes at `memory` are the group's, for one of its threads to write to.
template <typename Group>
__device__ bool may_fill(const Group& group, const void* memory, uint64_t bytes) {
  using Scope = std::remove_cvref_t<decltype(scope(group))>;
  if (bytes == 0 || simt::is_common_target(memory)) return true;
  const simt::AddressSpace space = simt::space_of(memory, bytes);
  return (Scope::kHasLaneMemory && space == simt::AddressSpace::kLane) ||
         (Scope::kHasBlockMemory && space == simt::AddressSpace::kBlock);
}

/// The same for all parts of a vector. Of a wrong number of them nothing is said.
template <typename Group>
__device__ bool may_fill_parts(const Group& group, const IoVector* parts, int count) {
  if (count <= 0 || count > kIoVectorsMax) return true;
  if (!may_read_all(parts, static_cast<uint64_t>(count))) return false;
  for (int i = 0; i < count; ++i) {
    if (!may_fill(group, parts[i].base, parts[i].bytes)) return false;
  }
  return true;
}

/// Once for the group, unless its arguments are `reachable`: not all of them.
template <typename Group, typename Work>
__device__ int64_t once_if(bool reachable, const Group& group, VolumeHandle vol, Work work) {
  if (!reachable) return -EFAULT;
  return scope(group).once(vol, work);
}

}  // namespace device_detail

/// Opens a file or directory. `flags` as in open(2). A descriptor, or a negative errno: -EROFS for
/// flags that would write where the volume is mounted for reading. `mode`: the permissions of a
/// file that is made (kOpenCreate); there is no umask.
template <typename Group>
__device__ int open(const Group& group, VolumeHandle vol, const char* path, uint32_t flags = 0,
                    uint32_t mode = 0666) {
  return static_cast<int>(device_detail::once_if(device_detail::may_read(path), group, vol,
                                                 [&](simt::AnyWarp auto warp) -> int64_t {
                                                   return vfs::open(warp, *vol, path, flags, mode);
                                                 }));
}

/// 0 or -EBADF. Nobody else is using the descriptor.
template <typename Group>
__device__ int close(const Group& group, VolumeHandle vol, int fd) {
  return static_cast<int>(device_detail::scope(group).once(
      vol, [&](simt::AnyWarp auto warp) -> int64_t { return vfs::close(warp, *vol, fd); }));
}

/// Reads up to `bytes` at `offset`; zero copy where `buffer` and the range are aligned to 4 bytes
/// and to the SSD's LBA. Bytes read, fewer than asked at the end of the file or before a block that
/// cannot be read; or a negative errno.
template <typename Group>
__device__ int64_t pread(const Group& group, VolumeHandle vol, int fd, void* buffer, uint64_t bytes,
                         uint64_t offset) {
  return device_detail::scope(group).pread(vol, fd, buffer, bytes, offset);
}

/// pread at the descriptor's position, which moves on by what the file has left (at most `bytes`),
/// whether or not all of it can be read. Groups that read at the same time get ranges of their own.
template <typename Group>
__device__ int64_t read(const Group& group, VolumeHandle vol, int fd, void* buffer,
                        uint64_t bytes) {
  if (!device_detail::may_fill(group, buffer, bytes)) return -EFAULT;
  const int64_t offset = device_detail::scope(group).once(
      vol, [&](simt::AnyWarp auto warp) { return vfs::advance_position(warp, *vol, fd, bytes); });
  return offset < 0 ? offset : pread(group, vol, fd, buffer, bytes, static_cast<uint64_t>(offset));
}

namespace device_detail {

/// preadv() of parts that the group's threads may read into, when all of them have come.
template <typename Group>
__device__ int64_t read_parts(const Group& group, VolumeHandle vol, int fd, const IoVector* parts,
                              int count, uint64_t offset) {
  if (count == 0) return pread(group, vol, fd, nullptr, 0, offset);
  int64_t total = 0;
  for (int i = 0; i < count; ++i) {
    const IoVector part = parts[i];  // of the last one nothing is read when others may have left
    const int64_t got =
        pread(group, vol, fd, part.base, part.bytes, offset + static_cast<uint64_t>(total));
    if (got < 0) return total > 0 ? total : got;
    total += got;
    if (static_cast<uint64_t>(got) < part.bytes) break;
  }
  return total;
}

}  // namespace device_detail

/// preadv(2): one range of the file into several buffers. -EINVAL, before anything is read, for
/// more than kIoVectorsMax of them or for more bytes than the result can count. One thread of the
/// group may have filled `parts`.
template <typename Group>
__device__ int64_t preadv(const Group& group, VolumeHandle vol, int fd, const IoVector* parts,
                          int count, uint64_t offset) {
  device_detail::scope(group).gather();
  if (!device_detail::may_fill_parts(group, parts, count)) return -EFAULT;
  if (vfs::total_bytes(parts, count) < 0) return -EINVAL;
  return device_detail::read_parts(group, vol, fd, parts, count, offset);
}

/// readv(2). The position moves as in read().
template <typename Group>
__device__ int64_t readv(const Group& group, VolumeHandle vol, int fd, const IoVector* parts,
                         int count) {
  device_detail::scope(group).gather();  // as in preadv()
  if (!device_detail::may_fill_parts(group, parts, count)) return -EFAULT;
  const int64_t bytes = vfs::total_bytes(parts, count);
  if (bytes < 0) return bytes;
  const int64_t offset = device_detail::scope(group).once(vol, [&](simt::AnyWarp auto warp) {
    return vfs::advance_position(warp, *vol, fd, static_cast<uint64_t>(bytes));
  });
  if (offset < 0) return offset;
  return device_detail::read_parts(group, vol, fd, parts, count, static_cast<uint64_t>(offset));
}

/// Starts a pread by a thread or a warp and returns at once; see vfs/async.h. -EAGAIN in the ticket
/// when too many are under way.
template <typename Group>
__device__ Ticket pread_async(const Group& group, VolumeHandle vol, int fd, void* buffer,
                              uint64_t bytes, uint64_t offset) {
  const auto& scope = device_detail::scope(group);
  static_assert(std::remove_reference_t<decltype(scope)>::kOneWarp,
                "asynchronous reads are started by a thread or a warp");
  if (bytes != 0 && !simt::is_common_target(buffer)) return device_detail::refused_ticket();
  return vfs::pread_async(scope.async_warp(), *vol, fd, buffer, bytes, offset);
}

/// Starts a pwrite by a thread or a warp and returns at once; see vfs/async_write.h. Whole blocks,
/// up to 1 MiB of them, are left under way, if `buffer` has them aligned to 4 bytes; what else
/// there is, is written before this returns. The file has its new contents and size when the ticket
/// was waited for, and its former ones until then, also after a crash. `buffer` is not to be
/// changed before that, and who reads or writes the same blocks waits, or hears -ETIMEDOUT. -EAGAIN
/// in the ticket when too many operations are under way: wait for one and try again; where 64
/// writes of the file are, this one is done at once. Of writes behind the end of a file there is
/// one at a time: several fill a file that was made as long first (ftruncate, fallocate). A
/// thread that has started one waits for it before it reads or writes with shared or local memory:
/// other calls that wait for the same blocks may have all spare memory meanwhile, and the one is
/// -EBUSY then, or the others -ETIMEDOUT, after the time for locks.
template <typename Group>
__device__ Ticket pwrite_async(const Group& group, VolumeHandle vol, int fd, const void* buffer,
                               uint64_t bytes, uint64_t offset) {
  const auto& scope = device_detail::scope(group);
  static_assert(std::remove_reference_t<decltype(scope)>::kOneWarp,
                "asynchronous writes are started by a thread or a warp");
  if (bytes != 0 && !simt::is_common_source(buffer)) return device_detail::refused_ticket();
  return vfs::pwrite_async(scope.async_warp(), *vol, fd, buffer, bytes, offset);
}

/// Whether the SSD is done with a ticket, which is to be waited for all the same. By the scope that
/// started it.
template <typename Group>
__device__ bool poll(const Group& group, VolumeHandle vol, const Ticket& ticket) {
  return vfs::poll(device_detail::scope(group).async_warp(), *vol, ticket);
}

/// Waits for a ticket; what pread or pwrite would have returned. Once for each ticket, by a scope
/// like the one that started it; one with a negative result need not be waited for.
template <typename Group>
__device__ int64_t wait(const Group& group, VolumeHandle vol, const Ticket& ticket) {
  return vfs::wait(device_detail::scope(group).async_warp(), *vol, ticket);
}

template <typename Group>
__device__ int64_t lseek(const Group& group, VolumeHandle vol, int fd, int64_t offset, int whence) {
  return device_detail::scope(group).once(
      vol, [&](simt::AnyWarp auto warp) { return vfs::lseek(warp, *vol, fd, offset, whence); });
}

/// `out` is written by one thread of the group, which must own it: memory shared by the group.
template <typename Group>
__device__ int stat(const Group& group, VolumeHandle vol, const char* path, Stat* out) {
  return static_cast<int>(device_detail::once_if(
      device_detail::may_read(path) && device_detail::may_fill(group, out, sizeof(Stat)), group,
      vol, [&](simt::AnyWarp auto warp) -> int64_t {
        Stat result{};
        const int error = vfs::stat(warp, *vol, path, vfs::LastLink::kFollow, result);
        if (error == 0 && warp.thread_rank() == 0) *out = result;
        warp.sync();
        return error;
      }));
}

/// stat of a symbolic link itself.
template <typename Group>
__device__ int lstat(const Group& group, VolumeHandle vol, const char* path, Stat* out) {
  return static_cast<int>(device_detail::once_if(
      device_detail::may_read(path) && device_detail::may_fill(group, out, sizeof(Stat)), group,
      vol, [&](simt::AnyWarp auto warp) -> int64_t {
        Stat result{};
        const int error = vfs::stat(warp, *vol, path, vfs::LastLink::kKeep, result);
        if (error == 0 && warp.thread_rank() == 0) *out = result;
        warp.sync();
        return error;
      }));
}

template <typename Group>
__device__ int fstat(const Group& group, VolumeHandle vol, int fd, Stat* out) {
  return static_cast<int>(
      device_detail::once_if(device_detail::may_fill(group, out, sizeof(Stat)), group, vol,
                             [&](simt::AnyWarp auto warp) -> int64_t {
                               Stat result{};
                               const int error = vfs::fstat(warp, *vol, fd, result);
                               if (error == 0 && warp.thread_rank() == 0) *out = result;
                               warp.sync();
                               return error;
                             }));
}

/// `mode` is made of kMayRead, kMayWrite, kMayExecute; 0 asks whether the file exists.
template <typename Group>
__device__ int access(const Group& group, VolumeHandle vol, const char* path, uint32_t mode) {
  return static_cast<int>(device_detail::once_if(
      device_detail::may_read(path), group, vol,
      [&](simt::AnyWarp auto warp) -> int64_t { return vfs::access(warp, *vol, path, mode); }));
}

/// Bytes of the link's target, without a terminator.
template <typename Group>
__device__ int64_t readlink(const Group& group, VolumeHandle vol, const char* path, char* buffer,
                            uint64_t bytes) {
  return device_detail::once_if(
      device_detail::may_read(path) && device_detail::may_fill(group, buffer, bytes), group, vol,
      [&](simt::AnyWarp auto warp) { return vfs::readlink(warp, *vol, path, buffer, bytes); });
}

/// The value of an extended attribute; `name` (NUL-terminated) has its prefix, as in "user.colour".
/// Bytes of the value, which `value` has room for; with `bytes` 0 how many there are. -ENODATA
/// where there is no such attribute or the caller may not know of it, -ERANGE where it does not
/// fit, -EOPNOTSUPP for a prefix that F2FS does not have. ACLs come in the form of Linux's system
/// calls.
template <typename Group>
__device__ int64_t getxattr(const Group& group, VolumeHandle vol, const char* path,
                            const char* name, void* value, uint64_t bytes) {
  return device_detail::once_if(
      device_detail::may_read(path, name) && device_detail::may_fill(group, value, bytes), group,
      vol, [&](simt::AnyWarp auto warp) {
        return vfs::getxattr(warp, *vol, path, vfs::LastLink::kFollow, name, value, bytes);
      });
}

/// getxattr of a symbolic link itself.
template <typename Group>
__device__ int64_t lgetxattr(const Group& group, VolumeHandle vol, const char* path,
                             const char* name, void* value, uint64_t bytes) {
  return device_detail::once_if(
      device_detail::may_read(path, name) && device_detail::may_fill(group, value, bytes), group,
      vol, [&](simt::AnyWarp auto warp) {
        return vfs::getxattr(warp, *vol, path, vfs::LastLink::kKeep, name, value, bytes);
      });
}

template <typename Group>
__device__ int64_t fgetxattr(const Group& group, VolumeHandle vol, int fd, const char* name,
                             void* value, uint64_t bytes) {
  return device_detail::once_if(
      device_detail::may_read(name) && device_detail::may_fill(group, value, bytes), group, vol,
      [&](simt::AnyWarp auto warp) { return vfs::fgetxattr(warp, *vol, fd, name, value, bytes); });
}

/// The names of all extended attributes that the caller may know of, each with its prefix and a
/// NUL. Bytes written to `list`; with `bytes` 0 how many there are, at most kXattrListBytesMax.
/// -ERANGE where they do not fit.
template <typename Group>
__device__ int64_t listxattr(const Group& group, VolumeHandle vol, const char* path, char* list,
                             uint64_t bytes) {
  return device_detail::once_if(
      device_detail::may_read(path) && device_detail::may_fill(group, list, bytes), group, vol,
      [&](simt::AnyWarp auto warp) {
        return vfs::listxattr(warp, *vol, path, vfs::LastLink::kFollow, list, bytes);
      });
}

/// listxattr of a symbolic link itself.
template <typename Group>
__device__ int64_t llistxattr(const Group& group, VolumeHandle vol, const char* path, char* list,
                              uint64_t bytes) {
  return device_detail::once_if(
      device_detail::may_read(path) && device_detail::may_fill(group, list, bytes), group, vol,
      [&](simt::AnyWarp auto warp) {
        return vfs::listxattr(warp, *vol, path, vfs::LastLink::kKeep, list, bytes);
      });
}

template <typename Group>
__device__ int64_t flistxattr(const Group& group, VolumeHandle vol, int fd, char* list,
                              uint64_t bytes) {
  return device_detail::once_if(
      device_detail::may_fill(group, list, bytes), group, vol,
      [&](simt::AnyWarp auto warp) { return vfs::flistxattr(warp, *vol, fd, list, bytes); });
}

// Changes of a volume that is mounted for writing, else -EROFS. Others see them at once; they are
// durable after sync() or when the host has unmounted the volume. -EPERM and -EACCES as chmod(2)
// and its like have them.

/// pwritev(2): `count` parts in a row at `offset`; zero copy where the parts are aligned to 4 bytes
/// and their ranges to blocks. Bytes written, fewer than asked only where the volume is full or the
/// SSD fails in between; or a negative errno: -EINVAL also for more than kIoVectorsMax parts. A
/// descriptor that was opened to append writes at the end. All warps of the group write parts of
/// the range, which nobody else reads or writes meanwhile. `parts` lie in memory that all of them
/// reach.
template <typename Group>
__device__ int64_t pwritev(const Group& group, VolumeHandle vol, int fd, const IoVector* parts,
                           int count, uint64_t offset) {
  return device_detail::scope(group).pwritev(vol, fd, parts, count, offset);
}

/// pwritev() of one part.
template <typename Group>
__device__ int64_t pwrite(const Group& group, VolumeHandle vol, int fd, const void* buffer,
                          uint64_t bytes, uint64_t offset) {
  return device_detail::scope(group).pwrite(vol, fd, buffer, bytes, offset);
}

/// writev(2): pwritev() at the descriptor's position, which moves past what was asked for. Groups
/// that write at the same time get ranges of their own.
template <typename Group>
__device__ int64_t writev(const Group& group, VolumeHandle vol, int fd, const IoVector* parts,
                          int count) {
  return device_detail::scope(group).writev(vol, fd, parts, count);
}

/// writev() of one part.
template <typename Group>
__device__ int64_t write(const Group& group, VolumeHandle vol, int fd, const void* buffer,
                         uint64_t bytes) {
  return device_detail::scope(group).write(vol, fd, buffer, bytes);
}

/// mkdir(2). 0 or a negative errno; so the next ones.
template <typename Group>
__device__ int mkdir(const Group& group, VolumeHandle vol, const char* path, uint32_t mode = 0777) {
  return static_cast<int>(device_detail::once_if(
      device_detail::may_read(path), group, vol,
      [&](simt::AnyWarp auto warp) -> int64_t { return vfs::mkdir(warp, *vol, path, mode); }));
}

template <typename Group>
__device__ int mknod(const Group& group, VolumeHandle vol, const char* path, uint32_t mode,
                     uint32_t major = 0, uint32_t minor = 0) {
  return static_cast<int>(device_detail::once_if(
      device_detail::may_read(path), group, vol, [&](simt::AnyWarp auto warp) -> int64_t {
        return vfs::mknod(warp, *vol, path, mode, {major, minor});
      }));
}

/// `target` is NUL-terminated.
template <typename Group>
__device__ int symlink(const Group& group, VolumeHandle vol, const char* target, const char* path) {
  return static_cast<int>(device_detail::once_if(
      device_detail::may_read(target, path), group, vol,
      [&](simt::AnyWarp auto warp) -> int64_t { return vfs::symlink(warp, *vol, target, path); }));
}

/// `path` becomes another name of `existing`.
template <typename Group>
__device__ int link(const Group& group, VolumeHandle vol, const char* existing, const char* path) {
  return static_cast<int>(device_detail::once_if(
      device_detail::may_read(existing, path), group, vol,
      [&](simt::AnyWarp auto warp) -> int64_t { return vfs::link(warp, *vol, existing, path); }));
}

/// Takes away a name of what is no directory. What has no names any more is freed then, or when
/// nobody has it open any more.
template <typename Group>
__device__ int unlink(const Group& group, VolumeHandle vol, const char* path) {
  return static_cast<int>(device_detail::once_if(
      device_detail::may_read(path), group, vol,
      [&](simt::AnyWarp auto warp) -> int64_t { return vfs::unlink(warp, *vol, path); }));
}

/// Removes an empty directory.
template <typename Group>
__device__ int rmdir(const Group& group, VolumeHandle vol, const char* path) {
  return static_cast<int>(device_detail::once_if(
      device_detail::may_read(path), group, vol,
      [&](simt::AnyWarp auto warp) -> int64_t { return vfs::rmdir(warp, *vol, path); }));
}

/// Gives what `from` names the name `to`, in place of what had it. `flags`: 0, kRenameNoReplace
/// (-EEXIST if something has it) or kRenameExchange (each gets the other's name).
template <typename Group>
__device__ int rename(const Group& group, VolumeHandle vol, const char* from, const char* to,
                      uint32_t flags = 0) {
  return static_cast<int>(device_detail::once_if(device_detail::may_read(from, to), group, vol,
                                                 [&](simt::AnyWarp auto warp) -> int64_t {
                                                   return vfs::rename(warp, *vol, from, to, flags);
                                                 }));
}

/// The file gets shorter, or longer with zeros. 0 or a negative errno.
template <typename Group>
__device__ int truncate(const Group& group, VolumeHandle vol, const char* path, uint64_t size) {
  return static_cast<int>(device_detail::once_if(
      device_detail::may_read(path), group, vol,
      [&](simt::AnyWarp auto warp) -> int64_t { return vfs::truncate(warp, *vol, path, size); }));
}

template <typename Group>
__device__ int ftruncate(const Group& group, VolumeHandle vol, int fd, uint64_t size) {
  return static_cast<int>(device_detail::scope(group).once(
      vol,
      [&](simt::AnyWarp auto warp) -> int64_t { return vfs::ftruncate(warp, *vol, fd, size); }));
}

/// fallocate(2): sees to it that `bytes` bytes at `offset` can be written without any more room on
/// the volume, and with `mode` 0 that the file reaches to their end; with kFallocateKeepSize the
/// size stays, with kFallocateZeroRange what is there becomes zeros, and
/// kFallocatePunchHole | kFallocateKeepSize makes a hole. 0 or a negative errno: -EOPNOTSUPP for
/// other modes, -ENOSPC before anything is changed.
template <typename Group>
__device__ int fallocate(const Group& group, VolumeHandle vol, int fd, uint32_t mode,
                         uint64_t offset, uint64_t bytes) {
  return static_cast<int>(
      device_detail::scope(group).once(vol, [&](simt::AnyWarp auto warp) -> int64_t {
        return vfs::fallocate(warp, *vol, fd, mode, offset, bytes);
      }));
}

/// The permissions of `mode`; an access list follows them.
template <typename Group>
__device__ int chmod(const Group& group, VolumeHandle vol, const char* path, uint32_t mode) {
  return static_cast<int>(device_detail::once_if(
      device_detail::may_read(path), group, vol,
      [&](simt::AnyWarp auto warp) -> int64_t { return vfs::chmod(warp, *vol, path, mode); }));
}

template <typename Group>
__device__ int fchmod(const Group& group, VolumeHandle vol, int fd, uint32_t mode) {
  return static_cast<int>(device_detail::scope(group).once(
      vol, [&](simt::AnyWarp auto warp) -> int64_t { return vfs::fchmod(warp, *vol, fd, mode); }));
}

/// kKeepId leaves the one or the other as it is.
template <typename Group>
__device__ int chown(const Group& group, VolumeHandle vol, const char* path, uint32_t uid,
                     uint32_t gid) {
  return static_cast<int>(device_detail::once_if(
      device_detail::may_read(path), group, vol, [&](simt::AnyWarp auto warp) -> int64_t {
        return vfs::chown(warp, *vol, path, vfs::LastLink::kFollow, uid, gid);
      }));
}

template <typename Group>
__device__ int lchown(const Group& group, VolumeHandle vol, const char* path, uint32_t uid,
                      uint32_t gid) {
  return static_cast<int>(device_detail::once_if(
      device_detail::may_read(path), group, vol, [&](simt::AnyWarp auto warp) -> int64_t {
        return vfs::chown(warp, *vol, path, vfs::LastLink::kKeep, uid, gid);
      }));
}

template <typename Group>
__device__ int fchown(const Group& group, VolumeHandle vol, int fd, uint32_t uid, uint32_t gid) {
  return static_cast<int>(device_detail::scope(group).once(
      vol,
      [&](simt::AnyWarp auto warp) -> int64_t { return vfs::fchown(warp, *vol, fd, uid, gid); }));
}

/// utimensat(2). Nanoseconds may be kTimeNow or kTimeOmit.
template <typename Group>
__device__ int utimens(const Group& group, VolumeHandle vol, const char* path,
                       const TimeStamp& accessed, const TimeStamp& modified) {
  return static_cast<int>(device_detail::once_if(
      device_detail::may_read(path), group, vol, [&](simt::AnyWarp auto warp) -> int64_t {
        return vfs::utimens(warp, *vol, path, vfs::LastLink::kFollow, accessed, modified);
      }));
}

/// utimens of a symbolic link itself.
template <typename Group>
__device__ int lutimens(const Group& group, VolumeHandle vol, const char* path,
                        const TimeStamp& accessed, const TimeStamp& modified) {
  return static_cast<int>(device_detail::once_if(
      device_detail::may_read(path), group, vol, [&](simt::AnyWarp auto warp) -> int64_t {
        return vfs::utimens(warp, *vol, path, vfs::LastLink::kKeep, accessed, modified);
      }));
}

template <typename Group>
__device__ int futimens(const Group& group, VolumeHandle vol, int fd, const TimeStamp& accessed,
                        const TimeStamp& modified) {
  return static_cast<int>(
      device_detail::scope(group).once(vol, [&](simt::AnyWarp auto warp) -> int64_t {
        return vfs::futimens(warp, *vol, fd, accessed, modified);
      }));
}

/// Sets an extended attribute. `flags`: 0, kXattrCreate (-EEXIST) or kXattrReplace (-ENODATA).
/// -ENOSPC also where the inode has no more room.
template <typename Group>
__device__ int setxattr(const Group& group, VolumeHandle vol, const char* path, const char* name,
                        const void* value, uint64_t bytes, uint32_t flags = 0) {
  return static_cast<int>(device_detail::once_if(
      device_detail::may_read(path, name) && device_detail::may_read_value(value, bytes), group,
      vol, [&](simt::AnyWarp auto warp) -> int64_t {
        return vfs::setxattr(warp, *vol, path, vfs::LastLink::kFollow, name, value, bytes, flags);
      }));
}

template <typename Group>
__device__ int lsetxattr(const Group& group, VolumeHandle vol, const char* path, const char* name,
                         const void* value, uint64_t bytes, uint32_t flags = 0) {
  return static_cast<int>(device_detail::once_if(
      device_detail::may_read(path, name) && device_detail::may_read_value(value, bytes), group,
      vol, [&](simt::AnyWarp auto warp) -> int64_t {
        return vfs::setxattr(warp, *vol, path, vfs::LastLink::kKeep, name, value, bytes, flags);
      }));
}

template <typename Group>
__device__ int fsetxattr(const Group& group, VolumeHandle vol, int fd, const char* name,
                         const void* value, uint64_t bytes, uint32_t flags = 0) {
  return static_cast<int>(device_detail::once_if(
      device_detail::may_read(name) && device_detail::may_read_value(value, bytes), group, vol,
      [&](simt::AnyWarp auto warp) -> int64_t {
        return vfs::fsetxattr(warp, *vol, fd, name, value, bytes, flags);
      }));
}

template <typename Group>
__device__ int removexattr(const Group& group, VolumeHandle vol, const char* path,
                           const char* name) {
  return static_cast<int>(device_detail::once_if(
      device_detail::may_read(path, name), group, vol, [&](simt::AnyWarp auto warp) -> int64_t {
        return vfs::removexattr(warp, *vol, path, vfs::LastLink::kFollow, name);
      }));
}

template <typename Group>
__device__ int lremovexattr(const Group& group, VolumeHandle vol, const char* path,
                            const char* name) {
  return static_cast<int>(device_detail::once_if(
      device_detail::may_read(path, name), group, vol, [&](simt::AnyWarp auto warp) -> int64_t {
        return vfs::removexattr(warp, *vol, path, vfs::LastLink::kKeep, name);
      }));
}

template <typename Group>
__device__ int fremovexattr(const Group& group, VolumeHandle vol, int fd, const char* name) {
  return static_cast<int>(device_detail::once_if(
      device_detail::may_read(name), group, vol,
      [&](simt::AnyWarp auto warp) -> int64_t { return vfs::fremovexattr(warp, *vol, fd, name); }));
}

/// Makes what was done before durable on the SSD: a checkpoint. By a group that others wait for no
/// longer than for any other call. Where the SSD is an image in a GPU's reach, the image itself
/// follows when the host syncs or unmounts.
template <typename Group>
__device__ int sync(const Group& group, VolumeHandle vol) {
  return static_cast<int>(device_detail::scope(group).once(
      vol, [&](simt::AnyWarp auto warp) -> int64_t { return vfs::sync(warp, *vol); }));
}

/// The same for one file: its contents, its attributes and, if it is new, its name are on the SSD
/// when this returns 0; of a directory, as sync(). Also for descriptors that are open for reading.
template <typename Group>
__device__ int fsync(const Group& group, VolumeHandle vol, int fd) {
  return static_cast<int>(device_detail::scope(group).once(
      vol, [&](simt::AnyWarp auto warp) -> int64_t { return vfs::fsync(warp, *vol, fd); }));
}

/// fsync(), but for the times of the last change where they are all that has changed in the inode:
/// of a file in which blocks are overwritten it is then not written.
template <typename Group>
__device__ int fdatasync(const Group& group, VolumeHandle vol, int fd) {
  return static_cast<int>(device_detail::scope(group).once(
      vol, [&](simt::AnyWarp auto warp) -> int64_t { return vfs::fdatasync(warp, *vol, fd); }));
}

/// Empties up to `segments_max` segments that are only partly in use, so that what is written later
/// lies in a row; see vfs::collect_garbage. How many were tried, or a negative errno. One warp of
/// the group works; several groups may do so at a time.
template <typename Group>
__device__ int64_t collect_garbage(const Group& group, VolumeHandle vol, uint32_t segments_max) {
  return device_detail::scope(group).once(
      vol, [&](simt::AnyWarp auto warp) { return vfs::collect_garbage(warp, *vol, segments_max); });
}

template <typename Group>
__device__ int opendir(const Group& group, VolumeHandle vol, const char* path) {
  return open(group, vol, path, kOpenReadOnly | kOpenDirectory);
}

/// The next entries of a directory, at most `capacity` (at least kReaddirEntriesMin); see
/// vfs::readdir.
template <typename Group>
__device__ int64_t readdir(const Group& group, VolumeHandle vol, int fd, NamedEntry* entries,
                           uint32_t capacity) {
  return device_detail::once_if(
      device_detail::may_fill(group, entries, uint64_t{capacity} * sizeof(NamedEntry)), group, vol,
      [&](simt::AnyWarp auto warp) { return vfs::readdir(warp, *vol, fd, entries, capacity); });
}

/// Opens many files of one directory at once: those of `names` (NUL-terminated, relative to
/// `path`), or with no names all regular files, at most `count`, in the order of readdir. All warps
/// of the group share the work and synchronise between its steps. A batch descriptor, or a negative
/// errno, for a directory of which a part cannot be listed too. A file that cannot be opened has
/// its error in batch_file() and is left out of reads: -EFAULT where its name is not in global or
/// constant memory, which all warps look at. Of a file that is written or removed
/// meanwhile, reads of the batch give what was there before or after, or an error; the room that
/// such changes give up on the volume comes back after batch_close().
template <typename Group>
__device__ int batch_open(const Group& group, VolumeHandle vol, const char* path,
                          const char* const* names, uint32_t count) {
  const auto& scope = device_detail::scope(group);
  if (!device_detail::may_read(path)) return -EFAULT;
  if (names != nullptr && !device_detail::may_read_all(names, count)) return -EFAULT;
  vfs::Filesystem& fs = *vol;
  vfs::BatchTable& table = *fs.batches;
  const auto bd = static_cast<int>(scope.once(vol, [&](simt::AnyWarp auto warp) -> int64_t {
    return vfs::begin_batch(warp, fs, table, path, count);
  }));
  if (bd < 0) return bd;
  vfs::Batch& batch = table.batches[bd];
  if (names == nullptr) {
    scope.share(vol, [&](simt::AnyWarp auto warp, uint32_t index, uint32_t warps) -> int64_t {
      vfs::survey_batch(warp, fs, table, batch, index, warps);
      return 0;
    });
    scope.share(vol, [&](simt::AnyWarp auto warp, uint32_t index, uint32_t warps) -> int64_t {
      vfs::list_batch(warp, fs, table, batch, index, warps);
      return 0;
    });
    // The next call begins with a barrier: all have read the error before the batch is closed.
    const int listed = batch.error;
    if (listed < 0) {
      scope.once(
          vol, [&](simt::AnyWarp auto warp) -> int64_t { return vfs::end_batch(warp, table, bd); });
      return listed;
    }
  } else {
    scope.share(vol, [&](simt::AnyWarp auto warp, uint32_t index, uint32_t warps) -> int64_t {
      vfs::find_batch(warp, fs, table, batch, names, index, warps);
      return 0;
    });
  }
  scope.share(vol, [&](simt::AnyWarp auto warp, uint32_t index, uint32_t warps) -> int64_t {
    vfs::load_batch(warp, fs, table, batch, index, warps);
    return 0;
  });
  return bd;
}

/// Files of an open batch, or -EBADF. Needs no group.
__device__ inline int64_t batch_count(VolumeHandle vol, int bd) {
  const vfs::Batch* batch = vfs::find_batch_descriptor(*(*vol).batches, bd);
  return batch == nullptr ? -EBADF : static_cast<int64_t>(batch->count);
}

/// Size, inode and error of file `index` (below batch_count) of an open batch. Needs no group.
__device__ inline BatchFile batch_file(VolumeHandle vol, int bd, uint32_t index) {
  const vfs::BatchTable& table = *(*vol).batches;
  return vfs::file_of(table.files[table.batches[bd].first + index]);
}

/// Reads all files of a batch, file i to `buffer + offsets[i]`. Bytes read, or -EBADF; what went
/// wrong with a single file is in batch_file().error.
template <typename Group>
__device__ int64_t batch_read(const Group& group, VolumeHandle vol, int bd, void* buffer,
                              const uint64_t* offsets) {
  vfs::BatchTable& table = *(*vol).batches;
  vfs::Batch* batch = vfs::find_batch_descriptor(table, bd);
  if (batch == nullptr) return -EBADF;
  const bool reachable =
      simt::is_common_target(buffer) && device_detail::may_read_all(offsets, batch->count);
  if (batch->count != 0 && !reachable) return -EFAULT;
  return device_detail::scope(group).share(
      vol, [&](simt::AnyWarp auto warp, uint32_t index, uint32_t warps) -> int64_t {
        return static_cast<int64_t>(vfs::read_batch(
            warp, *vol, table, *batch, static_cast<uint8_t*>(buffer), offsets, index, warps));
      });
}

/// Makes `count` files with `mode` in the directory `path`, those of `names` (NUL-terminated,
/// without slashes), and opens them as a batch. With a `buffer`, file i comes with the bytes[i]
/// bytes at `buffer + offsets[i]`, and is there with all of them or, after a crash, not at all;
/// best are buffers and offsets that are multiples of 4. All warps of the group share the work;
/// others that change the directory wait until all is done. A batch descriptor, or a negative
/// errno, and nothing was made: -EFAULT also where one of the names, which all warps look at, is
/// not in global or constant memory. A file that cannot be made has its error in batch_file():
/// -EEXIST, -ENOSPC, ...
template <typename Group>
__device__ int batch_create(const Group& group, VolumeHandle vol, const char* path,
                            const char* const* names, uint32_t count, uint32_t mode = 0666,
                            const void* buffer = nullptr, const uint64_t* offsets = nullptr,
                            const uint64_t* bytes = nullptr) {
  const auto& scope = device_detail::scope(group);
  if (!device_detail::may_read(path) || !device_detail::may_read_all(names, count)) return -EFAULT;
  const bool filled = count != 0 && buffer != nullptr;
  if (filled && !(simt::is_common_source(buffer) && device_detail::may_read_all(offsets, count) &&
                  device_detail::may_read_all(bytes, count))) {
    return -EFAULT;
  }
  const int64_t hidden =
      scope.share(vol, [&](simt::AnyWarp auto warp, uint32_t index, uint32_t warps) -> int64_t {
        return vfs::detail::count_hidden_names(warp, names, count, index, warps);
      });
  if (hidden != 0) return hidden < 0 ? static_cast<int>(hidden) : -EFAULT;
  const vfs::BatchCreation creation{
      path, names, count, mode, static_cast<const uint8_t*>(buffer), offsets, bytes};
  const auto bd = static_cast<int>(scope.once(vol, [&](simt::AnyWarp auto warp) -> int64_t {
    return vfs::begin_creation(warp, *vol, creation);
  }));
  if (bd < 0) return bd;
  vfs::Batch& batch = (*vol).batches->batches[bd];
  scope.share(vol, [&](simt::AnyWarp auto warp, uint32_t index, uint32_t warps) -> int64_t {
    vfs::prepare_creation(warp, *vol, batch, index, warps);
    return 0;
  });
  scope.share(vol, [&](simt::AnyWarp auto warp, uint32_t index, uint32_t warps) -> int64_t {
    vfs::create_batch(warp, *vol, batch, creation, index, warps);
    return 0;
  });
  scope.once(vol, [&](simt::AnyWarp auto warp) -> int64_t {
    vfs::end_creation(warp, *vol, batch);
    return 0;
  });
  return bd;
}

/// Writes the first bytes[i] bytes of each file i of a batch from `buffer + offsets[i]`; a file
/// that is longer keeps the rest. Bytes written, or -EBADF; what went wrong with a single file is
/// in batch_file().error. Nobody reads the batch meanwhile.
template <typename Group>
__device__ int64_t batch_write(const Group& group, VolumeHandle vol, int bd, const void* buffer,
                               const uint64_t* offsets, const uint64_t* bytes) {
  vfs::BatchTable& table = *(*vol).batches;
  vfs::Batch* batch = vfs::find_batch_descriptor(table, bd);
  if (batch == nullptr) return -EBADF;
  const bool reachable = simt::is_common_source(buffer) &&
                         device_detail::may_read_all(offsets, batch->count) &&
                         device_detail::may_read_all(bytes, batch->count);
  if (batch->count != 0 && !reachable) return -EFAULT;
  return device_detail::scope(group).share(
      vol, [&](simt::AnyWarp auto warp, uint32_t index, uint32_t warps) -> int64_t {
        return static_cast<int64_t>(vfs::write_batch(warp, *vol, table, *batch,
                                                     static_cast<const uint8_t*>(buffer), offsets,
                                                     bytes, index, warps));
      });
}

/// 0 or -EBADF.
template <typename Group>
__device__ int batch_close(const Group& group, VolumeHandle vol, int bd) {
  return static_cast<int>(
      device_detail::scope(group).once(vol, [&](simt::AnyWarp auto warp) -> int64_t {
        return vfs::end_batch(warp, *(*vol).batches, bd);
      }));
}

/// Numbers of the file system; needs no group.
__device__ inline FilesystemStat statfs(VolumeHandle vol) { return vfs::statfs(*vol); }

}  // namespace gofs
