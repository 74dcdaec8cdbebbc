// SPDX-License-Identifier: Apache-2.0
#include "slots.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cerrno>

#include "bodies.hpp"
#include "host/messages.h"

namespace gofs::bench {

Slots::Slots(Device& device, uint64_t count)
    : device_(device),
      buffers_(device.backend().memory(), count * kBlockBytes),
      blocks_(device.backend().shared_memory(), count),
      params_(device.backend().shared_memory(), 1) {
  std::fill(blocks_.data(), blocks_.data() + count, kNoBlock);
}

Expected<void> Slots::stamp(uint64_t run) {
  const auto done = launch(bodies::kStampSlots, run);
  return done ? Expected<void>() : done.error();
}

Expected<void> Slots::check(uint64_t run) {
  const auto wrong = launch(bodies::kCheckSlots, run);
  if (!wrong) return wrong.error();
  if (*wrong != 0) return wrong_blocks(*wrong, "in the device's memory");
  return {};
}

Expected<uint64_t> Slots::launch(const kernels::Body& body, uint64_t run) {
  params_[0] = {buffers_.data(), blocks_.data(), count(), run, 0};
  if (!device_.run(body, device_.backend().full_grid(), &params_[0])) {
    return host::make_error(EIO, "slots", device_.error());
  }
  return params_[0].wrong;
}

Error wrong_blocks(uint64_t wrong, const std::string& where) {
  return host::make_error(
      EIO, "baselines",
      fmt::format("{} blocks {} are not those that they should be", wrong, where));
}

}  // namespace gofs::bench
