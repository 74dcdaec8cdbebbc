// SPDX-License-Identifier: Apache-2.0
//
// The blocks in the device's memory that host threads read into or write from.
#pragma once

#include "bench/actors.hpp"
#include "device.hpp"
#include "host/volume_state.h"
#include "slots.h"

namespace gofs::bench {

class Slots {
 public:
  /// Throws std::bad_alloc.
  Slots(Device& device, uint64_t count);

  uint64_t count() const { return blocks_.size(); }
  uint8_t* memory() const { return buffers_.data(); }
  uint8_t* at(uint64_t slot) const { return buffers_.data() + slot * kBlockBytes; }
  /// Which block of the file the slot holds; kNoBlock at first.
  uint64_t& block(uint64_t slot) const { return blocks_[slot]; }

  /// The device writes their stamps into all slots that hold blocks.
  Expected<void> stamp(uint64_t run);
  /// The device looks at them. EIO: some hold something else. A `run` of 0 is not looked for.
  Expected<void> check(uint64_t run);

 private:
  Expected<uint64_t> launch(const kernels::Body& body, uint64_t run);

  Device& device_;
  BackendArray buffers_;
  host::SharedArray<uint64_t> blocks_;
  host::SharedArray<SlotParams> params_;
};

/// An error about blocks that did not hold what they should.
Error wrong_blocks(uint64_t wrong, const std::string& where);

}  // namespace gofs::bench
