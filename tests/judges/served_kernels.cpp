// SPDX-License-Identifier: Apache-2.0
#include "served_kernels.h"

#include "serve/kernel_batch.h"
#include "serve/move_for_test.h"
#include "served_calls.h"

namespace gofs::judges {

using request::Verb;
using serve::KernelCall;
using serve::KernelChannel;
using serve::MovedRange;

namespace {

constexpr uint32_t kBlockWarps = 2;

uint32_t warps_of(Scope scope) {
  if (scope == Scope::kGrid) return kGridWarps;
  return scope == Scope::kBlock ? kBlockWarps : 1;
}

/// What is only written from is not changed.
uint8_t* memory_of(std::string_view bytes) {
  return reinterpret_cast<uint8_t*>(const_cast<char*>(bytes.data()));
}

KernelCall call_of(Verb verb, int bd) {
  KernelCall call(verb);
  call.request.descriptor = bd;
  return call;
}

}  // namespace

/// That of the user for whom the thread works.
KernelChannel& ServedKernels::channel() {
  return calls_.channel_of_kernels(caller_of_thread().credentials);
}

/// What `work(warp, channel)` answers, done by one warp.
template <typename Work>
int64_t ServedKernels::once(const Work& work) {
  KernelChannel& channel = this->channel();
  int64_t result = 0;
  launch(1, width_, [&](const simt::Warp& warp, uint32_t) {
    const int64_t mine = work(warp, channel);
    if (warp.thread_rank() == 0) result = mine;
  });
  return result;
}

int64_t ServedKernels::ask(const KernelCall& call) {
  return once([&](const simt::Warp& warp, KernelChannel& channel) {
    KernelCall mine = call;
    return serve::ask(warp, channel, mine);
  });
}

/// Moves a range by `warps` warps, each of which has its share, unless it may not be shared.
int64_t ServedKernels::move(uint32_t warps, const MovedRange& range) {
  return serve::move_together(channel(), range, warps, [this](uint32_t count, const auto& work) {
    launch(count, width_, work);
  });
}

int64_t ServedKernels::write_parts(const serve::WrittenParts& write) {
  return once([&](const simt::Warp& warp, KernelChannel& channel) {
    return serve::write_parts(warp, channel, write);
  });
}

int64_t ServedKernels::pwritev(int fd, const Calls::Buffers& parts, uint64_t offset) {
  const std::vector<IoVector> all = vectors(parts);
  const auto count = static_cast<int>(all.size());
  const auto bytes = static_cast<uint64_t>(vfs::total_bytes(all.data(), count));
  if (serve::is_one_write(channel(), count, bytes)) {
    return write_parts({Verb::kPwrite, fd, all.data(), count, bytes, offset});
  }
  return vfs::move_parts(all.data(), count, [&](const IoVector& part, uint64_t done) {
    auto* const from = static_cast<uint8_t*>(part.base);
    return move(1, {Verb::kPwrite, fd, from, part.bytes, offset + done});
  });
}

int64_t ServedKernels::writev(int fd, const Calls::Buffers& parts) {
  const std::vector<IoVector> all = vectors(parts);
  const auto count = static_cast<int>(all.size());
  const auto bytes = static_cast<uint64_t>(vfs::total_bytes(all.data(), count));
  if (serve::is_one_write(channel(), count, bytes)) {
    return write_parts({Verb::kWrite, fd, all.data(), count, bytes, 0});
  }
  return vfs::move_parts(all.data(), count, [&](const IoVector& part, uint64_t) {
    return once([&](const simt::Warp& warp, KernelChannel& channel) {
      return serve::write_on(warp, channel, fd, part.base, part.bytes);
    });
  });
}

vfs::Ticket ServedKernels::start_pwrite(int fd, std::string_view bytes, uint64_t offset) {
  vfs::Ticket started{};
  once([&](const simt::Warp& warp, KernelChannel& channel) -> int64_t {
    KernelCall call = call_of(Verb::kPwrite, fd);
    call.input = bytes.data();
    call.request.bytes = bytes.size();
    call.request.offset = static_cast<int64_t>(offset);
    serve::RingPlace place{};
    const int error = serve::begin_call(warp, channel, call, true, place);
    if (warp.thread_rank() != 0) return 0;
    started = {static_cast<int64_t>(call.request.bytes), place.slot, place.lap, 0};
    if (error != 0) started = {error, vfs::Ticket::kNoOperation, 0, 0};
    return 0;
  });
  return started;
}

int64_t ServedKernels::wait(const vfs::Ticket& ticket) {
  if (ticket.operation == vfs::Ticket::kNoOperation) return ticket.result;
  return once([&](const simt::Warp& warp, KernelChannel& channel) {
    return serve::end_call(warp, channel, {ticket.operation, ticket.generation});
  });
}

/// `call(lane, channel, request)` of each request, a call of the lane's own; one without a request
/// makes none.
template <typename Call>
void ServedKernels::on_lanes(LaneRequests& requests, const Call& call) {
  KernelChannel& channel = this->channel();
  launch_lanes(width_, requests, [&](const simt::Warp&, LaneRequest* one) {
    if (one != nullptr) one->result = call(simt::PartialWarp::single(), channel, *one);
  });
}

void ServedKernels::pwrite_lanes(int fd, LaneRequests& requests) {
  on_lanes(requests, [&](const auto& lane, KernelChannel& channel, LaneRequest& one) {
    const MovedRange range{Verb::kPwrite, fd, memory_of(one.data), one.data.size(), one.offset};
    return serve::moved_bytes(range, serve::move_share(lane, channel, range, 0, 1));
  });
}

void ServedKernels::pread_lanes(int fd, LaneRequests& requests) {
  on_lanes(requests, [&](const auto& lane, KernelChannel& channel, LaneRequest& one) {
    const MovedRange range{Verb::kPread, fd, memory_of(one.data), one.data.size(), one.offset};
    return serve::moved_bytes(range, serve::move_share(lane, channel, range, 0, 1));
  });
}

void ServedKernels::write_lanes(int fd, LaneRequests& requests) {
  on_lanes(requests, [&](const auto& lane, KernelChannel& channel, LaneRequest& one) {
    return serve::write_on(lane, channel, fd, one.data.data(), one.data.size());
  });
}

int64_t ServedKernels::pwrite(Scope scope, int fd, std::string_view bytes, uint64_t offset) {
  return move(warps_of(scope), {Verb::kPwrite, fd, memory_of(bytes), bytes.size(), offset});
}

int64_t ServedKernels::write(Scope, int fd, std::string_view bytes) {
  return once([&](const simt::Warp& warp, KernelChannel& channel) {
    return serve::write_on(warp, channel, fd, bytes.data(), bytes.size());
  });
}

int64_t ServedKernels::pread(Scope scope, int fd, void* buffer, uint64_t bytes, uint64_t offset) {
  return move(warps_of(scope), {Verb::kPread, fd, static_cast<uint8_t*>(buffer), bytes, offset});
}

int ServedKernels::begin_batch(const std::string& directory, uint32_t count,
                               vfs::BatchSource source) {
  KernelCall call(Verb::kBatchOpen);
  call.path = directory.c_str();
  call.request.length = count;
  call.request.flags = static_cast<uint32_t>(source);
  return static_cast<int>(ask(call));
}

/// `work(warp, channel, share)` by the warps of a grid.
template <typename Work>
void ServedKernels::share(int bd, uint32_t count, const Work& work) {
  KernelChannel& channel = this->channel();
  launch(kGridWarps, width_, [&](const simt::Warp& warp, uint32_t index) {
    work(warp, channel, serve::BatchShare{bd, count, index, kGridWarps});
  });
}

/// Closes a batch, of whose files the items get the errors.
int ServedKernels::end_batch(int bd, std::vector<BatchItem>& items) {
  for (uint32_t i = 0; i < items.size(); ++i) {
    items[i].error = serve::batch_file(simt::PartialWarp::single(), channel(), bd, i).error;
  }
  return static_cast<int>(ask(call_of(Verb::kBatchClose, bd)));
}

int ServedKernels::create_batch(const std::string& directory, uint32_t mode,
                                std::vector<BatchItem>& items) {
  const BatchArrays arrays(items);
  const int bd = begin_batch(directory, arrays.count(), vfs::BatchSource::kNewFiles);
  if (bd < 0) return bd;
  const vfs::BatchCreation creation{
      directory.c_str(),    arrays.names.data(),   arrays.count(),     mode,
      arrays.buffer.data(), arrays.offsets.data(), arrays.sizes.data()};
  share(bd, arrays.count(), [&](const auto& warp, KernelChannel& channel, const auto& share) {
    serve::make_files(warp, channel, share, creation);
  });
  return end_batch(bd, items);
}

/// Opens the files as a batch, has `work(bd)` done with it, and closes it.
template <typename Work>
int ServedKernels::with_batch(const std::string& directory, std::vector<BatchItem>& items,
                              const Work& work) {
  const BatchArrays arrays(items);
  const int bd = begin_batch(directory, arrays.count(), vfs::BatchSource::kNames);
  if (bd < 0) return bd;
  share(bd, arrays.count(), [&](const auto& warp, KernelChannel& channel, const auto& share) {
    serve::enter_names(warp, channel, share, arrays.names.data());
  });
  work(bd);
  return end_batch(bd, items);
}

int ServedKernels::read_batch(const std::string& directory, std::vector<BatchItem>& items) {
  return with_batch(directory, items, [&](int bd) {
    for (uint32_t i = 0; i < items.size(); ++i) {
      const auto file = serve::batch_file(simt::PartialWarp::single(), channel(), bd, i);
      items[i].bytes.assign(file.error < 0 ? 0 : file.size_bytes, '\xee');
    }
    BatchArrays arrays(items);
    share(bd, arrays.count(), [&](const auto& warp, KernelChannel& channel, const auto& share) {
      serve::read_files(warp, channel, share, arrays.buffer.data(), arrays.offsets.data());
    });
    arrays.give_back(items);
  });
}

int ServedKernels::write_batch(const std::string& directory, std::vector<BatchItem>& items) {
  return with_batch(directory, items, [&](int bd) {
    const BatchArrays arrays(items);
    share(bd, arrays.count(), [&](const auto& warp, KernelChannel& channel, const auto& share) {
      serve::write_files(warp, channel, share, arrays.buffer.data(), arrays.offsets.data(),
                         arrays.sizes.data());
    });
  });
}

}  // namespace gofs::judges
