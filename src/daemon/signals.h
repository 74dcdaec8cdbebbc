// SPDX-License-Identifier: Apache-2.0
//
// The signals that end programs, as something to wait for beside other things.
#pragma once

#include "ssd/descriptor.h"

namespace gofs::daemon {

/// A descriptor that can be read when SIGTERM or SIGINT has come. Blocks them for this thread, and
/// for those that it starts. Throws std::system_error.
ssd::Descriptor ending_signals();

}  // namespace gofs::daemon
