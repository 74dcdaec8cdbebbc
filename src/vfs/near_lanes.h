// SPDX-License-Identifier: Apache-2.0
//
// Reads and writes by lanes of which some have their buffers in memory that the SSD does not reach
// (simt/address_space.h): __shared__ or local memory. Such a lane's bytes go through spare memory
// (bounce_pool.h), where the ordinary call finds or leaves them, and the lane itself copies them.
// The lanes of a warp have their parts of it side by side, so what follows each other in the file
// is one command there as well.
//
// A request of up to kBounceBytesMax is one ordinary call, and as whole as that; a longer one is
// several, one after the other.
#pragma once

#include "simt/copy_near.h"
#include "vfs/write_lanes.h"

namespace gofs::vfs {

namespace detail {

/// pread_lanes() and its like as functions of their own, for those to whom a call costs little.
GOFS_NOINLINE GOFS_HD inline int64_t call_pread_lanes(simt::AnyWarp auto warp, Filesystem& fs,
                                                      const ReadRequest& request) {
  return pread_lanes(warp, fs, request);
}
GOFS_NOINLINE GOFS_HD inline int64_t call_pwrite_lanes(simt::AnyWarp auto warp, Filesystem& fs,
                                                       const WriteRequest& request) {
  return pwrite_lanes(warp, fs, request);
}

/// Whether a lane by itself may move data through memory of that kind.
GOFS_HD constexpr bool is_near(simt::AddressSpace space) {
  return space == simt::AddressSpace::kBlock || space == simt::AddressSpace::kLane;
}

/// Takes memory for as many of `lanes` as it can, the first of them at least, each for its `bytes`,
/// not 0 and at most kBounceBytesMax. Collective. Those lanes; `part` is where each has its own.
GOFS_HD inline uint32_t take_for_lanes(simt::AnyWarp auto warp, const BouncePool& pool,
                                       uint32_t lanes, uint64_t bytes, Bounce& bounce,
                                       uint8_t*& part) {
  constexpr uint64_t kUnit = 16;
  const bool mine = (lanes >> warp.thread_rank() & 1u) != 0;
  const auto room = static_cast<uint32_t>(mine ? simt::align_up(bytes, kUnit) : 0);
  uint32_t total = 0;
  const uint32_t before = simt::sum_before(warp, room, total);
  const uint32_t least = warp.shfl(room, simt::lowest_bit(lanes));
  if (warp.thread_rank() == 0) {
    bounce = try_take_bounce(pool, least, simt::min<uint64_t>(total, kBounceBytesOfLanes));
  }
  warp.sync();  // whoever had it has done with it, for all lanes
  const uint64_t memory = warp.shfl(reinterpret_cast<uint64_t>(bounce.memory), 0);
  const uint64_t taken = warp.shfl(bounce.bytes, 0);
  const bool served = mine && before + room <= taken;
  part = served ? reinterpret_cast<uint8_t*>(memory) + before : nullptr;
  return warp.ballot(served);
}

/// Where a lane's bytes are, and how many.
struct NearBuffer {
  uint8_t* begin;
  uint64_t bytes;
  simt::AddressSpace space;
};

enum class Way { kRead, kWrite };

/// Moves the bytes of all lanes, in as many rounds as it takes, by `move(part, bytes, done)`: what
/// pread_lanes() and its like do with `bytes` of a request from the `done`-th on, in memory that
/// the SSD reaches; 0 bytes: the lane waits. Collective. Per lane what such a call answers; -EFAULT
/// of a buffer that neither the SSD nor the lane can use so, -EBUSY where others had all spare
/// memory for as long as locks are waited for.
template <Way kWay, typename Move>
GOFS_HD int64_t move_near(simt::AnyWarp auto warp, Filesystem& fs, const NearBuffer& buffer,
                          Move move) {
  const bool common = buffer.space == simt::AddressSpace::kGlobal ||
                      (kWay == Way::kWrite && buffer.space == simt::AddressSpace::kConstant);
  bool direct = common || buffer.bytes == 0;
  bool waiting = !direct && is_near(buffer.space);
  int64_t result = direct || waiting ? 0 : -EFAULT;
  uint64_t done = 0;
  simt::Deadline deadline = simt::Deadline::after_ns(fs.lock_timeout_ns);
  simt::Backoff backoff;
  while (warp.any(direct || waiting)) {
    const uint64_t wanted = waiting ? simt::min(buffer.bytes - done, kBounceBytesMax) : 0;
    const uint32_t lanes = warp.ballot(waiting);
    Bounce bounce{};
    uint8_t* part = nullptr;
    const uint32_t served =
        lanes == 0 ? 0 : take_for_lanes(warp, fs.bounces, lanes, wanted, bounce, part);
    if (served == 0 && !warp.any(direct)) {
      if (warp.any(deadline.passed())) return !waiting || done != 0 ? result : -EBUSY;
      backoff.pause();
      continue;
    }
    const bool mine = part != nullptr;
    const simt::CopyShare alone{0, 1};
    if (kWay == Way::kWrite && mine) {
      simt::copy_from_near(warp, alone, part, buffer.begin + done, wanted);
    }
    warp.sync();
    uint8_t* const memory = mine ? part : direct ? buffer.begin : nullptr;
    const int64_t moved = move(memory, mine ? wanted : direct ? buffer.bytes : 0, done);
    if (kWay == Way::kRead && mine && moved > 0) {
      simt::copy_to_near(warp, alone, buffer.begin + done, part, static_cast<uint64_t>(moved));
    }
    warp.sync();
    if (served != 0 && warp.thread_rank() == 0) release_bounce(bounce);
    if (mine) {
      done += static_cast<uint64_t>(simt::max<int64_t>(moved, 0));
      result = done != 0 ? static_cast<int64_t>(done) : moved;
      waiting = moved == static_cast<int64_t>(wanted) && done < buffer.bytes;
    } else if (direct) {
      result = moved;
    }
    direct = false;
    deadline = simt::Deadline::after_ns(fs.lock_timeout_ns);
    backoff.reset();
  }
  return result;
}

/// Of a request by one lane.
GOFS_HD inline NearBuffer near_buffer(const void* begin, uint64_t bytes) {
  return {static_cast<uint8_t*>(const_cast<void*>(begin)), bytes, simt::space_of(begin, bytes)};
}

}  // namespace detail

/// pread_lanes() where some buffers may be in shared or local memory.
GOFS_NOINLINE GOFS_HD inline int64_t pread_lanes_near(simt::AnyWarp auto warp, Filesystem& fs,
                                                      const ReadRequest& request) {
  const detail::NearBuffer buffer = detail::near_buffer(request.buffer, request.bytes);
  return detail::move_near<detail::Way::kRead>(
      warp, fs, buffer, [&](uint8_t* part, uint64_t bytes, uint64_t done) {
        return detail::call_pread_lanes(warp, fs, {request.fd, part, bytes, request.offset + done});
      });
}

/// pwrite_lanes() where some buffers may be in shared, local or constant memory.
GOFS_NOINLINE GOFS_HD inline int64_t pwrite_lanes_near(simt::AnyWarp auto warp, Filesystem& fs,
                                                       const WriteRequest& request) {
  const detail::NearBuffer buffer = detail::near_buffer(request.buffer, request.bytes);
  return detail::move_near<
      detail::Way::kWrite>(warp, fs, buffer, [&](uint8_t* part, uint64_t bytes, uint64_t done) {
    return detail::call_pwrite_lanes(warp, fs, {request.fd, part, bytes, request.offset + done});
  });
}

/// write_lanes() where some buffers may be in shared, local or constant memory. One that takes
/// several calls has its range of the file from the start, unless it appends: then each of them
/// does, and others may append in between.
GOFS_NOINLINE GOFS_HD inline int64_t write_lanes_near(simt::AnyWarp auto warp, Filesystem& fs,
                                                      const WriteRequest& request) {
  const detail::NearBuffer buffer = detail::near_buffer(request.buffer, request.bytes);
  const detail::NearBuffer nothing{nullptr, 0, simt::AddressSpace::kGlobal};
  Descriptor* const descriptor = find_writable(warp, fs, request.fd);
  const bool many = detail::is_near(buffer.space) && buffer.bytes > kBounceBytesMax &&
                    descriptor != nullptr && (descriptor->flags & kOpenAppend) == 0;
  uint64_t offset = 0;
  const int error = many ? detail::take_position(*descriptor, buffer.bytes, offset) : 0;
  int64_t result = detail::move_near<detail::Way::kWrite>(
      warp, fs, many ? nothing : buffer, [&](uint8_t* part, uint64_t bytes, uint64_t) {
        return write_lanes(warp, fs, WriteRequest{request.fd, part, bytes, 0});
      });
  if (!warp.any(many)) return result;
  const int64_t placed = detail::move_near<detail::Way::kWrite>(
      warp, fs, many && error == 0 ? buffer : nothing,
      [&](uint8_t* part, uint64_t bytes, uint64_t done) {
        return detail::call_pwrite_lanes(warp, fs, {request.fd, part, bytes, offset + done});
      });
  if (many) result = error < 0 ? error : placed;
  return result;
}

}  // namespace gofs::vfs
