// SPDX-License-Identifier: Apache-2.0
#include "host/serve/kernel_end.h"

#include <poll.h>

#include <algorithm>
#include <cerrno>
#include <iterator>
#include <optional>
#include <utility>

#include "host/serve/bell.h"
#include "host/serve/channel_client.h"
#include "host/serve/ring_head.h"
#include "ssd/hosted/quiet_thread.h"
#include "ssd/system_failure.h"

namespace gofs::host {

namespace {

constexpr uint64_t kLockTimeoutNs = 10'000'000'000;

KernelEnds ask_for_ends(ControlLine& line) {
  std::vector<ssd::Descriptor> with;
  const auto ring = unpacked<KernelRing>(line.ask({Ask::kForKernels, {}}, &with));
  if (with.size() != 1) ssd::fail_with(EPROTO, "a channel for kernels without memory");
  return {ring, std::move(with.front())};
}

}  // namespace

struct KernelEnd::State {
  explicit State(std::unique_ptr<kernels::Backend> its_backend)
      : backend(std::move(its_backend)),
        channel(backend->memory(), 1),
        gone(backend->shared_memory(), 1),
        waiting(backend->memory(), 1),
        looked(backend->memory(), 1),
        windows(backend->memory(), 1) {}
  ~State() {
    if (host_memory) backend->forget(host_memory->data());
  }

  uint8_t* map(const KernelRing& ring, ssd::Descriptor memory) {
    if (ring.of_gpu) {
      gpu_memory = backend->map_shared_memory(std::move(memory), ring.bytes);
      return gpu_memory->data();
    }
    SharedMemory mapped = SharedMemory::map(std::move(memory));
    if (mapped.bytes() < ring.bytes) ssd::fail_with(EPROTO, "a channel too small");
    const std::string unreachable =
        backend->reach(mapped.data(), mapped.bytes(), kernels::HostRange::kMemory);
    if (!unreachable.empty()) ssd::fail_with(ENOMEM, unreachable);
    host_memory.emplace(std::move(mapped));
    return host_memory->data();
  }

  std::unique_ptr<kernels::Backend> backend;
  // Of the ring, one of these two.
  std::unique_ptr<kernels::SharedWarpMemory> gpu_memory;
  std::optional<SharedMemory> host_memory;
  SharedArray<serve::KernelChannel> channel;
  SharedArray<uint32_t> gone;     // KernelChannel::gone
  SharedArray<uint32_t> waiting;  // KernelChannel::waiting
  SharedArray<uint64_t> looked;   // KernelChannel::gone_looked_ns
  SharedArray<serve::KernelWindows> windows;
  uint32_t window_count = 0;
  std::optional<SharedArray<uint32_t>> words;  // laps, and a bit for each slot
  std::optional<SharedArray<serve::CallBegun>> begun;
  std::optional<SharedArray<request::VerbRow>> rows;
};

KernelEnd::KernelEnd(std::unique_ptr<kernels::Backend> backend, ControlLine& line,
                     int descriptor_base)
    : KernelEnd(std::move(backend), ask_for_ends(line), line.connection(), descriptor_base) {}

KernelEnd::KernelEnd(std::unique_ptr<kernels::Backend> backend, KernelEnds ends,
                     const ssd::Descriptor& connection, int descriptor_base)
    : state_(std::make_unique<State>(std::move(backend))), stop_(make_bell()) {
  uint8_t* const memory = state_->map(ends.ring, std::move(ends.memory));
  simt::MemorySpace& own = state_->backend->memory();
  serve::RingHead head{};
  own.read(&head, memory, sizeof(head));
  head = checked_head(head, ends.ring.bytes);
  const uint32_t depth = head.depth;
  const uint32_t bits = (depth + 31) / 32;
  state_->words.emplace(own, depth + bits);
  state_->begun.emplace(own, depth);
  state_->rows.emplace(own, request::kVerbs);
  own.write(state_->rows->data(), request::kVerbRows.data(),
            request::kVerbRows.size() * sizeof(request::VerbRow));
  std::vector<uint32_t> free(bits, ~0u);
  if (depth % 32 != 0) free.back() = (1u << depth % 32) - 1;
  own.write(state_->words->data() + depth, free.data(), free.size() * sizeof(uint32_t));
  auto channel = std::make_unique<serve::KernelChannel>();
  channel->ring = serve::view_of_ring(memory, head);
  channel->rows = state_->rows->data();
  channel->part_bytes = head.buffer_bytes / depth;
  channel->descriptor_base = descriptor_base;
  channel->answer_timeout_ns = ChannelClient::kAnswerTimeoutNs;
  channel->lock_timeout_ns = kLockTimeoutNs;
  channel->laps = state_->words->data();
  channel->free = state_->words->data() + depth;
  channel->waiting = state_->waiting.data();
  channel->begun = state_->begun->data();
  channel->gone = state_->gone.data();
  channel->gone_looked_ns = state_->looked.data();
  channel->windows = state_->windows.data();
  own.write(state_->channel.data(), channel.get(), sizeof(*channel));
  watching_ = ssd::start_quiet_thread([this, &connection] { watch(connection); });
}

KernelEnd::~KernelEnd() {
  if (!process_.is_ours()) {
    watching_.detach();
    (void)state_.release();
    return;
  }
  ring_bell(stop_);
  watching_.join();
}

VolumeHandle KernelEnd::handle() const { return serve::handle_of(state_->channel.data()); }

void KernelEnd::add_window(const WindowOfClient& window) {
  simt::MemorySpace& own = state_->backend->memory();
  serve::KernelWindows* const windows = state_->windows.data();
  const auto begin = reinterpret_cast<uint64_t>(window.memory);
  // Who sees the beginning sees the end. [H8]
  own.write_object(&windows->at[window.number].end, begin + window.bytes);
  own.write_object(&windows->at[window.number].begin, begin);
  state_->window_count = std::max(state_->window_count, window.number + 1);
  own.write_object(&windows->count, state_->window_count);
}

void KernelEnd::remove_window(uint32_t number) {
  state_->backend->memory().write_object(&state_->windows.data()->at[number].begin, uint64_t{0});
}

/// Until the server hangs up: kernels that wait for an answer wait no longer. Of a connection that
/// is none nothing comes.
void KernelEnd::watch(const ssd::Descriptor& connection) {
  pollfd ends[] = {{connection.get(), POLLRDHUP, 0}, {stop_.get(), POLLIN, 0}};
  while (::poll(ends, std::size(ends), -1) < 0) {
  }
  if (ends[1].revents != 0) return;
  // No copy: it could wait behind the kernel that waits for it.
  simt::store_system_release(state_->gone[0], 1u);  // [H9]
}

}  // namespace gofs::host
