// SPDX-License-Identifier: Apache-2.0
//
// File system code on an NVIDIA GPU.
#pragma once

#include <memory>
#include <string>

#include "kernels/backend.h"

namespace gofs::gpu {

/// Why this process cannot use its GPU any more: a kernel had a fault. Empty: it can, or never
/// could.
std::string lost_context();

/// The backend on the current CUDA device, or null; `error` then says why.
std::unique_ptr<kernels::Backend> make_cuda_backend(std::string& error);

}  // namespace gofs::gpu
