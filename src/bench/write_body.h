// SPDX-License-Identifier: Apache-2.0
//
// What the benchmark of writing runs on the backend: the same writes as raw NVMe commands and
// through the file API, so that their ratio is the file system's own cost. Every actor (a lane, or
// a warp) has one write under way at a time and goes on for a given time.
//
// Each write has a stamp of its own at both ends: which file and block, which run, which actor's
// how manieth. A second launch reads each actor's last write back and compares.
#pragma once

#include "bench/read_body.h"
#include "vfs/metadata.h"

namespace gofs::bench {

enum class WritePattern : uint32_t { kSequential, kRandom, kAppend };
enum class WriteScope : uint32_t { kThread, kWarp };
enum class WriteStep : uint32_t {
  kWrite,
  kCheck,  // afterwards, with the same parameters
};

struct WriteParams {
  vfs::Filesystem* fs;
  WriteStep step;
  WritePattern pattern;
  WriteScope scope;  // raw: kThread
  uint32_t warps;    // that take part, and
  uint32_t
      lanes_per_warp;      // actors in each (1 at warp scope): their product is what is outstanding
  uint32_t operations;     // of each actor, at most
  uint64_t time_ns;        // for which it begins new ones; the first it does in any case
  uint32_t block_bytes;    // of one write; a multiple of 4096
  uint32_t command_bytes;  // raw: of one command at most
  uint64_t start_byte;     // raw: where on the device the range begins
  uint64_t span_bytes;     // of the range, or of each file: a block for each actor at least
  const int* descriptors;  // file: one for all, or one for each warp
  uint32_t files;          // how many they are
  uint32_t sync_each;      // not 0: at warp scope, each write is followed by fsync
  uint64_t run;            // a number of this run, for its stamps and its random places
  uint8_t* buffers;        // block_bytes for each actor
  uint32_t* done;          // writes of each actor
  uint32_t* stop;          // not null: who finds it not 0 begins no more
  ControllerWarps controllers;  // beside the others
};

struct WriteResults {
  uint64_t first_ns = ~uint64_t{0};  // start of the earliest and end of the latest warp, on the
  uint64_t last_ns = 0;              // backend's clock
  uint64_t writes = 0;
  uint64_t longest_ns = 0;  // of one write
  uint64_t wrong = 0;       // kCheck: blocks that did not hold what was written last
  int error = 0;            // of some actor that failed
};

/// What a launch is given, and what it leaves.
struct WriteJob {
  WriteParams params;
  WriteResults results;
};

/// What a written block says about itself.
struct WriteStamp {
  uint64_t file;   // its number; kNoFile of raw writes
  uint64_t block;  // in the file or range; kAppended where the writer does not know
  uint64_t run;
  uint64_t write;  // the actor, and in the lower 32 bits which of its writes

  static constexpr uint64_t kNoFile = ~uint64_t{0};
  static constexpr uint64_t kAppended = ~uint64_t{0};

