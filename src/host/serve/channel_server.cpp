// SPDX-License-Identifier: Apache-2.0
#include "host/serve/channel_server.h"

#include <unistd.h>

#include <algorithm>
#include <bit>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <span>
#include <system_error>
#include <utility>

#include "host/messages.h"
#include "host/serve/client_windows.h"
#include "host/serve/serve_bodies.h"
#include "ssd/fill_pages.h"
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
// So often a launch that is to close a channel may fail when the server ends.
constexpr uint32_t kFailedStepsMax = 10'000;
// In moments a turn for a client's kernels has begun, unless another's fill the GPU.
constexpr std::chrono::seconds kTurnBegins{2};

/// Tells ThreadSanitizer that two calls of a client may have one place of its buffer: that harms
/// nobody else.
void allow_races([[maybe_unused]] const serve::Ring& ring) {
#if defined(GOFS_THREAD_SANITIZER)
  AnnotateBenignRaceSized(__FILE__, __LINE__, ring.buffer, ring.buffer_bytes, "a client's own");
#endif
}

bool are_the_same(const vfs::Credentials& one, const vfs::Credentials& other) {
  const auto groups = [](const vfs::Credentials& who) {
    return std::span(who.groups, who.group_count);
  };
  return one.uid == other.uid && one.gid == other.gid &&
         std::ranges::equal(groups(one), groups(other));
}

uint32_t depth_max(const ChannelServerOptions& options) {
  return std::max(options.depth, options.kernel_depth);
}

}  // namespace

/// The memory of a ring: of the host, or of the GPU.
struct ChannelServer::RingMemory {
  uint64_t bytes = 0;  // of the ring; the memory may have more
  std::optional<SharedMemory> host;
  std::unique_ptr<kernels::SharedWarpMemory> gpu;

  uint8_t* data() const { return host ? host->data() : gpu->data(); }
  const ssd::Descriptor& descriptor() const {
    return host ? host->descriptor() : gpu->descriptor();
  }
};

/// What the host keeps of a channel.
struct ChannelServer::Client {
  RingMemory ring;
  ssd::Descriptor bell;
  vfs::Caller caller;
  int32_t pid = 0;
  std::optional<uint32_t> owner;  // of a second channel, for kernels: the first one
  // A second channel's stay empty: its owner's are opened in it. None when it is gone.
  std::optional<ClientWindows> windows;
  bool leaves = false;        // no call of it is begun any more
  uint32_t failed_steps = 0;  // to close it
  bool has_let_go = false;    // it has hung up by itself, and waits for no answer there
  bool gone = false;  // nothing is left of it but its memory, which a turn may still look at
  uint32_t looked_at_by = 0;  // if so: the last of those turns

  /// What of the ring the host reaches, or null.
  serve::RingHead* head() const {
    return ring.host ? reinterpret_cast<serve::RingHead*>(ring.data()) : nullptr;
  }
};

/// Who is to have a channel.
struct ChannelServer::Joining {
  vfs::Credentials credentials;
  int32_t pid;
  std::optional<uint32_t> client;  // whose descriptors it has; none: its own
  std::optional<uint32_t> owner;   // of a channel for kernels: the first one of its client
};

ChannelServer::ChannelServer(const ServedFilesystem& served, const ChannelServerOptions& options)
    : served_(served),
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
  if (served_.backend->is_host()) return make_warp_servant(served_, server_.data());
  return make_grid_servant(served_, server_.data(), options_.blocks,
                           [this] { return keeps_place(); });
}

void ChannelServer::start_threads() {
  const uint32_t count = served_.backend->is_host() ? options_.threads : 1;
  for (uint32_t i = 0; i < count; ++i) servants_.push_back(make_servant());
  for (const auto& servant : servants_) {
    threads_.push_back(ssd::start_quiet_thread([this, &servant = *servant] { work(servant); }));
  }
}

