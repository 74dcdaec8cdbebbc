// SPDX-License-Identifier: Apache-2.0
//
// Calls of a host program that do not depend on each other, by one launch: on a GPU a launch takes
// longer than most calls, and thousands of warps can make them side by side.
#pragma once

#include <memory>
#include <mutex>
#include <span>

#include "host/call_request.h"
#include "host/shared_array.h"
#include "kernels/calls.h"

namespace gofs::host {

class VolumeState;

class CallsAtOnce {
 public:
  CallsAtOnce();
  ~CallsAtOnce();
  CallsAtOnce(const CallsAtOnce&) = delete;
  CallsAtOnce& operator=(const CallsAtOnce&) = delete;

  /// Whether the call can be one of several: it moves no data but texts, and a struct at most.
  static bool takes(const CallRequest& request);

  /// Makes calls that takes() is true of. `answers[i]` is that of `requests[i]`. One thread after
  /// the other. Throws std::bad_alloc, and then has made some of them.
  void make(VolumeState& volume, std::span<const CallRequest* const> requests,
            std::span<CallAnswer> answers);

  /// Lets go what belongs to the backend.
  void settle();

 private:
  struct Room;

  void make_portion(VolumeState& volume, std::span<const CallRequest* const> requests,
                    std::span<CallAnswer> answers, uint64_t text_bytes);

  std::mutex mutex_;
  std::unique_ptr<Room> room_;  // of the largest portion so far
};

}  // namespace gofs::host
