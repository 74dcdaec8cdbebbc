// SPDX-License-Identifier: Apache-2.0
//
// What the bytes of one file go to on the host.
#pragma once

#include <cstdint>
#include <string>

#include "ssd/descriptor.h"

namespace gofs::cli {

/// Throws ObjectFailure, and Interrupted.
class OutputFile {
 public:
  virtual ~OutputFile() = default;
  /// In the order of their offsets; what is left out is zeros.
  virtual void write(const uint8_t* data, uint64_t bytes, uint64_t offset) = 0;
  /// The file has `bytes` in all.
  virtual void finish(uint64_t bytes) = 0;
};

/// A pipe, a device, or what else takes one byte after the other.
class OutputStream final : public OutputFile {
 public:
  /// `path` is for messages.
  OutputStream(ssd::Descriptor descriptor, std::string path);

  int descriptor() const { return descriptor_.get(); }
  void write(const uint8_t* data, uint64_t bytes, uint64_t offset) override;
  void finish(uint64_t bytes) override;

 private:
  void put(const uint8_t* data, uint64_t bytes);

  const ssd::Descriptor descriptor_;
  const std::string path_;
  uint64_t written_ = 0;
};

}  // namespace gofs::cli
