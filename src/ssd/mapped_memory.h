// SPDX-License-Identifier: Apache-2.0
//
// What host_memory.cpp and file_memory.cpp share: a range that was mapped. For them only.
#pragma once

#include <sys/mman.h>

#include <cstdint>
#include <string>
#include <utility>

#include "ssd/descriptor.h"
#include "ssd/memory_source.h"

namespace gofs::ssd {

/// What memory for a controller is a multiple of.
inline constexpr uint64_t kDmaPageBytes = 4096;

class MappedMemory final : public MemorySource {
 public:
  /// Takes the mapping over. `file` stays open as long as this lives, and with it a lock on it.
  MappedMemory(void* base, uint64_t bytes, std::string description, Descriptor file)
      : base_(base), bytes_(bytes), description_(std::move(description)), file_(std::move(file)) {}
  MappedMemory(const MappedMemory&) = delete;
  MappedMemory& operator=(const MappedMemory&) = delete;
  ~MappedMemory() override { ::munmap(base_, bytes_); }

  uint8_t* base() const override { return static_cast<uint8_t*>(base_); }
  uint64_t bytes() const override { return bytes_; }
  std::string description() const override { return description_; }

 private:
  void* base_;
  uint64_t bytes_;
  std::string description_;
  Descriptor file_;
};

}  // namespace gofs::ssd
