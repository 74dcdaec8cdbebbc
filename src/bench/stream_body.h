// SPDX-License-Identifier: Apache-2.0
//
// Files that are streamed: written, or read, from the first byte to the last by a whole grid, by
// its blocks, warps or threads, each with one piece under way at a time; and the same pieces as raw
// NVMe commands. Each 4 KiB block of a file begins with a stamp, of its number and of the run that
// wrote it, and reading checks all of them.
//
// `Api` is the file API, as in read_body.h.
#pragma once

#include "bench/read_body.h"

namespace gofs::bench {

enum class StreamActor : uint32_t { kGrid, kBlock, kWarp, kThread };

struct StreamParams {
  vfs::Filesystem* fs;
  StreamActor actor;
  bool reads;
  bool shuffled;           // pieces are not taken in order
  uint32_t actors;         // that take part: grids (1), blocks, warps or threads
  uint32_t files;          // 1: all actors share it; else one for each of them
  const int* descriptors;  // `files`; null: raw commands
  uint64_t file_bytes;     // of each file, or of the raw range; a multiple of piece_bytes
  uint32_t piece_bytes;    // of one call; a multiple of 4096
  uint32_t command_bytes;  // raw: of one command at most
  uint64_t start_byte;     // raw: where on the device the range begins
  uint64_t run;            // of the writer
  uint8_t* buffers;        // piece_bytes for each actor
};

struct StreamResults {
  uint64_t first_ns = ~uint64_t{0};  // start of the earliest and end of the latest warp, on the
  uint64_t last_ns = 0;              // backend's clock
  uint64_t wrong = 0;                // blocks read that did not hold what was written
  int error = 0;                     // of some actor that failed
};

/// What a launch is given, and what it leaves.
struct StreamJob {
  StreamParams params;
  StreamResults results;
  simt::Barrier point;  // of all warps
};

namespace detail {

/// The actor that a warp or a thread is part of, and its part.
struct StreamMember {
  uint64_t actor;
  uint32_t warp;   // among the warps of the actor,
  uint32_t warps;  // of so many
  uint32_t lane;   // among its threads,
  uint32_t lanes;  // of so many
};

GOFS_HD inline uint64_t stream_stamp(const StreamParams& params, uint64_t file, uint64_t block) {
  return mix(block + mix(params.run + (file << 40)));
}

/// The pieces of an actor: every `step`-th of a file from `first` on.
struct StreamPieces {
  uint64_t file;
  uint64_t first;
  uint64_t step;
  uint64_t count;  // of the file

