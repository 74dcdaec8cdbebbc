// SPDX-License-Identifier: Apache-2.0
//
// What `gofsd` was asked to do.
#pragma once

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <string>
#include <thread>

namespace gofs::daemon {

struct Options {
  std::string volume;
  std::string socket;
  uint32_t mode = 0600;  // of the socket
  std::string backend = "cpu";
  // Of the CPU backend: each performs a call to its end, and waits for the SSD meanwhile.
  uint32_t threads = std::max(4u, 2 * std::thread::hardware_concurrency());
  uint32_t blocks = 16;  // of a GPU, at the most
  uint32_t clients_max = 256;
  bool mps = false;     // is started where it does not run (mps.h)
  std::string metrics;  // where they are told (metrics_address.h); empty: nowhere
  // A worker that has given no sign of life for so long is ended. An SSD may take 127.5 s to reset
  // (CAP.TO), the longest that a worker waits without one. 0: never.
  std::chrono::seconds hang{150};
  int claims = 0;  // of a worker
};

// Where a worker finds what the keeper hands over.
inline constexpr int kListeningDescriptor = 3;
inline constexpr int kKeeperDescriptor = 4;  // a connection to the keeper (keeper_line.h)
inline constexpr int kFirstClaim = 5;        // and so many as Options::claims: the volume's files

}  // namespace gofs::daemon
