// SPDX-License-Identifier: Apache-2.0
//
// One SSD of a volume as the host has it: what the driver is told of it, where its queues lie, and
// what is left to the host. There are three kinds, virtual, hosted and physical; nothing above this
// knows which.
#pragma once

#include <memory>
#include <optional>
#include <string>

#include "gofs/expected.hpp"
#include "host/volume_spec.h"
#include "kernels/backend.h"
#include "nvme/layout.h"
#include "ssd/hosted/command_meter.h"
#include "ssd/virtual_ssd.h"

namespace gofs::host {

class AttachedSsd {
 public:
  virtual ~AttachedSsd() = default;

  virtual const ssd::ControllerRef& controller() const = 0;
  virtual nvme::DeviceMemory device_memory() = 0;
  /// For people: "virtual NVMe SSD", and "model p5800x".
  virtual std::string kind() const = 0;
  virtual std::string details() const = 0;
  /// Whether warps of a GPU write its registers themselves, as was to be tried.
  virtual bool tries_doorbells() const = 0;
  /// What is stored on it; 0: not known before it is up.
  virtual uint64_t bytes() const = 0;
  /// Brings what was flushed to where it lasts, if the host must. Empty, or what went wrong. Where
  /// copied_media() is not null it brings what that has collected.
  virtual std::string sync() = 0;
  /// Its contents, where they are a copy in memory (kernels::LoadedMedia::is_copy()); else null.
  virtual kernels::LoadedMedia* copied_media() { return nullptr; }
  /// What the host's storage has said to the last command that failed for its sake, if any did.
  virtual std::string host_problem() const { return {}; }
  /// What can be written of it, where that is not all; else null.
  virtual const kernels::MediaRoom* room() const { return nullptr; }
  /// Warps that wake nothing by themselves are about to give it commands: what sleeps wakes up.
  virtual void wake() {}
  /// The controller is disabled and nobody uses it any more. Its queues' memory stays.
  virtual void detach() = 0;
  /// What it has counted; no thread gives it commands meanwhile. All 0 for a physical one.
  virtual ssd::VirtualSsdCounters counters() = 0;
  /// How long its commands take, where that is measured. From any thread.
  virtual std::optional<ssd::MeasuredCommands> measured() const { return std::nullopt; }
  /// Lets commands go straight to memory of the host from now on, where that can be: true. Else it
  /// goes through staging memory, as before.
  virtual bool map_buffer(void* memory, uint64_t bytes) = 0;
  /// No thread uses it any more.
  virtual void unmap_buffer(void* memory) = 0;
};

/// Errors name the SSD. `options` are those of its device; what the SSD decides is set there.
Expected<std::unique_ptr<AttachedSsd>> attach_ssd(kernels::Backend& backend, const VolumeSpec& spec,
                                                  bool writable, nvme::DeviceOptions& options);

}  // namespace gofs::host
