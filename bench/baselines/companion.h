// SPDX-License-Identifier: Apache-2.0
//
// What a companion file system does on the GPU: it looks a block up in the file's map, which its
// host made, and issues the NVMe command. Either the requests of a warp take turns under a lock of
// the warp, each until it is done, or all lanes go on together.
#pragma once

#include "bench/write_body.h"

namespace gofs::bench {

struct CompanionRead {
  BenchJob job;  // block_bytes is 4096; no start_byte, descriptor, rounds
  const uint64_t* map;
  uint32_t warp_lock;  // not 0: one request of a warp at a time
};

struct CompanionWrite {
  WriteJob job;  // as of a write to one file by threads
  const uint64_t* map;
  uint32_t warp_lock;
};

namespace detail {

/// Runs the 4 KiB command of each lane in `lanes`. Collective. 0 or a negative errno of this
/// lane's.
GOFS_HD inline int run_mapped(simt::AnyWarp auto warp, const nvme::Route& route, uint32_t lanes,
                              bool warp_lock, const nvme::Command& command) {
  nvme::CommandStatus status = 0;
  while (lanes != 0) {
    const uint32_t turn = warp_lock ? lanes & (~lanes + 1) : lanes;
    const nvme::CommandStatus result = nvme::execute(warp, route, turn, command);
    if ((turn >> warp.thread_rank() & 1u) != 0) status = result;
    lanes &= ~turn;
  }
  return status == 0 ? 0 : nvme::to_errno(status);
}

GOFS_HD inline nvme::Command mapped_command(const nvme::Route& route, format::nvme::IoOpcode opcode,
                                            uint64_t block, uint8_t* buffer) {
  const uint32_t shift = kBlockShift - route.lba_shift;
  nvme::Command command{};
  command.opcode = opcode;
  command.lba = block << shift;
  command.lba_count = 1u << shift;
  command.buffer = buffer;
  command.bytes = kBlockBytes;
  return command;
}

}  // namespace detail

/// Reads of single blocks, one a lane.
GOFS_HD inline void companion_read_body(simt::AnyWarp auto warp, uint32_t warp_index, uint32_t,
                                        CompanionRead& shared) {
  const BenchParams params = shared.job.params;
  const uint64_t* const map = shared.map;
  const bool warp_lock = shared.warp_lock != 0;
  if (warp_index >= params.warps) {
    play_controller(warp, warp_index, params.warps, params.controllers, params.fs->volume.array);
    return;
  }
  const nvme::Route route = nvme::pick_route(params.fs->volume.array);
  const bool active = warp.thread_rank() < params.lanes_per_warp;
  const uint32_t lanes = warp.ballot(active);
  const uint64_t actor = uint64_t{warp_index} * params.lanes_per_warp + warp.thread_rank();
  const uint64_t actors = uint64_t{params.warps} * params.lanes_per_warp;
  uint8_t* const buffer = active ? params.buffers + actor * kBlockBytes : nullptr;
  detail::Tally tally;
  detail::begin_bench(warp, shared.job.results);
  for (uint32_t operation = 0; operation < params.operations; ++operation) {
    const uint64_t position = detail::read_position(params, actor, actors, operation);
    const uint64_t block = active ? map[position / kBlockBytes] : 0;
    const int error = detail::run_mapped(
        warp, route, lanes, warp_lock,
        detail::mapped_command(route, format::nvme::IoOpcode::kRead, block, buffer));
    if (active && error != 0) tally.error = error;
    if (active && error == 0) tally.count(params, position, buffer, kBlockBytes);
    if (warp.any(tally.error != 0)) break;
  }
  detail::end_bench(warp, shared.job.results, tally);
  leave_controllers(warp, params.controllers);
}

/// Writes of single blocks in place, one a lane, each to blocks of its own.
GOFS_HD inline void companion_write_body(simt::AnyWarp auto warp, uint32_t warp_index, uint32_t,
                                         CompanionWrite& shared) {
  const WriteParams params = shared.job.params;
  const uint64_t* const map = shared.map;
  const bool warp_lock = shared.warp_lock != 0;
  if (warp_index >= params.warps) {
    play_controller(warp, warp_index, params.warps, params.controllers, params.fs->volume.array);
    return;
  }
  const nvme::Route route = nvme::pick_route(params.fs->volume.array);
  const bool active = warp.thread_rank() < params.lanes_per_warp;
  const uint32_t lanes = warp.ballot(active);
  const detail::WriteActor actor =
      detail::write_actor(params, warp_index, active ? warp.thread_rank() : 0);
  detail::WriteTally tally;
  detail::begin_writes(warp, shared.job.results);
  detail::WriteClock clock(params);
  for (uint32_t operation = 0; operation < params.operations; ++operation) {
    if (operation != 0 && warp.shfl(clock.over() ? 1u : 0u, 0) != 0) break;
    const WriteStamp stamp = detail::stamp_of(params, actor, operation);
    if (active) put_stamp(actor.buffer, kBlockBytes, stamp);
    const uint64_t block = active ? map[stamp.block] : 0;
    tally.error = detail::run_mapped(
        warp, route, lanes, warp_lock,
        detail::mapped_command(route, format::nvme::IoOpcode::kWrite, block, actor.buffer));
    if (warp.any(tally.error != 0)) break;
    if (active) clock.note(tally);
  }
  if (active) params.done[actor.number] = tally.writes;
  detail::end_writes(warp, shared.job.results, tally);
  leave_controllers(warp, params.controllers);
}

}  // namespace gofs::bench
