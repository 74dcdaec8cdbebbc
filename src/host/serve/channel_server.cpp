// SPDX-License-Identifier: Apache-2.0
#include "host/serve/channel_server.h"

#include <unistd.h>

#include <algorithm>
#include <bit>
#include <cerrno>
#include <cstring>
#include <system_error>
#include <utility>

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

// Who finds nothing for so long sleeps until a client wakes it. It costs a GPU more to begin again.
constexpr uint64_t kIdleNs = 50'000;
constexpr uint64_t kGridIdleNs = 1'000'000;
// No kernel can ring a bell. While any has a channel, a GPU's warps never rest, and threads of the
// host that sleep look again after so long.
constexpr int kSleepForKernelsMs = 1;

/// Tells ThreadSanitizer that two calls of a client may have one place of its buffer: that harms
/// nobody else.
void allow_races([[maybe_unused]] const serve::Ring& ring) {
#if defined(GOFS_THREAD_SANITIZER)
  AnnotateBenignRaceSized(__FILE__, __LINE__, ring.buffer, ring.buffer_bytes, "a client's own");
#endif
}

uint32_t depth_max(const ChannelServerOptions& options) {
  return std::max(options.depth, options.kernel_depth);
}

}  // namespace

/// What the host keeps of a channel.
struct ChannelServer::Client {
  // Of the ring, one of these two.
  std::optional<SharedMemory> memory;
  std::unique_ptr<kernels::SharedWarpMemory> gpu_memory;
  ssd::Descriptor bell;
  vfs::Caller caller;
  int32_t pid = 0;
  bool for_kernels = false;  // a second channel of its client
  bool leaves = false;       // no call of it is begun any more
  bool gone = false;         // nothing is left of it but its memory, which a turn may still look at

  uint8_t* ring() const { return memory ? memory->data() : gpu_memory->data(); }
  /// What of the ring the host reaches, or null.
  serve::RingHead* head() const {
    return memory ? reinterpret_cast<serve::RingHead*>(memory->data()) : nullptr;
  }
};

ChannelServer::ChannelServer(const ServedFilesystem& served, const ChannelServerOptions& options)
    : served_(served),
      in_turns_{served.name, served.fs, served.backend,
                [this](const kernels::Body& body, const kernels::Grid& grid, void* params) {
                  return run_turn(body, grid, params);
                }},
      options_(options),
      channels_(served.backend->memory(), options.channels_max),
      slot_words_(served.backend->memory(), size_t{2} * options.channels_max * depth_max(options)),
      runs_(served.backend->memory(),
            size_t{options.channels_max} *
                (serve::runs_of(options.depth) + serve::runs_of(options.kernel_depth))),
      found_words_(served.backend->memory(),
                   std::bit_ceil(size_t{options.channels_max} * depth_max(options))),
      found_(served.backend->memory(), 1),
      rows_(served.backend->memory(), request::kVerbs),
      server_(served.backend->memory(), 1),
      words_(served.backend->shared_memory(), 1),
      steps_(served.backend->shared_memory(), options.channels_max + 1),
      calls_(served.backend->shared_memory(), options.channels_max),
      stop_(make_bell()),
      clients_(options.channels_max) {
  bells_.add(stop_, 0);  // which bell it is that rings, nobody asks
  lay_out();
  // The first launch of a kernel may wait until nothing else runs, so this one comes before clients
  // whose kernels wait for an answer.
  count_calls();
  try {
    start_threads();
  } catch (...) {
    end_threads();
    throw;
  }
}

void ChannelServer::lay_out() {
  simt::MemorySpace& memory = served_.backend->memory();
  std::vector<serve::Channel> channels(options_.channels_max);
  uint32_t* words = slot_words_.data();
  for (serve::Channel& channel : channels) {
    channel = {};
    channel.taken = words;
    channel.answered = words + depth_max(options_);
    words += 2 * depth_max(options_);
  }
  memory.write(channels_.data(), channels.data(), channels.size() * sizeof(channels[0]));
  memory.write(rows_.data(), request::kVerbRows.data(),
               request::kVerbRows.size() * sizeof(request::VerbRow));
  const auto mask = static_cast<uint32_t>(found_words_.size() - 1);
  memory.write_object(found_.data(), serve::FoundCalls{found_words_.data(), mask, 0, 0});
  memory.write_object(server_.data(),
                      serve::Server{served_.fs, rows_.data(), channels_.data(), found_.data(),
                                    &words_[0].ending, runs_.data(), 0, 0});
}

