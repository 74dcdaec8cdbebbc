// SPDX-License-Identifier: Apache-2.0
//
// Nodes by nid: the NAT says where a node lies, its footer says that it is the right one.
#pragma once

#include "f2fs/pages.h"

namespace gofs::f2fs {

/// Looks up one nid a lane: in the journal, else in the NAT block that the checkpoint's version
/// bitmap chooses. Collective. Per lane 0 or a negative errno; a free nid has block 0.
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
    const uint32_t index = nid / format::kNatEntriesPerBlock;
    const bool mine = (rest >> warp.thread_rank() & 1u) != 0;
    const uint32_t block =
        mine ? volume.geometry.nat_block(index, format::msb_bit(volume.nat_bitmap, index)) : 0;
    const int read = with_blocks(warp, volume, rest, block, [&](const uint8_t* page) {
      const auto& entry = reinterpret_cast<const format::NatBlock*>(page)
                              ->entries[nid % format::kNatEntriesPerBlock];
      record = NatRecord{entry.ino, entry.block_addr, entry.version};
    });
    if (mine) result = read;
  }
  return result;
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

}  // namespace detail

/// Calls `use(const format::NodeBlock&)` on each lane in `lanes` with its node, which belongs to
/// the file `ino` (the inode itself has nid = ino). Collective as with_pages is. Per lane 0 or a
/// negative errno: -EUCLEAN (reported) where the volume contradicts itself, -EIO and others from
/// the device.
template <typename Use>
GOFS_HD int with_nodes(simt::AnyWarp auto warp, Volume& volume, uint32_t lanes, uint32_t nid,
                       uint32_t ino, Use use) {
  bool belongs = true;
  const int result = with_pages(
      warp, volume, lanes, page_key(PageKind::kNode, nid),
      [&](uint32_t missing, uint32_t& block) {
        NatRecord record{};
        int error = look_up_nat(warp, volume, missing, nid, record);
        if ((missing >> warp.thread_rank() & 1u) == 0 || error < 0) return error;
        if (!volume.is_main_block(record.block)) {
          error = report(*volume.corruptions, {Structure::kNatEntry, 0, nid, record.block});
        } else if (record.ino != ino) {
          error = report(*volume.corruptions, {Structure::kNatEntry, 0, nid, record.ino});
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
        belongs = format::load_u32(&node.footer.ino) == ino;
        if (belongs) use(node);
      });
  if (result == 0 && !belongs) {
    return report(*volume.corruptions, {Structure::kNodeFooter, 0, nid, ino});
  }
  return result;
}

}  // namespace gofs::f2fs
