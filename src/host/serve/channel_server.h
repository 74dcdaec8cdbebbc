// SPDX-License-Identifier: Apache-2.0
//
// Serves a mounted file system to clients: opens a channel for each, keeps warps of its backend at
// the channels, and lets them rest while nothing comes.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "host/serve/bell.h"
#include "host/serve/channel_client.h"
#include "host/serve/control.h"
#include "host/serve/servant.h"
#include "host/shared_array.h"
#include "kernels/channel.h"

namespace gofs::host {

/// Who comes.
struct Newcomer {
  vfs::Credentials credentials;
  int32_t pid = 0;
  bool shares_descriptors = false;  // they are the mount's, whose number may come with any user
};

struct ChannelServerOptions {
  uint32_t threads = 4;  // that perform calls on the CPU backend
  uint32_t blocks = 16;  // of a GPU, at the most
  uint32_t channels_max = 256;
  uint32_t depth = 64;               // requests of a client at once
  uint64_t part_bytes = 256 * 1024;  // of data that a request takes along
  uint32_t kernel_depth = 256;       // the same of a client's kernels
  uint64_t kernel_part_bytes = 128 * 1024;
  int sleep_ms = 1000;  // after so long who sleeps looks again: no bell should be lost
  /// The backend runs nothing any more, and no call is answered. From a thread of the server's.
  std::function<void()> on_failure{};
};

class ChannelServer {
 public:
  /// Throws std::system_error or std::bad_alloc.
  ChannelServer(const ServedFilesystem& served, const ChannelServerOptions& options);
  /// Clients that are there find the server gone; all that they have open is closed.
  ~ChannelServer();
  ChannelServer(const ChannelServer&) = delete;
  ChannelServer& operator=(const ChannelServer&) = delete;

  struct Opened {
    uint32_t number;  // of the channel
    ChannelEnds ends;
  };
  /// EAGAIN where all are taken, ECONNREFUSED after drain(). From any thread.
  Expected<Opened> open(const Newcomer& who);
  struct OpenedForKernels {
    uint32_t number;
    bool of_gpu;             // the ring lies in memory of the GPU: Backend::map_shared_memory()
    ssd::Descriptor memory;  // of the ring
    uint64_t bytes;
  };
  /// A second channel of the client that has channel `owner`, for its kernels. It is closed before
  /// that one. ESTALE where the owner has gone. From any thread.
  Expected<OpenedForKernels> open_for_kernels(uint32_t owner);
  /// Lets calls of the client that has channel `owner`, in all its channels, name memory of the
  /// client's own. The number of the window. EINVAL where the memory is smaller, EMFILE for more
  /// than kWindowsMax - 1; what Backend::reach_foreign() has; ESTALE where the owner has gone. From
  /// any thread.
  Expected<uint32_t> open_window(uint32_t owner, const MemoryName& name,
                                 ssd::Descriptor descriptor);
  /// No call names it any more. False: there is no such window. From any thread.
  bool close_window(uint32_t owner, uint32_t number);
  /// No more clients are taken from now on. From any thread.
  void drain();
  /// From any thread.
  ServerStatus status();
  /// Its client has gone, or shall go: no call of it is begun any more. `has_let_go`: it waits for
  /// no answer there, and another of the same user may get its ring. Whether it was open. From any
  /// thread.
  bool begin_close(uint32_t number, bool has_let_go = false);
  /// Closes what the client has open, by the one that has begun to close it. False: not yet, since
  /// a call of it is under way, or the launch for it has failed.
  bool finish_close(uint32_t number, uint32_t* descriptors = nullptr);
  /// Both, after a wait for its calls, when the server ends: it goes on without where too many
  /// launches fail. How many descriptors were open.
  uint32_t close(uint32_t number);

  /// What changes while calls are taken and answered, and whenever a thread of the server's has
  /// looked for calls, which it does each `sleep_ms` at least. Of a GPU's calls it says nothing but
  /// that a turn is over. From any thread; waits for nothing.
  uint64_t progress() const;

