// SPDX-License-Identifier: Apache-2.0
#include "rpc_server.hpp"

#include <algorithm>
#include <cerrno>
#include <stdexcept>

#include "bench/actors.hpp"

namespace gofs::bench {
namespace {

constexpr uint32_t kBatchMax = 64;

}  // namespace

/// Serves lanes [first, last).
class RpcServer::Worker {
 public:
  Worker(Device& device, Storage& storage, const RpcQueue& queue, uint32_t first, uint32_t last)
      : storage_(storage),
        queue_(queue),
        first_(first),
        copies_(device.make_copies()),
        staging_(device.backend().shared_memory(), uint64_t{kBatchMax} * kBlockBytes),
        served_(last - first, 0) {
    if (copies_ == nullptr) throw std::runtime_error("a server's copies cannot be made");
  }

  /// Until it is told to stop. Polls all the time, as what it serves cannot call it.
  void run(const std::atomic<bool>& stop) {
    for (simt::Backoff idle; !stop.load(std::memory_order_relaxed);) {
      collect();
      if (batch_.empty()) {
        idle.pause();
      } else {
        serve();
      }
    }
  }

 private:
  struct Item {
    uint32_t lane;
    RpcRequest request;
    uint8_t* staging;
    int error;
  };

  /// Goes on behind the lane that it looked at last, so that all get their turn.
  void collect() {
    batch_.clear();
    const auto lanes = static_cast<uint32_t>(served_.size());
    for (uint32_t i = 0; i < lanes && batch_.size() < kBatchMax; ++i) {
      const uint32_t lane = next_;
      next_ = next_ + 1 == lanes ? 0 : next_ + 1;
      RpcRequest& request = queue_.requests[first_ + lane];
      const uint32_t number = simt::load_system_acquire(request.number);  // [B1]
      if (number == served_[lane]) continue;
      served_[lane] = number;
      uint8_t* const staging = staging_.data() + batch_.size() * kBlockBytes;
      const RpcRequest taken{request.offset, request.buffer, request.bytes,
                             request.writes, number,         0};
      batch_.push_back({first_ + lane, taken, staging, check(taken)});
    }
  }

  static int check(const RpcRequest& request) {
    const bool whole = request.bytes == kBlockBytes && request.offset % kBlockBytes == 0;
    return whole ? 0 : -EINVAL;
  }

  void serve() {
    for (Item& item : batch_) start(item);
    const int copied = copies_->finish();
    for (Item& item : batch_) {
      if (item.error == 0) item.error = copied;
      if (item.error == 0 && item.request.writes != 0) item.error = write(item);
      const auto code = static_cast<uint32_t>(-item.error);
      simt::store_system_release(queue_.replies[item.lane],
                                 RpcReply{code} << 32 | item.request.number);  // [B2]
    }
  }

  void start(Item& item) {
    if (item.error != 0) return;
    const RpcRequest& request = item.request;
    if (request.writes != 0) {
      copies_->begin(item.staging, request.buffer, kBlockBytes);
      return;
    }
    item.error = storage_.read(item.staging, kBlockBytes, request.offset);
    if (item.error == 0 && !has_block_stamp(item.staging, request.offset / kBlockBytes, 0)) {
      item.error = -EBADMSG;
    }
    if (item.error == 0) copies_->begin(request.buffer, item.staging, kBlockBytes);
  }

  int write(const Item& item) {
    const uint64_t offset = item.request.offset;
    if (!has_block_stamp(item.staging, offset / kBlockBytes, 0)) return -EBADMSG;
    return storage_.write(item.staging, kBlockBytes, offset);
  }

  Storage& storage_;
  const RpcQueue queue_;
  const uint32_t first_;
  const std::unique_ptr<Copies> copies_;
  const BackendArray staging_;
  std::vector<uint32_t> served_;  // of each lane the number of its last request
  uint32_t next_ = 0;
  std::vector<Item> batch_;
};

RpcServer::RpcServer(Device& device, Storage& storage, const RpcQueue& queue, uint32_t threads) {
  threads = std::min(threads, queue.count);
  for (uint32_t i = 0; i < threads; ++i) {
    const auto bound = [&](uint32_t part) {
      return static_cast<uint32_t>(uint64_t{queue.count} * part / threads);
    };
    workers_.push_back(std::make_unique<Worker>(device, storage, queue, bound(i), bound(i + 1)));
  }
  try {
    for (uint32_t i = 0; i < threads; ++i) {
      threads_.emplace_back([this, i] {
        simt::host_worker = i;
        workers_[i]->run(stop_);
      });
    }
  } catch (...) {
    stop_.store(true, std::memory_order_relaxed);
    throw;
  }
}

RpcServer::~RpcServer() { stop_.store(true, std::memory_order_relaxed); }

}  // namespace gofs::bench
