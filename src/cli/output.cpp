// SPDX-License-Identifier: Apache-2.0
#include "cli/output.h"

#include <poll.h>
#include <unistd.h>

#include <cerrno>

namespace gofs::cli {

namespace {

constexpr size_t kBufferBytes = 1 << 16;

std::string& buffer() {
  static std::string text;
  return text;
}

/// 0 or an errno. Waits for a reader, also where the descriptor does not block: it may be so by
/// what another process has made of it.
int write_to(int descriptor, const char* data, size_t bytes) noexcept {
  while (bytes != 0) {
    const ssize_t written = ::write(descriptor, data, bytes);
    if (written < 0) {
      if (errno == EAGAIN) wait_for_room(descriptor);
      if (errno == EINTR || errno == EAGAIN) continue;
      return errno;
    }
    data += written;
    bytes -= static_cast<size_t>(written);
  }
  return 0;
}

void write_all(const char* data, size_t bytes) {
  const int error = write_to(STDOUT_FILENO, data, bytes);
  if (error != 0) throw OutputError{error};
}

}  // namespace

void wait_for_room(int descriptor) noexcept {
  const int error = errno;
  pollfd wait{descriptor, POLLOUT, 0};
  (void)::poll(&wait, 1, -1);
  errno = error;
}

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

bool print_error(std::string_view text) noexcept {
  return write_to(STDERR_FILENO, text.data(), text.size()) == 0;
}

}  // namespace gofs::cli
