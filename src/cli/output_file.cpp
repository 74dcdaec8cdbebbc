// SPDX-License-Identifier: Apache-2.0
#include "cli/output_file.h"

#include <algorithm>
#include <cerrno>
#include <utility>

#include "cli/interruption.h"
#include "cli/objects.h"
#include "cli/output.h"

namespace gofs::cli {

OutputStream::OutputStream(ssd::Descriptor descriptor, std::string path)
    : descriptor_(std::move(descriptor)), path_(std::move(path)) {}

void OutputStream::write(const uint8_t* data, uint64_t bytes, uint64_t offset) {
  finish(offset);
  put(data, bytes);
}

void OutputStream::finish(uint64_t bytes) {
  static constexpr uint8_t kZeros[1 << 16] = {};
  while (written_ < bytes) put(kZeros, std::min<uint64_t>(sizeof(kZeros), bytes - written_));
}

void OutputStream::put(const uint8_t* data, uint64_t bytes) {
  while (bytes != 0) {
    stop_if_interrupted();
    const ssize_t done = ::write(descriptor_.get(), data, bytes);
    if (done < 0 && errno == EAGAIN) {
      wait_for_room(descriptor_.get());
      continue;
    }
    if (done < 0 && errno == EINTR) continue;
    if (done < 0) fail_with_errno(path_);
    data += done;
    bytes -= static_cast<uint64_t>(done);
    written_ += static_cast<uint64_t>(done);
  }
}

}  // namespace gofs::cli
