// SPDX-License-Identifier: Apache-2.0
//
// The four scopes of the device API, as the calls of this folder see them: how one of a group's
// warps does something for all, how all of them share something, and what memory is the group's.
#pragma once

#include "gofs/gofs.cuh"
#include "vfs/call_counts.h"
#include "vfs/grid_call.h"
#include "vfs/near_group.h"
#include "vfs/read_together.h"
#include "vfs/write_lanes.h"
#include "vfs/write_together.h"

namespace gofs::device_library {

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

/// Calls `work(group)` with the group of the block's warps.
template <typename Work>
__device__ auto with_block_group(Work work) {
  return with_block_warp([&](simt::AnyWarp auto warp) {
    return work(simt::BlockGroup<decltype(warp)>::current(warp));
  });
}

/// Of an asynchronous call that was given other than global memory.
__device__ inline Ticket refused_ticket() { return {-EFAULT, Ticket::kNoOperation, 0, 0}; }

/// Whether the arguments of a call can be read, by each thread that does.
template <typename... Pointers>
__device__ bool may_read(const Pointers*... pointers) {
  return ((simt::space_of(pointers, 1) != simt::AddressSpace::kNone) && ...);
}

/// The same of `count` consecutive values.
template <typename Value>
__device__ bool may_read_all(const Value* values, uint64_t count) {
  return count == 0 || simt::space_of(values, count * sizeof(Value)) != simt::AddressSpace::kNone;
}

/// The same of the value of an extended attribute. Of one that is too long nothing is said: that is
/// the answer.
__device__ inline bool may_read_value(const void* value, uint64_t bytes) {
  const uint64_t looked_at = bytes <= kXattrValueBytesMax ? bytes : 1;
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
  return with_block_group([&](const auto& group) {
    return vfs::pread_together_near(group, fs, bounce, shared, fd, buffer, bytes, offset);
  });
}
GOFS_NOINLINE __device__ inline int64_t pwritev_near_block(vfs::Filesystem& fs, int fd,
                                                           const IoVector* parts, int count,
                                                           uint64_t offset) {
  __shared__ vfs::SharedBounce bounce;
  __shared__ vfs::SharedWrite shared;
  return with_block_group([&](const auto& group) {
    return vfs::pwritev_together_near(group, fs, bounce, shared, fd, parts, count, offset);
  });
}
GOFS_NOINLINE __device__ inline int64_t writev_near_block(vfs::Filesystem& fs, int fd,
                                                          const IoVector* parts, int count) {
  __shared__ vfs::SharedBounce bounce;
  __shared__ vfs::SharedWrite shared;
  return with_block_group([&](const auto& group) {
    return vfs::writev_together_near(group, fs, bounce, shared, fd, parts, count);
  });
}

class ThreadScope {
 public:
  /// Waits until the group has come: what one of its threads has filled, all see then.
  __device__ void gather() const {}
  /// Calls `work(warp)` once for the group; its answer for all threads.
  template <typename Volume, typename Work>
  __device__ int64_t once(Volume&, Work work) const {
    return work(simt::PartialWarp::single());
  }
  __device__ int64_t pread(vfs::Filesystem& fs, int fd, void* buffer, uint64_t bytes,
                           uint64_t offset) const {
    // Threads of a warp that happen to read together share their commands.
    const simt::PartialWarp here = simt::PartialWarp::current();
    const vfs::ReadRequest request{fd, buffer, bytes, offset};
    if (here.any(!simt::is_common_target(buffer))) {
      return pread_near(here, fs, request);
    }
    if (here.size() == 32) return vfs::pread_lanes(simt::Warp::full(), fs, request);
    return vfs::detail::call_pread_lanes(here, fs, request);
  }
  __device__ int64_t pwrite(vfs::Filesystem& fs, int fd, const void* buffer, uint64_t bytes,
                            uint64_t offset) const {
    // Threads of a warp that happen to write together share their operations.
    const simt::PartialWarp here = simt::PartialWarp::current();
    const vfs::WriteRequest request{fd, buffer, bytes, offset};
    if (here.any(!simt::is_common_source(buffer))) {
      return pwrite_near(here, fs, request);
    }
    if (here.size() == 32) return vfs::pwrite_lanes(simt::Warp::full(), fs, request);
    return vfs::detail::call_pwrite_lanes(here, fs, request);
  }
  __device__ int64_t write(vfs::Filesystem& fs, int fd, const void* buffer, uint64_t bytes) const {
    const simt::PartialWarp here = simt::PartialWarp::current();
    const vfs::WriteRequest request{fd, buffer, bytes, 0};
    if (here.any(!simt::is_common_source(buffer))) {
      return write_near(here, fs, request);
    }
    return vfs::write_lanes(here, fs, request);
  }
  __device__ int64_t pwritev(vfs::Filesystem& fs, int fd, const IoVector* parts, int count,
                             uint64_t offset) const {
    const Parts look = look_at_parts(parts, count);
    if (look == Parts::kUnreadable) return -EFAULT;
    if (count == 1) return pwrite(fs, fd, parts->base, parts->bytes, offset);
    const simt::PartialWarp alone = simt::PartialWarp::single();
    if (look == Parts::kNear) {
      return vfs::pwritev_near(alone, fs, fd, parts, count, offset);
    }
    return vfs::pwritev(alone, fs, fd, parts, count, offset);
  }
  __device__ int64_t writev(vfs::Filesystem& fs, int fd, const IoVector* parts, int count) const {
    const Parts look = look_at_parts(parts, count);
    if (look == Parts::kUnreadable) return -EFAULT;
    if (count == 1) return write(fs, fd, parts->base, parts->bytes);
    const simt::PartialWarp alone = simt::PartialWarp::single();
    if (look == Parts::kNear) {
      return vfs::writev_near(alone, fs, fd, parts, count);
    }
    return vfs::writev(alone, fs, fd, parts, count);
  }
  /// Counts a read or write that has ended with `result`.
  __device__ void count(vfs::Filesystem& fs, CallKind kind, int64_t result) const {
    const simt::PartialWarp here = simt::PartialWarp::current();
    vfs::count_transfers(here, fs, kind, here.ballot(true), result);
  }
  /// Calls `work(warp, index, count)` with every warp of the group; sum of the answers.
  template <typename Volume, typename Work>
  __device__ int64_t share(Volume&, Work work) const {
    return work(simt::PartialWarp::single(), 0, 1);
  }
  /// The same; the greatest of the answers, of which none is below 0.
  template <typename Volume, typename Work>
  __device__ int64_t most(Volume&, Work work) const {
    return work(simt::PartialWarp::single(), 0, 1);
  }
  __device__ simt::PartialWarp async_warp() const { return simt::PartialWarp::single(); }
  static constexpr bool kHasLaneMemory = true;  // local memory is the group's
  static constexpr bool kHasBlockMemory = true;
};

class WarpScope {
 public:
  __device__ void gather() const { simt::Warp::full().sync(); }
  template <typename Volume, typename Work>
  __device__ int64_t once(Volume&, Work work) const {
    return work(simt::Warp::full());
  }
  __device__ int64_t pread(vfs::Filesystem& fs, int fd, void* buffer, uint64_t bytes,
                           uint64_t offset) const {
    const simt::Warp warp = simt::Warp::full();
    if (!simt::is_common_target(buffer)) {
      return vfs::pread_near(warp, fs, fd, buffer, bytes, offset);
    }
    return vfs::pread(warp, fs, fd, buffer, bytes, offset);
  }
  __device__ int64_t pwrite(vfs::Filesystem& fs, int fd, const void* buffer, uint64_t bytes,
                            uint64_t offset) const {
    const IoVector part = vfs::detail::one_part(buffer, bytes);
    return pwrite_parts(fs, simt::is_common_source(buffer), fd, &part, 1, offset);
  }
  __device__ int64_t pwritev(vfs::Filesystem& fs, int fd, const IoVector* parts, int count,
                             uint64_t offset) const {
    gather();  // the parts may be those of one lane
    const Parts look = look_at_parts(parts, count);
    if (look == Parts::kUnreadable) return -EFAULT;
    return pwrite_parts(fs, look == Parts::kCommon, fd, parts, count, offset);
  }
  __device__ int64_t write(vfs::Filesystem& fs, int fd, const void* buffer, uint64_t bytes) const {
    const IoVector part = vfs::detail::one_part(buffer, bytes);
    return write_parts(fs, simt::is_common_source(buffer), fd, &part, 1);
  }
  __device__ int64_t writev(vfs::Filesystem& fs, int fd, const IoVector* parts, int count) const {
    gather();  // as in pwritev()
    const Parts look = look_at_parts(parts, count);
    if (look == Parts::kUnreadable) return -EFAULT;
    return write_parts(fs, look == Parts::kCommon, fd, parts, count);
  }
  __device__ void count(vfs::Filesystem& fs, CallKind kind, int64_t result) const {
    if (simt::Warp::full().thread_rank() == 0) vfs::count_transfer(fs, kind, result);
  }
  template <typename Volume, typename Work>
  __device__ int64_t share(Volume&, Work work) const {
    return work(simt::Warp::full(), 0, 1);
  }
  template <typename Volume, typename Work>
  __device__ int64_t most(Volume&, Work work) const {
    return work(simt::Warp::full(), 0, 1);
  }
  __device__ simt::Warp async_warp() const { return simt::Warp::full(); }
  static constexpr bool kHasLaneMemory = false;
  static constexpr bool kHasBlockMemory = true;

