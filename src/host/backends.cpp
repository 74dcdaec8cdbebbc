// SPDX-License-Identifier: Apache-2.0
#include "host/backends.h"

#include "host/cpu_backend.h"

#if defined(GOFS_WITH_CUDA)
#include "gpu/cuda_backend.h"
#endif

namespace gofs::host {

namespace {

std::unique_ptr<kernels::Backend> make_gpu_backend([[maybe_unused]] std::string& error) {
#if defined(GOFS_WITH_CUDA)
  return gpu::make_cuda_backend(error);
#else
  error = "GoFS was built without CUDA";
  return nullptr;
#endif
}

bool has_lost_gpu() {
#if defined(GOFS_WITH_CUDA)
  return !gpu::lost_context().empty();
#else
  return false;
#endif
}

}  // namespace

std::unique_ptr<kernels::Backend> make_backend(const std::string& name, std::string& error) {
  if (name == "cpu") return make_cpu_backend();
  if (name == "cuda") return make_gpu_backend(error);
  if (name != "auto") {
    error = "unknown backend '" + name + "' (auto, cpu or cuda)";
    return nullptr;
  }
  std::string reason;
  std::unique_ptr<kernels::Backend> backend = make_gpu_backend(reason);
  if (backend == nullptr && has_lost_gpu()) {
    error = reason;  // kernels of the program would not reach what a CPU has mounted
    return nullptr;
  }
  return backend != nullptr ? std::move(backend) : make_cpu_backend();
}

}  // namespace gofs::host
