// SPDX-License-Identifier: Apache-2.0
//
// Records: small writes that append to one file, by many warps at once or by one. Each takes a
// place in the stream of the file's buffer, copies its bytes there beside others, and waits until
// they are in the file; any of those that wait writes all that is there (record_flush.h). So a
// command of the SSD, a lock and a change of the inode serve as many records as come together, each
// record is whole and in one place, and the file always ends with one.
//
// A call returns when its record is with the SSD and seen by all, as that of any write; of a
// descriptor with kOpenDataSync, when it is durable, by one fsync() for all that were flushed
// before.
#pragma once

#include "vfs/fsync.h"
#include "vfs/record_flush.h"

namespace gofs::vfs::detail {

/// Streams that a record comes to before it is appended as other writes are, since the file's end
/// is moved by others all the time.
inline constexpr uint32_t kRecordTries = 64;

/// Bytes of a file behind which it has no buffer: what is under way at once then always fits.
inline constexpr uint64_t kRecordFileBytesMax = f2fs::kFileBytesMax - (uint64_t{16} << 30);

/// Whether a write of `bytes` that appends goes through a buffer, by a warp of so many `lanes`. A
/// look only.
GOFS_HD inline bool is_record(const Filesystem& fs, const OpenInode& open, uint64_t bytes,
                              uint32_t lanes) {
  const f2fs::Inode& inode = open.inode;
  if (fs.writer == nullptr || fs.records.count == 0 || bytes == 0 || bytes > kRecordBytesMax) {
    return false;
  }
  const uint64_t size = simt::load_relaxed(inode.size_bytes);
  if (size > kRecordFileBytesMax || f2fs::check_supported(inode) < 0) return false;
  if (simt::load_relaxed(open.records) != 0) return true;
  // Whole blocks need no company, where one round takes all of them.
  const bool contended = simt::load_relaxed(open.lock.growing) != 0 ||
                         simt::load_relaxed(open.lock.holder_counts) >= kOneWriter;
  return contended || (size | bytes) % kBlockBytes != 0 || bytes >> kBlockShift > lanes;
}

/// Waits until `done(flushed)` says so, on lane 0, and flushes meanwhile what can be flushed.
/// Collective, uniform. 0, or the verdict of the place. The wait ends as copies and flushes do: the
/// locks that these take have deadlines.
template <typename Done>
GOFS_HD int wait_for_flush(simt::AnyWarp auto warp, Filesystem& fs, RecordBuffer& buffer,
                           const RecordPlace& place, Done done) {
  enum : uint32_t { kWaits, kDone, kSettled, kFlushes };
  const bool leader = warp.thread_rank() == 0;
  simt::Backoff backoff;
  for (;;) {
    uint32_t turn = kWaits;
    int verdict = 0;
    if (leader) {
      const uint64_t flushed = simt::load_acquire(buffer.flushed);  // [R3]
      if (done(flushed)) {
        turn = kDone;
      } else if ((flushed & kRecordsSettled) != 0) {
        turn = kSettled;
        verdict = take_verdict(buffer);
      } else if (may_flush(buffer) && simt::try_lock(buffer.flushing)) {  // [R4]
        turn = kFlushes;
      }
    }
    turn = warp.shfl(turn, 0);
    warp.sync();
    if (turn == kDone) return 0;
    if (turn == kSettled) return warp.shfl(verdict, 0);
    if (turn == kFlushes) {
      const int error = flush_records(warp, fs, buffer, place.end());
      if (error < 0) return error;
      backoff.reset();
    } else {
      backoff.pause();
    }
  }
}

/// Whether all before the end of a place is in the file. Also where the stream has ended since.
GOFS_HD inline bool is_flushed(uint64_t flushed, const RecordPlace& place) {
  return (flushed & ~kRecordsSettled) >= place.end();
}

/// Copies a record to its place. Collective.
template <typename Copy>
GOFS_HD void copy_to_stream(const RecordBuffer& buffer, const RecordPlace& place, Copy copy) {
  const uint64_t bytes = place.to - place.from;
  const uint64_t at = place.from & (buffer.bytes - 1);
  const uint64_t here = simt::min(bytes, buffer.bytes - at);
  copy(buffer.data + at, uint64_t{0}, here);
  if (here < bytes) copy(buffer.data, here, bytes - here);
}

/// Whether a place is the next one to be flushed, and the buffer's lock, which the warp has got
/// then, was free. One lane.
GOFS_HD inline bool try_to_lead(RecordBuffer& buffer, const RecordPlace& place) {
  if (simt::load_relaxed(buffer.flushed_tickets) != place.ticket) return false;
  if (!simt::try_lock_at_once(buffer.flushing)) return false;  // [R4]
  if (simt::load_relaxed(buffer.flushed) == place.base + place.from &&
      place.ticket + 1 < buffer.tickets_max && place.to < kStreamBytesMax) {
    return true;
  }
  simt::unlock(buffer.flushing);  // [R4]
  return false;
}

/// Puts the record of the next place into the file, by a caller that holds the buffer's lock, and
/// releases it. Collective, uniform. 0, or the verdict of the place.
template <typename Copy>
GOFS_HD int put_next_record(simt::AnyWarp auto warp, Filesystem& fs, OpenInode& open,
                            RecordBuffer& buffer, const RecordPlace& place, Copy copy) {
  if (store_alone(warp, fs, open, buffer, place, copy)) return 0;
  copy_to_stream(buffer, place, copy);
  warp.sync();
  if (warp.thread_rank() == 0) mark_filled(buffer, place, false);
  warp.sync();
  return flush_records(warp, fs, buffer, place.end());
}

/// Fills a place by `copy(target, skip, bytes)`, collectively, which copies `bytes` of the record,
/// from the `skip`-th on, and waits until it is in the file. Collective, uniform. 0 or the verdict.
template <typename Copy>
GOFS_HD int put_record(simt::AnyWarp auto warp, Filesystem& fs, RecordBuffer& buffer,
                       const RecordPlace& place, bool nothing, Copy copy) {
  int error = wait_for_flush(warp, fs, buffer, place,
                             [&](uint64_t flushed) { return has_room(buffer, place, flushed); });
  if (error < 0) return error;
  if (!nothing) copy_to_stream(buffer, place, copy);
  warp.sync();
  if (warp.thread_rank() == 0) mark_filled(buffer, place, nothing);
  return wait_for_flush(warp, fs, buffer, place,
                        [&](uint64_t flushed) { return is_flushed(flushed, place); });
}

/// Waits until the stream of `buffer`, which was closed, is open again. Collective, uniform. False:
/// it is not until the deadline.
GOFS_HD inline bool wait_for_stream(simt::AnyWarp auto warp, const RecordBuffer& buffer,
                                    uint32_t owner, const simt::Deadline& deadline) {
  simt::Backoff backoff;
  for (;;) {
    const bool open = (simt::load_relaxed(buffer.stream) & kStreamClosed) == 0 ||
                      simt::load_relaxed(buffer.owner) != owner;
    if (warp.any(warp.thread_rank() == 0 && open)) return true;
    if (warp.any(deadline.passed())) return false;
    backoff.pause();
  }
}

/// What lane 0 has, on all lanes, for a record of the caller's. Collective.
GOFS_HD inline RecordPlace place_of_leader(simt::AnyWarp auto warp, const Filesystem& fs,
                                           const RecordPlace& place) {
  return {warp.shfl(place.from, 0),         warp.shfl(place.to, 0),     warp.shfl(place.base, 0),
          warp.shfl(place.origin, 0),       warp.shfl(place.ticket, 0), warp.shfl(place.tag, 0),
          credentials_of(warp, fs).uid != 0};
}

/// Where a record, or several, went.
struct RecordEnd {
  RecordBuffer* buffer;
  uint64_t position;  // in the buffer
  uint64_t offset;    // of the record, in the file
};

/// Appends `bytes`, at most kRecordBytesMax, that `copy` copies, as put_record() says. Collective,
/// uniform. 0; -EAGAIN: it is to be appended as other writes are; or another negative errno, and
/// nothing of it is in the file.
template <typename Copy>
GOFS_HD int append_through(simt::AnyWarp auto warp, Filesystem& fs, OpenInode& open, uint64_t bytes,
                           Copy copy, RecordEnd& end) {
  const simt::Deadline deadline = simt::Deadline::after_ns(fs.lock_timeout_ns);
  const uint32_t owner = owner_number(fs, open);
  for (uint32_t tries = 0; tries < kRecordTries;) {
    RecordBuffer* const buffer = find_record_buffer(warp, fs, open);
    if (buffer == nullptr) return -EAGAIN;
    RecordPlace place{};
    auto found = static_cast<uint32_t>(PlaceFound::kClosed);
    uint32_t leads = 0;
    if (warp.thread_rank() == 0) {
      found = static_cast<uint32_t>(take_place(*buffer, owner, bytes, place));
      if (found == static_cast<uint32_t>(PlaceFound::kOwn)) {
        leads = try_to_lead(*buffer, place) ? 1 : 0;
      } else if (simt::load_relaxed(buffer->owner) != owner) {
        invalidate_buffer(fs, open, *buffer);
      }
    }
    found = warp.shfl(found, 0);
    leads = warp.shfl(leads, 0);
    warp.sync();
    if (found == static_cast<uint32_t>(PlaceFound::kClosed)) {
      if (!wait_for_stream(warp, *buffer, owner, deadline)) return -EAGAIN;
      continue;
    }
    place = place_of_leader(warp, fs, place);
    const bool own = found == static_cast<uint32_t>(PlaceFound::kOwn);
    const int error = leads != 0 ? put_next_record(warp, fs, open, *buffer, place, copy)
                                 : put_record(warp, fs, *buffer, place, !own, copy);
    if (error != -EAGAIN) {
      end = {buffer, place.end(), place.origin + place.from};
      return error;
    }
    // Of set-ID bits, other writes take what their own caller may not leave.
    if (own && place.of_user && has_setid_bits(warp, fs, open.inode.ino) != 0) return -EAGAIN;
    if (own) ++tries;
  }
  return -EAGAIN;
}

/// Makes a record durable that is in the file, together with all that were flushed by then.
/// Collective, uniform. 0 or a negative errno.
GOFS_NOINLINE GOFS_HD inline int sync_records(simt::AnyWarp auto warp, Filesystem& fs,
                                              OpenInode& open, const RecordEnd& end,
                                              f2fs::SyncScope scope) {
  RecordBuffer& buffer = *end.buffer;
  const bool leader = warp.thread_rank() == 0;
  const auto kind = static_cast<uint32_t>(scope);
  const simt::Deadline deadline = simt::Deadline::after_ns(fs.lock_timeout_ns);
  simt::Backoff backoff;
  for (;;) {
    uint32_t synced = 0;
    uint32_t lost = 0;
    if (leader) {
      synced = simt::load_acquire(buffer.synced[kind]) >= end.position ? 1 : 0;  // [R6]
      // Of a former owner that says nothing: another file has made its own records durable.
      lost = simt::load_relaxed(buffer.owned_from) >= end.position ? 1 : 0;
    }
    if (warp.shfl(lost, 0) != 0) return sync_inode(warp, fs, open.inode.ino, scope);
    if (warp.shfl(synced, 0) != 0) return 0;
    if (simt::try_lock_for_warp(warp, buffer.syncing)) break;
    // Whose turn does not come does it alone.
    if (warp.any(deadline.passed())) return sync_inode(warp, fs, open.inode.ino, scope);
    backoff.pause();
  }
  // All of this are the file's, if it has the buffer still.
  uint64_t flushed = 0;
  if (leader) {
    flushed = simt::load_acquire(buffer.flushed) & ~kRecordsSettled;  // [R3]
    if (simt::load_relaxed(buffer.owned_from) >= end.position) flushed = 0;
  }
  warp.sync();
  const int error = sync_inode(warp, fs, open.inode.ino, scope);
  warp.sync();
  if (leader) {
    const uint32_t kinds = scope == f2fs::SyncScope::kAll ? 2 : 1;
    for (uint32_t i = 0; error == 0 && i < kinds; ++i) {
      uint64_t& word = buffer.synced[i == 0 ? kind : 1 - kind];
      if (simt::load_relaxed(word) < flushed) simt::store_release(word, flushed);  // [R6]
    }
    simt::unlock(buffer.syncing);
  }
  return error;
}

/// Appends the parts, one after the other, of `bytes` in all, through the buffer of the file that
/// `descriptor` has open, as one record; `offset` becomes where it went. Collective, uniform. Bytes
/// written, all of them; -EAGAIN: it is no such record, or is to be appended as other writes are;
/// or another negative errno.
GOFS_NOINLINE GOFS_HD inline int64_t append_record(simt::AnyWarp auto warp, Filesystem& fs,
                                                   const Descriptor& descriptor,
                                                   const IoVector* parts, int count, uint64_t bytes,
                                                   uint64_t& offset) {
  OpenInode& open = fs.open_inodes[descriptor.open_inode];
  if (!warp.any(warp.thread_rank() == 0 && is_record(fs, open, bytes, warp.size()))) return -EAGAIN;
  const simt::CopyShare share{warp.thread_rank(), warp.size()};
  RecordEnd end{};
  warp.sync();  // each lane has filled its part of the record
  const int error = append_through(
      warp, fs, open, bytes,
      [&](uint8_t* target, uint64_t skip, uint64_t wanted) {
        for (int i = 0; i < count && wanted != 0; ++i) {
          const uint64_t before = simt::min(skip, parts[i].bytes);
          const uint64_t here = simt::min(parts[i].bytes - before, wanted);
          skip -= before;
          wanted -= here;
          if (here == 0) continue;
          simt::copy_any(share, target, static_cast<const uint8_t*>(parts[i].base) + before, here);
          target += here;
        }
      },
      end);
  if (error < 0) return error;
  offset = end.offset;
  if ((descriptor.flags & kOpenDataSync) != 0) {
    const int synced = sync_records(warp, fs, open, end, scope_of_flags(descriptor.flags));
    if (synced < 0) return synced;
  }
  return static_cast<int64_t>(bytes);
}

/// What a lane appends, `before` bytes behind where the first one's record begins.
struct LaneRecord {
  uint64_t before;
  uint64_t bytes;
  const uint8_t* source;
};

/// Copies `wanted` bytes of the records of `lanes`, from the `skip`-th on, to `target`. Collective.
GOFS_HD inline void copy_lane_records(simt::AnyWarp auto warp, uint32_t lanes,
                                      const LaneRecord& record, uint8_t* target, uint64_t skip,
                                      uint64_t wanted) {
  constexpr uint64_t kCopiedAlone = 1024;
  const uint64_t begin = simt::max(record.before, skip);
  const uint64_t end = simt::min(record.before + record.bytes, skip + wanted);
  const uint64_t bytes = begin < end ? end - begin : 0;
  uint8_t* const to = bytes == 0 ? target : target + (begin - skip);
  const uint8_t* const from = bytes == 0 ? record.source : record.source + (begin - record.before);
  // All at once, or one after the other.
  if (warp.all(bytes <= kCopiedAlone)) {
    if (bytes != 0) simt::copy_any({0, 1}, to, from, bytes);
    return;
  }
  const simt::CopyShare share{warp.thread_rank(), warp.size()};
  for (; lanes != 0; lanes &= lanes - 1) {
    const uint32_t lane = simt::lowest_bit(lanes);
    const uint64_t theirs = warp.shfl(bytes, lane);
    const auto source =
        reinterpret_cast<const uint8_t*>(warp.shfl(reinterpret_cast<uint64_t>(from), lane));
    auto* const place = reinterpret_cast<uint8_t*>(warp.shfl(reinterpret_cast<uint64_t>(to), lane));
    if (theirs != 0) simt::copy_any(share, place, source, theirs);
  }
}

/// Appends a record of each of the first of `lanes`, which have all opened `descriptor`, one behind
/// the other, in order of rank. Collective, uniform: those lanes; `result` of each is the bytes
/// written or a negative errno, and its `request.offset` where they went. 0: none of them.
GOFS_NOINLINE GOFS_HD inline uint32_t append_records(simt::AnyWarp auto warp, Filesystem& fs,
                                                     const Descriptor& descriptor, uint32_t lanes,
                                                     WriteRequest& request, int64_t& result) {
  OpenInode& open = fs.open_inodes[descriptor.open_inode];
  const bool asks = (lanes >> warp.thread_rank() & 1u) != 0;
  uint64_t total = 0;
  const uint64_t room = asks ? simt::min(request.bytes, kRecordBytesMax + 1) : 0;
  const uint64_t before = simt::sum_before(warp, room, total);
  const bool fits = asks && before + room <= kRecordBytesMax;
  const uint32_t others = lanes & ~warp.ballot(fits);
  lanes = others == 0 ? lanes : lanes & simt::ranks_below(simt::lowest_bit(others));
  if ((lanes & (lanes - 1)) == 0) return 0;  // one alone goes as a warp's does
  const bool mine = (lanes >> warp.thread_rank() & 1u) != 0;
  total = simt::reduce_add(warp, mine ? room : uint64_t{0});
  if (!warp.any(warp.thread_rank() == 0 && is_record(fs, open, total, warp.size()))) return 0;
  RecordEnd end{};
  warp.sync();  // each lane has filled its own buffer
  const int error = append_through(
      warp, fs, open, total,
      [&](uint8_t* target, uint64_t skip, uint64_t wanted) {
        const LaneRecord record{before, mine ? request.bytes : 0,
                                static_cast<const uint8_t*>(request.buffer)};
        copy_lane_records(warp, lanes, record, target, skip, wanted);
      },
      end);
  if (error == -EAGAIN) return 0;
  if (mine) {
    result = error < 0 ? error : static_cast<int64_t>(request.bytes);
    if (error == 0) request.offset = end.offset + before;
  }
  if (error == 0 && (descriptor.flags & kOpenDataSync) != 0) {
    const int synced = sync_records(warp, fs, open, end, scope_of_flags(descriptor.flags));
    if (mine && synced < 0) result = synced;
  }
  return lanes;
}

}  // namespace gofs::vfs::detail