 private:
  __device__ static int64_t pwrite_parts(vfs::Filesystem& fs, bool common, int fd,
                                         const IoVector* parts, int count, uint64_t offset) {
    const simt::Warp warp = simt::Warp::full();
    if (!common) return vfs::pwritev_near(warp, fs, fd, parts, count, offset);
    return vfs::pwritev(warp, fs, fd, parts, count, offset);
  }
  __device__ static int64_t write_parts(vfs::Filesystem& fs, bool common, int fd,
                                        const IoVector* parts, int count) {
    const simt::Warp warp = simt::Warp::full();
    if (!common) return vfs::writev_near(warp, fs, fd, parts, count);
    return vfs::writev(warp, fs, fd, parts, count);
  }
};

class BlockScope {
 public:
  __device__ void count(vfs::Filesystem& fs, CallKind kind, int64_t result) const {
    if (thread_in_block() == 0) vfs::count_transfer(fs, kind, result);
  }
  __device__ void gather() const { __syncthreads(); }
  template <typename Volume, typename Work>
  __device__ int64_t share(Volume&, Work work) const {
    return gather_answers(work, [](unsigned long long& sum, int64_t part) {
      atomicAdd(&sum, static_cast<unsigned long long>(part));
    });
  }
  template <typename Volume, typename Work>
  __device__ int64_t most(Volume&, Work work) const {
    return gather_answers(work, [](unsigned long long& most, int64_t part) {
      atomicMax(&most, static_cast<unsigned long long>(part));
    });
  }

