// SPDX-License-Identifier: Apache-2.0
//
// Changing metadata in memory. A page is changed by one lane that holds it exclusively, so readers
// see it before or after and never between, but for single words in nodes (store_addresses());
// afterwards it is dirty and stays in memory until a checkpoint has written it. Changes that belong
// together are made in one operation (operation.h), which keeps checkpoints away.
#pragma once

#include <type_traits>

#include "f2fs/node.h"
#include "f2fs/operation.h"

namespace gofs::f2fs {

namespace detail {

/// The frame of each lane's `key`, with `load(lanes)` for what is not in memory. What is there is
/// not loaded: that would pin it, and keep all others from taking it. Collective. Per lane 0, with
/// kNoFrame where it has gone again, or a negative errno.
template <typename Load>
GOFS_HD int find_or_load(simt::AnyWarp auto warp, const PageCache& cache, bool wanted, uint64_t key,
                         Load load, uint32_t& frame) {
  frame = wanted ? find_frame(cache, key) : kNoFrame;
  const bool missing = wanted && frame == kNoFrame;
  const uint32_t lanes = warp.ballot(missing);
  if (lanes == 0) return 0;
  const int loaded = load(lanes);
  if (missing && loaded == 0) frame = find_frame(cache, key);
  return missing ? loaded : 0;
}

}  // namespace detail

namespace detail {

/// Takes the page of the `key` of each lane in `lanes`, one for all lanes that want the same one,
/// and calls `change(taken, page, same)` collectively: on lanes that are not `taken` for nothing,
/// on the others with the page that the lanes `same` hold exclusively. It answers what it has
/// changed, as a PageChange. As change_pages().
template <typename Load, typename Change>
GOFS_HD int take_pages(simt::AnyWarp auto warp, Operation& op, uint32_t lanes, uint64_t key,
                       Load load, Change change) {
  PageCache& cache = op.volume.cache;
  const uint32_t rank = warp.thread_rank();
  bool wanted = (lanes >> rank & 1u) != 0;
  int result = 0;
  const simt::Deadline deadline = simt::Deadline::after_ns(kFrameTimeoutNs);
  simt::Backoff backoff;
  for (;;) {
    const uint32_t left = warp.ballot(wanted);
    if (left == 0) return result;
    uint32_t frame = kNoFrame;
    const int found = find_or_load(warp, cache, wanted, key, load, frame);
    if (wanted && found < 0) {
      result = found;
      wanted = false;
    }
    const uint32_t same = warp.match_any(wanted ? key : uint64_t{rank});
    const uint32_t leader = simt::lowest_bit(same);
    const bool takes = wanted && leader == rank && frame != kNoFrame;
    if (!takes || !take_frame(cache, frame, key)) frame = kNoFrame;
    count_pages_found(warp, op.volume.cache_counts, key, frame != kNoFrame, false);
    warp.sync();  // What the leader acquired, its lanes may change.
    const uint32_t shared_frame = warp.shfl(frame, leader);
    const bool taken = wanted && shared_frame != kNoFrame;
    const PageChange mine = change(taken, taken ? cache.page(shared_frame) : nullptr, same);
    if (taken) wanted = false;
    PageChange all = PageChange::kNothing;
    if ((warp.ballot(mine == PageChange::kTimes) & same) != 0) all = PageChange::kTimes;
    if ((warp.ballot(mine == PageChange::kContents) & same) != 0) all = PageChange::kContents;
    warp.sync();  // All are done before it is released.
    if (frame != kNoFrame) release_frame(op, frame, all);
    if (warp.any(wanted && deadline.passed())) return wanted ? -EBUSY : result;
    if (warp.ballot(wanted) == left) backoff.pause();
  }
}

}  // namespace detail

/// Calls `use(uint8_t* page)` on each lane in `lanes` with the page of its `key`, which no other
/// thread looks at or changes meanwhile; lanes with the same page take turns, in order of rank.
/// `use` says whether it has changed anything, or what (PageChange). `load(lanes)` brings the pages
/// into memory, as with_pages() does. Collective, `use` is not, and waits for nothing. Per lane 0
/// or a negative errno; `use` was called if and only if it is 0.
template <typename Load, typename Use>
GOFS_HD int change_pages(simt::AnyWarp auto warp, Operation& op, uint32_t lanes, uint64_t key,
                         Load load, Use use) {
  return detail::take_pages(
      warp, op, lanes, key, load, [&](bool taken, uint8_t* page, uint32_t same) {
        const uint32_t users = warp.ballot(taken);
        const uint32_t before =
            simt::popcount(users & same & simt::ranks_below(warp.thread_rank()));
        PageChange change = PageChange::kNothing;
        for (uint32_t turn = 0; warp.any(taken && turn <= before); ++turn) {
          if (taken && turn == before) change = as_change(use(page));
          warp.sync();  // the next one sees it
        }
        return change;
      });
}

/// As change_pages(), but lanes with the same page change it together, each of them other bytes:
/// `use(uint8_t* page)` is called on all of them while no other thread looks. If every lane of the
/// warp asks for the same key, `use` is collective.
template <typename Load, typename Use>
GOFS_HD int change_pages_together(simt::AnyWarp auto warp, Operation& op, uint32_t lanes,
                                  uint64_t key, Load load, Use use) {
  return detail::take_pages(warp, op, lanes, key, load, [&](bool taken, uint8_t* page, uint32_t) {
    return taken ? as_change(use(page)) : PageChange::kNothing;
  });
}

/// Empties the frame of each lane's `key`, if it has one. The key's page has no place on disk any
/// more, so nothing brings it back. Collective. Per lane 0 or -EBUSY.
GOFS_NOINLINE GOFS_HD inline int invalidate_pages(simt::AnyWarp auto warp, Operation& op,
                                                  uint32_t lanes, uint64_t key) {
  PageCache& cache = op.volume.cache;
  const simt::Deadline deadline = simt::Deadline::after_ns(kFrameTimeoutNs);
  simt::Backoff backoff;
  bool waiting = (lanes >> warp.thread_rank() & 1u) != 0;
  bool outdated = false;
  for (;;) {
    uint32_t frame = kNoFrame;
    if (waiting && !outdated) {
      outdated = outdate_key(cache, key, frame);
    } else if (waiting) {
      frame = find_frame(cache, key);
    }
    if (outdated && frame == kNoFrame) {
      waiting = false;
    } else if (frame != kNoFrame && take_frame(cache, frame, key)) {
      invalidate_frame(cache, frame);
      waiting = false;
    }
    if (!warp.any(waiting)) return 0;
    if (warp.any(deadline.passed())) return waiting ? -EBUSY : 0;
    backoff.pause();
  }
}

namespace detail {

/// Brings block `index` of the NAT of each lane in `lanes` into memory.
GOFS_HD inline int fetch_nat_blocks(simt::AnyWarp auto warp, Volume& volume, uint32_t lanes,
                                    uint32_t index) {
  return with_nat_entries(warp, volume, lanes, index * format::kNatEntriesPerBlock,
                          [](const format::NatEntry&) {});
}

}  // namespace detail

/// Calls `use(format::NatBlock&)`, collectively, with block `index` of the NAT for the warp to
/// change it; it says whether the lane has. Collective, `index` uniform. 0 or a negative errno.
template <typename Use>
GOFS_HD int change_nat_block(simt::AnyWarp auto warp, Operation& op, uint32_t index, Use use) {
  return change_pages_together(
      warp, op, warp.ballot(true), page_key(PageKind::kNat, index),
      [&](uint32_t missing) { return detail::fetch_nat_blocks(warp, op.volume, missing, index); },
      [&](uint8_t* page) { return use(*reinterpret_cast<format::NatBlock*>(page)); });
}

/// Calls `use(format::NatEntry&)` on each lane in `lanes` with the entry of its `nid`, which is in
/// range and no other lane's, to change it. Collective as change_pages is. The journal is not
/// asked: it is empty once the volume is written to.
template <typename Use>
GOFS_HD int change_nat(simt::AnyWarp auto warp, Operation& op, uint32_t lanes, uint32_t nid,
                       Use use) {
  const uint32_t index = nid / format::kNatEntriesPerBlock;
  return change_pages_together(
      warp, op, lanes, page_key(PageKind::kNat, index),
      [&](uint32_t missing) { return detail::fetch_nat_blocks(warp, op.volume, missing, index); },
      [&](uint8_t* page) {
        use(reinterpret_cast<format::NatBlock*>(page)->entries[nid % format::kNatEntriesPerBlock]);
        return true;
      });
}

namespace detail {

/// What `use(object)` answers, if it is a PageChange; else it has changed whatever it could.
template <typename Use, typename Object>
GOFS_HD PageChange change_by(Use& use, Object& object) {
  if constexpr (std::is_same_v<decltype(use(object)), PageChange>) {
    return use(object);
  } else {
    use(object);
    return PageChange::kContents;
  }
}

/// The answer of who has changed a node, or has met one of another file than he said.
GOFS_HD inline int check_belonged(Volume& volume, int error, bool belongs, uint32_t nid,
                                  uint32_t ino) {
  if (error < 0 || belongs) return error;
  return report(*volume.corruptions, {Structure::kNodeFooter, 0, nid, ino});
}

}  // namespace detail

/// Calls `use(format::NodeBlock&)` on each lane in `lanes` with its node, which belongs to the file
/// `ino`, to change it; it may answer what it has changed (PageChange). Collective as change_pages
/// is; errors are those of with_nodes.
template <typename Use>
GOFS_HD int change_nodes(simt::AnyWarp auto warp, Operation& op, uint32_t lanes, uint32_t nid,
                         uint32_t ino, Use use) {
  bool belongs = true;
  const int error = change_pages(
      warp, op, lanes, page_key(PageKind::kNode, nid),
      [&](uint32_t missing) {
        return with_nodes(warp, op.volume, missing, nid, ino, [](const format::NodeBlock&) {});
      },
      [&](uint8_t* page) {
        auto& node = *reinterpret_cast<format::NodeBlock*>(page);
        belongs = detail::belongs_to(node, ino);
        return belongs ? detail::change_by(use, node) : PageChange::kNothing;
      });
  return detail::check_belonged(op.volume, error, belongs, nid, ino);
}

/// As change_nodes(), but lanes with the same node change it together, each of them other words.
template <typename Use>
GOFS_HD int change_nodes_together(simt::AnyWarp auto warp, Operation& op, uint32_t lanes,
                                  uint32_t nid, uint32_t ino, Use use) {
  bool belongs = true;
  const int error = change_pages_together(
      warp, op, lanes, page_key(PageKind::kNode, nid),
      [&](uint32_t missing) {
        return with_nodes(warp, op.volume, missing, nid, ino, [](const format::NodeBlock&) {});
      },
      [&](uint8_t* page) {
        auto& node = *reinterpret_cast<format::NodeBlock*>(page);
        belongs = detail::belongs_to(node, ino);
        return belongs ? detail::change_by(use, node) : PageChange::kNothing;
      });
  return detail::check_belonged(op.volume, error, belongs, nid, ino);
}

/// Calls `use(format::NodeBlock&)` on each lane in `lanes` with its node `nid`, which belongs to
/// the file `ino`, to change words of it, each by one atomic access; it may answer what it has
/// changed (PageChange). Others may look at the node meanwhile, and change words as well: of many
/// that change one file none has to hold the node exclusively. No thread writes it to the disk
/// meanwhile, since that takes it exclusively. Collective as with_nodes is; per lane 0 or a
/// negative errno.
template <typename Use>
GOFS_HD int change_words(simt::AnyWarp auto warp, Operation& op, uint32_t lanes, uint32_t nid,
                         uint32_t ino, Use use) {
  PageCache& cache = op.volume.cache;
  return with_nodes(warp, op.volume, lanes, nid, ino, [&](const format::NodeBlock& node) {
    const uint32_t frame = cache.frame_of(&node);
    auto& own = *reinterpret_cast<format::NodeBlock*>(cache.page(frame));
    const PageChange change = detail::change_by(use, own);
    if (change != PageChange::kNothing) mark_dirty(op, frame, change);
  });
}

/// Stores `count` addresses of each lane in `lanes` from word `word` on of its node `nid`, which
/// belongs to the file `ino`; no two mean the same word. As change_words().
GOFS_NOINLINE GOFS_HD inline int store_addresses(simt::AnyWarp auto warp, Operation& op,
                                                 uint32_t lanes, uint32_t nid, uint32_t ino,
                                                 uint32_t word, uint32_t count,
                                                 const uint32_t* addresses) {
  return change_words(warp, op, lanes, nid, ino, [&](format::NodeBlock& node) {
    uint32_t* const words = reinterpret_cast<uint32_t*>(&node) + word;
    for (uint32_t i = 0; i < count; ++i) simt::store_after_command(words[i], addresses[i]);  // [C5]
  });
}

}  // namespace gofs::f2fs
