// SPDX-License-Identifier: Apache-2.0
//
// A request by a system call of the calling thread, which waits for it. Host only.
#pragma once

#include "ssd/hosted/io_engine.h"

namespace gofs::ssd {

/// What IoCompletion::result has.
int64_t call_kernel(const IoTarget& target, const IoRequest& request);

}  // namespace gofs::ssd