std::unique_ptr<Servant> ChannelServer::make_servant() {
  return served_.backend->is_host() ? make_warp_servant(served_, server_.data())
                                    : make_grid_servant(in_turns_, server_.data(), options_.blocks);
}

void ChannelServer::start_threads() {
  const uint32_t count = served_.backend->is_host() ? options_.threads : 1;
  for (uint32_t i = 0; i < count; ++i) {
    std::shared_ptr<Servant> servant = make_servant();
    threads_.push_back(ssd::start_quiet_thread([this, servant] { work(*servant); }));
  }
}

void ChannelServer::end_threads() {
  simt::store_system_release(words_[0].ending, 1u);
  ring_bell(stop_);
  for (std::thread& thread : threads_) thread.join();
}

ChannelServer::~ChannelServer() {
  end_threads();
  for (uint32_t i = 0; i < options_.channels_max; ++i) (void)close(i);
}

/// How long a servant is to find nothing before it rests.
uint64_t ChannelServer::idle_ns() const {
  if (served_.backend->is_host()) return kIdleNs;
  return is_for_kernels() ? ~uint64_t{0} : kGridIdleNs;
}

void ChannelServer::work(Servant& servant) {
  using End = Servant::End;
  while (simt::load_relaxed(words_[0].ending) == 0) {
    End end = servant.serve(idle_ns(), is_for_kernels());
    looks_.fetch_add(1, std::memory_order_relaxed);
    if (end == End::kTurn) continue;
    if (end == End::kFailed) break;
    tell_sleep(+1);
    // Who has published a request without seeing that we sleep has done so before: we see it.
    std::atomic_thread_fence(std::memory_order_seq_cst);
    do {
      end = servant.serve(0, is_for_kernels());
      looks_.fetch_add(1, std::memory_order_relaxed);
    } while (end == End::kTurn);
    if (end == End::kRest) sleep();
    tell_sleep(-1);
    if (end == End::kFailed) break;
  }
  const bool failed = simt::load_relaxed(words_[0].ending) == 0;
  if (failed && options_.on_failure) options_.on_failure();
}

/// Runs warps that look at the memory of clients until it ends.
bool ChannelServer::run_turn(const kernels::Body& body, const kernels::Grid& grid, void* params) {
  {
    const std::lock_guard lock(mutex_);
    in_turn_ = true;
  }
  const bool ran = served_.run(body, grid, params);
  const std::lock_guard lock(mutex_);
  in_turn_ = false;
  for (uint32_t i = 0; i < options_.channels_max; ++i) {
    if (clients_[i] != nullptr && clients_[i]->gone) let_go(i);
  }
  return ran;
}

/// A launch of one warp that does something to channels. One at a time for each place in steps_.
bool ChannelServer::step(uint32_t place, kernels::ChannelParams& params) {
  params.server = server_.data();
  kernels::ChannelParams* const placed = &steps_[place];
  *placed = params;
  const kernels::Grid one_warp{1, served_.backend->warp_width()};
  if (!served_.run(kernels::bodies::kChannel, one_warp, placed)) return false;
  params = *placed;
  return true;
}

/// Counts the threads that sleep, and tells all clients whether any does.
void ChannelServer::tell_sleep(int change) {
  const std::lock_guard lock(mutex_);
  const bool before = sleeping_ != 0;
  sleeping_ += static_cast<uint32_t>(change);
  const bool now = sleeping_ != 0;
  if (before == now) return;
  for (uint32_t i = 0; i < options_.channels_max; ++i) {
    if (clients_[i] == nullptr || clients_[i]->head() == nullptr) continue;
    simt::store_system_relaxed(clients_[i]->head()->server_sleeps, now ? 1u : 0u);
  }
}

/// Until a client publishes a request.
void ChannelServer::sleep() {
  (void)bells_.wait(is_for_kernels() ? kSleepForKernelsMs : options_.sleep_ms);
}

