// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <vector>

#include "gofs/volume.hpp"

namespace gofs::python {

/// Begins to read or to write ranges in the order of `stream`, a cudaStream_t as Python has it.
inline Expected<RangeCall> begin_ranges(Volume& volume, bool writes,
                                        const std::vector<IoRange>& ranges, uint64_t stream) {
  auto* const in_order = reinterpret_cast<CUstream_st*>(stream);
  return writes ? volume.write_ranges(ranges, in_order) : volume.read_ranges(ranges, in_order);
}

}  // namespace gofs::python