void ChannelServer::end_threads() {
  simt::store_system_release(words_[0].ending, 1u);
  for (const auto& servant : servants_) servant->stop();
  ring_bell(stop_);
  for (std::thread& thread : threads_) thread.join();
  servants_.clear();
  end_turns();
}

ChannelServer::~ChannelServer() {
  end_threads();
  for (uint32_t i = 0; i < options_.channels_max; ++i) (void)close(i);
  if (next_ring_) forget(*next_ring_);
}

/// Whether a turn that begins now is for kernels too, which may leave the next one no room.
bool ChannelServer::keeps_place() {
  const bool keeps = is_for_kernels();
  turn_keeps_place_ = keeps;
  return keeps;
}

/// Lets warps look at the memory of clients for a while.
Servant::End ChannelServer::serve(Servant& servant, uint64_t idle_ns) {
  // Threads of this process enter a channel before they look there.
  if (served_.backend->is_host()) return servant.serve(idle_ns);
  if (!servant.is_at_work()) {
    const std::lock_guard lock(mutex_);
    in_turn_ = true;
  }
  const Servant::End end = servant.serve(idle_ns);
  if (!servant.is_at_work()) end_turns();
  return end;
}

/// No warp looks at the memory of clients.
void ChannelServer::end_turns() {
  const std::lock_guard lock(mutex_);
  in_turn_ = false;
  turn_keeps_place_ = false;
  for (uint32_t i = 0; i < options_.channels_max; ++i) {
    if (clients_[i] != nullptr && clients_[i]->gone) let_go(i);
  }
}

