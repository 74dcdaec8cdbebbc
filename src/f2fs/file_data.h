// SPDX-License-Identifier: Apache-2.0
//
// The two doors through which the contents of files go to the SSDs and come from them: read_data()
// and write_data(). No other function below f2fs/ and vfs/ issues commands for blocks of file data
// (scripts/check_structure.py, `doors`), so a cache of data, checksums of blocks, or mirrors have
// their place here.
//
// What passes a door is, for each lane, a DataPart: which file, which bytes of it, which block on
// the volume, and the memory. It is whole LBAs; where it is less than a block, no more of the block
// is in memory here. docs/architecture.md lists who calls.
//
// Not here: data in an inode, which is read and written with its node; holes, which are zeros
// without a command; blocks of directories, which are metadata (pages.h).
//
// The address does not name the contents for good: a block that was released gets those of another
// file, and one that is written over keeps its address. The file's block has other contents as of
// the moment that its address is entered (store_blocks.h, append.h, store_later.h), or, where it is
// written over, that the command is done. At both, its writer has it exclusively.
#pragma once

#include "f2fs/volume.h"

namespace gofs::f2fs {

/// Bytes of a file, of one lane: whole LBAs, and the memory that they move to or from.
struct DataPart {
  uint32_t ino;     // whose they are
  uint64_t offset;  // of the first in the file
  uint32_t block;   // of the volume, that has the file's block at `offset`
  uint32_t bytes;   // that are contiguous on one SSD from there on
  uint8_t* buffer;  // a multiple of 4; a write only reads it
};

/// How the parts of a warp's lanes become commands.
enum class Merge : uint32_t {
  kNothing,     // each by its own, so that no command covers more than its lane's bytes, as what is
                // written over wants it: no larger command is sure to be written block by block
  kNeighbours,  // whole blocks and rows that follow each other, in memory too, in one
};

namespace detail {

/// Whether a device moves `bytes` at `offset` of a file or block straight from or to `buffer`: they
/// are whole LBAs, and the buffer is one that a command can name.
GOFS_HD inline bool is_directly_addressable(const void* buffer, uint64_t offset, uint64_t bytes,
                                            uint64_t lba_mask) {
  return ((offset | bytes) & lba_mask) == 0 && buffer != nullptr &&
         (reinterpret_cast<uint64_t>(buffer) & 3) == 0;
}

/// The same without the file, which a command does not know of.
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

/// Moves one part a lane, each by a command of its own. Collective; per lane of `lanes` 0 or a
/// negative errno.
GOFS_HD inline int move_singly(simt::AnyWarp auto warp, const nvme::Route& route, uint32_t lanes,
                               format::nvme::IoOpcode opcode, const BlockPart& part) {
  return nvme::to_errno(nvme::execute(warp, route, lanes, command_of(route, opcode, part)));
}

/// Moves one part a lane, neighbours that are whole blocks, or rows of them, in one command.
/// Collective; per lane of `lanes` 0 or a negative errno. With a mailbox the commands are only
/// started.
GOFS_HD inline int move_merged(simt::AnyWarp auto warp, const nvme::Route& route, uint32_t lanes,
                               format::nvme::IoOpcode opcode, const BlockPart& part,
                               nvme::Mailbox* mailbox) {
  const uint32_t rank = warp.thread_rank();
  const bool mine = (lanes >> rank & 1u) != 0;
  const bool aligned = mine && part.bytes % kBlockBytes == 0;
  const uint32_t blocks = aligned ? part.bytes / uint32_t{kBlockBytes} : 0;
  const bool whole = blocks != 0;
  const bool rows = warp.any(blocks > 1);

  // A lane whose block and buffer follow its left neighbour's leaves the command to that one.
  // `head` is the lane whose command moves this lane's part, `end` the lane after its last.
  uint32_t heads = ~0u;
  uint32_t head = rank;
  uint32_t end = rank + 1;
  if ((lanes & (lanes - 1)) != 0) {
    const uint32_t left = rank == 0 ? 0 : rank - 1;
    const uint64_t buffer = reinterpret_cast<uint64_t>(part.buffer);
    const uint32_t left_blocks = warp.shfl(blocks, left);
    const bool next_block = warp.shfl(part.block, left) + left_blocks == part.block;
    const bool next_buffer =
        warp.shfl(buffer, left) + uint64_t{left_blocks} * kBlockBytes == buffer;
    const bool same_ssd = (part.block & route.array.chunk_mask) != 0;
    const bool follows = left_blocks != 0 && next_block && next_buffer && same_ssd;
    heads = warp.ballot(!(whole && follows && rank != 0));
    head = 31 - simt::leading_zeros(heads & (simt::ranks_below(rank) | 1u << rank));
    uint32_t run_max = route.array.run_bytes_max / kBlockBytes;
    if (rows) run_max = simt::max(run_max / simt::reduce_max(warp, blocks), 1u);
    heads = warp.ballot((rank - head) % run_max == 0);
    head = 31 - simt::leading_zeros(heads & (simt::ranks_below(rank) | 1u << rank));
    const uint32_t later = heads & ~(simt::ranks_below(rank) | 1u << rank);
    end = later == 0 ? warp.size() : simt::lowest_bit(later);
  }

  BlockPart run = part;
  if (rows) {
    uint32_t all = 0;
    const uint32_t before = simt::sum_before(warp, blocks, all);
    const uint32_t run_end = warp.shfl(before + blocks, end - 1);
    if (whole) run.bytes = (run_end - before) * uint32_t{kBlockBytes};
  } else if (whole) {
    run.bytes = (end - rank) * kBlockBytes;
  }
  const nvme::Command command = command_of(route, opcode, run);
  const uint32_t submitters = lanes & heads;
  if (mailbox != nullptr) {
    return nvme::start(warp, route, submitters, command, *mailbox);
  }
  const nvme::CommandStatus status = nvme::execute(warp, route, submitters, command);
  return nvme::to_errno(warp.shfl(status, head));
}

GOFS_HD inline BlockPart block_part_of(const DataPart& part) {
  return {part.block, static_cast<uint32_t>(part.offset & (kBlockBytes - 1)), part.bytes,
          part.buffer};
}

}  // namespace detail

/// Reads one part a lane. Collective, by who keeps these blocks of the files from changing; per
/// lane of `lanes` 0 or a negative errno. The bytes are visible to the lane. With a mailbox (and
/// Merge::kNeighbours) the commands are only started: the bytes are there when it says so.
GOFS_HD inline int read_data(simt::AnyWarp auto warp, const nvme::Route& route, uint32_t lanes,
                             const DataPart& part, Merge merge, nvme::Mailbox* mailbox = nullptr) {
  constexpr auto kRead = format::nvme::IoOpcode::kRead;
  const detail::BlockPart moved = detail::block_part_of(part);
  return merge == Merge::kNothing ? detail::move_singly(warp, route, lanes, kRead, moved)
                                  : detail::move_merged(warp, route, lanes, kRead, moved, mailbox);
}

/// Writes one part a lane. Collective, by a caller that holds these blocks of the files
/// exclusively, or new blocks that nothing refers to yet; what the lanes have written to their
/// buffers is visible to the warp. Per lane of `lanes` 0 or a negative errno. Durable after the
/// next flush. With a mailbox (and Merge::kNeighbours) the commands are only started: the buffers
/// stay as they are until it says that they are done.
GOFS_HD inline int write_data(simt::AnyWarp auto warp, const nvme::Route& route, uint32_t lanes,
                              const DataPart& part, Merge merge, nvme::Mailbox* mailbox = nullptr) {
  constexpr auto kWrite = format::nvme::IoOpcode::kWrite;
  const detail::BlockPart moved = detail::block_part_of(part);
  return merge == Merge::kNothing ? detail::move_singly(warp, route, lanes, kWrite, moved)
                                  : detail::move_merged(warp, route, lanes, kWrite, moved, mailbox);
}

}  // namespace gofs::f2fs
