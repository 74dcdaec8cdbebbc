// SPDX-License-Identifier: Apache-2.0
#include "host/inodes.h"

#include "host/named_inodes.h"
#include "host/numbered_inodes.h"

namespace gofs::host {

std::unique_ptr<Inodes> Inodes::of(AnyVolume& volume) {
  if (auto* const mounted = dynamic_cast<VolumeState*>(&volume)) {
    return std::make_unique<NumberedInodes>(*mounted);
  }
  return std::make_unique<NamedInodes>(volume);
}

}  // namespace gofs::host
