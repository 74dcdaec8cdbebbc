// SPDX-License-Identifier: Apache-2.0
//
// Whose memory an address is, for host programs that are given buffers by others.
#pragma once

#include "gofs/export.h"

namespace gofs {

/// Whether the memory is a GPU's, so that the host does not reach it: Volume::read_ranges() and
/// write_ranges() take it, and no other call of the host. The CUDA driver says so that the program
/// has loaded, within 10 ms after it has; false where there is none. Memory of the host that a GPU
/// reaches as well (pinned, managed) is none. From any thread.
GOFS_API bool is_gpu_memory(const void* memory);

}  // namespace gofs
