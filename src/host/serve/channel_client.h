// SPDX-License-Identifier: Apache-2.0
//
// A client's side of a channel, for threads of a host program: calls go through the ring, without a
// launch, and with a system call only where one side sleeps.
//
// Each call that is under way has a slot, with room for its texts and its part of the shared
// buffer, through which data is copied, unless it lies in a window: memory that the server reaches
// too. A call takes as much as a part has room for.
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <vector>

#include "host/call_request.h"
#include "host/serve/shared_memory.h"
#include "serve/ring.h"

namespace gofs::host {

/// What a client is given by its server.
struct ChannelEnds {
  SharedMemory memory;         // of the ring
  ssd::Descriptor bell;        // which wakes the server
  ssd::Descriptor connection;  // hangs up when the server ends; none: in the same process
};

/// A window that the server has opened.
struct WindowOfClient {
  uint32_t number;
  const void* memory;  // the program's, which threads of the host need not reach
  uint64_t bytes;
};

class ChannelClient {
 public:
  /// Throws std::system_error: also where the ring is of another version.
  explicit ChannelClient(ChannelEnds ends, uint64_t answer_timeout_ns = kAnswerTimeoutNs);
  ChannelClient(const ChannelClient&) = delete;
  ChannelClient& operator=(const ChannelClient&) = delete;

  /// Makes a call; any number of threads may. -ESTALE: the server has ended, and whether the call
  /// has had an effect is not known. -ETIMEDOUT: it has not answered for the time that is given to
  /// it, and then the slot is never used again; or no slot came free for so long.
  CallAnswer call(const CallRequest& request);
  /// Makes calls that do not depend on each other, as many at once as slots are free. `answers` has
  /// as many elements. Throws std::bad_alloc, and then has made none.
  void call_all(std::span<const CallRequest> requests, std::span<CallAnswer> answers);

  /// From now on, and until it is removed, calls whose bytes lie there move them directly. No call
  /// that is under way may be about the memory.
  void add_window(const WindowOfClient& window);
  void remove_window(uint32_t number);
  /// Whether a window has all of it.
  bool reaches(const void* memory, uint64_t bytes);

  /// Of its buffer a call takes no more.
  uint64_t part_bytes() const { return part_bytes_; }
  /// No call is begun any more, and the server ends this client when it has answered those under
  /// way, which wait for that.
  void leave();
  /// Whether no call can be made: the server is known to have ended, or answers nothing, so that no
  /// slot is left; or this client leaves.
  bool is_gone() const;
  /// Looks whether one that was killed has: it leaves no word.
  void look_for_server();
  const ssd::Descriptor& connection() const { return ends_.connection; }

  /// How long a call may take. The longest are those that write whole volumes to the disk.
  static constexpr uint64_t kAnswerTimeoutNs = 600'000'000'000;

 private:
  /// A call that was begun.
  struct UnderWay {
    int64_t refusal;  // not 0: the server was not asked, and this is the answer
    uint32_t slot;
    request::Request record;  // its buffer 0 is the ring's
  };

  bool has_ended() const;
  bool take_slot(bool may_wait, uint32_t& slot);
  void release_slot(uint32_t slot);
  void lose_slot();
  bool begin(const CallRequest& request, bool may_wait, UnderWay& call);
  CallAnswer end(const CallRequest& request, const UnderWay& call);
  bool await_answer(const serve::RingPlace& place);
  std::optional<WindowOfClient> window_of(const void* memory, uint64_t bytes);
  bool place_in_window(const CallRequest& request, request::Request& record);

  ChannelEnds ends_;
  serve::Ring ring_;
  const uint64_t answer_timeout_ns_;
  uint64_t part_bytes_;         // of the buffer, for each slot
  std::vector<uint32_t> laps_;  // that each slot has been through
  std::atomic<bool> hung_up_{false};
  std::atomic<bool> leaves_{false};        // this client
  std::atomic<uint64_t> spin_ns_{20'000};  // to look for an answer before a thread sleeps

  std::mutex mutex_;
  std::condition_variable freed_;
  std::vector<uint32_t> free_slots_;
  uint32_t lost_slots_ = 0;  // which were never answered for
  std::vector<WindowOfClient> windows_;
  std::atomic<bool> has_windows_{false};
};

}  // namespace gofs::host