  template <typename Volume, typename Work>
  __device__ int64_t once(Volume&, Work work) const {
    __shared__ int64_t answer;
    __syncthreads();  // a former answer has been read
    if (thread_in_block() < 32) {
      with_block_warp([&](simt::AnyWarp auto warp) {
        const int64_t result = work(warp);
        if (warp.thread_rank() == 0) answer = result;
      });
    }
    __syncthreads();
    return answer;
  }

  __device__ int64_t pread(vfs::Filesystem& fs, int fd, void* buffer, uint64_t bytes,
                           uint64_t offset) const {
    if (!simt::is_common_target(buffer)) {
      return pread_near_block(fs, fd, buffer, bytes, offset);
    }
    __shared__ vfs::SharedRead shared;
    return with_block_group([&](const auto& group) {
      return vfs::pread_together(group, fs, shared, fd, buffer, bytes, offset);
    });
  }
  __device__ int64_t pwrite(vfs::Filesystem& fs, int fd, const void* buffer, uint64_t bytes,
                            uint64_t offset) const {
    const IoVector part = vfs::detail::one_part(buffer, bytes);
    return pwrite_parts(fs, simt::is_common_source(buffer), fd, &part, 1, offset);
  }
  __device__ int64_t pwritev(vfs::Filesystem& fs, int fd, const IoVector* parts, int count,
                             uint64_t offset) const {
    gather();  // the parts may be those of one thread
    const Parts look = look_at_parts(parts, count);
    if (look == Parts::kUnreadable) return -EFAULT;
    return pwrite_parts(fs, look == Parts::kCommon, fd, parts, count, offset);
  }
  __device__ int64_t write(vfs::Filesystem& fs, int fd, const void* buffer, uint64_t bytes) const {
    const IoVector part = vfs::detail::one_part(buffer, bytes);
    return write_parts(fs, simt::is_common_source(buffer), fd, &part, 1);
  }
  __device__ int64_t writev(vfs::Filesystem& fs, int fd, const IoVector* parts, int count) const {
    gather();  // as in pwritev()
    const Parts look = look_at_parts(parts, count);
    if (look == Parts::kUnreadable) return -EFAULT;
    return write_parts(fs, look == Parts::kCommon, fd, parts, count);
  }
  static constexpr bool kHasLaneMemory = false;
  static constexpr bool kHasBlockMemory = true;