/// Where a channel's slots are among the runs, with a ring of `depth`. By the holder of the mutex.
uint32_t ChannelServer::first_run_of(uint32_t number, uint32_t depth) {
  const auto [found, is_new] = runs_of_channels_.try_emplace({number, depth}, run_count_);
  if (is_new) run_count_ += serve::runs_of(depth);
  return found->second;
}

/// Opens a channel for the client that `make` makes for a ring; its number. By the holder of the
/// mutex.
Expected<uint32_t> ChannelServer::add_client(const serve::RingHead& layout,
                                             const ClientMaker& make) {
  const std::string subject = "a channel of " + served_.name;
  if (draining_) return make_error(ECONNREFUSED, subject, "the server takes no clients any more");
  const auto free = std::find(clients_.begin(), clients_.end(), nullptr);
  if (free == clients_.end()) return make_error(EAGAIN, subject, "there are as many as can be");
  const auto number = static_cast<uint32_t>(free - clients_.begin());
  try {
    serve::RingHead head = layout;
    head.wakes = served_.backend->is_host() ? 1 : 0;
    std::unique_ptr<Client> client = make(number, head);
    if (client->memory) {
      std::memcpy(client->ring(), &head, sizeof(head));
      const std::string unreachable =
          served_.backend->reach(client->ring(), head.bytes, kernels::HostRange::kMemory);
      if (!unreachable.empty()) return make_error(ENOMEM, subject, unreachable);
    }
    *free = std::move(client);
    Client& added = *clients_[number];
    kernels::ChannelParams opening{};
    opening.step = kernels::ChannelStep::kOpen;
    opening.number = number;
    opening.ring = serve::view_of_ring(added.ring(), head);
    opening.caller = added.caller;
    allow_races(opening.ring);
    if (added.memory) {
      simt::store_system_relaxed(added.head()->server_sleeps, sleeping_ != 0 ? 1u : 0u);
    }
    bells_.add_bell(added.bell);
    opening.first_run = first_run_of(number, head.depth);
    if (step(number, opening)) return number;
    let_go(number);
    return make_error(EIO, subject, "the backend could not open it");
  } catch (const std::system_error& problem) {
    if (clients_[number] != nullptr) let_go(number);
    return make_error(problem.code().value(), subject, problem.what());
  } catch (const std::exception& problem) {
    if (clients_[number] != nullptr) let_go(number);
    return make_error(ENOMEM, subject, problem.what());
  }
}

Expected<ChannelServer::Opened> ChannelServer::open(const Newcomer& who) {
  std::optional<ChannelEnds> ends;
  const std::lock_guard lock(mutex_);
  const serve::RingHead layout =
      serve::layout_of_ring(options_.depth, options_.depth * options_.part_bytes);
  const auto number = add_client(layout, [&](uint32_t its_number, const serve::RingHead& head) {
    auto client = std::make_unique<Client>();
    client->memory.emplace(SharedMemory::make("gofs channel", head.bytes));
    client->bell = make_bell();
    client->caller = {who.credentials, who.shares_descriptors ? vfs::kMountClient : its_number + 1};
    client->pid = who.pid;
    ends.emplace(ChannelEnds{
        SharedMemory::map(copy_of(client->memory->descriptor())), copy_of(client->bell), {}});
    return client;
  });
  if (!number) return number.error();
  return Opened{*number, std::move(*ends)};
}

