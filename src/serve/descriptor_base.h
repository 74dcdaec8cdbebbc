// SPDX-License-Identifier: Apache-2.0
//
// Numbers of descriptors as a client has them: the server's own and a base, which differs from
// server to server. So one of a server that has ended is told from those of the next.
#pragma once

#include <cerrno>

#include "simt/platform.h"

namespace gofs::serve {

/// Every server's own numbers are below.
inline constexpr int kDescriptorStride = 1 << 24;

/// The base for the `count`th server, from 1 on, that a client has come to. After very many it is
/// an old one.
GOFS_HD constexpr int descriptor_base(uint64_t count) {
  return static_cast<int>((count - 1) % 127) * kDescriptorStride;
}

/// The server's number; or -EBADF, or -ESTALE for one of a server before.
GOFS_HD constexpr int own_number(int base, int descriptor) {
  if (descriptor < 0 || descriptor - base >= kDescriptorStride) return -EBADF;
  return descriptor < base ? -ESTALE : descriptor - base;
}

}  // namespace gofs::serve
