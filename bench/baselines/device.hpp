// SPDX-License-Identifier: Apache-2.0
//
// Where the baselines' own device code runs: a GPU, or host threads that play one. It also copies
// between the host's memory and the device's, as programs do that leave the reading to the host.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "kernels/backend.h"

namespace gofs::bench {

/// The copies of one host thread. One of the two places lies in Backend::shared_memory(), the other
/// in Backend::memory().
class Copies {
 public:
  virtual ~Copies() = default;
  /// Starts one; both places stay as they are until finish().
  virtual void begin(void* target, const void* source, uint64_t bytes) = 0;
  /// Waits for all that were started. 0 or a negative errno: of those that could not be started as
  /// well, and -ETIMEDOUT.
  virtual int finish() = 0;
};

class Device {
 public:
  virtual ~Device() = default;
  /// Runs a body on `grid` and waits for it, asleep. `params` lies in the backend's memory.
  /// False on failure: error() says what.
  virtual bool run(const kernels::Body& body, const kernels::Grid& grid, void* params) = 0;
  /// Null on failure.
  virtual std::unique_ptr<Copies> make_copies() = 0;
  virtual const std::string& error() const = 0;
  /// Whose memory it works on.
  virtual kernels::Backend& backend() = 0;
};

/// The device of a backend, which outlives it. Null on failure, `error` then says why.
std::unique_ptr<Device> make_device(kernels::Backend& backend, std::string& error);

/// The two that there are. The GPU's only in builds that have one.
std::unique_ptr<Device> make_host_device(kernels::Backend& backend);
std::unique_ptr<Device> make_cuda_device(kernels::Backend& backend, std::string& error);

}  // namespace gofs::bench
