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
  static AnyVolume& any(const Volume& volume) { return *volume.state_; }
  static Volume volume(std::unique_ptr<AnyVolume> state) { return Volume(std::move(state)); }
};

inline AnyVolume& any_of(const Volume& volume) { return VolumeAccess::any(volume); }
/// Null: this process has not mounted it itself.
inline VolumeState* mounted_of(const Volume& volume) {
  return dynamic_cast<VolumeState*>(&any_of(volume));
}
/// Of one that this process has mounted.
inline VolumeState& state_of(const Volume& volume) {
  return static_cast<VolumeState&>(any_of(volume));
}

}  // namespace gofs::host
