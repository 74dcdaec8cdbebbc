// SPDX-License-Identifier: Apache-2.0
//
// The process that keeps a volume served: it has the socket, and starts a worker, which has
// everything else. Where the worker dies, or gives no sign of life, it starts another, which
// recovers what fsync had made durable; clients that come meanwhile wait in the socket's queue.
#pragma once

#include "daemon/options.h"

namespace gofs::daemon {

/// Until a signal (SIGTERM, SIGINT) or a client asks for the end. The exit status of the program:
/// 0; 1 where the volume cannot be served. Throws std::system_error.
int keep(const Options& options);

}  // namespace gofs::daemon
