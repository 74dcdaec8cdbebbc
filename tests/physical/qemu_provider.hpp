// SPDX-License-Identifier: Apache-2.0
//
// Volumes on QEMU's NVMe controllers: a machine whose disks are named `qemu:0`, `qemu:1` and so on.
#pragma once

#include <memory>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "../qemu/qemu_machine.h"
#include "../qemu/qemu_memory.h"
#include "../qemu/qtest_transport.h"
#include "gofs/volume.hpp"
#include "host/providers.h"

namespace gofs::tests {

/// One at a time. Goes after all volumes on it.
class QemuVolumes {
 public:
  explicit QemuVolumes(const ssd::QemuOptions& options) : machine_(options) {
    host::add_provider("qemu", [this](const host::VolumeSpec& spec, uint64_t bytes,
                                      kernels::Backend&) {
      host::OpenedSsd opened;
      opened.memory = std::make_unique<ssd::QemuMemory>(machine_, bytes);
      opened.transport = std::make_unique<ssd::QtestTransport>(machine_, std::stoul(spec.address));
      return opened;
    });
  }
  QemuVolumes(const QemuVolumes&) = delete;
  QemuVolumes& operator=(const QemuVolumes&) = delete;

  ssd::QemuMachine& machine() { return machine_; }

 private:
  ssd::QemuMachine machine_;
};

/// With a cache that suits a small volume.
inline Expected<Volume> mount(const std::string& spec, bool read_only = false) {
  MountOptions options;
  options.read_only = read_only;
  options.cache_bytes = uint64_t{16} << 20;
  return Volume::mount(spec, options);
}

}  // namespace gofs::tests
