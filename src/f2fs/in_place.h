// SPDX-License-Identifier: Apache-2.0
//
// Parts of blocks, one a lane, that the device moves straight from or to the caller's buffers.
#pragma once

#include "f2fs/volume.h"

namespace gofs::f2fs::detail {

/// Whether a device moves `bytes` at `offset` of a file or block straight from or to `buffer`: they
/// are whole LBAs, and the buffer is one that a command can name.
GOFS_HD inline bool goes_in_place(const void* buffer, uint64_t offset, uint64_t bytes,
                                  uint64_t lba_mask) {
  return ((offset | bytes) & lba_mask) == 0 && buffer != nullptr &&
         (reinterpret_cast<uint64_t>(buffer) & 3) == 0;
}

/// A part of a block that is made of whole LBAs, and its buffer, a multiple of 4.
struct BlockPart {
  uint32_t block;
  uint32_t in_block;  // bytes
  uint32_t bytes;
  uint8_t* buffer;
};

/// The command that moves it.
GOFS_HD inline nvme::Command command_of(const nvme::Route& route, format::nvme::IoOpcode opcode,
                                        const BlockPart& part) {
  nvme::Command command{};
  command.opcode = opcode;
  command.lba = (uint64_t{part.block} << (kBlockShift - route.lba_shift)) +
                (part.in_block >> route.lba_shift);
  command.bytes = part.bytes;
  command.lba_count = part.bytes >> route.lba_shift;
  command.buffer = part.buffer;
  return command;
}

/// Writes one part a lane, each by a command of its own. Collective; per lane of `lanes` 0 or a
/// negative errno.
GOFS_HD inline int write_singly(simt::AnyWarp auto warp, const nvme::Route& route, uint32_t lanes,
                                const BlockPart& part) {
  const nvme::Command command = command_of(route, format::nvme::IoOpcode::kWrite, part);
  return nvme::to_errno(nvme::execute(warp, route, lanes, command));
}

/// Moves one part a lane, neighbours that are whole blocks in one command. Collective; per lane of
/// `lanes` 0 or a negative errno. With a mailbox the commands are only started.
GOFS_HD inline int move_in_place(simt::AnyWarp auto warp, const nvme::Route& route, uint32_t lanes,
                                 format::nvme::IoOpcode opcode, const BlockPart& part,
                                 nvme::Mailbox* mailbox) {
  const uint32_t rank = warp.thread_rank();
  const bool mine = (lanes >> rank & 1u) != 0;
  const bool whole = mine && part.bytes == kBlockBytes;

  // A lane whose block and buffer follow its left neighbour's leaves the command to that one.
  // `head` is the lane whose command moves this lane's part, `end` the lane after its last.
  uint32_t heads = ~0u;
  uint32_t head = rank;
  uint32_t end = rank + 1;
  if ((lanes & (lanes - 1)) != 0) {
    const uint32_t left = rank == 0 ? 0 : rank - 1;
    const uint64_t buffer = reinterpret_cast<uint64_t>(part.buffer);
    const bool left_whole = warp.shfl(whole ? 1u : 0u, left) != 0;
    const bool next_block = warp.shfl(part.block, left) + 1 == part.block;
    const bool next_buffer = warp.shfl(buffer, left) + kBlockBytes == buffer;
    const bool same_ssd = (part.block & route.array.chunk_mask) != 0;
    const bool follows = left_whole && next_block && next_buffer && same_ssd;
    heads = warp.ballot(!(whole && follows && rank != 0));
    head = 31 - simt::leading_zeros(heads & (simt::ranks_below(rank) | 1u << rank));
    const uint32_t run_max = route.array.run_bytes_max / kBlockBytes;
    heads = warp.ballot((rank - head) % run_max == 0);
    head = 31 - simt::leading_zeros(heads & (simt::ranks_below(rank) | 1u << rank));
    const uint32_t later = heads & ~(simt::ranks_below(rank) | 1u << rank);
    end = later == 0 ? warp.size() : simt::lowest_bit(later);
  }

  BlockPart run = part;
  if (whole) run.bytes = (end - rank) * kBlockBytes;
  const nvme::Command command = command_of(route, opcode, run);
  const uint32_t submitters = lanes & heads;
  if (mailbox != nullptr) {
    return nvme::start(warp, route, submitters, command, *mailbox);
  }
  const nvme::CommandStatus status = nvme::execute(warp, route, submitters, command);
  return nvme::to_errno(warp.shfl(status, head));
}

}  // namespace gofs::f2fs::detail