  /// Makes the ring of the next client ahead: to fill and to pin its memory is most of what that
  /// would wait for. From any thread.
  void prepare_ring();

  uint32_t channels_max() const { return options_.channels_max; }
  /// Channels that are open.
  uint32_t open_channels();

 private:
  struct RingMemory;
  struct Client;
  struct Joining;
  /// What the host writes for the warps.
  struct HostWords {
    uint32_t ending;
  };

  void lay_out();
  void start_threads();
  void end_threads();
  std::unique_ptr<Servant> make_servant();
  void work(Servant& servant);
  Servant::End serve(Servant& servant, uint64_t idle_ns);
  void end_turns();
  bool keeps_place();
  void wait_for_turn_that_keeps_place();
  /// Whether a client has a channel for its kernels.
  bool is_for_kernels() const { return for_kernels_.load(std::memory_order_relaxed) != 0; }
  serve::RingHead head_of_ring(bool for_kernels) const;
  RingMemory make_ring(bool for_kernels);
  RingMemory take_ring(bool for_kernels);
  void forget(const RingMemory& ring);
  void write_ring(const RingMemory& ring, const serve::RingHead& head);
  bool is_looked_at(const Client& client) const;
  std::optional<uint32_t> place_for(const Joining& who) const;
  Expected<uint32_t> add_client(const Joining& who,
                                const std::function<void(const Client&)>& hand_out);
  Expected<OpenedForKernels> add_for_kernels(uint32_t owner);
  std::vector<uint32_t> channels_of(uint32_t owner) const;
  uint32_t first_run_of(uint32_t number, uint32_t depth);
  void sleep();
  void tell_sleep(int change);
  bool step(uint32_t place, kernels::ChannelParams& params);
  void count_calls();
  void retire(uint32_t number);
  void let_go(uint32_t number);

  const ServedFilesystem served_;
  const ChannelServerOptions options_;
  // In the memory of the warps.
  const SharedArray<serve::Channel> channels_;
  const SharedArray<uint32_t> slot_words_;   // of each channel's slots: taken, answered
  const SharedArray<serve::SlotRun> runs_;   // of the slots of all rings that a channel may have
  const SharedArray<uint64_t> found_words_;  // of as many calls as there are slots
  const SharedArray<serve::FoundCalls> found_;
  const SharedArray<request::VerbRow> rows_;
  const SharedArray<serve::Server> server_;
  // In memory that host and warps share.
  const SharedArray<HostWords> words_;
  const SharedArray<kernels::ChannelParams> steps_;  // of each channel, and one of all
  const SharedArray<uint64_t> calls_;                // of each channel
  Watch bells_;                                      // of the channels, and the next
  ssd::Descriptor stop_;                             // a bell that wakes all threads, for good

  std::mutex next_ring_mutex_;             // of this, after mutex_
  std::unique_ptr<RingMemory> next_ring_;  // of a client, not of its kernels

  std::mutex mutex_;                              // of all below
  std::vector<std::unique_ptr<Client>> clients_;  // one for each channel that is not free
  // The first of runs_ that a channel has, with a ring of so many slots.
  std::map<std::pair<uint32_t, uint32_t>, uint32_t> runs_of_channels_;
  uint32_t run_count_ = 0;
  bool in_turn_ = false;  // a grid runs
  // Or is about to. No mutex: who holds it may wait for a launch, and that for the next turn.
  std::atomic<bool> turn_keeps_place_{false};
  uint32_t sleeping_ = 0;                 // threads
  std::atomic<uint32_t> for_kernels_{0};  // of these; by any thread
  bool draining_ = false;
  std::atomic<uint64_t> looks_{0};  // of threads, that are over
  std::vector<std::unique_ptr<Servant>> servants_;
  std::vector<std::thread> threads_;
};

}  // namespace gofs::host
