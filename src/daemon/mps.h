// SPDX-License-Identifier: Apache-2.0
//
// CUDA's Multi-Process Service, by which kernels of several processes run on one GPU at the same
// time. Its control daemon is there before the first of them uses the GPU, and is found by
// CUDA_MPS_PIPE_DIRECTORY, or where NVIDIA's programs look without that.
#pragma once

namespace gofs::daemon {

class Mps {
 public:
  /// Starts it, where it does not run. Throws std::system_error, which has what NVIDIA's program
  /// says.
  Mps();
  /// One that was started here ends, when the last program has gone that uses a GPU by it; nobody
  /// waits for that.
  ~Mps();
  Mps(const Mps&) = delete;
  Mps& operator=(const Mps&) = delete;

 private:
  bool is_ours_ = false;
};

}  // namespace gofs::daemon
