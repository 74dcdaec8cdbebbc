// SPDX-License-Identifier: Apache-2.0
//
// CUDA's Multi-Process Service, by which kernels of several processes run on one GPU at the same
// time. Its control daemon has to run before the first of them uses the GPU. It is found by
// CUDA_MPS_PIPE_DIRECTORY, or in /tmp/nvidia-mps.
#pragma once

namespace gofs::daemon {

class Mps {
 public:
  /// Starts it where it does not run; made before this process or its worker uses the GPU. Throws
  /// std::system_error, with what NVIDIA's program says.
  Mps();
  /// One that was started here ends, unless a program uses a GPU by it, whom the end would keep
  /// others from joining.
  ~Mps();
  Mps(const Mps&) = delete;
  Mps& operator=(const Mps&) = delete;

 private:
  bool is_ours_ = false;
};

}  // namespace gofs::daemon
