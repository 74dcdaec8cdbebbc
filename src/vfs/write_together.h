// SPDX-License-Identifier: Apache-2.0
//
// A write that the warps of a block or of a grid share (simt/crew.h): one of them locks the range
// and prepares the file, all of them write their rounds of it (write.h), and all give the same
// answer. It is one hold of the range, so two such writes that overlap never mix. A write of at
// most a block is too little to be shared: one of them makes the call that it would make alone, so
// that it goes over what is there by the same rule (write_blocks.h).
//
// A file that grows has its new size as soon as a round behind the old end is there, whose warp may
// be ahead of others: only stat(), and who mounts the volume after a crash, may find holes there
// that are yet to be written. Nobody reads them, since the range is locked.
#pragma once

#include "vfs/read_together.h"
#include "vfs/write.h"

namespace gofs::vfs {

namespace detail {

/// What `call(warp)`, made by one warp of `crew`, answers, for all of them.
template <typename Crew, typename Call>
GOFS_HD int64_t write_by_one(const Crew& crew, SharedWrite& shared, Call call) {
  if (crew.index() == 0) {
    const int64_t result = call(crew.warp());
    if (crew.warp().thread_rank() == 0) shared.result = result;
  }
  crew.sync();
  return shared.result;
}

/// The part of one warp alone, before the others begin. Collective, uniform.
GOFS_NOINLINE GOFS_HD inline void begin_write_together(simt::AnyWarp auto warp, Filesystem& fs,
                                                       SharedWrite& shared, Descriptor* descriptor,
                                                       uint64_t bytes, uint64_t offset) {
  SharedWrite begun{0, bytes, offset, nullptr, {}, kNoFailure, 0, false};
  OpenInode& open = fs.open_inodes[descriptor->open_inode];
  const bool append = (descriptor->flags & kOpenAppend) != 0;
  int error = prepare_to_write(warp, fs, open, bytes);
  if (error == 0) {
    error = lock_to_write(warp, open, bytes, append, fs.lock_timeout_ns, begun.offset, begun.hold);
  }
  if (error == 0) {
    f2fs::Inode& inode = open.inode;
    begun.size_before = warp.shfl(simt::load_relaxed(inode.size_bytes), 0);
    if (begun.offset < f2fs::kFileBytesMax) {
      begun.open = &open;
      begun.bytes = simt::min(bytes, f2fs::kFileBytesMax - begun.offset);
      error = operate(warp, fs, kPagesToBeginWrite, [&] {
        return begin_write(warp, fs, inode, begun.offset, begun.offset + begun.bytes, time_now(fs));
      });
      begun.in_inode = inode.has_inline_data();
    } else {
      error = -EFBIG;
    }
    if (error < 0) {
      begun.open = nullptr;
      unlock_exclusive(warp, open.lock, begun.hold);
    }
  }
  begun.result = error;
  warp.sync();
  if (warp.thread_rank() == 0) shared = begun;
}

/// The part of one warp alone, after the others: takes off what the file has grown by behind the
/// bytes that are good, and lets the range go. Collective, uniform. The result of the write.
GOFS_NOINLINE GOFS_HD inline int64_t end_write_together(simt::AnyWarp auto warp, Filesystem& fs,
                                                        const SharedWrite& shared) {
  f2fs::Inode& inode = shared.open->inode;
  const int64_t result =
      io_outcome(shared.bytes, unpack_failure(simt::load_relaxed(shared.failure)));
  const uint64_t good = result < 0 ? 0 : static_cast<uint64_t>(result);
  if (good < shared.bytes) {
    const uint64_t wanted = simt::max(shared.size_before, good == 0 ? 0 : shared.offset + good);
    const uint64_t size = warp.shfl(simt::load_relaxed(inode.size_bytes), 0);
    // Who hears that the write has failed does not hear whether this did.
    if (wanted < size) (void)cut_locked(warp, fs, inode, wanted);
  }
  unlock_exclusive(warp, shared.open->lock, shared.hold);
  return result;
}

/// This warp's share of all parts, one after the other: a block in which two of them meet is not
/// written by two warps at once. By all warps of `crew`.
template <typename Crew>
GOFS_HD void write_parts(const Crew& crew, Filesystem& fs, SharedWrite& shared,
                         const WriteSource& source) {
  const auto warp = crew.warp();
  // Bytes in an inode are too few to be shared, and its page is changed as one.
  const uint32_t sharers = shared.in_inode ? 1 : crew.count();
  uint64_t done = 0;
  for (int i = 0; i < source.count && done < shared.bytes; ++i) {
    const uint64_t part = simt::min(source.parts[i].bytes, shared.bytes - done);
    if (part == 0) continue;
    if (crew.index() < sharers) {
      const auto* const from = static_cast<const uint8_t*>(source.parts[i].base);
      IoFailure failed = write_striped(warp, fs, shared.open->inode, from,
                                       {part, shared.offset + done, crew.index(), sharers, 0});
      failed.at += done;
      if (failed.error != 0 && warp.thread_rank() == 0) {
        simt::AtomicRef<uint64_t>(shared.failure)
            .fetch_min(pack_failure(failed), simt::memory_order_relaxed);
      }
    }
    done += part;
    crew.sync();
    // One of a later part may be there already, by a warp that is ahead.
    if (unpack_failure(simt::load_relaxed(shared.failure)).at < done) break;
  }
}

/// The writing itself, by all warps of `crew`; `descriptor` is open for writing.
template <typename Crew>
GOFS_HD int64_t write_open_together(const Crew& crew, Filesystem& fs, SharedWrite& shared,
                                    Descriptor* descriptor, const WriteSource& source,
                                    uint64_t offset, bool moves_position) {
  const auto warp = crew.warp();
  const bool leads = crew.index() == 0;
  if (leads) begin_write_together(warp, fs, shared, descriptor, source.bytes, offset);
  crew.sync();
  if (shared.result < 0) return shared.result;
  write_parts(crew, fs, shared, source);
  if (leads) {
    int64_t result = end_write_together(warp, fs, shared);
    const bool append = (descriptor->flags & kOpenAppend) != 0;
    if (moves_position && append && result > 0 && warp.thread_rank() == 0) {
      simt::store_relaxed(descriptor->position, shared.offset + static_cast<uint64_t>(result));
    }
    const int synced = result > 0 ? sync_if_asked(warp, fs, *descriptor) : 0;
    if (synced < 0) result = synced;
    if (warp.thread_rank() == 0) shared.result = result;
  }
  crew.sync();
  return shared.result;
}

}  // namespace detail

/// pwritev() by all warps of `crew`, with the same arguments, and `parts` that all of them reach,
/// where all have come, with their buffers filled, and use `shared` for nothing else. The result of
/// pwritev(), the same everywhere: where one warp could not go on, the bytes before its round are
/// good. A file that grew ends there again, also without what was reserved behind its end; what it
/// had before the write may be old or new.
template <typename Crew>
GOFS_HD int64_t pwritev_by_all(const Crew& crew, Filesystem& fs, SharedWrite& shared, int fd,
                               const IoVector* parts, int count, uint64_t offset) {
  Descriptor* const descriptor = find_writable(fs, fd);
  if (descriptor == nullptr) return -EBADF;
  const int64_t total = total_bytes(parts, count);
  if (total <= 0) return offset > kOffsetMax ? -EINVAL : total;
  const auto bytes = static_cast<uint64_t>(total);
  if (offset > kOffsetMax || bytes > kOffsetMax - offset) return -EINVAL;
  if (bytes <= kBlockBytes) {
    return detail::write_by_one(crew, shared, [&](simt::AnyWarp auto warp) {
      return detail::call_pwritev(warp, fs, fd, parts, count, offset);
    });
  }
  return detail::write_open_together(crew, fs, shared, descriptor, {parts, count, bytes}, offset,
                                     false);
}

/// The same by a crew that comes together first.
template <typename Crew>
GOFS_HD int64_t pwritev_together(const Crew& crew, Filesystem& fs, SharedWrite& shared, int fd,
                                 const IoVector* parts, int count, uint64_t offset) {
  crew.sync();  // everybody has taken the outcome of a former write, and filled his buffer
  return pwritev_by_all(crew, fs, shared, fd, parts, count, offset);
}

/// pwrite() by all warps of `crew`. As pwritev_together().
template <typename Crew>
GOFS_HD int64_t pwrite_together(const Crew& crew, Filesystem& fs, SharedWrite& shared, int fd,
                                const void* buffer, uint64_t bytes, uint64_t offset) {
  const IoVector part = detail::one_part(buffer, bytes);
  return pwritev_together(crew, fs, shared, fd, &part, 1, offset);
}

/// writev() by all warps of `crew`, with the same arguments. As pwritev_by_all().
template <typename Crew>
GOFS_HD int64_t writev_by_all(const Crew& crew, Filesystem& fs, SharedWrite& shared, int fd,
                              const IoVector* parts, int count) {
  const auto warp = crew.warp();
  Descriptor* const descriptor = find_writable(fs, fd);
  if (descriptor == nullptr) return -EBADF;
  const int64_t total = total_bytes(parts, count);
  if (total <= 0) return total;
  const auto bytes = static_cast<uint64_t>(total);
  if (bytes <= kBlockBytes) {
    return detail::write_by_one(crew, shared, [&](simt::AnyWarp auto caller) {
      return writev(caller, fs, fd, parts, count);
    });
  }
  uint64_t offset = 0;
  if ((descriptor->flags & kOpenAppend) == 0) {
    if (crew.index() == 0 && warp.thread_rank() == 0) {
      shared.offset = simt::add_relaxed(descriptor->position, bytes);
    }
    crew.sync();
    offset = shared.offset;
    crew.sync();  // everybody has it
    if (offset > kOffsetMax || bytes > kOffsetMax - offset) return -EFBIG;
  }
  return detail::write_open_together(crew, fs, shared, descriptor, {parts, count, bytes}, offset,
                                     true);
}

/// The same by a crew that comes together first.
template <typename Crew>
GOFS_HD int64_t writev_together(const Crew& crew, Filesystem& fs, SharedWrite& shared, int fd,
                                const IoVector* parts, int count) {
  crew.sync();  // as in pwritev_together()
  return writev_by_all(crew, fs, shared, fd, parts, count);
}

/// write() by all warps of `crew`. As pwritev_together().
template <typename Crew>
GOFS_HD int64_t write_together(const Crew& crew, Filesystem& fs, SharedWrite& shared, int fd,
                               const void* buffer, uint64_t bytes) {
  const IoVector part = detail::one_part(buffer, bytes);
  return writev_together(crew, fs, shared, fd, &part, 1);
}

}  // namespace gofs::vfs
