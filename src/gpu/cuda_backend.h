// SPDX-License-Identifier: Apache-2.0
//
// File system code on an NVIDIA GPU.
#pragma once

#include <memory>
#include <string>

#include "work/backend.h"

namespace gofs::gpu {

/// The backend on the current CUDA device, or null; `error` then says why.
std::unique_ptr<work::Backend> make_cuda_backend(std::string& error);

}  // namespace gofs::gpu
