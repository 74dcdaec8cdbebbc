// SPDX-License-Identifier: Apache-2.0
//
// The baseline `rpc`: GPU threads ask the host for their reads and writes.
#pragma once

#include "baseline.hpp"
#include "device.hpp"
#include "rpc.h"
#include "storage.hpp"

namespace gofs::bench {

struct RpcOptions {
  double seconds = 0.1;
  uint32_t servers = 1;
  uint64_t timeout_ns = 10'000'000'000;  // of a request
};

class Rpc final : public Baseline {
 public:
  Rpc(Device& device, Storage& storage, const RpcOptions& options)
      : device_(device), storage_(storage), options_(options) {}

  std::string name() const override { return "rpc"; }
  std::string note() const override;
  bool has_layout() const override { return !device_.backend().is_host(); }
  /// ETIMEDOUT: nobody served a request in time.
  Expected<Sample> measure(const Point& point) override;

 private:
  Expected<Sample> run(const Point& point);
  Expected<void> check_file(const RpcParams& params, uint32_t lanes);

  Device& device_;
  Storage& storage_;
  const RpcOptions options_;
};

}  // namespace gofs::bench
