// SPDX-License-Identifier: Apache-2.0
//
// How physical SSDs are reached: by the word before the colon in a volume's name. `vfio` is always
// there; tests add others.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include "host/volume_spec.h"
#include "kernels/backend.h"
#include "ssd/memory_source.h"
#include "ssd/transport.h"

namespace gofs::host {

/// A controller, and memory that may be mapped for it. The controller goes first.
struct OpenedSsd {
  std::unique_ptr<ssd::MemorySource> memory;
  std::unique_ptr<ssd::Transport> transport;
};

/// Opens what `spec` names, with `bytes` of memory for queues and data that the backend's warps can
/// reach. Throws std::system_error.
using Provider =
    std::function<OpenedSsd(const VolumeSpec& spec, uint64_t bytes, kernels::Backend& backend)>;

/// Not while others use volumes.
void add_provider(const std::string& name, Provider provider);

/// The provider's name that `text` begins with, before a colon. Empty: none.
std::string provider_of(std::string_view text);

/// As Provider; `spec` is a physical SSD.
OpenedSsd open_physical(const VolumeSpec& spec, uint64_t bytes, kernels::Backend& backend);

}  // namespace gofs::host
