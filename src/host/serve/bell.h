// SPDX-License-Identifier: Apache-2.0
//
// What threads of a server wait for: bells that others ring, and connections.
#pragma once

#include <cstdint>
#include <optional>

#include "ssd/descriptor.h"

namespace gofs::host {

/// A bell that stays rung (an eventfd). Throws std::system_error.
ssd::Descriptor make_bell();
void ring_bell(const ssd::Descriptor& bell);

/// Another descriptor of the same. Throws std::system_error.
ssd::Descriptor copy_of(const ssd::Descriptor& one);

/// Waits for any of several descriptors (epoll). From any thread.
class Watch {
 public:
  /// Throws std::system_error.
  Watch();

  /// From now on it is waited for until there is something to read, or the other end hangs up; it
  /// is forgotten when it is closed. `mark` says which it is. Throws std::system_error.
  void add(const ssd::Descriptor& descriptor, uint32_t mark);
  /// The same of a bell, with mark 0; but each ring is told once, to one who waits, so that nobody
  /// has to read it: it is another process's as well, which may let a read wait for ever.
  void add_bell(const ssd::Descriptor& bell);
  /// Not any more; also of one that is not.
  void remove(const ssd::Descriptor& descriptor);
  /// The mark of one that is ready. None after `timeout_ms`, which may be -1 for ever, or where a
  /// signal has come.
  std::optional<uint32_t> wait(int timeout_ms) const;

 private:
  void add(const ssd::Descriptor& descriptor, uint32_t mark, uint32_t events);

  ssd::Descriptor events_;
};

}  // namespace gofs::host
