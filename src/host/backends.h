// SPDX-License-Identifier: Apache-2.0
//
// Choosing where file system code runs. The one place of the host API that knows whether GoFS was
// built with CUDA.
#pragma once

#include <memory>
#include <string>

#include "kernels/backend.h"

namespace gofs::host {

/// `name` is "cpu", "cuda", or "auto": the GPU if one answers, else the CPU. Null with a reason in
/// `error`: a GPU that was asked for and is not there, or an unknown name; with "auto", a GPU that
/// this process has lost by a fault of a kernel.
std::unique_ptr<kernels::Backend> make_backend(const std::string& name, std::string& error);

}  // namespace gofs::host
