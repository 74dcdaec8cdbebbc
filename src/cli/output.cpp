// SPDX-License-Identifier: Apache-2.0
#include "cli/output.h"

#include <unistd.h>

#include <cerrno>

namespace gofs::cli {

namespace {

constexpr size_t kBufferBytes = 1 << 16;

std::string& buffer() {
  static std::string text;
  return text;
}

void write_all(const char* data, size_t bytes) {
  while (bytes != 0) {
    const ssize_t written = ::write(STDOUT_FILENO, data, bytes);
    if (written < 0) {
      if (errno == EINTR) continue;
      throw OutputError{errno};
    }
    data += written;
    bytes -= static_cast<size_t>(written);
  }
}

}  // namespace

void print(std::string_view text) {
  buffer() += text;
  if (buffer().size() >= kBufferBytes) flush_output();
}

void print_bytes(const void* data, size_t bytes) {
  flush_output();
  write_all(static_cast<const char*>(data), bytes);
}

void flush_output() {
  std::string text;
  text.swap(buffer());
  write_all(text.data(), text.size());
  text.clear();
  buffer().swap(text);  // its memory is used again
}

}  // namespace gofs::cli