  GOFS_HD uint64_t sum() const {
    return detail::mix(file ^ detail::mix(block ^ detail::mix(run ^ detail::mix(write))));
  }
};

/// One lane: stamps `bytes` bytes, at least 40, that lie aligned to 8.
GOFS_HD inline void put_stamp(uint8_t* data, uint32_t bytes, const WriteStamp& stamp) {
  format::store_u64(data, stamp.file);
  format::store_u64(data + 8, stamp.block);
  format::store_u64(data + 16, stamp.run);
  format::store_u64(data + 24, stamp.write);
  format::store_u64(data + bytes - 8, stamp.sum());
}

/// One lane: false if the bytes have no stamp, or not the same at both ends.
GOFS_HD inline bool get_stamp(const uint8_t* data, uint32_t bytes, WriteStamp& stamp) {
  stamp = {format::load_u64(data), format::load_u64(data + 8), format::load_u64(data + 16),
           format::load_u64(data + 24)};
  return format::load_u64(data + bytes - 8) == stamp.sum();
}

GOFS_HD inline bool has_stamp(const uint8_t* data, uint32_t bytes, const WriteStamp& wanted) {
  WriteStamp found{};
  return get_stamp(data, bytes, found) && found.file == wanted.file &&
         found.block == wanted.block && found.run == wanted.run && found.write == wanted.write;
}

namespace detail {

/// One that writes, and what of its file or range is its own: every `members`-th block.
struct WriteActor {
  uint64_t number;  // among all
  uint64_t file;
  int descriptor;
  uint32_t member;
  uint32_t members;
  uint8_t* buffer;
};

GOFS_HD inline uint64_t actor_count(const WriteParams& params) {
  return uint64_t{params.warps} * params.lanes_per_warp;
}

GOFS_HD inline WriteActor write_actor(const WriteParams& params, uint32_t warp_index,
                                      uint32_t lane) {
  const uint64_t number = uint64_t{warp_index} * params.lanes_per_warp + lane;
  const bool own = params.files > 1;
  const uint64_t file = own ? warp_index : 0;
  return {number,
          params.files == 0 ? WriteStamp::kNoFile : file,
          params.files == 0 ? -1 : params.descriptors[file],
          static_cast<uint32_t>(own ? lane : number),
          static_cast<uint32_t>(own ? params.lanes_per_warp : actor_count(params)),
          params.buffers + number * params.block_bytes};
}

/// Which block the actor's `operation`-th write goes to; no other's do. In order, actors of one
/// file are side by side, and files of their own are each at another place; at random, it is any
/// block, not each actor's always on the same unit of an SSD.
GOFS_HD inline uint64_t block_to_write(const WriteParams& params, const WriteActor& actor,
                                       uint32_t operation) {
  if (params.pattern == WritePattern::kAppend) return WriteStamp::kAppended;
  const auto own = static_cast<uint32_t>(params.span_bytes / params.block_bytes / actor.members);
  if (params.pattern == WritePattern::kSequential) {
    const uint64_t turn = (operation + (params.files > 1 ? actor.file : 0)) % own;
    return turn * actor.members + actor.member;
  }
  const uint64_t random = mix((actor.number << 32 | operation) + mix(params.run));
  const auto turn = static_cast<uint64_t>((static_cast<Uint128>(random) * own) >> 64);
  // In each turn the members have its blocks in another order.
  uint64_t place =
      actor.member + static_cast<uint64_t>((static_cast<Uint128>(mix(turn)) * actor.members) >> 64);
  if (place >= actor.members) place -= actor.members;
  return turn * actor.members + place;
}

GOFS_HD inline WriteStamp stamp_of(const WriteParams& params, const WriteActor& actor,
                                   uint32_t operation) {
  return {actor.file, block_to_write(params, actor, operation), params.run,
          actor.number << 32 | operation};
}

struct WriteTally {
  uint32_t writes = 0;
  uint64_t longest_ns = 0;
  uint64_t wrong = 0;
  int error = 0;
};

/// The clock of one actor.
class WriteClock {
 public:
  GOFS_HD explicit WriteClock(const WriteParams& params)
      : stop_(params.stop), now_ns_(simt::now_ns()), end_ns_(now_ns_ + params.time_ns) {}

  GOFS_HD bool over() const {
    return now_ns_ >= end_ns_ || (stop_ != nullptr && simt::load_relaxed(*stop_) != 0);
  }
  /// After a write.
  GOFS_HD void note(WriteTally& tally) {
    const uint64_t now_ns = simt::now_ns();
    tally.longest_ns = simt::max(tally.longest_ns, now_ns - now_ns_);
    now_ns_ = now_ns;
    ++tally.writes;
  }