Expected<ChannelServer::OpenedForKernels> ChannelServer::open_for_kernels(uint32_t owner) {
  OpenedForKernels opened{};
  const std::lock_guard lock(mutex_);
  if (clients_[owner] == nullptr || clients_[owner]->leaves) {
    return make_error(ESTALE, "a channel of " + served_.name, "its client has gone");
  }
  // Before the channel is there: a server that sleeps wakes only for what it knows of.
  for_kernels_.fetch_add(1, std::memory_order_relaxed);
  const serve::RingHead layout = serve::layout_of_ring(
      options_.kernel_depth, options_.kernel_depth * options_.kernel_part_bytes);
  const auto number = add_client(layout, [&](uint32_t, const serve::RingHead& head) {
    auto client = std::make_unique<Client>();
    if (served_.backend->is_host()) {
      client->memory.emplace(SharedMemory::make("gofs channel of kernels", head.bytes));
    } else {
      client->gpu_memory = served_.backend->share_memory(head.bytes);
      served_.backend->memory().write_object(
          reinterpret_cast<serve::RingHead*>(client->gpu_memory->data()), head);
    }
    const ssd::Descriptor& memory =
        client->memory ? client->memory->descriptor() : client->gpu_memory->descriptor();
    opened.of_gpu = client->gpu_memory != nullptr;
    opened.memory = copy_of(memory);
    opened.bytes = head.bytes;
    client->bell = make_bell();
    client->caller = clients_[owner]->caller;
    client->pid = clients_[owner]->pid;
    return client;
  });
  if (!number) {
    for_kernels_.fetch_sub(1, std::memory_order_relaxed);
    return number.error();
  }
  clients_[*number]->for_kernels = true;
  opened.number = *number;
  // It may be sleeping for as long as it does where there are none.
  ring_bell(clients_[*number]->bell);
  return opened;
}

/// Nothing looks at its memory any more. By the holder of the mutex.
void ChannelServer::let_go(uint32_t number) {
  const Client& client = *clients_[number];
  bells_.remove(client.bell);  // which the client may keep, and ring
  if (client.memory) served_.backend->forget(client.ring());
  if (client.for_kernels) for_kernels_.fetch_sub(1, std::memory_order_relaxed);
  clients_[number].reset();
}

bool ChannelServer::begin_close(uint32_t number) {
  kernels::ChannelParams closing{};
  closing.step = kernels::ChannelStep::kBeginClose;
  closing.number = number;
  const std::lock_guard lock(mutex_);
  if (clients_[number] == nullptr || std::exchange(clients_[number]->leaves, true)) return false;
  (void)step(number, closing);
  // A backend that runs nothing any more has not said so.
  serve::RingHead* const head = clients_[number]->head();
  if (head != nullptr) simt::store_system_relaxed(head->gone, 1u);
  return true;
}

bool ChannelServer::finish_close(uint32_t number, uint32_t* descriptors) {
  kernels::ChannelParams closing{};
  closing.step = kernels::ChannelStep::kFinishClose;
  closing.number = number;
  {
    const std::lock_guard lock(mutex_);
    if (clients_[number] == nullptr || clients_[number]->gone) return true;
    closing.keeps_client = clients_[number]->for_kernels ? 1 : 0;
  }
  // A backend that runs nothing any more has no calls under way.
  const bool ran = step(number, closing);
  if (ran && closing.done == 0) return false;
  if (descriptors != nullptr) *descriptors = closing.closed;
  const std::lock_guard lock(mutex_);
  clients_[number]->gone = true;
  if (!in_turn_) let_go(number);
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

/// Of each channel, into calls_. By the holder of the mutex.
void ChannelServer::count_calls() {
  kernels::ChannelParams counting{};
  counting.step = kernels::ChannelStep::kCountCalls;
  counting.calls = calls_.data();
  (void)step(options_.channels_max, counting);
}

ServerStatus ChannelServer::status() {
  const auto threads = static_cast<uint32_t>(threads_.size());
  ServerStatus status{served_.name, ::getpid(), threads, false, {}, 0};
  const std::lock_guard lock(mutex_);
  count_calls();
  status.draining = draining_;
  for (uint32_t i = 0; i < options_.channels_max; ++i) {
    if (!clients_[i] || clients_[i]->gone) continue;
    const Client& client = *clients_[i];
    const vfs::Credentials& who = client.caller.credentials;
    status.clients.push_back({i, who.uid, who.gid, client.pid, calls_[i], client.leaves});
  }
  return status;
}

uint64_t ChannelServer::progress() const {
  uint64_t progress = looks_.load(std::memory_order_relaxed);
  if (!served_.backend->is_host()) return progress;
  const uint32_t* const words = slot_words_.data();
  for (size_t i = 0; i < slot_words_.size(); ++i) progress += simt::load_relaxed(words[i]);
  return progress;
}

uint32_t ChannelServer::open_channels() {
  const std::lock_guard lock(mutex_);
  return static_cast<uint32_t>(std::count_if(clients_.begin(), clients_.end(), [](const auto& one) {
    return one != nullptr && !one->gone;
  }));
}

}  // namespace gofs::host
