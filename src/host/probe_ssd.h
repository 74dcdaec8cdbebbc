// SPDX-License-Identifier: Apache-2.0
//
// What there is on a physical SSD, before a volume that it is a part of is brought up: it is
// attached alone, by one queue of the host's own, and let go again.
#pragma once

#include <cstdint>
#include <vector>

#include "gofs/expected.hpp"
#include "host/volume_spec.h"
#include "simt/platform.h"

namespace gofs::host {

struct ProbedSsd {
  uint64_t bytes;
  uint32_t lba_bytes;
  std::vector<uint8_t> block;  // of kBlockBytes; empty where it is no longer than that
};

/// Reads the block at `offset`, a multiple of kBlockBytes. The SSD is not in use. Errors name it.
Expected<ProbedSsd> probe_ssd(const VolumeSpec& spec, uint64_t offset);

}  // namespace gofs::host
