// SPDX-License-Identifier: Apache-2.0
#include "device.hpp"

namespace gofs::bench {

std::unique_ptr<Device> make_device(kernels::Backend& backend, std::string& error) {
  if (backend.is_host()) return make_host_device(backend);
#ifdef GOFS_WITH_CUDA
  return make_cuda_device(backend, error);
#else
  error = "built without CUDA";
  return nullptr;
#endif
}

}  // namespace gofs::bench
