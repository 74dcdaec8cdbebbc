// SPDX-License-Identifier: Apache-2.0
//
// Where memory comes from that a physical controller, the host and the warps of a backend all
// reach: queues lie there, and what commands read and write on its way. A source is one range; what
// is put where in it is up to dma_memory.h. Host only.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

namespace gofs::ssd {

/// A range of memory, zeroed, at a multiple of 4 KiB, that stays where it is. Freed when it goes,
/// which is after the controller has lost it (Transport).
class MemorySource {
 public:
  virtual ~MemorySource() = default;
  /// Where the host sees it, and what is mapped for the controller.
  virtual uint8_t* base() const = 0;
  /// Where warps see it: of a GPU's memory not where the host does.
  virtual uint8_t* warp_base() const { return base(); }
  virtual uint64_t bytes() const = 0;
  /// For people: "64 MiB of host memory in huge pages".
  virtual std::string description() const = 0;
};

/// Memory of the host that is never moved or swapped: huge pages where there are enough, else
/// ordinary ones. `bytes` are rounded up to 2 MiB. Throws std::system_error.
std::unique_ptr<MemorySource> make_host_memory(uint64_t bytes);

/// A file that devices reach as well, such as a BAR of another device
/// (/sys/bus/pci/devices/BDF/resource2); all of it. Throws std::system_error.
std::unique_ptr<MemorySource> make_file_memory(const std::string& path);

}  // namespace gofs::ssd
