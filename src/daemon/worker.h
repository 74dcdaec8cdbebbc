// SPDX-License-Identifier: Apache-2.0
//
// The process that has the volume mounted, and serves it at the socket that its keeper has.
#pragma once

#include "daemon/options.h"

namespace gofs::daemon {

/// Until the keeper asks for the end, by a signal (SIGTERM) or by its own, or a client does. The
/// exit status: 0 where the volume was unmounted and all is durable. Throws cli::Failure,
/// std::system_error, std::bad_alloc.
int work(const Options& options);

}  // namespace gofs::daemon
