// SPDX-License-Identifier: Apache-2.0
//
// What `gofs bench` runs on the backend: the same reads as raw NVMe commands and through the file
// API, so that their ratio is the file system's own cost. Every lane (warp, block or grid, by the
// scope) has one read outstanding at a time.
//
// `Api` is the file API: CpuApi (cpu_api.hpp) on host threads, on a GPU DeviceApi
// (device_api.cuh), the calls that users make. What measures it is compiled for one side at a time.
#pragma once

#include "bench/controller_warps.h"
#include "simt/warp_group.h"
#include "vfs/filesystem.h"

namespace gofs::bench {

enum class Pattern : uint32_t { kRandom, kSequential };
enum class ReadScope : uint32_t { kThread, kWarp, kBlock, kGrid };

struct BenchParams {
  vfs::Filesystem* fs;
  Pattern pattern;
  ReadScope scope;
  uint32_t warps;           // that take part, and
  uint32_t lanes_per_warp;  // lanes in each: their product is the number of outstanding reads
  uint32_t operations;      // of each lane (warp, block, grid)
  uint32_t block_bytes;     // of one read; a multiple of 512
  uint32_t command_bytes;   // raw: of one command at most
  uint64_t start_byte;      // raw: where on the device the range begins
  uint64_t span_bytes;      // range to read from
  uint64_t seed;
  int descriptor;        // file
  uint32_t stamp_check;  // not 0: each 4 KiB block begins with its index in the file (or range)
  uint8_t* buffers;      // block_bytes for each lane (warp, block, grid)
  uint32_t rounds;       // raw: so many times as many buffers, which a lane uses in turn; 0 is 1
  ControllerWarps controllers;  // beside the others; none of reads by blocks and grids
};

struct BenchResults {
  uint64_t first_ns = ~uint64_t{0};  // start of the earliest and end of the latest warp, on the
  uint64_t last_ns = 0;              // backend's clock
  uint64_t bytes = 0;
  uint64_t checksum = 0;  // sum of the first words of all blocks read: what was not read cannot
                          // match
  uint64_t wrong_stamps = 0;
  int error = 0;  // of some lane that failed
};

/// What a launch is given, and what it leaves: apart, since warps copy the parameters while others
/// have results already.
struct BenchJob {
  BenchParams params;
  BenchResults results;
  simt::Barrier point;  // of all warps
};

namespace detail {

__extension__ typedef unsigned __int128 Uint128;  // NOLINT(modernize-use-using): no ISO type

/// A permutation-like mix of 64 bits (splitmix64's finalizer).
GOFS_HD constexpr uint64_t mix(uint64_t x) {
  x = (x ^ x >> 30) * 0xBF58476D1CE4E5B9ull;
  x = (x ^ x >> 27) * 0x94D049BB133111EBull;
  return x ^ x >> 31;
}

GOFS_HD inline uint64_t read_position(const BenchParams& params, uint64_t actor, uint64_t actors,
                                      uint64_t operation) {
  const uint64_t slots = params.span_bytes / params.block_bytes;
  const uint64_t number = operation * actors + actor;
  // High bits of a product instead of a remainder: no division on the measured path.
  const uint64_t slot =
      params.pattern == Pattern::kSequential
          ? number % slots
          : static_cast<uint64_t>((static_cast<Uint128>(mix(number + params.seed)) * slots) >> 64);
  return slot * params.block_bytes;
}

struct Tally {
  uint64_t bytes = 0;
  uint64_t checksum = 0;
  uint64_t wrong_stamps = 0;
  int error = 0;