void ChannelServer::work(Servant& servant) {
  using End = Servant::End;
  const uint64_t idle_ns = served_.backend->is_host() ? kIdleNs : kGridIdleNs;
  while (simt::load_relaxed(words_[0].ending) == 0) {
    End end = serve(servant, idle_ns);
    looks_.fetch_add(1, std::memory_order_relaxed);
    if (end == End::kTurn) continue;
    if (end == End::kFailed) break;
    tell_sleep(+1);
    // Who has published a request without seeing that we sleep has done so before: we see it.
    std::atomic_thread_fence(std::memory_order_seq_cst);
    do {
      end = serve(servant, 0);
      looks_.fetch_add(1, std::memory_order_relaxed);
    } while (end == End::kTurn && simt::load_relaxed(words_[0].ending) == 0);
    if (end == End::kRest) sleep();
    tell_sleep(-1);
    if (end == End::kFailed) break;
  }
  const bool failed = simt::load_relaxed(words_[0].ending) == 0;
  if (failed && options_.on_failure) options_.on_failure();
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

serve::RingHead ChannelServer::head_of_ring(bool for_kernels) const {
  const uint32_t depth = for_kernels ? options_.kernel_depth : options_.depth;
  const uint64_t part = for_kernels ? options_.kernel_part_bytes : options_.part_bytes;
  serve::RingHead head = serve::layout_of_ring(depth, depth * part);
  head.wakes = served_.backend->is_host() ? 1 : 0;
  return head;
}

/// Memory for a ring, zeroed, which the backend's warps reach. Throws std::system_error,
/// std::bad_alloc.
ChannelServer::RingMemory ChannelServer::make_ring(bool for_kernels) {
  const uint64_t bytes = head_of_ring(for_kernels).bytes;
  RingMemory made;
  made.bytes = bytes;
  if (for_kernels && !served_.backend->is_host()) {
    made.gpu = served_.backend->share_memory(bytes);
    return made;
  }
  made.host.emplace(SharedMemory::make("gofs channel", bytes));
  // While CUDA pins memory nothing is launched: what takes long of it is done by then.
  if (!served_.backend->is_host() && !ssd::fill_pages(made.data(), bytes)) {
    ssd::fail_with(errno, "shared memory");
  }
  const std::string unreachable =
      served_.backend->reach(made.data(), bytes, kernels::HostRange::kMemory);
  if (!unreachable.empty()) ssd::fail_with(ENOMEM, unreachable);
  return made;
}

/// The memory that was made ahead, which may have to be waited for, or other. Throws as
/// make_ring().
ChannelServer::RingMemory ChannelServer::take_ring(bool for_kernels) {
  if (for_kernels) return make_ring(for_kernels);
  const std::lock_guard lock(next_ring_mutex_);
  if (!next_ring_) return make_ring(for_kernels);
  const std::unique_ptr<RingMemory> ring = std::move(next_ring_);
  return std::move(*ring);
}

void ChannelServer::prepare_ring() {
  if (served_.backend->is_host()) return;  // which has nothing to pin
  const std::lock_guard lock(next_ring_mutex_);
  if (next_ring_) return;
  try {
    auto ring = std::make_unique<RingMemory>();
    *ring = make_ring(false);
    next_ring_ = std::move(ring);
  } catch (const std::system_error&) {  // the next client is told, if there is no memory then
  } catch (const std::bad_alloc&) {
  }
}

void ChannelServer::forget(const RingMemory& ring) {
  if (ring.host) served_.backend->forget(ring.data());
}

/// Writes what a ring has before its buffer: the head, and no request or answer.
void ChannelServer::write_ring(const RingMemory& ring, const serve::RingHead& head) {
  std::vector<char> begin(head.buffer_at);
  std::memcpy(begin.data(), &head, sizeof(head));
  if (ring.host) {
    std::memcpy(ring.data(), begin.data(), begin.size());
  } else {
    served_.backend->memory().write(ring.data(), begin.data(), begin.size());
  }
}

/// Whether a look that has begun before its client was gone may not be over.
bool ChannelServer::is_looked_at(const Client& client) const {
  return static_cast<int32_t>(servants_.front()->turns_ended() - client.looked_at_by) < 0;
}

/// A channel that is free; or one whose client has gone, and whose ring another of the same user
/// may have: while turns keep their place no memory is let go. By the holder of the mutex.
std::optional<uint32_t> ChannelServer::place_for(const Joining& who) const {
  std::optional<uint32_t> free;
  for (uint32_t i = 0; i < options_.channels_max; ++i) {
    const Client* const there = clients_[i].get();
    if (there == nullptr) {
      if (!free) free = i;
    } else if (there->gone && there->has_let_go && !is_looked_at(*there) &&
               there->owner.has_value() == who.owner.has_value() &&
               are_the_same(there->caller.credentials, who.credentials)) {
      return i;
    }
  }
  return free;
}

/// Opens a channel; its number. `hand_out` is given the client before that. By the holder of the
/// mutex.
Expected<uint32_t> ChannelServer::add_client(const Joining& who,
                                             const std::function<void(const Client&)>& hand_out) {
  const std::string subject = "a channel of " + served_.name;
  if (draining_) return make_error(ECONNREFUSED, subject, "the server takes no clients any more");
  const std::optional<uint32_t> found = place_for(who);
  if (!found) return make_error(EAGAIN, subject, "there are as many as can be");
  const uint32_t number = *found;
  bool placed = false;
  const auto undo = [&] {
    if (placed) retire(number);
  };
  try {
    const bool for_kernels = who.owner.has_value();
    const serve::RingHead head = head_of_ring(for_kernels);
    auto client = std::make_unique<Client>();
    client->bell = make_bell();
    client->caller = {who.credentials, who.client.value_or(number + 1)};
    client->pid = who.pid;
    std::unique_ptr<Client>& place = clients_[number];
    client->ring = place ? std::move(place->ring) : take_ring(for_kernels);
    client->owner = who.owner;
    client->windows.emplace(
        *served_.backend, [this](uint32_t channel, auto& params) { return step(channel, params); });
    if (for_kernels) for_kernels_.fetch_add(1, std::memory_order_relaxed);
    place = std::move(client);
    placed = true;
    const Client& added = *place;
    write_ring(added.ring, head);
    hand_out(added);
    kernels::ChannelParams opening{};
    opening.step = kernels::ChannelStep::kOpen;
    opening.number = number;
    opening.ring = serve::view_of_ring(added.ring.data(), head);
    opening.caller = added.caller;
    allow_races(opening.ring);
    if (added.head() != nullptr) {
      simt::store_system_relaxed(added.head()->server_sleeps, sleeping_ != 0 ? 1u : 0u);
    }
    bells_.add_bell(added.bell);
    opening.first_run = first_run_of(number, head.depth);
    if (step(number, opening)) {
      if (!for_kernels || clients_[*who.owner]->windows->open_in(number)) return number;
      kernels::ChannelParams closing{};
      closing.step = kernels::ChannelStep::kFinishClose;
      closing.number = number;
      closing.keeps_client = 1;
      (void)step(number, closing);
    }
    undo();
    return make_error(EIO, subject, "the backend could not open it");
  } catch (const std::system_error& problem) {
    undo();
    return make_error(problem.code().value(), subject, problem.what());
  } catch (const std::exception& problem) {
    undo();
    return make_error(ENOMEM, subject, problem.what());
  }
}

Expected<ChannelServer::Opened> ChannelServer::open(const Newcomer& who) {
  std::optional<ChannelEnds> ends;
  Joining joining{who.credentials, who.pid, std::nullopt, std::nullopt};
  if (who.shares_descriptors) joining.client = vfs::kMountClient;
  const std::lock_guard lock(mutex_);
  const auto number = add_client(joining, [&ends](const Client& client) {
    ends.emplace(ChannelEnds{
        SharedMemory::map(copy_of(client.ring.descriptor())), copy_of(client.bell), {}});
  });
  if (!number) return number.error();
  return Opened{*number, std::move(*ends)};
}

Expected<ChannelServer::OpenedForKernels> ChannelServer::open_for_kernels(uint32_t owner) {
  auto opened = add_for_kernels(owner);
  if (opened && !served_.backend->is_host()) wait_for_turn_that_keeps_place();
  return opened;
}

/// After that the client's kernels may fill the GPU.
void ChannelServer::wait_for_turn_that_keeps_place() {
  const auto deadline = std::chrono::steady_clock::now() + kTurnBegins;
  while (!turn_keeps_place_ && std::chrono::steady_clock::now() < deadline) {
    servants_.front()->end_turn();
    std::this_thread::sleep_for(std::chrono::microseconds(100));
  }
}

Expected<ChannelServer::OpenedForKernels> ChannelServer::add_for_kernels(uint32_t owner) {
  OpenedForKernels opened{};
  const std::lock_guard lock(mutex_);
  if (clients_[owner] == nullptr || clients_[owner]->leaves) {
    return make_error(ESTALE, "a channel of " + served_.name, "its client has gone");
  }
  const Client& its = *clients_[owner];
  const Joining joining{its.caller.credentials, its.pid, its.caller.client, owner};
  const auto number = add_client(joining, [&opened](const Client& client) {
    opened.of_gpu = client.ring.gpu != nullptr;
    opened.memory = copy_of(client.ring.descriptor());
    opened.bytes = client.ring.bytes;
  });
  if (!number) return number.error();
  opened.number = *number;
  // It may be sleeping for as long as it does where there are none.
  ring_bell(clients_[*number]->bell);
  return opened;
}

/// The open channels of a client, by the holder of the mutex.
std::vector<uint32_t> ChannelServer::channels_of(uint32_t owner) const {
  std::vector<uint32_t> channels = {owner};
  for (uint32_t i = 0; i < options_.channels_max; ++i) {
    if (clients_[i] != nullptr && !clients_[i]->gone && clients_[i]->owner == owner) {
      channels.push_back(i);
    }
  }
  return channels;
}

Expected<uint32_t> ChannelServer::open_window(uint32_t owner, const MemoryName& name,
                                              ssd::Descriptor descriptor) {
  try {
    auto memory =
        served_.backend->reach_foreign({name.handle, std::move(descriptor), name.whole_bytes});
    const std::lock_guard lock(mutex_);
    if (clients_[owner] == nullptr || clients_[owner]->leaves) {
      return make_error(ESTALE, "a window of " + served_.name, "its client has gone");
    }
    return clients_[owner]->windows->open(std::move(memory), name.offset, name.bytes,
                                          channels_of(owner));
  } catch (const std::system_error& problem) {
    return make_error(problem.code().value(), "a window of " + served_.name, problem.what());
  }
}

bool ChannelServer::close_window(uint32_t owner, uint32_t number) {
  const std::lock_guard lock(mutex_);
  if (clients_[owner] == nullptr || clients_[owner]->leaves) return false;
  return clients_[owner]->windows->close(number, channels_of(owner));
}

/// Of its client nothing is left but memory. By the holder of the mutex.
void ChannelServer::retire(uint32_t number) {
  Client& client = *clients_[number];
  bells_.remove(client.bell);  // which the client may keep, and ring
  if (client.owner) for_kernels_.fetch_sub(1, std::memory_order_relaxed);
  client.windows.reset();
  client.gone = true;
  client.looked_at_by = servants_.empty() ? 0 : servants_.front()->turns_begun();
  if (!in_turn_) {
    let_go(number);
  } else if (turn_keeps_place_ && !is_for_kernels()) {
    turn_keeps_place_ = false;  // a client that comes before it has ended waits for the next one
    servants_.front()->end_turn();
  }
}

/// Nothing looks at its memory any more. By the holder of the mutex.
void ChannelServer::let_go(uint32_t number) {
  forget(clients_[number]->ring);
  clients_[number].reset();
}

bool ChannelServer::begin_close(uint32_t number, bool has_let_go) {
  kernels::ChannelParams closing{};
  closing.step = kernels::ChannelStep::kBeginClose;
  closing.number = number;
  const std::lock_guard lock(mutex_);
  if (clients_[number] == nullptr || std::exchange(clients_[number]->leaves, true)) return false;
  clients_[number]->has_let_go = has_let_go;
  (void)step(number, closing);  // or the next step closes it
  return true;
}

bool ChannelServer::finish_close(uint32_t number, uint32_t* descriptors) {
  kernels::ChannelParams closing{};
  closing.step = kernels::ChannelStep::kFinishClose;
  closing.number = number;
  {
    const std::lock_guard lock(mutex_);
    if (clients_[number] == nullptr || clients_[number]->gone) return true;
    closing.keeps_client = clients_[number]->owner ? 1 : 0;
  }
  const bool ran = step(number, closing);
  if (ran && closing.done == 0) return false;
  const std::lock_guard lock(mutex_);
  Client& client = *clients_[number];
  // A backend that has failed has no calls under way. Where a launch failed for want of memory,
  // what the client has open is open still: its channel is no other's until one does not.
  if (!ran && !served_.backend->has_failed()) {
    ++client.failed_steps;
    return false;
  }
  if (descriptors != nullptr) *descriptors = closing.closed;
  // Only now: whoever learns it uses the memory of his calls again.
  if (client.head() != nullptr) simt::store_system_release(client.head()->gone, 1u);  // [H9]
  retire(number);
  return true;
}

uint32_t ChannelServer::close(uint32_t number) {
  uint32_t descriptors = 0;
  (void)begin_close(number);
  const auto is_given_up = [&] {
    const std::lock_guard lock(mutex_);
    return clients_[number] != nullptr && clients_[number]->failed_steps >= kFailedStepsMax;
  };
  // Each call has its own deadline.
  while (!finish_close(number, &descriptors) && !is_given_up()) {
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
    status.clients.push_back(
        {i, who.uid, who.gid, client.pid, calls_[i], client.leaves, client.windows->bytes()});
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
