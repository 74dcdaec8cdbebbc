// SPDX-License-Identifier: Apache-2.0
#include "host/serve/serve_bodies.h"

#include "gpu/serve_kernels.h"
#include "kernels/channel.h"
#include "kernels/serve.h"

namespace gofs::kernels::bodies {

// A GPU's warps are far from the memory of clients.
constinit const Body kServe{"serve", run_on_cpu<ServeParams, serve_body>, nullptr};
constinit const Body kServeTurn{"serve a turn", run_on_cpu<ServeTurnParams, serve_turn_body>,
                                GOFS_KERNEL(gpu::gpu_kernels::kServeTurn)};
constinit const Body kChannel{"channel", run_on_cpu<ChannelParams, channel_body>,
                              GOFS_KERNEL(gpu::gpu_kernels::kChannel)};

}  // namespace gofs::kernels::bodies