  /// Where in the file the `number`-th is written. An odd factor makes another order of 2^n pieces;
  /// what would lie behind the last one is taken once more.
  GOFS_HD uint64_t place(uint64_t number, bool shuffled) const {
    if (!shuffled) return number;
    uint64_t mask = 1;
    while (mask < count) mask *= 2;
    uint64_t at = number;
    do at = (at * 0x9E3779B1u + 7) & (mask - 1);
    while (at >= count);
    return at;
  }
};

GOFS_HD inline StreamPieces stream_pieces(const StreamParams& params, uint64_t actor) {
  const uint64_t count = params.file_bytes / params.piece_bytes;
  return params.files > 1 ? StreamPieces{actor, 0, 1, count}
                          : StreamPieces{0, actor, params.actors, count};
}

/// The member's blocks of a piece: stamps them, or counts those with a wrong stamp.
GOFS_HD inline void stamp_piece(const StreamParams& params, const StreamMember& member,
                                const StreamPieces& pieces, uint64_t position, uint8_t* buffer) {
  for (uint64_t at = uint64_t{member.lane} * kBlockBytes; at < params.piece_bytes;
       at += uint64_t{member.lanes} * kBlockBytes) {
    format::store_u64(buffer + at,
                      stream_stamp(params, pieces.file, (position + at) / kBlockBytes));
  }
}
GOFS_HD inline uint64_t count_wrong(const StreamParams& params, const StreamMember& member,
                                    const StreamPieces& pieces, uint64_t position,
                                    const uint8_t* buffer) {
  uint64_t wrong = 0;
  for (uint64_t at = uint64_t{member.lane} * kBlockBytes; at < params.piece_bytes;
       at += uint64_t{member.lanes} * kBlockBytes) {
    const uint64_t wanted = stream_stamp(params, pieces.file, (position + at) / kBlockBytes);
    if (format::load_u64(buffer + at) != wanted) ++wrong;
  }
  return wrong;
}

struct StreamTally {
  uint64_t wrong = 0;
  int error = 0;
};

/// All pieces of one actor. `call(buffer, position)` moves one, by all members: the bytes moved, or
/// a negative errno, the same for all of them.
template <typename Call>
GOFS_DEVICE void stream_pieces_of(const StreamParams& params, const StreamMember& member,
                                  StreamTally& tally, Call call) {
  const StreamPieces pieces = stream_pieces(params, member.actor);
  uint8_t* const buffer = params.buffers + member.actor * params.piece_bytes;
  for (uint64_t number = pieces.first; number < pieces.count; number += pieces.step) {
    const uint64_t position = pieces.place(number, params.shuffled) * params.piece_bytes;
    if (!params.reads) stamp_piece(params, member, pieces, position, buffer);
    const int64_t moved = call(buffer, position);
    if (moved != params.piece_bytes) {
      tally.error = moved < 0 ? static_cast<int>(moved) : -EIO;
      return;
    }
    if (params.reads) tally.wrong += count_wrong(params, member, pieces, position, buffer);
  }
}

/// This warp's commands of a piece, a lane each. Collective. 0 or a negative errno.
GOFS_HD inline int run_commands(simt::AnyWarp auto warp, const StreamParams& params,
                                const nvme::Route& route, const StreamMember& member,
                                uint8_t* buffer, uint64_t position) {
  const uint64_t commands = simt::divide_up(params.piece_bytes, params.command_bytes);
  int error = 0;
  // Neighbouring commands are different warps', where there are several.
  for (uint64_t round = 0; round * warp.size() * member.warps < commands; ++round) {
    const uint64_t number = (round * warp.size() + warp.thread_rank()) * member.warps + member.warp;
    const bool mine = number < commands;
    const uint64_t at = number * params.command_bytes;
    const uint32_t lanes = warp.ballot(mine);
    if (lanes == 0) break;
    const auto bytes = static_cast<uint32_t>(
        mine ? simt::min<uint64_t>(params.command_bytes, params.piece_bytes - at) : 0);
    nvme::Command command{};
    command.opcode = params.reads ? format::nvme::IoOpcode::kRead : format::nvme::IoOpcode::kWrite;
    command.lba = (params.start_byte + position + at) >> route.lba_shift;
    command.lba_count = bytes >> route.lba_shift;
    command.buffer = buffer + at;
    command.bytes = bytes;
    const nvme::CommandStatus status = nvme::execute(warp, route, lanes, command);
    if (mine && status != 0) error = nvme::to_errno(status);
  }
  return simt::first_error(warp, error);
}

GOFS_HD inline void begin_stream(simt::AnyWarp auto warp, StreamResults& results) {
  if (warp.thread_rank() == 0) {
    simt::AtomicRef<uint64_t>(results.first_ns)
        .fetch_min(simt::now_ns(), simt::memory_order_relaxed);
  }
  warp.sync();
}
GOFS_HD inline void end_stream(simt::AnyWarp auto warp, StreamResults& results,
                               const StreamTally& tally) {
  warp.sync();
  const uint64_t wrong = simt::reduce_add(warp, tally.wrong);
  const int error = simt::first_error(warp, tally.error);
  if (warp.thread_rank() != 0) return;
  simt::AtomicRef<uint64_t>(results.last_ns).fetch_max(simt::now_ns(), simt::memory_order_relaxed);
  simt::add_relaxed(results.wrong, wrong);
  if (error != 0) simt::store_relaxed(results.error, error);
}

/// As raw commands, split as the SSD wants it, with the group's barrier before and after a piece,
/// which a call has as well. `group` has sync().
template <typename Group>
GOFS_DEVICE void stream_raw(const Group& group, const StreamParams& params,
                            const StreamMember& member, StreamTally& tally) {
  const auto warp = group.warp();
  const nvme::Route route = nvme::pick_route(params.fs->volume.array);
  stream_pieces_of(params, member, tally, [&](uint8_t* buffer, uint64_t position) -> int64_t {
    group.sync();
    const int error = run_commands(warp, params, route, member, buffer, position);
    group.sync();
    return error < 0 ? error : params.piece_bytes;
  });
}

/// Lanes that are actors, as raw commands: one each, of a part of the piece, until all have theirs.
/// Collective.
GOFS_DEVICE inline void stream_raw_by_lanes(simt::AnyWarp auto warp, const StreamParams& params,
                                            bool acts, uint64_t actor, StreamTally& tally) {
  const nvme::Route route = nvme::pick_route(params.fs->volume.array);
  const StreamMember member{actor, 0, 1, 0, 1};
  const StreamPieces pieces = stream_pieces(params, actor);
  uint8_t* const buffer = params.buffers + (acts ? actor : 0) * params.piece_bytes;
  for (uint64_t number = pieces.first; warp.any(acts && number < pieces.count);
       number += pieces.step) {
    const bool mine = acts && number < pieces.count;
    const uint64_t position = mine ? pieces.place(number, params.shuffled) * params.piece_bytes : 0;
    if (mine && !params.reads) stamp_piece(params, member, pieces, position, buffer);
    const int error =
        move_raw(warp, route, warp.ballot(mine),
                 {params.reads ? format::nvme::IoOpcode::kRead : format::nvme::IoOpcode::kWrite,
                  params.start_byte + position, buffer, params.piece_bytes, params.command_bytes});
    if (error != 0) tally.error = error;
    if (mine && params.reads) {
      tally.wrong += count_wrong(params, member, pieces, position, buffer);
    }
    if (warp.any(tally.error != 0)) return;
  }
}

template <typename Api>
GOFS_DEVICE void stream_by_threads(simt::AnyWarp auto warp, uint32_t warp_index,
                                   const StreamParams& params, StreamTally& tally) {
  const uint64_t actor = uint64_t{warp_index} * warp.size() + warp.thread_rank();
  const bool acts = actor < params.actors;
  if (params.descriptors == nullptr) {
    return stream_raw_by_lanes(warp, params, acts, actor, tally);
  }
  if (!acts) return;
  const int fd = params.descriptors[params.files > 1 ? actor : 0];
  stream_pieces_of(params, {actor, 0, 1, 0, 1}, tally, [&](uint8_t* buffer, uint64_t position) {
    return params.reads
               ? Api::pread_by_thread(*params.fs, fd, buffer, params.piece_bytes, position)
               : Api::pwrite_by_thread(*params.fs, fd, buffer, params.piece_bytes, position);
  });
}

/// By a group of warps, or one. `write(fd, buffer, position)` and `read` are the calls.
template <typename Group, typename Write, typename Read>
GOFS_DEVICE void stream_by_group(const Group& group, const StreamParams& params,
                                 const StreamMember& member, StreamTally& tally, Write write,
                                 Read read) {
  if (member.actor >= params.actors) return;
  if (params.descriptors == nullptr) return stream_raw(group, params, member, tally);
  const int fd = params.descriptors[params.files > 1 ? member.actor : 0];
  stream_pieces_of(params, member, tally, [&](uint8_t* buffer, uint64_t position) -> int64_t {
    return params.reads ? read(fd, buffer, position) : write(fd, buffer, position);
  });
}

}  // namespace detail

/// By all warps of a launch; a cooperative one, where the grid is the actor.
template <typename Api>
GOFS_DEVICE void stream_body(simt::AnyWarp auto warp, uint32_t warp_index, uint32_t warp_count,
                             StreamJob& job) {
  const StreamParams params = job.params;
  vfs::Filesystem& fs = *params.fs;
  const uint32_t bytes = params.piece_bytes;
  const uint32_t rank = warp.thread_rank();
  detail::StreamTally tally;
  detail::begin_stream(warp, job.results);
  if (params.actor == StreamActor::kGrid) {
    const simt::GridGroup grid(warp, warp_index, warp_count, job.point);
    detail::stream_by_group(
        grid, params,
        {0, warp_index, warp_count, warp_index * warp.size() + rank, warp_count * warp.size()},
        tally,
        [&](int fd, uint8_t* buffer, uint64_t position) {
          return Api::pwrite_by_grid(grid, fs, fd, buffer, bytes, position);
        },
        [&](int fd, uint8_t* buffer, uint64_t position) {
          return Api::pread_by_grid(grid, fs, fd, buffer, bytes, position);
        });
  } else if (params.actor == StreamActor::kBlock) {
    const auto block = simt::BlockGroup<simt::Warp>::current(warp);
    detail::stream_by_group(
        block, params,
        {warp_index / block.count(), block.index(), block.count(),
         block.index() * warp.size() + rank, block.count() * warp.size()},
        tally,
        [&](int fd, uint8_t* buffer, uint64_t position) {
          return Api::pwrite_by_block(warp, fs, fd, buffer, bytes, position);
        },
        [&](int fd, uint8_t* buffer, uint64_t position) {
          return Api::pread_by_block(warp, fs, fd, buffer, bytes, position);
        });
  } else if (params.actor == StreamActor::kWarp) {
    const simt::SingleWarpGroup<simt::Warp> alone(warp);
    detail::stream_by_group(
        alone, params, {warp_index, 0, 1, rank, warp.size()}, tally,
        [&](int fd, uint8_t* buffer, uint64_t position) {
          return Api::pwrite_by_warp(warp, fs, fd, buffer, bytes, position);
        },
        [&](int fd, uint8_t* buffer, uint64_t position) {
          return Api::pread_by_warp(warp, fs, fd, buffer, bytes, position);
        });
  } else {
    detail::stream_by_threads<Api>(warp, warp_index, params, tally);
  }
  detail::end_stream(warp, job.results, tally);
}

}  // namespace gofs::bench
