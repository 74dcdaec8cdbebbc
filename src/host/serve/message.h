// SPDX-License-Identifier: Apache-2.0
//
// A message at a connection of a socket of the file system, with descriptors.
#pragma once

#include <chrono>
#include <span>
#include <string>
#include <vector>

#include "ssd/descriptor.h"

namespace gofs::host {

/// With a message come no more.
inline constexpr size_t kDescriptorsMax = 2;

/// False: it cannot be sent at once.
bool send_message(const ssd::Descriptor& connection, std::span<const char> bytes,
                  std::span<const int> descriptors = {});

/// Waits until a message is there, or the other end has hung up, whatever signals come meanwhile.
/// 0, ETIMEDOUT, or what poll() says.
int await_message(const ssd::Descriptor& connection,
                  std::chrono::steady_clock::time_point deadline);

/// Of up to `bytes_max` bytes, which is there.
struct Message {
  std::string bytes;
  std::vector<ssd::Descriptor> descriptors;
  int error = 0;  // an errno: none is there; EMSGSIZE: it is longer
};
enum class Descriptors { kTaken, kDropped };
/// Dropped: by Linux, unseen. Whoever believes nothing that comes may not close them either: that
/// asks the file system that they are of, which may never answer, and ends locks of this process.
Message receive_message(const ssd::Descriptor& connection, size_t bytes_max, Descriptors what);

}  // namespace gofs::host
