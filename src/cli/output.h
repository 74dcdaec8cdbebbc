// SPDX-License-Identifier: Apache-2.0
//
// Standard output, buffered. A reader that went away ends the command (OutputError), quietly; a
// full disk ends it with a message.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace gofs::cli {

struct OutputError {
  int error;  // errno of the write
};

/// Throws OutputError, as does flush_output().
void print(std::string_view text);
/// For large amounts: past the buffer.
void print_bytes(const void* data, size_t bytes);
void flush_output();

}  // namespace gofs::cli
