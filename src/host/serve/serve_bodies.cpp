// SPDX-License-Identifier: Apache-2.0
#include "host/serve/serve_bodies.h"

#include "kernels/serve.h"

namespace gofs::kernels::bodies {

// There is no kernel of these yet: servers run on the CPU backend.
constinit const Body kServe{"serve", run_on_cpu<ServeParams, serve_body>, nullptr};
constinit const Body kLeave{"leave", run_on_cpu<LeaveParams, leave_body>, nullptr};

}  // namespace gofs::kernels::bodies
