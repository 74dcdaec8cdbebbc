// SPDX-License-Identifier: Apache-2.0
//
// Memory that two processes have mapped: a memfd, whose size nobody changes any more.
#pragma once

#include <cstdint>

#include "ssd/descriptor.h"

namespace gofs::host {

class SharedMemory {
 public:
  /// New, zeroed. Throws std::system_error.
  static SharedMemory make(const char* name, uint64_t bytes);
  /// Maps what another process has made. Throws std::system_error: also where its size could still
  /// change, since a process would then die that touches what is gone.
  static SharedMemory map(ssd::Descriptor descriptor);

  SharedMemory(SharedMemory&& other) noexcept;
  SharedMemory& operator=(SharedMemory&& other) noexcept;
  ~SharedMemory();

  uint8_t* data() const { return data_; }
  uint64_t bytes() const { return bytes_; }
  const ssd::Descriptor& descriptor() const { return descriptor_; }

 private:
  SharedMemory(ssd::Descriptor descriptor, uint64_t bytes);

  ssd::Descriptor descriptor_;
  uint8_t* data_ = nullptr;
  uint64_t bytes_ = 0;
};

}  // namespace gofs::host
