// SPDX-License-Identifier: Apache-2.0
#include "rpc.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <exception>

#include "bodies.hpp"
#include "host/messages.h"
#include "host/run_job.h"
#include "host_load.hpp"
#include "rpc_server.hpp"
#include "slots.hpp"

namespace gofs::bench {
namespace {

constexpr const char* kRpcSubject = "rpc";

/// What one run needs beside its parameters.
struct RpcMemory {
  RpcMemory(kernels::Backend& backend, uint32_t lanes)
      : buffers(backend.memory(), uint64_t{lanes} * kBlockBytes),
        requests(backend.shared_memory(), lanes),
        replies(backend.shared_memory(), lanes),
        last(backend.shared_memory(), lanes) {}
  BackendArray buffers;
  host::SharedArray<RpcRequest> requests;
  host::SharedArray<RpcReply> replies;
  host::SharedArray<uint64_t> last;
};

RpcParams rpc_params(const Point& point, const Storage& storage, const Actors& actors,
                     const RpcMemory& memory, const RpcOptions& options) {
  RpcParams params{};
  params.bench.pattern = point.random ? Pattern::kRandom : Pattern::kSequential;
  params.bench.warps = actors.warps;
  params.bench.lanes_per_warp = actors.lanes_per_warp;
  params.bench.operations = UINT32_MAX - 1;
  params.bench.block_bytes = kBlockBytes;
  params.bench.span_bytes = point.writes ? storage.written_bytes() : storage.read_bytes();
  params.bench.stamp_check = 1;
  params.bench.buffers = memory.buffers.data();
  params.queue = {memory.requests.data(), memory.replies.data(), actors.count, options.timeout_ns};
  params.time_ns = static_cast<uint64_t>(options.seconds * 1e9);
  params.writes = point.writes ? 1 : 0;
  params.run = next_stamp_run();
  params.bench.seed = detail::mix(params.run);
  params.last = memory.last.data();
  return params;
}

}  // namespace

std::string Rpc::note() const {
  return fmt::format("{} host threads serve, from {}", options_.servers, storage_.describe());
}

Expected<Sample> Rpc::measure(const Point& point) {
  try {
    if (point.writes) {
      if (auto room = storage_.make_room(); !room) return room.error();
    }
    return run(point);
  } catch (const std::exception& problem) {
    return host::make_error(EAGAIN, kRpcSubject, problem.what());
  }
}

Expected<Sample> Rpc::run(const Point& point) {
  const Actors actors = actors_by_lane(device_.backend(), point.outstanding, point.layout);
  const RpcMemory memory(device_.backend(), actors.count);
  RpcJob job{rpc_params(point, storage_, actors, memory, options_), {}};
  Sample sample;
  {
    const RpcServer server(device_, storage_, job.params.queue, options_.servers);
    const CpuMeter meter;
    if (!host::run_in(device_.backend().memory(), job, [&](RpcJob* placed) {
          return device_.run(bodies::kRpc, actors.grid, placed);
        })) {
      return host::make_error(EIO, kRpcSubject, device_.error());
    }
    sample.cores = meter.cores();
  }
  const BenchResults& done = job.results;
  if (done.error == -EBADMSG) return wrong_blocks(1, "that a host thread got");
  if (done.error != 0) return host::make_error(done.error, kRpcSubject);
  if (done.wrong_stamps != 0) return wrong_blocks(done.wrong_stamps, "in the device's memory");
  sample.outstanding = actors.count;
  sample.in_flight = actors.count;
  sample.operations = done.bytes / kBlockBytes;
  sample.seconds = static_cast<double>(done.last_ns - done.first_ns) * 1e-9;
  if (point.writes) {
    if (auto checked = check_file(job.params, actors.count); !checked) return checked.error();
  }
  return sample;
}

/// Of a sample of the lanes the block that each wrote last.
Expected<void> Rpc::check_file(const RpcParams& params, uint32_t lanes) {
  constexpr uint32_t kSampleMax = 256;
  alignas(kBlockBytes) uint8_t block[kBlockBytes];
  uint64_t wrong = 0;
  for (uint32_t lane = 0; lane < lanes; lane += lanes / kSampleMax + 1) {
    const uint64_t index = params.last[lane];
    const int error = storage_.read_back(block, kBlockBytes, index * kBlockBytes);
    if (error != 0) return host::make_error(error, kRpcSubject, "reading back");
    if (!has_block_stamp(block, index, params.run)) ++wrong;
  }
  if (wrong != 0) return wrong_blocks(wrong, "that were written");
  return {};
}

}  // namespace gofs::bench
