// SPDX-License-Identifier: Apache-2.0
//
// What a client looks at first in the memory that its server has given it for a ring.
#pragma once

#include "serve/ring.h"

namespace gofs::host {

/// The layout of the ring that begins with `head`, in memory of `bytes`. Throws std::system_error
/// (EPROTO) where it is none, or one of another version.
serve::RingHead checked_head(const serve::RingHead& head, uint64_t bytes);

}  // namespace gofs::host