  GOFS_HD void count(const BenchParams& params, uint64_t position, const uint8_t* data,
                     uint32_t length) {
    bytes += length;
    for (uint32_t at = 0; at < length; at += kBlockBytes) {
      const uint64_t stamp = format::load_u64(data + at);
      checksum += stamp;
      if (params.stamp_check != 0 && (position + at) % kBlockBytes == 0 &&
          stamp != (position + at) / kBlockBytes) {
        ++wrong_stamps;
      }
    }
  }
};

GOFS_HD inline void begin_bench(simt::AnyWarp auto warp, BenchResults& results) {
  if (warp.thread_rank() == 0) {
    simt::AtomicRef<uint64_t>(results.first_ns)
        .fetch_min(simt::now_ns(), simt::memory_order_relaxed);
  }
  warp.sync();
}

GOFS_HD inline void end_bench(simt::AnyWarp auto warp, BenchResults& results, const Tally& tally) {
  warp.sync();
  const uint64_t bytes = simt::reduce_add(warp, tally.bytes);
  const uint64_t checksum = simt::reduce_add(warp, tally.checksum);
  const uint64_t wrong_stamps = simt::reduce_add(warp, tally.wrong_stamps);
  const int error = simt::first_error(warp, tally.error);
  if (warp.thread_rank() != 0) return;
  simt::AtomicRef<uint64_t>(results.last_ns).fetch_max(simt::now_ns(), simt::memory_order_relaxed);
  simt::add_relaxed(results.bytes, bytes);
  simt::add_relaxed(results.checksum, checksum);
  simt::add_relaxed(results.wrong_stamps, wrong_stamps);
  if (error != 0) simt::store_relaxed(results.error, error);
}

/// Bytes that raw commands move.
struct RawMove {
  format::nvme::IoOpcode opcode;
  uint64_t start_byte;  // on the device
  uint8_t* buffer;
  uint32_t bytes;
  uint32_t command_bytes;  // of one command at most
};

/// Moves the bytes of each lane in `lanes` by as many commands, one after the other, as they take.
/// Collective. 0 or a negative errno of this lane's.
GOFS_HD inline int move_raw(simt::AnyWarp auto warp, const nvme::Route& route, uint32_t lanes,
                            const RawMove& move) {
  const bool mine = (lanes >> warp.thread_rank() & 1u) != 0;
  int error = 0;
  for (uint32_t at = 0; at < move.bytes; at += move.command_bytes) {
    const uint32_t bytes = simt::min(move.command_bytes, move.bytes - at);
    nvme::Command command{};
    command.opcode = move.opcode;
    command.lba = (move.start_byte + at) >> route.lba_shift;
    command.lba_count = bytes >> route.lba_shift;
    command.buffer = move.buffer + at;
    command.bytes = bytes;
    const nvme::CommandStatus status = nvme::execute(warp, route, lanes, command);
    if (mine && status != 0) error = nvme::to_errno(status);
  }
  return error;
}

}  // namespace detail

/// Raw commands, no file system: of each lane as many, one after the other, as a read takes.
GOFS_HD inline void raw_read_body(simt::AnyWarp auto warp, uint32_t warp_index, uint32_t,
                                  BenchJob& job) {
  const BenchParams params = job.params;  // a GPU would fetch them from the host again and again
  if (warp_index >= params.warps) {
    play_controller(warp, warp_index, params.warps, params.controllers, params.fs->volume.array);
    return;
  }
  const nvme::Route route = nvme::pick_route(params.fs->volume.array);
  const bool active = warp.thread_rank() < params.lanes_per_warp;
  const uint32_t lanes = warp.ballot(active);
  const uint64_t actor = uint64_t{warp_index} * params.lanes_per_warp + warp.thread_rank();
  const uint64_t actors = uint64_t{params.warps} * params.lanes_per_warp;
  uint32_t round = 0;
  detail::Tally tally;
  detail::begin_bench(warp, job.results);
  for (uint32_t operation = 0; operation < params.operations; ++operation) {
    const uint64_t position = detail::read_position(params, actor, actors, operation);
    uint8_t* const buffer =
        params.buffers + (active ? (round * actors + actor) * params.block_bytes : 0);
    round = round + 1 < params.rounds ? round + 1 : 0;
    const int error = detail::move_raw(warp, route, lanes,
                                       {format::nvme::IoOpcode::kRead, params.start_byte + position,
                                        buffer, params.block_bytes, params.command_bytes});
    if (error != 0) tally.error = error;
    if (active) tally.count(params, position, buffer, params.block_bytes);
    if (warp.any(tally.error != 0)) break;
  }
  detail::end_bench(warp, job.results, tally);
  leave_controllers(warp, params.controllers);
}

namespace detail {

template <typename Api>
GOFS_DEVICE void read_by_lanes(simt::AnyWarp auto warp, uint32_t warp_index,
                               const BenchParams& params, Tally& tally) {
  const bool active = warp.thread_rank() < params.lanes_per_warp;
  const uint64_t actor = uint64_t{warp_index} * params.lanes_per_warp + warp.thread_rank();
  const uint64_t actors = uint64_t{params.warps} * params.lanes_per_warp;
  uint8_t* const buffer = active ? params.buffers + actor * params.block_bytes : nullptr;
  for (uint32_t operation = 0; operation < params.operations; ++operation) {
    const uint64_t position = read_position(params, actor, actors, operation);
    if (active) {
      const int64_t got =
          Api::pread_by_thread(*params.fs, params.descriptor, buffer, params.block_bytes, position);
      if (got != params.block_bytes) tally.error = got < 0 ? static_cast<int>(got) : -EIO;
      tally.count(params, position, buffer, params.block_bytes);
    }
    if (warp.any(tally.error != 0)) break;
  }
}

template <typename Api>
GOFS_DEVICE void read_by_warp(simt::AnyWarp auto warp, uint32_t warp_index,
                              const BenchParams& params, Tally& tally) {
  uint8_t* const buffer = params.buffers + uint64_t{warp_index} * params.block_bytes;
  for (uint32_t operation = 0; operation < params.operations; ++operation) {
    const uint64_t position = read_position(params, warp_index, params.warps, operation);
    const int64_t got = Api::pread_by_warp(warp, *params.fs, params.descriptor, buffer,
                                           params.block_bytes, position);
    warp.sync();
    if (warp.thread_rank() == 0) {
      if (got != params.block_bytes) tally.error = got < 0 ? static_cast<int>(got) : -EIO;
      tally.count(params, position, buffer, params.block_bytes);
    }
    warp.sync();
    if (warp.any(tally.error != 0)) break;
  }
}

}  // namespace detail

/// The same reads of an open file, by threads or warps.
template <typename Api>
GOFS_DEVICE void file_read_body(simt::AnyWarp auto warp, uint32_t warp_index, uint32_t,
                                BenchJob& job) {
  const BenchParams params = job.params;
  if (warp_index >= params.warps) {
    play_controller(warp, warp_index, params.warps, params.controllers, params.fs->volume.array);
    return;
  }
  detail::Tally tally;
  detail::begin_bench(warp, job.results);
  if (params.scope == ReadScope::kThread) {
    detail::read_by_lanes<Api>(warp, warp_index, params, tally);
  } else {
    detail::read_by_warp<Api>(warp, warp_index, params, tally);
  }
  detail::end_bench(warp, job.results, tally);
  leave_controllers(warp, params.controllers);
}

namespace detail {

/// Which part of a read a warp looks at, and whose the read is.
struct WideReader {
  uint32_t warp;   // among the warps that read together,
  uint32_t warps;  // of so many
  uint64_t actor;  // among those who read
  uint64_t actors;
};

/// The reads of one block, or of the grid. `pread(buffer, position)` is the call.
template <typename Pread>
GOFS_DEVICE void read_wide(simt::AnyWarp auto warp, const WideReader& reader,
                           const BenchParams& params, Tally& tally, Pread pread) {
  const uint32_t lane = reader.warp * warp.size() + warp.thread_rank();
  const uint32_t lanes = reader.warps * warp.size();
  uint8_t* const buffer = params.buffers + reader.actor * params.block_bytes;
  for (uint32_t operation = 0; operation < params.operations; ++operation) {
    const uint64_t position = read_position(params, reader.actor, reader.actors, operation);
    const int64_t got = pread(buffer, position);
    if (got != params.block_bytes) {
      tally.error = got < 0 ? static_cast<int>(got) : -EIO;
      break;  // all who read together, who got the same
    }
    // Each lane looks at its blocks: one lane for all would take longer than the read. The next
    // read begins when all have come to it.
    for (uint64_t at = uint64_t{lane} * kBlockBytes; at < params.block_bytes;
         at += uint64_t{lanes} * kBlockBytes) {
      const uint64_t left = params.block_bytes - at;
      tally.count(params, position + at, buffer + at,
                  static_cast<uint32_t>(simt::min<uint64_t>(left, kBlockBytes)));
    }
  }
}

}  // namespace detail

/// The same reads of an open file by whole blocks or by the whole grid, whose warps share each.
template <typename Api>
GOFS_DEVICE void wide_read_body(simt::AnyWarp auto warp, uint32_t warp_index, uint32_t warp_count,
                                BenchJob& job) {
  const BenchParams params = job.params;
  detail::Tally tally;
  detail::begin_bench(warp, job.results);
  if (params.scope == ReadScope::kGrid) {
    const simt::GridGroup grid(warp, warp_index, warp_count, job.point);
    detail::read_wide(warp, {warp_index, warp_count, 0, 1}, params, tally,
                      [&](uint8_t* buffer, uint64_t position) {
                        return Api::pread_by_grid(grid, *params.fs, params.descriptor, buffer,
                                                  params.block_bytes, position);
                      });
  } else {
    const auto block = simt::BlockGroup<simt::Warp>::current(warp);
    const detail::WideReader reader{block.index(), block.count(), warp_index / block.count(),
                                    warp_count / block.count()};
    detail::read_wide(warp, reader, params, tally, [&](uint8_t* buffer, uint64_t position) {
      return Api::pread_by_block(warp, *params.fs, params.descriptor, buffer, params.block_bytes,
                                 position);
    });
  }
  detail::end_bench(warp, job.results, tally);
}

}  // namespace gofs::bench
