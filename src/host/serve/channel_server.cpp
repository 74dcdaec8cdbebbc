// SPDX-License-Identifier: Apache-2.0
#include "host/serve/channel_server.h"

#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <system_error>

#include "host/messages.h"
#include "host/serve/serve_bodies.h"
#include "ssd/hosted/quiet_thread.h"
#include "ssd/system_failure.h"

#if defined(GOFS_THREAD_SANITIZER)
extern "C" void AnnotateBenignRaceSized(const char* file, int line, const volatile void* at,
                                        size_t bytes, const char* why);
#endif

namespace gofs::host {

namespace {

// Who finds nothing for so long sleeps until a client wakes it.
constexpr uint64_t kIdleNs = 50'000;
// The mark of the bell that ends the server; those of channels have their numbers.
constexpr uint32_t kStop = UINT32_MAX;

/// Tells ThreadSanitizer that two calls of a client may have one place of its buffer: that harms
/// nobody else.
void allow_races([[maybe_unused]] const serve::Ring& ring) {
#if defined(GOFS_THREAD_SANITIZER)
  AnnotateBenignRaceSized(__FILE__, __LINE__, ring.buffer, ring.buffer_bytes, "a client's own");
#endif
}

}  // namespace

/// What the host keeps of a channel.
struct ChannelServer::Client {
  SharedMemory memory;
  ssd::Descriptor bell;
  SharedArray<uint32_t> taken;
  int32_t pid;
};

ChannelServer::ChannelServer(const ServedFilesystem& served, const ChannelServerOptions& options)
    : served_(served),
      options_(options),
      channels_(*served.memory, options.channels_max),
      rows_(*served.memory, request::kVerbs),
      server_(*served.memory, 1),
      rooms_(*served.memory, options.threads),
      params_(*served.memory, options.threads),
      stop_(make_bell()),
      clients_(options.channels_max) {
  std::copy(request::kVerbRows.begin(), request::kVerbRows.end(), rows_.data());
  bells_.add(stop_, kStop);
  server_[0] = {served.fs, rows_.data(), channels_.data(), 0, 0};
  try {
    for (uint32_t i = 0; i < options.threads; ++i) {
      params_[i] = {server_.data(), &rooms_[i], kIdleNs};
      threads_.push_back(ssd::start_quiet_thread([this, i] { work(i); }));
    }
  } catch (...) {
    end_threads();
    throw;
  }
}

void ChannelServer::end_threads() {
  simt::store_release(server_[0].ending, 1u);
  ring_bell(stop_);
  for (std::thread& thread : threads_) thread.join();
}

ChannelServer::~ChannelServer() {
  end_threads();
  for (uint32_t i = 0; i < options_.channels_max; ++i) (void)close(i);
}

void ChannelServer::work(uint32_t index) {
  const kernels::Grid one_warp{1, 1};
  kernels::ServeParams& params = params_[index];
  while (simt::load_acquire(server_[0].ending) == 0) {
    params.idle_ns = kIdleNs;
    if (!served_.run(kernels::bodies::kServe, one_warp, &params)) return;
    tell_sleep(+1);
    // Who has published a request without seeing that we sleep has done so before: we see it.
    std::atomic_thread_fence(std::memory_order_seq_cst);
    params.idle_ns = 0;
    if (served_.run(kernels::bodies::kServe, one_warp, &params)) sleep();
    tell_sleep(-1);
  }
}

/// Counts the threads that sleep, and tells all clients whether any does.
void ChannelServer::tell_sleep(int change) {
  const std::lock_guard lock(mutex_);
  const bool before = sleeping_ != 0;
  sleeping_ += static_cast<uint32_t>(change);
  const bool now = sleeping_ != 0;
  if (before == now) return;
  for (uint32_t i = 0; i < options_.channels_max; ++i) {
    if (clients_[i]) simt::store_system_relaxed(head_of(i).server_sleeps, now ? 1u : 0u);
  }
}

/// Until a client publishes a request.
void ChannelServer::sleep() {
  const std::optional<uint32_t> rung = bells_.wait(options_.sleep_ms);
  if (!rung || *rung == kStop) return;
  const std::lock_guard lock(mutex_);
  if (clients_[*rung]) still_bell(clients_[*rung]->bell);
}

serve::RingHead& ChannelServer::head_of(uint32_t number) {
  return *reinterpret_cast<serve::RingHead*>(clients_[number]->memory.data());
}

Expected<ChannelServer::Opened> ChannelServer::open(const Newcomer& who) {
  const std::string subject = "a channel of " + served_.name;
  const std::lock_guard lock(mutex_);
  if (draining_) return make_error(ECONNREFUSED, subject, "the server takes no clients any more");
  const auto free = std::find(clients_.begin(), clients_.end(), nullptr);
  if (free == clients_.end()) return make_error(EAGAIN, subject, "there are as many as can be");
  const auto number = static_cast<uint32_t>(free - clients_.begin());
  try {
    const serve::RingHead head =
        serve::layout_of_ring(options_.depth, options_.depth * options_.part_bytes);
    auto client = std::make_unique<Client>(
        Client{SharedMemory::make("gofs channel", head.bytes), make_bell(),
               SharedArray<uint32_t>(*served_.memory, options_.depth), who.pid});
    Opened opened{
        number,
        {SharedMemory::map(copy_of(client->memory.descriptor())), copy_of(client->bell), {}}};
    bells_.add(client->bell, number);
    std::memcpy(client->memory.data(), &head, sizeof(head));
    serve::Channel& channel = channels_[number];
    channel.ring = serve::view_of_ring(client->memory.data(), head);
    allow_races(channel.ring);
    channel.caller = {who.credentials, who.shares_descriptors ? vfs::kMountClient : number + 1};
    channel.taken = client->taken.data();
    std::fill(std::begin(channel.windows), std::end(channel.windows), serve::Window{});
    channel.windows[0] = {channel.ring.buffer, channel.ring.buffer_bytes};
    channel.next_slot = 0;
    *free = std::move(client);
    simt::store_system_relaxed(head_of(number).server_sleeps, sleeping_ != 0 ? 1u : 0u);
    simt::store_release(channel.state, uint32_t{serve::kChannelOpen});  // [H3]
    simt::store_relaxed(server_[0].count, std::max(server_[0].count, number + 1));
    return opened;
  } catch (const std::exception& problem) {
    return make_error(ENOMEM, subject, problem.what());
  }
}

bool ChannelServer::begin_close(uint32_t number) {
  serve::Channel& channel = channels_[number];
  uint32_t open = serve::kChannelOpen;
  if (!std::atomic_ref<uint32_t>(channel.state)
           .compare_exchange_strong(open, serve::kChannelLeaving)) {  // [H3]
    return false;
  }
  simt::store_system_relaxed(channel.ring.head->gone, 1u);
  return true;
}

bool ChannelServer::finish_close(uint32_t number, uint32_t* descriptors) {
  serve::Channel& channel = channels_[number];
  if (simt::load_relaxed(channel.state) != serve::kChannelLeaving) return true;
  if (simt::AtomicRef<uint32_t>(channel.inside).load(simt::memory_order_seq_cst) != 0) {  // [H3]
    return false;
  }
  if (channel.caller.client != vfs::kMountClient) {
    kernels::LeaveParams leaving{served_.fs, channel.caller, 0};
    (void)served_.run(kernels::bodies::kLeave, {1, 1}, &leaving);
    if (descriptors != nullptr) *descriptors = leaving.closed;
  }
  const std::lock_guard lock(mutex_);
  clients_[number].reset();
  simt::store_release(channel.state, uint32_t{serve::kChannelFree});
  return true;
}

uint32_t ChannelServer::close(uint32_t number) {
  uint32_t descriptors = 0;
  (void)begin_close(number);
  // Each call has its own deadline.
  while (!finish_close(number, &descriptors)) {
    std::this_thread::sleep_for(std::chrono::microseconds(100));
  }
  return descriptors;
}

void ChannelServer::drain() {
  const std::lock_guard lock(mutex_);
  draining_ = true;
}

ServerStatus ChannelServer::status() {
  ServerStatus status{served_.name, ::getpid(), options_.threads, false, {}};
  const std::lock_guard lock(mutex_);
  status.draining = draining_;
  for (uint32_t i = 0; i < options_.channels_max; ++i) {
    if (!clients_[i]) continue;
    const serve::Channel& channel = channels_[i];
    const vfs::Credentials& who = channel.caller.credentials;
    uint64_t calls = 0;
    for (size_t slot = 0; slot < clients_[i]->taken.size(); ++slot) {
      calls += simt::load_relaxed(clients_[i]->taken[slot]);
    }
    status.clients.push_back({i, who.uid, who.gid, clients_[i]->pid, calls,
                              simt::load_relaxed(channel.state) == serve::kChannelLeaving});
  }
  return status;
}

uint32_t ChannelServer::open_channels() {
  const std::lock_guard lock(mutex_);
  return static_cast<uint32_t>(std::count_if(clients_.begin(), clients_.end(),
                                             [](const auto& one) { return one != nullptr; }));
}

}  // namespace gofs::host