 private:
  /// Calls `work(warp, index, count)` with every warp; what `add` has made of 0 and the answers.
  template <typename Work, typename Add>
  __device__ static int64_t gather_answers(Work work, Add add) {
    __shared__ unsigned long long gathered;
    __syncthreads();
    if (thread_in_block() == 0) gathered = 0;
    __syncthreads();
    with_block_warp([&](simt::AnyWarp auto warp) {
      const auto group = simt::BlockGroup<decltype(warp)>::current(warp);
      if (group.index() >= group.count()) return;
      const int64_t part = work(warp, group.index(), group.count());
      if (warp.thread_rank() == 0) add(gathered, part);
    });
    __syncthreads();
    return static_cast<int64_t>(gathered);
  }
  __device__ static int64_t pwrite_parts(vfs::Filesystem& fs, bool common, int fd,
                                         const IoVector* parts, int count, uint64_t offset) {
    if (!common) return pwritev_near_block(fs, fd, parts, count, offset);
    __shared__ vfs::SharedWrite shared;
    return with_block_group([&](const auto& group) {
      return vfs::pwritev_together(group, fs, shared, fd, parts, count, offset);
    });
  }
  __device__ static int64_t write_parts(vfs::Filesystem& fs, bool common, int fd,
                                        const IoVector* parts, int count) {
    if (!common) return writev_near_block(fs, fd, parts, count);
    __shared__ vfs::SharedWrite shared;
    return with_block_group([&](const auto& group) {
      return vfs::writev_together(group, fs, shared, fd, parts, count);
    });
  }
};

/// All threads of a kernel launched with cudaLaunchCooperativeKernel, blocks of whole warps.
/// Several such kernels may call at the same time, on one volume too.
class GridScope {
 public:
  __device__ void count(vfs::Filesystem& fs, CallKind kind, int64_t result) const {
    const auto group = simt::GridGroup::current();
    if (group.index() == 0 && group.warp().thread_rank() == 0) {
      vfs::count_transfer(fs, kind, result);
    }
  }
  __device__ void gather() const { simt::GridGroup::current().sync(); }
  template <typename Volume, typename Work>
  __device__ int64_t share(Volume& volume, Work work) const {
    return gather_answers(volume, work,
                          [](int64_t& sum, int64_t part) { simt::add_relaxed(sum, part); });
  }
  template <typename Volume, typename Work>
  __device__ int64_t most(Volume& volume, Work work) const {
    return gather_answers(volume, work, [](int64_t& most, int64_t part) {
      simt::AtomicRef<int64_t>(most).fetch_max(part, simt::memory_order_relaxed);
    });
  }

