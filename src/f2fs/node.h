// SPDX-License-Identifier: Apache-2.0
//
// Nodes by nid: the NAT says where a node lies, its footer says that it is the right one.
#pragma once

#include "f2fs/pages.h"

namespace gofs::f2fs {

/// Blocks of the NAT, of each of which there are two copies.
GOFS_HD inline uint32_t nat_blocks(const Volume& volume) {
  return volume.geometry.nid_count() / format::kNatEntriesPerBlock;
}

/// Which copy of block `index` of the NAT is current. A checkpoint may change that at any time, so
/// it is read as one word; the bitmap lies on a word, and counts from the most significant bit of
/// each byte.
GOFS_HD inline bool nat_version(const Volume& volume, uint32_t index) {
  const auto* const words = reinterpret_cast<const uint32_t*>(volume.nat_bitmap);
  const uint32_t word = simt::load_relaxed(words[index / 32]);
  return (word >> (index / 8 % 4 * 8 + 7 - index % 8) & 1u) != 0;
}

/// Calls `use(const format::NatEntry&)` on each lane in `lanes` with the entry of its `nid`, which
/// is in range, in the NAT block that the checkpoint's version bitmap chooses. Collective as
/// with_pages is.
template <typename Use>
GOFS_HD int with_nat_entries(simt::AnyWarp auto warp, Volume& volume, uint32_t lanes, uint32_t nid,
                             Use use) {
  const uint32_t index = nid / format::kNatEntriesPerBlock;
  return with_pages(
      warp, volume, lanes, page_key(PageKind::kNat, index),
      [&](uint32_t missing, uint32_t& block) {
        if ((missing >> warp.thread_rank() & 1u) != 0) {
          block = volume.geometry.nat_block(index, nat_version(volume, index));
        }
        return 0;
      },
      [](const uint8_t*, uint32_t) { return 0; },
      [&](const uint8_t* page) {
        use(reinterpret_cast<const format::NatBlock*>(page)
                ->entries[nid % format::kNatEntriesPerBlock]);
      });
}

/// Looks up one nid a lane: in the journal, else in the NAT. Collective. Per lane 0 or a negative
/// errno; a free nid has block 0.
GOFS_NOINLINE GOFS_HD inline int look_up_nat(simt::AnyWarp auto warp, Volume& volume,
                                             uint32_t lanes, uint32_t nid, NatRecord& record) {
  const bool wanted = (lanes >> warp.thread_rank() & 1u) != 0;
  bool journaled = false;
  int result = 0;
  if (wanted && nid >= volume.geometry.nid_count()) {
    result = report(*volume.corruptions, {Structure::kNatEntry, 0, nid, nid});
  } else if (wanted) {
    for (uint32_t i = 0; i < volume.nat_journal_count; ++i) {
      if (volume.nat_journal[i].nid == nid) {
        record = volume.nat_journal[i].record;
        journaled = true;
      }
    }
  }
  const uint32_t rest = warp.ballot(wanted && result == 0 && !journaled);
  if (rest != 0) {
    const int read = with_nat_entries(warp, volume, rest, nid, [&](const format::NatEntry& entry) {
      record = NatRecord{entry.ino, entry.block_addr, entry.version};
    });
    if ((rest >> warp.thread_rank() & 1u) != 0) result = read;
  }
  return result;
}

/// Where node `nid` lies, for a report of damage; 0 if that cannot be said. Collective, uniform.
GOFS_NOINLINE GOFS_HD inline uint32_t block_of_node(simt::AnyWarp auto warp, Volume& volume,
                                                    uint32_t nid) {
  NatRecord record{};
  const int error =
      simt::first_error(warp, look_up_nat(warp, volume, warp.ballot(true), nid, record));
  return error == 0 && volume.is_main_block(record.block) ? record.block : 0;
}

/// An address in a node, at a multiple of 4 bytes. Those who write other blocks of the file may be
/// entering theirs (store_addresses() of change_pages.h): each is a whole answer in itself. [C5]
GOFS_HD inline uint32_t load_address(const void* word) {
  return simt::load_before_command(*static_cast<const uint32_t*>(word));
}

namespace detail {

/// Looks at a node that was just read; later users of the page rely on it.
GOFS_NOINLINE GOFS_HD inline int check_node(Volume& volume, const format::NodeBlock& node,
                                            uint32_t nid, uint32_t block) {
  const uint32_t footer_nid = format::load_u32(&node.footer.nid);
  const uint32_t footer_ino = format::load_u32(&node.footer.ino);
  if (footer_nid != nid) {
    return report(*volume.corruptions, {Structure::kNodeFooter, block, nid, footer_nid});
  }
  if (footer_ino == nid && volume.has_feature(format::kFeatureInodeChecksum) &&
      format::has_extra_field(node.inode, format::kExtraChecksumEnd)) {
    const uint32_t expected = format::extra_attr(node.inode).i_inode_checksum;
    const uint32_t found = format::inode_checksum(volume.checksum_seed, node);
    if (found != expected) {
      return report(*volume.corruptions, {Structure::kInodeChecksum, block, nid, expected});
    }
  }
  return 0;
}

/// Whether a node in memory is one of the file `ino`.
GOFS_HD inline bool belongs_to(const format::NodeBlock& node, uint32_t ino) {
  return format::load_u32(&node.footer.ino) == ino;
}

/// As with_nodes(); `mismatch(const Corruption&)` gives the answer where there is no such node of
/// the file.
template <typename Mismatch, typename Use>
GOFS_HD int with_nodes_or(simt::AnyWarp auto warp, Volume& volume, uint32_t lanes, uint32_t nid,
                          uint32_t ino, Mismatch mismatch, Use use) {
  bool belongs = true;
  const int result = with_pages(
      warp, volume, lanes, page_key(PageKind::kNode, nid),
      [&](uint32_t missing, uint32_t& block) {
        NatRecord record{};
        int error = look_up_nat(warp, volume, missing, nid, record);
        if ((missing >> warp.thread_rank() & 1u) == 0 || error < 0) return error;
        if (!volume.is_main_block(record.block)) {
          error = mismatch({Structure::kNatEntry, 0, nid, record.block});
        } else if (record.ino != ino) {
          error = mismatch({Structure::kNatEntry, 0, nid, record.ino});
        }
        block = record.block;
        return error;
      },
      [&](const uint8_t* page, uint32_t block) {
        return detail::check_node(volume, *reinterpret_cast<const format::NodeBlock*>(page), nid,
                                  block);
      },
      [&](const uint8_t* page) {
        const auto& node = *reinterpret_cast<const format::NodeBlock*>(page);
        belongs = detail::belongs_to(node, ino);
        if (belongs) use(node);
      });
  if (result == 0 && !belongs) return mismatch({Structure::kNodeFooter, 0, nid, ino});
  return result;
}

}  // namespace detail

/// Calls `use(const format::NodeBlock&)` on each lane in `lanes` with its node, which belongs to
/// the file `ino` (the inode itself has nid = ino). Collective as with_pages is. Per lane 0 or a
/// negative errno: -EUCLEAN (reported) where the volume contradicts itself, -EIO and others from
/// the device.
template <typename Use>
GOFS_HD int with_nodes(simt::AnyWarp auto warp, Volume& volume, uint32_t lanes, uint32_t nid,
                       uint32_t ino, Use use) {
  return detail::with_nodes_or(
      warp, volume, lanes, nid, ino,
      [&](const Corruption& found) { return report(*volume.corruptions, found); }, use);
}

/// As with_nodes(), where the node's number may be out of date: -ENOENT, and nothing is reported,
/// if there is no such node of the file any more.
template <typename Use>
GOFS_HD int find_nodes(simt::AnyWarp auto warp, Volume& volume, uint32_t lanes, uint32_t nid,
                       uint32_t ino, Use use) {
  return detail::with_nodes_or(
      warp, volume, lanes, nid, ino, [](const Corruption&) { return -ENOENT; }, use);
}

}  // namespace gofs::f2fs
