// SPDX-License-Identifier: Apache-2.0
//
// Reads and writes by a warp, or by the warps of a block together, whose buffers are not all in
// memory that the SSD reaches, but in their shared memory; a group of one thread has its local
// memory as well. As near_lanes.h, but all threads of the group copy: of a request of up to
// kBounceBytesMax there is one ordinary call, of a longer one several, one after the other.
#pragma once

#include "vfs/near_lanes.h"
#include "vfs/write_together.h"

namespace gofs::vfs {

/// What the warps of a group tell each other of their spare memory, in memory that all of them
/// reach. It needs no first value.
struct SharedBounce {
  uint64_t word;
};

namespace detail {

/// The `value` of the group's first lane, for all. By all warps of `group`.
template <typename WarpGroup>
GOFS_HD uint64_t tell(const WarpGroup& group, SharedBounce& shared, uint64_t value) {
  if (group.index() == 0 && group.warp().thread_rank() == 0) shared.word = value;
  group.sync();
  const uint64_t told = shared.word;
  group.sync();  // all have it
  return told;
}
template <simt::AnyWarp Lanes>
GOFS_HD uint64_t tell(const simt::SingleWarpGroup<Lanes>& group, SharedBounce&, uint64_t value) {
  return group.warp().shfl(value, 0);
}

/// Takes spare memory of `bytes` for the group; what the first lane has of `bounce` is to be
/// released. By all warps of `group`. Null: others had it all for as long as locks are waited for.
template <typename WarpGroup>
GOFS_HD uint8_t* take_together(const WarpGroup& group, Filesystem& fs, SharedBounce& shared,
                               uint64_t bytes, Bounce& bounce) {
  bounce = Bounce{};
  if (group.index() == 0 && group.warp().thread_rank() == 0) {
    bounce = take_bounce(fs.bounces, bytes, fs.lock_timeout_ns);
  }
  const uint64_t memory = tell(group, shared, reinterpret_cast<uint64_t>(bounce.memory));
  group.sync();  // whoever had it has done with it, for all lanes
  return reinterpret_cast<uint8_t*>(memory);
}

/// Which of the threads of `group` is calling.
template <typename WarpGroup>
GOFS_HD simt::CopyShare share_of(const WarpGroup& group) {
  const auto warp = group.warp();
  return {group.index() * warp.size() + warp.thread_rank(), group.count() * warp.size()};
}

/// Copies `bytes` of the parts, from the `from`-th on, to `target`. By each thread its share.
GOFS_HD inline void gather_near(simt::AnyWarp auto warp, const simt::CopyShare& share,
                                const WriteSource& source, uint64_t from, uint64_t bytes,
                                uint8_t* target) {
  for (int i = 0; i < source.count && bytes != 0; ++i) {
    const uint64_t part = source.parts[i].bytes;
    const uint64_t skip = simt::min(from, part);
    const uint64_t count = simt::min(part - skip, bytes);
    from -= skip;
    bytes -= count;
    if (count == 0) continue;
    const auto* const base = static_cast<const uint8_t*>(source.parts[i].base);
    simt::copy_from_near(warp, share, target, base + skip, count);
    target += count;
  }
}

/// Moves `bytes` in as many calls of `move(memory, bytes, done)` as it takes, by all warps of
/// `group`, between what `before(memory, bytes, done)` and `after(memory, moved, done)` copy.
template <typename WarpGroup, typename Before, typename Move, typename After>
GOFS_HD int64_t move_near_together(const WarpGroup& group, Filesystem& fs, SharedBounce& shared,
                                   uint64_t bytes, Before before, Move move, After after) {
  const bool works = group.index() < group.count();
  uint64_t done = 0;
  while (done < bytes) {
    const uint64_t wanted = simt::min(bytes - done, kBounceBytesMax);
    Bounce bounce{};
    uint8_t* const memory = take_together(group, fs, shared, wanted, bounce);
    if (memory == nullptr) return done != 0 ? static_cast<int64_t>(done) : -EBUSY;
    if (works) before(memory, wanted, done);
    group.sync();
    const int64_t moved = move(memory, wanted, done);
    if (works && moved > 0) after(memory, static_cast<uint64_t>(moved), done);
    group.sync();
    if (bounce.bytes != 0) release_bounce(bounce);
    if (moved < 0) return done != 0 ? static_cast<int64_t>(done) : moved;
    done += static_cast<uint64_t>(moved);
    if (static_cast<uint64_t>(moved) < wanted) break;
  }
  return static_cast<int64_t>(done);
}

/// Whether the threads of `group` all reach memory of that kind by the same pointer.
template <typename WarpGroup>
GOFS_HD bool is_near_all(const WarpGroup& group, simt::AddressSpace space) {
  const bool alone = group.count() == 1 && group.warp().size() == 1;
  return space == simt::AddressSpace::kBlock || (alone && space == simt::AddressSpace::kLane);
}

/// A read by `group`; `read(memory, bytes, offset)` is the ordinary call.
template <typename WarpGroup, typename Read>
GOFS_HD int64_t read_near_together(const WarpGroup& group, Filesystem& fs, SharedBounce& shared,
                                   void* buffer, uint64_t bytes, uint64_t offset, Read read) {
  if (bytes == 0) return read(nullptr, 0, offset);
  if (!is_near_all(group, simt::space_of(buffer, bytes))) return -EFAULT;
  const simt::CopyShare share = share_of(group);
  return move_near_together(
      group, fs, shared, bytes, [](uint8_t*, uint64_t, uint64_t) {},
      [&](uint8_t* memory, uint64_t count, uint64_t done) {
        return read(memory, count, offset + done);
      },
      [&](const uint8_t* memory, uint64_t count, uint64_t done) {
        simt::copy_to_near(group.warp(), share, static_cast<uint8_t*>(buffer) + done, memory,
                           count);
      });
}

/// Whether `group` reaches all of the parts for reading: 0 or -EFAULT.
template <typename WarpGroup>
GOFS_HD int check_near_parts(const WarpGroup& group, const IoVector* parts, int count) {
  for (int i = 0; i < count; ++i) {
    if (parts[i].bytes == 0) continue;
    const simt::AddressSpace space = simt::space_of(parts[i].base, parts[i].bytes);
    const bool common =
        space == simt::AddressSpace::kGlobal || space == simt::AddressSpace::kConstant;
    if (!common && !is_near_all(group, space)) return -EFAULT;
  }
  return 0;
}

/// A write by `group`; `write(parts, count, done)` is the ordinary call.
template <typename WarpGroup, typename Write>
GOFS_HD int64_t write_near_together(const WarpGroup& group, Filesystem& fs, SharedBounce& shared,
                                    const IoVector* parts, int count, Write write) {
  const int64_t total = total_bytes(parts, count);
  if (total < 0) return total;
  if (total == 0) return write(parts, count, 0);
  if (check_near_parts(group, parts, count) < 0) return -EFAULT;
  const simt::CopyShare share = share_of(group);
  const WriteSource source{parts, count, static_cast<uint64_t>(total)};
  return move_near_together(
      group, fs, shared, source.bytes,
      [&](uint8_t* memory, uint64_t bytes, uint64_t done) {
        gather_near(group.warp(), share, source, done, bytes, memory);
      },
      [&](const uint8_t* memory, uint64_t bytes, uint64_t done) {
        const IoVector part = one_part(memory, bytes);
        return write(&part, 1, done);
      },
      [](const uint8_t*, uint64_t, uint64_t) {});
}

/// The same at the descriptor's position: `write_here(parts, count)` writes there, `write_at(parts,
/// count, offset)` elsewhere.
template <typename WarpGroup, typename Here, typename At>
GOFS_HD int64_t write_near_at_position(const WarpGroup& group, Filesystem& fs, SharedBounce& shared,
                                       int fd, const IoVector* parts, int count, Here write_here,
                                       At write_at) {
  const int64_t total = total_bytes(parts, count);
  Descriptor* const descriptor = find_writable(group.warp(), fs, fd);
  const bool many = total > static_cast<int64_t>(kBounceBytesMax) && descriptor != nullptr &&
                    (descriptor->flags & kOpenAppend) == 0;
  if (!many) {
    return write_near_together(
        group, fs, shared, parts, count,
        [&](const IoVector* part, int n, uint64_t) { return write_here(part, n); });
  }
  if (check_near_parts(group, parts, count) < 0) return -EFAULT;
  const auto bytes = static_cast<uint64_t>(total);
  uint64_t offset = 0;
  if (group.index() == 0 && group.warp().thread_rank() == 0) {
    offset = simt::add_relaxed(descriptor->position, bytes);
  }
  offset = tell(group, shared, offset);
  if (offset > kOffsetMax || bytes > kOffsetMax - offset) return -EFBIG;
  return write_near_together(
      group, fs, shared, parts, count,
      [&](const IoVector* part, int n, uint64_t done) { return write_at(part, n, offset + done); });
}

}  // namespace detail

/// pread() into memory that is not global. Collective, uniform.
GOFS_NOINLINE GOFS_HD inline int64_t pread_near(simt::AnyWarp auto warp, Filesystem& fs, int fd,
                                                void* buffer, uint64_t bytes, uint64_t offset) {
  SharedBounce none{};
  return detail::read_near_together(simt::SingleWarpGroup(warp), fs, none, buffer, bytes, offset,
                                    [&](void* memory, uint64_t count, uint64_t at) {
                                      return pread(warp, fs, fd, memory, count, at);
                                    });
}

/// pwritev() of parts that are not all in global memory. Collective, uniform.
GOFS_NOINLINE GOFS_HD inline int64_t pwritev_near(simt::AnyWarp auto warp, Filesystem& fs, int fd,
                                                  const IoVector* parts, int count,
                                                  uint64_t offset) {
  SharedBounce none{};
  return detail::write_near_together(simt::SingleWarpGroup(warp), fs, none, parts, count,
                                     [&](const IoVector* part, int n, uint64_t done) {
                                       return detail::call_pwritev(warp, fs, fd, part, n,
                                                                   offset + done);
                                     });
}

/// writev() of parts that are not all in global memory. Collective, uniform.
GOFS_NOINLINE GOFS_HD inline int64_t writev_near(simt::AnyWarp auto warp, Filesystem& fs, int fd,
                                                 const IoVector* parts, int count) {
  SharedBounce none{};
  return detail::write_near_at_position(
      simt::SingleWarpGroup(warp), fs, none, fd, parts, count,
      [&](const IoVector* part, int n) { return writev(warp, fs, fd, part, n); },
      [&](const IoVector* part, int n, uint64_t at) {
        return detail::call_pwritev(warp, fs, fd, part, n, at);
      });
}

/// pread_together() into memory of the block. By all warps of `group`.
template <typename WarpGroup>
GOFS_NOINLINE GOFS_HD int64_t pread_together_near(const WarpGroup& group, Filesystem& fs,
                                                  SharedBounce& bounce, SharedRead& shared, int fd,
                                                  void* buffer, uint64_t bytes, uint64_t offset) {
  return detail::read_near_together(
      group, fs, bounce, buffer, bytes, offset, [&](void* memory, uint64_t count, uint64_t at) {
        return pread_together(group, fs, shared, fd, memory, count, at);
      });
}

/// pwritev_together() of parts that are not all in global memory. By all warps of `group`.
template <typename WarpGroup>
GOFS_NOINLINE GOFS_HD int64_t pwritev_together_near(const WarpGroup& group, Filesystem& fs,
                                                    SharedBounce& bounce, SharedWrite& shared,
                                                    int fd, const IoVector* parts, int count,
                                                    uint64_t offset) {
  group.sync();  // all have filled their parts of the buffer
  return detail::write_near_together(
      group, fs, bounce, parts, count, [&](const IoVector* part, int n, uint64_t done) {
        return pwritev_together(group, fs, shared, fd, part, n, offset + done);
      });
}

/// writev_together() of parts that are not all in global memory. By all warps of `group`.
template <typename WarpGroup>
GOFS_NOINLINE GOFS_HD int64_t writev_together_near(const WarpGroup& group, Filesystem& fs,
                                                   SharedBounce& bounce, SharedWrite& shared,
                                                   int fd, const IoVector* parts, int count) {
  group.sync();  // all have filled their parts of the buffer
  return detail::write_near_at_position(
      group, fs, bounce, fd, parts, count,
      [&](const IoVector* part, int n) { return writev_together(group, fs, shared, fd, part, n); },
      [&](const IoVector* part, int n, uint64_t at) {
        return pwritev_together(group, fs, shared, fd, part, n, at);
      });
}

}  // namespace gofs::vfs
