// SPDX-License-Identifier: Apache-2.0
//
// The host's side of rpc.h: threads that poll the requests of their part of the lanes and serve
// them in batches, whose copies are under way together.
#pragma once

#include <atomic>
#include <memory>
#include <thread>
#include <vector>

#include "device.hpp"
#include "rpc.h"
#include "storage.hpp"

namespace gofs::bench {

class RpcServer {
 public:
  /// Starts `threads` of them, at most one for each lane; none serve nobody. Throws std::bad_alloc,
  /// std::system_error, and std::runtime_error where the device gives no copies.
  RpcServer(Device& device, Storage& storage, const RpcQueue& queue, uint32_t threads);
  /// Nobody has a request under way any more.
  ~RpcServer();
  RpcServer(const RpcServer&) = delete;
  RpcServer& operator=(const RpcServer&) = delete;

 private:
  class Worker;

  std::atomic<bool> stop_{false};
  std::vector<std::unique_ptr<Worker>> workers_;
  std::vector<std::jthread> threads_;  // go first
};

}  // namespace gofs::bench
