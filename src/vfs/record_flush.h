// SPDX-License-Identifier: Apache-2.0
//
// Flushing a record buffer: what is filled goes to the end of the file together, at once or as
// other writes do. Any warp that waits for its record may do so; one at a time does.
//
// Inside, it takes the locks that an append takes, with the buffer's lock in its hands. No warp
// waits for the buffer's lock, and none has another lock when it takes a place in the stream.
#pragma once

#include "vfs/record_at_once.h"
#include "vfs/record_buffers.h"

namespace gofs::vfs::detail {

/// Stores a run, or, where there is no room for all of it, as many of the first records as there is
/// room for. Collective, uniform. 0, or a negative errno and nothing is stored; `run` is what is.
GOFS_NOINLINE GOFS_HD inline int store_or_less(simt::AnyWarp auto warp, Filesystem& fs,
                                               OpenInode& open, RecordBuffer& buffer,
                                               RecordRun& run) {
  for (;;) {
    const int error = store_run(warp, fs, open, buffer, run);
    warp.sync();
    if (error != -ENOSPC || run.tickets == 1) return error;
    run = first_half(buffer, run);
  }
}

/// Puts what is filled into the file, by a caller that has just taken the buffer's lock, and
/// releases it. `own_end` is the position of the end of the warp's own record, which waits.
/// Collective, uniform. 0, or the verdict of that record.
GOFS_NOINLINE GOFS_HD inline int flush_records(simt::AnyWarp auto warp, Filesystem& fs,
                                               RecordBuffer& buffer, uint64_t own_end) {
  const bool leader = warp.thread_rank() == 0;
  RecordRun run = find_filled(warp, buffer);
  const uint32_t owner = warp.shfl(simt::load_relaxed(buffer.owner), 0);
  const bool is_long = is_stream_long(buffer, run);
  int error = 0;
  if (run.tickets != 0) {
    OpenInode& open = fs.open_inodes[owner - 1];
    const bool unlocks = !run.ends && !is_long;
    if (!store_at_once(warp, fs, open, buffer, run, {false, unlocks})) {
      const uint32_t found = run.tickets;
      error = store_or_less(warp, fs, open, buffer, run);
      run.ends = run.ends && run.tickets == found;
      if (error == 0 && leader) publish_flushed(simt::Release(), buffer, run);
    } else if (unlocks) {
      return 0;
    }
  }
  warp.sync();
  if (error == 0 && (run.ends || is_long)) error = -EAGAIN;
  if (leader) {
    const bool waits = own_end > (simt::load_relaxed(buffer.flushed) & ~kRecordsSettled);
    if (error < 0) {
      settle(buffer, error, waits ? 1 : 0);
      // Whose file has been closed has no records.
      const uint32_t still = simt::load_relaxed(buffer.owner);
      if (still != 0) begin_stream(fs, buffer, still);
    }
    simt::unlock(buffer.flushing);  // [R4]
    if (!waits) error = 0;
  }
  return warp.shfl(error, 0);
}

/// Whether a record lies within the block in which the file ends, whose page has what the file has,
/// so that it need not go through the stream's memory. By the flusher, of the next place.
GOFS_HD inline bool goes_to_page(const RecordBuffer& buffer, const RecordPlace& place) {
  const uint64_t offset = place.origin + place.from;
  const uint64_t in_block = offset & (kBlockBytes - 1);
  return in_block != 0 && in_block + (place.to - place.from) <= kBlockBytes &&
         buffer.tail.end == offset && buffer.tail.clean != 0;
}

/// Puts a record whose place is the next one into the file without its bytes having been in the
/// stream's memory, if that can be at once. Collective, uniform, by a caller that holds the
/// buffer's lock, and has released it where the answer is true. `copy` as in put_record().
template <typename Copy>
GOFS_HD bool store_alone(simt::AnyWarp auto warp, Filesystem& fs, OpenInode& open,
                         RecordBuffer& buffer, const RecordPlace& place, Copy copy) {
  if (!goes_to_page(buffer, place)) return false;
  const uint64_t offset = place.origin + place.from;
  warp.sync();  // all lanes have looked
  if (warp.thread_rank() == 0) buffer.tail.clean = 0;
  copy(buffer.page(buffer.tail.page) + offset % kBlockBytes, uint64_t{0}, place.to - place.from);
  warp.sync();
  return store_at_once(warp, fs, open, buffer, {place.from, place.to, 1, false, place.of_user},
                       {true, true});
}

}  // namespace gofs::vfs::detail
