// SPDX-License-Identifier: Apache-2.0
//
// Metadata blocks by the warp: with_pages() gives each lane the page it asks for. Lanes that want
// the same page share one look-up and one pin; what is missing is fetched for the whole warp with
// one doorbell. This is the level-synchronous step of the paper's data-pointer traversal (GoFS,
// SOSP'25, section 3.3): callers go down one level per call.
#pragma once

#include "f2fs/volume.h"

namespace gofs::f2fs {

namespace detail {

/// Moves one block a lane between `block` and `buffer`; what is written `durably` is so when this
/// returns. Collective.
GOFS_HD inline int move_blocks(simt::AnyWarp auto warp, Volume& volume, uint32_t lanes,
                               format::nvme::IoOpcode opcode, uint32_t block, void* buffer,
                               bool durably) {
  const nvme::Route route = nvme::pick_route(volume.array);
  const uint32_t shift = kBlockShift - route.lba_shift;
  nvme::Command command{};
  command.opcode = opcode;
  command.force_unit_access = durably;
  command.lba = uint64_t{block} << shift;
  command.lba_count = 1u << shift;
  command.buffer = buffer;
  command.bytes = kBlockBytes;
  return nvme::to_errno(nvme::execute(warp, route, lanes, command));
}

}  // namespace detail

/// Reads one block a lane from `block` into `buffer`, which is block-aligned. Collective. Each lane
/// in `lanes` returns 0 or a negative errno.
GOFS_NOINLINE GOFS_HD inline int read_blocks(simt::AnyWarp auto warp, Volume& volume,
                                             uint32_t lanes, uint32_t block, void* buffer) {
  return detail::move_blocks(warp, volume, lanes, format::nvme::IoOpcode::kRead, block, buffer,
                             false);
}

/// Writes one block a lane at `block` from `buffer`, which is block-aligned. Collective. Each lane
/// in `lanes` returns 0 or a negative errno. What was written is durable after flush_device() only.
GOFS_NOINLINE GOFS_HD inline int write_blocks(simt::AnyWarp auto warp, Volume& volume,
                                              uint32_t lanes, uint32_t block, const void* buffer) {
  return detail::move_blocks(warp, volume, lanes, format::nvme::IoOpcode::kWrite, block,
                             const_cast<void*>(buffer), false);
}

/// The same, and durable when it returns 0, without any flush. What else was written is not.
GOFS_NOINLINE GOFS_HD inline int write_blocks_durably(simt::AnyWarp auto warp, Volume& volume,
                                                      uint32_t lanes, uint32_t block,
                                                      const void* buffer) {
  return detail::move_blocks(warp, volume, lanes, format::nvme::IoOpcode::kWrite, block,
                             const_cast<void*>(buffer), true);
}

/// Makes durable all that was written by commands which have returned. Collective, uniform. 0 or a
/// negative errno.
GOFS_NOINLINE GOFS_HD inline int flush_device(simt::AnyWarp auto warp, Volume& volume) {
  return nvme::flush(warp, volume.array);
}

/// How often who looks for a page gives way to who wants to change it.
inline constexpr uint32_t kTurnsToGiveWay = 64;

/// Calls `use(const uint8_t* page)` on each lane in `lanes` with the page of its `key`, which stays
/// valid for the call. `resolve(lanes, block)` is called collectively for pages that are not in
/// memory and gives each of those lanes the block to read, or an error; `check(page, block)` looks
/// at a page that was just read and returns 0 or a negative errno.
///
/// Collective, and if every lane of the warp asks for the same key, so is `use`. Returns 0 or a
/// negative errno per lane; `use` was called if and only if it is 0.
template <typename Resolve, typename Check, typename Use>
GOFS_HD int with_pages(simt::AnyWarp auto warp, Volume& volume, uint32_t lanes, uint64_t key,
                       Resolve resolve, Check check, Use use) {
  const PageCache& cache = volume.cache;
  const uint32_t rank = warp.thread_rank();
  bool wanted = (lanes >> rank & 1u) != 0;
  int result = 0;
  const simt::Deadline deadline = simt::Deadline::after_ns(kFrameTimeoutNs);
  simt::Backoff backoff;
  for (uint32_t turn = 0; warp.any(wanted); ++turn) {
    // One leader for all lanes that want the same page.
    const uint32_t same = warp.match_any(wanted ? key : uint64_t{rank});
    const uint32_t leader_rank = simt::lowest_bit(same);
    const bool leader = wanted && leader_rank == rank;
    int error = 0;
    uint32_t frame = leader ? find_frame(cache, key) : kNoFrame;

    // What is missing is looked up before anything is pinned: see page_cache.h.
    const uint32_t missing = warp.ballot(leader && frame == kNoFrame);
    bool mine_missing = (missing >> rank & 1u) != 0;
    uint32_t block = 0;
    uint32_t cleaned_before = 0;
    if (missing != 0) {
      if (mine_missing) cleaned_before = cleaned_count(cache, key);
      const int resolved = resolve(missing, block);
      if (mine_missing && resolved < 0) {
        error = resolved;
        mine_missing = false;
      }
    }
    bool fetched = false;
    bool pinned =
        leader && frame != kNoFrame && pin_frame(cache, frame, key, turn < kTurnsToGiveWay);
    if (warp.any(mine_missing)) {
      frame = mine_missing ? claim_frame(cache, key) : frame;
      if (mine_missing && frame != kNoFrame && cleaned_count(cache, key) != cleaned_before) {
        abandon_frame(cache, frame);  // it may have moved since
        frame = kNoFrame;
      }
      const bool claimed = mine_missing && frame != kNoFrame;
      const uint32_t loading = warp.ballot(claimed);
      if (loading != 0) {
        const int read =
            read_blocks(warp, volume, loading, block, claimed ? cache.page(frame) : nullptr);
        if (claimed) {
          error = read < 0 ? read : check(static_cast<const uint8_t*>(cache.page(frame)), block);
          if (error < 0) {
            abandon_frame(cache, frame);
          } else {
            publish_frame(cache, frame);
            fetched = pinned = true;
          }
        }
      }
    }

    warp.sync();  // What the leader acquired with its pin, its lanes may read.
    error = warp.shfl(error, leader_rank);
    const bool ready = warp.shfl(pinned ? 1u : 0u, leader_rank) != 0;
    const uint32_t shared_frame = warp.shfl(frame, leader_rank);
    if (wanted && error < 0) {
      result = error;
      wanted = false;
    }
    if (wanted && ready) {
      use(static_cast<const uint8_t*>(cache.page(shared_frame)));
      wanted = false;
    }
    warp.sync();  // All have read before the pin goes.
    if (pinned) unpin(cache, frame);
    count_pages_found(warp, volume.cache_counts, key, pinned && !fetched, fetched);
    if (warp.any(wanted)) {
      if (warp.any(deadline.passed())) return wanted ? -EBUSY : result;
      backoff.pause();
    }
  }
  return result;
}

/// Pages that are known by their block address, such as SIT blocks. `block` lies within the device
/// (the caller has checked).
template <typename Use>
GOFS_HD int with_blocks(simt::AnyWarp auto warp, Volume& volume, uint32_t lanes, uint32_t block,
                        Use use) {
  return with_pages(
      warp, volume, lanes, page_key(PageKind::kBlock, block),
      [block](uint32_t, uint32_t& where) {
        where = block;
        return 0;
      },
      [](const uint8_t*, uint32_t) { return 0; }, use);
}

}  // namespace gofs::f2fs
