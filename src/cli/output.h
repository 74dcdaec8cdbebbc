// SPDX-License-Identifier: Apache-2.0
//
// Standard output, buffered, and standard error. A reader of the output that went away ends the
// command (OutputError), quietly; a full disk ends it with a message. What standard error does not
// take is lost, and nothing else comes of it.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace gofs::cli {

struct OutputError {
  int error;  // errno of the write
};

/// After a write that answered EAGAIN, of a descriptor that does not block: returns when there may
/// be room, or a signal came. Leaves errno as it is.
void wait_for_room(int descriptor) noexcept;

/// Throws OutputError, as does flush_output().
void print(std::string_view text);
/// For large amounts: past the buffer.
void print_bytes(const void* data, size_t bytes);
void flush_output();

/// To standard error, at once. False if it did not take all of it.
bool print_error(std::string_view text) noexcept;

}  // namespace gofs::cli