 private:
  const uint32_t* stop_;
  uint64_t now_ns_;
  uint64_t end_ns_;
};

GOFS_HD inline void begin_writes(simt::AnyWarp auto warp, WriteResults& results) {
  if (warp.thread_rank() == 0) {
    simt::AtomicRef<uint64_t>(results.first_ns)
        .fetch_min(simt::now_ns(), simt::memory_order_relaxed);
  }
  warp.sync();
}

GOFS_HD inline void end_writes(simt::AnyWarp auto warp, WriteResults& results,
                               const WriteTally& tally) {
  warp.sync();
  const uint64_t writes = simt::reduce_add(warp, uint64_t{tally.writes});
  const uint64_t wrong = simt::reduce_add(warp, tally.wrong);
  const int error = simt::first_error(warp, tally.error);
  uint64_t longest_ns = 0;
  for (uint32_t lane = 0; lane < warp.size(); ++lane) {
    longest_ns = simt::max(longest_ns, warp.shfl(tally.longest_ns, lane));
  }
  if (warp.thread_rank() != 0) return;
  simt::AtomicRef<uint64_t>(results.last_ns).fetch_max(simt::now_ns(), simt::memory_order_relaxed);
  simt::AtomicRef<uint64_t>(results.longest_ns).fetch_max(longest_ns, simt::memory_order_relaxed);
  simt::add_relaxed(results.writes, writes);
  simt::add_relaxed(results.wrong, wrong);
  if (error != 0) simt::store_relaxed(results.error, error);
}

/// All writes of a warp that is an actor. Collective.
template <typename Api>
GOFS_DEVICE void write_file(simt::AnyWarp auto warp, const WriteParams& params,
                            const WriteActor& actor, WriteTally& tally) {
  const bool leader = warp.thread_rank() == 0;
  const bool append = params.pattern == WritePattern::kAppend;
  WriteClock clock(params);
  for (uint32_t operation = 0; operation < params.operations; ++operation) {
    if (operation != 0 && warp.shfl(clock.over() ? 1u : 0u, 0) != 0) break;
    const WriteStamp stamp = stamp_of(params, actor, operation);
    if (leader) put_stamp(actor.buffer, params.block_bytes, stamp);
    warp.sync();
    const int64_t put =
        Api::pwrite_by_warp(warp, *params.fs, actor.descriptor, actor.buffer, params.block_bytes,
                            append ? 0 : stamp.block * params.block_bytes);
    int error = put == params.block_bytes ? 0 : put < 0 ? static_cast<int>(put) : -EIO;
    if (error == 0 && params.sync_each != 0) {
      error = Api::fsync_by_warp(warp, *params.fs, actor.descriptor);
    }
    if (error != 0) {
      if (leader) tally.error = error;
      break;
    }
    if (leader) clock.note(tally);
  }
}

/// All writes of those lanes of a warp that are actors: threads that call at the same place, and
/// not the others. Collective.
template <typename Api>
GOFS_DEVICE void write_file_by_lanes(simt::AnyWarp auto warp, const WriteParams& params, bool acts,
                                     const WriteActor& actor, WriteTally& tally) {
  const bool append = params.pattern == WritePattern::kAppend;
  WriteClock clock(params);
  for (uint32_t operation = 0; operation < params.operations; ++operation) {
    if (operation != 0 && clock.over()) acts = false;
    if (!warp.any(acts)) break;
    if (!acts) continue;
    const WriteStamp stamp = stamp_of(params, actor, operation);
    put_stamp(actor.buffer, params.block_bytes, stamp);
    const int64_t put =
        Api::pwrite_by_thread(*params.fs, actor.descriptor, actor.buffer, params.block_bytes,
                              append ? 0 : stamp.block * params.block_bytes);
    acts = put == params.block_bytes;
    if (acts) {
      clock.note(tally);
    } else {
      tally.error = put < 0 ? static_cast<int>(put) : -EIO;
    }
  }
}

/// Whether a block of a file that several actors appended to can be what one of them wrote.
GOFS_HD inline bool was_appended(const WriteParams& params, uint32_t warp_index,
                                 const WriteStamp& stamp) {
  const uint64_t actor = stamp.write >> 32;
  const uint64_t first = uint64_t{warp_index} * params.lanes_per_warp;
  return stamp.file == warp_index && stamp.block == WriteStamp::kAppended &&
         stamp.run == params.run && actor >= first && actor - first < params.lanes_per_warp &&
         (stamp.write & 0xffffffffu) < params.done[actor];
}

/// Counts a wrong size of the file that the warp's actors appended `blocks` to. What the call finds
/// goes to the first actor's buffer, which the whole warp reaches. Collective.
template <typename Api>
GOFS_DEVICE void check_size(simt::AnyWarp auto warp, const WriteParams& params,
                            const WriteActor& first, uint64_t blocks, WriteTally& tally) {
  static_assert(sizeof(vfs::Stat) <= kBlockBytes);
  auto* const found = reinterpret_cast<vfs::Stat*>(first.buffer);
  const int error = Api::fstat_by_warp(warp, *params.fs, first.descriptor, found);
  if (warp.thread_rank() == 0) {
    tally.error = error;
    if (error == 0 && found->size_bytes != blocks * params.block_bytes) ++tally.wrong;
  }
  warp.sync();
}

/// Reads what each actor of the warp wrote last, or of a file that was appended to the last blocks,
/// and its size. Collective.
template <typename Api>
GOFS_DEVICE void check_file(simt::AnyWarp auto warp, uint32_t warp_index, const WriteParams& params,
                            WriteTally& tally) {
  const uint32_t lane = warp.thread_rank();
  const bool active = lane < params.lanes_per_warp;
  const WriteActor actor = write_actor(params, warp_index, active ? lane : 0);
  const uint32_t done = active ? params.done[actor.number] : 0;
  const bool append = params.pattern == WritePattern::kAppend;
  const uint64_t total = simt::reduce_add(warp, uint64_t{done});
  if (append) {
    check_size<Api>(warp, params, write_actor(params, warp_index, 0), total, tally);
  }
  const bool reads = active && (append ? lane < total : done != 0);
  if (!reads) return;
  const WriteStamp wanted = stamp_of(params, actor, append ? 0 : done - 1);
  const uint64_t block = append ? total - 1 - lane : wanted.block;
  const int64_t got = Api::pread_by_thread(*params.fs, actor.descriptor, actor.buffer,
                                           params.block_bytes, block * params.block_bytes);
  if (got != params.block_bytes) {
    tally.error = got < 0 ? static_cast<int>(got) : -EIO;
    return;
  }
  WriteStamp found{};
  const bool right = append ? get_stamp(actor.buffer, params.block_bytes, found) &&
                                  was_appended(params, warp_index, found)
                            : has_stamp(actor.buffer, params.block_bytes, wanted);
  if (!right) ++tally.wrong;
}

/// Runs a command for each lane of `lanes`, or as many one after the other as a write takes.
/// Collective. 0 or a negative errno of this lane's.
GOFS_HD inline int run_raw(simt::AnyWarp auto warp, const WriteParams& params,
                           const nvme::Route& route, uint32_t lanes, format::nvme::IoOpcode opcode,
                           uint64_t block, uint8_t* buffer) {
  return move_raw(warp, route, lanes,
                  {opcode, params.start_byte + block * params.block_bytes, buffer,
                   params.block_bytes, params.command_bytes});
}

}  // namespace detail

/// Raw commands, no file system.
GOFS_HD inline void raw_write_body(simt::AnyWarp auto warp, uint32_t warp_index, uint32_t,
                                   WriteJob& job) {
  const WriteParams params = job.params;  // a GPU would fetch them from the host again and again
  if (warp_index >= params.warps) {
    play_controller(warp, warp_index, params.warps, params.controllers, params.fs->volume.array);
    return;
  }
  const nvme::Route route = nvme::pick_route(params.fs->volume.array);
  const bool active = warp.thread_rank() < params.lanes_per_warp;
  const detail::WriteActor actor =
      detail::write_actor(params, warp_index, active ? warp.thread_rank() : 0);
  detail::WriteTally tally;
  detail::begin_writes(warp, job.results);
  if (params.step == WriteStep::kWrite) {
    const uint32_t lanes = warp.ballot(active);
    detail::WriteClock clock(params);
    for (uint32_t operation = 0; operation < params.operations; ++operation) {
      if (operation != 0 && warp.shfl(clock.over() ? 1u : 0u, 0) != 0) break;
      const WriteStamp stamp = detail::stamp_of(params, actor, operation);
      if (active) put_stamp(actor.buffer, params.block_bytes, stamp);
      tally.error = detail::run_raw(warp, params, route, lanes, format::nvme::IoOpcode::kWrite,
                                    stamp.block, actor.buffer);
      if (warp.any(tally.error != 0)) break;
      if (active) clock.note(tally);
    }
    if (active) params.done[actor.number] = tally.writes;
  } else {
    const uint32_t done = active ? params.done[actor.number] : 0;
    WriteStamp wanted{};
    if (done != 0) wanted = detail::stamp_of(params, actor, done - 1);
    tally.error = detail::run_raw(warp, params, route, warp.ballot(done != 0),
                                  format::nvme::IoOpcode::kRead, wanted.block, actor.buffer);
    if (done != 0 && tally.error == 0 && !has_stamp(actor.buffer, params.block_bytes, wanted)) {
      ++tally.wrong;
    }
  }
  detail::end_writes(warp, job.results, tally);
  leave_controllers(warp, params.controllers);
}

/// The same writes through open files.
template <typename Api>
GOFS_DEVICE void file_write_body(simt::AnyWarp auto warp, uint32_t warp_index, uint32_t,
                                 WriteJob& job) {
  const WriteParams params = job.params;
  if (warp_index >= params.warps) {
    play_controller(warp, warp_index, params.warps, params.controllers, params.fs->volume.array);
    return;
  }
  const uint32_t lane = warp.thread_rank();
  const bool leads = lane < params.lanes_per_warp;  // an actor; at warp scope that is lane 0
  const detail::WriteActor actor = detail::write_actor(params, warp_index, leads ? lane : 0);
  detail::WriteTally tally;
  detail::begin_writes(warp, job.results);
  if (params.step == WriteStep::kCheck) {
    detail::check_file<Api>(warp, warp_index, params, tally);
  } else {
    if (params.scope == WriteScope::kWarp) {
      detail::write_file<Api>(warp, params, actor, tally);
    } else {
      detail::write_file_by_lanes<Api>(warp, params, leads, actor, tally);
    }
    if (leads) params.done[actor.number] = tally.writes;
  }
  detail::end_writes(warp, job.results, tally);
  leave_controllers(warp, params.controllers);
}

}  // namespace gofs::bench
