// SPDX-License-Identifier: Apache-2.0
//
// File system code on host threads: a warp is a thread, and waiting for the device means doing the
// virtual controller's work.
#pragma once

#include <cstdint>
#include <memory>

#include "kernels/backend.h"

namespace gofs::host {

/// A launch gets at most `workers_max` threads; 0: as many as the machine has.
std::unique_ptr<kernels::Backend> make_cpu_backend(uint32_t workers_max = 0);

}  // namespace gofs::host
