// SPDX-License-Identifier: Apache-2.0
//
// A GPU's memory for an SSD to read and write by itself (queues=gpu&data=gpu). Lifetime: VFIO does
// not notice when such memory is freed, so it must have been unmapped for the SSD before; who owns
// a source sees to it. Host only.
#pragma once

#include <memory>

#include "ssd/memory_source.h"

namespace gofs::gpu {

/// New memory of the GPU that is current; rounded up to 64 KiB. Throws std::system_error, which
/// says what is missing.
std::unique_ptr<ssd::MemorySource> make_device_source(uint64_t bytes);

/// Memory that the caller got by cudaMalloc; both are multiples of 64 KiB. Throws likewise.
std::unique_ptr<ssd::MemorySource> view_device_memory(void* device, uint64_t bytes);

}  // namespace gofs::gpu
