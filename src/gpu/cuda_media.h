// SPDX-License-Identifier: Apache-2.0
//
// An SSD's contents where a GPU reaches them: pinned host memory, or the GPU's own (media=hbm).
#pragma once

#include <memory>
#include <string>

#include "gpu/context_health.h"
#include "kernels/backend.h"

namespace gofs::gpu {

/// The backend's two memories, and whether there is still a GPU.
struct MediaMemory {
  simt::MemorySpace& device;
  simt::MemorySpace& pinned;
  ContextHealth& health;
};

/// Loads an image, or makes empty memory. Of a sparse image only the parts that hold data are kept,
/// so that a volume of 1 TiB costs what is in it. Null on failure, `error` then says why.
std::unique_ptr<kernels::LoadedMedia> load_cuda_media(const MediaMemory& memory,
                                                      const kernels::MediaRequest& request,
                                                      std::string& error);

}  // namespace gofs::gpu
