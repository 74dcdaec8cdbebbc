// SPDX-License-Identifier: Apache-2.0
#include "host/serve/ring_head.h"

#include <bit>
#include <cerrno>

#include "ssd/system_failure.h"

namespace gofs::host {

serve::RingHead checked_head(const serve::RingHead& head, uint64_t bytes) {
  if (head.magic != serve::kRingMagic || head.version != serve::kRingVersion) {
    ssd::fail_with(EPROTO, "a channel of another version of GoFS");
  }
  const bool is_depth = head.depth >= serve::kRingDepthMin && head.depth <= serve::kRingDepthMax &&
                        std::has_single_bit(head.depth);
  if (!is_depth || head.bytes != bytes ||
      serve::layout_of_ring(head.depth, head.buffer_bytes).bytes != head.bytes) {
    ssd::fail_with(EPROTO, "a channel that is damaged");
  }
  return serve::layout_of_ring(head.depth, head.buffer_bytes);
}

}  // namespace gofs::host