  template <typename Volume, typename Work>
  __device__ int64_t once(Volume& volume, Work work) const {
    return meet(volume, [&](const simt::GridGroup& group, vfs::GridMeeting& meeting) {
      if (group.index() == 0) {
        const int64_t result = work(group.warp());
        if (group.warp().thread_rank() == 0) simt::store_relaxed(meeting.answer, result);
      }
      group.sync();
      return simt::load_relaxed(meeting.answer);
    });
  }

  __device__ int64_t pread(vfs::Filesystem& fs, int fd, void* buffer, uint64_t bytes,
                           uint64_t offset) const {
    if (bytes != 0 && !simt::is_common_target(buffer)) return -EFAULT;
    return meet(fs, [&](const simt::GridGroup& group, vfs::GridMeeting& meeting) {
      return vfs::pread_by_all(group, fs, meeting.read, fd, buffer, bytes, offset);
    });
  }
  __device__ int64_t pwrite(vfs::Filesystem& fs, int fd, const void* buffer, uint64_t bytes,
                            uint64_t offset) const {
    if (bytes != 0 && !simt::is_common_source(buffer)) return -EFAULT;
    const IoVector part = vfs::detail::one_part(buffer, bytes);
    return meet(fs, [&](const simt::GridGroup& group, vfs::GridMeeting& meeting) {
      return vfs::pwritev_by_all(group, fs, meeting.write, fd, &part, 1, offset);
    });
  }
  __device__ int64_t pwritev(vfs::Filesystem& fs, int fd, const IoVector* parts, int count,
                             uint64_t offset) const {
    return meet(fs, [&](const simt::GridGroup& group, vfs::GridMeeting& meeting) -> int64_t {
      // Behind the barrier that the call began with: the parts may be those of one thread.
      const Parts look = look_at_parts(parts, count);
      if (look != Parts::kCommon) return -EFAULT;
      return vfs::pwritev_by_all(group, fs, meeting.write, fd, parts, count, offset);
    });
  }
  __device__ int64_t write(vfs::Filesystem& fs, int fd, const void* buffer, uint64_t bytes) const {
    if (bytes != 0 && !simt::is_common_source(buffer)) return -EFAULT;
    const IoVector part = vfs::detail::one_part(buffer, bytes);
    return meet(fs, [&](const simt::GridGroup& group, vfs::GridMeeting& meeting) {
      return vfs::writev_by_all(group, fs, meeting.write, fd, &part, 1);
    });
  }
  __device__ int64_t writev(vfs::Filesystem& fs, int fd, const IoVector* parts, int count) const {
    return meet(fs, [&](const simt::GridGroup& group, vfs::GridMeeting& meeting) -> int64_t {
      // Behind the barrier that the call began with: the parts may be those of one thread.
      const Parts look = look_at_parts(parts, count);
      if (look != Parts::kCommon) return -EFAULT;
      return vfs::writev_by_all(group, fs, meeting.write, fd, parts, count);
    });
  }
  static constexpr bool kHasLaneMemory = false;
  static constexpr bool kHasBlockMemory = false;

