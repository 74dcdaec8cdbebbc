// SPDX-License-Identifier: Apache-2.0
//
// From a Volume, as programs have it, to what lies behind it, for parts of GoFS that stand above
// the public interface: the command, benchmarks and tests.
#pragma once

#include <memory>
#include <utility>

#include "gofs/volume.hpp"
#include "host/volume_state.h"

namespace gofs::host {

struct VolumeAccess {
  static VolumeState& state(const Volume& volume) { return *volume.state_; }
  static Volume volume(std::unique_ptr<VolumeState> state) { return Volume(std::move(state)); }
};

inline VolumeState& state_of(const Volume& volume) { return VolumeAccess::state(volume); }

}  // namespace gofs::host
