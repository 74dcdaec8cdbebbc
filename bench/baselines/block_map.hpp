// SPDX-License-Identifier: Apache-2.0
//
// What the host of a companion file system does when a file is opened: it finds out where its
// blocks lie, and copies the map into the device's memory.
#pragma once

#include <memory>

#include "bench/actors.hpp"
#include "device.hpp"
#include "host/volume_state.h"

namespace gofs::bench {

class BlockMap {
 public:
  /// Of an open file without holes, of whole blocks. Errors: EIO also for an address that is none.
  static Expected<std::unique_ptr<BlockMap>> make(Device& device, host::VolumeState& volume,
                                                  int descriptor, uint64_t bytes);
  /// In the device's memory.
  const uint64_t* blocks() const { return map_.as<uint64_t>(); }

 private:
  BlockMap(simt::MemorySpace& memory, uint64_t count) : map_(memory, count * sizeof(uint64_t)) {}

  const BackendArray map_;
};

}  // namespace gofs::bench