 private:
  /// Calls `work(warp, index, count)` with every warp; what `add` has made of 0 and the answers.
  template <typename Volume, typename Work, typename Add>
  __device__ static int64_t gather_answers(Volume& volume, Work work, Add add) {
    return meet(volume, [&](const simt::GridGroup& group, vfs::GridMeeting& meeting) {
      const int64_t part = work(group.warp(), group.index(), group.count());
      if (group.warp().thread_rank() == 0) add(meeting.answer, part);
      group.sync();
      return simt::load_relaxed(meeting.answer);
    });
  }
  /// Calls `work(group, meeting)` with every warp; its answer, which is the same for all.
  template <typename Volume, typename Work>
  __device__ static int64_t meet(Volume& volume, Work work) {
    const auto group = simt::GridGroup::current();
    vfs::GridMeeting* const meeting = vfs::begin_grid_call(group, volume);
    if (meeting == nullptr) return -EBUSY;
    const int64_t answer = work(group, *meeting);
    vfs::end_grid_call(group, volume, *meeting);
    return answer;
  }
};

__device__ inline ThreadScope in(ThisThread) { return {}; }
__device__ inline WarpScope in(ThisWarp) { return {}; }
__device__ inline BlockScope in(ThisBlock) { return {}; }
__device__ inline GridScope in(ThisGrid) { return {}; }

/// Whether `bytes` bytes at `memory` are the group's, for one of its threads to write to.
template <typename Scope>
__device__ bool may_fill(Scope scope, const void* memory, uint64_t bytes) {
  using Caller = decltype(in(scope));
  if (bytes == 0 || simt::is_common_target(memory)) return true;
  const simt::AddressSpace space = simt::space_of(memory, bytes);
  return (Caller::kHasLaneMemory && space == simt::AddressSpace::kLane) ||
         (Caller::kHasBlockMemory && space == simt::AddressSpace::kBlock);
}

/// Whether `reaches(part)` is true of all parts of a vector, which can be read. Of a wrong number
/// of them nothing is said.
template <typename Reaches>
__device__ bool may_use_parts(const IoVector* parts, int count, Reaches reaches) {
  if (count <= 0 || count > kIoVectorsMax) return true;
  if (!may_read_all(parts, static_cast<uint64_t>(count))) return false;
  for (int i = 0; i < count; ++i) {
    if (!reaches(parts[i])) return false;
  }
  return true;
}

/// may_fill() of all parts of a vector.
template <typename Scope>
__device__ bool may_fill_parts(Scope scope, const IoVector* parts, int count) {
  return may_use_parts(
      parts, count, [&](const IoVector& part) { return may_fill(scope, part.base, part.bytes); });
}

/// Once for the group, unless its arguments are `reachable`: not all of them.
template <typename Scope, typename Volume, typename Work>
__device__ int64_t once_if(bool reachable, Scope scope, Volume& volume, Work work) {
  if (!reachable) return -EFAULT;
  return in(scope).once(volume, work);
}

/// Once for the group, and counted as a call of its kind.
template <typename Scope, typename Work>
__device__ int64_t counted(CallKind kind, Scope scope, vfs::Filesystem& fs, Work work) {
  return in(scope).once(fs, [&](simt::AnyWarp auto warp) -> int64_t {
    const int64_t result = work(warp);
    if (warp.thread_rank() == 0) vfs::count_call(fs, kind, result);
    return result;
  });
}

/// The same, unless its arguments are `reachable`: not all of them.
template <typename Scope, typename Work>
__device__ int64_t counted_if(CallKind kind, bool reachable, Scope scope, vfs::Filesystem& fs,
                              Work work) {
  if (!reachable) return -EFAULT;
  return counted(kind, scope, fs, work);
}

}  // namespace gofs::device_library

// Compiles a call, which is a template for the scope, for each of them; or for those that are one
// warp at most. `...`: the types of its arguments behind the volume.
#define GOFS_BY_ONE_WARP(result, call, ...)                                             \
  template __device__ result call(ThisThread, VolumeHandle __VA_OPT__(, ) __VA_ARGS__); \
  template __device__ result call(ThisWarp, VolumeHandle __VA_OPT__(, ) __VA_ARGS__)
#define GOFS_IN_EVERY_SCOPE(result, call, ...)                                         \
  GOFS_BY_ONE_WARP(result, call __VA_OPT__(, ) __VA_ARGS__);                           \
  template __device__ result call(ThisBlock, VolumeHandle __VA_OPT__(, ) __VA_ARGS__); \
  template __device__ result call(ThisGrid, VolumeHandle __VA_OPT__(, ) __VA_ARGS__)
